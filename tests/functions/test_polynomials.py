"""Polynomials by coefficients and by roots against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

KINDS = ["i4", "i8", "f4", "f8", "c8", "c16"]


def coefficients(n: int, kind: str) -> Any:
    rng = np.random.default_rng(n)
    found = rng.integers(1, 9, n) + (1j * rng.integers(1, 9, n) if kind[0] == "c" else 0)
    return found.astype(kind)


def assert_close(found: dt.Tensor, want: Any, rtol: float = 0.0) -> None:
    want = np.asarray(want)
    assert isinstance(found, dt.Tensor) and found.shape == want.shape
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=rtol)


# --- roots


ROOTS: list[Any] = [
    [1, -3, 2], [2.0, 0, 0, -16], [1, 0, 1], [0, 0, 1, -6, 11, -6], [3, 5, 0, 0], [0, 4, 0], [7],
    [0, 0], [], [1, 0, 0], [1 + 2j, 3, -1j], [1e-3, 1.0],
]  # fmt: skip


@pytest.mark.parametrize("p", ROOTS, ids=str)
def test_roots_equal_numpy(device: dt.Device, p: Any) -> None:
    a = np.array(p, np.result_type(np.array(p).dtype, "f8"))
    found, want = dt.roots(dt.asarray(a)), np.roots(a)
    assert found.device is device and found.dtype is dt.complex128
    assert_close(found, want, 1e-12)
    assert dt.roots(dt.asarray(a).astype(dt.complex64)).dtype is dt.complex64


def test_roots_of_poly_are_the_given_roots(device: dt.Device) -> None:
    zeros = np.array([-2.0, -0.5, 0.0, 1.5, 4.0])
    found = dt.roots(dt.poly(dt.asarray(zeros)))
    assert_close(dt.sort(dt.real(found)), zeros, 1e-9)
    assert dt.roots(dt.asarray([1, -3, 2])).dtype is dt.complex64
    half = dt.asarray([1, -3, 2], dtype=dt.float16)
    assert_close(dt.sort(dt.real(dt.roots(half))), [1, 2], 1e-5)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, 2, 5])
def test_poly_equals_numpy(device: dt.Device, n: int, kind: str) -> None:
    zeros = coefficients(n, kind)
    found = dt.poly(dt.asarray(zeros))
    assert found.dtype.name == (np.dtype(kind).name if kind[0] != "i" else "float32")
    assert_close(
        found, np.atleast_1d(np.poly(zeros)), 1e-6 if kind in ("f4", "c8", "i4", "i8") else 1e-13
    )


# --- arithmetic, derivatives, integrals


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["polyadd", "polysub", "polymul"])
def test_polynomial_arithmetic_equals_numpy(device: dt.Device, name: str, kind: str) -> None:
    ours, theirs = getattr(dt, name), getattr(np, name)
    for n, m in ((1, 1), (3, 3), (4, 2), (2, 5)):
        a, b = coefficients(n, kind), coefficients(m, kind) * 2
        found = ours(dt.asarray(a), dt.asarray(b))
        assert found.device is device and found.dtype.name == np.dtype(kind).name
        assert_close(found, theirs(a, b))
        assert_close(ours(a, dt.asarray(b)), theirs(a, b))
        assert_close(ours(dt.asarray(a), 3), theirs(a, 3))
        assert_close(ours(2, dt.asarray(a)), theirs(2, a))
        assert_close(ours(dt.asarray(a[0]), b), theirs(a[0], b))
    assert ours(dt.asarray([1, 2]), [0.5]).dtype is dt.float32


def test_leading_zeros_are_kept(device: dt.Device) -> None:
    zeros, one = dt.asarray([0, 0, 1]), dt.asarray([0, 0, -1])
    assert dt.polyadd(zeros, one).tolist() == np.polyadd([0, 0, 1], [0, 0, -1]).tolist()
    assert dt.polymul(zeros, [0, 2]).tolist() == [0, 0, 0, 2]
    assert dt.polyadd(dt.asarray([], dtype=dt.int64), [1, 2]).tolist() == [1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("m", [0, 1, 2, 3, 9])
def test_derivatives_and_integrals_equal_numpy(device: dt.Device, m: int, kind: str) -> None:
    for n in (0, 1, 2, 5):
        a = coefficients(n, kind)
        x = dt.asarray(a)
        found = dt.polyder(x, m)
        assert found.device is device and found.dtype is (dt.int64 if kind == "i4" else x.dtype)
        assert_close(found, np.polyder(a, m))
        found = dt.polyint(x, m)
        assert found.dtype is (dt.float32 if m and kind[0] == "i" else x.dtype)
        assert_close(found, np.polyint(a, m), 1e-6)
        assert_close(dt.polyint(x, m=m, k=2), np.polyint(a, m, 2), 1e-6)
        constants = np.arange(1.0, m + 1)
        if m:
            assert_close(
                dt.polyint(x, m, constants.astype("f4")), np.polyint(a, m, constants), 1e-6
            )
            assert_close(dt.polyint(x, m, [*constants.tolist()]), np.polyint(a, m, constants), 1e-6)


def test_polynomials_have_gradients() -> None:
    def given(*values: float) -> dt.Tensor:
        return dt.asarray(values, dtype=dt.float64, device="reference").requires_grad_()

    p, q = given(2.0, -3.0, -4.0, 1.0), given(1.5, 2.0)
    assert gradcheck(dt.polyadd, (p, q)) and gradcheck(dt.polysub, (q, p))
    assert gradcheck(dt.polymul, (p, q)) and gradcheck(dt.poly, (p,))
    assert gradcheck(lambda x: dt.polyder(x, 2), (p,))
    assert gradcheck(lambda x, k: dt.polyint(x, 2, k), (p, q))
    assert gradcheck(lambda x: dt.sort(dt.real(dt.roots(x))), (p,))
    turned = dt.asarray([1j, 2.0, 3 - 1j], dtype=dt.complex128, device="reference")
    assert gradcheck(dt.poly, (turned.requires_grad_(),))


X = dt.ones((2, 2), device="reference")
V = dt.ones(2, device="reference")


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: dt.roots(X), dt.ShapeError, r"roots: p must be a vector, got shape \(2, 2\)"),
        (lambda: dt.roots([1, 2]), dt.DTypeError, "roots: "),
        (lambda: dt.roots(V * dt.nan), dt.LinAlgError, "roots: "),
        (lambda: dt.poly(X), dt.ShapeError, "poly: x must be a vector"),
        (lambda: dt.poly(3), dt.DTypeError, "poly: "),
        (lambda: dt.polyadd(V, X), dt.ShapeError, "polyadd: x2 must be a vector"),
        (lambda: dt.polysub(X, V), dt.ShapeError, "polysub: x1 must be a vector"),
        (lambda: dt.polysub(V > 0, V > 0), dt.DTypeError, "polysub: "),
        (lambda: dt.polymul(V, X), dt.ShapeError, "polymul: x2 must be a vector"),
        (lambda: dt.polymul(V[:0], V), dt.ShapeError, "polymul: .*must not be empty"),
        (lambda: dt.polyadd(1, 2), dt.DTypeError, "polyadd: "),
        (lambda: dt.polyder(X), dt.ShapeError, "polyder: p must be a vector"),
        (lambda: dt.polyder(V, -1), dt.ArgumentError, "polyder: m must not be negative"),
        (lambda: dt.polyder(V, 1.5), dt.ArgumentTypeError, "polyder: m must be an int"),
        (lambda: dt.polyint(X), dt.ShapeError, "polyint: p must be a vector"),
        (lambda: dt.polyint(V, -1), dt.ArgumentError, "polyint: m must be between 0"),
        (
            lambda: dt.polyint(V, 3, [1.0, 2.0]),
            dt.ArgumentError,
            "polyint: k must hold 1 or m=3 .*, got 2",
        ),
        (lambda: dt.polyint(V, 1, X), dt.ShapeError, "polyint: "),
    ],
)
def test_polynomials_name_wrong_arguments(call: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()
