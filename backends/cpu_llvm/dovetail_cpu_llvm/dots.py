"""Products of many pairs of vectors, or of long ones, as machine code.

A lane of a vector register sums one block of BLOCK products, since the products of a block are
added one after the other (`ops.kernel_ops.sum_of_products`). Short vectors are a block each: the
lanes have neighbouring pairs. The lanes of a long pair have its blocks, whose sums are then added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from dovetail.extend import PRODUCT_BLOCK as BLOCK
from dovetail.extend import PRODUCT_BLOCKS

from .ir_writer import FunctionWriter, Slot, fields
from .lines import PIECE_BYTES, Lines, prefetch

if TYPE_CHECKING:
    from .gemm import Renderer

GROUP = BLOCK * PRODUCT_BLOCKS
TASK_PRODUCTS_MIN = 1 << 15  # of the pairs that a thread takes: some 4 us
COPY_PAIR_BYTES_MAX = 512  # neighbours so short are copied first: memory is then read in order
LANES = 16  # pairs of a task are a multiple of it
VECTORS = 2, 1  # of lanes: two sums hide the latency of an addition
PREFETCH_CALLS = 2  # the lanes of the call after the next are prefetched
CHAINS = 4  # sums that are computed side by side where lanes cannot be vectors
# The integers of a call, after three addresses: the length of a vector, the number of pairs along
# the last axis of the stack, strides in bytes from lane to lane (pair) and along k, the pairs of a
# task, and the tasks of an axis. Then, for each other axis, its extent and three strides.
PAIR_STRIDES, STEPS = ("a_pair", "b_pair", "c_pair"), ("a_step", "b_step")
INTS = ("k", "pairs", *PAIR_STRIDES, *STEPS, "chunk", "across", "rank")


def choose_tasks(
    k: int, stack: Sequence[tuple[int, ...]], steps: tuple[int, int]
) -> tuple[tuple[int, ...], int]:
    """Return the integers of a call, and its number of tasks.

    stack: the extent and three strides in bytes of each axis, the last one first.
    steps: strides in bytes along the vectors.
    """
    pairs, *strides = stack[0] if stack else (1, 0, 0, 0)
    chunk = min(pairs, -(-TASK_PRODUCTS_MIN // (k * LANES)) * LANES if k <= BLOCK else 1)
    across, others = -(-pairs // chunk), stack[1:]
    ints = [k, pairs, *strides, *steps, chunk, across, len(others)]
    for axis in others:
        ints += axis
    return tuple(ints), across * math.prod(axis[0] for axis in others)


def render(renderer: Renderer) -> list[str]:
    """Return the IR of the kernel and its function, for the dtype of a renderer."""
    return [_render_block_sums(renderer), _render_kernel(renderer)]


def _render_block_sums(r: Renderer) -> str:
    """Return the function that sums `count` products in each of `valid` lanes into %out.

    The lanes are vectors if they fill two or one of them; else they are computed one by one.
    """
    w = r.writer()

    def are_neighbours(vectors: int, x: str, y: str) -> str:
        """Append the test that lanes fill some vectors and two strides are those of neighbours."""
        same = [w.let(f"icmp eq i64 {stride}, {r.size}") for stride in (x, y)]
        are_full = w.let(f"icmp eq i64 %valid, {vectors * r.width}")
        return w.let(f"and i1 {are_full}, {w.let(f'and i1 {same[0]}, {same[1]}')}")

    end = w.new_label()
    for vectors in VECTORS:
        sums = [w.slot(r.type, "zeroinitializer") for _ in range(vectors)]
        for axis, write in (("pair", _write_vectors), ("step", _write_lines)):
            condition = are_neighbours(vectors, f"%a_{axis}", f"%b_{axis}")
            with r.last_case(w, condition, end):
                write(r, w, sums)
                for i, slot in enumerate(sums):
                    r.store(w, w.load(slot), r.move(w, "%out", (str(i), str(r.native))))
    lane = w.counter("0")
    for chains in range(CHAINS, 0, -1):
        with w.loop_from(lane, "%valid", chains) as first:
            _write_chains(r, w, first, chains)
    w.enter_block(end)
    parameters = (
        "i64 %valid, i64 %count, ptr %a, i64 %a_pair, i64 %a_step, ptr %b, i64 %b_pair, "
        "i64 %b_step, ptr %out"
    )
    return r.function("block_sums", parameters, w, "internal ")


def _write_vectors(r: Renderer, w: FunctionWriter, sums: Sequence[Slot]) -> None:
    """Append the sums of lanes whose elements are contiguous at each k."""
    with w.loop("0", "%count") as k:
        starts = [r.move(w, f"%{m}", (k, f"%{m}_step")) for m in "ab"]
        for i, slot in enumerate(sums):
            step = (str(i), str(r.native))
            r.fma(w, slot, *[r.load(w, r.move(w, start, step)) for start in starts])


def _write_lines(r: Renderer, w: FunctionWriter, sums: Sequence[Slot]) -> None:
    """Append the sums of lanes that are contiguous along k, and prefetches for a later call."""
    k, lanes = w.counter("0"), len(sums) * r.width
    ahead = {m: r.move(w, f"%{m}", (str(PREFETCH_CALLS * lanes), f"%{m}_pair")) for m in "ab"}
    far = {m: w.i64("mul", f"%{m}_pair", str(r.piece)) for m in "ab"}
    pairs = [
        [
            Lines(r, w, r.move(w, f"%{m}", (str(first), f"%{m}_pair")), f"%{m}_pair", far[m])
            for m in "ab"
        ]
        for first in range(0, lanes, r.width)
    ]
    with w.loop_from(k, "%count", r.piece) as i:
        for start in ahead.values():
            prefetch(w, r.move(w, start, (i, str(lanes * r.size))), lanes * PIECE_BYTES)
        for slot, (a, b) in zip(sums, pairs, strict=True):
            for x, y in zip(a.load(), b.load(), strict=True):
                r.fma(w, slot, x, y)
            for lines in (a, b):
                lines.advance(str(PIECE_BYTES))
    with w.loop_from(k, "%count", 1):
        for slot, (a, b) in zip(sums, pairs, strict=True):
            r.fma(w, slot, a.gather(), b.gather())
            for lines in (a, b):
                lines.advance(str(r.size))


def _write_chains(r: Renderer, w: FunctionWriter, first: str, chains: int) -> None:
    """Append the sums of `chains` lanes as independent scalar chains."""
    real, align = r.real, f"align {r.size}"
    sums = [w.slot(real, "0.0") for _ in range(chains)]
    lanes = [w.i64("add", first, str(i)) for i in range(chains)]
    starts = [[r.move(w, f"%{m}", (lane, f"%{m}_pair")) for m in "ab"] for lane in lanes]
    with w.loop("0", "%count") as k:
        for slot, pair in zip(sums, starts, strict=True):
            x, y = (
                w.let(f"load {real}, ptr {r.move(w, start, (k, f'%{m}_step'))}, {align}")
                for start, m in zip(pair, "ab", strict=True)
            )
            arguments = f"{real} {x}, {real} {y}, {real} {w.load(slot)}"
            w.store(slot, w.let(f"call {real} @llvm.fma.f{8 * r.size}({arguments})"))
    for lane, slot in zip(lanes, sums, strict=True):
        w.emit(
            f"store {real} {w.load(slot)}, ptr {r.move(w, '%out', (lane, str(r.size)))}, {align}"
        )


def _render_kernel(r: Renderer) -> str:
    """Return the kernel: the tasks %begin..%end-1, some pairs of vectors each."""
    w, lanes = r.writer(), VECTORS[0] * r.width
    w.entry.append(fields("slots", [*[f"i64 w{i}" for i in range(3)], *[f"i64 {n}" for n in INTS]]))
    for number, m in enumerate("abc"):
        w.entry.append(f"  %{m} = inttoptr i64 %w{number} to ptr")
    sums = w.alloca(r.real, lanes)
    copies = [w.alloca("i8", lanes * COPY_PAIR_BYTES_MAX) for _ in "ab"]
    are_results_near = w.let(f"icmp eq i64 %c_pair, {r.size}")
    is_short = w.let(f"icmp sle i64 %k, {BLOCK}")
    with w.loop("%begin", "%end") as task:
        item = w.slot("i64", w.let(f"udiv i64 {task}, %across"))
        first = w.i64("mul", w.let(f"urem i64 {task}, %across"), "%chunk")
        stop = w.min_i64("%pairs", w.i64("add", first, "%chunk"))
        a, b, c = r.find_item(w, item, 3 + len(INTS))
        short_stop, start = w.select_i64(is_short, stop, first), w.counter(first)
        with w.loop_from(start, short_stop, lanes, full_steps=False) as pair:
            valid = w.min_i64(str(lanes), w.i64("sub", stop, pair))
            x, y = (
                _copy_if_short(r, w, m, r.move(w, start, (pair, f"%{m}_pair")), valid, copy)
                for m, start, copy in zip("ab", (a, b), copies, strict=True)
            )
            is_whole = w.let(f"icmp eq i64 {valid}, {lanes}")
            is_direct = w.let(f"and i1 {are_results_near}, {is_whole}")
            at = r.move(w, c, (pair, "%c_pair"))
            out = w.let(f"select i1 {is_direct}, ptr {at}, ptr {sums}")
            _call_block_sums(r, w, valid, "%k", (x, "%a_pair"), (y, "%b_pair"), out)
            with w.loop("0", w.select_i64(is_direct, "0", valid)) as i:
                source = r.move(w, sums, (i, str(r.size)))
                r.copy_element(w, source, r.move(w, at, (i, "%c_pair")))
        with w.loop(w.select_i64(is_short, stop, first), stop) as pair:
            x, y = r.move(w, a, (pair, "%a_pair")), r.move(w, b, (pair, "%b_pair"))
            _write_long_pair(r, w, (x, y), r.move(w, c, (pair, "%c_pair")), sums)
    return r.function("dots", "ptr %slots, i64 %begin, i64 %end", w)


def _copy_if_short(
    r: Renderer, w: FunctionWriter, m: str, start: str, valid: str, copy: str
) -> str:
    """Append a copy of adjacent short vectors if it pays; return the address to read from."""
    is_short = w.let(f"icmp eq i64 %{m}_step, {r.size}")
    for test in (
        f"icmp sgt i64 %{m}_pair, 0",
        f"icmp sle i64 %{m}_pair, {COPY_PAIR_BYTES_MAX}",
        f"icmp sle i64 %k, {COPY_PAIR_BYTES_MAX // r.size}",
    ):
        is_short = w.let(f"and i1 {is_short}, {w.let(test)}")
    last = w.i64("mul", w.i64("sub", valid, "1"), f"%{m}_pair")
    nbytes = w.i64("add", last, w.i64("mul", "%k", str(r.size)))
    stop, at = w.select_i64(is_short, nbytes, "0"), w.counter("0")
    with w.loop_from(at, stop, r.native) as i:
        r.store(w, r.load(w, r.move(w, start, (i, "1"))), r.move(w, copy, (i, "1")))
    with w.loop_from(at, stop, r.size) as i:
        r.copy_element(w, r.move(w, start, (i, "1")), r.move(w, copy, (i, "1")))
    return w.let(f"select i1 {is_short}, ptr {copy}, ptr {start}")


def _write_long_pair(
    r: Renderer, w: FunctionWriter, pair: tuple[str, str], result: str, sums: str
) -> None:
    """Append the product of two vectors of several blocks, group by group."""
    block_steps = [w.i64("mul", f"%{m}_step", str(BLOCK)) for m in "ab"]
    total, group_total = w.slot(r.real, "0.0"), w.slot(r.real, "0.0")
    with w.loop("0", "%k", GROUP, full_steps=False) as group:
        stop, start = w.min_i64("%k", w.i64("add", group, str(GROUP))), w.counter(group)

        def add_blocks(blocks: str, count: str, k: str) -> None:
            """Append the sums of blocks from `k` on, and their additions to the group's."""
            (a, b), (x, y) = pair, block_steps
            a, b = r.move(w, a, (k, "%a_step")), r.move(w, b, (k, "%b_step"))
            _call_block_sums(r, w, blocks, count, (a, x), (b, y), sums)
            is_start = w.let(f"icmp eq i64 {k}, {group}")
            with w.loop("0", blocks) as i:
                at = r.move(w, sums, (i, str(r.size)))
                value = w.let(f"load {r.real}, ptr {at}, align {r.size}")
                is_first = w.let(f"and i1 {is_start}, {w.let(f'icmp eq i64 {i}, 0')}")
                _add_sum(r, w, group_total, value, is_first)

        for vectors in VECTORS:
            lanes = vectors * r.width
            with w.loop_from(start, stop, BLOCK * lanes) as k:
                add_blocks(str(lanes), str(BLOCK), k)
        blocks = w.let(f"udiv i64 {w.i64('sub', stop, w.load(start))}, {BLOCK}")
        with w.if_then(w.let(f"icmp ne i64 {blocks}, 0")):
            add_blocks(blocks, str(BLOCK), w.load(start))
            w.store(start, w.i64("add", w.load(start), w.i64("mul", blocks, str(BLOCK))))
        left = w.i64("sub", stop, w.load(start))
        with w.if_then(w.let(f"icmp ne i64 {left}, 0")):
            add_blocks("1", left, w.load(start))
        _add_sum(r, w, total, w.load(group_total), w.let(f"icmp eq i64 {group}, 0"))
    w.emit(f"store {r.real} {w.load(total)}, ptr {result}, align {r.size}")


def _add_sum(r: Renderer, w: FunctionWriter, total: Slot, value: str, is_first: str) -> None:
    """Append the addition of a value to a total; the first value replaces the total."""
    added = w.let(f"fadd {r.real} {w.load(total)}, {value}")
    w.store(total, w.let(f"select i1 {is_first}, {r.real} {value}, {r.real} {added}"))


def _call_block_sums(
    r: Renderer,
    w: FunctionWriter,
    valid: str,
    count: str,
    a: tuple[str, str],
    b: tuple[str, str],
    out: str,
) -> None:
    """Append a call of `block_sums`; `a`, `b`: addresses, and strides from lane to lane."""
    w.emit(
        f"call void @{r.letter}block_sums(i64 {valid}, i64 {count}, ptr {a[0]}, i64 {a[1]}, "
        f"i64 %a_step, ptr {b[0]}, i64 {b[1]}, i64 %b_step, ptr {out})"
    )
