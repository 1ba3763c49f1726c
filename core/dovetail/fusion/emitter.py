"""Builds one kernel: its parameters, accesses as indices, terms as values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, TypeAlias

from ..backend.faults import Asked
from ..dtypes import DType, int64
from ..layout import LIMIT, Shape
from ..loops.builder import KernelBuilder
from ..loops.language import Buffer, Store, Value, cast, const, load, quo, reduce_loop, rem, where
from ..ops.arithmetic import convert
from .decisions import Decisions
from .groups import Access, Output, Part, Term
from .joins import same_memory
from .plan import Step
from .reasons import Reason

Point: TypeAlias = tuple[Value, ...]  # indices: the grid's, then those along the row


class Emitter:
    """Builds one kernel.

    It has parameters with their run-time values, accesses as indices, terms as Values.
    """

    def __init__(self, name: str) -> None:
        self.builder = KernelBuilder(name)
        self.buffers: list[tuple[int, int]] = []
        self.ints: list[int] = []
        self.scalars: list[int] = []
        self._buffer: dict[tuple[int, int, str, DType], Buffer] = {}
        self._scalar: dict[tuple[int, DType], Value] = {}
        self._done: dict[tuple[int, tuple[int, ...]], Value] = {}
        self._reduced: dict[int, tuple[Value, ...]] = {}
        self._outer = LIMIT  # how many indices of a point are the grid's
        self._below: dict[tuple[Shape, int, int, tuple[int, ...]], Value] = {}
        self._alive: list[tuple[Term, Point]] = []  # so that no id in `_done` names something else
        # (node, number of the index) -> where it is bad, the index, for what it is read
        self.failures: dict[tuple[int, int], tuple[Value, Value, Asked]] = {}

    def integer(self, letter: str, value: int) -> Value:
        """A run-time integer parameter."""
        self.ints.append(value)
        return self.builder.int(f"{letter}{len(self.ints) - 1}")

    def buffer(self, slot: int, dtype: DType, offset: int, access: str) -> Buffer:
        """The buffer parameter for a slot at a static offset (in elements)."""
        key = (slot, offset, access, dtype)
        if key not in self._buffer:
            letter = "out" if access == "w" else "in"
            self.buffers.append((slot, offset * dtype.itemsize))
            self._buffer[key] = self.builder.buffer(
                f"{letter}{len(self.buffers) - 1}", dtype, access
            )
        return self._buffer[key]

    def scalar(self, term: Term) -> Value:
        """A run-time scalar parameter: real; halves are rounded from float32."""
        key = (term.scalar, term.dtype)
        if key not in self._scalar:
            self.scalars.append(term.scalar)
            wide = term.dtype.compute.part
            v = self.builder.scalar(f"c{len(self.scalars) - 1}", wide)
            self._scalar[key] = convert(v, term.dtype)
        return self._scalar[key]

    def grid(self, extents: Shape) -> list[Value]:
        """The grid's axes; at least one."""
        if not extents:
            return [self.builder.axis(const(1, int64))]
        params = [self.integer("n", n) for n in extents]
        return [self.builder.axis(p) for p in params]

    def place(self, accesses: Sequence[Access], strides: Sequence[Shape]) -> None:
        """Gives every access its stride parameters.

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
        """The linear index of an access at a point."""
        total = self._offsets.get(id(access), const(0, int64))
        for i, s in zip(where_, self._strides[id(access)], strict=False):
            if s is not None:
                total = total + i * s
        return total

    def value(self, term: Term, point: Point) -> Value:
        """The value of a term at a point.

        A point is the grid's indices, then those along the row, if inside a row loop.
        """
        key = (id(term), tuple(map(id, point)))
        if key not in self._done:
            self._alive.append((term, point))
            self._done[key] = self._RULES[term.what](self, term, point)
        return self._done[key]

    def _load(self, term: Term, point: Point) -> Value:
        a, there = term.access, None
        assert a is not None
        for part in term.parts:
            inside = self._inside(part, point)
            there = inside if there is None else there & inside
        return load(self.buffer(a.slot, a.dtype, a.start, "r"), self.index(a, point), there)

    def _inside(self, part: Part, point: Point) -> Value:
        if part.stop is None:  # the places end there
            return ~self._is_below(part.at, part.start, point)
        below = self._is_below(part.at, part.stop, point)
        return ~self._is_below(part.at, part.start, point) & below if part.start else below

    def _is_below(self, at: Access, stop: int, point: Point) -> Value:
        """Whether a place is below `stop`: one value for all who ask the same."""
        key = (at.strides, at.offset, stop, tuple(map(id, point)))
        if key not in self._below:
            self._below[key] = self.index(at, point) < self.integer("e", stop)
        return self._below[key]

    def _join(self, term: Term, point: Point) -> Value:
        along_row = len(point) > self._outer  # there, lanes read neighbours on both sides of a seam
        memory = None if along_row else same_memory(term)
        if memory is not None:
            slot, offset, dtype = memory
            return load(self.buffer(slot, dtype, offset, "r"), self._chosen(term, point))
        *others, found = (widened(self.value(t, point)) for t in term.args)
        for v, part in zip(reversed(others), reversed(term.parts[:-1]), strict=True):
            assert part.stop is not None
            found = where(self._is_below(part.at, part.stop, point), v, found)
        return cast(found, term.dtype)

    def _chosen(self, term: Term, point: Point) -> Value:
        """The index of that element."""
        if term.access is not None:
            return self.index(term.access, point)
        *others, found = (self._chosen(t, point) for t in term.args)
        for i, part in zip(reversed(others), reversed(term.parts[:-1]), strict=True):
            assert part.stop is not None
            found = where(self._is_below(part.at, part.stop, point), i, found)
        return found

    def _operand(self, term: Term, to: DType, point: Point) -> Value:
        if term.what == "scalar":
            return self.scalar(Term("scalar", to, scalar=term.scalar))
        return convert(self.value(term, point), to)

    def _map(self, term: Term, point: Point) -> Value:
        assert term.op is not None
        operands = [self._operand(t, d, point) for t, d in zip(term.args, term.casts, strict=True)]
        if term.op.widens:
            operands = [widened(v) for v in operands]
        return convert(term.op.expression(*operands), term.dtype)

    def _generate(self, term: Term, point: Point) -> Value:
        assert term.op is not None and term.access is not None
        scalars = [
            widened(self._operand(t, d, point)) for t, d in zip(term.args, term.casts, strict=True)
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
                lambda k: self.combined(term, (*outer, *self.row_point(k)), k),
            )
        return self.finished(term, self._reduced[id(term)])

    def combined(self, term: Term, point: Point, k: Value) -> Sequence[Value]:
        """What a reduction combines at a point."""
        assert term.op is not None
        return term.op.before(self._operand(term.args[0], term.casts[0], point), k)

    def finished(self, term: Term, results: Sequence[Value]) -> Value:
        """What comes out of a reduction."""
        assert term.op is not None
        return convert(term.op.after(results, self.row_length), term.dtype)

    def whole_row(self, length: int) -> None:
        """Declares a row of which only the length is needed."""
        self.row_length = self.integer("m", length)

    def rows(self, outer: int, extents: Shape) -> None:
        """Declares the row: its extents after coalescing (usually one)."""
        self._outer = outer
        sizes = [self.integer("m", n) for n in extents]
        length = sizes[0] if sizes else const(1, int64)
        for s in sizes[1:]:
            length = length * s
        self.row_length, self._row_sizes = length, sizes

    def row_point(self, k: Value) -> tuple[Value, ...]:
        """The indices along the row's axes at position `k`."""
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
            (stride, extent), given = axes[k], convert(self.value(t, point), d)
            i = given
            if asked:
                n = self.integer("n", extent)
                i = where(i < 0, i + n, i)
                inside = (const(0, int64) <= i) & (i < n)
                self.check(node, k, inside, given, asked[k])
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

    def check(self, node: int, number: int, fine: Value, given: Value, asked: Asked) -> None:
        """Where not `fine`, the index `given` of a node is out of range."""
        bad, known = ~fine, self.failures.get((node, number))
        if known is not None:  # the node is computed at several points
            bad, given = known[0] | bad, where(known[0], known[1], given)
        self.failures[node, number] = bad, given, asked

    def checks(self, d: Decisions) -> tuple[tuple[int, int, Asked], ...]:
        """Adds the stores that say which index is out of range, where any is checked."""
        made: list[tuple[int, int, Asked]] = []
        for (node, _), (bad, given, asked) in self.failures.items():
            slot = d.new_slot()
            cell = self.buffer(slot, int64, 0, "w")
            self.builder.store(cell, const(0, int64), given, bad)
            made.append((slot, node, asked))
        return tuple(made)

    def written(self, access: Access) -> Buffer:
        """The buffer that an output access writes."""
        return self.buffer(access.slot, access.dtype, access.offset, "w")

    def stores(self, outputs: Sequence[Output], point: Point) -> list[Store]:
        """The stores at a point along the row."""
        return [
            Store(self.written(a), self.index(a, point), self.value(t, point))
            for _, t, a in outputs
        ]

    def step(
        self, grid: Shape, fresh: tuple[tuple[int, int], ...], why: Iterable[Reason], nbytes: int,
        checks: tuple[tuple[int, int, Asked], ...] = (),
    ) -> Step:  # fmt: skip
        """The finished launch, which reads and writes so many bytes."""
        return Step(
            self.builder.build(), tuple(self.buffers), fresh, tuple(self.ints), tuple(self.scalars),
            grid or (1,), tuple(dict.fromkeys(why)), nbytes, checks,
        )  # fmt: skip


def widened(v: Value) -> Value:
    return cast(v, v.dtype.compute)


def names(terms: Sequence[Term]) -> str:
    """A kernel's name: what it computes, briefly."""
    names: list[str] = []
    seen: set[int] = set()
    stack = list(terms)
    while stack and len(names) < 6:
        t = stack.pop()
        if id(t) in seen:
            continue
        seen.add(id(t))
        if t.op is not None and t.op.name not in (*names, "copy", "full", "astype"):
            names.append(t.op.name)
        stack += t.args
    return "_".join(reversed(names)) or "copy"


def traffic(accesses: Sequence[Access], extents: Shape) -> int:
    """Bytes read and written, each distinct element of an access once."""
    total = 0
    for a in accesses:
        if a.slot >= 0:
            seen = math.prod(n for n, s in zip(extents, a.strides, strict=True) if s != 0)
            total += min(seen, a.most) * a.dtype.itemsize
    return total
