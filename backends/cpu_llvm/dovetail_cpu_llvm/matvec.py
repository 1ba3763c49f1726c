"""Products of a matrix and a vector, for matrices that are contiguous along k, as machine code.

The lanes of a vector register sum blocks of BLOCK products: blocks of several rows, or neighbouring
blocks of one row if it has many. Lanes in one row read memory that is nearly contiguous; in rows
that are a multiple of 4 KB apart, all their cache lines would fall into the same few sets. The
vector is copied once for many rows, so that a load has the elements of all lanes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dovetail.extend import PRODUCT_BLOCK as BLOCK
from dovetail.extend import PRODUCT_BLOCKS

from .ir_writer import fields
from .lines import PIECE_BYTES, Lines, prefetch

if TYPE_CHECKING:
    from .gemm import Renderer

GROUP = BLOCK * PRODUCT_BLOCKS
HEIGHTS = (3, 2, 1)  # vectors of sums in a tile; four would read more lines than the cache has ways
ROWS_MAX = 768  # of a task, whose sums are on the stack
ROWS_MULTIPLE = 24  # those of a tile
TASK_PRODUCTS_MIN = 1 << 17  # of the rows that a thread takes, some 8 us
TASKS_PER_THREAD = 4
PREFETCH_BYTES_MIN = 1 << 19  # of a matrix: smaller ones stay in the second-level cache
ROWS_MIN = 8  # a vector of float32 has as many lanes
# The integers of a call, after three addresses: rows, columns, strides in bytes, the rows of a
# task, the tasks of a matrix, if it is prefetched, and if it is the first operand. Then, for each
# axis of the stack, four more: its extent and three strides, of the vector's operand first.
INTS = ("n", "k", "row", "x_step", "y_step", "rows", "across", "prefetches", "swaps", "rank")


def choose_tasks(
    n: int,
    k: int,
    size: int,
    strides: tuple[int, int, int],
    swaps: bool,
    axes: Sequence[tuple[int, ...]],
    threads: int,
) -> tuple[tuple[int, ...], int]:
    """Return the integers of a call, and its number of tasks.

    size: bytes of an element.
    strides: in bytes, from row to row and along the vector and the result.
    axes: the extent and three strides in bytes of each axis of the stack, the last one first.
    """
    wanted = max(1, min(TASKS_PER_THREAD * threads, n * k // TASK_PRODUCTS_MIN))
    rows = -(-n // wanted)
    rows = min(ROWS_MAX, -(-rows // ROWS_MULTIPLE) * ROWS_MULTIPLE)
    across = -(-n // rows)
    prefetches = n * k * size >= PREFETCH_BYTES_MIN
    ints = [n, k, *strides, rows, across, prefetches, swaps, len(axes)]
    ints += [number for axis in axes for number in axis]
    return tuple(map(int, ints)), across * math.prod(axis[0] for axis in axes)


def render(r: Renderer) -> list[str]:
    """Return the IR of the kernel and its functions, for the dtype and width of a renderer."""
    sums = [_render_row_sums(r, groups) for groups in HEIGHTS]
    return [*sums, _render_pack_vector(r), _render_add_sums(r), _KernelWriter(r).render()]


def _render_row_sums(r: Renderer, groups: int) -> str:
    """Return the function that sums %count products in each lane of `groups` vectors.

    Lane i of group g reads the line at %a + g * %group and the offset of `Lines`; %x has vectors
    of the elements of all lanes. With %prefetches the memory at %next, that of the tile after this
    one, is read into the second-level cache, as many bytes of each group as are summed.
    """
    w = r.writer()
    sums = [w.slot(r.type, "zeroinitializer") for _ in range(groups)]
    starts = [r.move(w, "%a", (str(g), "%group")) for g in range(groups)]
    lines = [Lines(r, w, start, "%near", "%far") for start in starts]
    x, k, ahead = w.slot("ptr", "%x"), w.counter("0"), w.slot("ptr", "%next")
    with w.loop_from(k, "%count", r.piece):
        at = w.load(x)
        elements = [r.load(w, r.move(w, at, (str(i), str(r.native)))) for i in range(r.piece)]
        with w.if_then("%prefetches"):
            start, nbytes = w.load(ahead), r.width * PIECE_BYTES
            for g in range(groups):
                prefetch(w, r.move(w, start, (str(g), "%group")), nbytes)
            w.store(ahead, r.move(w, start, ("1", str(nbytes))))
        for slot, line in zip(sums, lines, strict=True):
            for a, element in zip(line.load(), elements, strict=True):
                r.fma(w, slot, a, element)
            line.advance(str(PIECE_BYTES))
        w.store(x, r.move(w, at, (str(r.piece), str(r.native))))
    with w.loop_from(k, "%count", 1):
        element = r.load(w, w.load(x))
        for slot, line in zip(sums, lines, strict=True):
            r.fma(w, slot, line.gather(), element)
            line.advance(str(r.size))
        w.store(x, r.move(w, w.load(x), ("1", str(r.native))))
    for g, slot in enumerate(sums):
        r.store(w, w.load(slot), r.move(w, "%out", (str(g), str(r.native))))
    parameters = (
        "i64 %count, ptr %a, i64 %near, i64 %far, i64 %group, ptr %x, ptr %out, ptr %next, "
        "i1 %prefetches"
    )
    return r.function(f"row_sums_{groups}", parameters, w, "internal ")


def _render_pack_vector(r: Renderer) -> str:
    """Return the function that packs the vector for all lanes: one element per lane and k."""
    w = r.writer()
    lines, to, k = Lines(r, w, "%x", "%near", "%far"), w.slot("ptr", "%to"), w.counter("0")

    def store(vectors: Sequence[str], nbytes: str) -> None:
        """Append the stores of some vectors, and the step to the next elements."""
        at = w.load(to)
        for i, vector in enumerate(vectors):
            r.store(w, vector, r.move(w, at, (str(i), str(r.native))))
        w.store(to, r.move(w, at, (str(len(vectors)), str(r.native))))
        lines.advance(nbytes)

    is_contiguous = w.let(f"icmp eq i64 %step, {r.size}")
    with w.loop_from(k, w.select_i64(is_contiguous, "%count", "0"), r.piece):
        store(lines.load(), str(PIECE_BYTES))
    with w.loop_from(k, "%count", 1):
        store([lines.gather()], "%step")
    parameters = "i64 %count, ptr %x, i64 %step, i64 %near, i64 %far, ptr %to"
    return r.function("pack_vector", parameters, w, "internal ")


def _render_add_sums(r: Renderer) -> str:
    """Return the function that adds the sums of blocks to the sums of their rows, in order of k.

    %from: the first row of a group that is not in %sums yet. The steps are in bytes of %out.
    """
    w = r.writer()
    end, target = w.new_label(), w.slot("ptr", "%sums")
    are_rows = w.let("icmp eq i64 %blocks, 1")
    are_rows = w.let(f"and i1 {are_rows}, {w.let('icmp eq i64 %from, 0')}")
    with r.last_case(w, are_rows, end), w.loop("0", "%groups") as g:
        at, value = (
            r.move(w, "%sums", (g, str(r.native))),
            r.load(w, r.move(w, "%out", (g, str(r.native)))),
        )
        added = w.let(f"fadd {r.type} {r.load(w, at)}, {value}")
        r.store(w, w.let(f"select i1 %first, {r.type} {value}, {r.type} {added}"), at)
    with w.loop("0", "%groups") as g:
        group = r.move(w, "%out", (g, str(r.native)))
        with w.loop("%from", "%group_rows") as row:
            at = w.load(target)
            total = w.slot(r.real, w.let(f"load {r.real}, ptr {at}, align {r.size}"))
            first = r.move(w, group, (row, "%row_step"))
            with w.loop("0", "%blocks") as block:
                sum_at = r.move(w, first, (block, "%block_step"))
                value = w.let(f"load {r.real}, ptr {sum_at}, align {r.size}")
                added = w.let(f"fadd {r.real} {w.load(total)}, {value}")
                starts = w.let(f"and i1 %first, {w.let(f'icmp eq i64 {block}, 0')}")
                w.store(total, w.let(f"select i1 {starts}, {r.real} {value}, {r.real} {added}"))
            w.emit(f"store {r.real} {w.load(total)}, ptr {at}, align {r.size}")
            w.store(target, r.move(w, at, ("1", str(r.size))))
    w.enter_block(end)
    parameters = (
        "ptr %out, i64 %groups, i64 %from, i64 %group_rows, i64 %row_step, i64 %blocks, "
        "i64 %block_step, ptr %sums, i1 %first"
    )
    return r.function("add_sums", parameters, w, "internal ")


class _KernelWriter:
    """Writes the kernel: the tasks %begin..%end-1, some rows of a matrix each."""

    def __init__(self, renderer: Renderer) -> None:
        self.renderer, self.w = renderer, renderer.writer()

    def render(self) -> str:
        """Return the kernel."""
        r, w = self.renderer, self.w
        names = [*[f"i64 w{i}" for i in range(3)], *[f"i64 {n}" for n in INTS]]
        w.entry.append(fields("slots", names))
        w.entry += [*r.name_operands((("c", 2, 2),)), "  %is_large = icmp ne i64 %prefetches, 0"]
        self.packed = w.alloca(r.type, BLOCK)
        self.out = w.alloca(r.type, HEIGHTS[0])
        self.sums = w.alloca(r.real, ROWS_MAX)
        with w.loop("%begin", "%end") as task:
            item = w.slot("i64", w.let(f"udiv i64 {task}, %across"))
            first = w.i64("mul", w.let(f"urem i64 {task}, %across"), "%rows")
            count = w.min_i64("%rows", w.i64("sub", "%n", first))
            x, matrix, y = r.find_item(w, item, 3 + len(INTS))
            a, result = r.move(w, matrix, (first, "%row")), r.move(w, y, (first, "%y_step"))
            with w.loop("0", "%k", GROUP, full_steps=False) as group:
                stop = w.min_i64("%k", w.i64("add", group, str(GROUP)))
                is_later = w.let(f"icmp ne i64 {group}, 0")
                is_apart = w.let(f"or i1 {is_later}, {w.let(f'icmp ne i64 %y_step, {r.size}')}")
                self.target = w.let(f"select i1 {is_apart}, ptr {self.sums}, ptr {result}")
                self._write_group(a, x, group, stop, count)
                self._write_results(result, w.select_i64(is_apart, count, "0"), is_later)
        return r.function("matvec", "ptr %slots, i64 %begin, i64 %end", w)

    def _write_results(self, result: str, count: str, is_later: str) -> None:
        """Append the store of a group's sums; those of a later group are added to the result."""
        r, w = self.renderer, self.w
        with w.loop("0", count) as i:
            at = r.move(w, result, (i, "%y_step"))
            value = w.let(
                f"load {r.real}, ptr {r.move(w, self.sums, (i, str(r.size)))}, align {r.size}"
            )
            total = w.slot(r.real, value)
            with w.if_then(is_later):
                before = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                w.store(total, w.let(f"fadd {r.real} {before}, {value}"))
            w.emit(f"store {r.real} {w.load(total)}, ptr {at}, align {r.size}")

    def _write_group(self, a: str, x: str, group: str, stop: str, rows: str) -> None:
        """Append the sums of a group of blocks, as many blocks at once as fit into the lanes."""
        w = self.w
        k = w.counter(group)
        for blocks in sorted({self.renderer.width, self.renderer.piece, self._halves(), 1})[::-1]:
            with w.loop_from(k, stop, blocks * BLOCK) as start:
                self._write_blocks(blocks, str(BLOCK), a, x, start, group, rows)
        left = w.i64("sub", stop, w.load(k))
        with w.if_then(w.let(f"icmp ne i64 {left}, 0")):
            self._write_blocks(1, left, a, x, w.load(k), group, rows)

    def _halves(self) -> int:
        """Return the number of 128-bit lanes of a vector register."""
        return self.renderer.width // self.renderer.piece

    def _write_blocks(
        self, blocks: int, count: str, a: str, x: str, start: str, group: str, rows: str
    ) -> None:
        """Append the sums of `blocks` blocks of each row, from k = `start` on.

        Neighbouring lanes have blocks if there are enough, else rows; likewise 128-bit lanes.
        """
        r, w, piece = self.renderer, self.w, self.renderer.piece
        group_rows = r.width // blocks
        block, row = (1, 0), (0, 1)  # strides between lanes
        if blocks >= piece:
            near, far = block, (piece, 0) if blocks == r.width else row
        else:
            near, far = row, block if blocks > 1 else (0, piece)
        row_bytes, block_bytes = ((piece if far == x else 1) * r.size for x in (row, block))
        x_strides = [w.i64("mul", str(i * BLOCK), "%x_step") for i, _ in (near, far)]
        a_near, a_far = (
            w.i64("add", str(i * BLOCK * r.size), w.i64("mul", str(j), "%row"))
            for i, j in (near, far)
        )
        vector = r.move(w, x, (start, "%x_step"))
        w.emit(
            f"call void @{r.letter}pack_vector(i64 {count}, ptr {vector}, i64 %x_step, "
            f"i64 {x_strides[0]}, i64 {x_strides[1]}, ptr {self.packed})"
        )
        matrix = r.move(w, a, (start, str(r.size)))
        is_first = w.let(f"icmp eq i64 {start}, {group}")
        group_stride = w.i64("mul", "%row", str(group_rows))
        prefetches = "%is_large"
        if group_rows > 1:  # if rows are so near that half of what is prefetched is used
            near_bytes = w.i64("mul", count, str(2 * blocks * r.size))
            is_near = w.let(f"icmp ule i64 %row, {near_bytes}")
            prefetches = w.let(f"and i1 %is_large, {is_near}")
        whole, done = w.let(f"udiv i64 {rows}, {group_rows}"), w.counter("0")

        def write_tile(groups: int, first_row: str, first_group: str, skipped: str) -> None:
            """Append the sums of `groups` groups of rows, added to all rows but `skipped`."""
            at = r.move(w, matrix, (first_row, "%row"))
            after = r.move(w, at, (str(groups), group_stride))
            w.emit(
                f"call void @{r.letter}row_sums_{groups}(i64 {count}, ptr {at}, i64 {a_near}, "
                f"i64 {a_far}, i64 {group_stride}, ptr {self.packed}, ptr {self.out}, "
                f"ptr {after}, i1 {prefetches})"
            )
            target = r.move(w, self.target, (first_group, str(group_rows * r.size)))
            w.emit(
                f"call void @{r.letter}add_sums(ptr {self.out}, i64 {groups}, i64 {skipped}, "
                f"i64 {group_rows}, i64 {row_bytes}, i64 {blocks}, i64 {block_bytes}, "
                f"ptr {target}, i1 {is_first})"
            )

        for groups in HEIGHTS:
            with w.loop_from(done, whole, groups) as g:
                write_tile(groups, w.i64("mul", g, str(group_rows)), g, "0")
        left = w.let(f"urem i64 {rows}, {group_rows}")
        with w.if_then(w.let(f"icmp ne i64 {left}, 0")):  # with rows that have their sums already
            skipped = w.i64("sub", str(group_rows), left)
            write_tile(1, w.i64("sub", rows, str(group_rows)), whole, skipped)
