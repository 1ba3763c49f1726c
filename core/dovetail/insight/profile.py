"""The profiler `dt.profile`: events of evaluation with times, as a trace and as a table.

While a profile is taken dovetail waits for every launch, so that its time is its own. Nothing else
changes. Perfetto reads the trace.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..argument_checks import path as file_name
from ..engine import events
from ..engine.events import ProfileEvent
from ..errors import ArgumentError
from ..lru_cache import LRUCache
from . import svg_boxes, timeline
from .module_events import ModuleEvents

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["profile"]


# Seconds of the last profiled launch, by device, name, grid and bytes.
_seconds_by_launch: LRUCache[tuple[str, str, tuple[int, ...], int], float] = LRUCache(4096)


def seconds_of(device: str, name: str, grid: tuple[int, ...], nbytes: int) -> float | None:
    """Return the seconds of the last profiled launch with these properties, or None."""
    return _seconds_by_launch.find((device, name, grid, nbytes))


@dataclass
class ProfileRow:
    """The events of one name: their number, seconds, and the bytes that they read and wrote."""

    name: str
    count: int = 0
    seconds: float = 0.0
    nbytes: int = 0

    @property
    def gigabytes_per_second(self) -> float:
        """Return 10^9 bytes a second; 0 if no bytes were counted or no time passed."""
        return self.nbytes / self.seconds / 1e9 if self.seconds else 0.0


@dataclass
class ModuleRow:
    """The launches of a module and of the modules within it.

    - `name`: the name in the network; "" is the network, "outside" the work outside of forward.
    - `kind`: the name of the module's class.
    - `calls`: the number of its calls.
    - `launches`: the number of launches and library calls.
    - `seconds`, `nbytes`: their time, and the bytes that they read and wrote.
    """

    name: str
    kind: str
    calls: int
    launches: int = 0
    seconds: float = 0.0
    nbytes: int = 0


class Profile:
    """A profile that is being taken, or was. Made by `profile`; usable as a context once.

    `events` are dicts: name, begun and ended (nanoseconds), thread, details (grid, bytes, live).
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, modules: Any = None) -> None:
        self.path = None if path is None else Path(file_name("profile", path))
        self.events: list[ProfileEvent] = []
        self._modules = None if modules is None else ModuleEvents(modules, self.events)
        self._start_ns = self._end_ns = 0

    def __repr__(self) -> str:
        return f"Profile({len(self.events)} events)"

    def __enter__(self) -> Profile:
        if self._start_ns:
            raise ArgumentError(
                "profile: a profile can be entered only once; create another with dt.profile()"
            )
        events.start_profile(self.events)
        if self._modules is not None:
            self._modules.start()
        self._start_ns = time.perf_counter_ns()
        return self

    def __exit__(self, *exc: object) -> None:
        self._end_ns = time.perf_counter_ns()
        events.stop_profile(self.events)
        if self._modules is not None:
            self._modules.stop()
        for event in self.events:
            kind, _, name = event["name"].partition(" ")
            if kind in ("launch", "call"):
                details = event["details"]
                key = (
                    details.get("device", ""),
                    name,
                    details.get("grid", ()),
                    details.get("bytes", 0),
                )
                _seconds_by_launch[key] = (event["ended"] - event["begun"]) / 1e9
        if self.path is not None:
            self.path.write_text(json.dumps({"traceEvents": list(self._build_trace_events())}))

    @property
    def seconds(self) -> float:
        """Return the time from entering to leaving, or until now."""
        return ((self._end_ns or time.perf_counter_ns()) - self._start_ns) / 1e9

    def lines(self) -> list[ProfileRow]:
        """Return one row for each event name, the longest total time first."""
        by_name: dict[str, ProfileRow] = {}
        for event in self.events:
            line = by_name.setdefault(event["name"], ProfileRow(event["name"]))
            line.count += 1
            line.seconds += (event["ended"] - event["begun"]) / 1e9
            line.nbytes += event["details"].get("bytes", 0)
        return sorted(by_name.values(), key=lambda line: -line.seconds)

    def by_module(self) -> list[ModuleRow]:
        """Return a row for each module in the order of the network, then one for other work.

        A module's row includes the modules within it.
        Raises: ArgumentError for a profile without modules.
        """
        if self._modules is None:
            raise ArgumentError(
                "by_module: the profile has no modules; enter dt.profile(modules=net)"
            )
        kinds, calls = self._modules.kinds, self._modules.calls
        rows = [ModuleRow(name, kinds[name], calls[name]) for name in kinds]
        rows.append(ModuleRow("outside", "", 0))
        for event in self.events:
            if event["name"].partition(" ")[0] in ("launch", "call"):
                name = event["details"].get("module")
                for row in rows[:-1] if name is not None else rows[-1:]:
                    if name is None or row.name in ("", name) or name.startswith(f"{row.name}."):
                        row.launches += 1
                        row.seconds += (event["ended"] - event["begun"]) / 1e9
                        row.nbytes += event["details"].get("bytes", 0)
        return rows

    def __str__(self) -> str:
        return self.summary()

    def summary(self) -> str:
        """Format the rows as a table of text, with the total time; then the rows of modules."""
        rows = [_format_row(line, self.seconds) for line in self.lines()]
        seconds = sum(line.seconds for line in self.lines())
        lines = [
            *_format_table([_COLUMNS, *rows]),
            f"{seconds * 1e3:.3f} ms in events, of {self.seconds * 1e3:.3f} ms",
        ]
        if self._modules is not None:
            modules = [_format_module(row, self.seconds) for row in self.by_module()]
            lines += ["", *_format_table([_MODULE_COLUMNS, *modules])]
        return "\n".join(lines)

    def __rich__(self) -> Table:
        from rich.table import Table  # a local import keeps `import dovetail` light

        table = Table(_COLUMNS[0], title=f"{self.seconds * 1e3:.3f} ms")
        for column in _COLUMNS[1:]:
            table.add_column(column, justify="right")
        for line in self.lines():
            table.add_row(*_format_row(line, self.seconds))
        return table

    def svg(self) -> str:
        """Draw the events in SVG as bars along time, with the memory in use below them."""
        return timeline.svg(self.events, self._start_ns, self._end_ns or time.perf_counter_ns())

    def _repr_html_(self) -> str:
        """Render the timeline and a table of the longest rows as HTML."""
        lines = self.lines()
        rows = [_format_row(line, self.seconds) for line in lines[:_PAGE_ROWS_MAX]]
        more = f"... and {len(lines) - _PAGE_ROWS_MAX} more" if len(lines) > _PAGE_ROWS_MAX else ""
        head = f"{len(self.events)} events in {self.seconds * 1e3:.3f} ms"
        return timeline.html(self.svg(), head, _COLUMNS, rows, more)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the timeline to a file, .svg or .html, and return its path.

        Raises: ArgumentError for another kind of file; OSError.
        """
        return svg_boxes.save_drawing(path, "profile", self.svg(), self._repr_html_())

    # Source: Chrome's Trace Event Format, which Perfetto reads: "X" is a complete event, "C" a
    # counter; times are in microseconds.
    def _build_trace_events(self) -> Iterator[dict[str, object]]:
        """Yield the events, and the memory after launches, in Chrome's trace format."""
        process = os.getpid()
        for event in self.events:
            at = {"pid": process, "tid": event["thread"]}
            begun, ended = ((event[k] - self._start_ns) / 1e3 for k in ("begun", "ended"))
            kind = event["name"].split(" ")[0]
            yield {
                **at,
                "ph": "X",
                "name": event["name"],
                "cat": kind,
                "ts": begun,
                "dur": ended - begun,
                "args": event["details"],
            }
            if "live" in event["details"]:
                live = {"live bytes": event["details"]["live"]}
                yield {**at, "ph": "C", "name": "memory", "ts": ended, "args": live}


