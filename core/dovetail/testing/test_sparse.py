"""Level 10: sparse tensors: loops whose bounds were loaded, and what the sparse layout makes of
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..autograd import grad
from ..device_class import Device
from ..dtypes import DType, bool_, float16, float32, float64, int32, int64
from ..functions.products.matrix_products import vendor_products
from ..functions.reductions.statistics import max as max_
from ..functions.reductions.statistics import sum as sum_
from ..ir.builder import Kernel, KernelBuilder
from ..ir.language import Value, fold_loop, load
from ..tensor import tensor as T
from ..tensor.host import from_host
from ..tensor.layout_registry import registry
from .kit import Kit
from .test_scalar_ops import param_id
from .values import Array, finite_values, host_dtype

ROWS, COLUMNS, ENTRIES, WIDTH = 61, 47, 900, 9


# --- kernels -------------------------------------------------------------------------------------


def segments(d: DType) -> Kernel:
    """Build out[i] = the sum of x[bounds[i]:bounds[i + 1]], added in order; no segment is empty."""
    b = KernelBuilder("segments")
    x, bounds, out = b.buffer("x", d, "r"), b.buffer("bounds", int64, "r"), b.buffer("out", d, "w")
    i = b.axis(b.int("m"))

    def step(k: Value, total: Value) -> tuple[Value, ...]:
        """Return the total with element `k` added."""
        return (total + load(x, k),)

    start, stop = load(bounds, i), load(bounds, i + 1)
    b.store(out, i, fold_loop(start + 1, stop, (load(x, start),), step).results[0])
    return b.build()


@pytest.mark.parametrize("d", (float32, float64, int32), ids=param_id)
def test_folds_with_loaded_bounds(kit: Kit, d: DType) -> None:
    """Check sums of short and long segments with loaded bounds."""
    rng = np.random.default_rng(0)
    for m, n in ((1, 1), (7, 500), (200, 5000), (193, 400)):
        cuts: Array = np.sort(rng.choice(np.arange(1, max(n, 2)), m - 1, replace=False))
        bounds = np.concatenate([[0], cuts, [n]]).astype("i8")
        kit.check(
            segments(d),
            [finite_values(d, (n,), 1), bounds, np.zeros(m, host_dtype(d))],
            [m],
            (),
            [m],
        )


# --- tensors -------------------------------------------------------------------------------------


def matrix(d: DType, on: Device, seed: int = 0) -> Any:
    """Return a sparse matrix with entries in random order, some positions twice."""
    rng = np.random.default_rng(seed)
    at = np.stack([rng.integers(0, ROWS, ENTRIES), rng.integers(0, COLUMNS, ENTRIES)])
    values = from_host(finite_values(d, (ENTRIES,), seed), d, on)
    make = registry.find("functions", "sparse_coo_tensor")
    return make(from_host(at, int64, on), values, (ROWS, COLUMNS))


def dense(d: DType, on: Device, rows: int) -> T.Tensor:
    """Return a strided tensor of `rows` x WIDTH ordinary values."""
    values: Array = finite_values(d, (rows, WIDTH), 3)
    return from_host(values, d, on)


RESULTS: dict[str, Callable[[DType, Device], T.Tensor]] = {
    "coalesce": lambda d, on: matrix(d, on).coalesce().values(),
    "positions": lambda d, on: matrix(d, on).coalesce().indices(),
    "to dense": lambda d, on: matrix(d, on).to_dense(),
    "union": lambda d, on: (matrix(d, on) + matrix(d, on, 1)).values(),
    "intersection": lambda d, on: (matrix(d, on) * matrix(d, on, 1)).to_dense(),
    "times dense": lambda d, on: matrix(d, on) @ dense(d, on, COLUMNS),
    "dense times": lambda d, on: dense(d, on, ROWS).T @ matrix(d, on),
    "times sparse": lambda d, on: (matrix(d, on) @ matrix(d, on, 1).T).to_dense(),
    "sum of rows": lambda d, on: sum_(matrix(d, on), axis=1).to_dense(),
    "sum of columns": lambda d, on: sum_(matrix(d, on), axis=0).to_dense(),
    "maximum of columns": lambda d, on: max_(matrix(d, on), axis=0).to_dense(),
    "slice": lambda d, on: matrix(d, on)[5:40:2, 3:].to_dense(),
    "rows by index": lambda d, on: matrix(d, on)[[4, 0, 4]].to_dense(),
}
DTYPES = (float16, float32, float64, int32)


@pytest.mark.parametrize("d", DTYPES, ids=param_id)
@pytest.mark.parametrize("name", RESULTS)
def test_ops(kit: Kit, name: str, d: DType) -> None:
    """Check an op of sparse tensors against the reference."""
    with vendor_products(False):
        kit.check_agreement(lambda on: RESULTS[name](d, on), f"{name}, sparse, {d.name}")


def test_bool(kit: Kit) -> None:
    """Check ops of sparse tensors of dtype bool."""
    for name in ("coalesce", "union", "intersection", "slice"):
        kit.check_agreement(lambda on, n=name: RESULTS[n](bool_, on), f"{name}, sparse, bool")  # type: ignore[misc]  # the default


@pytest.mark.parametrize("d", (float32, float64), ids=param_id)
@pytest.mark.parametrize("operand", (0, 1))
def test_gradients(kit: Kit, d: DType, operand: int) -> None:
    """Check the gradient of sum((x @ y) ** 2) by sparse values and by the dense operand."""

    def make(on: Device) -> T.Tensor:
        """Return the gradient by the values or by the dense operand, on `on`."""
        x, y = matrix(d, on), dense(d, on, COLUMNS)
        x.values().requires_grad_()
        y.requires_grad_()
        grads = grad(sum_((x @ y) ** 2), [x.values(), y])
        return grads[operand]

    with vendor_products(False):
        kit.check_agreement(make, f"gradient by operand {operand}, sparse, {d.name}")
