"""What a plan is: launches in order, and what is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..backend.faults import Asked
from ..dtypes import DType
from ..kernel.builder import Kernel
from ..layout import Shape, StridedView
from ..ops.table import Op


@dataclass(eq=False, slots=True)
class Step:
    """One launch. `buffers`: (slot, byte offset); `fresh`: (slot, nbytes) to allocate; `scalars`:
    positions.
    """

    kernel: Kernel
    buffers: tuple[tuple[int, int], ...]
    fresh: tuple[tuple[int, int], ...]
    ints: tuple[int, ...]
    scalars: tuple[int, ...]
    grid: Shape
    why: str
    nbytes: int  # read and written, counting each access once
    checks: tuple[tuple[int, int, Asked], ...] = ()  # (slot of the error cell, node, for what)
    drops: tuple[int, ...] = ()  # slots that nothing later needs
    run: Any = None  # what `run` makes of the kernel, and how it is called:
    simple: bool = False  # no static offsets, no error cells
    all_scalars: bool = False  # `scalars` are all of them, in order
    pick: Any = None  # (handles and offsets of all slots) -> the arguments


@dataclass(eq=False, slots=True)
class Call:
    """A vendor routine in place of kernels: `routine(backend, inputs, output, stream)`; (slot,
    layout, dtype) each.
    """

    op: Op
    inputs: tuple[tuple[int, StridedView, DType], ...]
    output: tuple[int, StridedView, DType]
    fresh: tuple[tuple[int, int], ...]
    why: str
    nbytes: int
    drops: tuple[int, ...] = ()
    simple = False


@dataclass(eq=False, slots=True)
class Plan:
    """Steps in order; `stored`: (position of the node, slot) for every node that stays."""

    steps: list[Any]  # of Step and Call
    slots: int
    stored: tuple[tuple[int, int], ...]
    notes: list[str]
    none: list[Any]  # a None for each slot
    blank: list[Any]  # placeholders for the slots that are not there when it starts
    recalled: bool = False  # whether `recall` has been told


@dataclass(frozen=True, slots=True)
class Target:
    """Where the first root goes when it is to be written into existing memory."""

    strides: Shape
    slot: int
    overlaps: frozenset[int]  # leaf slots of the same storage ...
    same: frozenset[int]  # ... and those among them with the very same layout


class Overlap(Exception):
    """The target overlaps what is read, and not element by element: go through fresh memory."""
