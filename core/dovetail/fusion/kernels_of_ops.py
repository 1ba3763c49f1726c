"""Ops that have kernels of their own: the interface to build them, and their launches.

Rows of the op table, and ops of layout plugins, get an `OpSite` and `OpLaunches`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from .. import layout as lay
from ..backend.faults import IndexPurpose
from ..dtypes import DType, int64
from ..graph.expr import Attrs, Expr
from ..ir.language import Buffer, Store, Value, const, load
from ..layout import Shape
from ..ops.arithmetic import convert
from .cost import BLOCKS_PER_UNIT, COLUMNS_PER_ROW, keeps_device_idle
from .decisions import Decisions
from .groups import OwnKernels, Term
from .kernel_emitter import KernelEmitter, widen_half
from .plan import MemoryOperand, PlannedCall, PlannedLaunch
from .reasons import Reason, ReasonKind
from .terms import Prerequisite, Refusal, Rejection, memory_operand

NO_OPERAND = -2  # stands for an operand: an integer that is no operand's size or stride


class OpSite:
    """The site where an op builds one of its kernels.

    It knows the op's operands and result, and their sizes and strides at run time.
    """

    def __init__(
        self,
        name: str,
        operands: Sequence[MemoryOperand],
        casts: Sequence[DType],
        attrs: Attrs,
        scalar: int,
        node: int,
        changes: Sequence[int] = (),
    ) -> None:
        self.attrs, self.casts, self._node = attrs, casts, node
        self._emitter = KernelEmitter(name)
        self.builder = self._emitter.builder
        self._operands = operands
        self._first_scalar = scalar
        # operands that the kernel reads and writes are "rw"
        self._access = ["r"] * (len(operands) - 1) + ["w"]
        for k in changes:
            self._access[k] = "rw"
        self._ints: dict[tuple[str, int, int], Value] = {}
        self._grid: list[int] = []

    def size(self, operand: int, axis: int) -> Value:
        """Return the extent of an operand's axis as a run-time integer.

        Operand -1 is the result.
        """
        return self._find_or_add_integer(
            ("n", operand, axis), self._operands[operand].view.shape[axis]
        )

    def rank(self, operand: int) -> int:
        """Return the number of axes of an operand."""
        return len(self._operands[operand].view.shape)

    def extent(self, operand: int, axis: int) -> int:
        """Return an axis' extent, to choose a plan; the kernel must not depend on it."""
        return self._operands[operand].view.shape[axis]

    def number(self, name: str, value: int) -> Value:
        """Return an integer parameter that is no size or stride; equal names are one.

        A name keeps its first value.
        """
        return self._find_or_add_integer((name, NO_OPERAND, 0), value)

    def scalar(self, position: int, dtype: DType) -> Value:
        """Return the parameter of the op's Python number at `position` among its scalars."""
        return self._emitter.scalar(
            Term("scalar", dtype, scalar_index=self._first_scalar + position)
        )

    def points(self, name: str, count: int) -> Value:
        """Add a grid axis of `count` points and return its index."""
        self._grid.append(count)
        return self.builder.axis(self.number(name, count))

    def axis(self, operand: int, axis: int) -> Value:
        """Add a grid axis as long as an operand's axis and return its index."""
        extent = self.size(operand, axis)
        self._grid.append(self.extent(operand, axis))
        return self.builder.axis(extent)

    def _find_or_add_integer(self, key: tuple[str, int, int], value: int) -> Value:
        """Return the integer parameter of a key; add it with this value on first use."""
        if key not in self._ints:
            self._ints[key] = self._emitter.add_integer(key[0], value)
        return self._ints[key]

    def index(self, operand: int, at: Sequence[Value]) -> Value:
        """Return the linear index of an operand's element at the given axis indices."""
        view = self._operands[operand].view
        total = const(0, int64)
        for axis, i in enumerate(at):
            s = view.strides[axis]
            if view.shape[axis] != 1 and s != 0:
                total = total + i * (
                    1 if s == 1 else self._find_or_add_integer(("s", operand, axis), s)
                )
        return total

    def read(self, operand: int, *at: Value) -> Value:
        """Return an operand's element in its compute dtype (halves as float32)."""
        return self.element(operand, self.index(operand, at))

    def element(self, operand: int, index: Value) -> Value:
        """Return the element of an operand at a linear index, in its compute dtype."""
        value = load(self._find_or_add_buffer(operand), index)
        return widen_half(convert(value, self.casts[operand]))

    def current(self, *at: Value) -> Value:
        """Return the result's stored element, for a kernel that reads its own stores."""
        return widen_half(load(self._find_or_add_buffer(-1), self.index(-1, at)))

    def _find_or_add_buffer(self, operand: int) -> Buffer:
        """Return an operand's buffer parameter; -1 is the result."""
        slot, view, dtype, _ = self._operands[operand]
        return self._emitter.buffer(slot, dtype, view.offset, self._access[operand])

    def put(self, operand: int, value: Value, *at: Value, when: Value | None = None) -> Store:
        """Build the store of an element of an operand that the kernel writes; do not add it."""
        stored = convert(value, self._operands[operand].dtype)
        return Store(self._find_or_add_buffer(operand), self.index(operand, at), stored, when)

    def stored(self, value: Value, *at: Value, when: Value | None = None) -> Store:
        """Build the store of a result's element, as an effect for a loop; do not add it."""
        return self.put(-1, value, *at, when=when)

    def check(self, fine: Value, given: Value, asked: tuple[str, int, int]) -> None:
        """Record a check that raises OutOfRangeError for `given`, after the run, unless `fine`.

        `asked`: the op's public name, the axis and its size.
        """
        self._emitter.record_check(self._node, 0, fine, given, IndexPurpose(*asked))

    def copy(self) -> None:
        """Add the grid and the store of a kernel that copies the first operand to the result."""
        at = [self.axis(-1, d) for d in range(self.rank(-1))]
        self.store(self.read(0, *at), *at)

    def store(self, value: Value, *at: Value) -> None:
        """Add the store of a result's element at every point of the grid."""
        self.builder.effect(self.stored(value, *at))

    def build_step(
        self, decisions: Decisions, fresh: tuple[tuple[int, int], ...], why: Reason
    ) -> PlannedLaunch:
        """Build the finished launch with its index checks."""
        if not self._grid:
            self.builder.axis(const(1, int64))
        nbytes = sum(math.prod(x.view.shape) * x.dtype.itemsize for x in self._operands)
        checks = self._emitter.emit_checks(decisions)
        return self._emitter.build_step(tuple(self._grid), fresh, (why,), nbytes, checks)


