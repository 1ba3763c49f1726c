"""Ops that have kernels of their own: what they build them with, and their launches.

`OpSite` and `OpLaunches` are what rows of the op table, and those of layout plugins, are given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import layout as lay
from ..backend.faults import Asked
from ..dtypes import DType, int64
from ..graph.expr import Attrs, Expr
from ..layout import Shape
from ..loops.language import Buffer, Store, Value, const, load
from ..ops.arithmetic import convert
from .cost import BLOCKS_BUSY
from .decisions import Decisions
from .emitter import Emitter, widened
from .groups import OwnKernels, Term
from .plan import Call, Operand, Step
from .reasons import Kind, Reason
from .terms import No, Refusal, resident

NUMBER = -2  # in place of an operand: an integer that is no size or stride of one


class OpSite:
    """Where an op with kernels of its own builds one.

    It knows its operands, its result, and their sizes and strides at run time.
    """

    def __init__(
        self, name: str, operands: Sequence[Operand], casts: Sequence[DType],
        attrs: Attrs,
        scalar: int, node: int, changes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.attrs, self.casts, self._node = attrs, casts, node
        self._emitter = Emitter(name)
        self.builder = self._emitter.builder
        self._operands = operands
        self._scalar = scalar
        # what the kernel reads and writes is "rw"
        self._access = ["r"] * (len(operands) - 1) + ["w"]
        for k in changes:
            self._access[k] = "rw"
        self._ints: dict[tuple[str, int, int], Value] = {}
        self._grid: list[int] = []

    def size(self, operand: int, axis: int) -> Value:
        """The extent of an operand's axis (operand -1 is the result), as a run-time integer."""
        return self._int(("n", operand, axis), self._operands[operand].view.shape[axis])

    def rank(self, operand: int) -> int:
        """The number of axes of an operand."""
        return len(self._operands[operand].view.shape)

    def extent(self, operand: int, axis: int) -> int:
        """The extent of an axis as a number: only for choosing a plan, never for a kernel."""
        return self._operands[operand].view.shape[axis]

    def number(self, name: str, value: int) -> Value:
        """Another run-time integer."""
        return self._int((name, NUMBER, 0), value)

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

    def _int(self, key: tuple[str, int, int], value: int) -> Value:
        if key not in self._ints:
            self._ints[key] = self._emitter.integer(key[0], value)
        return self._ints[key]

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """The linear index of an operand's element."""
        view = self._operands[operand].view
        total = const(0, int64)
        for axis, i in enumerate(at):
            s = view.strides[axis]
            if view.shape[axis] != 1 and s != 0:
                total = total + i * (1 if s == 1 else self._int(("s", operand, axis), s))
        return total

    def read(self, operand: int, *at: Value) -> Value:
        """An operand's element in its compute dtype (halves as float32)."""
        return self.element(operand, self.index(operand, at))

    def element(self, operand: int, index: Value) -> Value:
        """The same of the element at a linear index."""
        found = load(self._buffer(operand), index)
        return widened(convert(found, self.casts[operand]))

    def current(self, *at: Value) -> Value:
        """The result's element as it is now, for a kernel that reads what it has stored."""
        return widened(load(self._buffer(-1), self.index(-1, at)))

    def _buffer(self, operand: int) -> Buffer:
        slot, view, dtype = self._operands[operand]
        return self._emitter.buffer(slot, dtype, view.offset, self._access[operand])

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """The store of an operand's element, as an effect for a loop."""
        stored = convert(value, self._operands[operand].dtype)
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

    def step(self, d: Decisions, fresh: tuple[tuple[int, int], ...], why: Reason) -> Step:
        """The finished launch."""
        if not self._grid:
            self.builder.axis(const(1, int64))
        nbytes = sum(math.prod(x.view.shape) * x.dtype.itemsize for x in self._operands)
        checks = self._emitter.checks(d)
        return self._emitter.step(tuple(self._grid), fresh, (why,), nbytes, checks)


