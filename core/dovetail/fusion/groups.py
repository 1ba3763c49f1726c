"""The kernels of a plan: the terms that each computes, and the nodes that it writes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..backend.faults import Asked
from ..dtypes import DType
from ..layout import LIMIT, Shape
from ..ops.table import Op
from .domain import Domain, Path
from .plan import Operand


class Access:
    """One access of a kernel to a buffer: element strides over the domain's axes.

    Slot -1 is no memory: a linear index. `computed`: True if it also depends on indices that are
    data.
    `most`: how many elements there are, if a join's part is smaller than the domain. `begins`: True
    if the buffer begins at the offset; otherwise the offset is added to each index.
    """

    __slots__ = ("begins", "computed", "dtype", "most", "offset", "slot", "strides")

    def __init__(
        self,
        slot: int,
        dtype: DType,
        strides: Shape,
        offset: int,
        computed: bool = False,
        most: int = LIMIT,
    ) -> None:
        self.slot, self.dtype, self.strides, self.most = slot, dtype, strides, most
        self.offset, self.computed = offset, computed
        # A part of a join may be viewed from positions before or after its memory.
        self.begins = slot >= 0 and offset >= 0 and most == LIMIT

    @property
    def start(self) -> int:
        """The element at which the buffer begins."""
        return self.offset if self.begins else 0


class GatherAxes(NamedTuple):
    """The axes of a gather that indices address: (stride, extent) of each."""

    node: int
    axes: tuple[tuple[int, int], ...]
    asked: tuple[Asked, ...]  # the purpose of each index, if the kernel must check them


class Part(NamedTuple):
    """A range of positions along the axis of a join: `start` <= position < `stop`, or to the end.

    `at` gives the position of a point of the domain.
    """

    at: Access
    start: int
    stop: int | None


What: TypeAlias = Literal["load", "scalar", "map", "generate", "gather", "reduce", "join"]


class Term:
    """A value that is computed on the fly at a point of the domain; `dtype` is that of the result.

    `parts` of a join: the range of each operand; of a load: the ranges outside of which it gives 0.
    """

    __slots__ = ("access", "args", "casts", "dtype", "gathered", "op", "parts", "scalar", "what")

    def __init__(
        self,
        what: What,
        dtype: DType,
        op: Op | None = None,
        args: tuple[Term, ...] = (),
        casts: tuple[DType, ...] = (),
        access: Access | None = None,
        scalar: int = -1,
        gathered: GatherAxes | None = None,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.what, self.dtype, self.op, self.args, self.casts = what, dtype, op, args, casts
        self.access, self.scalar, self.gathered, self.parts = access, scalar, gathered, parts


class Output(NamedTuple):
    """A node that a kernel writes: its value and its access."""

    node: int
    term: Term
    access: Access


class Group:
    """A kernel that materialised nodes share, each with its term."""

    __slots__ = (
        "accesses",
        "by_division",
        "domain",
        "index",
        "memo",
        "outputs",
        "refusals",
        "size",
    )

    def __init__(self, index: int, domain: Domain) -> None:
        self.index, self.domain = index, domain
        self.outputs: list[Output] = []
        self.accesses: list[Access] = []
        self.memo: dict[tuple[int, Path], Term] = {}  # (node, path of its view) -> its term
        self.size = 0  # values computed, as NODE_LIMIT counts them
        self.by_division = False  # True if quotients and remainders give the indices along rows
        self.refusals = 0  # nodes that would have made it too large

    def row_is_coalescible(self) -> bool:
        """Return True if a single stride walks each access along the rows."""
        if len(self.domain.axes) < 2:
            return True
        return len(self.domain.coalesce_row([a.strides for a in self.accesses])[0]) <= 1


class SplitRows(NamedTuple):
    """A reduction of few, long rows in several launches."""

    group: Group  # has the reduction's term, and the accesses that it reads
    output: Output


class OwnKernels(NamedTuple):
    """A node whose op has kernels of its own, or a library call in their place."""

    node: int
    inputs: tuple[Operand, ...]
    output: Operand
    casts: tuple[DType, ...]
    is_call: bool
    copies: bool  # True if an op that updates its first operand starts from a copy of it


Kernel: TypeAlias = Group | SplitRows | OwnKernels
