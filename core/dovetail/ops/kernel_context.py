"""The interface with which a kernel op builds its kernels; the planner implements it.

The two protocols are for ops of kind "kernel", also those of layout plugins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..dtypes import DType
from ..ir.builder import KernelBuilder
from ..ir.language import Effect, Store, Value
from ..layout import Shape, StridedView

if TYPE_CHECKING:
    from .table import Op

Attrs: TypeAlias = Any  # the static arguments of an op: hashable, of each op's own type
LoopStep: TypeAlias = tuple[Sequence[Value], Sequence[Effect]]
"""The result of a step of `fold_loop`: the new carries, and the step's effects."""


class KernelSite(Protocol):
    """The site where one kernel is built: its operands by number, its result (-1), its grid.

    Sizes and strides are integers at run time, so that a kernel serves every shape.
    """

    @property
    def attrs(self) -> Attrs:
        """The op's attrs."""

    @property
    def casts(self) -> Sequence[DType]:
        """The dtype as which the elements of each operand are read; halves are then widened."""

    @property
    def builder(self) -> KernelBuilder:
        """The kernel: `builder.effect(loop)` adds a loop with effects."""

    def rank(self, operand: int) -> int:
        """Return the number of axes of an operand."""

    def size(self, operand: int, axis: int) -> Value:
        """Return the extent of an operand's axis, as a run-time integer."""

    def extent(self, operand: int, axis: int) -> int:
        """Return the extent of an axis as a number, to choose a plan.

        A kernel must not depend on it.
        """

    def number(self, name: str, value: int) -> Value:
        """Return `value` as a run-time integer of the kernel, for numbers other than sizes.

        - `name`: the name of the parameter.
        - `value`: the number.
        """

    def scalar(self, position: int, dtype: DType) -> Value:
        """Return the op's Python number at `position` among its scalars."""

    def axis(self, operand: int, axis: int) -> Value:
        """Add a grid axis as long as an operand's axis and return its index."""

    def points(self, name: str, count: int) -> Value:
        """Add a grid axis of `count` points and return its index.

        - `name`: the name of the parameter.
        - `count`: the number of points.
        """

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """Return the linear index of an operand's element."""

    def read(self, operand: int, *at: Value) -> Value:
        """Return an operand's element in its compute dtype."""

    def element(self, operand: int, index: Value) -> Value:
        """Return the element of an operand at a linear index, in its compute dtype."""

    def current(self, *at: Value) -> Value:
        """Return the result's element as it is now, for a kernel that reads what it has stored."""

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """Return the store of an operand's element, as an effect for a loop."""

    def stored(self, value: Value, *at: Value, when: Value | None = None) -> Store:
        """Return the store of a result's element, as an effect for a loop."""

    def store(self, value: Value, *at: Value) -> None:
        """Store a result's element at every point of the grid."""

    def check(self, fine: Value, given: Value, asked: tuple[str, int, int]) -> None:
        """Add a check that raises OutOfRangeError for `given` after the kernel, unless `fine`.

        - `fine`: a Value of bool: True if the index is allowed.
        - `given`: the index, for the error.
        - `asked`: the op's public name, the axis and its size.
        """


class Launches(Protocol):
    """The launches of an op with several kernels, in order.

    They are over its operands, its result and temporaries, each named by its number.
    """

    @property
    def op(self) -> Op:
        """The op."""

    @property
    def attrs(self) -> Attrs:
        """The op's attrs."""

    @property
    def concurrency(self) -> int:
        """The number of points that the device computes at the same time."""

    @property
    def near(self) -> int:
        """Bytes that a point may write and soon read again at little cost."""

    @property
    def result(self) -> int:
        """The number of the result: the number of operands."""

    def shape(self, operand: int) -> Shape:
        """Return an operand's extents, to choose a plan. A kernel must not depend on them."""

    def repeats(self, operand: int, axis: int) -> bool:
        """Return True if an operand is the same all along an axis."""

    def has_rows(self, operand: int) -> bool:
        """Return True if elements along an operand's last axis are neighbours and need no cast."""

    def dtype(self, operand: int) -> DType:
        """Return the dtype as which an operand is read; halves are then widened.

        - `operand`: the number of the operand.
        """

    def block(self, rows: Shape, n: int, least: int) -> int:
        """Return the number of elements, at least `least`, of the blocks of rows of n elements.

        - `rows`: the number of rows.
        - `n`: the elements of a row.
        - `least`: the least number of elements of a block.
        """

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """Allocate memory that lives until the last launch that names it, and return its number."""

    def pieces(self, operand: int, axis: int, start: int, size: int, count: int) -> int:
        """Return the number of a view: `count` pieces of `size` elements along an axis.

        They begin at `start`; their number is a new axis, the first one.

        - `start`: the first element of the first piece.
        - `size`: the elements of a piece.
        - `count`: the number of pieces.
        """

    @property
    def calls_vendor(self) -> bool:
        """Return True if a vendor's routine computes the op, with sums in an order of its own."""

    @property
    def has_routine(self) -> bool:
        """Return True if a routine of the device computes the op with the bits of its kernels."""

    def view(self, operand: int) -> StridedView:
        """Return an operand's extents and strides in memory, to choose a plan."""

    def add_view(self, operand: int, change: Callable[[StridedView], StridedView]) -> int:
        """Add an operand that views another one's memory; return its number.

        - `change`: returns the new view for the old one.
        """

    def call(self, operands: Sequence[int]) -> None:
        """Add a call of the device's routine for the op, which must exist.

        - `operands`: the numbers of the operands; the last one is the result.
        """

    def reshape(self, operand: int, shape: Shape) -> int:
        """Return the number of a view in a shape with more or fewer axes of size 1."""

    def rows(self, operand: int, start: int, count: int) -> int:
        """Return the number of a view: `count` elements of the first axis, from `start` on.

        - `start`: the first element.
        - `count`: the number of elements.
        """

    def occupies_part(self, shape: Shape, n: int) -> bool:
        """Return True if sums of `n` terms, in this shape, are too few to occupy the device."""

    def launch_or_call(
        self, name: str, build: Callable[[KernelSite], None], *operands: int
    ) -> None:
        """Add a call of the device's routine for the op, if it has one, else a launch.

        - `name`: the name of the kernel.
        - `build`: builds the kernel at a `KernelSite`.
        - `operands`: the numbers of the operands; the last one is the result.
        """

    def launch(
        self,
        name: str,
        build: Callable[[KernelSite], None],
        *operands: int,
        changes: Sequence[int] = (),
        why: str = "",
    ) -> None:
        """Add a launch of the kernel that `build` builds.

        Operand k of its site is `operands[k]`, the last one its result; `changes` are those, by k,
        that it reads and writes.

        - `name`: the name of the kernel.
        - `build`: builds the kernel at a `KernelSite`.
        - `operands`: the numbers of the operands; the last one is the result.
        - `changes`: positions in `operands` that the kernel reads and writes.
        - `why`: the reason of the launch, for `dt.explain`.
        """
