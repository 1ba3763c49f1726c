"""What a kernel op is given to build its kernels with: the planner has these two for it.

They say what an op of kind "kernel" may ask, also one that a layout plugin brings.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..dtypes import DType
from ..layout import Shape
from ..loops.builder import KernelBuilder
from ..loops.language import Effect, Store, Value

if TYPE_CHECKING:
    from .table import Op

Attrs: TypeAlias = Any  # what is static about a use of an op: hashable, and each op's own
# What a step of `fold_loop` gives: the values that it carries on, and its effects.
LoopStep: TypeAlias = tuple[Sequence[Value], Sequence[Effect]]


class KernelSite(Protocol):
    """Where one kernel is built: its operands by number, its result (-1), its grid.

    Sizes and strides are integers at run time, so that a kernel serves every shape.
    """

    @property
    def attrs(self) -> Attrs:
        """The op's."""

    @property
    def casts(self) -> Sequence[DType]:
        """What the elements of each operand are read as, but for reduced precision."""

    @property
    def builder(self) -> KernelBuilder:
        """The kernel: `builder.effect(loop)` adds a loop with effects."""

    def rank(self, operand: int) -> int:
        """The number of axes of an operand."""

    def size(self, operand: int, axis: int) -> Value:
        """The extent of an operand's axis, as a run-time integer."""

    def extent(self, operand: int, axis: int) -> int:
        """The extent of an axis as a number: only for choosing a plan, never for a kernel."""

    def number(self, name: str, value: int) -> Value:
        """Another run-time integer."""

    def scalar(self, position: int, dtype: DType) -> Value:
        """The op's Python number at `position` among its scalars."""

    def axis(self, operand: int, axis: int) -> Value:
        """A new grid axis as long as an operand's axis; its index."""

    def points(self, name: str, count: int) -> Value:
        """A new grid axis of `count` points; its index."""

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """The linear index of an operand's element."""

    def read(self, operand: int, *at: Value) -> Value:
        """An operand's element in its compute dtype."""

    def element(self, operand: int, index: Value) -> Value:
        """The same of the element at a linear index."""

    def current(self, *at: Value) -> Value:
        """The result's element as it is now, for a kernel that reads what it has stored."""

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of an operand's element, as an effect for a loop."""

    def stored(self, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of a result's element, as an effect for a loop."""

    def store(self, value: Value, *at: Value) -> None:
        """Stores a result's element at every point of the grid."""

    def check(self, fine: Value, given: Value, asked: tuple[str, int, int]) -> None:
        """Where not `fine`, the index `given` is an IndexOutOfRange when the kernel has run.

        `asked`: the op's public name, the axis and its size.
        """


class Launches(Protocol):
    """Where an op of several kernels puts them, one after the other.

    They are over its operands, its result and temporaries, each named by its number.
    """

    @property
    def op(self) -> Op:
        """The op."""

    @property
    def attrs(self) -> Attrs:
        """The op's."""

    @property
    def concurrency(self) -> int:
        """How many points the device computes at the same time."""

    @property
    def near(self) -> int:
        """Bytes that a point may write and soon read again at little cost."""

    @property
    def result(self) -> int:
        """The number of the result: as many as there are operands."""

    def shape(self, operand: int) -> Shape:
        """An operand's extents: only for choosing a plan, never for a kernel."""

    def repeats(self, operand: int, axis: int) -> bool:
        """Whether an operand is the same all along an axis."""

    def has_rows(self, operand: int) -> bool:
        """Whether an operand's elements are neighbours along its last axis, as they are read."""

    def dtype(self, operand: int) -> DType:
        """What an operand's elements are read as, but for reduced precision."""

    def block(self, rows: Shape, n: int, least: int) -> int:
        """How many elements of a row make a block, where each of `rows` of n is cut into blocks."""

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """New memory that lives until the last launch that names it; its number."""

    def launch(
        self, name: str, build: Callable[[KernelSite], None], *operands: int,
        changes: Sequence[int] = (), why: str = "",
    ) -> None:  # fmt: skip
        """Adds a kernel.

        Operand k of its site is `operands[k]`, the last one its result; `changes` are those, by k,
        that it reads and writes.
        """
