"""`dt.set_default_dtype`: the dtype of tensors created from Python numbers, or without values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def on_the_reference() -> Iterator[None]:
    with dt.device("reference"):
        yield
    dt.set_default_dtype(dt.float32)


FLOATS: list[Callable[[], Any]] = [
    lambda: dt.zeros(2), lambda: dt.ones(2), lambda: dt.empty(2), lambda: dt.full(2, 1.5),
    lambda: dt.full(2, 1, dtype=float), lambda: dt.arange(3.0), lambda: dt.arange(0, 1, 0.5),
    lambda: dt.linspace(0, 1, 3), lambda: dt.logspace(0, 1, 3), lambda: dt.geomspace(1, 2, 3),
    lambda: dt.eye(2), lambda: dt.tri(2), lambda: dt.asarray(1.5), lambda: dt.asarray([1.5, 2]),
    lambda: dt.asarray([]), lambda: dt.asarray([1], dtype=float),
    lambda: dt.mgrid[0:1:3j], lambda: dt.fromfunction(lambda i: i, (3,)), lambda: dt.hann(4),
    lambda: dt.kaiser(4, 5.0), lambda: dt.fft.fftfreq(4), lambda: dt.fft.rfftfreq(4),
    lambda: dt.random.uniform(2), lambda: dt.random.normal(2), lambda: dt.random.rand(2),
    lambda: dt.random.randn(2), lambda: dt.random.exponential(1.0, 2),
    lambda: dt.random.gamma(2.0, 1.0, 2), lambda: dt.random.beta(2.0, 1.0, 2),
    lambda: dt.random.laplace(0.0, 1.0, 2), lambda: dt.random.truncated_normal(-1.0, 1.0, 2),
    lambda: dt.random.dirichlet([1.0, 2.0]), lambda: dt.random.default_rng(1).uniform(2),
    lambda: dt.add(dt.zeros(2), [1.0, 2.0]), lambda: dt.zeros(2) * 2.5,
    lambda: dt.arange(3).astype(float), lambda: dt.cumulative_sum(dt.ones(2)),
    lambda: dt.asarray([1j]).real, lambda: dt.full(2, 1j).imag, lambda: dt.tensor([0.5]),  # type: ignore[operator]
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(FLOATS)))
@pytest.mark.parametrize("default", [dt.float32, dt.float64])
def test_default_dtype_applies_to_results_without_a_dtype(number: int, default: dt.DType) -> None:
    assert dt.set_default_dtype(default) is default is dt.get_default_dtype()
    found = FLOATS[number]()
    assert (found[0] if isinstance(found, tuple) else found).dtype is default


def test_default_float64_keeps_the_digits_of_python_floats() -> None:
    dt.set_default_dtype("float64")
    assert dt.asarray([0.1, 1 / 3]).tolist() == [0.1, 1 / 3]
    assert dt.full((), 0.1).item() == 0.1 and dt.linspace(0, 0.1, 2)[1].item() == 0.1


def test_default_complex_dtype_follows_the_default_dtype() -> None:
    assert dt.asarray([1j]).dtype is dt.full(2, 1j).dtype is dt.complex64
    dt.set_default_dtype(float)
    assert dt.get_default_dtype() is dt.float32, "float is the default, whatever that is"
    dt.set_default_dtype(np.float64)
    assert dt.asarray([1j]).dtype is dt.full(2, 1j).dtype is dt.complex128
    assert dt.linspace(0, 1j, 3).dtype is dt.zeros(2, dtype=complex).dtype is dt.complex128
    assert [dt.float32, dt.float64].index(float) == 1  # type: ignore[arg-type]  # they are equal


def test_array_api_info_reports_the_default_dtype() -> None:
    ask = dt.__array_namespace_info__().default_dtypes
    assert ask()["real floating"] is dt.float32 and ask()["complex floating"] is dt.complex64
    dt.set_default_dtype(dt.float64)
    assert ask()["real floating"] is dt.float64 and ask()["complex floating"] is dt.complex128
    assert ask()["integral"] is dt.int64


def test_tensors_with_a_dtype_keep_it() -> None:
    dt.set_default_dtype(dt.float64)
    x = dt.ones(2, dtype=dt.float32)
    assert (x * 2.5).dtype is dt.zeros_like(x).dtype is dt.full_like(x, 0.5).dtype is dt.float32
    assert dt.asarray(np.float32(1)).dtype is dt.asarray(np.ones(2, "f4")).dtype is dt.float32
    assert dt.asarray([1, 2]).dtype is dt.int64 and dt.asarray([True]).dtype is dt.bool


def test_promotion_of_ops_ignores_the_default_dtype() -> None:
    k = dt.arange(1, 3)
    for default in (dt.float64, dt.float32):
        dt.set_default_dtype(default)
        for found in (dt.mean(k), k / k, dt.exp(k), k * 0.5, dt.median(k)):
            assert found.dtype is dt.float32


def test_default_dtype_is_shared_by_threads() -> None:
    dt.set_default_dtype(dt.float64)
    found: list[dt.DType] = []
    thread = threading.Thread(target=lambda: found.append(dt.zeros(1, device="reference").dtype))
    thread.start(), thread.join()
    assert found == [dt.float64]


def test_captured_functions_follow_the_default_dtype() -> None:
    f = dt.jit(lambda x: x + dt.ones(2))
    x = dt.ones(2, dtype=dt.float32)
    assert f(x).dtype is f(x).dtype is dt.float32
    dt.set_default_dtype(dt.float64)
    assert f(x).dtype is f(x).dtype is dt.float64
    dt.set_default_dtype(dt.float32)
    assert f(x).dtype is dt.float32 and f.captures == 2


@pytest.mark.parametrize("dtype", [dt.float16, dt.int64, dt.complex64, dt.bool, "bfloat16"])
def test_other_default_dtypes_raise(dtype: Any) -> None:
    with pytest.raises(
        dt.DTypeError, match="set_default_dtype: dtype must be float32 or float64, got "
    ):
        dt.set_default_dtype(dtype)
    with pytest.raises(dt.DTypeError, match="set_default_dtype: no dovetail dtype"):
        dt.set_default_dtype("nonsense")
    assert dt.get_default_dtype() is dt.float32
