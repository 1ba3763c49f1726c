"""The results of `dt.explain`: launches with their kernels, as text or as a graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..memory.units import format_bytes
from . import svg_boxes
from .profile import seconds_of
from .svg_boxes import Arrow, Box

__all__: list[str] = []

MemorySlot: TypeAlias = tuple[int, int]  # a slot of the plan, and a byte offset there
SUMMARY_LAUNCHES_MAX = 3  # launches that a summary names
GRAPH_LAUNCHES_MAX = 200  # launches of a graph that are drawn
TABLE_LAUNCHES_MAX = 50  # launches that a page lists, with their kernels


class LaunchReport(NamedTuple):
    """One kernel, or one call of a vendor's routine, and its reason. Sizes are in bytes.

    `sizes`: the sizes of `writes` if known; else 0. `companion`: the device that runs
    it for `device`, which does not accept it, and `copied` the bytes that go there and back; "", 0.
    """

    name: str
    device: str
    why: str
    text: str  # in the kernel IR; empty for a routine
    source: str  # the backend's code, if asked for
    # the place of its program: "in memory", "on disk", "to be compiled"; or "library call",
    # "host routine"
    origin: str
    grid: tuple[int, ...]
    nbytes: int  # read and written, each element once
    fresh: int  # allocated
    reads: tuple[MemorySlot, ...] = ()
    writes: tuple[MemorySlot, ...] = ()
    sizes: tuple[int, ...] = ()
    companion: str = ""
    copied: int = 0

    def __str__(self) -> str:
        lines = [
            f"{self.name} on {self._where} ({self.origin})",
            f"  since: {self.why}",
            f"  moves {format_bytes(self.nbytes)}, allocates {format_bytes(self.fresh)}, "
            f"{self._grid}",
        ]
        if self.companion:
            lines.insert(2, f"  {self.device} does not accept it: {self._copies}")
        lines += ["  " + line for line in self.text.splitlines()]
        if self.source:
            lines += ["  compiled from:", *("  | " + line for line in self.source.splitlines())]
        return "\n".join(lines)

    def summary(self) -> str:
        """Return one line: name, device, bytes, time if a profile has seen the launch, reason."""
        facts = [f"moves {format_bytes(self.nbytes)}"]
        if self.fresh:
            facts.append(f"allocates {format_bytes(self.fresh)}")
        if self.companion:
            facts.append(self._copies)
        if self.seconds is not None:
            facts.append(f"took {svg_boxes.seconds_text(self.seconds)}")
        why = f"; {svg_boxes.shorten(self.why, 72)}" if self.why else ""
        return (
            f"{self.name} on {self._where} ({self.origin}): {', '.join(facts)}, {self._grid}{why}"
        )

    @property
    def seconds(self) -> float | None:
        """Return the seconds of an equal launch that a profile saw last, or None."""
        name = self.name.rpartition(": ")[2]  # without the loop that it is inside of
        return seconds_of(self.device, name, self.grid, self.nbytes)

    @property
    def _where(self) -> str:
        """Return the device as text, with the companion that runs the launch for that device."""
        return f"{self.companion} for {self.device}" if self.companion else self.device

    @property
    def _copies(self) -> str:
        """Return text about the bytes copied to the companion and back, also if there are none."""
        if not self.copied:
            return f"{self.companion} works on its memory"
        return f"{format_bytes(self.copied)} copied to {self.companion} and back"

    @property
    def _grid(self) -> str:
        """Return the grid as text."""
        return f"grid {' x '.join(map(str, self.grid))}" if self.grid else "no grid of its own"


class PlanReport(NamedTuple):
    """Launches that share memory slots, with the inputs in memory and the outputs."""

    first: int
    last: int
    inputs: tuple[tuple[int, str, int], ...]  # slot, description, and bytes
    outputs: tuple[tuple[int, str], ...]


class MessageReport(NamedTuple):
    """A step in which this worker sends elements to others.

    - `name`: the function that sends, "gradient of NAME" in a backward pass.
    - `step`: the collective operation.
    - `sent`: pairs of a rank and the bytes that it gets.
    """

    name: str
    step: str
    sent: tuple[tuple[int, int], ...]

    @property
    def nbytes(self) -> int:
        """Return the bytes sent to all ranks."""
        return sum(n for _, n in self.sent)

    def __str__(self) -> str:
        ranks: dict[str, list[int]] = {}
        for rank, n in self.sent:
            if n:
                ranks.setdefault(format_bytes(n), []).append(rank)
        receivers = [f"{size} to {_name_ranks(rs)}" for size, rs in ranks.items()]
        return f"{self.name}: {self.step} sends {', '.join(receivers) or 'nothing'}"


def _name_ranks(ranks: Sequence[int]) -> str:
    """Return ranks as text."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"each of ranks {', '.join(map(str, ranks))}"


