"""`dt.explain(x)`: how the pending work of x would be done. Nothing runs, and it stays pending."""

from __future__ import annotations

from dataclasses import dataclass

from ..arguments import flag
from ..engine import evaluate as run
from ..engine import programs
from ..fusion.plan import Call, Step
from ..memory.units import bytes_text
from ..plugins.opened import Opened
from ..tensor.tensor import Tensor, strided

__all__ = ["explain"]


@dataclass(frozen=True)
class Launch:
    """One kernel, or one call of a vendor's routine, and why it exists. Sizes are in bytes."""

    name: str
    device: str
    why: str
    text: str  # in the loop language; empty for a vendor's routine
    source: str  # what the backend made of it, if asked for
    origin: (
        str  # where its program is: "in memory", "on disk" or "to be compiled"; or "vendor routine"
    )
    grid: tuple[int, ...]
    nbytes: int  # read and written, each element once
    fresh: int  # allocated

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


@dataclass(frozen=True)
class Explanation:
    """What is pending, in the order in which it would run. `print` it, or look at its parts.

    `launches`: kernels and vendor routines. `stored`: a line for each value that will be kept in
    memory, with the reason; what is not named there is computed where it is used, never stored.
    """

    launches: tuple[Launch, ...]
    stored: tuple[str, ...]

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


def explain(*tensors: Tensor, source: bool = False) -> Explanation:
    """How the pending work of these tensors would be done, together: launches, reasons, kernels.

    Nothing runs, and it stays pending. `source`: True also compiles each kernel, to show what the
    backend generates for it. What comes back is printed, or looked at: `launches`, `stored`,
    `nbytes`, `fresh`.
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
    plans = run.planned([strided("explain", x)._expr for x in tensors])
    launches = tuple(_launch(where, step, source) for where, plan in plans for step in plan.steps)
    stored = tuple(f"{m.op} {m.spec}: {m.reason}" for _, p in plans for m in p.materialised)
    return Explanation(launches, stored)


def _launch(where: Opened, step: Step | Call, source: bool) -> Launch:
    fresh, device = sum(n for _, n in step.fresh), str(where.device)
    why = "; ".join(map(str, step.why))
    if isinstance(step, Call):
        return Launch(step.op.name, device, why, "", "", "vendor routine", (), step.nbytes, fresh)
    origin = programs.whereabouts(where, step.kernel)
    made = programs.program(where, step.kernel).source if source else ""
    text, grid = str(step.kernel), step.grid
    return Launch(step.kernel.name, device, why, text, made, origin, grid, step.nbytes, fresh)
