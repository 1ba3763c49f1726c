"""The schedules of a kernel: how work items share its points. All of them give the same bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeGuard

from dovetail.extend import (
    LANES,
    Kernel,
    Loop,
    Statement,
    Store,
    Value,
    along_rows,
    grid_index,
    reduces_long,
    reductions,
    shareable,
    stride_along,
    unroll_jam,
    walk,
)

Group = tuple[int, int, int]  # work items along x, y and z

LANE_GROUP = (LANES, 1, 1)  # of a schedule with lanes
FIRST_GROUP = (64, 1, 1)  # of the pipeline that is built first
NARROW_GROUP = (8, 8, 1)  # for grids whose last axis is short, and tiles
JAMMED_ROWS, JAMMED_COLUMNS = 8, 4  # of a product, per work item: 12 loads for 32 multiplications
VECTOR_POINTS = 4  # neighbours along x of a work item in a vectorized schedule: a vector of SPIR-V
VECTORIZED_LAUNCH_POINTS_MIN = 1 << 18  # from which a second pipeline is worth its time
VECTORIZED_COLUMNS_MIN = 256  # points along x, likewise: a group of work items
VECTORIZED_STATEMENTS_MAX = 64  # above which the driver takes long to compile four of each
GROUPS_MAX = 65_535  # groups along x of a dispatch: what every device allows
ITEM_ELEMENTS_MAX = 64  # elements; one work item computes a shorter reduction


class Schedule(NamedTuple):
    """A way to share the points of a grid among work items.

    - `group`: the work items of a group along x, y and z.
    - `lanes`: True if the items of a group compute each point together.
    - `jammed`: True if an item computes a tile of a product, whose points share their loads.
    - `vectorized`: True if an item computes VECTOR_POINTS neighbours along x, and accesses vectors.
    """

    group: Group
    lanes: bool = False
    jammed: bool = False
    vectorized: bool = False


def choose_group(points: Sequence[int]) -> Group:
    """Return the size of groups for a number of points along x, y and z."""
    return NARROW_GROUP if points[0] <= NARROW_GROUP[0] and points[1] > 1 else FIRST_GROUP


def choose_tile_group(points: Sequence[int]) -> Group:
    """Return the size of groups with the fewest idle items; the square one if sizes are equal."""

    def count_items(group: Group) -> int:
        """Return the work items that cover the points in whole groups."""
        return math.prod(-(-n // size) * size for n, size in zip(points, group, strict=True))

    return min(NARROW_GROUP, FIRST_GROUP, key=count_items)


class Tile(NamedTuple):
    """A kernel whose items compute `rows` times `columns` points each, which share their loads."""

    kernel: Kernel
    rows: int
    columns: int

    def suits(self, grid: Sequence[int], concurrency: int) -> bool:
        """Return True if a launch has enough points to keep the device busy with tiles.

        More than half of the rows and of the columns of a tile must be points of the grid.
        """
        is_large = math.prod(grid) >= concurrency * self.rows * self.columns
        return is_large and 2 * grid[-2] > self.rows and 2 * grid[-1] > self.columns


def join_points(kernel: Kernel) -> Tile | None:
    """Return a kernel that computes several points per item; None if points share no loads."""
    rows = unroll_jam(kernel, JAMMED_ROWS)
    if rows is None:
        return None
    both = unroll_jam(rows, JAMMED_COLUMNS, axis=-1, apart=True)
    return Tile(rows, JAMMED_ROWS, 1) if both is None else Tile(both, JAMMED_ROWS, JAMMED_COLUMNS)


def shares_points(kernel: Kernel, ints: Sequence[int]) -> bool:
    """Return True if a group should compute a point of a launch: for reductions of long rows."""
    count = sum(s.kind == "reduce" for s in walk(kernel.body) if isinstance(s, Loop))
    if not (shareable(kernel) and along_rows(kernel)) or count > len(reductions(kernel)):
        return False
    return reduces_long(kernel, dict(zip(kernel.ints, ints, strict=True)), ITEM_ELEMENTS_MAX)


def is_vectorizable(kernel: Kernel) -> bool:
    """Return True for a short kernel without loops and atomics that accesses neighbours along x.

    Accesses across rows are slower in vectors, and must be fewer. So are casts to 8 bytes.
    """
    statements = [s for s in kernel.body if isinstance(s, (Value, Store))]
    if not kernel.grid or not len(kernel.body) == len(statements) <= VECTORIZED_STATEMENTS_MAX:
        return False
    stride = stride_along(kernel.body, grid_index(len(kernel.grid) - 1))
    strides = [stride(s.index) for s in statements if is_access(s)]
    widens = any(
        isinstance(s, Value) and s.op == "cast" and s.dtype.itemsize == 8 > s.args[0].dtype.itemsize
        for s in statements
    )
    return strides.count(1) > sum(n not in (0, 1) for n in strides) and not widens


def is_access(s: Statement) -> TypeGuard[Value | Store]:
    """Return True for a load or a store."""
    return isinstance(s, Store) or (isinstance(s, Value) and s.op == "load")


def schedule_launch(
    kernel: Kernel,
    ints: Sequence[int],
    grid: Sequence[int],
    shares: bool = False,
    tile: Tile | None = None,
    vectorizes: bool = False,
) -> tuple[Schedule, Sequence[int], list[int]]:
    """Return the schedule of a launch, its integers, and the groups along x, y and z.

    - `shares`: True if groups may compute points together.
    - `tile`: the tile that an item computes; None: a point.
    - `vectorizes`: True if an item may compute VECTOR_POINTS neighbours along x.
    """
    lanes = shares and shares_points(kernel, ints)
    if tile:
        rows, columns = -(-grid[-2] // tile.rows), -(-grid[-1] // tile.columns)
        ints = (*ints, rows, columns)[: len(tile.kernel.ints)]
        grid = (*grid[:-2], rows, columns)
    points = [*reversed(grid), 1, 1, 1][:3]
    if lanes:
        return Schedule(LANE_GROUP, lanes), ints, [min(points[0], GROUPS_MAX), *points[1:]]
    is_large = math.prod(grid) >= VECTORIZED_LAUNCH_POINTS_MIN
    vectorized = vectorizes and is_large and points[0] >= VECTORIZED_COLUMNS_MIN
    if vectorized:
        points[0] = -(-points[0] // VECTOR_POINTS)
    group = choose_tile_group(points) if tile else choose_group(points)
    groups = [-(-n // items) for n, items in zip(points, group, strict=True)]
    return Schedule(group, jammed=tile is not None, vectorized=vectorized), ints, groups
