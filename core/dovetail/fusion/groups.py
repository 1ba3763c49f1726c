"""The kernels that are being decided: what each computes, as terms, and what it writes."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from ..backend.faults import Asked
from ..dtypes import DType
from ..layout import LIMIT, Shape
from ..ops.table import Op
from .domain import Domain, Path
from .plan import Operand


class Access:
    """One way in which a kernel touches a buffer: element strides over the domain's axes.

    Slot -1 is no memory: a linear index. `computed`: whether it also depends on indices that are
    data. `most`: how many elements there are to touch, of what is joined. `begins`: whether the
    buffer begins at the offset; else that is added to each index.
    """

    __slots__ = ("begins", "computed", "dtype", "most", "offset", "slot", "strides")

    def __init__(
        self, slot: int, dtype: DType, strides: Shape, offset: int, computed: bool = False,
        most: int = LIMIT,
    ) -> None:  # fmt: skip
        self.slot, self.dtype, self.strides, self.most = slot, dtype, strides, most
        self.offset, self.computed = offset, computed
        # What is joined may be seen from a place beyond its memory, in front of it or behind.
        self.begins = slot >= 0 and offset >= 0 and most == LIMIT

    @property
    def start(self) -> int:
        """The element at which the buffer begins."""
        return self.offset if self.begins else 0


class Gathered(NamedTuple):
    """What is read at computed places: (stride, extent) of each axis that an index is for."""

    node: int
    axes: tuple[tuple[int, int], ...]
    asked: tuple[Asked, ...]  # for what each index is read, if they are to be checked


class Part(NamedTuple):
    """Places along an axis that is joined: those from `start` on and below `stop`, or all others.

    `at` says which place a point of the domain is at.
    """

    at: Access
    start: int
    stop: int | None


What: TypeAlias = Literal["load", "scalar", "map", "generate", "gather", "reduce", "join"]


class Term:
    """A value computed on the fly at a point of the domain; `dtype`: what comes out.

    `parts` of a join: where each operand is; of a load: where there is something to be loaded.
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
        gathered: Gathered | None = None,
        parts: tuple[Part, ...] = (),
    ) -> None:
        self.what, self.dtype, self.op, self.args, self.casts = what, dtype, op, args, casts
        self.access, self.scalar, self.gathered, self.parts = access, scalar, gathered, parts


class Output(NamedTuple):
    """A node that a kernel writes: its value, and where it goes."""

    node: int
    term: Term
    access: Access


class Group:
    """A kernel: the materialised nodes that share it, each with its term."""

    __slots__ = (
        "accesses", "by_division", "domain", "index", "memo", "outputs", "refusals", "size",
    )  # fmt: skip

    def __init__(self, index: int, domain: Domain) -> None:
        self.index, self.domain = index, domain
        self.outputs: list[Output] = []
        self.accesses: list[Access] = []
        self.memo: dict[tuple[int, Path], Term] = {}  # (node, how it is seen) -> its term
        self.size = 0  # values computed, as NODE_LIMIT counts them
        self.by_division = False  # whether its rows are walked by division
        self.refusals = 0  # how many nodes would have made it too large

    def row_is_coalescible(self) -> bool:
        """Whether a single stride walks each access along the rows."""
        if len(self.domain.axes) < 2:
            return True
        return len(self.domain.coalesced_row([a.strides for a in self.accesses])[0]) <= 1


class SplitRows(NamedTuple):
    """A reduction of few, long rows, in several launches."""

    group: Group  # with its term, and what that reads
    output: Output


class OwnKernels(NamedTuple):
    """A node whose op has kernels of its own, or a library call in their place."""

    node: int
    inputs: tuple[Operand, ...]
    output: Operand
    casts: tuple[DType, ...]
    is_call: bool
    copies: bool  # whether an op that updates starts from a copy of what it updates


Kernel: TypeAlias = Group | SplitRows | OwnKernels
