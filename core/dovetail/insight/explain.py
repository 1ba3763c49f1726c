"""`dt.explain(x)`: how the pending work of x would be done. Nothing runs, and it stays pending.
`dt.explain(f)`: what a captured function does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias, TypeGuard, overload

from ..arguments import flag
from ..capture.program import Call as CapturedCall
from ..capture.program import Launch as CapturedLaunch
from ..capture.program import Program
from ..capture.program import Work as CapturedWork
from ..engine import evaluate as run
from ..engine import programs
from ..fusion.plan import Call, Step
from ..memory.units import bytes_text
from ..plugins.opened import Opened
from ..tensor.tensor import Tensor, strided

__all__ = ["explain"]


Memory: TypeAlias = tuple[int, int]  # a slot, and a byte there: the same in all of one plan


class Launch(NamedTuple):
    """One kernel, or one call of a vendor's routine, and why it exists. Sizes are in bytes."""

    name: str
    device: str
    why: str
    text: str  # in the loop language; empty for a vendor's routine
    source: str  # what the backend made of it, if asked for
    origin: (
        str  # where its program is: "in memory", "on disk", "to be compiled"; or "vendor routine"
    )
    grid: tuple[int, ...]
    nbytes: int  # read and written, each element once
    fresh: int  # allocated
    reads: tuple[Memory, ...] = ()
    writes: tuple[Memory, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.name} on {self.device} ({self.origin})",
            f"  since: {self.why}",
            f"  moves {bytes_text(self.nbytes)}, allocates {bytes_text(self.fresh)}, {self._grid}",
        ]
        lines += ["  " + line for line in self.text.splitlines()]
        if self.source:
            lines += ["  compiled from:", *("  | " + line for line in self.source.splitlines())]
        return "\n".join(lines)

    @property
    def _grid(self) -> str:
        return f"grid {' x '.join(map(str, self.grid))}" if self.grid else "no grid of its own"


class Explanation:
    """What is pending, in the order in which it would run. `print` it, or look at its parts.

    `launches`: kernels and vendor routines. `stored`: a line for each value that will be kept in
    memory, with the reason; what is not named there is computed where it is used, never stored.
    """

    def __init__(self, launches: tuple[Launch, ...], stored: tuple[str, ...]) -> None:
        self.launches, self.stored = launches, stored

    @property
    def nbytes(self) -> int:
        """Bytes that all launches read and write."""
        return sum(step.nbytes for step in self.launches)

    @property
    def fresh(self) -> int:
        """Bytes that all launches allocate."""
        return sum(step.fresh for step in self.launches)

    def __str__(self) -> str:
        if not self.launches:
            return "Nothing is pending: the values are in memory."
        count = len(self.launches)
        lines = [
            f"{count} launch{'es' if count > 1 else ''}, {bytes_text(self.nbytes)} moved, "
            f"{bytes_text(self.fresh)} allocated. Nothing has run."
        ]
        for number, step in enumerate(self.launches, 1):
            lines += ["", f"{number}. {step}"]
        return "\n".join([*lines, "", "Stored:", *(f"  {line}" for line in self.stored)])

    __repr__ = __str__


class Replay:
    """What a captured function does for arguments of one kind. Sizes are in bytes.

    `launches`: in order, those of loops and branches once. `arena`: where intermediate values lie;
    `results`: what each call allocates besides.
    """

    def __init__(
        self, arguments: str, launches: tuple[Launch, ...], arena: int, results: int
    ) -> None:
        self.arguments, self.launches = arguments, launches
        self.arena, self.results = arena, results

    @property
    def nbytes(self) -> int:
        """Bytes that all launches read and write, those of loops once."""
        return sum(step.nbytes for step in self.launches)

    def __str__(self) -> str:
        count = len(self.launches)
        lines = [
            f"Of ({self.arguments}): {count} launch{'' if count == 1 else 'es'}, "
            f"{bytes_text(self.nbytes)} moved, an arena of {bytes_text(self.arena)}, "
            f"{bytes_text(self.results)} of results."
        ]
        for number, step in enumerate(self.launches, 1):
            lines += ["", f"{number}. {step}"]
        return "\n".join(lines)

    __repr__ = __str__


class Replays:
    """What a captured function does, for each kind of arguments it was captured for.

    `reasons`: why it runs as always for those that were asked about.
    """

    def __init__(
        self, name: str, captures: tuple[Replay, ...], reasons: tuple[str, ...] = ()
    ) -> None:
        self.name, self.captures, self.reasons = name, captures, reasons

    def __str__(self) -> str:
        if self.reasons:
            return f"{self.name} runs as always for such arguments: {'; '.join(self.reasons)}."
        if not self.captures:
            return f"{self.name} has not been captured: it has not been called with such arguments."
        return "\n\n".join([f"{self.name}, captured:", *map(str, self.captures)])

    __repr__ = __str__