class OpLaunches:
    """The launches of an op with kernels of its own.

    They are over its operands (the result is the last one) and temporaries, each named by its
    number.
    """

    def __init__(self, decisions: Decisions, kernels: OwnKernels) -> None:
        expr = decisions.graph.nodes[kernels.node]
        assert expr.op is not None
        self.op, self.attrs = expr.op, expr.attrs
        self.concurrency, self.near = decisions.graph.concurrency, decisions.graph.near
        self.result = len(kernels.inputs)
        self.steps: list[PlannedLaunch | PlannedCall] = []
        self._decisions, self._node = decisions, kernels.node
        self._operands: list[MemoryOperand] = [*kernels.inputs, kernels.output]
        casts = zip(expr.args, kernels.casts, strict=True)
        self._casts = [c for a, c in casts if type(a) is Expr]
        self._calls = kernels.is_library_call
        self.calls_vendor = kernels.is_library_call and not kernels.is_ordered
        self.has_routine = kernels.is_library_call and kernels.is_ordered
        self._viewed: dict[int, int] = {}  # view -> the operand that it views
        # operand -> the memory to allocate at the first launch that names it
        self._allocations: dict[int, tuple[tuple[int, int], ...]] = {
            self.result: decisions.allocations_of(kernels.node)
        }

    def shape(self, operand: int) -> Shape:
        """Return an operand's extents, to choose a plan. A kernel must not depend on them."""
        return self._operands[operand].view.shape

    def view(self, operand: int) -> lay.StridedView:
        """Return an operand's extents and strides in memory, to choose a plan."""
        return self._operands[operand].view

    def repeats(self, operand: int, axis: int) -> bool:
        """Return True if an operand has stride 0 along an axis."""
        return self._operands[operand].view.strides[axis] == 0

    def has_rows(self, operand: int) -> bool:
        """Return True if the last axis has stride 1 and its elements need no cast or widening."""
        _, view, dtype, _ = self._operands[operand]
        return view.strides[-1] == 1 and dtype is self.dtype(operand).compute

    def dtype(self, operand: int) -> DType:
        """Return the dtype as which an operand is read; halves are then widened.

        For the result and temporaries it is their own dtype.
        """
        base = self._viewed.get(operand, operand)
        return self._casts[base] if base < self.result else self._operands[base].dtype

    def block(self, rows: Shape, n: int, least: int) -> int:
        """Return the length of blocks, at least `least`, into which `rows` of `n` elements are cut.

        There are several blocks for each unit of the device's concurrency, so that late ones fill
        the gaps. There are no more blocks than a block has elements, since results of blocks are
        summed over all blocks.
        """
        blocks_max = max(1, BLOCKS_PER_UNIT * self.concurrency // max(1, math.prod(rows)))
        return max(least, -(-n // blocks_max), math.isqrt(n))

    def temporary(self, dtype: DType, shape: Shape) -> int:
        """Reserve memory that lives until the last launch that names it; return its number."""
        slot = self._decisions.new_slot()
        self._operands.append(MemoryOperand(slot, lay.row_major(shape), dtype))
        number = len(self._operands) - 1
        self._allocations[number] = ((slot, math.prod(shape) * dtype.itemsize),)
        return number

    def pieces(self, operand: int, axis: int, start: int, size: int, count: int) -> int:
        """Return the number of a view: `count` pieces of `size` elements along an axis.

        They begin at `start`; their number is a new axis, the first one.
        """

        def cut(view: lay.StridedView) -> lay.StridedView:
            """Return the pieces of a view."""
            shape, strides, offset = view
            step, d = strides[axis], axis % len(shape)
            extents = (count, *shape[:d], size, *shape[d + 1 :])
            return lay.StridedView(extents, (size * step, *strides), offset + start * step)

        return self.add_view(operand, cut)

    def reshape(self, operand: int, shape: Shape) -> int:
        """Return the number of a view in a shape with more or fewer axes of size 1."""

        def reshape(view: lay.StridedView) -> lay.StridedView:
            """Return a view in the new shape."""
            reshaped = lay.apply_move(view, ("reshape", shape))
            assert reshaped is not None
            return reshaped

        return self.add_view(operand, reshape)

    def rows(self, operand: int, start: int, count: int) -> int:
        """Return the number of a view: `count` elements of the first axis, from `start` on."""
        shape, strides, offset = self._operands[operand].view
        view = lay.StridedView((count, *shape[1:]), strides, offset + start * strides[0])
        return self.add_view(operand, lambda _: view)

    def add_view(self, operand: int, change: Callable[[lay.StridedView], lay.StridedView]) -> int:
        """Add an operand that views another one's memory; return its number.

        change: returns the new view for the old one, likewise for that of the operand's scale.
        """
        memory = self._operands[operand]
        scale = memory.scale and memory.scale._replace(view=change(memory.scale.view))
        self._operands.append(memory._replace(view=change(memory.view), scale=scale))
        self._viewed[len(self._operands) - 1] = self._viewed.get(operand, operand)
        return len(self._operands) - 1

    def occupies_part(self, shape: Shape, n: int) -> bool:
        """Return True if sums of `n` terms, in this shape, are too few to occupy the device."""
        count = math.prod(shape[:-1]) * -(-shape[-1] // COLUMNS_PER_ROW)
        return keeps_device_idle(count, n, self.concurrency)

    def launch_or_call(self, name: str, build: Callable[[OpSite], None], *operands: int) -> None:
        """Append a call of the device's routine for the op, if it has one, else a launch."""
        if self._calls:
            self.call(operands)
        else:
            self.launch(name, build, *operands)

    def call(self, operands: Sequence[int]) -> None:
        """Append a call of the device's routine for the op over these operands.

        Scales are further inputs; an operand without a scale stands for its own.
        """
        *inputs, output = [self._operands[k] for k in operands]
        if any(x.scale is not None for x in inputs):
            inputs += [x.scale or x for x in inputs]
            inputs = [x._replace(scale=None) for x in inputs]
        nbytes = math.prod(output.view.shape) * output.dtype.itemsize
        why = (self._decisions.materialised[self._node],)
        fresh = self._take_allocations(operands)
        dtype = self._casts[0]
        self.steps.append(PlannedCall(self.op, dtype, tuple(inputs), output, fresh, why, nbytes))

    def _take_allocations(self, operands: Sequence[int]) -> tuple[tuple[int, int], ...]:
        """Return the allocations of operands that no step before has named."""
        bases = [self._viewed.get(k, k) for k in operands]
        return tuple(f for k in bases for f in self._allocations.pop(k, ()))

    def launch(
        self,
        name: str,
        build: Callable[[OpSite], None],
        *operands: int,
        changes: Sequence[int] = (),
        why: str = "",
    ) -> None:
        """Build a kernel over these operands by `build`, and append its launch.

        Operand k of its site is `operands[k]`, the last one its result; `changes` are those, by k,
        that it reads and writes.
        """
        reason = Reason(ReasonKind.CUSTOM, why) if why else self._decisions.materialised[self._node]
        self._add_launch(name, build, operands, changes, reason)

    def copy(self) -> None:
        """Append the launch that copies the first operand to the result."""
        reason = Reason(ReasonKind.STARTS_FROM_COPY, self.op.name)
        self._add_launch("copy", OpSite.copy, (0, self.result), (), reason)

    def _add_launch(
        self,
        name: str,
        build: Callable[[OpSite], None],
        operands: Sequence[int],
        changes: Sequence[int],
        why: Reason,
    ) -> None:
        """Build a kernel at a new site, and append its launch with pending allocations."""
        casts = [self.dtype(k) for k in operands[:-1]]
        scalar = self._decisions.graph.first_scalar[self._node]
        memory = [self._operands[k] for k in operands]
        site = OpSite(name, memory, casts, self.attrs, scalar, self._node, changes)
        build(site)
        fresh = self._take_allocations(operands)
        self.steps.append(site.build_step(self._decisions, fresh, why))


def build_own_kernels(decisions: Decisions, i: int) -> OwnKernels | Refusal:
    """Describe the own kernels of a node with operands in memory, or return a refusal."""
    graph, expr = decisions.graph, decisions.graph.nodes[i]
    assert expr.op is not None
    inputs: list[MemoryOperand] = []
    producers = graph.find_producers(i, decisions.materialised)
    for a in expr.args:
        if type(a) is Expr:
            operand = memory_operand(decisions, graph.index[a], None, (), producers)
            if not isinstance(operand, MemoryOperand):
                return operand
            if operand.scale is not None and operand.scale.view.strides[len(inputs) - 1]:
                product = graph.follow_views(graph.index[a], decisions.materialised)
                return Prerequisite(product, Reason(ReasonKind.READ_BY_KERNEL))
            inputs.append(operand)
    copies = expr.op.updates and i not in decisions.updated_operand
    if graph.target is not None and graph.is_target(i):
        in_place = expr.op.updates and inputs[0].slot in graph.target.identical_slots
        read = inputs[1:] if in_place else inputs
        slots = {x.slot for operand in read for x in (operand, operand.scale) if x is not None}
        if not slots.isdisjoint(graph.target.overlapping_slots):
            return Rejection.TARGET_HAZARD
        copies = copies and not in_place
    casts = graph.casts_of(i)
    name = expr.op.name, casts[0]
    accepted = graph.ordered_calls.get(name, casts[:1])
    is_ordered = name in graph.ordered_calls
    is_call = (
        (is_ordered or name in graph.library_calls)
        and (is_ordered or expr.op.vendor(expr.attrs, expr.spec.shape, casts[0]))
        and all(x.dtype in accepted for x in inputs)
    )
    output = MemoryOperand(decisions.slot_of[i], decisions.memory_layout(i), expr.spec.dtype)
    return OwnKernels(i, tuple(inputs), output, casts, is_call, is_ordered, copies)


def build_op_launches(
    decisions: Decisions, kernels: OwnKernels
) -> list[PlannedLaunch | PlannedCall]:
    """Build the launches of a node with own kernels, or the library call in their place."""
    expr = decisions.graph.nodes[kernels.node]
    assert expr.op is not None
    launches = OpLaunches(decisions, kernels)
    operands = range(launches.result + 1)
    if kernels.is_library_call and not expr.op.calls:
        launches.call(operands)
        return launches.steps
    if kernels.copies:
        launches.copy()
    if expr.op.launches is not None:
        expr.op.launches(launches)
    else:
        changes = (-1,) if expr.op.updates else ()
        launches.launch(expr.op.name, expr.op.build, *operands, changes=changes)
    return launches.steps
