"""Determinants, inverses and linear systems against NumPy, on every device."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import linalg
from dovetail.engine.events import counters
from dovetail.ops import elimination
from matrices_for_tests import DTYPES, WIDE, definite, drawn, has_gradients, near

SHAPES = [(3, 3), (2, 4, 4), (2, 3, 5, 5), (0, 0), (0, 3, 3), (2, 0, 0), (1, 1)]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_det_slogdet_and_inv_equal_numpy(device: dt.Device, shape: tuple, dtype: str) -> None:
    a = drawn(*shape, dtype=dtype)
    x = dt.asarray(a)
    near(linalg.det(x), np.linalg.det(a))
    near(linalg.inv(x), np.linalg.inv(a), 1e-8)
    for found, wanted in zip(linalg.slogdet(x), np.linalg.slogdet(a), strict=True):
        near(found, wanted)
    assert linalg.inv(x).device is device


def test_results_are_named_tuples() -> None:
    x = dt.asarray(definite(3, 3), device="reference")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.lu(x)._fields == ("P", "L", "U")


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (3, 2)), ((3, 3), (4, 3, 1)),
        ((2, 3, 3), (3,)),
        ((2, 1, 3, 3), (5, 3, 2)), ((0, 0), (0,)), ((3, 3), (3, 0)), ((0, 3, 3), (3, 2)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_equals_numpy(device: dt.Device, left: tuple, right: tuple, dtype: str) -> None:
    a, b = drawn(*left, dtype=dtype), drawn(*right, dtype=dtype, seed=1)
    near(linalg.solve(dt.asarray(a), dt.asarray(b)), np.linalg.solve(a, b))


def test_arrays_and_lists_next_to_a_tensor_move_to_its_device(device: dt.Device) -> None:
    a, b = drawn(3, 3), drawn(3)
    for found in (linalg.solve(dt.asarray(a), b), linalg.solve(a, dt.asarray(b))):
        near(found, np.linalg.solve(a, b))
        assert found.device is device
    near(linalg.lstsq(dt.asarray(a), b.tolist()).solution, np.linalg.solve(a, b))


def test_solve_promotes_dtypes(device: dt.Device) -> None:
    a, b = drawn(3, 3, dtype="float32"), drawn(3, 2)
    found = linalg.solve(dt.asarray(a), dt.asarray(b))
    near(found, np.linalg.solve(a.astype("float64"), b))
    z = drawn(3, dtype="complex64")
    near(linalg.solve(dt.asarray(a), dt.asarray(z)), np.linalg.solve(a, z))


def test_strided_matrices_are_supported(device: dt.Device) -> None:
    a = drawn(6, 8)
    x = dt.asarray(a)
    near(linalg.inv(x[::2, 1:4].mT), np.linalg.inv(a[::2, 1:4].T))
    z = drawn(3, 3, dtype="complex128")
    near(linalg.inv(dt.conj(dt.asarray(z)).mT), np.linalg.inv(z.conj().T))
    near(linalg.det(dt.broadcast_to(x[:4, :4], (3, 4, 4))), np.full(3, np.linalg.det(a[:4, :4])))


def test_pending_operands_are_computed(device: dt.Device) -> None:
    a = drawn(3, 3)
    x = dt.asarray(a) * 2 + 1
    near(linalg.inv(x) @ x, np.eye(3))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_triangular_reads_one_triangle(
    device: dt.Device, upper: bool, unit: bool, dtype: str
) -> None:
    a, b = definite(2, 4, 4, dtype=dtype), drawn(4, 3, dtype=dtype)
    half = np.triu(a) if upper else np.tril(a)
    if unit:
        half[..., range(4), range(4)] = 1
    found = linalg.solve_triangular(dt.asarray(a), dt.asarray(b), upper=upper, unit_diagonal=unit)
    near(found, np.linalg.solve(half, b), 1e-8)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 5, 5), (0, 3, 3), (2, 0, 0)])
def test_solve_triangular_without_scipy_equals_scipy(shape: tuple, dtype: str) -> None:
    a, b = definite(*shape, dtype=dtype), drawn(*shape[:-1], 2, dtype=dtype)
    for how in itertools.product((False, True), repeat=3):
        found = elimination.solve_triangular(a, b, *how)
        wanted = elimination.solve_as_general(a, b, *how)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_on_a_triangular_diagonal_is_named(device: dt.Device, dtype: str) -> None:
    a = np.stack([np.eye(3, dtype=dtype)] * 4)
    a[2, 1, 1] = 0
    x, b = dt.asarray(a), dt.ones((3, 1), dtype=dtype)
    for name, call in (
        ("solve_triangular", lambda: linalg.solve_triangular(x, b, upper=True)),
        ("cholesky_solve", lambda: linalg.cholesky_solve(b, x)),
        ("lu_solve", lambda: linalg.lu_solve((dt.eye(3, dtype=dtype),) * 2 + (x,), b)),
    ):
        with pytest.raises(dt.LinAlgError, match=rf"{name}: the matrix at \[2\] .* is singular"):
            call()
    found = linalg.solve_triangular(x, b, upper=True, unit_diagonal=True)
    near(found, np.ones((4, 3, 1), dtype))


@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", WIDE)
def test_cholesky_solve_solves_with_a_factor(device: dt.Device, upper: bool, dtype: str) -> None:
    a, b = definite(2, 4, 4, dtype=dtype), drawn(4, dtype=dtype)
    factor = linalg.cholesky(dt.asarray(a), upper=upper)
    near(linalg.cholesky_solve(dt.asarray(b), factor, upper=upper), np.linalg.solve(a, b), 1e-8)


@pytest.mark.parametrize("dtype", WIDE)
def test_solvers_have_gradients(device: dt.Device, dtype: str, thinned: Callable[..., Any]) -> None:
    n = 3 if dtype == "float64" else 2
    a, b = drawn(2, n, n, dtype=dtype), drawn(2, n, 2, dtype=dtype, seed=1)
    low = np.tril(drawn(n, n, dtype=dtype)) + 2 * np.eye(n)
    solvers = [
        (linalg.solve, a, b),
        (linalg.solve, a.real.copy(), b),
        (linalg.solve, a[0], b[0, :, 0]),
        (linalg.inv, a),
        (linalg.solve, a[0], b),
        (linalg.det, a),
        (linalg.cholesky_solve, b, low),
        (lambda x: linalg.slogdet(x).logabsdet, a),
        (lambda x, y: linalg.cholesky_solve(x, y, upper=True), b[0], low.T.copy()),
    ]
    for upper, unit in itertools.product((False, True), repeat=2):
        solve = partial(linalg.solve_triangular, upper=upper, unit_diagonal=unit)
        solvers.append((solve, a[0], b[0]))
    for solver, *operands in thinned(solvers, 3):
        has_gradients(solver, *operands)


def test_sign_of_a_complex_determinant_has_a_gradient(device: dt.Device) -> None:
    has_gradients(lambda x: tuple(linalg.slogdet(x)), drawn(2, 3, 3, dtype="complex128"))


@pytest.mark.parametrize("way", ["plain", "jit", "vmap"])
@pytest.mark.parametrize("n", [3, 5, 40])
def test_gradient_of_det_does_not_depend_on_singular_matrices_of_the_batch(
    n: int, way: str, device: dt.Device
) -> None:
    regular = np.random.default_rng(0).standard_normal((3, n, n)).astype("f4")
    singular = regular.copy()
    singular[1] = 0

    f = dt.func.grad(lambda a: dt.linalg.det(a).sum())
    f = {"plain": f, "jit": dt.jit(f), "vmap": dt.vmap(dt.func.grad(dt.linalg.det))}[way]
    first, second = (f(dt.asarray(a)).numpy() for a in (regular, singular))
    assert first[::2].tobytes() == second[::2].tobytes()
    assert not second[1].any()


def test_determinant_of_a_singular_matrix_has_a_gradient(device: dt.Device) -> None:
    a = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [5.0, 7.0, 9.0]])
    assert dt.autograd.gradcheck(linalg.det, dt.asarray(a).requires_grad_())
    assert dt.autograd.gradcheck(linalg.det, dt.asarray(a + 2j * a[::-1]).requires_grad_())
    two = np.diag([0.0, 0.0, 3.0])
    x = dt.asarray(two).requires_grad_()
    linalg.det(x).backward()
    assert x.grad is not None and x.grad.tolist() == np.zeros((3, 3)).tolist()


# --- errors


def _second_gradient_of_det(x: dt.Tensor) -> dt.Tensor:
    (g,) = dt.autograd.grad([linalg.det(x)], [x], create_graph=True)
    return dt.autograd.grad([g.sum()], [x])[0]


@pytest.mark.parametrize("n", [3, 40])  # a kernel's inverse, LAPACK's
@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("slogdet", lambda x: dt.autograd.grad([linalg.slogdet(x).logabsdet], [x])),
        ("det", _second_gradient_of_det),
        ("matrix_power", lambda x: linalg.matrix_power(x, -2)),
        ("inv", linalg.inv),
    ],
)
def test_error_of_an_inverse_names_the_function_that_needs_it(
    device: dt.Device, n: int, name: str, call: Callable[[dt.Tensor], object]
) -> None:
    x = dt.zeros((n, n), dtype="float64").requires_grad_()
    with pytest.raises(dt.LinAlgError, match=f"^{name}: the matrix is singular"):
        call(x)


def test_error_of_the_gradient_of_eig_names_eig(device: dt.Device) -> None:
    x = dt.asarray(np.eye(40, k=1)).requires_grad_()  # its vectors are linearly dependent
    with pytest.raises(dt.LinAlgError, match=r"^eig: the matrix is singular"):
        dt.autograd.grad([dt.real(linalg.eig(x).eigenvectors).sum()], [x])


@pytest.mark.parametrize(
    "function", [linalg.inv, lambda x: linalg.solve(x, dt.ones((3, 1), dtype=x.dtype))]
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_singular_matrix_is_named(device: dt.Device, function: object, dtype: str) -> None:
    assert callable(function)
    a = np.stack([np.eye(3, dtype=dtype)] * 6).reshape(2, 3, 3, 3)
    a[1, 2, 2, 2] = 0
    with pytest.raises(dt.LinAlgError, match=r"the matrix at \[1, 2\] of the batch is singular"):
        function(dt.asarray(a))
    with pytest.raises(ValueError, match=r"the matrix is singular; use dt\.linalg\.pinv"):
        function(dt.zeros((3, 3), dtype=dtype))


def test_non_finite_elements_propagate_through_solvers(device: dt.Device) -> None:
    a = np.array([[1.0, np.nan], [0.0, 2.0]])
    assert np.isnan(linalg.inv(dt.asarray(a)).numpy()).any()
    assert np.isnan(linalg.det(dt.asarray(a)).numpy())


@pytest.mark.parametrize(
    "function",
    [linalg.det, linalg.inv, linalg.slogdet, linalg.cholesky, linalg.eigh, linalg.eigvalsh,
     linalg.expm, lambda x: linalg.solve(x, x), lambda x: linalg.matrix_power(x, -2)],
)  # fmt: skip
def test_wrong_shapes_and_dtypes_raise(device: dt.Device, function: object) -> None:
    assert callable(function)
    with pytest.raises(dt.ShapeError, match="expected square matrices, got 2 x 3"):
        function(dt.ones((2, 3)))
    with pytest.raises(dt.ShapeError, match="at least 2 dimensions"):
        function(dt.ones(3))
    with pytest.raises(dt.DTypeError, match="must be float32, float64 or complex, got int64"):
        function(dt.ones((2, 2), dtype=dt.int64))
    with pytest.raises(dt.DTypeError):
        function("abc")
    with pytest.raises(dt.LayoutError):
        function(dt.ones((2, 2)).to_sparse())


def test_mismatched_right_sides_raise(device: dt.Device) -> None:
    with pytest.raises(dt.ShapeError, match="got 3 and 2"):
        linalg.solve(dt.eye(3), dt.ones((2, 2)))
    with pytest.raises(dt.ShapeError):
        linalg.solve(dt.ones((2, 3, 3)), dt.ones((4, 3, 1)))
    other = "cpu" if device.type == "reference" else "reference"
    with pytest.raises(dt.DeviceError, match="operands are on"):
        linalg.solve(dt.eye(3), dt.ones(3, device=other))


def test_captured_norms_and_products_equal_numpy(device: dt.Device) -> None:
    captured = dt.jit(lambda x: linalg.vector_norm(linalg.kron(x, x) + linalg.trace(x)))
    for seed in (0, 1):
        a = drawn(3, 3, seed=seed)
        near(captured(dt.asarray(a)), np.linalg.norm(np.kron(a, a) + np.trace(a)))


def test_lapack_calls_are_counted_and_profiled() -> None:
    before = counters.calls
    with dt.profile() as profile:
        linalg.inv(dt.eye(33, device="reference"))
    assert counters.calls == before + 1
    assert [e["name"] for e in profile.events].count("call linalg.inv on the host") == 1


def test_cholesky_solve_accepts_pytorch_argument_order_and_rejects_the_other() -> None:
    a, b = definite(4, 4), drawn(4, 4)
    factor = np.linalg.cholesky(a)
    for upper, f in ((False, factor), (True, factor.T.copy())):
        found = linalg.cholesky_solve(dt.asarray(b), dt.asarray(f), upper=upper)
        near(found, np.linalg.solve(a, b), 1e-8)
        with pytest.raises(dt.ArgumentError, match=r"cholesky_solve\(b, factor\)"):
            linalg.cholesky_solve(dt.asarray(f), dt.asarray(b), upper=upper)
    for other in (b[:, :2], b[0]):
        with pytest.raises(dt.ShapeError, match=r"the factor must be square, .* it comes second"):
            linalg.cholesky_solve(dt.asarray(factor), dt.asarray(other))
    spoiled = factor + np.triu(drawn(4, 4), 1)  # as LAPACK returns it
    inverse = linalg.cholesky_solve(dt.eye(4, dtype=dt.float64), dt.asarray(spoiled))
    near(inverse, np.linalg.inv(a), 1e-8)


@pytest.mark.parametrize("ord", [None, 2, -2, 1, -1, np.inf, -np.inf, "fro"])
@pytest.mark.parametrize("count", [3, 300])
def test_condition_number_of_a_singular_matrix_is_infinite(count: int, ord: object) -> None:
    for singular in (np.zeros((3, 3)), np.outer([1.0, 2.0, 4.0], np.ones(3))):
        a = drawn(count, 3, 3)
        a[1] = singular
        wanted = np.linalg.cond(a, ord)  # type: ignore[arg-type]
        found = linalg.cond(dt.asarray(a), ord=ord).numpy()  # type: ignore[arg-type]
        # rounding hides that the matrix is singular
        cut = [np.minimum(c, 1e15) for c in (found, wanted)]
        np.testing.assert_allclose(*cut, rtol=1e-6)
        assert np.isinf(linalg.cond(dt.zeros((2, 2)), ord=ord).item())  # type: ignore[arg-type]
    one = dt.asarray(a).requires_grad_()
    linalg.cond(one, ord=1)[0].backward()
    assert one.grad is not None and np.isfinite(one.grad.numpy()).all()


@pytest.mark.parametrize("n", [3, 40])
@pytest.mark.parametrize("columns", [None, 2])
def test_results_have_the_same_bits_with_and_without_a_gradient(
    n: int, columns: int | None
) -> None:
    a = dt.asarray(np.random.default_rng(n).standard_normal((n, n)))
    b = dt.asarray(np.random.default_rng(1).standard_normal((n, columns) if columns else n))
    taped = dt.copy(a).requires_grad_()
    for call in (dt.linalg.inv, dt.linalg.det, lambda x: dt.linalg.solve(x, b)):
        assert call(a).numpy().tobytes() == call(taped).detach().numpy().tobytes()


def test_matrix_with_an_infinite_inverse_is_judged_by_lapack() -> None:
    tiny = dt.asarray([[1e-309, 0.0], [0.0, 1.0]], dtype=dt.float64)
    assert np.isinf(dt.linalg.inv(tiny).numpy()[0, 0])  # as in LAPACK, no error
    with pytest.raises(dt.linalg.LinAlgError, match="inv: the matrix is singular"):
        dt.linalg.inv(dt.zeros((2, 2), dtype=dt.float64))


def test_finite_results_whose_sum_overflows_are_returned() -> None:
    x = dt.eye(3, dtype=dt.float64) * 1e-308
    ones = dt.ones(3, dtype=dt.float64)
    inverse, solution = dt.linalg.inv(x), dt.linalg.solve(x, ones)
    assert np.allclose(inverse.numpy() / 1e308, np.eye(3))
    assert np.allclose(solution.numpy() / 1e308, np.ones(3))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_singular_small_array_raises_after_results_that_are_finite(n: int) -> None:
    x = dt.eye(n, dtype=dt.float64)
    for _ in range(3):
        assert dt.linalg.inv(x).tolist() == x.tolist()
    with pytest.raises(dt.linalg.LinAlgError):
        dt.linalg.inv(x * 0)
    with pytest.raises(dt.linalg.LinAlgError):
        dt.linalg.solve(x * 0, dt.ones(n, dtype=dt.float64))
