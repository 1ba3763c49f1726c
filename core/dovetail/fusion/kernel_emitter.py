"""An emitter of kernels: parameters, accesses as indices, terms as values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeAlias

from ..backend.faults import Asked
from ..dtypes import DType, int64
from ..ir.builder import KernelBuilder
from ..ir.language import Buffer, Store, Value, cast, const, load, quo, reduce_loop, rem, where
from ..layout import LIMIT, Shape
from ..ops.arithmetic import convert
from .decisions import Decisions
from .groups import Access, Output, Part, Term
from .lower_concat import common_memory
from .plan import Step
from .reasons import Reason

Point: TypeAlias = tuple[Value, ...]  # the grid's indices, then those along the row


class Emitter:
    """A builder of one kernel.

    It has parameters with their run-time values, accesses as indices, terms as Values.
    """

    def __init__(self, name: str) -> None:
        self.builder = KernelBuilder(name)
        self.buffers: list[tuple[int, int]] = []
        self.ints: list[int] = []
        self.scalars: list[int] = []
        self._buffer: dict[tuple[int, int, str, DType], Buffer] = {}
        self._scalar: dict[tuple[int, DType], Value] = {}
        self._values: dict[tuple[int, tuple[int, ...]], Value] = {}
        self._reduced: dict[int, tuple[Value, ...]] = {}
        self._outer = LIMIT  # the number of a point's indices that are the grid's
        self._below: dict[tuple[Shape, int, int, tuple[int, ...]], Value] = {}
        self._alive: list[tuple[Term, Point]] = []  # keeps the ids in `_values` from being reused
        # (node, number of the index) -> condition that it is bad, the index, its purpose
        self.failures: dict[tuple[int, int], tuple[Value, Value, Asked]] = {}

    def integer(self, letter: str, value: int) -> Value:
        """Add a run-time integer parameter and return it."""
        self.ints.append(value)
        return self.builder.int(f"{letter}{len(self.ints) - 1}")

    def buffer(self, slot: int, dtype: DType, offset: int, access: str) -> Buffer:
        """Return the buffer parameter for a slot at a static offset (in elements)."""
        key = (slot, offset, access, dtype)
        if key not in self._buffer:
            letter = "out" if access == "w" else "in"
            self.buffers.append((slot, offset * dtype.itemsize))
            self._buffer[key] = self.builder.buffer(
                f"{letter}{len(self.buffers) - 1}", dtype, access
            )
        return self._buffer[key]

    def scalar(self, term: Term) -> Value:
        """Return a run-time scalar parameter: real; halves are rounded from float32."""
        key = (term.scalar, term.dtype)
        if key not in self._scalar:
            self.scalars.append(term.scalar)
            wide = term.dtype.compute.part
            v = self.builder.scalar(f"c{len(self.scalars) - 1}", wide)
            self._scalar[key] = convert(v, term.dtype)
        return self._scalar[key]

    def declare_grid(self, extents: Shape) -> list[Value]:
        """Add the grid's axes, at least one, and return their indices."""
        if not extents:
            return [self.builder.axis(const(1, int64))]
        params = [self.integer("n", n) for n in extents]
        return [self.builder.axis(p) for p in params]

    def declare_strides(self, accesses: Sequence[Access], strides: Sequence[Shape]) -> None:
        """Add stride parameters for every access.

        Strides 0 and 1 are static, all others are run-time integers.
        """
        self._strides = {
            id(a): [None if s == 0 else 1 if s == 1 else self.integer("s", s) for s in ss]
            for a, ss in zip(accesses, strides, strict=True)
        }
        self._offsets = {
            id(a): self.integer("o", a.offset) for a in accesses if a.offset and not a.begins
        }

    def index(self, access: Access, where_: Sequence[Value]) -> Value:
        """Return the linear index of an access at a point."""
        total = self._offsets.get(id(access), const(0, int64))
        for i, s in zip(where_, self._strides[id(access)], strict=False):
            if s is not None:
                total = total + i * s
        return total

    def value(self, term: Term, point: Point) -> Value:
        """Return the value of a term at a point.

        A point is the grid's indices, then those along the row, if inside a row loop.
        """
        key = (id(term), tuple(map(id, point)))
        if key not in self._values:
            self._alive.append((term, point))
            self._values[key] = self._RULES[term.what](self, term, point)
        return self._values[key]

    def _load(self, term: Term, point: Point) -> Value:
        a, there = term.access, None
        assert a is not None
        for part in term.parts:
            inside = self._inside(part, point)
            there = inside if there is None else there & inside
        return load(self.buffer(a.slot, a.dtype, a.start, "r"), self.index(a, point), there)

    def _inside(self, part: Part, point: Point) -> Value:
        if part.stop is None:  # the part extends to the end of the axis
            return ~self._is_below(part.at, part.start, point)
        below = self._is_below(part.at, part.stop, point)
        return ~self._is_below(part.at, part.start, point) & below if part.start else below

    def _is_below(self, at: Access, stop: int, point: Point) -> Value:
        """Return the condition that a position is below `stop`; equal conditions are one value."""
        key = (at.strides, at.offset, stop, tuple(map(id, point)))
        if key not in self._below:
            self._below[key] = self.index(at, point) < self.integer("e", stop)
        return self._below[key]

    def _join(self, term: Term, point: Point) -> Value:
        """Return an element of a join: one load if the parts share memory, else a choice."""
        along_row = len(point) > self._outer  # in rows, lanes read both sides of a part's boundary
        memory = None if along_row else common_memory(term)
        if memory is not None:
            slot, offset, dtype = memory
            return load(self.buffer(slot, dtype, offset, "r"), self._index_of_join(term, point))
        *others, result = (widen(self.value(t, point)) for t in term.args)
        for v, part in zip(reversed(others), reversed(term.parts[:-1]), strict=True):
            assert part.stop is not None
            result = where(self._is_below(part.at, part.stop, point), v, result)
        return cast(result, term.dtype)

    def _index_of_join(self, term: Term, point: Point) -> Value:
        """Return the index of a join's element in the memory that its parts share."""
        if term.access is not None:
            return self.index(term.access, point)
        *others, index = (self._index_of_join(t, point) for t in term.args)
        for i, part in zip(reversed(others), reversed(term.parts[:-1]), strict=True):
            assert part.stop is not None
            index = where(self._is_below(part.at, part.stop, point), i, index)
        return index

    def _operand(self, term: Term, to: DType, point: Point) -> Value:
        if term.what == "scalar":
            return self.scalar(Term("scalar", to, scalar=term.scalar))
        return convert(self.value(term, point), to)

    def _map(self, term: Term, point: Point) -> Value:
        assert term.op is not None
        operands = [self._operand(t, d, point) for t, d in zip(term.args, term.casts, strict=True)]
        if term.op.widens:
            operands = [widen(v) for v in operands]
        return convert(term.op.expression(*operands), term.dtype)

    def _generate(self, term: Term, point: Point) -> Value:
        assert term.op is not None and term.access is not None
        scalars = [
            widen(self._operand(t, d, point)) for t, d in zip(term.args, term.casts, strict=True)
        ]
        return convert(term.op.expression(self.index(term.access, point), *scalars), term.dtype)

    def _reduce(self, term: Term, point: Point) -> Value:
        op = term.op
        assert op is not None
        if id(term) not in self._reduced:
            outer = point[: self._outer]
            self._reduced[id(term)] = reduce_loop(
                op.combine,
                0,
                self.row_length,
                lambda k: self.value_to_combine(term, (*outer, *self.row_point(k)), k),
            )
        return self.finish_reduction(term, self._reduced[id(term)])

    def value_to_combine(self, term: Term, point: Point, k: Value) -> Sequence[Value]:
        """Return what a reduction combines at a point."""
        assert term.op is not None
        return term.op.before(self._operand(term.args[0], term.casts[0], point), k)

    def finish_reduction(self, term: Term, results: Sequence[Value]) -> Value:
        """Return the result of a reduction, from its combined values."""
        assert term.op is not None
        return convert(term.op.after(results, self.row_length), term.dtype)

    def declare_row_length(self, length: int) -> None:
        """Declare a row of which only the length is needed."""
        self.row_length = self.integer("m", length)

    def declare_row(self, outer: int, extents: Shape) -> None:
        """Declare the row by its extents after coalescing (usually one)."""
        self._outer = outer
        sizes = [self.integer("m", n) for n in extents]
        length = sizes[0] if sizes else const(1, int64)
        for s in sizes[1:]:
            length = length * s
        self.row_length, self._row_sizes = length, sizes

    def row_point(self, k: Value) -> tuple[Value, ...]:
        """Return the indices along the row's axes at position `k`."""
        out: list[Value] = []
        for size in reversed(self._row_sizes[1:]):
            out.append(rem(k, size))
            k = quo(k, size)
        return tuple(reversed([*out, k])) if self._row_sizes else ()

    def _gather(self, term: Term, point: Point) -> Value:
        a, op = term.access, term.op
        assert a is not None and op is not None
        total, fine = self.index(a, point), None
        assert term.gathered is not None
        node, axes, asked = term.gathered
        for k, (t, d) in enumerate(zip(term.args, term.casts, strict=True)):
            (stride, extent), raw_index = axes[k], convert(self.value(t, point), d)
            i = raw_index
            if asked:
                n = self.integer("n", extent)
                i = where(i < 0, i + n, i)
                inside = (const(0, int64) <= i) & (i < n)
                self.check(node, k, inside, raw_index, asked[k])
                fine = inside if fine is None else fine & inside
            total = total + i * (1 if stride == 1 else self.integer("s", stride))
        return load(self.buffer(a.slot, a.dtype, a.start, "r"), total, fine)

    _RULES: ClassVar[dict[str, Callable[[Emitter, Term, Point], Value]]] = {
        "load": _load,
        "map": _map,
        "generate": _generate,
        "reduce": _reduce,
        "gather": _gather,
        "join": _join,
    }

    def check(self, node: int, number: int, fine: Value, raw_index: Value, asked: Asked) -> None:
        """Record a check of a node's index: `raw_index` is out of range unless `fine`."""
        bad, earlier = ~fine, self.failures.get((node, number))
        if earlier is not None:  # the node is computed at several points
            bad, raw_index = earlier[0] | bad, where(earlier[0], earlier[1], raw_index)
        self.failures[node, number] = bad, raw_index, asked

    def checks(self, decisions: Decisions) -> tuple[tuple[int, int, Asked], ...]:
        """Add the stores that report indices out of range.

        Return (slot, node, purpose) of each.
        """
        cells: list[tuple[int, int, Asked]] = []
        for (node, _), (bad, raw_index, asked) in self.failures.items():
            slot = decisions.new_slot()
            cell = self.buffer(slot, int64, 0, "w")
            self.builder.store(cell, const(0, int64), raw_index, bad)
            cells.append((slot, node, asked))
        return tuple(cells)

    def output_buffer(self, access: Access) -> Buffer:
        """Return the buffer that an output access writes."""
        return self.buffer(access.slot, access.dtype, access.offset, "w")

    def stores(self, outputs: Sequence[Output], point: Point) -> list[Store]:
        """Return the stores at a point along the row."""
        return [
            Store(self.output_buffer(a), self.index(a, point), self.value(t, point))
            for _, t, a in outputs
        ]

    def step(
        self,
        grid: Shape,
        fresh: tuple[tuple[int, int], ...],
        why: Iterable[Reason],
        nbytes: int,
        checks: tuple[tuple[int, int, Asked], ...] = (),
    ) -> Step:
        """Return the finished launch, which reads and writes `nbytes`."""
        return Step(
            self.builder.build(),
            tuple(self.buffers),
            fresh,
            tuple(self.ints),
            tuple(self.scalars),
            grid or (1,),
            tuple(dict.fromkeys(why)),
            nbytes,
            checks,
        )


def widen(v: Value) -> Value:
    """Return a half as float32, and any other value as it is."""
    return cast(v, v.dtype.compute)


def kernel_name(terms: Sequence[Term]) -> str:
    """Return a kernel's name: the ops that it computes, briefly."""
    op_names: list[str] = []
    visited: set[int] = set()
    stack = list(terms)
    while stack and len(op_names) < 6:
        t = stack.pop()
        if id(t) in visited:
            continue
        visited.add(id(t))
        if t.op is not None and t.op.name not in (*op_names, "copy", "full", "astype"):
            op_names.append(t.op.name)
        stack += t.args
    return "_".join(reversed(op_names)) or "copy"


def count_bytes(accesses: Sequence[Access], extents: Shape) -> int:
    """Return the bytes read and written, each distinct element of an access once."""
    total = 0
    for a in accesses:
        if a.slot >= 0:
            distinct = math.prod(n for n, s in zip(extents, a.strides, strict=True) if s != 0)
            total += min(distinct, a.most) * a.dtype.itemsize
    return total
