"""Interval analysis of the elements that a kernel reads and writes."""

from __future__ import annotations

import pytest
from dovetail.ir.interval_analysis import UnboundedIndexError, index_intervals
from dovetail.ir.parser import parse_kernel

GATHER = """
kernel gather(out0: w f32, in1: r i64, in2: r f32, out3: w i64; n0, n1, s2; ) grid(n0) {
  v0: i64 = load in1[i0]
  v1: b8 = lt v0, i64(0)
  v2: i64 = add v0, n1
  v3: i64 = where v1, v2, v0
  v4: b8 = le i64(0), v3
  v5: b8 = lt v3, n1
  v6: b8 = and v4, v5
  v7: i64 = mul v3, s2
  v8: f32 = load in2[v7] if v6
  store out0[i0] = v8
  v9: b8 = not v6
  store out3[i64(0)] = v0 if v9
}"""
ROWS = """
kernel sum(out0: w f32, in1: r f32; n0, m1, s2; ) grid(n0) {
  v0: i64 = mul i0, s2
  reduce add k0 in i64(0)..m1 -> r0: f32 {
    v1: i64 = add v0, k0
    v2: f32 = load in1[v1]
    yield v2
  }
  store out0[i0] = r0
}"""


def test_reach_of_row_indices() -> None:
    kernel = parse_kernel(ROWS.strip())
    assert index_intervals(kernel, (4, 3, 5), (4,)) == {"in1": (0, 17), "out0": (0, 3)}
    assert index_intervals(kernel, (4, 3, -5), (4,)) == {"in1": (-15, 2), "out0": (0, 3)}
    assert index_intervals(kernel, (4, 0, 5), (4,)) == {"out0": (0, 3)}
    assert index_intervals(kernel, (0, 3, 5), (0,)) == {}


def test_reach_of_compared_indices() -> None:
    found = index_intervals(parse_kernel(GATHER.strip()), (6, 9, 2), (6,))
    assert found == {"in1": (0, 5), "in2": (0, 16), "out0": (0, 5), "out3": (0, 0)}


@pytest.mark.parametrize("line", ["  v4: b8 = le i64(0), v3", "  v5: b8 = lt v3, n1"])
def test_reach_of_indices_without_comparison_is_unbounded(line: str) -> None:
    name = line.split(":")[0].strip()
    text = GATHER.replace(line, f"  {name}: b8 = eq i64(0), i64(0)").strip()
    kernel = parse_kernel(text)
    try:
        low, high = index_intervals(kernel, (6, 9, 2), (6,))["in2"]
    except UnboundedIndexError:
        return
    assert low < -(2**40) or high > 2**40


def test_reach_of_a_product_that_may_overflow_is_unbounded() -> None:
    text = ROWS.replace("add v0, k0", "mul v0, v0").strip()
    with pytest.raises(UnboundedIndexError):
        index_intervals(parse_kernel(text), (1 << 40, 3, 1 << 40), (1 << 40,))
