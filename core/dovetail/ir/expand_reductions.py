"""A pass of `legalize` for devices without reduce loops: each becomes plain loops over lanes.

The lanes are private arrays, one for each value. Row 0 has the lanes of a chunk of elements, row 1
those of a chunk of results of row 0, and so on. A complete row becomes lane 0 of itself by the
tree, then a value of the next row. The combine occurs twice: for an element, and for two lanes.

For a group of work items that share a point, loops over lanes are maps, and the arrays are shared.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from ..dtypes import DType
from ..errors import CompileError
from .builder import Kernel, combine
from .language import (
    CHUNK,
    LANES,
    Block,
    Buffer,
    Loop,
    Store,
    Value,
    cast,
    const,
    eq,
    load,
    walk,
    where,
)
from .rewrite import Cloner, fresh_names
from .target import Capabilities

CHUNK_BITS = CHUNK.bit_length() - 1
TREE_STEPS = LANES.bit_length() - 1
ROWS_MAX = {32: 3, 64: 4}  # by the bits of an index: CHUNK ** 4 values are more than any memory


def lower_reductions(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel without reduce loops if the device has none."""
    return kernel if capabilities.reductions else expand_reductions(kernel)


def expand_reductions(kernel: Kernel, by_group: bool = False) -> Kernel:
    """Return a kernel whose reduce loops are folds over private arrays of lanes.

    The bits are those of the canonical order. The field `unexpanded` of the result is the given
    kernel. A kernel without reductions comes back as it is.

    - `kernel`: a legalised kernel, or one of real values.
    - `by_group`: True if groups of LANES work items share each point. The lanes are then arrays of
      the group (`Buffer.shared`), and loops over them are maps. A work item runs all statements
      outside of maps, but a store there is run once. A barrier must follow each map and store that
      writes what others read, and come before one that writes what was loaded outside of maps.

    Raises: CompileError if groups share the points, and a reduction is in another loop.
    """
    if not _has_reductions(kernel.body):
        return kernel
    expander = _Expander(kernel, by_group)
    body = expander.block(kernel.body)
    arrays = (*kernel.arrays, *expander.arrays)
    before = kernel.before or kernel
    return kernel.with_body(body, before=before, arrays=arrays, unexpanded=kernel)


def _has_reductions(block: Block) -> bool:
    """Return True if a block or a loop in it has a reduce loop."""
    return any(isinstance(s, Loop) and s.kind == "reduce" for s in walk(block))


def _count_rows(loop: Loop) -> int:
    """Return how many rows of lanes a reduction needs; ROWS_MAX for a variable length."""
    if loop.start.op != "const" or loop.stop.op != "const":
        return ROWS_MAX[loop.var.dtype.bits]
    rows, last = 1, loop.stop.number - loop.start.number - 1
    while last >= CHUNK**rows:
        rows += 1
    return rows