class Captured(Protocol):
    """What `dt.jit` gives: `programs` are those that are replayed, and for which arguments."""

    __name__: str

    @property
    def programs(self) -> Sequence[tuple[str, Program]]: ...

    def explained(
        self, args: tuple[object, ...]
    ) -> tuple[Sequence[tuple[str, Program]], Sequence[str]]: ...


def _is_captured(x: object) -> TypeGuard[Captured]:
    return hasattr(x, "programs")


@overload
def explain(*tensors: Tensor, source: bool = False) -> Explanation: ...
@overload
def explain(f: Captured, /, *args: object, source: bool = False) -> Replays: ...
def explain(*tensors: object, source: bool = False) -> Explanation | Replays:
    """How the pending work of these tensors would be done, together: launches, reasons, kernels.

    Nothing runs, and it stays pending. `tensors`: or a function that `dt.jit` gave; then what is
    replayed for each kind of arguments, as `captures`, each with `launches` and the bytes of its
    `arena`; arguments behind it ask for those of their kind alone, and why there is none
    (`reasons`). `source`: True also compiles each kernel, to show what the backend makes of it.
    What comes back is printed, or looked at: `launches`, `stored`, `nbytes`, `fresh`.
    Shapes: any.
    Dtypes: all.
    Units: bytes for what launches move and allocate.
    Raises: DTypeError for anything but tensors; CompileError with `source`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[1.0, 2.0], [3.0, 4.0]], device="reference")
    >>> why = dt.explain(dt.softmax(x * 2))
    >>> len(why.launches), why.fresh
    (1, 16)
    """
    source = flag("explain", source, "source")
    if tensors and _is_captured(f := tensors[0]):
        found, reasons = f.explained(tensors[1:]) if len(tensors) > 1 else (f.programs, ())
        replays = tuple(_replay(given, p, source) for given, p in found)
        return Replays(f.__name__, replays, tuple(reasons))
    plans = run.planned([strided("explain", x)._expr for x in tensors])
    launches = tuple(_launch(where, step, source) for where, plan in plans for step in plan.steps)
    stored = tuple(f"{m.op} {m.spec}: {m.reason}" for _, p in plans for m in p.materialised)
    return Explanation(launches, stored)


def _replay(arguments: str, program: Program, source: bool) -> Replay:
    launches = tuple(_act(program.opened, how, act, source) for how, act in program.steps())
    return Replay(arguments, launches, program.arena, sum(program.sizes))


def _act(
    where: Opened, how: str, act: CapturedLaunch | CapturedCall | CapturedWork, source: bool
) -> Launch:
    written = {(p.slot, p.offset) for p in act.written}
    read = tuple((p.slot, p.offset) for p in act.places())
    memory = tuple(m for m in read if m not in written), tuple(sorted(written))
    if isinstance(act, CapturedWork):
        text, why = act.source if source else "", "a kernel of one's own"
        device = str(where.device)
        return Launch(
            how + act.name, device, why, "", text, "raw kernel", (), act.nbytes, 0, *memory
        )
    if isinstance(act, CapturedLaunch):
        made = _launch(where, act.planned, source)
        access = zip(act.buffers, act.planned.kernel.buffers, strict=True)
        read = tuple((p.slot, p.offset) for p, b in access if b.access != "w")
        return made._replace(name=how + made.name, fresh=0, reads=read, writes=memory[1])
    name, device = how + act.op.name, str(where.device)
    return Launch(name, device, "", "", "", "vendor routine", (), act.nbytes, 0, *memory)


def _launch(where: Opened, step: Step | Call, source: bool) -> Launch:
    fresh, device = sum(n for _, n in step.fresh), str(where.device)
    why = "; ".join(map(str, step.why))
    if isinstance(step, Call):
        read = tuple((x.slot, x.view.offset * x.dtype.itemsize) for x in step.inputs)
        out = step.output.slot, step.output.view.offset * step.output.dtype.itemsize
        name = step.op.name
        return Launch(
            name, device, why, "", "", "vendor routine", (), step.nbytes, fresh, read, (out,)
        )
    access = [*zip(step.buffers, (b.access for b in step.kernel.buffers), strict=True)]
    memory = (
        tuple(m for m, how in access if how != "w"), tuple(m for m, how in access if how != "r")
    )  # fmt: skip
    origin = programs.whereabouts(where, step.kernel)
    made = programs.program(where, step.kernel).source if source else ""
    text, grid = str(step.kernel), step.grid
    name = step.kernel.name
    return Launch(name, device, why, text, made, origin, grid, step.nbytes, fresh, *memory)
