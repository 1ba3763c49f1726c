"""Batches of small matrices, which generated kernels compute."""

from __future__ import annotations

import itertools

import dovetail as dt
import numpy as np
import pytest
from dovetail import linalg
from dovetail.engine.events import counters
from dovetail.linalg.unrolled_matrices import KERNEL_ROWS_MAX, UNROLLED_ROWS_MAX
from installed import INSTALLED
from matrices_for_tests import definite, drawn, near

MANY = 256


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [*range(1, UNROLLED_ROWS_MAX + 1), 7, 12, KERNEL_ROWS_MAX])
def test_generated_kernels_equal_lapack(device: dt.Device, n: int, dtype: str) -> None:
    a = (drawn(2, MANY // 2, n, n) + 3 * np.eye(n)).astype(dtype)
    b, s = drawn(2, MANY // 2, n, 2, dtype=dtype), definite(2, MANY // 2, n, n, dtype=dtype)
    before = counters.calls
    x, y = dt.asarray(a), dt.asarray(b)
    share = linalg.det(x).numpy() / np.linalg.det(a)
    np.testing.assert_allclose(share, 1, rtol=0.03 if dtype == "float32" else 1e-9)
    found = linalg.inv(x).numpy() @ a
    np.testing.assert_allclose(found, np.broadcast_to(np.eye(n), a.shape), atol=0.05)
    np.testing.assert_allclose(a @ linalg.solve(x, y).numpy(), b, atol=2e-3)
    low = np.linalg.cholesky(s)
    tame = low / n  # without a diagonal the others are ill-conditioned
    for unit in (False, True):
        for upper, half in ((False, tame), (True, tame.swapaxes(-1, -2))):
            found = linalg.solve_triangular(
                dt.asarray(half), y, upper=upper, unit_diagonal=unit
            ).numpy()
            of = half * (1 - np.eye(n, dtype=dtype)) + np.eye(n, dtype=dtype) if unit else half
            np.testing.assert_allclose(of @ found, b, atol=2e-3)
    near(linalg.cholesky_solve(y, dt.asarray(low)), np.linalg.solve(s, b), 1e-6)
    near(linalg.cholesky(dt.asarray(s)), low)
    near(linalg.cholesky(dt.asarray(s), upper=True), np.linalg.cholesky(s).swapaxes(-1, -2))
    assert counters.calls == before


@pytest.mark.parametrize("n", [4, 9])
def test_small_matrices_have_the_same_bits_on_every_device(n: int) -> None:
    many = MANY + 3  # no whole vectors
    a, s = drawn(many, n, n, dtype="float32"), definite(many, n, n, dtype="float32")
    made = []
    for device in ("reference", *sorted({"cpu", "opencl"} & INSTALLED)):
        x, y = dt.asarray(a, device=device), dt.asarray(s, device=device)
        every = [linalg.det(x), linalg.inv(x), linalg.solve(x, y), linalg.cholesky(y)]
        for how in itertools.product((False, True), repeat=2):
            every.append(linalg.solve_triangular(y, x, upper=how[0], unit_diagonal=how[1]))
        every.append(linalg.cholesky_solve(x, y))
        made.append([t.numpy().tobytes() for t in every])
    assert all(bits == made[0] for bits in made)


@pytest.mark.parametrize("n", [2, 5, 8, KERNEL_ROWS_MAX])
def test_bits_of_a_matrix_do_not_depend_on_its_batch(device: dt.Device, n: int) -> None:
    a, b, s = drawn(3, n, n), drawn(3, n, 2), definite(3, n, n)
    before = counters.calls
    for function in (linalg.inv, linalg.det, linalg.cholesky, linalg.solve):
        x = (dt.asarray(s if function is linalg.cholesky else a),)
        x += (dt.asarray(b),) if function is linalg.solve else ()
        many = function(*x).numpy()
        for i in range(3):
            assert (function(*[t[i] for t in x]).numpy() == many[i]).all()
    assert counters.calls == before


def test_elimination_exchanges_pivots(device: dt.Device) -> None:
    turn = np.array([[0.0, 0.0, 2.0], [3.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    for turned in (turn, np.kron(np.eye(3), turn)[::-1]):
        a = np.broadcast_to(turned, (MANY, *turned.shape))
        near(linalg.det(dt.asarray(a)), np.linalg.det(a))
        near(linalg.inv(dt.asarray(a)), np.linalg.inv(a))


@pytest.mark.parametrize("n", [3, 8])
def test_singular_or_indefinite_matrix_of_a_batch_is_named(device: dt.Device, n: int) -> None:
    a = np.array(np.broadcast_to(np.eye(n), (MANY, n, n)))
    a[77] = np.ones((n, n))
    with pytest.raises(dt.LinAlgError, match=r"inv: the matrix at \[77\] of the batch is singular"):
        linalg.inv(dt.asarray(a))
    with pytest.raises(dt.LinAlgError, match=r"solve: the matrix at \[77\]"):
        linalg.solve(dt.asarray(a), dt.asarray(np.zeros((MANY, n, 1))))
    assert linalg.det(dt.asarray(a))[77].item() == 0
    for low in (-1.0, 0.0):
        a[77] = np.diag([1.0] * (n - 1) + [low])
        with pytest.raises(dt.LinAlgError, match=r"cholesky: .* \[77\] .*not positive definite"):
            linalg.cholesky(dt.asarray(a))


def test_non_finite_elements_affect_only_their_matrix(device: dt.Device) -> None:
    a = np.array(np.broadcast_to(np.eye(2), (MANY, 2, 2)))
    a[5, 0, 1] = np.nan
    found = linalg.inv(dt.asarray(a)).numpy()
    assert np.isnan(found[5]).any() and np.isfinite(np.delete(found, 5, 0)).all()


@pytest.mark.parametrize("n", [3, 7])
def test_generated_kernels_have_gradients(device: dt.Device, n: int) -> None:
    a = definite(MANY, n, n)
    for function in (
        linalg.det, linalg.inv, linalg.cholesky,
        lambda x: linalg.cholesky_solve(x, x), lambda x: linalg.solve_triangular(x, x, upper=True),
    ):  # fmt: skip
        many, one = dt.asarray(a).requires_grad_(), dt.asarray(a[9]).requires_grad_()
        function(many).sum().backward()
        function(one).sum().backward()
        assert many.grad is not None and one.grad is not None
        near(many.grad[9], one.grad.numpy())


def test_captured_determinants_of_a_batch_equal_numpy(device: dt.Device) -> None:
    captured = dt.jit(lambda x: linalg.det(x) * 2)
    for seed in (0, 1):
        a = drawn(MANY, 3, 3, seed=seed)
        near(captured(dt.asarray(a)), np.linalg.det(a) * 2)