class _Expander(Cloner):
    """A cloner that writes each reduction as folds."""

    def __init__(self, kernel: Kernel, by_group: bool) -> None:
        super().__init__()
        self.kernel, self.by_group = kernel, by_group
        self.arrays: list[Buffer] = []
        self.free: list[Buffer] = []  # arrays of complete reductions

    def loop(self, old: Loop) -> Loop:
        """Return the copy of a loop, or the fold that gives the results of a reduction."""
        if old.kind == "reduce":
            return self.expand(old)
        if not _has_reductions(old.body):
            return super().loop(old)
        if self.by_group:
            name = self.kernel.name
            raise CompileError(f"kernel {name} has reductions in loops, which no group can share")
        new = super().loop(old)
        new.kind = "fold"  # iterations of a map may run at once, and would share the arrays
        return new

    # --- statements

    def append(self, v: Value) -> Value:
        """Append a value to the open block and return it."""
        self.emit(v)
        return v

    @contextmanager
    def fold(
        self, stop: Value | int, init: Sequence[Value] = (), kind: str = "fold"
    ) -> Iterator[Loop]:
        """Append a loop from 0 to `stop`, whose body is the statements of the context."""
        stop = stop if isinstance(stop, Value) else const(stop, self.kernel.index)
        loop = Loop(kind, const(0, self.kernel.index), self.append(stop), None, tuple(init))
        loop.carry = tuple(Value("carry", v.dtype, (), (loop, i)) for i, v in enumerate(init))
        loop.results = tuple(Value("result", v.dtype, (), (loop, i)) for i, v in enumerate(init))
        outer, self.statements = self.statements, []
        yield loop
        loop.set_body(tuple(self.statements))
        outer.append(loop)
        self.statements = outer

    def over_lanes(self, stop: Value | int) -> AbstractContextManager[Loop]:
        """Append a loop over lanes, which a group shares."""
        return self.fold(stop, kind="map" if self.by_group else "fold")

    def take_array(self, dtype: DType, length: int) -> Buffer:
        """Return an array that no open reduction uses."""
        for k, array in enumerate(self.free):
            if (array.dtype, array.length) == (dtype, length):
                return self.free.pop(k)
        (name,) = fresh_names(self.kernel, [f"lanes{len(self.arrays)}"])
        self.arrays.append(Buffer(name, dtype, "rw", length, self.by_group))
        return self.arrays[-1]

    # --- reductions

    def expand(self, old: Loop) -> Loop:
        """Append the statements of a reduction but the last fold, and return that."""
        rows, append = _count_rows(old), self.append
        lanes = _Lanes(self, old, rows)
        start, stop = self.operand(old.start), self.operand(old.stop)
        count = append(where(start < stop, stop - start, 0))
        chunks: Value | int = 1
        top = const(0, count.dtype)  # the last row
        if rows > 1:
            chunks = append(where(count <= CHUNK, 1, ((count - 1) >> CHUNK_BITS) + 1))
            for row in range(1, rows):
                top = top + cast(count > CHUNK**row, count.dtype)
            append(top)
        lanes.fill(const(0, count.dtype), top * LANES + LANES)
        with self.fold(chunks, lanes.identity) as loop:
            first = append(loop.var * CHUNK)
            offset, left = append(start + first), append(count - first)
            size = append(where(left < CHUNK, left, CHUNK))
            (self.reduce_by_group if self.by_group else self.reduce_chunk)(old, lanes, offset, size)
            complete = self.complete_rows(loop.var + 1, chunks, top, rows)
            with self.fold(complete) as levels:
                lanes.write_tree(loop.var, levels.var, top)
            loop.update = lanes.load(append(top * LANES))
        self.statements.pop()  # `block` appends it
        self.replacements.update(zip(old.results, loop.results, strict=True))
        self.free += lanes.arrays
        return loop

    def reduce_chunk(self, old: Loop, lanes: _Lanes, offset: Value, size: Value) -> None:
        """Append the loop over the elements of a chunk."""
        with self.fold(size) as elements:
            self.replacements[old.var] = self.append(offset + elements.var)
            self.statements += self.block(old.body)
            lanes.combine(self.append(elements.var & (LANES - 1)), self.operands(old.update))

    def reduce_by_group(self, old: Loop, lanes: _Lanes, offset: Value, size: Value) -> None:
        """Append the map over the lanes of a chunk, which combines the elements of each."""
        append, bits = self.append, LANES.bit_length() - 1
        with self.over_lanes(LANES) as lane:
            first, count = append(offset + lane.var), (size - lane.var + (LANES - 1)) >> bits
            with self.fold(count, lanes.identity) as elements:
                self.replacements[old.var] = append(first + elements.var * LANES)
                self.statements += self.block(old.body)
                elements.update = lanes.combine_values(elements.carry, self.operands(old.update))
            lanes.store(lane.var, elements.results)

    def complete_rows(self, done: Value, chunks: Value | int, top: Value, rows: int) -> Value:
        """Return how many rows are complete after `done` chunks of elements."""
        complete = const(1, done.dtype)
        for row in range(1, rows - 1):
            complete = complete + cast(eq(done & (CHUNK**row - 1), 0), done.dtype)
        return where(eq(done, chunks), top + 1, complete)