_COLUMNS = ("event", "count", "total ms", "mean us", "share", "GB/s")
_PAGE_ROWS_MAX = 20  # of the table in a page
_COLUMN_WIDTHS = (8, 12, 12, 8, 9)
_MODULE_COLUMNS = ("module", "calls", "launches", "total ms", "share", "GB/s")


def _format_table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return lines of text with the first cells to the left and others to the right."""
    name_width = max(len(row[0]) for row in rows)
    return [
        f"{name:<{name_width}}"
        + "".join(f"{cell:>{w}}" for cell, w in zip(cells, _COLUMN_WIDTHS, strict=True))
        for name, *cells in rows
    ]


def _format_module(row: ModuleRow, total_seconds: float) -> tuple[str, ...]:
    """Format a module's row as cells of text, indented by the modules around it."""
    last = row.name.rpartition(".")[2]
    depth = row.name.count(".") + bool(row.name and row.kind)
    name = "  " * depth + ": ".join(filter(None, (last, row.kind)))
    line = ProfileRow(name, row.launches, row.seconds, row.nbytes)
    _, _, milliseconds, _, share, rate = _format_row(line, total_seconds)
    calls = str(row.calls) if row.kind else ""
    return name, calls, str(row.launches), milliseconds, share, rate


def _format_row(line: ProfileRow, total_seconds: float) -> tuple[str, ...]:
    """Format a row as cells of text; `total_seconds` is the base of the share."""
    rate = f"{line.gigabytes_per_second:.2f}" if line.nbytes else ""
    mean = line.seconds / max(line.count, 1)
    share = f"{line.seconds / total_seconds:.0%}" if total_seconds else ""
    return line.name, str(line.count), f"{line.seconds * 1e3:.3f}", f"{mean * 1e6:.1f}", share, rate


def profile(path: str | os.PathLike[str] | None = None, *, modules: object = None) -> Profile:
    """Return a context that waits for and times each launch; write the trace to `path`, if given.

    While a profile is taken every launch is waited for, so that its time is its own; results are
    the same. In a notebook it is a timeline, which `p.save` writes to a file (.svg, .html).

    - `path`: a file for Perfetto (https://ui.perfetto.dev), or None.
    - `modules`: a network. Each of its modules is then computed as its forward returns, so that
      `p.by_module()` has the time and launches of each; kernels do not fuse across modules.

    Units: `p.seconds` and those of `p.lines()` in seconds, `p.summary()` in ms, us and GB/s (10^9
    bytes a second), `p.events` in nanoseconds.
    Cost: every launch is waited for, so that the program runs longer.
    Raises: ArgumentError where one profile is entered twice, ArgumentTypeError for another `path`.
    See also: `explain`, `Event`, `record_lines`.

    >>> import dovetail as dt
    >>> x = dt.ones(1000)
    >>> with dt.profile() as p:
    ...     dt.evaluate(x * 2)
    >>> [line.count for line in p.lines() if line.name.startswith("launch")]
    [1]
    """
    return Profile(path, modules)
