"""Plans: launches in order, the materialised values with reasons, and the values that stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ..backend.faults import Asked
from ..dtypes import DType
from ..graph.expr import Spec
from ..ir.builder import Kernel
from ..layout import Shape, StridedView
from ..ops.table import Op
from .reasons import Reason


@dataclass(eq=False, slots=True, repr=False)
class Step:
    """One launch.

    `buffers`: (slot, byte offset). `fresh`: (slot, nbytes) to allocate. `scalars`: positions among
    the graph's Python numbers.
    """

    kernel: Kernel
    buffers: tuple[tuple[int, int], ...]
    fresh: tuple[tuple[int, int], ...]
    ints: tuple[int, ...]
    scalars: tuple[int, ...]
    grid: Shape
    why: tuple[Reason, ...]
    nbytes: int  # read and written, counting each access once
    checks: tuple[tuple[int, int, Asked], ...] = ()  # (slot of the error cell, node, purpose)
    drops: tuple[int, ...] = ()  # slots that nothing later needs


class Operand(NamedTuple):
    """A value in memory, as an op's own kernel or a library call sees it."""

    slot: int
    view: StridedView
    dtype: DType


class Call:
    """A library call in place of kernels: `routine(backend, inputs, output, stream)`."""

    __slots__ = ("drops", "fresh", "inputs", "nbytes", "op", "output", "why")

    def __init__(
        self,
        op: Op,
        inputs: tuple[Operand, ...],
        output: Operand,
        fresh: tuple[tuple[int, int], ...],
        why: tuple[Reason, ...],
        nbytes: int,
    ) -> None:
        self.op, self.inputs, self.output, self.fresh = op, inputs, output, fresh
        self.why, self.nbytes = why, nbytes
        self.drops: tuple[int, ...] = ()


class Materialised(NamedTuple):
    """A value that is written to memory, by its op's name; "leaf" if a storage waits for it."""

    op: str
    spec: Spec
    reason: Reason


@dataclass(eq=False, slots=True, repr=False)
class Plan:
    """A list of steps; `kept`: (position of the node, slot) for every node that stays.

    There are no steps if it `overlaps`.
    """

    steps: list[Step | Call]
    slots: int
    kept: tuple[tuple[int, int], ...]
    materialised: list[Materialised]
    overlaps: bool = False  # the target is read, and not element by element: use fresh memory


class Target(NamedTuple):
    """The existing memory to which the first root is written."""

    strides: Shape
    slot: int
    overlaps: frozenset[int]  # leaf slots that may have elements in common with it ...
    same: frozenset[int]  # ... and those among them with the very same layout
