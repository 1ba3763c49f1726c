"""Staging: a group of work items computes a tile of a product from operands in local memory.

A point of a product loads two numbers for each multiplication. A group that copies a strip of both
operands to local memory loads each number once for a row, or a column, of its tile. Each point adds
as before, in the same order, so the bits stay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from .analysis import fold_nest, grid_index, loads, trip_count, varies_along
from .builder import Kernel
from .language import Loop, Store, Value

STAGED_SIDE_MIN = 32  # rows and columns of a launch: half of a tile
STAGED_STEPS_MIN = 16  # steps of the innermost fold, which a group stages at once
STAGED_VALUES_MAX = 8  # values of a step that are staged for each side
ACCUMULATOR_WORDS_MAX = 128  # words of 32 bits for the sums of a work item: they are registers
ITEM_ROWS, ITEM_COLUMNS = (8, 4), 4  # points of a work item: the first number that fits
TILE_DEPTH = 16
ITEMS = (8, 16)  # work items of a group along rows and columns
PADDING = 4  # elements after each row of local memory: neighbours in a column are in other banks
STAGING_CACHE_MAX = 4096  # kernels


@dataclass(frozen=True)
class Tile:
    """The points of a group along the last two axes, and the steps that it stages at a time.

    - `rows`, `columns`: the points of a group along the last two axes.
    - `depth`: the steps that a group stages at a time.
    - `item_rows`, `item_columns`: the points of one work item.
    - `width`: how many points of a work item are neighbours.
    """

    rows: int
    columns: int
    depth: int
    item_rows: int
    item_columns: int
    width: int

    @property
    def items(self) -> tuple[int, int]:
        """The work items of a group, along rows and along columns."""
        return self.rows // self.item_rows, self.columns // self.item_columns

    def groups(self, grid: Sequence[int]) -> tuple[int, ...]:
        """Return the number of groups along each axis of a grid."""
        *batch, m, n = grid
        return (*batch, -(-m // self.rows), -(-n // self.columns))


@dataclass(frozen=True, eq=False)
class Staging:
    """A product's nested folds, and the values of a step that a group keeps in local memory.

    `rows` do not depend on the last axis of the grid, `columns` not on the one before it. `uniform`
    are the values outside of the innermost fold that depend on neither.
    """

    nest: Sequence[Loop]
    rows: Sequence[Value]
    columns: Sequence[Value]
    uniform: frozenset[Value]

    def local_bytes(self, tile: Tile) -> int:
        """Return the bytes of local memory that a tile needs."""
        sides = ((self.rows, tile.rows), (self.columns, tile.columns))
        widths = (v.dtype.itemsize * (points + PADDING) for side, points in sides for v in side)
        return tile.depth * sum(widths)

    def accumulator_words(self, tile: Tile) -> int:
        """Return the words of 32 bits that the sums of a work item need."""
        sizes = (max(c.dtype.itemsize, 4) // 4 for loop in self.nest for c in loop.carry)
        return tile.item_rows * tile.item_columns * sum(sizes)


@lru_cache(STAGING_CACHE_MAX)
def find_staging(kernel: Kernel) -> Staging | None:
    """Return what a group can stage of a kernel; None if it is no product of two operands.

    The kernel must be one nest of folds that all points of a tile run alike. What a step computes
    for each point must come from values that depend on its row alone, or on its column alone.
    """
    nest, rank = fold_nest(kernel), len(kernel.grid)
    others = [s for s in kernel.body if not isinstance(s, (Value, Loop, Store))]
    if rank < 2 or not nest or others or any(b.access == "rw" for b in kernel.buffers):
        return None
    axes = (grid_index(a, kernel.index) for a in (rank - 2, rank - 1))
    by_row, by_column = (varies_along(kernel.body, axis) for axis in axes)

    def is_uniform(v: Value) -> bool:
        """Return True if all points of a tile have the same value."""
        return not by_row(v) and not by_column(v)

    if not all(is_uniform(bound) for loop in nest for bound in (loop.start, loop.stop)):
        return None
    inner = nest[-1]
    own = {s for s in inner.body if isinstance(s, Value)}
    points = [v for v in own if by_row(v) and by_column(v)]
    operands = [v for v in _used(inner, points) if not is_uniform(v)]
    sides = [v for v in operands if not (by_row(v) and by_column(v))]
    foreign = [v for v in operands if v not in own and v not in inner.carry]
    if foreign or any(v.op == "load" for v in points) or any(v.dtype.kind == "b" for v in sides):
        return None
    rows, columns = [v for v in sides if by_row(v)], [v for v in sides if by_column(v)]
    if not rows or not columns or max(len(rows), len(columns)) > STAGED_VALUES_MAX:
        return None
    blocks = (kernel.body, *(loop.body for loop in nest[:-1]))
    outside = (s for block in blocks for s in block if isinstance(s, Value) and is_uniform(s))
    return Staging(nest, rows, columns, frozenset(outside))


def _used(loop: Loop, points: Sequence[Value]) -> Iterator[Value]:
    """Return the values that the points' values and the loop's updates use, each once, in order."""
    args = (a for s in loop.body if isinstance(s, Value) and s in points for a in s.args)
    return iter(dict.fromkeys((*args, *loop.update)))


@lru_cache(STAGING_CACHE_MAX)
def choose_tile(kernel: Kernel, local_bytes: int, group_items: int, width: int = 4) -> Tile | None:
    """Return the tile of a kernel's groups; None if the kernel, or the device, permits none.

    - `local_bytes`: the local memory that a group may have, in bytes.
    - `group_items`: the most work items of a group.
    - `width`: the neighbouring points of a work item. Four are one load from local memory; one is
      for compilers that make vectors of work items.
    """
    staging = find_staging(kernel)
    if staging is None or math.prod(ITEMS) > group_items:
        return None
    for item_rows in ITEM_ROWS:
        rows, columns = item_rows * ITEMS[0], ITEM_COLUMNS * ITEMS[1]
        tile = Tile(rows, columns, TILE_DEPTH, item_rows, ITEM_COLUMNS, width)
        fits = staging.accumulator_words(tile) <= ACCUMULATOR_WORDS_MAX
        if fits and staging.local_bytes(tile) <= local_bytes:
            return tile
    return None


def fills_tiles(
    kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int], points_min: int
) -> bool:
    """Return True if a launch of these sizes is large enough for groups that stage tiles.

    - `points_min`: the points with which enough groups occupy the device.
    """
    staging = find_staging(kernel)
    if staging is None or math.prod(grid) < points_min or min(grid[-2:]) < STAGED_SIDE_MIN:
        return False
    steps = trip_count(staging.nest[-1], ints, at=0)
    return steps is None or steps >= STAGED_STEPS_MIN


def stages_wider_values(kernel: Kernel) -> bool:
    """Return True if the values that a group stages are wider than the elements that it loads."""
    staging = find_staging(kernel)
    if staging is None:
        return False
    loaded = [v.dtype.itemsize for v in loads(staging.nest[-1].body)]
    return min(v.dtype.itemsize for v in (*staging.rows, *staging.columns)) > max(loaded, default=0)
