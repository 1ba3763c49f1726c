"""Renders a staged matrix product: a work group computes a tile, with operands in local memory.

Each work item has arrays of sums, an element for each of its points. A step of the innermost loop
over tiles copies a strip of both operands to local memory, then adds its products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .analysis import grid_index, stride_along
from .language import Block, Loop, Store, Value, walk
from .staging import PADDING, STAGED_VALUES_MAX, Tile, find_staging

if TYPE_CHECKING:
    from .cstyle import KernelWriter

# Names that the text of a tile declares, besides those of `cstyle`.
_WORDS = "tile_row tile_column item_row item_column item row_last column_last first depth step"
TILE_WORDS = frozenset((*_WORDS.split(), "part", "place", "column", "r", "c")) | {
    f"{name}{i}" for name in ("rows", "columns", "x", "y") for i in range(STAGED_VALUES_MAX)
}


@dataclass(frozen=True, eq=False)
class _Side:
    """One axis of a tile, and the operand that is staged in local memory along this axis.

    `name` is "row" or "column". A work item has `item_points` of the tile's `points`, of which
    `width` are neighbours. `counter` counts them, and `registers` begins the names of their values.
    """

    name: str
    counter: str
    registers: str
    axis: int
    extent: str
    points: int
    item_points: int
    width: int
    values: Sequence[Value]

    @property
    def index(self) -> str:
        """The name of the index along the axis."""
        return f"i{self.axis}"

    def arrays(self) -> list[tuple[Value, str, str]]:
        """Return the staged values, each with the names of its local-memory and register arrays."""
        named = enumerate(self.values)
        return [(v, f"{self.name}s{i}", f"{self.registers}{i}") for i, v in named]

    def loop(self) -> str:
        """Return the head of the C loop over the points that a work item has along this axis."""
        c = self.counter
        return f"for (int {c} = 0; {c} < {self.item_points}; ++{c})"

    def position(self) -> str:
        """Return the C expression of a point's position in the tile along this axis."""
        step, width = self.points // self.item_points * self.width, self.width
        own = f"{self.counter} / {width} * {step} + {self.counter} % {width}"
        return f"item_{self.name} * {width} + ({own})"


