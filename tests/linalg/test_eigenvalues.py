"""Eigenvalues of general matrices against NumPy, on every device."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail import linalg
from matrices_for_tests import DTYPES, WIDE, drawn, has_gradients, near, squared_magnitudes


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 4, 4), (0, 0), (0, 2, 2), (1, 1), (20, 20)])
def test_eigenvalues_equal_numpy_and_are_complex(
    device: dt.Device, shape: tuple, dtype: str
) -> None:
    a = drawn(*shape, dtype=dtype)
    kind = np.result_type(a.dtype, np.complex64)
    w, v = linalg.eig(dt.asarray(a))
    near(w, np.linalg.eig(a).eigenvalues.astype(kind))
    near(v, np.linalg.eig(a).eigenvectors.astype(kind))
    near(linalg.eigvals(dt.asarray(a)), np.linalg.eigvals(a).astype(kind))
    assert w.device is v.device is device


def test_real_eigenvalues_have_a_complex_dtype(device: dt.Device) -> None:
    x = dt.asarray([[2.0, 1.0], [1.0, 2.0]])
    w, v = linalg.eig(x)
    assert w.dtype is v.dtype is linalg.eigvals(x).dtype is dt.complex64
    near(x @ v, (v * w).numpy())


@pytest.mark.parametrize("dtype", WIDE)
def test_eigenvalues_and_eigenvectors_have_gradients(device: dt.Device, dtype: str) -> None:
    def parts(x: dt.Tensor) -> tuple[dt.Tensor, ...]:  # independent of the phases of vectors
        w, v = linalg.eig(x)
        return w, v @ (dt.exp(w)[..., None] * linalg.inv(v)), squared_magnitudes(v)

    a = drawn(3, 3, dtype=dtype)
    has_gradients(linalg.eigvals, a)
    has_gradients(parts, a)


def test_gradient_of_a_real_matrix_is_real(device: dt.Device) -> None:
    x = dt.asarray(drawn(2, 3, 3)).requires_grad_()
    dt.real(linalg.eigvals(x)).sum().backward()
    assert x.grad is not None and x.grad.dtype is dt.float64
    near(x.grad, np.stack([np.eye(3)] * 2))  # the sum of eigenvalues is the trace
