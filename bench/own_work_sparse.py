"""Sparse rows of `python bench/own_work.py`: solvers, products and sums beside SciPy's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import Foreign, peer
from turns import Row, Work

SIDE, STEPS = 512, 200
N, DENSITY = 20_000, 1e-3


def _laplacian() -> Foreign:
    """Five points on a square of SIDE x SIDE."""
    sparse, one = peer("scipy.sparse"), np.ones(SIDE)
    line = sparse.diags_array([-one[1:], 2 * one, -one[1:]], offsets=[-1, 0, 1])
    unit = sparse.eye_array(SIDE)
    return (sparse.kron(line, unit) + sparse.kron(unit, line)).tocsr()


def _solver() -> Mapping[str, Work]:
    solve = peer("scipy.sparse.linalg").cg
    a, b = _laplacian(), np.random.default_rng(0).normal(size=SIDE * SIDE)
    ours, right = dt.sparse.from_scipy(a, layout=dt.sparse_csr), dt.asarray(b)
    steps: dict[str, Any] = {"rtol": 1e-300, "maxiter": STEPS}
    captured = dt.jit(lambda b: dt.sparse.linalg.cg(ours, b, **steps).x)
    return {"dovetail": _done(lambda: captured(right)), "scipy": lambda: solve(a, b, **steps)[0]}


def _done(work: Callable[[], dt.Tensor]) -> Work:
    def run() -> dt.Tensor:
        made = work()
        dt.evaluate(made)
        return made

    return run


def _matrix(dtype: str, n: int = N, density: float = DENSITY) -> tuple[Foreign, Any, Foreign]:
    sparse, rng = peer("scipy.sparse"), np.random.default_rng(7)
    a = sparse.random_array((n, n), density=density, format="csr", rng=rng).astype(dtype)
    a.sort_indices()
    return a, dt.sparse.from_scipy(a, layout=dt.sparse_csr), rng.normal(size=n).astype(dtype)


def _of_matrix(dtype: str, f: Callable[[Any, Any], Any]) -> Callable[[], Mapping[str, Work]]:
    """A function of a matrix by rows and a vector."""

    def make() -> Mapping[str, Work]:
        a, ours, v = _matrix(dtype)
        w = dt.asarray(v)
        return {"dovetail": _done(lambda: f(ours, w)), "scipy": lambda: f(a, v)}

    return make


def _in_blocks(side: int, columns: int) -> Callable[[], Mapping[str, Work]]:
    """Blocks of side x side, some 20 elements a row, times a vector or a matrix."""

    def make() -> Mapping[str, Work]:
        sparse, rng, n = peer("scipy.sparse"), np.random.default_rng(7), N // side
        at = sparse.random_array((n, n), density=20 / N, format="csr", rng=rng)
        at.sort_indices()
        blocks = rng.normal(size=(at.nnz, side, side)).astype("f4")
        a = sparse.bsr_array((blocks, at.indices, at.indptr), shape=(N, N))
        ours = dt.sparse_bsr_tensor(at.indptr, at.indices, blocks, (N, N))
        v = rng.normal(size=(N, columns) if columns else N).astype("f4")
        w = dt.asarray(v)
        return {"dovetail": _done(lambda: ours @ w), "scipy": lambda: a @ v}

    return make


def _new_sum() -> Mapping[str, Work]:
    """Of a COO tensor of whose order nothing but that it is coalesced is known."""
    a, ours, _ = _matrix("float32")
    at, values = ours.to_sparse().indices(), ours.values()
    dt.evaluate(at)

    def work() -> dt.Tensor:
        new = dt.sparse_coo_tensor(at, values, a.shape, is_coalesced=True, check_invariants=False)
        return dt.sum(new, axis=1)

    return {"dovetail": _done(work), "scipy": lambda: a.sum(axis=1)}


def _square(n: int, density: float) -> Callable[[], Mapping[str, Work]]:
    def make() -> Mapping[str, Work]:
        a, ours, _ = _matrix("float64", n, density)
        return {"dovetail": _done(lambda: ours @ ours), "scipy": lambda: a @ a}

    return make


def _agree(works: Mapping[str, Work]) -> None:
    """Raises ArithmeticError where the norms differ."""
    ours, theirs = works["dovetail"](), works["scipy"]()
    values = ours.values() if isinstance(ours, dt.sparse.COO | dt.sparse.CSR) else ours
    sizes = [np.linalg.norm(values.numpy()), np.linalg.norm(getattr(theirs, "data", theirs))]
    if not np.allclose(*sizes, rtol=1e-3):
        raise ArithmeticError(f"dovetail computed something else than SciPy: {sizes}")


def rows() -> list[Row]:
    """The rows."""
    side = f"{N:,} x {N:,}"
    return [
        Row(f"CG, Laplacian {SIDE} x {SIDE}, {STEPS} steps, captured", _solver, {"scipy": 1.0},
            _agree),
        *(Row(f"CSR @ vector, {side}, {d}", _of_matrix(d, lambda a, v: a @ v), {"scipy": 1.2},
              _agree) for d in ("float32", "float64")),
        Row(f"CSR.T @ vector, {side}", _of_matrix("float32", lambda a, v: a.T @ v),
            {"scipy": 1.0}, _agree),
        *(Row(f"BSR of {b} x {b} @ {what}, {side}", _in_blocks(b, columns), {"scipy": 1.0}, _agree)
          for b in (4, 8) for what, columns in (("vector", 0), ("32 columns", 32))),
        Row(f"CSR summed by rows, {side}", _of_matrix("float32", lambda a, v: a.sum(axis=1)),
            {"scipy": 1.0}, _agree),
        Row(f"new COO summed by rows, {side}", _new_sum, {"scipy": 1.0}, _agree),
        Row("sparse @ sparse, 5,000 x 5,000", _square(5000, 2e-3), {"scipy": 0.57}, _agree),
        Row(f"sparse @ sparse, {side}", _square(N, 2e-4), {"scipy": 0.57}, _agree),
    ]  # fmt: skip
