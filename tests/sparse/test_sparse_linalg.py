"""`dt.sparse.linalg`: solutions, gradients, convergence, and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

L = dt.sparse.linalg
Array = np.ndarray[Any, Any]
N = 30


def laplacian(n: int = N) -> Array:
    return np.asarray(4 * np.eye(n) - np.eye(n, k=1) - np.eye(n, k=-1))


def lopsided(n: int = N, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    return laplacian(n) + rng.normal(size=(n, n)) * (rng.random((n, n)) < 0.1)


def right(n: int = N, seed: int = 1) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=n))


LAYOUTS: dict[str, Callable[[dt.Tensor], Any]] = {
    "coo": lambda x: x.to_sparse(), "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(), "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "strided": lambda x: x,
    "function": lambda x: x.to_sparse_csr().__matmul__,
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_solutions_equal_numpy(device: dt.Device, layout: str) -> None:
    a, b = laplacian(), right()
    x, info = L.cg(LAYOUTS[layout](dt.asarray(a)), dt.asarray(b), rtol=1e-12)
    assert info.item() == 0
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-10, atol=1e-12)
    a = lopsided()
    x, info = L.gmres(LAYOUTS[layout](dt.asarray(a)), dt.asarray(b), rtol=1e-12)
    assert info.item() == 0
    np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("d", (np.float32, np.complex64, np.complex128))
def test_solvers_accept_each_dtype(device: dt.Device, d: Any) -> None:
    a, b = laplacian().astype(d), right().astype(d)
    if np.iscomplexobj(a):
        a, b = a + 1j * (np.eye(N, k=1) - np.eye(N, k=-1)).astype(d), b * d(1 - 2j)
    tolerance = 1e-4 if d in (np.float32, np.complex64) else 1e-9
    for solve in (L.cg, L.gmres):
        x, info = solve(dt.asarray(a).to_sparse_csr(), dt.asarray(b), rtol=tolerance / 10)
        assert info.item() == 0 and x.dtype is dt.asarray(b).dtype
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), atol=tolerance)
    for side, lower in ((np.tril, True), (np.triu, False)):
        found = L.spsolve_triangular(dt.asarray(side(a)).to_sparse_csr(), dt.asarray(b), lower)
        np.testing.assert_allclose(found.numpy(), np.linalg.solve(side(a), b), atol=tolerance)


def test_gmres_restarts_and_stagnation(device: dt.Device) -> None:
    a, b = lopsided(), right()
    for restart in (1, 3, 1000):
        x, info = L.gmres(dt.asarray(a).to_sparse_csr(), dt.asarray(b), rtol=1e-8, restart=restart,
                          maxiter=2000)  # fmt: skip
        assert info.item() == 0, restart
        np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-5, atol=1e-7)
    shift = np.roll(np.eye(8), 1, axis=0)  # the residual stays constant for seven steps
    x, info = L.gmres(dt.asarray(shift).to_sparse_csr(), dt.asarray(np.eye(8)[0]), maxiter=8)
    assert info.item() == 0
    np.testing.assert_allclose(shift @ x.numpy(), np.eye(8)[0], atol=1e-12)


def test_missing_convergence_is_reported_in_info(device: dt.Device) -> None:
    a, b = dt.asarray(laplacian()).to_sparse_csr(), dt.asarray(right())
    for solve in (L.cg, L.gmres):
        found = solve(a, b, rtol=1e-14, maxiter=3)
        assert isinstance(found, L.Solution) and found.info.item() == 3
        assert solve(a, b, rtol=1e-14, maxiter=0).info.item() == 1
    singular = dt.zeros((4, 4), dtype=dt.float64).to_sparse_csr()
    for solve in (L.cg, L.gmres):
        assert solve(singular, dt.ones(4, dtype=dt.float64)).info.item() > 0
        x, info = solve(singular, dt.zeros(4, dtype=dt.float64))
        assert x.tolist() == [0] * 4 and info.item() == 0


def test_start_near_the_solution_converges(device: dt.Device) -> None:
    a, b = laplacian(), right()
    wanted = np.linalg.solve(a, b)
    for solve in (L.cg, L.gmres):
        x, info = solve(dt.asarray(a).to_sparse_csr(), dt.asarray(b), dt.asarray(wanted),
                        rtol=1e-8, maxiter=0)  # fmt: skip
        assert info.item() == 0
        np.testing.assert_array_equal(x.numpy(), wanted)


def test_preconditioner_reduces_steps(device: dt.Device) -> None:
    a = laplacian() * np.geomspace(1, 100, N)[:, None] ** 0.5 * np.geomspace(1, 100, N) ** 0.5
    a, b = (a + a.T) / 2, right()
    inverse = dt.asarray(np.diag(1 / np.diag(a))).to_sparse_csr()
    for solve in (L.cg, L.gmres):
        steps = []
        for m in (None, inverse, lambda v: inverse @ v):
            seen: list[Array] = []
            x, info = solve(dt.asarray(a).to_sparse_csr(), dt.asarray(b), rtol=1e-10, M=m,
                            callback=lambda x, seen=seen: seen.append(x.numpy()))  # fmt: skip
            assert info.item() == 0
            np.testing.assert_allclose(x.numpy(), np.linalg.solve(a, b), rtol=1e-7, atol=1e-9)
            np.testing.assert_array_equal(seen[-1], x.numpy())
            steps.append(len(seen))
        assert steps[1] == steps[2] < steps[0]


def test_captured_solvers_equal_plain_ones(device: dt.Device) -> None:
    a, b = laplacian(), right()
    x = dt.asarray(a).to_sparse_csr()
    for solve, m in ((L.cg, None), (L.cg, x * 0.1), (L.gmres, None)):
        f = dt.jit(lambda b, solve=solve, m=m: solve(x, b, rtol=1e-12, M=m))
        for k in (1, 3):
            found = f(dt.asarray(b * k))
            plain = solve(x, dt.asarray(b * k), rtol=1e-12, M=m)
            assert found.info.item() == 0
            assert found.x.numpy().tobytes() == plain.x.numpy().tobytes()
    g = dt.jit(lambda b: L.spsolve_triangular(x, b))
    np.testing.assert_allclose(g(dt.asarray(b)).numpy(), np.linalg.solve(np.tril(a), b), rtol=1e-12)
    with pytest.raises(dt.CaptureError, match="cg: callback cannot run"):
        dt.jit(lambda b: L.cg(x, b, callback=print).x)(dt.asarray(b))


def test_solvers_are_the_same_eagerly_and_on_every_device() -> None:
    pytest.importorskip("dovetail_cpu_llvm")
    a, b = lopsided(), right()

    def bits(on: str) -> list[bytes]:
        x, y = dt.asarray(a, device=on).to_sparse_csr(), dt.asarray(b, device=on)
        even = dt.asarray(laplacian(), device=on).to_sparse_csr()
        made = [L.cg(even, y).x, L.gmres(x, y).x, L.spsolve_triangular(dt.tril(x), y)]
        return [m.numpy().tobytes() for m in made]

    wanted = bits("reference")
    assert bits("cpu") == wanted
    with dt.eager():
        assert bits("cpu") == wanted


@pytest.mark.parametrize("lower", (True, False))
@pytest.mark.parametrize("unit", (True, False))
def test_triangular_solutions_equal_numpy(device: dt.Device, lower: bool, unit: bool) -> None:
    a = (np.tril if lower else np.triu)(lopsided())
    effective = a - np.diag(np.diag(a)) + np.eye(N) if unit else a
    for b in (right(), np.stack([right(), right(seed=5)], axis=1)):
        for name in ("coo", "csr", "csc", "bsr"):
            x = LAYOUTS[name](dt.asarray(a))
            found = L.spsolve_triangular(x, dt.asarray(b), lower, unit_diagonal=unit)
            assert found.shape == b.shape
            np.testing.assert_allclose(found.numpy(), np.linalg.solve(effective, b), rtol=1e-9)


SOLVES: dict[str, Callable[[Any, dt.Tensor], dt.Tensor]] = {
    "cg": lambda a, b: L.cg((a + a.T) * 0.5, b, rtol=1e-14).x,
    "gmres": lambda a, b: L.gmres(a, b, rtol=1e-14).x,
    "preconditioned": lambda a, b: L.gmres(a, b, rtol=1e-14, M=dt.eye(8, dtype=b.dtype) * 0.2).x,
    "lower": lambda a, b: L.spsolve_triangular(dt.tril(a), b),
    "upper": lambda a, b: L.spsolve_triangular(dt.triu(a), b, False),
    "unit": lambda a, b: L.spsolve_triangular(dt.tril(a), b, unit_diagonal=True),
}  # fmt: skip


@pytest.mark.parametrize("kind", ("csr", "csc", "coo"))
@pytest.mark.parametrize("name", SOLVES)
def test_gradients_equal_those_of_the_solution(device: dt.Device, name: str, kind: str) -> None:
    solve, a, b = SOLVES[name], lopsided(8), right(8)

    def loss(values: Array, b: Array) -> Any:
        x = solve(LAYOUTS[kind](dt.asarray(values)), dt.asarray(b))
        return dt.sum(x * x * x).item()

    matrix, vector = dt.asarray(a).requires_grad_(), dt.asarray(b).requires_grad_()
    x = solve(LAYOUTS[kind](matrix), vector)
    of_a, of_b = dt.grad(dt.sum(x * x * x), [matrix, vector])
    e = 1e-6
    for i in range(0, 8, 3):
        d = np.eye(8)[i] * e
        slope = (loss(a, b + d) - loss(a, b - d)) / (2 * e)
        np.testing.assert_allclose(of_b[i].item(), slope, rtol=1e-5, atol=1e-8)
    for i, j in np.argwhere(a)[::4]:
        d = np.zeros_like(a)
        d[i, j] = e
        slope = (loss(a + d, b) - loss(a - d, b)) / (2 * e)
        np.testing.assert_allclose(of_a[i, j].item(), slope, rtol=1e-4, atol=1e-7)


def test_second_derivatives_and_captured_gradients(device: dt.Device) -> None:
    a = dt.asarray(laplacian(8)).to_sparse_csr()
    inverse = np.linalg.inv(laplacian(8))
    b = dt.asarray(right(8)).requires_grad_()
    (g,) = dt.grad(dt.sum(L.cg(a, b, rtol=1e-14).x ** 3), [b], create_graph=True)
    (h,) = dt.grad(dt.sum(g), [b])
    x = inverse @ right(8)
    np.testing.assert_allclose(h.numpy(), inverse @ (6 * x * (inverse @ np.ones(8))), rtol=1e-8)

    def slope(b: dt.Tensor) -> dt.Tensor:
        b = b.detach().requires_grad_()
        (g,) = dt.grad(dt.sum(L.cg(a, b, rtol=1e-14).x ** 3), [b])
        return g

    np.testing.assert_array_equal(dt.jit(slope)(dt.asarray(right(8))).numpy(), g.detach().numpy())


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("solve", (L.cg, L.gmres))
def test_mismatched_operands_are_named(solve: Any) -> None:
    a = dt.asarray(laplacian(4), device="reference").to_sparse_csr()
    b = dt.ones(4, dtype=dt.float64, device="reference")
    name = solve.__name__
    cases: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (dt.ShapeError, "A must be a square matrix", lambda: solve(a[:3], b)),
        (dt.ShapeError, "as many rows as b", lambda: solve(a, b[:3])),
        (dt.ShapeError, "b must be a strided vector", lambda: solve(a, dt.ones((4, 1)))),
        (dt.ShapeError, "b must be a strided vector", lambda: solve(a, b.to_sparse())),
        (dt.ShapeError, "x0 must have the shape", lambda: solve(a, b, b[:3])),
        (dt.ShapeError, "M must have as many rows", lambda: solve(a, b, M=a[:3, :3])),
        (dt.ShapeError, "A must return", lambda: solve(lambda v: v[:2], b)),
        (dt.DTypeError, "expected floats", lambda: solve(a.astype(dt.int64), b.astype(dt.int64))),
        (dt.DTypeError, "expected a tensor", lambda: solve(a, [1.0])),
        (dt.ArgumentError, "A must be a matrix or a function", lambda: solve(3, b)),
        (dt.ArgumentError, "must not be negative", lambda: solve(a, b, rtol=-1.0)),
        (dt.ArgumentError, "must not be negative", lambda: solve(a, b, atol=float("nan"))),
        (dt.ArgumentError, "maxiter", lambda: solve(a, b, maxiter=-1)),
        (dt.ArgumentError, "callback", lambda: solve(a, b, callback=3)),
    ]
    if solve is L.gmres:
        cases.append((dt.ArgumentError, "restart", lambda: solve(a, b, restart=0)))
        free = b.detach().requires_grad_()
        cases.append(
            (dt.GradientError, "solves with the transpose", lambda: solve(lambda v: a @ v, free))
        )
    for error, says, f in cases:
        with pytest.raises(error, match=f"^{name}: .*{says}"):
            f()


def test_invalid_triangular_operands_are_named() -> None:
    whole = dt.asarray(laplacian(4), device="reference").to_sparse_csr()
    a, b = dt.tril(whole), dt.ones(4, dtype=dt.float64, device="reference")
    solve = L.spsolve_triangular
    holed = dt.asarray([[1.0, 0.0], [1.0, 0.0]], device="reference").to_sparse_csr()
    zero = dt.sparse_csr_tensor([0, 1], [0], [0.0], device="reference")
    cases: list[tuple[type[Exception], str, Callable[[], object]]] = [
        (dt.ArgumentError, r"entries above its diagonal; use dt.tril", lambda: solve(whole, b)),
        (dt.ArgumentError, r"entries below .*lower=True", lambda: solve(a, b, False)),
        (dt.LinAlgError, "A is singular", lambda: solve(holed, b[:2])),
        (dt.LinAlgError, "A is singular", lambda: solve(zero, b[:1])),
        (dt.ShapeError, "A must be a square matrix", lambda: solve(a[:3], b)),
        (dt.ShapeError, "as many rows as A", lambda: solve(a, b[:3])),
        (dt.LayoutError, "A must be a sparse matrix", lambda: solve(a.to_dense(), b)),
        (dt.LayoutError, "b must be strided", lambda: solve(a, b.to_sparse())),
        (dt.DTypeError, "expected floats", lambda: solve(a.astype(dt.int64), b.astype(dt.int64))),
    ]
    for error, says, f in cases:
        with pytest.raises(error, match=f"^spsolve_triangular: .*{says}"):
            f()
    assert solve(holed, b[:2], unit_diagonal=True).tolist() == [1.0, 0.0]
