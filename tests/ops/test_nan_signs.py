"""The sign of a NaN affects no number: x86 produces negative NaNs, a GPU positive ones."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import COMPLEX, DType, bool_, float16, float32, float64
from dovetail.ops import table as ops
from dovetail.tensor import primitives
from dovetail.testing.cases import rows
from dovetail.testing.values import Array, host_dtype

# The first two read the sign bit, of NaN too; the third receives the expected result.
LEFT_OUT = {"signbit", "copysign", "astype"}
OTHERS = (0.0, -0.0, 1.5, -2.0, 1e-30, 300.0, np.inf, -np.inf)


def takes(name: str, d: DType) -> bool:
    op = ops.TABLE[name]
    try:
        op.dtypes(name, (bool_, d, d) if op is ops.WHERE else (d,) * op.arity, None)
    except (TypeError, AttributeError):
        return False
    return True


NAMES = [op.name for op in rows("map") if op.arity <= 2 and op.name not in LEFT_OUT]
REAL = [(n, d) for n in NAMES for d in (float16, float32, float64) if takes(n, d)]
PAIRS = [(n, d) for n in NAMES for d in COMPLEX if takes(n, d)]


def operands(d: DType, arity: int, nan: float) -> list[Array]:
    """Return every combination of parts with at least one NaN, with that NaN."""
    part = host_dtype(d.part if d in COMPLEX else d)
    parts = np.array([nan, *OTHERS], part)
    count = arity * (2 if d in COMPLEX else 1)
    kept = parts if count < 4 else parts[[0, 1, 2, 3, 7, 8]]
    grid = np.array([v for v in itertools.product(kept, repeat=count) if np.isnan(v).any()], part)
    columns = np.ascontiguousarray(grid.reshape(len(grid), arity, -1).transpose(1, 0, 2))
    return [np.ascontiguousarray(c).view(host_dtype(d))[:, 0] for c in columns]


def compute(name: str, d: DType, nan: float) -> Array:
    op = ops.TABLE[name]
    args = [dt.asarray(a, device="reference") for a in operands(d, op.arity, nan)]
    result: Array = primitives.apply(op, args).numpy()
    return result.reshape(len(result), -1).view(result.real.dtype)


def alike(x: Array, y: Array) -> Array:
    """Return where two arrays are equal, zeros with their signs, and NaN equal to NaN."""
    if x.dtype.kind != "f":
        return x == y
    return (np.isnan(x) & np.isnan(y)) | ((x == y) & (np.signbit(x) == np.signbit(y)))


@pytest.mark.parametrize(("name", "d"), [*REAL, *PAIRS], ids=lambda v: getattr(v, "name", v))
def test_results_do_not_depend_on_the_sign_of_nan(name: str, d: DType) -> None:
    minus, plus = compute(name, d, -np.nan), compute(name, d, np.nan)
    wrong = np.unique(np.argwhere(~alike(minus, plus))[:, 0])[:3]
    given = operands(d, ops.TABLE[name].arity, np.nan)
    assert not wrong.size, [([a[i] for a in given], minus[i], plus[i]) for i in wrong]


def test_operands_contain_nans_of_both_signs() -> None:
    minus, plus = (operands(float32, 1, nan)[0] for nan in (-np.nan, np.nan))
    assert np.signbit(minus).tolist() == [True] and np.signbit(plus).tolist() == [False]