class TileWriter:
    """A writer of the kernel body that a work group runs for one tile of the result."""

    def __init__(self, text: KernelWriter, tile: Tile) -> None:
        staging, rank = find_staging(text.kernel), len(text.kernel.grid)
        assert staging is not None, text.kernel
        self.text, self.tile, self.staging = text, tile, staging
        self.style, self.int = text.style, text.style.type(text.kernel.index)
        self.values = [s for s in walk(text.kernel.body) if isinstance(s, Value)]
        m, n = (text.name(extent) for extent in text.kernel.grid[-2:])
        rows, columns = (tile.rows, tile.item_rows), (tile.columns, tile.item_columns)
        self.row = _Side("row", "r", "x", rank - 2, m, *rows, tile.width, staging.rows)
        self.column = _Side("column", "c", "y", rank - 1, n, *columns, tile.width, staging.columns)
        self.sides = (self.row, self.column)

    def local_lines(self) -> list[str]:
        """Return the declarations of the local-memory arrays, one for each staged value."""
        return [
            self.style.local(
                self.style.type(v.dtype), f"{name}[{self.tile.depth}][{side.points + PADDING}]"
            )
            for side in self.sides
            for v, name, _ in side.arrays()
        ]

    def write(self) -> None:
        """Write the kernel body: the folds, then the stores of the points inside the grid."""
        self.text.shared["tile"] = self.local_lines()
        number = f"item_row * {self.tile.items[1]} + item_column"
        self.text.write_lines(f"const int item = {number};")
        for side in self.sides:
            left, last = f"{side.extent} - tile_{side.name}", f"{side.name}_last"
            short = f"{left} < {side.points} ? (int)({left}) : {side.points}"
            self.text.write_lines(f"const int {last} = ({short}) - 1;")
        body = self.text.kernel.body
        self.write_block(body)
        stores = [s for s in body if isinstance(s, Store)]
        fields = [v for s in stores for v in (s.index, s.value, s.when) if v is not None]
        with self.points():
            self.write_indices(self.sides)
            inside = (f"{side.name} <= {side.name}_last" for side in self.sides)
            with self.text.braces(f"if ({' && '.join(inside)})"):
                self.write_values(self.missing(fields, self.staging.uniform))
                for s in stores:
                    self.text.write_effect(s)

    def write_block(self, block: Block) -> None:
        """Write the values of a block that do not depend on the point, and the folds in it."""
        for s in block:
            if isinstance(s, Loop):
                self.write_fold(s)
            elif s in self.staging.uniform:
                self.write_values([s])

    def missing(self, wanted: Iterable[Value], declared: Iterable[Value]) -> list[Value]:
        """Return the values that `wanted` depend on, without those `declared`, in program order."""
        needed, declared = set(wanted), set(declared)
        for v in reversed(self.values):
            if v in needed and v not in declared:
                needed.update(v.args)
        return [v for v in self.values if v in needed and v not in declared]

    def write_values(self, values: Iterable[Value]) -> None:
        """Write the declaration of each value."""
        for v in values:
            self.text.declare(v.dtype, self.text.new_name(v, "v"), self.text.expression(v))

    def write_point_values(self, wanted: Sequence[Value], declared: Iterable[Value]) -> None:
        """Write the values that `wanted` depend on at one point, with the indices that they use."""
        values = self.missing(wanted, declared)
        used = [a for v in values for a in v.args] + [*wanted]
        axes = {v.axis for v in used if v.op == "index"}
        self.write_indices([side for side in self.sides if side.axis in axes])
        self.write_values(values)

    def write_indices(self, sides: Iterable[_Side]) -> None:
        """Write the offset in the tile and the grid index of a point, for each of `sides`."""
        for side in sides:
            self.text.write_lines(f"const int {side.name} = {side.position()};")
            self.write_index(side, side.name)

    def write_index(self, side: _Side, offset: str) -> None:
        """Write the grid index at an offset in the tile, clamped to the last index of the grid."""
        inside = f"{offset} < {side.name}_last ? {offset} : {side.name}_last"
        index = f"tile_{side.name} + ({inside})"
        self.text.write_lines(f"const {self.int} {side.index} = {index};")

    @contextmanager
    def points(self) -> Iterator[None]:
        """Write unrolled loops over the points of a work item around the code of the context."""
        put, unrolled = self.text.write_lines, self.style.tile_unrolled
        put(unrolled)
        with self.text.braces(self.row.loop()):
            put(unrolled)
            with self.text.braces(self.column.loop()):
                yield

    # --- folds

    def write_fold(self, loop: Loop) -> None:
        """Write a fold that carries one value for each point of a work item, in arrays."""
        text, start, stop = self.text, self.text.name(loop.start), self.text.name(loop.stop)
        k = text.new_name(loop.var, "k")
        point = f"[{self.row.counter}][{self.column.counter}]"
        arrays = [text.new_name(r, "r") for r in loop.results]
        carries = [text.new_name(c, "c") for c in loop.carry]
        text.names.update((id(r), a + point) for r, a in zip(loop.results, arrays, strict=True))
        types = [self.style.type(c.dtype) for c in loop.carry]
        shape = f"[{self.tile.item_rows}][{self.tile.item_columns}]"
        text.write_rows(f"{{}} {{}}{shape};".format, types, arrays)
        with self.points():
            self.write_point_values(loop.init, self.staging.uniform)
            inits = [text.name(v) for v in loop.init]
            text.write_rows(f"{{}}{point} = {{}};".format, arrays, inits)
        rows = [*zip(types, carries, (a + point for a in arrays), strict=True)]
        if loop is self.staging.nest[-1]:
            with text.braces(self.step_head("first", start, stop, self.tile.depth)):
                self.write_step(loop, k, stop, rows)
        else:
            with text.braces(self.step_head(k, start, stop)):
                self.write_block(loop.body)
                self.write_update(loop, rows, self.staging.uniform)

    def step_head(self, k: str, start: str, stop: str, step: int = 1) -> str:
        """Return the head of the C loop from `start` to `stop` in steps of `step`."""
        return f"for ({self.int} {k} = {start}; {k} < {stop}; {k} += {step})"

    def write_update(
        self, loop: Loop, rows: Sequence[tuple[str, str, str]], declared: Iterable[Value]
    ) -> None:
        """Write one step of a fold for all points; `rows`: type, name and result of each carry."""
        with self.points():
            self.text.write_rows("const {} {} = {};".format, *zip(*rows, strict=True))
            self.write_point_values(loop.update, declared)
            results, updates = [r for *_, r in rows], [self.text.name(v) for v in loop.update]
            self.text.write_rows("{} = {};".format, results, updates)

    # --- the innermost fold

    def write_step(self, loop: Loop, k: str, stop: str, rows: list[tuple[str, str, str]]) -> None:
        """Write up to `depth` steps of the innermost fold; stage both operands in local memory."""
        put, staging, depth = self.text.write_lines, self.staging, self.tile.depth
        put(f"const int depth = {stop} - first < {depth} ? (int)({stop} - first) : {depth};")
        for side in self.sides:
            self.write_copy(loop, k, side)
        put(*self.style.local_barrier)
        if self.style.tile_steps:
            put(self.style.tile_steps)
        with self.text.braces("for (int step = 0; step < depth; ++step)"):
            put(f"const {self.int} {k} = first + step;")
            for side in self.sides:
                self.write_registers(side)
            self.write_update(loop, rows, {*staging.uniform, *staging.rows, *staging.columns})
        put(*self.style.local_barrier)

    def write_copy(self, loop: Loop, k: str, side: _Side) -> None:
        """Write the copy of an operand's strip to local memory; adjacent items read adjacent data.

        Elements beyond the end repeat the last one; no point within the grid uses them.
        """
        put, items = self.text.write_lines, math.prod(self.tile.items)
        sizes = {"place": side.points, "part": self.tile.depth}
        fast, slow = ("part", "place") if self.reads_along_k(loop, side) else ("place", "part")
        put(self.style.tile_unrolled)
        head = f"for (int at = 0; at < {sizes[slow]}; at += {items // sizes[fast]})"
        with self.text.braces(head):
            put(f"const int {fast} = item % {sizes[fast]}, {slow} = at + item / {sizes[fast]};")
            put(f"const {self.int} {k} = first + (part < depth ? part : depth - 1);")
            self.write_index(side, "place")
            self.write_values(self.missing(side.values, self.staging.uniform))
            for v, name, _ in side.arrays():
                put(f"{name}[part][place] = {self.text.name(v)};")

    def reads_along_k(self, loop: Loop, side: _Side) -> bool:
        """Return True if an operand is contiguous along k, so work items should copy along k."""
        kernel, along_k = self.text.kernel, stride_along(loop.body, loop.var)
        along_axis = stride_along(kernel.body, grid_index(side.axis, kernel.index))
        loads = [s for s in loop.body if isinstance(s, Value) and s.op == "load"]
        return any(along_axis(v.index) != 0 and along_k(v.index) == 1 for v in loads)

    def write_registers(self, side: _Side) -> None:
        """Write the copy of one step's staged values from local memory to registers."""
        for v, name, registers in side.arrays():
            self.text.write_lines(
                f"{self.style.type(v.dtype)} {registers}[{side.item_points}];",
                self.style.tile_unrolled,
                f"{side.loop()} {registers}[{side.counter}] = {name}[step][{side.position()}];",
            )
            self.text.names[id(v)] = f"{registers}[{side.counter}]"
