"""Plans: launches in order, the materialised values with reasons, and the values that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ..backend.faults import IndexPurpose
from ..dtypes import DType
from ..graph.expr import Spec
from ..ir.builder import Kernel
from ..layout import Shape, StridedView
from ..ops.table import Op
from .reasons import Reason

if TYPE_CHECKING:
    from .shape_class import ShapeClass


@dataclass(eq=False, slots=True, repr=False)
class PlannedLaunch:
    """One launch.

    `buffers`: (slot, byte offset). `allocations`: (slot, nbytes) to allocate. `scalars`: positions
    among the graph's Python numbers.
    """

    kernel: Kernel
    buffers: tuple[tuple[int, int], ...]
    allocations: tuple[tuple[int, int], ...]
    ints: tuple[int, ...]
    scalars: tuple[int, ...]
    grid: Shape
    reasons: tuple[Reason, ...]
    nbytes: int  # read and written, counting each access once
    checks: tuple[
        tuple[int, int, IndexPurpose], ...
    ] = ()  # (slot of the error cell, node, purpose)
    released_slots: tuple[int, ...] = ()  # slots that nothing later needs


class MemoryOperand(NamedTuple):
    """A value in memory, as an op's own kernel or a library call sees it.

    scale: the factors of its elements in the same shape, for a routine that multiplies by them.
    """

    slot: int
    view: StridedView
    dtype: DType
    scale: MemoryOperand | None = None


class PlannedCall:
    """A library call in place of kernels: `routine(backend, inputs, output, stream)`.

    `dtype`: that for which the routine is registered.
    """

    __slots__ = (
        "allocations",
        "dtype",
        "inputs",
        "nbytes",
        "op",
        "output",
        "reasons",
        "released_slots",
    )

    def __init__(
        self,
        op: Op,
        dtype: DType,
        inputs: tuple[MemoryOperand, ...],
        output: MemoryOperand,
        allocations: tuple[tuple[int, int], ...],
        reasons: tuple[Reason, ...],
        nbytes: int,
    ) -> None:
        self.op, self.dtype, self.inputs, self.output = op, dtype, inputs, output
        self.allocations = allocations
        self.reasons, self.nbytes = reasons, nbytes
        self.released_slots: tuple[int, ...] = ()


class Materialised(NamedTuple):
    """A value that is written to memory, by its op's name; "leaf" if a storage waits for it."""

    op: str
    spec: Spec
    reason: Reason


@dataclass(eq=False, slots=True, repr=False)
class Plan:
    """A list of steps; `output_slots`: (position of the node, slot) for every node that stays.

    There are no steps if it `target_overlaps`. `shape_class`: the class that built it, if one did.
    """

    steps: list[PlannedLaunch | PlannedCall]
    slot_count: int
    output_slots: tuple[tuple[int, int], ...]
    materialised: list[Materialised]
    target_overlaps: bool = (
        False  # the target is read, and not element by element: use fresh memory
    )
    shape_class: ShapeClass | None = None


class WriteTarget(NamedTuple):
    """The existing memory to which the first root is written."""

    strides: Shape
    slot: int
    overlapping_slots: frozenset[int]  # leaf slots that may have elements in common with it ...
    identical_slots: frozenset[int]  # ... and those among them with the very same layout
