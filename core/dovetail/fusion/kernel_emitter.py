"""An emitter of kernels: parameters, accesses as indices, terms as values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeAlias

from ..backend.faults import IndexPurpose
from ..dtypes import DType, int64
from ..ir.builder import KernelBuilder
from ..ir.language import Buffer, Store, Value, cast, const, load, quo, reduce_loop, rem, where
from ..layout import ELEMENTS_MAX, Shape
from ..ops.arithmetic import convert
from .decisions import Decisions
from .groups import Access, JoinRange, Output, Term
from .lower_concat import common_memory
from .plan import PlannedLaunch
from .reasons import Reason

Point: TypeAlias = tuple[Value, ...]  # the grid's indices, then those along the row


class KernelEmitter:
    """A builder of one kernel.

    It has parameters with their run-time values, accesses as indices, terms as Values.
    """

    def __init__(self, name: str) -> None:
        self.builder = KernelBuilder(name)
        self.buffers: list[tuple[int, int]] = []
        self.ints: list[int] = []
        self.scalars: list[int] = []
        self._buffers_by_key: dict[tuple[int, int, str, DType], Buffer] = {}
        self._scalars_by_key: dict[tuple[int, DType], Value] = {}
        self._values: dict[tuple[int, tuple[int, ...]], Value] = {}
        self._reduced: dict[int, tuple[Value, ...]] = {}
        self._grid_rank = ELEMENTS_MAX  # the number of a point's indices that are the grid's
        self._comparisons: dict[tuple[Shape, int, int, tuple[int, ...]], Value] = {}
        self._kept_alive: list[
            tuple[Term, Point]
        ] = []  # keeps the ids in `_values` from being reused
        # (node, number of the index) -> condition that it is bad, the index, its purpose
        self.index_checks: dict[tuple[int, int], tuple[Value, Value, IndexPurpose]] = {}

    def add_integer(self, letter: str, value: int) -> Value:
        """Add a run-time integer parameter and return it."""
        self.ints.append(value)
        return self.builder.int(f"{letter}{len(self.ints) - 1}")

    def buffer(self, slot: int, dtype: DType, offset: int, access: str) -> Buffer:
        """Return the buffer parameter of a slot at an offset in elements; add it on first use."""
        key = (slot, offset, access, dtype)
        if key not in self._buffers_by_key:
            letter = "out" if access == "w" else "in"
            self.buffers.append((slot, offset * dtype.itemsize))
            self._buffers_by_key[key] = self.builder.buffer(
                f"{letter}{len(self.buffers) - 1}", dtype, access
            )
        return self._buffers_by_key[key]

    def scalar(self, term: Term) -> Value:
        """Return a run-time scalar parameter, added on first use; a half is cast from float32."""
        key = (term.scalar_index, term.dtype)
        if key not in self._scalars_by_key:
            self.scalars.append(term.scalar_index)
            wide = term.dtype.compute.part
            v = self.builder.scalar(f"c{len(self.scalars) - 1}", wide)
            self._scalars_by_key[key] = convert(v, term.dtype)
        return self._scalars_by_key[key]

    def declare_grid(self, extents: Shape) -> list[Value]:
        """Add the grid's axes, at least one, and return their indices."""
        if not extents:
            return [self.builder.axis(const(1, int64))]
        params = [self.add_integer("n", n) for n in extents]
        return [self.builder.axis(p) for p in params]

    def declare_strides(self, accesses: Sequence[Access], strides: Sequence[Shape]) -> None:
        """Add stride parameters for every access.

        Strides 0 and 1 are static, all others are run-time integers.
        """
        self._strides = {
            id(a): [None if s == 0 else 1 if s == 1 else self.add_integer("s", s) for s in ss]
            for a, ss in zip(accesses, strides, strict=True)
        }
        self._offsets = {
            id(a): self.add_integer("o", a.offset)
            for a in accesses
            if a.offset and not a.starts_at_offset
        }

    def index(self, access: Access, point: Sequence[Value]) -> Value:
        """Return the linear index of an access at a point of the grid and row."""
        total = self._offsets.get(id(access), const(0, int64))
        for i, s in zip(point, self._strides[id(access)], strict=False):
            if s is not None:
                total = total + i * s
        return total

    def value(self, term: Term, point: Point) -> Value:
        """Return the value of a term at a point; build it on first use.

        A point is the grid's indices, then those along the row, if inside a row loop.
        """
        key = (id(term), tuple(map(id, point)))
        if key not in self._values:
            self._kept_alive.append((term, point))
            self._values[key] = self._RULES[term.kind](self, term, point)
        return self._values[key]

    def _emit_load(self, term: Term, point: Point) -> Value:
        """Build a load at a point, masked to the ranges of a padded view."""
        a, mask = term.access, None
        assert a is not None
        for part in term.ranges:
            inside = self._emit_is_inside(part, point)
            mask = inside if mask is None else mask & inside
        return load(self.buffer(a.slot, a.dtype, a.start, "r"), self.index(a, point), mask)

    def _emit_is_inside(self, part: JoinRange, point: Point) -> Value:
        """Build the condition that a position lies in a range."""
        if part.stop is None:  # the part extends to the end of the axis
            return ~self._emit_is_below(part.position, part.start, point)
        below = self._emit_is_below(part.position, part.stop, point)
        return (
            ~self._emit_is_below(part.position, part.start, point) & below if part.start else below
        )

    def _emit_is_below(self, position: Access, stop: int, point: Point) -> Value:
        """Return the condition that a position is below `stop`; equal conditions are one value."""
        key = (position.strides, position.offset, stop, tuple(map(id, point)))
        if key not in self._comparisons:
            self._comparisons[key] = self.index(position, point) < self.add_integer("e", stop)
        return self._comparisons[key]

    def _emit_join(self, term: Term, point: Point) -> Value:
        """Build an element of a join: one load if the parts share memory, else a choice."""
        # in rows, lanes read both sides of a part's boundary
        along_row = len(point) > self._grid_rank
        memory = None if along_row else common_memory(term)
        if memory is not None:
            slot, offset, dtype = memory
            return load(self.buffer(slot, dtype, offset, "r"), self._emit_join_index(term, point))
        *others, result = (widen_half(self.value(t, point)) for t in term.args)
        for v, part in zip(reversed(others), reversed(term.ranges[:-1]), strict=True):
            assert part.stop is not None
            result = where(self._emit_is_below(part.position, part.stop, point), v, result)
        return cast(result, term.dtype)

    def _emit_join_index(self, term: Term, point: Point) -> Value:
        """Return the index of a join's element in the memory that its parts share."""
        if term.access is not None:
            return self.index(term.access, point)
        *others, index = (self._emit_join_index(t, point) for t in term.args)
        for i, part in zip(reversed(others), reversed(term.ranges[:-1]), strict=True):
            assert part.stop is not None
            index = where(self._emit_is_below(part.position, part.stop, point), i, index)
        return index

    def _emit_operand(self, term: Term, dtype: DType, point: Point) -> Value:
        """Build an operand at a point in its cast dtype; a scalar is a parameter of it."""
        if term.kind == "scalar":
            return self.scalar(Term("scalar", dtype, scalar_index=term.scalar_index))
        return convert(self.value(term, point), dtype)

    def _emit_map(self, term: Term, point: Point) -> Value:
        """Build an elementwise op at a point."""
        assert term.op is not None
        operands = [
            self._emit_operand(t, d, point) for t, d in zip(term.args, term.casts, strict=True)
        ]
        if term.op.widens:
            operands = [widen_half(v) for v in operands]
        return convert(term.op.expression(*operands), term.dtype)

    def _emit_generate(self, term: Term, point: Point) -> Value:
        """Build the op of a linear index and scalars at a point."""
        assert term.op is not None and term.access is not None
        scalars = [
            widen_half(self._emit_operand(t, d, point))
            for t, d in zip(term.args, term.casts, strict=True)
        ]
        return convert(term.op.expression(self.index(term.access, point), *scalars), term.dtype)

    def _emit_reduce(self, term: Term, point: Point) -> Value:
        """Return the result of a reduction; build its row loop on first use."""
        op = term.op
        assert op is not None
        if id(term) not in self._reduced:
            outer = point[: self._grid_rank]
            self._reduced[id(term)] = reduce_loop(
                op.combine,
                0,
                self.row_length,
                lambda k: self.value_to_combine(term, (*outer, *self.row_point(k)), k),
            )
        return self.finish_reduction(term, self._reduced[id(term)])

    def value_to_combine(self, term: Term, point: Point, k: Value) -> Sequence[Value]:
        """Return the values that a reduction combines at position `k` of a row."""
        assert term.op is not None
        return term.op.before(self._emit_operand(term.args[0], term.casts[0], point), k)

    def finish_reduction(self, term: Term, results: Sequence[Value]) -> Value:
        """Return the result of a reduction, from its combined values."""
        assert term.op is not None
        return convert(term.op.after(results, self.row_length), term.dtype)

    def declare_row_length(self, length: int) -> None:
        """Add the row's length as a parameter, for kernels that need no row indices."""
        self.row_length = self.add_integer("m", length)

    def declare_row(self, outer: int, extents: Shape) -> None:
        """Add the row's coalesced extents as parameters; set the row length and the grid's rank.

        `outer`: the number of a point's indices that are the grid's.
        """
        self._grid_rank = outer
        sizes = [self.add_integer("m", n) for n in extents]
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

    def _emit_gather(self, term: Term, point: Point) -> Value:
        """Build a load at computed indices; with purposes, wrap, mask and check each of them."""
        a, op = term.access, term.op
        assert a is not None and op is not None
        total, in_range = self.index(a, point), None
        assert term.gather_axes is not None
        node, axes, purposes = term.gather_axes
        for k, (t, d) in enumerate(zip(term.args, term.casts, strict=True)):
            (stride, extent), raw_index = axes[k], convert(self.value(t, point), d)
            i = raw_index
            if purposes:
                n = self.add_integer("n", extent)
                i = where(i < 0, i + n, i)
                inside = (const(0, int64) <= i) & (i < n)
                self.record_check(node, k, inside, raw_index, purposes[k])
                in_range = inside if in_range is None else in_range & inside
            total = total + i * (1 if stride == 1 else self.add_integer("s", stride))
        return load(self.buffer(a.slot, a.dtype, a.start, "r"), total, in_range)

    _RULES: ClassVar[dict[str, Callable[[KernelEmitter, Term, Point], Value]]] = {
        "load": _emit_load,
        "map": _emit_map,
        "generate": _emit_generate,
        "reduce": _emit_reduce,
        "gather": _emit_gather,
        "join": _emit_join,
    }

    def record_check(
        self, node: int, number: int, in_range: Value, raw_index: Value, purpose: IndexPurpose
    ) -> None:
        """Record a check of a node's index: `raw_index` is out of range unless `in_range`.

        A check of the same index at another point is joined with it.
        """
        out_of_range, earlier = ~in_range, self.index_checks.get((node, number))
        if earlier is not None:  # the node is computed at several points
            out_of_range, raw_index = (
                earlier[0] | out_of_range,
                where(earlier[0], earlier[1], raw_index),
            )
        self.index_checks[node, number] = out_of_range, raw_index, purpose

    def emit_checks(self, decisions: Decisions) -> tuple[tuple[int, int, IndexPurpose], ...]:
        """Add the stores that report indices out of range; return (slot, node, purpose) of each."""
        cells: list[tuple[int, int, IndexPurpose]] = []
        for (node, _), (out_of_range, raw_index, purpose) in self.index_checks.items():
            slot = decisions.new_slot()
            cell = self.buffer(slot, int64, 0, "w")
            self.builder.store(cell, const(0, int64), raw_index, out_of_range)
            cells.append((slot, node, purpose))
        return tuple(cells)

    def output_buffer(self, access: Access) -> Buffer:
        """Return the buffer parameter that an output access writes; add it on first use."""
        return self.buffer(access.slot, access.dtype, access.offset, "w")

    def build_stores(self, outputs: Sequence[Output], point: Point) -> list[Store]:
        """Build the stores of all outputs at a point; the caller adds them to the kernel."""
        return [
            Store(self.output_buffer(a), self.index(a, point), self.value(t, point))
            for _, t, a in outputs
        ]

    def build_step(
        self,
        grid: Shape,
        fresh: tuple[tuple[int, int], ...],
        why: Iterable[Reason],
        nbytes: int,
        checks: tuple[tuple[int, int, IndexPurpose], ...] = (),
    ) -> PlannedLaunch:
        """Build the finished launch, which reads and writes `nbytes`."""
        return PlannedLaunch(
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


def widen_half(v: Value) -> Value:
    """Return a half as float32, and any other value unchanged."""
    return cast(v, v.dtype.compute)


def kernel_name(terms: Sequence[Term]) -> str:
    """Return a kernel's name: at most six names of its ops but copies and casts, else "copy"."""
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
            total += min(distinct, a.elements_max) * a.dtype.itemsize
    return total
