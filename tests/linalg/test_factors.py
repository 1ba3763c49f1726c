"""Factorizations and functions based on them, against NumPy and SciPy, on every device."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
import scipy.linalg
from dovetail import linalg
from dovetail.ops import elimination
from matrices_for_tests import (
    DTYPES,
    WIDE,
    definite,
    drawn,
    has_gradients,
    hermitian,
    near,
    squared_magnitudes,
)

SHAPES = [(3, 3), (2, 5, 3), (2, 3, 5), (1, 4), (0, 3), (3, 0), (0, 3, 2), (40, 37)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_qr_svd_and_pinv_equal_numpy(device: dt.Device, shape: tuple, dtype: str) -> None:
    a = drawn(*shape, dtype=dtype)
    x = dt.asarray(a)
    for mode in ("reduced", "complete"):
        for found, wanted in zip(linalg.qr(x, mode=mode), np.linalg.qr(a, mode), strict=True):
            near(found, wanted)
    for full in (False, True):
        made = linalg.svd(x, full_matrices=full)
        for found, wanted in zip(made, np.linalg.svd(a, full), strict=True):
            near(found, wanted)
    near(linalg.svdvals(x), np.linalg.svdvals(a))
    near(linalg.pinv(x), np.linalg.pinv(a))
    near(linalg.matrix_rank(x), np.linalg.matrix_rank(a))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (0, 2, 2), (1, 1)])
def test_cholesky_and_eigh_equal_numpy(device: dt.Device, shape: tuple, dtype: str) -> None:
    a = definite(*shape, dtype=dtype)
    x = dt.asarray(a)
    near(linalg.cholesky(x), np.linalg.cholesky(a))
    near(linalg.cholesky(x, upper=True), np.linalg.cholesky(a, upper=True))
    for found, wanted in zip(linalg.eigh(x), np.linalg.eigh(a), strict=True):
        near(found, wanted)
    near(linalg.eigvalsh(x), np.linalg.eigvalsh(a))
    near(linalg.matrix_rank(x, hermitian=True), np.linalg.matrix_rank(a, hermitian=True))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [*SHAPES, (70, 70), (3, 33, 50), (3, 50, 33)])
def test_lu_equals_scipy(device: dt.Device, shape: tuple, dtype: str) -> None:
    a = drawn(*shape, dtype=dtype)
    p, low, up = linalg.lu(dt.asarray(a))
    for found, wanted in zip((p, low, up), scipy.linalg.lu(a), strict=True):
        if a.size:  # for an empty matrix SciPy returns shapes that differ from its documentation
            near(found, wanted.astype(dtype))
    assert p.shape[-1] == shape[-2] and low.shape[-1] == up.shape[-2] == min(shape[-2:])
    near(p @ low @ up, a)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(3, 3), (2, 5, 3), (2, 3, 5), (3, 0), (0, 3, 2), (3, 33, 50)])
def test_lu_without_scipy_equals_scipy(shape: tuple, dtype: str) -> None:
    a = drawn(*shape, dtype=dtype)
    wanted = scipy.linalg.lu(a) if a.size else elimination.lu(a)
    for found, want in zip(elimination.lu_by_columns(a), wanted, strict=True):
        np.testing.assert_allclose(found, want, atol=1e-12)


def test_product_of_lu_factors_is_the_singular_matrix(device: dt.Device) -> None:
    for a in (np.zeros((3, 3)), np.ones((20, 20)), np.diag([0.0, 1.0, 0.0])):
        p, low, up = linalg.lu(dt.asarray(a))
        near(p @ low @ up, a)


@pytest.mark.parametrize("dtype", WIDE)
def test_lu_solve_solves_with_factors(device: dt.Device, dtype: str) -> None:
    a, b = drawn(2, 4, 4, dtype=dtype), drawn(4, 3)
    factors = linalg.lu(dt.asarray(a))
    near(linalg.lu_solve(factors, dt.asarray(b)), np.linalg.solve(a, b))
    near(linalg.lu_solve(factors, dt.asarray(b[:, 0])), np.linalg.solve(a, b[:, 0]))
    with pytest.raises(dt.ArgumentTypeError, match="three factors"):
        linalg.lu_solve(factors[:2], dt.asarray(b))  # type: ignore[arg-type]  # that is the test


def test_rank_thresholds_equal_numpy(device: dt.Device) -> None:
    a = np.stack([np.diag([1.0, 1e-3, 1e-9]), np.diag([1.0, 1.0, 1e-9])])
    x = dt.asarray(a)
    assert linalg.matrix_rank(x).tolist() == [3, 3]
    assert linalg.matrix_rank(x, rtol=1e-2).tolist() == [1, 2]
    share = dt.asarray([1e-6, 1e-12], dtype=dt.float64)
    assert linalg.matrix_rank(x, rtol=share).tolist() == [2, 3]
    near(linalg.pinv(x, rtol=1e-2), np.linalg.pinv(a, rtol=1e-2))
    near(linalg.pinv(x, rtol=share), np.linalg.pinv(a, rtol=np.array([1e-6, 1e-12])))
    z = dt.asarray(a * 1j)
    assert linalg.matrix_rank(z, rtol=share).tolist() == [2, 3]
    near(linalg.pinv(z, rtol=share), np.linalg.pinv(a * 1j, rtol=np.array([1e-6, 1e-12])))


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("ord", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
def test_condition_numbers_equal_numpy(device: dt.Device, ord: object, dtype: str) -> None:
    a = drawn(2, 3, 3, dtype=dtype)
    near(linalg.cond(dt.asarray(a), ord=ord), np.linalg.cond(a, ord))  # type: ignore[arg-type]
    assert linalg.cond(dt.zeros((2, 2)) + dt.asarray([[1.0, 0.0], [0.0, 0.0]])).item() == np.inf


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(5, 3), (3, 5), (4, 4)])
def test_least_squares_equal_numpy(device: dt.Device, shape: tuple, dtype: str) -> None:
    a, b = drawn(*shape, dtype=dtype), drawn(shape[0], 2, dtype=dtype)
    solution, residuals, rank, values = linalg.lstsq(dt.asarray(a), dt.asarray(b))
    wanted = np.linalg.lstsq(a, b)
    near(solution, wanted[0])
    near(residuals, (abs(b - a @ wanted[0]) ** 2).sum(0))
    assert rank.item() == wanted[2]
    near(values, wanted[3])
    near(linalg.lstsq(dt.asarray(a), dt.asarray(b[:, 0])).solution, wanted[0][:, 0])
    many = np.stack([a, 2 * a])
    near(linalg.lstsq(dt.asarray(many), dt.asarray(b)).solution, np.linalg.pinv(many) @ b)


def test_least_squares_of_dependent_columns_have_minimal_norm(device: dt.Device) -> None:
    a, b = np.ones((4, 2)), drawn(4, 1)
    found = linalg.lstsq(dt.asarray(a), dt.asarray(b))
    near(found.solution, np.linalg.lstsq(a, b)[0])
    assert found.rank.item() == 1


# --- gradients


@pytest.mark.parametrize("dtype", WIDE)
def test_cholesky_and_eigh_have_gradients(device: dt.Device, dtype: str) -> None:
    a = definite(2, 2, 2, dtype=dtype) if dtype == "complex128" else definite(3, 3)
    has_gradients(lambda x: linalg.cholesky(hermitian(x)), a)
    has_gradients(lambda x: linalg.cholesky(hermitian(x), upper=True), a)
    has_gradients(lambda x: linalg.eigvalsh(hermitian(x)), a)
    has_gradients(lambda x: squared_magnitudes(linalg.eigh(hermitian(x)).eigenvectors), a)

    def power(x: dt.Tensor) -> dt.Tensor:  # independent of the phases of vectors
        w, v = linalg.eigh(hermitian(x))
        return v @ (dt.exp(w / 8)[..., None] * dt.conj(v).mT)

    has_gradients(power, a)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4)])
def test_svd_and_qr_have_gradients(device: dt.Device, shape: tuple, dtype: str) -> None:
    a = drawn(*shape, dtype=dtype)
    has_gradients(linalg.svdvals, a)

    def parts(x: dt.Tensor) -> tuple[dt.Tensor, ...]:
        u, s, vh = linalg.svd(x, full_matrices=False)
        return squared_magnitudes(u), s, u @ vh, squared_magnitudes(vh), dt.conj(u[0]) * u[1]

    has_gradients(parts, a)
    has_gradients(linalg.qr, a)
    has_gradients(lambda x: linalg.lu(x)[1:], a)
    has_gradients(linalg.pinv, a)
    has_gradients(lambda x: linalg.matrix_norm(x, ord="nuc"), a)
    has_gradients(lambda x: linalg.cond(x), a)
    has_gradients(lambda x, y: linalg.lstsq(x, y).solution, a, drawn(shape[0], 2, dtype=dtype))


def test_factors_without_a_gradient_raise_in_backward(device: dt.Device) -> None:
    x = dt.asarray(drawn(4, 2)).requires_grad_()
    with pytest.raises(dt.GradientError, match="full_matrices=False"):
        linalg.svd(x).U.sum().backward()
    with pytest.raises(dt.GradientError, match="complete"):
        linalg.qr(x, mode="complete").Q.sum().backward()


def test_sum_of_equal_eigenvalues_has_its_gradient(device: dt.Device) -> None:
    x = dt.eye(3, dtype=dt.float64).requires_grad_()
    linalg.eigvalsh(x).sum().backward()
    assert x.grad is not None
    near(x.grad, np.eye(3))
    y = dt.eye(3, dtype=dt.float64).requires_grad_()
    linalg.svdvals(y).sum().backward()
    assert y.grad is not None
    near(y.grad, np.eye(3))


# --- bad input


@pytest.mark.parametrize("bad", [np.nan, np.inf, complex(0, np.nan), complex(0, -np.inf)])
@pytest.mark.parametrize(
    "function",
    [linalg.eig, linalg.eigvals, linalg.eigh, linalg.eigvalsh, linalg.svd, linalg.svdvals,
     linalg.pinv, linalg.matrix_rank, linalg.cholesky, linalg.cond, linalg.expm],
)  # fmt: skip
def test_non_finite_matrix_of_a_batch_is_named(
    device: dt.Device, function: object, bad: float
) -> None:
    assert callable(function)
    a = np.array(np.broadcast_to(np.eye(3), (4, 3, 3)), type(bad))
    a[2, 1, 0] = bad
    with pytest.raises(dt.LinAlgError, match=r"at \[2\] of the batch has NaN or inf"):
        function(dt.asarray(a))


@pytest.mark.parametrize("dtype", WIDE)
def test_cholesky_rejects_non_finite_elements_of_the_read_triangle(dtype: str) -> None:
    rng = np.random.default_rng(3)
    for n in (5, 40, 100):
        a = rng.standard_normal((n, n)).astype(dtype)
        a = a @ a.conj().T + n * np.eye(n, dtype=dtype)
        low = linalg.cholesky(dt.asarray(a, device="reference")).numpy()
        for bad in (np.nan, np.inf, -np.inf, *([1 + 1j * np.nan] if dtype[0] == "c" else ())):
            for i, j in (
                (0, 0),
                (n - 1, 0),
                (n - 1, n - 1),
                *[sorted(rng.integers(0, n, 2))[::-1]],
            ):
                spoiled = a.copy()
                spoiled[i, :j] = 0
                spoiled[i, j] = bad
                with pytest.raises(dt.LinAlgError, match="has NaN or inf"):
                    linalg.cholesky(dt.asarray(spoiled, device="reference"))
        a[0, n - 1] = np.nan  # of the other triangle
        assert np.array_equal(linalg.cholesky(dt.asarray(a, device="reference")).numpy(), low)


def test_matrices_may_have_64_dimensions(device: dt.Device) -> None:
    x = dt.ones((1,) * 64)
    for function in (linalg.svdvals, linalg.eigvalsh, linalg.det):
        assert function(x).item() == 1
    assert linalg.pinv(x).shape == linalg.inv(x).shape == linalg.lu(x).U.shape == x.shape


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", ["svd", "svdvals", "eigh", "eigvalsh", "eig", "eigvals", "pinv"])
def test_iteration_without_convergence_names_the_matrix(
    monkeypatch: pytest.MonkeyPatch, name: str, dtype: str
) -> None:
    numpys = "svd" if name == "pinv" else name
    routine = getattr(np.linalg, numpys)

    def stubborn(a: np.ndarray, *args: object, **options: object) -> object:
        if (a[:, 0, 0] == 7).any():
            raise np.linalg.LinAlgError("did not converge")
        return routine(a, *args, **options)

    monkeypatch.setattr(np.linalg, numpys, stubborn)
    a = drawn(2, 3, 4, 4, dtype=dtype)
    a[1, 2, 0, 0] = 7
    words = rf"{name}: the matrix at \[1, 2\] of the batch did not converge in LAPACK's iteration"
    with pytest.raises(dt.LinAlgError, match=words):
        getattr(linalg, name)(dt.asarray(a, device="reference"))


@pytest.mark.parametrize("dtype", WIDE)
def test_qr_lu_and_fro_propagate_nan(device: dt.Device, dtype: str) -> None:
    x = dt.asarray(np.full((3, 3), np.nan, dtype))
    for found in (*linalg.qr(x), linalg.lu(x).U, linalg.matrix_norm(x), linalg.vector_norm(x)):
        assert np.isnan(found.numpy()).any()


@pytest.mark.parametrize("dtype", WIDE)
def test_indefinite_matrix_is_named(device: dt.Device, dtype: str) -> None:
    a = np.stack([np.eye(2), -np.eye(2)]).astype(dtype)
    with pytest.raises(dt.LinAlgError, match=r"at \[1\] of the batch is not positive definite"):
        linalg.cholesky(dt.asarray(a))
