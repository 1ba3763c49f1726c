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
from dovetail_cpu_llvm.schedule import schedule

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


def test_branch_keeps_the_panels_of_reductions_of_columns() -> None:
    guarded = legalize(parse_kernel(SUM_OF_COLUMNS), Capabilities(denormals=False))
    assert any(isinstance(s, Loop) and is_branch(s) for s in guarded.body)
    assert schedule(guarded, 64).panel
