"""First and second derivatives of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import fft
from spectra_for_tests import drawn, near


def _leaf(a: Any) -> dt.Tensor:
    return dt.asarray(a, device="reference").requires_grad_()


@pytest.mark.parametrize(
    "function",
    [
        fft.fft,
        lambda x: fft.ifft(x, axis=0, norm="ortho"),
        lambda x: fft.fft(x, 17),
        lambda x: fft.fft(x, 2),
        lambda x: fft.fftn(x, norm="forward"),
        fft.irfft,
        lambda x: fft.irfft(x, 5),
        lambda x: fft.hfft(x, 6),
        fft.irfftn,
        fft.fftshift,
    ],
)
def test_gradients_of_complex_transforms_pass_gradcheck(
    function: Callable[[dt.Tensor], dt.Tensor],
) -> None:
    x = _leaf(drawn(3, 4))
    assert dt.autograd.gradcheck(function, [x])
    assert dt.autograd.gradgradcheck(function, [x])


@pytest.mark.parametrize(
    "function",
    [fft.fft, fft.rfft, lambda x: fft.rfft(x, axis=0), fft.ihfft, fft.rfftn, fft.rfft2],
)
def test_gradients_of_real_transforms_pass_gradcheck(
    function: Callable[[dt.Tensor], dt.Tensor],
) -> None:
    x = _leaf(drawn(3, 4, dtype="float64"))
    assert dt.autograd.gradcheck(function, [x])
    assert dt.autograd.gradgradcheck(function, [x])


def test_gradient_of_energy_is_twice_the_operand(device: dt.Device) -> None:
    a = drawn(6, 20)
    x = dt.asarray(a).requires_grad_()
    dt.sum(dt.square(dt.abs(fft.fft2(x, norm="ortho")))).backward()
    assert x.grad is not None
    near(x.grad, 2 * a, 4)


def test_gradient_descent_learns_a_filter(device: dt.Device) -> None:
    a, wanted = drawn(16, dtype="float64"), drawn(16, dtype="float64", seed=1)
    x, y = dt.asarray(a), dt.asarray(np.fft.irfft(np.fft.rfft(a) * np.fft.rfft(wanted)))
    h = dt.asarray(np.fft.rfft(wanted)).requires_grad_()
    error = dt.sum(dt.square(fft.irfft(fft.rfft(x) * h) - y))
    error.backward()
    assert h.grad is not None and float(error) < 1e-20
    assert float(dt.max(dt.abs(h.grad))) < 1e-10
