"""Numeric functions with invalid matrices, lengths and arrays raise named errors of dovetail.

No exception of LAPACK, NumPy or Dask is passed on; valid calls have a result.
"""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload, operator"
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

WITH_NAN, WITH_INFINITY = np.eye(3), np.eye(3)
WITH_NAN[2, 1] = np.nan
WITH_INFINITY[0, 0] = np.inf
BAD: dict[str, np.ndarray[Any, Any]] = {
    "singular": np.ones((3, 3)), "indefinite": np.diag([1.0, -1, 2]), "wide": np.ones((2, 3)),
    "empty": np.ones((0, 0)), "no rows": np.ones((0, 3)), "no matrices": np.ones((0, 3, 3)),
    "NaN": WITH_NAN, "infinite": WITH_INFINITY, "a vector": np.ones(3), "a number": np.ones(()),
    "integers": np.eye(3, dtype=int), "one is singular": np.stack([np.eye(3), np.ones((3, 3))]),
    "one has NaN": np.stack([np.eye(3), WITH_NAN]), "huge": np.eye(3) * 1e308,
    "tiny": np.eye(3) * 5e-324,
}  # fmt: skip
ALONE = """cholesky det eig eigvals eigh eigvalsh inv matrix_norm matrix_rank pinv qr slogdet svd
svdvals lu expm cond trace vector_norm matrix_transpose diagonal"""


def ones_for(x: dt.Tensor) -> dt.Tensor:
    """Return a right-hand side."""
    return dt.ones(x.shape[-1:], dtype=dt.float64, device=x.device)


def of_name(name: str) -> Callable[[dt.Tensor], Any]:
    return lambda x: getattr(dt.linalg, name)(x)


