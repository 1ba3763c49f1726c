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

if TYPE_CHECKING:
    from .gemm import Renderer

GROUP = BLOCK * PRODUCT_BLOCKS
TASK_PRODUCTS_MIN = 1 << 15  # of the pairs that a thread takes: some 4 us
COPY_PAIR_BYTES_MAX = 512  # neighbours so short are copied first: memory is then read in order
LANES = 16  # pairs of a task are a multiple of it
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
    """Return the function that sums `count` products in each of `valid` lanes into %out."""
    w, size = r.writer(), str(r.size)
    is_full = w.let(f"icmp eq i64 %valid, {r.width}")

    def all_are_size(x: str, y: str) -> str:
        """Append the test that all lanes are in use and two strides are those of neighbours."""
        same = [w.let(f"icmp eq i64 {stride}, {size}") for stride in (x, y)]
        return w.let(f"and i1 {is_full}, {w.let(f'and i1 {same[0]}, {same[1]}')}")

    end, sums, start = w.new_label(), w.slot(r.type, "zeroinitializer"), w.counter("0")
    own = r.packers[0]
    with r.last_case(w, all_are_size("%a_pair", "%b_pair"), end):
        with w.loop("0", "%count") as k:
            x, y = (r.load(w, r.move(w, f"%{m}", (k, f"%{m}_step"))) for m in "ab")
            r.fma(w, sums, x, y)
        r.store(w, w.load(sums), "%out")
    with r.last_case(w, all_are_size("%a_step", "%b_step"), end):
        with w.loop_from(start, "%count", r.width) as k:
            squares = [r.load_turned(w, f"%{m}", k, f"%{m}_pair", own) for m in "ab"]
            for x, y in zip(*squares, strict=True):
                r.fma(w, sums, x, y)
        with w.loop_from(start, "%count", 1) as k:
            x, y = (r.gather(w, f"%{m}", k, f"%{m}_pair", own) for m in "ab")
            r.fma(w, sums, x, y)
        r.store(w, w.load(sums), "%out")
    lane = w.counter("0")
    for chains in (CHAINS, 1):
        with w.loop_from(lane, "%valid", chains) as first:
            _write_chains(r, w, first, chains)
    w.enter_block(end)
    parameters = (
        "i64 %valid, i64 %count, ptr %a, i64 %a_pair, i64 %a_step, ptr %b, i64 %b_pair, "
        "i64 %b_step, ptr %out"
    )
    return r.function("block_sums", parameters, w, "internal ")


def _write_chains(r: Renderer, w: FunctionWriter, first: str, chains: int) -> None:
    """Append the sums of some lanes as scalars, side by side."""
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
    w = r.writer()
    w.entry.append(fields("slots", [*[f"i64 w{i}" for i in range(3)], *[f"i64 {n}" for n in INTS]]))
    for number, m in enumerate("abc"):
        w.entry.append(f"  %{m} = inttoptr i64 %w{number} to ptr")
    sums = w.alloca(r.real, r.width)
    copies = [w.alloca("i8", r.width * COPY_PAIR_BYTES_MAX) for _ in "ab"]
    are_results_near = w.let(f"icmp eq i64 %c_pair, {r.size}")
    is_short = w.let(f"icmp sle i64 %k, {BLOCK}")
    with w.loop("%begin", "%end") as task:
        item = w.slot("i64", w.let(f"udiv i64 {task}, %across"))
        first = w.i64("mul", w.let(f"urem i64 {task}, %across"), "%chunk")
        stop = w.min_i64("%pairs", w.i64("add", first, "%chunk"))
        a, b, c = r.find_item(w, item, 3 + len(INTS))
        short_stop, start = w.select_i64(is_short, stop, first), w.counter(first)
        with w.loop_from(start, short_stop, r.width, full_steps=False) as pair:
            valid = w.min_i64(str(r.width), w.i64("sub", stop, pair))
            x, y = (
                _copy_if_short(r, w, m, r.move(w, start, (pair, f"%{m}_pair")), valid, copy)
                for m, start, copy in zip("ab", (a, b), copies, strict=True)
            )
            is_whole = w.let(f"icmp eq i64 {valid}, {r.width}")
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
    """Append a copy of neighbouring short vectors; return their address, or that of the copy."""
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
    a_block, b_block = (w.i64("mul", f"%{m}_step", str(BLOCK)) for m in "ab")
    total, group_total = w.slot(r.real, "0.0"), w.slot(r.real, "0.0")
    with w.loop("0", "%k", GROUP, full_steps=False) as group:
        stop = w.min_i64("%k", w.i64("add", group, str(GROUP)))
        with w.loop(group, stop, BLOCK * r.width, full_steps=False) as k:
            left = w.i64("sub", stop, k)
            whole = w.min_i64(str(r.width), w.let(f"udiv i64 {left}, {BLOCK}"))
            x, y = (r.move(w, m, (k, f"%{n}_step")) for m, n in zip(pair, "ab", strict=True))
            _call_block_sums(r, w, whole, str(BLOCK), (x, a_block), (y, b_block), sums)
            last = w.i64("sub", left, w.i64("mul", whole, str(BLOCK)))
            has_last = w.let(f"icmp slt i64 {whole}, {r.width}")
            has_last = w.let(f"and i1 {has_last}, {w.let(f'icmp ne i64 {last}, 0')}")
            with w.if_then(has_last):
                a, b = ((r.move(w, m, (whole, s)), s) for m, s in ((x, a_block), (y, b_block)))
                at = r.move(w, sums, (whole, str(r.size)))
                _call_block_sums(r, w, "1", last, a, b, at)
            count = w.i64("add", whole, w.let(f"zext i1 {has_last} to i64"))
            with w.loop("0", count) as i:
                at = r.move(w, sums, (i, str(r.size)))
                is_first = w.let(f"icmp eq i64 {w.i64('add', k, i)}, {group}")
                _add_sum(
                    r, w, group_total, w.let(f"load {r.real}, ptr {at}, align {r.size}"), is_first
                )
        _add_sum(r, w, total, w.load(group_total), w.let(f"icmp eq i64 {group}, 0"))
    w.emit(f"store {r.real} {w.load(total)}, ptr {result}, align {r.size}")


def _add_sum(r: Renderer, w: FunctionWriter, total: Slot, value: str, is_first: str) -> None:
    """Append the addition of a value to a total; the first one starts it."""
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
