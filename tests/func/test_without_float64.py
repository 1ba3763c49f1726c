"""Every public function on a device without float64: the bits of a device that has it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np
import optree
import partial_devices
import pytest
from test_every_function import cases, inputs, value

pytest.importorskip("dovetail_cpu_llvm")
import flushing_cpu

NEED_FLOAT64 = ("dt.float64", "dt.float_power")  # the result has this dtype
LINES = [
    expression
    for expression, words in cases()
    if not words.startswith("!") and not any(name in expression for name in NEED_FLOAT64)
]
METHODS = (
    "linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf", "averaged_inverted_cdf",
    "closest_observation", "interpolated_inverted_cdf", "hazen", "weibull", "median_unbiased",
    "normal_unbiased",
)  # fmt: skip
# n: float32 (3, 50) with NaNs, and one row of NaNs alone; f: a NumPy array of float64 (6,);
# q: int32 (3, 50)
MORE = [
    *[f"dt.quantile(n, 0.3, axis=1, method={method!r})" for method in METHODS],
    *[f"dt.nanquantile(n, [0.0, 0.1, 0.77, 1], axis=1, method={method!r})" for method in METHODS],
    "dt.nanmedian(n, axis=0)", "dt.nanpercentile(n, 30, keepdims=True)",
    "dt.median(t, axis=(0, 2))",
    "dt.quantile(x.astype(dt.float16), 0.3)", "dt.nanquantile(x.astype(dt.bfloat16), 0.7)",
    "dt.median(dt.tile(x, 20000))", "dt.median(i)", "dt.quantile(i.astype(dt.int32), [0.3, 0.5])",
    "dt.nanmedian(i)", "dt.jit(dt.median)(x)", "dt.jit(dt.nanmedian)(x)",
    "dt.vmap(dt.nanmedian)(n)", "dt.func.grad(lambda x: dt.nanquantile(x, 0.3))(x)",
    "dt.quantile(x, 0.3, weights=u, method='inverted_cdf')",
    "dt.nanquantile(n, [0.2, 0.5], axis=1, weights=dt.abs(n), method='inverted_cdf')",
    "dt.interp(x, [0, 2, 4], [1.0, 2.0, 3.0])", "dt.interp(i, x.sort(), y, period=3)",
    "dt.searchsorted(x.sort(), i)", "dt.searchsorted(x, i, sorter=dt.argsort(x), side='right')",
    "dt.digitize(x, [0, 1, 2])", "dt.searchsorted(dt.sort(i), y)", "dt.searchsorted(x.sort(), y)",
    "dt.average(x, weights=[1, 2, 3, 4, 5, 6])", "dt.average(x, weights=i, returned=True)",
    "dt.random.choice(6, 4, p=u / u.sum())", "dt.random.choice(x, 3, p=u / u.sum(), replace=False)",
    "dt.random.poisson(3.0, 5)", "dt.random.poisson(u * 50, dtype=dt.float32)",
    "dt.random.binomial(100, u)", "dt.random.binomial(i, 0.3)", "dt.multinomial(m * m, 2)",
    "dt.distributions.Poisson(u).sample((2,))", "dt.distributions.Multinomial(5, u).sample((2,))",
    "dt.geomspace(1, 81, 5, device=x.device)", "dt.logspace(0, 3, 4, dtype=dt.int32)",
    *[f"dt.asarray(f, dtype=dt.{d})" for d in ("float32", "float16", "bfloat16", "int8", "bool")],
    "dt.asarray(f + 1j, dtype=dt.complex64)",
    "dt.asarray(dt.asarray(f, device='cpu'), x.dtype, device=x.device)",
    "dt.asarray(f, device='cpu').to(x.device, dt.float32)", "dt.asarray(f[2], dtype=dt.float32)",
    "dt.asarray(dt.asarray(f, device='cpu'), dt.int64, device=x.device)",
    "dt.asarray(dt.asarray(f + 1j, device='cpu'), dt.complex64, device=x.device)",
    "dt.asarray(x, dt.float64, device='cpu').to(x.device, dt.float32)",
    "i.to('cpu', dt.float64).astype(dt.int32, device=x.device)",
    "x.astype(dt.float64, device='cpu').to(x.device, dt.float32)",
    "dt.nn.functional.affine_grid(m[None, :2, :3], (1, 1, 2, 2), align_corners=False)",
    *[f"dt.{f}(q, axis=1, where=q > 3)" for f in ("mean", "var", "std", "nanmean")],
    *[f"dt.{f}(q, axis=1, correction=1)" for f in ("var", "std", "nanvar", "nanstd")],
    "q.var(axis=0)", "q.std(keepdims=True)", "dt.var(q.astype(dt.uint64))", "dt.var(q > 0)",
    "dt.vmap(dt.var)(q)", "dt.logsumexp(q, axis=1)", "q.logsumexp()",
    "dt.std(q.to_sparse())", "[dt.var(q + k) for k in range(4)]",
    "dt.gradient(q, axis=1)", "dt.gradient(q, 2.0)", "dt.gradient(i, i * 2, edge_order=2)",
    "dt.gradient(q, axis=1, edge_order=2)", "dt.gradient(x, dt.arange(6, dtype=dt.int64))",
    "dt.cov(q)", "dt.cov(q[0], n[0])", "dt.cov(q, fweights=q[0] * q[0], aweights=q[1] * q[1])",
    "dt.func.grad(lambda w: dt.cov(i, aweights=w))(u)",
    "dt.func.grad(lambda h: dt.sum(dt.gradient(i, h)))(x)", "dt.cov(x, i)",
    "dt.cov(x, f.astype(int))", "dt.corrcoef(q)", "dt.corrcoef(q > 0)",
    "dt.isclose(q, q + 1)", "dt.isclose(x, i, equal_nan=True)", "dt.isclose(i, 1.5, rtol=0.5)",
    "dt.isclose(x, f.astype(int))", "dt.allclose(q, q)", "dt.allclose(q > 0, x[0])",
    *[f"dt.pad(q, 3, mode={mode!r})" for mode in ("linear_ramp", "mean", "median", "maximum")],
    "dt.pad(q > 0, 2, mode='mean')", "dt.pad(q, 3, mode='linear_ramp', end_values=-7)",
    "dt.histc(q, 7, -20, 20)", "dt.histc(q.astype(dt.int8))", "dt.histogram(q, y.sort())",
    "dt.histogram(x, dt.sort(i), weights=i)", "dt.histogram(i, y.sort(), density=True)",
    "dt.histogram(x, 3, weights=i)", "dt.histogram2d(i, x, (x.sort(), y.sort()))",
]  # fmt: skip


@pytest.fixture(scope="module")
def device() -> Iterator[dt.Device]:
    """Return a CPU that declares no float64, and has no companion."""
    with partial_devices.installed(flushing_cpu.CpuWithoutFloat64) as (device,):
        yield device


def bits(expression: str, device: dt.Device | str) -> list[Any]:
    """Return shape, dtype and bytes of each result of an expression on a device."""
    with dt.device(device), dt.vendor_products(False):
        many, shared = inputs(dt.default_device())
        rows = np.random.default_rng(3).standard_normal((3, 50)).astype("f4")
        names = {**{k: v[0] for k, v in many.items()}, **shared}
        names["q"] = dt.asarray((rows * 20).astype("i4"))
        rows[0, ::3] = rows[1] = np.nan
        names["n"] = dt.asarray(rows)
        dt.random.manual_seed(3)
        results = optree.tree_leaves(value(expression, {**names, "f": np.linspace(-3, 300, 6)}))
        assert all(t.device == dt.default_device() for t in results if isinstance(t, dt.Tensor))
        return [
            (t.shape, t.dtype, t.view(dt.uint8).tolist() if t.ndim else t.item())
            if isinstance(t, dt.Tensor) and t.dtype is dt.bfloat16
            else (t.shape, t.dtype, t.numpy().tobytes())
            if isinstance(t, dt.Tensor)
            else repr(t)
            for t in results
        ]


@pytest.mark.parametrize("expression", [*LINES, *MORE])
def test_function_has_the_same_bits_without_float64(expression: str, device: dt.Device) -> None:
    assert bits(expression, device) == bits(expression, "cpu")


def test_captured_function_of_integers_runs_without_float64(device: dt.Device) -> None:
    x = dt.asarray([1, 2, 4], device=device)
    with pytest.warns(dt.DovetailWarning, match="the host reads a tensor"):
        result = dt.jit(dt.var)(x)
    assert result.device is device and result.item() == dt.var(x.to("cpu")).item()


def test_float64_itself_is_refused_by_name(device: dt.Device) -> None:
    with pytest.raises(dt.DTypeError, match="float64"):
        dt.zeros(3, dtype=dt.float64, device=device).numpy()


@pytest.mark.parametrize("expression", [
    "dt.average(x, weights=other)", "dt.quantile(x, 0.3, weights=other, method='inverted_cdf')",
    "dt.random.binomial(i, other)", "dt.searchsorted(i, other)", "dt.interp(i, x, other)",
])  # fmt: skip
def test_operands_of_two_devices_are_refused(expression: str) -> None:
    x, i = dt.ones(6), dt.arange(6)
    with pytest.raises(dt.DeviceError, match="reference"):
        value(expression, {"x": x, "i": i, "other": dt.ones(6, device="reference")}).numpy()
