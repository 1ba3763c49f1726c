"""The kernels of a plan: the terms that each computes, and the nodes that it writes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..backend.faults import IndexPurpose
from ..dtypes import DType
from ..layout import ELEMENTS_MAX, Shape
from ..ops.table import Op
from .domain import Domain, Path
from .plan import MemoryOperand


class Access:
    """One access of a kernel to a buffer: element strides over the domain's axes.

    Slot -1 is no memory: a linear index. `is_data_dependent`: True if it also depends on indices
    that are data. `elements_max`: how many elements there are, if a join's part is smaller than the
    domain. `starts_at_offset`: True if the buffer begins at the offset; otherwise the offset is
    added to each index.
    """

    __slots__ = (
        "dtype",
        "elements_max",
        "is_data_dependent",
        "offset",
        "slot",
        "starts_at_offset",
        "strides",
    )

    def __init__(
        self,
        slot: int,
        dtype: DType,
        strides: Shape,
        offset: int,
        is_data_dependent: bool = False,
        elements_max: int = ELEMENTS_MAX,
    ) -> None:
        self.slot, self.dtype, self.strides, self.elements_max = slot, dtype, strides, elements_max
        self.offset, self.is_data_dependent = offset, is_data_dependent
        # A part of a join may be viewed from positions before or after its memory.
        self.starts_at_offset = slot >= 0 and offset >= 0 and elements_max == ELEMENTS_MAX

    @property
    def start(self) -> int:
        """The element at which the buffer begins."""
        return self.offset if self.starts_at_offset else 0


class GatherAxes(NamedTuple):
    """The axes of a gather that indices address: (stride, extent) of each."""

    node: int
    axes: tuple[tuple[int, int], ...]
    purposes: tuple[IndexPurpose, ...]  # the purpose of each index, if the kernel must check them


class JoinRange(NamedTuple):
    """A range of positions along the axis of a join: `start` <= position < `stop`, or to the end.

    `position` gives the position of a point of the domain.
    """

    position: Access
    start: int
    stop: int | None


TermKind: TypeAlias = Literal["load", "scalar", "map", "generate", "gather", "reduce", "join"]


class Term:
    """A value that is computed on the fly at a point of the domain; `dtype` is that of the result.

    `ranges` of a join: the range of each operand; of a load: the ranges outside of which it gives
    0. `loop`: the reduction for whose loop it was built first, -1 for the loop of the stores.
    """

    __slots__ = (
        "access",
        "args",
        "casts",
        "dtype",
        "gather_axes",
        "kind",
        "loop",
        "op",
        "ranges",
        "scalar_index",
    )

    def __init__(
        self,
        kind: TermKind,
        dtype: DType,
        op: Op | None = None,
        args: tuple[Term, ...] = (),
        casts: tuple[DType, ...] = (),
        access: Access | None = None,
        scalar_index: int = -1,
        gather_axes: GatherAxes | None = None,
        ranges: tuple[JoinRange, ...] = (),
    ) -> None:
        self.kind, self.dtype, self.op, self.args, self.casts = kind, dtype, op, args, casts
        self.access, self.scalar_index, self.gather_axes, self.ranges = (
            access,
            scalar_index,
            gather_axes,
            ranges,
        )
        self.loop: int | None = None


class Output(NamedTuple):
    """A node that a kernel writes: its value and its access."""

    node: int
    term: Term
    access: Access


class FusionGroup:
    """A kernel that materialised nodes share, each with its term."""

    __slots__ = (
        "accesses",
        "domain",
        "index",
        "indexes_by_division",
        "outputs",
        "refusal_count",
        "terms",
        "value_count",
    )

    def __init__(self, index: int, domain: Domain) -> None:
        self.index, self.domain = index, domain
        self.outputs: list[Output] = []
        self.accesses: list[Access] = []
        self.terms: dict[tuple[int, Path], Term] = {}  # (node, path of its view) -> its term
        self.value_count = 0  # values computed, as KERNEL_VALUES_MAX counts them
        self.indexes_by_division = (
            False  # True if quotients and remainders give the indices along rows
        )
        self.refusal_count = 0  # nodes that would have made it too large

    def row_is_coalescible(self) -> bool:
        """Return True if a single stride walks each access along the rows."""
        if len(self.domain.axes) < 2:
            return True
        return len(self.domain.coalesce_row([a.strides for a in self.accesses])[0]) <= 1


class SplitRows(NamedTuple):
    """A reduction of few, long rows in several launches."""

    group: FusionGroup  # has the reduction's term, and the accesses that it reads
    output: Output


class OwnKernels(NamedTuple):
    """A node whose op has kernels of its own, or a library call in their place."""

    node: int
    inputs: tuple[MemoryOperand, ...]
    output: MemoryOperand
    casts: tuple[DType, ...]
    is_library_call: bool
    is_ordered: bool  # True if the call has the bits of the kernels, and may compute parts of them
    copies: bool  # True if an op that updates its first operand starts from a copy of it


PlannedKernel: TypeAlias = FusionGroup | SplitRows | OwnKernels
