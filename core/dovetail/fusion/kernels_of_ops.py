"""Where ops that have kernels of their own build them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import layout as lay
from ..backend.faults import Asked
from ..dtypes import DType, int64
from ..graph.expr import Expr
from ..kernel.language import Buffer, Store, Value, const, load
from ..layout import Shape, StridedView
from ..ops.table import convert
from .cost import BLOCKS_BUSY
from .emit import Emitter, _widen
from .plan import Step
from .terms import Term

if TYPE_CHECKING:
    from .placing import Planner


class Site:
    """Where a `rows` op builds its kernel: its operands, its result, and their run-time sizes and
    strides.
    """

    def __init__(
        self, name: str, inputs: Any, output: Any, casts: Any, attrs: Any, scalar: int,
        node: int, changes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.attrs, self.casts, self._node = attrs, casts, node
        self._emitter = Emitter(name)
        self.builder = self._emitter.builder
        self._operands = [*inputs, output]
        self._scalar = scalar
        # what the kernel reads and writes is "rw"
        self._access = ["r"] * len(inputs) + ["w"]
        for k in changes:
            self._access[k] = "rw"
        self._ints: dict[Any, Value] = {}
        self._grid: list[int] = []

    def size(self, operand: int, axis: int) -> Value:
        """The extent of an operand's axis (operand -1 is the result), as a run-time integer."""
        return self._int(("n", operand, axis), self._operands[operand][1].shape[axis])

    def rank(self, operand: int) -> int:
        """The number of axes of an operand."""
        return len(self._operands[operand][1].shape)

    def extent(self, operand: int, axis: int) -> int:
        """The extent of an axis as a number: only for choosing a plan, never for a kernel."""
        return int(self._operands[operand][1].shape[axis])

    def number(self, name: str, value: int) -> Value:
        """Another run-time integer."""
        return self._int((name,), value)

    def scalar(self, position: int, dtype: DType) -> Value:
        """The op's Python number at `position` among its scalars."""
        return self._emitter.scalar(Term("scalar", dtype, scalar=self._scalar + position))

    def points(self, name: str, count: int) -> Value:
        """A new grid axis of `count` points; its index."""
        self._grid.append(count)
        return self.builder.axis(self.number(name, count))

    def axis(self, operand: int, axis: int) -> Value:
        """A new grid axis as long as an operand's axis; its index."""
        extent = self.size(operand, axis)
        self._grid.append(self.extent(operand, axis))
        return self.builder.axis(extent)

    def _int(self, key: Any, value: int) -> Value:
        if key not in self._ints:
            self._ints[key] = self._emitter.integer(key[0], value)
        return self._ints[key]

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """The linear index of an operand's element."""
        lay_ = self._operands[operand][1]
        total = const(0, int64)
        for d, i in enumerate(at):
            if lay_.shape[d] != 1 and lay_.strides[d] != 0:
                s = lay_.strides[d]
                total = total + i * (1 if s == 1 else self._int(("s", operand, d), s))
        return total

    def read(self, operand: int, *at: Value) -> Value:
        """An operand's element in its compute dtype (halves as float32)."""
        found = load(self._buffer(operand), self.index(operand, at))
        return _widen(convert(found, self.casts[operand]))

    def current(self, *at: Value) -> Value:
        """The result's element as it is now, for a kernel that reads what it has stored."""
        return _widen(load(self._buffer(-1), self.index(-1, at)))

    def _buffer(self, operand: int) -> Buffer:
        slot, lay_, dtype = self._operands[operand]
        return self._emitter.buffer(slot, dtype, lay_.offset, self._access[operand])

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of an operand's element, as an effect for a loop."""
        stored = convert(value, self._operands[operand][2])
        return Store(self._buffer(operand), self.index(operand, at), stored, when)

    def stored(self, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of a result's element, as an effect for a loop."""
        return self.put(-1, value, *at, when=when)

    def check(self, fine: Value, given: Value, asked: tuple[str, int, int]) -> None:
        """Where not `fine`, the index `given` is an IndexOutOfRange when the kernel has run.

        `asked`: the op's public name, the axis and its size.
        """
        self._emitter.check(self._node, 0, fine, given, Asked(*asked))

    def copy(self) -> None:
        """Builds the kernel that stores the first operand as the result."""
        at = [self.axis(-1, d) for d in range(self.rank(-1))]
        self.store(self.read(0, *at), *at)

    def store(self, value: Value, *at: Value) -> None:
        """Stores a result's element at every point of the grid."""
        self.builder.effect(self.stored(value, *at))

    def step(self, planner: Planner, fresh: Any, why: str) -> Step:
        """The finished launch."""
        if not self._grid:
            self.builder.axis(const(1, int64))
        self._emitter.nbytes = sum(math.prod(x[1].shape) * x[2].itemsize for x in self._operands)
        return self._emitter.step(tuple(self._grid), fresh, why, self._emitter.checks(planner))


class Launches:
    """Where a `rows` op puts its kernels: one after the other, over its operands (the result is the
    last one) and temporaries, each named by its number.
    """

    def __init__(
        self, planner: Planner, node: int, operands: Sequence[Any], casts: Sequence[DType],
        fresh: Sequence[tuple[int, int]],
    ) -> None:  # fmt: skip
        e = planner.nodes[node]
        assert e.op is not None
        self.op, self.attrs, self.concurrency = e.op, e.attrs, planner.concurrency
        self.result = len(operands) - 1
        self.steps: list[Step] = []
        self._planner, self._node = planner, node
        self._operands: list[tuple[int, StridedView, DType]] = list(operands)
        self._casts = [c for a, c in zip(e.args, casts, strict=True) if type(a) is Expr]
        self._fresh = {self.result: fresh}  # what is allocated when it is first named

    def shape(self, operand: int) -> Shape:
        """An operand's extents: only for choosing a plan, never for a kernel."""
        return self._operands[operand][1].shape

    def repeats(self, operand: int, axis: int) -> bool:
        """Whether an operand is the same all along an axis."""
        return self._operands[operand][1].strides[axis] == 0

    def dtype(self, operand: int) -> DType:
        """What an operand's elements are read as, but for halves; what those of others are."""
        return self._casts[operand] if operand < self.result else self._operands[operand][2]

    def block(self, rows: Shape, n: int, least: int) -> int:
        """How many elements of a row make a block, where each of `rows` of n is cut into blocks.

        A few for each unit of the device's concurrency, late ones filling the gaps; and no more
        blocks than one of them has elements, since what is summed for each is summed over all.
        """
        most = max(1, BLOCKS_BUSY * self.concurrency // max(1, math.prod(rows)))
        return max(least, -(-n // most), math.isqrt(n))

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """New memory that lives until the last launch that names it; its number."""
        slot, self._planner.slots = self._planner.slots, self._planner.slots + 1
        self._operands.append((slot, lay.contiguous(shape), dtype))
        number = len(self._operands) - 1
        self._fresh[number] = ((slot, math.prod(shape) * dtype.itemsize),)
        return number

    def launch(
        self, name: str, build: Callable[[Site], None], *operands: int,
        changes: Sequence[int] = (), why: str = "",
    ) -> None:  # fmt: skip
        """Adds a kernel. Operand k of its site is `operands[k]`, the last one its result;
        `changes` are those, by k, that it reads and writes.
        """
        *inputs, output = (self._operands[k] for k in operands)
        casts = [self.dtype(k) for k in operands[:-1]]
        scalar = self._planner.scalar_at[self._node]
        site = Site(name, inputs, output, casts, self.attrs, scalar, self._node, changes)
        build(site)
        fresh = tuple(f for k in operands for f in self._fresh.pop(k, ()))
        why = why or self._planner.why[self._node]
        self.steps.append(site.step(self._planner, fresh, why))

    def copy(self, why: str) -> None:
        """Adds the kernel that stores the first operand as the result."""
        self.launch("copy", Site.copy, 0, self.result, why=why)


def _one_launch(launches: Launches) -> None:
    """The kernel of an op that has only one."""
    op, operands = launches.op, range(launches.result + 1)
    launches.launch(op.name, op.build, *operands, changes=(-1,) if op.updates else ())
