"""Schedules of kernels with guards for subnormals: the bits of the CPU, on one that flushes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import flushing_cpu
import numpy as np
import partial_devices
import pytest
from dovetail.ir.analysis import is_branch
from dovetail.ir.language import Loop
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail_cpu_llvm.schedule import CpuSchedule, schedule

SHAPES = ((1, 1), (5, 33), (31, 64), (33, 65), (64, 17), (129, 1100), (300, 130), (4100, 70))
CASES: dict[str, Callable[[dt.Tensor], dt.Tensor]] = {
    "sums of columns": lambda x: dt.sum(x, axis=0),
    "means of squares of columns": lambda x: dt.mean(x * x, axis=0),
    "maxima of columns": lambda x: dt.max(x, axis=0),
    "sums of rows": lambda x: dt.sum(x, axis=1),
    "products of rows": lambda x: dt.prod(x * 3, axis=1),
    "maxima of rows": lambda x: dt.max(x * 0.5, axis=1),
    "transposed": lambda x: x.T * 0.5 + x.T[::-1],
    "sum of transposed": lambda x: x[: x.shape[1], : x.shape[0]] + x.T[: x.shape[0], : x.shape[1]],
    "softmax": lambda x: dt.softmax(x, axis=1),
    "cumulative sum": lambda x: dt.cumulative_sum(x, axis=1),
    "cumulative sum of columns": lambda x: dt.cumulative_sum(x, axis=0),
    "product": lambda x: x @ x.T[:, :40],
    "product of rows": lambda x: x[:40].T @ x[:40],
}  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Iterator[Any]:
    """Return a CPU that flushes subnormal floats, and declares it."""
    with partial_devices.installed(flushing_cpu.FlushingCpu) as (device,):
        yield device


def data(shape: tuple[int, int], kind: str) -> np.ndarray:
    """Return float32 with subnormals: at one place of the edge of each tile, or everywhere."""
    rng = np.random.default_rng(sum(shape))
    x = rng.standard_normal(shape).astype("f4")
    if kind == "everywhere":
        return x * np.exp2(rng.integers(-150, -100, shape)).astype("f4")
    if kind == "small columns":  # subnormal results of normal numbers
        return np.where(np.arange(shape[1]) % 16 == 15, x * np.float32(2.0**-124), x)
    x[-1, -1] = 1e-40
    x[:: max(1, shape[0] - 1), 31::32] = -3e-42
    return x


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", CASES)
def test_schedule_keeps_subnormals(device: Any, name: str, shape: tuple[int, int]) -> None:
    for kind in ("edges", "everywhere", "small columns"):
        x = data(shape, kind)
        expected, found = (CASES[name](dt.asarray(x, device=d)).numpy() for d in ("cpu", device))
        assert expected.tobytes() == found.tobytes(), kind


SUM_OF_COLUMNS = """kernel sum(out0: w f32, in1: r f32; n0, m1, s2; ) grid(n0) {
  reduce add k0 in i64(0)..m1 -> r0: f32 {
    v0: i64 = mul k0, s2
    v1: i64 = add i0, v0
    v2: f32 = load in1[v1]
    yield v2
  }
  store out0[i0] = r0
}"""
PRODUCT = """kernel matmul(in0: r f32, out1: w f32; n0, n1, n2, s3, s4, s5; ) grid(n0, n1) {
  v0: i64 = mul i0, s5
  v1: i64 = add v0, i1
  v2: i64 = mul i0, s3
  fold k0 in i64(0)..n2 carry (c0: f32 = f32(0.0)) -> r0: f32 {
    v3: i64 = add v2, k0
    v4: f32 = load in0[v3]
    v5: i64 = mul k0, s4
    v6: i64 = add v5, i1
    v7: f32 = load in0[v6]
    v8: f32 = fma v4, v7, c0
    yield v8
  }
  store out1[v1] = r0
}"""
SOFTMAX = """kernel softmax(out0: w f32, in1: r f32; n0, m1, s2; ) grid(n0) {
  v0: i64 = mul i0, s2
  reduce add k1 in i64(0)..m1 -> r1: f32 {
    v1: i64 = add v0, k1
    v2: f32 = load in1[v1]
    v3: f32 = fma v2, v2, f32(2.0)
    v4: f32 = fma v3, v2, f32(3.0)
    v5: f32 = mul v4, v3
    v6: f32 = mul v5, v2
    v7: f32 = mul v6, v4
    v16: f32 = mul v7, v6
    v17: f32 = mul v16, v5
    v18: f32 = mul v17, v4
    yield v18
  }
  map k2 in i64(0)..m1 {
    v8: i64 = add v0, k2
    v9: f32 = load in1[v8]
    v10: f32 = fma v9, v9, f32(2.0)
    v11: f32 = fma v10, v9, f32(3.0)
    v12: f32 = mul v11, v10
    v13: f32 = mul v12, v9
    v14: f32 = mul v13, v11
    v19: f32 = mul v14, v13
    v20: f32 = mul v19, v12
    v21: f32 = mul v20, v11
    v15: f32 = div v21, r1
    store out0[v8] = v15
  }
}"""


@pytest.mark.parametrize(
    ("text", "uses"),
    [
        (SUM_OF_COLUMNS, lambda s: s.panel),
        (PRODUCT, lambda s: s.unroll_jam > 1),
        (SOFTMAX, lambda s: len(s.reuses) == 1),
    ],
    ids=("panels", "unroll and jam", "reuse"),
)
def test_guards_keep_the_schedule(text: str, uses: Callable[[CpuSchedule], bool]) -> None:
    kernel = parse_kernel(text)
    guarded = legalize(kernel, Capabilities(denormals=False))
    assert any(isinstance(s, Loop) and is_branch(s) for s in guarded.body)
    assert uses(schedule(kernel, 64)) and uses(schedule(guarded, 64))
