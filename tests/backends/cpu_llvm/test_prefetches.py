"""Prefetches of data outside of the caches, and values that are computed before all tiles."""

from __future__ import annotations

import re

import dovetail as dt
import numpy as np
import pytest
from dovetail.ir.parser import parse_kernel
from dovetail_cpu_llvm.memory_ops import PREFETCH_BYTES
from dovetail_cpu_llvm.reduction import PREFETCH_BYTES_MIN
from dovetail_cpu_llvm.render import render
from dovetail_cpu_llvm.schedule import STREAM_BYTES_MIN, schedule

SCALED = """kernel scaled(out0: w f32, in1: r f32; n0, s1; c0: f32, c1: f32) grid(n0) {
  v0: b8 = ne c1, c1
  v1: i64 = mul i0, s1
  v2: f32 = load in1[v1]
  v3: f32 = mul v2, c0
  v4: f32 = where v0, c1, v3
  store out0[i0] = v4
}"""
ROW_SUM = """kernel row_sum(out0: w f32, in1: r f32; n0, m1; ) grid(n0) {
  v0: i64 = mul i0, m1
  reduce add k0 in i64(0)..m1 -> r0: f32 {
    v1: i64 = add v0, k0
    v2: f32 = load in1[v1]
    yield v2
  }
  store out0[i0] = r0
}"""


def render_text(text: str) -> str:
    """Return the LLVM IR of a kernel, for a CPU with AVX-512."""
    kernel = parse_kernel(text)
    return render(kernel, schedule(kernel, 64))


def prefetched_offsets(ir: str) -> set[int]:
    """Return the distances in bytes from a contiguous load to its prefetches' start."""
    return set(map(int, re.findall(rf"getelementptr i8, ptr \S+, i64 (-?{PREFETCH_BYTES})", ir)))


def test_contiguous_and_reversed_loads_prefetch() -> None:
    ahead = prefetched_offsets(render_text(SCALED))
    assert -PREFETCH_BYTES in ahead
    contiguous = render_text(SCALED.replace("[v1]", "[i0]"))
    assert prefetched_offsets(contiguous) == {PREFETCH_BYTES}


@pytest.mark.parametrize(
    ("text", "bytes_min"),
    [(SCALED.replace("[v1]", "[i0]"), STREAM_BYTES_MIN), (ROW_SUM, PREFETCH_BYTES_MIN)],
    ids=["map", "sum"],
)
def test_prefetches_are_skipped_for_data_in_caches(text: str, bytes_min: int) -> None:
    ir = render_text(text)
    assert prefetched_offsets(ir) == {PREFETCH_BYTES}
    condition = re.search(rf"(%\S+) = icmp uge i64 %\S+, {bytes_min}", ir)
    assert condition
    block = ir[: ir.index(f"i64 {PREFETCH_BYTES}\n")].rpartition("\n  br ")[2]
    assert block.startswith("i1 %")  # the block with the prefetch is entered by a branch


def test_values_of_scalars_are_computed_before_the_tiles() -> None:
    ir = render_text(SCALED)
    head, _, tiles = ir.partition("tiles:\n")[2].partition("  br ")
    assert "fcmp une float" in head
    assert "fcmp une float" not in tiles


def test_quotients_of_scalars_stay_in_the_tiles() -> None:
    """A launch without points must not divide by an extent of 0."""
    ir = render_text(SCALED.replace("mul i0, s1", "quo n0, s1"))
    head, _, tiles = ir.partition("tiles:\n")[2].partition("  br ")
    assert "sdiv" not in head
    assert "sdiv" in tiles


def test_large_reversed_results_and_sums_keep_their_bits() -> None:
    values = np.random.default_rng(3).random(STREAM_BYTES_MIN // 4 + 77, dtype="f4")
    x = dt.asarray(values, device="cpu")
    np.testing.assert_array_equal((x * x[::-1]).numpy(), values * values[::-1])
    rows = dt.reshape(x[: 1 << 23], (1 << 9, 1 << 14))
    small = [dt.sum(rows[i : i + 1], axis=1) for i in (0, 5, 511)]
    np.testing.assert_array_equal(
        dt.sum(rows, axis=1).numpy()[[0, 5, 511]], np.concatenate([s.numpy() for s in small])
    )
