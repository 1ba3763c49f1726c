"""`np.linalg.*` of tensors call dovetail and return tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from matrices_for_tests import WIDE, definite, drawn, near

SQUARE: dict[str, Callable[[Any], Any]] = {
    "cholesky": np.linalg.cholesky,
    "cholesky upper": lambda a: np.linalg.cholesky(a, upper=True),
    "cond": np.linalg.cond,
    "cond 1": lambda a: np.linalg.cond(a, 1),
    "det": np.linalg.det,
    "eigh": np.linalg.eigh,
    "eigh U": lambda a: np.linalg.eigh(a, "U")[0],
    "eigvalsh": lambda a: np.linalg.eigvalsh(a, UPLO="u"),
    "inv": np.linalg.inv,
    "matrix_power": lambda a: np.linalg.matrix_power(a, 3),
    "multi_dot": lambda a: np.linalg.multi_dot([a, a, a]),
    "slogdet": np.linalg.slogdet,
    "solve": lambda a: np.linalg.solve(a, a),
}
ANY: dict[str, Callable[[Any], Any]] = {
    "cross": lambda a: np.linalg.cross(a, a[::-1]),
    "lstsq": lambda a: np.linalg.lstsq(a, a),
    "lstsq one": lambda a: np.linalg.lstsq(a, a[:, 0], rcond=-1),
    "lstsq wide": lambda a: np.linalg.lstsq(a.T, a.T),
    "matrix_norm": np.linalg.matrix_norm,
    "matrix_rank": np.linalg.matrix_rank,
    "matrix_rank tol": lambda a: np.linalg.matrix_rank(a, 2.0),
    "matrix_rank of a vector": lambda a: np.linalg.matrix_rank(a[0]),
    "norm": np.linalg.norm,
    "norm fro": lambda a: np.linalg.norm(a, "fro"),
    "norm 1": lambda a: np.linalg.norm(a, 1),
    "norm axis": lambda a: np.linalg.norm(a, axis=0, keepdims=True),
    "norm axes": lambda a: np.linalg.norm(a[:, None], np.inf, axis=(0, 2), keepdims=True),
    "norm of a vector": lambda a: np.linalg.norm(a[0], np.inf),
    "pinv": np.linalg.pinv,
    "pinv rcond": lambda a: np.linalg.pinv(a, 0.5),
    "qr": np.linalg.qr,
    "qr complete": lambda a: np.linalg.qr(a, "complete"),
    "qr r": lambda a: np.linalg.qr(a, mode="r"),
    "svd": np.linalg.svd,
    "svd reduced": lambda a: np.linalg.svd(a, full_matrices=False),
    "svd values": lambda a: np.linalg.svd(a, compute_uv=False),
    "svdvals": np.linalg.svdvals,
    "trace": lambda a: np.linalg.trace(a, offset=1),
    "vector_norm": np.linalg.vector_norm,
}


def _compare(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        assert len(found) == len(wanted)
        for have, want in zip(found, wanted, strict=True):
            _compare(have, want)
    else:
        assert isinstance(found, dt.Tensor)
        np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-8, atol=1e-10)
        assert found.shape == np.shape(wanted)


@pytest.mark.parametrize("dtype", WIDE)
@pytest.mark.parametrize("name", [*SQUARE, *ANY])
def test_numpy_functions_of_tensors_return_tensors(
    device: dt.Device, name: str, dtype: str
) -> None:
    a = definite(3, 3, dtype=dtype) if name in SQUARE else drawn(5, 3, dtype=dtype)
    call = (SQUARE | ANY)[name]
    found = call(dt.asarray(a))
    _compare(found, call(a))
    first = found[0] if isinstance(found, tuple) else found
    assert first.device is device


def test_numpy_eigenvalues_of_tensors_are_complex(device: dt.Device) -> None:
    a = drawn(3, 3, dtype="complex128")
    for found, wanted in zip(np.linalg.eig(dt.asarray(a)), np.linalg.eig(a), strict=True):
        assert isinstance(found, dt.Tensor)
        near(found, wanted)
    values: Any = np.linalg.eigvals(dt.asarray(a))
    near(values, np.linalg.eigvals(a))


def test_array_next_to_a_tensor_moves_to_its_device(device: dt.Device) -> None:
    a, b = definite(3, 3), drawn(3)
    found: Any = np.linalg.solve(a, dt.asarray(b))
    assert isinstance(found, dt.Tensor) and found.device is device
    near(found, np.linalg.solve(a, b))


@pytest.mark.parametrize("threshold", [(1, 0), [[0.6], [0.0], [2.0]], 0.6])
@pytest.mark.parametrize("name", ["tol", "rtol"])
def test_matrix_rank_broadcasts_thresholds_like_numpy(
    name: str, threshold: Any, device: dt.Device
) -> None:
    for a in (np.diag([1.0, 0.5]), np.array([np.diag([1.0, 0.5]), np.diag([0.0, 1.0])])):
        want = np.linalg.matrix_rank(a, **{name: threshold})
        for given in (threshold, np.asarray(threshold)):
            found: Any = np.linalg.matrix_rank(dt.asarray(a), **{name: given})
            assert found.tolist() == want.tolist()
            options: Any = {name: given, "hermitian": True}
            assert np.linalg.matrix_rank(dt.asarray(a), **options).tolist() == want.tolist()
    shares = np.array([0.6, 0.0])
    near(np.linalg.pinv(dt.asarray(a), shares), np.linalg.pinv(a, shares))


def test_unsupported_numpy_functions_name_an_alternative(device: dt.Device) -> None:
    x: Any = dt.ones((2, 2))
    for call in (
        lambda: np.linalg.tensorinv(x),
        lambda: np.linalg.qr(x, mode="raw"),
        lambda: np.linalg.eigh(x, UPLO="X"),
    ):
        with pytest.raises((TypeError, ValueError), match=r"np\.asarray\(x\)|mode|UPLO"):
            call()


def test_numpy_functions_have_gradients_and_dovetail_errors(device: dt.Device) -> None:
    x: Any = dt.asarray(definite(2, 2)).requires_grad_()
    made: Any = np.linalg.norm(np.linalg.inv(x))
    made.backward()
    assert x.grad is not None
    with pytest.raises(dt.LinAlgError, match="inv: the matrix is singular"):
        np.linalg.inv(x * 0)


def test_lstsq_returns_a_rank_of_numpys_dtype(device: dt.Device) -> None:
    a, b = np.vander(np.arange(5.0), 3), np.arange(5.0)
    x, y = dt.asarray(a), dt.asarray(b)
    assert np.linalg.lstsq(x, y)[2].dtype == np.linalg.lstsq(a, b)[2].dtype
    assert np.linalg.lstsq(x, y)[2].item() == 3