class Explanation:
    """The pending work, in the order in which it would run. `print` it, or inspect its parts.

    `launches`: kernels and vendor routines. `stored`: a line for each value that will be kept in
    memory, with the reason; any other value is computed where it is used, never stored.
    `messages`: the steps that send elements to other workers, for a function of sharded tensors.
    `text()` has all of it, with the kernels; a notebook draws it, and `save` writes the drawing.
    """

    def __init__(
        self,
        launches: tuple[LaunchReport, ...],
        stored: tuple[str, ...],
        plans: Sequence[PlanReport] = (),
        verbose: bool = False,
        messages: tuple[MessageReport, ...] = (),
    ) -> None:
        self.launches, self.stored, self.messages = launches, stored, messages
        self._plans, self._verbose = tuple(plans), verbose

    @property
    def nbytes(self) -> int:
        """Return the bytes that all launches read and write."""
        return sum(step.nbytes for step in self.launches)

    @property
    def copied(self) -> int:
        """Return the bytes copied to a companion and back, for work a device rejects."""
        return sum(step.copied for step in self.launches)

    @property
    def bytes_sent(self) -> int:
        """Return the bytes that this worker sends to others."""
        return sum(m.nbytes for m in self.messages)

    @property
    def fresh(self) -> int:
        """Return the bytes that all launches allocate."""
        return sum(step.fresh for step in self.launches)

    @property
    def seconds(self) -> float | None:
        """Return the profiled seconds of all launches; None if a launch was not profiled."""
        return _sum_seconds(self.launches)

    def __str__(self) -> str:
        return self.text() if self._verbose else self.summary()

    __repr__ = __str__

    def summary(self) -> str:
        """Return the number of launches, their bytes, the largest launches and stored values."""
        if not self.launches:
            return "\n".join([NOTHING_PENDING, *self._describe_messages()])
        lines = [self._describe_totals(), *_summarize_largest(self.launches)]
        lines += self._describe_messages()
        count = len(self.stored)
        lines += [f"  stores {line}" for line in self.stored[:SUMMARY_LAUNCHES_MAX]]
        if count > SUMMARY_LAUNCHES_MAX:
            lines.append(f"  ... and {count - SUMMARY_LAUNCHES_MAX} more values (.stored)")
        return "\n".join([*lines, "Their kernels: .text(), or dt.explain(..., verbose=True)"])

    def text(self) -> str:
        """Return every launch with its kernel, and every value that is stored."""
        if not self.launches:
            return "\n".join([NOTHING_PENDING, *self._describe_messages()])
        lines = [self._describe_totals(), *_format_launches(self.launches)]
        lines += self._describe_messages()
        return "\n".join([*lines, "", "Stored:", *(f"  {line}" for line in self.stored)])

    def _describe_totals(self) -> str:
        """Return the heading: number of launches, bytes, companion and profiled time."""
        count, seconds = len(self.launches), self.seconds
        took = "" if seconds is None else f", {svg_boxes.seconds_text(seconds)} when last profiled"
        return (
            f"{count} launch{'es' if count > 1 else ''}, {format_bytes(self.nbytes)} moved, "
            f"{format_bytes(self.fresh)} allocated{_companion_text(self.launches)}{took}. Nothing "
            "has run."
        )

    def _describe_messages(self) -> list[str]:
        """Return a line with all bytes sent, and one for each step that sends."""
        if not self.messages:
            return []
        return [f"Sends {format_bytes(self.bytes_sent)}:", *(f"  {m}" for m in self.messages)]

    def svg(self) -> str:
        """Draw the launches as a graph in SVG, with bytes and times."""
        boxes, arrows = _build_graph(self.launches, self._plans)
        return svg_boxes.draw_boxes(
            boxes, arrows, self._describe_totals() if self.launches else NOTHING_PENDING
        )

    def html(self) -> str:
        """Render the summary, the graph, and the folded kernels as HTML."""
        lines = "\n".join(self._describe_messages())
        messages = svg_boxes.preformatted(lines) if lines else ""
        if not self.launches:
            return svg_boxes.frame(svg_boxes.head("explain", NOTHING_PENDING) + messages)
        stored = svg_boxes.collapsible(
            f"{len(self.stored)} stored", svg_boxes.preformatted("\n".join(self.stored))
        )
        return svg_boxes.frame(
            svg_boxes.head("explain", self._describe_totals())
            + svg_boxes.make_scrollable(self.svg())
            + messages
            + _render_launch_table(self.launches)
            + stored
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the graph as .svg, or the whole report as .html, and return the path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return svg_boxes.save_drawing(path, "explain", self.svg(), self.html())

    def _repr_html_(self) -> str:
        return self.html()


class ReplayReport:
    """The program of a captured function for arguments of one kind. Sizes are in bytes.

    `launches`: in order, those of loops and branches once. `arena`: the memory of intermediate
    values;
    `results`: the memory that each call allocates besides.
    """

    def __init__(
        self,
        arguments: str,
        launches: tuple[LaunchReport, ...],
        arena: int,
        results: int,
        verbose: bool = False,
    ) -> None:
        self.arguments, self.launches = arguments, launches
        self.arena, self.results, self._verbose = arena, results, verbose

    @property
    def nbytes(self) -> int:
        """Return the bytes that all launches read and write, those of loops once."""
        return sum(step.nbytes for step in self.launches)

    def __str__(self) -> str:
        return self.text() if self._verbose else self.summary()

    __repr__ = __str__

    def summary(self) -> str:
        """Return the number of launches, their bytes, and the largest of them."""
        return "\n".join([self._describe_totals(), *_summarize_largest(self.launches)])

    def text(self) -> str:
        """Return every launch with its kernel."""
        return "\n".join([self._describe_totals(), *_format_launches(self.launches)])

    def _describe_totals(self) -> str:
        """Return the heading: arguments, launches, bytes, arena and profiled time."""
        count, seconds = len(self.launches), _sum_seconds(self.launches)
        took = "" if seconds is None else f", {svg_boxes.seconds_text(seconds)} when last profiled"
        return (
            f"Of ({self.arguments}): {count} launch{'' if count == 1 else 'es'}, "
            f"{format_bytes(self.nbytes)} moved, an arena of {format_bytes(self.arena)}, "
            f"{format_bytes(self.results)} of results{_companion_text(self.launches)}{took}."
        )

    def svg(self) -> str:
        """Draw the launches as a graph in SVG."""
        boxes, arrows = _build_graph(self.launches, ())
        return svg_boxes.draw_boxes(boxes, arrows, self._describe_totals())

    def html(self) -> str:
        """Render the summary, the graph, and the folded kernels as HTML."""
        return svg_boxes.frame(
            svg_boxes.head("replayed", self._describe_totals().replace("Of (", "of (", 1))
            + svg_boxes.make_scrollable(self.svg())
            + _render_launch_table(self.launches)
        )

    def _repr_html_(self) -> str:
        return self.html()


class ReplayReports:
    """The programs of a captured function, for each kind of arguments it was captured for.

    `reasons`: why there is no program for the given arguments.
    """

    def __init__(
        self, name: str, captures: tuple[ReplayReport, ...], reasons: tuple[str, ...] = ()
    ) -> None:
        self.name, self.captures, self.reasons = name, captures, reasons

    def __str__(self) -> str:
        return self._join([*map(str, self.captures)])

    __repr__ = __str__

    def text(self) -> str:
        """Return every launch of every capture with its kernel."""
        return self._join([c.text() for c in self.captures])

    def _join(self, texts: list[str]) -> str:
        """Join the captures' texts under a heading; return the reason if there is no program."""
        if self.reasons:
            return f"{self.name} runs as always for such arguments: {'; '.join(self.reasons)}."
        if not self.captures:
            return f"{self.name} has not been captured: it has not been called with such arguments."
        return "\n\n".join([f"{self.name}, captured:", *texts])

    def html(self) -> str:
        """Render a section for each kind of arguments as HTML."""
        line = f"{self.name}, captured:" if self.captures else self._join([])
        pieces = "".join(c.html() for c in self.captures)
        return svg_boxes.frame(svg_boxes.head("explain", line) + pieces)

    def _repr_html_(self) -> str:
        return self.html()


NOTHING_PENDING = "Nothing is pending: the values are in memory."


def _sum_seconds(launches: Sequence[LaunchReport]) -> float | None:
    """Return the profiled seconds of all launches; None if there are none or one is unknown."""
    times = [step.seconds for step in launches]
    return None if not times or None in times else sum(s for s in times if s is not None)


def _companion_text(launches: Sequence[LaunchReport]) -> str:
    """Return text about launches on companions, to be added to a heading; "" if there are none."""
    count, copied = sum(bool(x.companion) for x in launches), sum(x.copied for x in launches)
    return f", {count} by a companion, {format_bytes(copied)} copied for it" if count else ""


def _summarize_largest(launches: Sequence[LaunchReport]) -> list[str]:
    """Return a line for each of the 3 launches that move most, in order, and count the others."""
    biggest = nlargest(
        SUMMARY_LAUNCHES_MAX, enumerate(launches, 1), key=lambda pair: pair[1].nbytes
    )
    lines = [f"  {n}. {step.summary()}" for n, step in sorted(biggest, key=lambda pair: pair[0])]
    if len(launches) > SUMMARY_LAUNCHES_MAX:
        lines.append(f"  ... and {len(launches) - SUMMARY_LAUNCHES_MAX} that move less")
    return lines


def _format_launches(launches: Sequence[LaunchReport]) -> list[str]:
    """Return numbered lines of text about all launches."""
    return [line for n, step in enumerate(launches, 1) for line in ("", f"{n}. {step}")]


# --- as a graph -----------------------------------------------------------------------------------


def _build_graph(
    launches: Sequence[LaunchReport], plans: Sequence[PlanReport]
) -> tuple[list[Box], list[Arrow]]:
    """Build boxes for launches, at most GRAPH_LAUNCHES_MAX, memory and results, with arrows."""
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    bytes_max = max((step.nbytes for step in launches), default=0)
    for plan in plans or [PlanReport(0, len(launches), (), ())]:
        shown = launches[plan.first : min(plan.last, GRAPH_LAUNCHES_MAX)]
        writer: dict[MemorySlot | int, tuple[int, int]] = {}  # the box, and bytes
        slots_read = {slot for step in shown for slot, _ in step.reads}
        for slot, what, nbytes in plan.inputs:
            if slot in slots_read:
                writer[slot] = len(boxes), 0  # the box says how many bytes
                boxes.append(Box((what, format_bytes(nbytes)), "memory", f"in memory: {what}"))
        for n, step in enumerate(shown, plan.first + 1):
            box = len(boxes)
            # within an arena the byte offset identifies memory; in a plan the slot does
            for at in dict.fromkeys(m if not plans else m[0] for m in step.reads):
                if at in writer:
                    start, nbytes = writer[at]
                    arrows.append(Arrow(start, box, format_bytes(nbytes) if nbytes else ""))
            boxes.append(_build_box(n, step, bytes_max))
            for i, m in enumerate(step.writes):
                nbytes = step.sizes[i] if i < len(step.sizes) else 0
                writer[m if not plans else m[0]] = box, nbytes
        for slot, what in plan.outputs if plan.last <= GRAPH_LAUNCHES_MAX else ():
            if slot in writer:
                start, nbytes = writer[slot]
                arrows.append(Arrow(start, len(boxes), format_bytes(nbytes) if nbytes else ""))
                boxes.append(Box((what,), "result", f"kept: {what}"))
    if len(launches) > GRAPH_LAUNCHES_MAX:
        boxes.append(Box((f"and {len(launches) - GRAPH_LAUNCHES_MAX} launches more",), "memory"))
    return boxes, arrows


def _build_box(n: int, step: LaunchReport, bytes_max: int) -> Box:
    """Build the box of launch number `n`, in another colour if its bytes are `bytes_max`."""
    facts = f"{format_bytes(step.nbytes)} moved"
    seconds = step.seconds
    took = () if seconds is None else (_format_rate(seconds, step.nbytes),)
    kind = "much" if bytes_max and step.nbytes == bytes_max else "work"
    companion_lines = (f"on {step.companion}",) if step.companion else ()
    return Box((f"{n}. {step.name}", *companion_lines, facts, *took), kind, step.summary())


def _format_rate(seconds: float, nbytes: int) -> str:
    """Return a time as text, with gigabytes per second."""
    rate = f", {nbytes / seconds / 1e9:.1f} GB/s" if seconds else ""
    return f"{svg_boxes.seconds_text(seconds)}{rate}"


def _render_launch_table(launches: Sequence[LaunchReport]) -> str:
    """Render as HTML, folded, a table of at most TABLE_LAUNCHES_MAX launches and their kernels."""
    rows = []
    for n, step in enumerate(launches[:TABLE_LAUNCHES_MAX], 1):
        took = "" if step.seconds is None else svg_boxes.seconds_text(step.seconds)
        rows.append(
            (
                str(n),
                step.name,
                step._where,
                step.origin,
                svg_boxes.shorten(step.why, 60),
                format_bytes(step.nbytes),
                format_bytes(step.fresh),
                took,
            )
        )
    more = len(launches) - TABLE_LAUNCHES_MAX
    note = f"<div>... and {more} more</div>" if more > 0 else ""
    names = ("", "launch", "device", "program", "since", "moves", "allocates", "took")
    kernels = "".join(
        svg_boxes.collapsible(f"{n}. {step.name}", svg_boxes.preformatted(str(step)))
        for n, step in enumerate(launches[:TABLE_LAUNCHES_MAX], 1)
    )
    rows_html = svg_boxes.table(names, rows, 5) + note
    return svg_boxes.collapsible(
        f"{len(launches)} launches as a table", rows_html
    ) + svg_boxes.collapsible("kernels", kernels + note)
