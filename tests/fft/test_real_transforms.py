"""Transforms of real tensors, their inverses, and the frequencies of spectra."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import fft
from spectra_for_tests import drawn, near

LENGTHS = (1, 2, 3, 4, 5, 8, 15, 16, 17, 34, 60, 100, 127)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_even_and_odd_lengths_equal_numpy(
    device: dt.Device, dtype: str, thinned: Callable[..., Any]
) -> None:
    for n in thinned(LENGTHS, 3):
        a = drawn(3, n, dtype=dtype)
        s = np.fft.rfft(a.astype("f8"))
        x = dt.asarray(a)
        near(fft.rfft(x), s, 2)
        near(fft.ihfft(x), np.fft.ihfft(a.astype("f8")), 2)
        z = fft.rfft(x)
        near(fft.irfft(z, n), a, 4)
        if n > 1:
            near(fft.irfft(dt.asarray(s)), np.fft.irfft(s), 4)


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_norms_axes_and_lengths_equal_numpy(device: dt.Device, norm: Any) -> None:
    a, z = drawn(6, 5, 8, dtype="float64"), drawn(6, 5, 8)
    x, y = dt.asarray(a), dt.asarray(z)
    for axis in (0, 1, 2):
        for n in (None, 4, 7, 12):
            near(fft.rfft(x, n, axis, norm), np.fft.rfft(a, n, axis, norm), 2)
            near(fft.ihfft(x, n, axis, norm), np.fft.ihfft(a, n, axis, norm), 2)
            near(fft.irfft(y, n, axis, norm), np.fft.irfft(z, n, axis, norm), 2)
            near(fft.hfft(y, n, axis, norm), np.fft.hfft(z, n, axis, norm), 2)


def test_transforms_of_several_axes_equal_numpy(device: dt.Device) -> None:
    a, z = drawn(6, 5, 8, dtype="float64"), drawn(6, 5, 8)
    x, y = dt.asarray(a), dt.asarray(z)
    for axes in (None, (0, 1), (2, 0), (1,)):
        near(fft.rfftn(x, axes=axes), np.fft.rfftn(a, axes=axes), 2)
        near(fft.irfftn(y, axes=axes), np.fft.irfftn(z, axes=axes), 2)
    near(fft.rfftn(x, (4, 7), (0, 1)), np.fft.rfftn(a, (4, 7), (0, 1)), 2)
    near(fft.irfftn(y, (4, 7), (0, 1)), np.fft.irfftn(z, (4, 7), (0, 1)), 2)
    near(fft.rfft2(x, (4, -1)), np.fft.rfft2(a, (4, 8)), 2)
    near(fft.irfft2(y), np.fft.irfft2(z), 2)


def test_imaginary_parts_of_real_frequencies_are_ignored(device: dt.Device) -> None:
    z = drawn(5)
    for n in (8, 9):
        plain = z.copy()
        plain[0] = plain[0].real
        plain[4] = plain[4].real if n == 8 else plain[4]
        near(fft.irfft(dt.asarray(z), n), np.fft.irfft(plain, n), 2)


def test_empty_batches_have_empty_spectra(device: dt.Device) -> None:
    assert fft.rfft(dt.zeros((0, 8))).shape == (0, 5)
    assert fft.rfft(dt.zeros((0, 7))).shape == (0, 4)
    assert fft.irfft(dt.zeros((0, 5), dtype=dt.complex64)).shape == (0, 8)
    assert fft.irfft(dt.zeros((0, 5), dtype=dt.complex64), 9).shape == (0, 9)


@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_frequencies_equal_numpy(device: dt.Device, n: int) -> None:
    for d in (1.0, 0.25, -3.0):
        wide, narrow = fft.fftfreq(n, d=d, dtype=dt.float64), fft.fftfreq(n, d=d)
        np.testing.assert_array_max_ulp(wide.numpy(), np.fft.fftfreq(n, d))
        np.testing.assert_array_max_ulp(narrow.numpy(), np.fft.fftfreq(n, d).astype("f4"))
        found = fft.rfftfreq(n, d=d, dtype=dt.float64)
        np.testing.assert_array_max_ulp(found.numpy(), np.fft.rfftfreq(n, d))
    assert narrow.dtype is dt.float32 and narrow.device is device


def test_shifts_equal_numpy(device: dt.Device) -> None:
    a = np.arange(20).reshape(4, 5)
    x = dt.asarray(a)
    for axes in (None, 0, (1,), (0, 1)):
        assert fft.fftshift(x, axes).tolist() == np.fft.fftshift(a, axes).tolist()
        assert fft.ifftshift(x, axes).tolist() == np.fft.ifftshift(a, axes).tolist()
        assert fft.ifftshift(fft.fftshift(x, axes), axes).tolist() == a.tolist()