class _Lanes:
    """The lanes of a reduction, in `rows` rows of LANES elements of arrays."""

    def __init__(self, expander: _Expander, old: Loop, rows: int) -> None:
        self.expander, self.append = expander, expander.append
        self.rule = combine(str(old.combine), tuple(u.dtype for u in old.update))
        init, values = expander.operands(old.init), len(self.rule.identity)
        self.identity = init[:values] or self.rule.identity
        self.shared = init[values:]
        self.arrays = [expander.take_array(v.dtype, rows * LANES) for v in self.identity]

    def load(self, at: Value) -> tuple[Value, ...]:
        """Append loads of a lane's values to the open block, and return the loaded values."""
        return tuple(self.append(load(array, at)) for array in self.arrays)

    def store(self, at: Value, values: Sequence[Value]) -> None:
        """Append stores of values to a lane."""
        stores = [Store(array, at, v) for array, v in zip(self.arrays, values, strict=True)]
        self.expander.statements += stores

    def fill(self, first: Value, count: Value) -> None:
        """Append a loop that stores the identity in `count` lanes."""
        with self.expander.over_lanes(count) as loop:
            self.store(self.append(first + loop.var), self.identity)

    def combine(self, at: Value, right: Sequence[Value]) -> None:
        """Append the combination of a lane with further values."""
        self.store(at, self.combine_values(self.load(at), right))

    def combine_values(self, left: Sequence[Value], right: Sequence[Value]) -> tuple[Value, ...]:
        """Append the combination of values with further ones; return the results."""
        expander, rule = self.expander, self.rule
        operands = (*self.shared, *left, *right)
        names = rule.shared + rule.left + rule.right
        expander.replacements.update(zip(names, operands, strict=True))
        for v in rule.body:
            expander.value(v)
        return expander.operands(rule.result)

    def write_tree(self, chunk: Value, row: Value, top: Value) -> None:
        """Append the tree of a row, and the combination of lane 0 into the next row, if any."""
        append = self.append
        first, more = append(row * LANES), append(row < top)
        lane = (chunk >> (row * CHUNK_BITS)) & (LANES - 1)
        into, further = append(first + LANES + lane), append(cast(more, row.dtype))
        write = self.write_tree_by_group if self.expander.by_group else self.write_tree_serially
        write(first, into, further)
        self.fill(first, further * LANES)

    def write_tree_serially(self, first: Value, into: Value, further: Value) -> None:
        """Append the tree of a row's lanes; if `further` is 1, combine it into lane `into`.

        `first`: the first lane of the row. Lane j accumulates lane j + w for j < w, w = 16, 8, 4,
        2, 1: these j + w count down from 31 to 1.
        """
        append, half = self.append, const(LANES // 2, first.dtype)
        with self.expander.fold(further + (LANES - 1), [half]) as pairs:
            far, wide = append((LANES - 1) - pairs.var), pairs.carry[0]
            width = append(where(far < wide, wide >> 1, wide))
            pairs.update = (width,)
            near = append(where(eq(far, 0), into, first + far - width))
            self.combine(near, self.load(append(first + far)))

    def write_tree_by_group(self, first: Value, into: Value, further: Value) -> None:
        """Append the tree for a group of lanes, a map for each width; see `write_tree_serially`."""
        append = self.append
        with self.expander.fold(further + TREE_STEPS) as steps:
            width = append(const(LANES // 2, first.dtype) >> steps.var)
            ends = append(eq(width, 0))
            with self.expander.over_lanes(where(ends, 1, width)) as pairs:
                near = append(first + pairs.var)
                far = self.load(append(near + width))
                self.combine(append(where(ends, into, near)), far)