class OpLaunches:
    """Where an op puts its kernels, one after the other.

    They are over its operands (the result is the last one) and temporaries, each named by its
    number.
    """

    def __init__(self, d: Decisions, kernels: OwnKernels) -> None:
        e = d.graph.nodes[kernels.node]
        assert e.op is not None
        self.op, self.attrs = e.op, e.attrs
        self.concurrency, self.near = d.graph.concurrency, d.graph.near
        self.result = len(kernels.inputs)
        self.steps: list[Step | Call] = []
        self._d, self._node = d, kernels.node
        self._operands: list[Operand] = [*kernels.inputs, kernels.output]
        casts = zip(e.args, kernels.casts, strict=True)
        self._casts = [c for a, c in casts if type(a) is Expr]
        # what is allocated when it is first named
        self._fresh: dict[int, tuple[tuple[int, int], ...]] = {self.result: d.fresh(kernels.node)}

    def shape(self, operand: int) -> Shape:
        """An operand's extents: only for choosing a plan, never for a kernel."""
        return self._operands[operand].view.shape

    def repeats(self, operand: int, axis: int) -> bool:
        """Whether an operand is the same all along an axis."""
        return self._operands[operand].view.strides[axis] == 0

    def has_rows(self, operand: int) -> bool:
        """Whether an operand's elements are neighbours along its last axis, as they are read."""
        _, view, dtype = self._operands[operand]
        return view.strides[-1] == 1 and dtype is self.dtype(operand).compute

    def dtype(self, operand: int) -> DType:
        """What an operand's elements are read as, but for halves; what those of others are."""
        return self._casts[operand] if operand < self.result else self._operands[operand].dtype

    def block(self, rows: Shape, n: int, least: int) -> int:
        """How many elements of a row make a block, where each of `rows` of n is cut into blocks.

        A few for each unit of the device's concurrency, late ones filling the gaps; and no more
        blocks than one of them has elements, since what is summed for each is summed over all.
        """
        most = max(1, BLOCKS_BUSY * self.concurrency // max(1, math.prod(rows)))
        return max(least, -(-n // most), math.isqrt(n))

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """New memory that lives until the last launch that names it; its number."""
        slot = self._d.new_slot()
        self._operands.append(Operand(slot, lay.contiguous(shape), dtype))
        number = len(self._operands) - 1
        self._fresh[number] = ((slot, math.prod(shape) * dtype.itemsize),)
        return number

    def launch(
        self, name: str, build: Callable[[OpSite], None], *operands: int,
        changes: Sequence[int] = (), why: str = "",
    ) -> None:  # fmt: skip
        """Adds a kernel.

        Operand k of its site is `operands[k]`, the last one its result; `changes` are those, by k,
        that it reads and writes.
        """
        reason = Reason(Kind.WORDS, why) if why else self._d.materialised[self._node]
        self._launch(name, build, operands, changes, reason)

    def copy(self) -> None:
        """Adds the kernel that stores the first operand as the result."""
        reason = Reason(Kind.STARTS_FROM_COPY, self.op.name)
        self._launch("copy", OpSite.copy, (0, self.result), (), reason)

    def _launch(
        self, name: str, build: Callable[[OpSite], None], operands: Sequence[int],
        changes: Sequence[int], why: Reason,
    ) -> None:  # fmt: skip
        casts = [self.dtype(k) for k in operands[:-1]]
        scalar = self._d.graph.scalar_at[self._node]
        placed = [self._operands[k] for k in operands]
        site = OpSite(name, placed, casts, self.attrs, scalar, self._node, changes)
        build(site)
        fresh = tuple(f for k in operands for f in self._fresh.pop(k, ()))
        self.steps.append(site.step(self._d, fresh, why))


def own_kernels(d: Decisions, i: int) -> OwnKernels | Refusal:
    """A node whose op has kernels of its own, with its operands in memory."""
    graph, e = d.graph, d.graph.nodes[i]
    assert e.op is not None
    inputs: list[Operand] = []
    for a in e.args:
        if type(a) is Expr:
            found = resident(d, graph.index[a], None)
            if not isinstance(found, Operand):
                return found
            inputs.append(found)
    copies = e.op.updates and i not in d.takes_over
    if graph.target is not None and graph.is_target(i):
        in_place = e.op.updates and inputs[0].slot in graph.target.same
        read = inputs[1:] if in_place else inputs
        if any(x.slot in graph.target.overlaps for x in read):
            return No.TARGET
        copies = copies and not in_place
    casts = graph.casts_of(i)
    known = (e.op.name, casts[0]) in graph.library_calls
    wanted = known and e.op.vendor(e.attrs, e.spec.shape, casts[0])
    is_call = wanted and all(x.dtype is c for x, c in zip(inputs, casts, strict=False))
    output = Operand(d.slot_of[i], d.base(i), e.spec.dtype)
    return OwnKernels(i, tuple(inputs), output, casts, is_call, copies)


def launches_of_op(d: Decisions, kernels: OwnKernels) -> list[Step | Call]:
    """The launches of such a node, or the library call in their place."""
    i, e = kernels.node, d.graph.nodes[kernels.node]
    assert e.op is not None
    if kernels.is_call:
        moved = e.spec.size * e.spec.dtype.itemsize
        why = (d.materialised[i],)
        return [Call(e.op, kernels.inputs, kernels.output, d.fresh(i), why, moved)]
    several = OpLaunches(d, kernels)
    if kernels.copies:
        several.copy()
    if e.op.launches is not None:
        e.op.launches(several)
    else:
        operands = range(several.result + 1)
        changes = (-1,) if e.op.updates else ()
        several.launch(e.op.name, e.op.build, *operands, changes=changes)
    return several.steps
