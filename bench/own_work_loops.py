"""Kernels of loops and raw kernels beside others, for `own_work.py`."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import THREADS
from turns import OURS, Row, Work

SIDE, FEW = 2048, 1024


@dt.kernel
def five_point(out: dt.Out, u: dt.In, c: float):
    """The inner points of a plane."""
    n, m = u.shape
    for i, j in dt.grid((1, n - 1), (1, m - 1)):
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + c * (around - 4 * u[i, j])


SCALE = """void scale(float *out, const float *x, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i];
}"""
scale = dt.raw_kernel(SCALE, "cpu", "scale(out: w float32, x: r float32, n: int64, a: float32)")


def _numbas() -> Any:
    """The same text, given to Numba."""
    numba = importlib.import_module("numba")
    numba.set_num_threads(THREADS)

    def plain(out: Any, u: Any, c: Any) -> None:
        n, m = u.shape
        for i in numba.prange(1, n - 1):
            for j in range(1, m - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                out[i, j] = u[i, j] + c * (around - 4 * u[i, j])

    return numba.njit(parallel=True)(plain)


def _stencil(dtype: str) -> Row:
    def make() -> dict[str, Work]:
        a = np.random.default_rng(0).random((SIDE, SIDE)).astype(dtype)
        x, out = dt.asarray(a.copy()), dt.zeros((SIDE, SIDE), dtype=dtype)
        five_point(out, x, 0.1)
        mine = out.numpy().copy()
        out = dt.zeros((SIDE, SIDE), dtype=dtype)  # which nobody else looks at
        works: dict[str, Work] = {OURS: lambda: five_point(out, x, 0.1)}
        if importlib.util.find_spec("numba") is not None:
            theirs, c, other = _numbas(), np.dtype(dtype).type(0.1), np.zeros_like(a)
            theirs(other, a, c)
            if not np.allclose(mine, other, rtol=1e-5):
                raise ArithmeticError("the stencils differ")
            works["numba"] = lambda: theirs(other, a, c)
        return works

    return Row(f"@dt.kernel five-point stencil {SIDE} x {SIDE} {dtype}", make, {"numba": 1.0})


def _raw() -> dict[str, Work]:
    x, out = dt.ones(FEW), dt.zeros(FEW)
    scale(out, x, FEW, 2.0)
    return {OURS: lambda: scale(out, x, FEW, 2.0)}


def rows() -> list[Row]:
    """Those of this file."""
    return [
        _stencil("float32"), _stencil("float64"),
        Row("dt.raw_kernel, a launch in C of 1 K elements", _raw, {"us": 3.0}),
    ]  # fmt: skip