CALLS: dict[str, Callable[[dt.Tensor], Any]] = {
    **{name: of_name(name) for name in ALONE.split()},
    "matrix_power": lambda x: dt.linalg.matrix_power(x, -2),
    "spectral norm": lambda x: dt.linalg.matrix_norm(x, ord=2),
    "solve": lambda x: dt.linalg.solve(x, ones_for(x)),
    "lstsq": lambda x: dt.linalg.lstsq(x, ones_for(x)),
    "solve_triangular": lambda x: dt.linalg.solve_triangular(x, ones_for(x), upper=False),
    "cholesky_solve": lambda x: dt.linalg.cholesky_solve(ones_for(x), x),
    "lu_solve": lambda x: dt.linalg.lu_solve(dt.linalg.lu(x), ones_for(x)),
    "multi_dot": lambda x: dt.linalg.multi_dot([x, x]),
    "cross": lambda x: dt.linalg.cross(x, x),
    "kron": lambda x: dt.linalg.kron(x, x),
    "block_diag": lambda x: dt.linalg.block_diag(x, x),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", CALLS)
def test_matrices_give_a_result_or_a_named_error(device: dt.Device, name: str, kind: str) -> None:
    x = dt.asarray(BAD[kind])
    try:
        made = CALLS[name](x)
        parts = made if isinstance(made, tuple) else (made,)
        found = [np.asarray(p) for p in parts]
    except dt.DovetailError as error:
        says = {"spectral norm": "matrix_norm", "lu_solve": "lu"}.get(name, name)
        assert str(error).startswith(says), error
        return
    assert all(p.shape == f.shape for p, f in zip(parts, found, strict=True))


def known(name: str, kind: str) -> type[dt.DovetailError] | None:
    """Return the expected error."""
    if kind in ("singular", "one is singular") and name in ("inv", "solve", "lu_solve"):
        return dt.LinAlgError
    if kind == "indefinite" and name == "cholesky":
        return dt.LinAlgError
    if kind in ("NaN", "infinite") and name in ("eig", "eigh", "svd", "svdvals", "pinv", "lstsq"):
        return dt.LinAlgError
    if kind in ("wide", "a vector", "a number") and name in ("inv", "det", "cholesky", "eig"):
        return dt.ShapeError
    return dt.DTypeError if kind == "integers" and name in ("inv", "cholesky", "svd") else None


@pytest.mark.parametrize(
    ("name", "kind"), [(n, k) for n in CALLS for k in BAD if known(n, k) is not None]
)
def test_matrix_without_a_result_raises_its_error_class(
    device: dt.Device, name: str, kind: str
) -> None:
    error = known(name, kind)
    assert error is not None
    with pytest.raises(error, match=r"\[1\] of the batch" if kind == "one is singular" else name):
        np.asarray(CALLS[name](dt.asarray(BAD[kind])))
    assert issubclass(dt.LinAlgError, ValueError)


def test_missing_keyword_of_solve_triangular_is_named(device: dt.Device) -> None:
    """A required keyword-only parameter."""
    with pytest.raises(
        dt.ArgumentTypeError,
        match="solve_triangular: missing argument upper; the parameters are x1",
    ):
        dt.linalg.solve_triangular(dt.eye(2), dt.ones(2))  # type: ignore[call-arg]  # on purpose


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
@pytest.mark.parametrize("n", [0, -1, -(1 << 70), 1 << 60, 2.5, "8"])
def test_invalid_transform_lengths_raise(device: dt.Device, name: str, n: Any) -> None:
    transform = getattr(dt.fft, name)
    x = dt.ones(8) if name in ("rfft", "ihfft") else dt.ones(8, dtype=dt.complex64)
    with pytest.raises(dt.ArgumentError, match=rf"^{name}: "):
        transform(x, n=n)
    with pytest.raises(dt.ArgumentError, match=rf"^{name}: there are no points"):
        transform(x[:0])


@pytest.mark.parametrize("name", ["fftn", "ifftn", "rfftn", "irfftn"])
def test_invalid_transform_lengths_of_several_axes_raise(device: dt.Device, name: str) -> None:
    x = dt.ones((4, 4)) if name == "rfftn" else dt.ones((4, 4), dtype=dt.complex64)
    for s in ((0, 2), (2, -3), (4, 4, 4)):
        with pytest.raises(dt.ArgumentError, match=rf"^{name}: "):
            getattr(dt.fft, name)(x, s=s)


ODD = [
    np.array([object(), 1], object), np.array([None]), np.array(["a", "b"]), np.array([b"ab"]),
    np.array([(1, 2.0)], dtype=[("a", "i4"), ("b", "f4")]), np.array(["2020-01-01"], "M8[D]"),
    np.array([1], "m8[s]"),
]  # fmt: skip
USES: list[Callable[[Any], Any]] = [
    lambda a: dt.asarray(a), lambda a: dt.ones(a.shape) + a, lambda a: a + dt.ones(a.shape),
    lambda a: np.add(dt.ones(a.shape), a), lambda a: dt.ones(a.shape) @ a,
    lambda a: dt.concat([dt.ones(a.shape), a]), lambda a: dt.where(dt.ones(a.shape) > 0, a, 1),
    lambda a: dt.ones(5)[a], lambda a: dt.ones(a.shape).__setitem__(..., a),
    lambda a: dt.linalg.solve(dt.eye(len(a)), a), lambda a: dt.from_dlpack(a),
]  # fmt: skip


@pytest.mark.parametrize("a", ODD, ids=lambda a: str(a.dtype))
@pytest.mark.parametrize("number", range(len(USES)))
def test_non_numeric_arrays_raise_named_errors(device: dt.Device, a: Any, number: int) -> None:
    with pytest.raises(dt.DovetailError, match=r"^\w+: "):
        USES[number](a)


def test_chunks_on_two_devices_raise_and_keep_their_values(device: dt.Device) -> None:
    da = pytest.importorskip("dask.array")
    other = "reference" if device != "reference" else "cpu"
    x, y = dt.ones((4, 4)), dt.ones((4, 4), device=other)
    p, q = (da.from_array(t, chunks=2, asarray=False) for t in (x, y))
    for work in (lambda: p + q, lambda: p @ q, lambda: da.concatenate([p, q]).sum()):
        with pytest.raises(dt.DeviceError, match=rf"{device}|{other}"):
            work().compute(scheduler="synchronous")
    assert (p + 1).compute(scheduler="synchronous").device is device
    assert x.tolist() == y.tolist() == np.ones((4, 4)).tolist()
