"""Python numbers and NumPy scalars next to float64 tensors are not rounded to float32."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

A = np.array([0.1, 0.7, 1.3, -2.2])
NAMES = {"A": A, "C": A > 0, "I": np.array([0, 1, 0, 1]), "M": np.array([[2.0, 0.3], [0.4, 1.7]])}

# Calls of NumPy; no number is representable in float32.
CALLS = """
np.isclose(A, n(0.1), rtol=0, atol=1e-12) | np.isclose(n(0.1), A, rtol=0, atol=1e-12)
np.isclose(A * 1j, 0.1j, rtol=0, atol=1e-12) | np.allclose(A[:1], n(0.1), rtol=0, atol=1e-12)
np.select([C, ~C], [A, n(0.1)], n(0.3)) | np.select([C, ~C], [n(0.1), n(0.3)], A)
np.select([C, ~C], [A, n(0.1)], 0.0) | np.choose(I, [A, n(0.1)]) | np.choose(I, [n(0.1), A])
np.piecewise(A, [C], [n(0.1), n(0.3)]) | np.piecewise(A, [C, ~C], [lambda v: v * n(0.1), n(0.3)])
np.where(C, A, n(0.1)) | np.where(C, n(0.1), A) | np.where(C, A, 0.1j) | np.clip(A, n(0.1), n(0.3))
np.full_like(A, n(0.1)) | np.pad(A, 1, constant_values=n(0.1))
np.interp(A, [0.1, 0.7], [0.1, 0.3])
np.interp(A, [0.1, 0.7], [0.1, 0.3], left=n(0.1), right=n(0.3)) | np.quantile(A, n(0.1))
np.interp(A, [0.1, 0.7], [0.1, 0.3], period=n(0.35)) | np.percentile(A, n(0.1))
np.nan_to_num(A * np.nan, nan=n(0.1)) | np.nan_to_num(A * np.inf, posinf=n(0.1), neginf=n(0.3))
np.searchsorted(np.sort(A), n(0.1), side="right") | np.searchsorted(np.sort(A), n(0.1))
np.digitize(A, [0.1, 0.7]) | np.polyval([0.1, 0.3], A) | np.polyval(A, n(0.1)) | np.add(A, n(0.1))
np.subtract(n(0.1), A) | np.power(abs(A), n(0.1)) | np.maximum(A, n(0.1)) | np.fmin(n(0.1), A)
np.fmod(A, n(0.1)) | np.remainder(A, n(0.1)) | np.hypot(A, n(0.1)) | np.arctan2(n(0.1), A)
np.logaddexp2(A, n(0.1)) | np.heaviside(A * 0, n(0.1)) | np.equal(A, n(0.1)) | np.less(A, n(0.7))
np.trapezoid(A, dx=n(0.1)) | np.gradient(A, n(0.1)) | np.trapezoid(A, [0.1, 0.3, 0.7, 0.9])
np.diff(A, prepend=n(0.1)) | np.ediff1d(A, to_begin=[0.1]) | np.insert(A, 1, n(0.1))
np.var(A, ddof=n(0.1)) | np.nanstd(A, ddof=n(0.1)) | np.unwrap(A * 9, period=n(0.7))
np.histogram(A, [-3, 0.1, 0.7, 9.0])[0] | np.histogram(A, 3, range=(n(0.1), n(1.3)))[1]
np.isin(A, [0.1, 0.7]) | np.polyint(A, k=n(0.1)) | np.linalg.norm(A, n(2.1))
np.linalg.pinv(M, rcond=n(0.1)) | np.linalg.solve(M, [0.1, 0.3]) | np.linspace(n(0.1), A, 3)
np.average(A, weights=[0.1, 0.3, 0.5, 0.7]) | np.vectorize(lambda v: v * n(0.1))(A)
""".replace("\n", "|")


@pytest.mark.parametrize("number", [float, np.float64])
@pytest.mark.parametrize("call", [c.strip() for c in CALLS.split("|") if c.strip()])
def test_number_next_to_float64_keeps_its_digits(call: str, number: Any) -> None:
    names = {"np": np, "n": number}
    with np.errstate(all="ignore"):
        wanted = np.asarray(eval(call, {**names, **NAMES}))
    tensors = {name: dt.asarray(a) for name, a in NAMES.items()}
    if "vectorize" in call:
        call = call.replace("np.vectorize", "dt.vectorize")
    made = np.asarray(eval(call, {**names, **tensors, "dt": dt}))
    assert made.shape == wanted.shape
    np.testing.assert_allclose(made, wanted, rtol=1e-13)


MAKERS = [
    "full((2,), 0.1, dtype=d)", "linspace(0.1, 0.7, 5, dtype=d)", "arange(0.1, 0.7, 0.1, dtype=d)",
    "logspace(0.1, 0.7, 5, dtype=d)", "geomspace(0.1, 0.7, 5, dtype=d)",
]  # fmt: skip


@pytest.mark.parametrize("call", MAKERS)
def test_float64_creation_functions_keep_the_digits_of_numbers(call: str) -> None:
    made = eval(f"dt.{call}", {"dt": dt, "d": dt.float64}).numpy()
    np.testing.assert_allclose(made, eval(f"np.{call}", {"np": np, "d": float}), rtol=1e-14)


def test_numbers_are_weakly_typed_next_to_tensors() -> None:
    x = dt.asarray([1.0, 2.0])
    for n in (0.1, np.float32(0.1), np.int64(3), True):
        assert (x + n).dtype is dt.float32 and dt.isclose(x, n).dtype is dt.bool
        assert dt.select([x > 0], [x], n).dtype is dt.choose(dt.asarray([0, 1]), [x, n]).dtype
        assert dt.choose(dt.asarray([0, 1]), [x, n]).dtype is dt.float32
    assert dt.choose(dt.asarray([0, 1]), [x, np.float64(0.1)]).dtype is dt.float64
    assert dt.isclose(dt.asarray([3]), 3.25, rtol=0, atol=0.3).tolist() == [True]
