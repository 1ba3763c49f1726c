"""Transforms of complex tensors along one axis and several."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import fft
from dovetail.fft import twiddles
from installed import INSTALLED
from spectra_for_tests import drawn, near

NORMS = ("backward", "ortho", "forward")


@pytest.mark.parametrize(("dtype", "step"), [("complex64", 1), ("complex128", 5)])
def test_every_short_length_equals_numpy(device: dt.Device, dtype: str, step: int) -> None:
    for n in range(1, 65, step):
        a = drawn(3, n, dtype=dtype, seed=n)
        x = dt.asarray(a)
        near(fft.fft(x), np.fft.fft(a.astype("c16")))
        near(fft.ifft(x), np.fft.ifft(a.astype("c16")))


@pytest.mark.parametrize("n", [97, 101, 256, 1000, 1024, 2310, 4096, 10007])
def test_long_lengths_equal_numpy(device: dt.Device, n: int) -> None:
    for dtype in ("complex64", "complex128"):
        a = drawn(2, n, dtype=dtype)
        near(fft.fft(dt.asarray(a)), np.fft.fft(a.astype("c16")))
    near(fft.ifft(fft.fft(dt.asarray(a))), a)


@pytest.mark.parametrize("shape", [(24, 40), (40, 24), (2, 24, 3), (24, 2, 2), (2, 17, 20)])
def test_transforms_along_any_axis_and_strides_equal_numpy(
    device: dt.Device, shape: tuple[int, ...]
) -> None:
    a = drawn(*shape)
    x = dt.asarray(a)
    for axis in range(-len(shape), len(shape)):
        near(fft.fft(x, axis=axis), np.fft.fft(a, axis=axis))
        near(fft.ifft(x.mT, axis=axis), np.fft.ifft(a.swapaxes(-1, -2), axis=axis))
        near(fft.fft(x[::-1, 1::2], axis=axis), np.fft.fft(a[::-1, 1::2], axis=axis))
    wide = dt.broadcast_to(x[:1], shape)
    near(fft.fft(wide, axis=0), np.fft.fft(np.broadcast_to(a[:1], shape), axis=0))


@pytest.mark.parametrize("rows", [1, 5, 100])
def test_batches_of_any_size_equal_numpy(
    device: dt.Device, rows: int, thinned: Callable[..., Any]
) -> None:
    for n in thinned((2, 6, 16, 20, 34, 48, 512), 3):
        a = drawn(rows, n)
        near(fft.fft(dt.asarray(a)), np.fft.fft(a))


@pytest.mark.parametrize("norm", [*NORMS, None])
def test_norms_equal_numpy(device: dt.Device, norm: Any) -> None:
    for n in (6, 17):
        a = drawn(2, n)
        x = dt.asarray(a)
        near(fft.fft(x, norm=norm), np.fft.fft(a, norm=norm))
        near(fft.ifft(x, norm=norm), np.fft.ifft(a, norm=norm))
        near(fft.fftn(x, norm=norm), np.fft.fftn(a, norm=norm))
        near(fft.ifftn(x, norm=norm), np.fft.ifftn(a, norm=norm))
        near(fft.ifft(x, 1, norm=norm), np.fft.ifft(a, 1, norm=norm))


@pytest.mark.parametrize("n", [1, 3, 8, 9])
def test_length_argument_truncates_or_pads(device: dt.Device, n: int) -> None:
    a = drawn(5, 7)
    for axis in (0, 1):
        near(fft.fft(dt.asarray(a), n, axis), np.fft.fft(a, n, axis))
    near(fft.fft2(dt.asarray(a), (n, 4)), np.fft.fft2(a, (n, 4)))
    near(fft.ifft2(dt.asarray(a), (n, -1)), np.fft.ifft2(a, (n, 7)))


def test_several_axes_in_any_order_equal_numpy(device: dt.Device) -> None:
    a = drawn(4, 6, 10)
    x = dt.asarray(a)
    for axes in (None, (0,), (2, 0), (1, -1), ()):
        near(fft.fftn(x, axes=axes), np.fft.fftn(a, axes=axes))
        near(fft.ifftn(x, axes=axes), np.fft.ifftn(a, axes=axes))
    near(fft.fftn(x, (3, 5)), np.fft.fftn(a, (3, 5), axes=(1, 2)))
    near(fft.fftn(x, s=(3, 5), axes=(2, 0)), np.fft.fftn(a, s=(3, 5), axes=(2, 0)))


def test_result_dtype_follows_the_operand(device: dt.Device) -> None:
    for name, wide in [("float32", "complex64"), ("float64", "complex128"), ("int8", "complex64"),
                       ("bool", "complex64"), ("float16", "complex64"),
                       ("bfloat16", "complex64"), ("complex128", "complex128")]:  # fmt: skip
        x = dt.asarray([1, 0, 1], dtype=name)
        found = fft.fft(x)
        assert found.dtype == wide
        near(found, np.fft.fft([1, 0, 1]))


def test_empty_batches_have_empty_spectra(device: dt.Device) -> None:
    for shape in ((0, 4), (2, 0, 16), (3, 17, 0)):
        x = dt.zeros(shape, dtype=dt.complex64)
        assert fft.fft(x, axis=-2 if shape[-1] == 0 else -1).shape == shape
        assert fft.ifft(x, 3, axis=1).shape == (shape[0], 3, *shape[2:])


def test_every_device_has_the_same_bits(thinned: Callable[..., Any]) -> None:
    made = []
    for device in ("reference", *sorted({"cpu", "opencl"} & INSTALLED)):
        bits = []
        for dtype, sizes in (
            ("complex64", (5, 17, 60, 128, 1000)),
            ("complex128", (13, 48, 64, 256)),
        ):
            for n in thinned(sizes, 2):
                x = dt.asarray(drawn(20, n, dtype=dtype), device=device)
                bits += [f.numpy().tobytes() for f in (fft.fft(x), fft.ifft(x, axis=0))]
                bits += [fft.rfft(dt.real(x)).numpy().tobytes(), fft.irfft(x).numpy().tobytes()]
        made.append(bits)
    assert all(bits == made[0] for bits in made)


def test_rows_that_fit_a_cache_are_one_kernel() -> None:
    if "cpu" not in INSTALLED:
        pytest.skip("dovetail-cpu-llvm is not installed")
    for device, n, launches in (
        ("cpu", 64, 1),
        ("cpu", 256, 1),
        ("cpu", 512, 2),
        ("reference", 256, 2),
    ):
        a = drawn(3, n, dtype="complex64")
        x = dt.asarray(a, device=device)
        dt.evaluate(fft.fft(x))  # its table is cached
        with dt.profile() as profile:
            found = fft.ifft(x, norm="ortho")
            dt.evaluate(found)
        assert (
            sum(line.count for line in profile.lines() if "launch fourier" in line.name) == launches
        )
        near(found, np.fft.ifft(a, norm="ortho"), 4)


def test_transforms_can_be_saved(device: dt.Device, tmp_path: Path) -> None:
    for n in (64, 60):
        x = dt.asarray(drawn(3, n, dtype="complex64"))
        f = dt.jit(lambda x: fft.fft(x))
        wanted = f(x).numpy()
        dt.save_function(f, tmp_path / "f")
        assert np.array_equal(dt.load_function(tmp_path / "f")(x).numpy(), wanted)


def test_bits_of_a_row_do_not_depend_on_the_batch(device: dt.Device) -> None:
    a = drawn(40, 48, dtype="complex64")
    one, all_ = fft.fft(dt.asarray(a[3])), fft.fft(dt.asarray(a))
    across = fft.fft(dt.asarray(np.ascontiguousarray(a.T)), axis=0)
    assert one.numpy().tobytes() == all_[3].numpy().tobytes()
    assert one.numpy().tobytes() == across[:, 3].numpy().tobytes()


def test_errors_are_no_larger_than_those_of_numpy() -> None:
    for n in (243, 1000, 4096, 10007, 1 << 15):
        a = drawn(n)
        exact = np.fft.fft(a.astype(np.clongdouble))
        ours, theirs = (
            np.linalg.norm(np.asarray(f - exact, "c16"))
            for f in (fft.fft(dt.asarray(a)).numpy(), np.fft.fft(a))
        )
        assert ours <= 1.25 * theirs


def test_transform_of_a_unit_impulse_is_a_wave(device: dt.Device) -> None:
    for n in (12, 17, 64):
        a = np.zeros(n)
        a[1] = 1.0
        near(fft.fft(dt.asarray(a)), np.exp(-2j * np.pi * np.arange(n) / n), 4)


def test_results_can_be_written_in_place(device: dt.Device) -> None:
    a = drawn(4, 32)
    x = dt.asarray(a)
    x[...] = fft.fft(x)
    near(x, np.fft.fft(a))
    x[1:3] = fft.fft(x[1:3] * 2.0)
    near(x[1:3], np.fft.fft(np.fft.fft(a)[1:3] * 2))


def test_numpy_functions_of_tensors_call_dovetail(device: dt.Device) -> None:
    a = drawn(4, 6)
    x = dt.asarray(a)
    for name in ("fft", "ifft", "fftn", "ifftn", "fft2", "ifft2", "hfft", "irfft", "irfft2",
                 "irfftn", "fftshift", "ifftshift"):  # fmt: skip
        found = getattr(np.fft, name)(x)
        assert isinstance(found, dt.Tensor)
        near(found, getattr(np.fft, name)(a))
    near(np.fft.rfft(dt.real(x), 4, norm="ortho"), np.fft.rfft(a.real, 4, norm="ortho"))


def test_captured_transforms_equal_numpy(device: dt.Device) -> None:
    captured = dt.jit(lambda x: fft.ifft(fft.fft(x) * 2.0))
    for seed in (0, 1, 2):
        for n in (34, 60):
            a = drawn(n, seed=seed)
            near(captured(dt.asarray(a)), 2 * a, 2)
    near(fft.fft(dt.asarray(a)), np.fft.fft(a))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: fft.fft(x, 0), dt.ArgumentError, "fft: n must be at least 1, got 0"),
        (lambda x: fft.ifft(x, -3), dt.ArgumentError, "ifft: n must be at least 1, got -3"),
        (lambda x: fft.fft(x, 2.5), dt.ArgumentTypeError, "fft: n must be an int"),
        (lambda x: fft.fft(x[:, :0]), dt.ArgumentError, "fft: the axis has size 0"),
        (lambda x: fft.fft(x, axis=2), dt.AxisError, "fft: axis 2 is out of range"),
        (lambda x: fft.fft(x[0, 0]), dt.AxisError, "fft: axis -1"),
        (lambda x: fft.fft(x, norm="both"), dt.ArgumentError, "fft: norm must be 'backward' or"),
        (lambda x: fft.fftn(x, axes=(), norm="both"), dt.ArgumentError, "fftn: norm must be"),
        (lambda x: fft.fftn(x, (2, 2, 2)), dt.ArgumentError, "fftn: s must have at most 2 lengths"),
        (lambda x: fft.fftn(x, (2, 0)), dt.ArgumentError, "fftn: n must be at least 1, got 0"),
        (
            lambda x: fft.fftn(x, (2,), (0, 1)),
            dt.ArgumentError,
            "fftn: s and axes must have the same length, got 1 and 2",
        ),
        (lambda x: fft.fftn(x, axes=(0, -2)), dt.AxisError, r"fftn: axes must be distinct"),
        (lambda x: fft.fft2(x[0]), dt.AxisError, "fft2: axis -2"),
        (lambda x: fft.rfft(x), dt.DTypeError, "rfft: x must be real, got complex128"),
        (lambda x: fft.ihfft(x), dt.DTypeError, "ihfft: x must be real"),
        (lambda x: fft.rfftn(dt.real(x), axes=()), dt.ArgumentError, "rfftn: axes must name"),
        (lambda x: fft.irfft(x, 0), dt.ArgumentError, "irfft: n must be at least 1"),
        (lambda x: fft.irfft(x[:, :1]), dt.ArgumentError, "irfft: the axis has size 0"),
        (lambda x: fft.fftfreq(0), dt.ArgumentError, "fftfreq: n must be at least 1"),
        (lambda x: fft.rfftfreq(4, d=0), dt.ArgumentError, "rfftfreq: d, the spacing"),
        (lambda x: fft.fftfreq(4, dtype=dt.int32), dt.DTypeError, "fftfreq"),
        (lambda x: fft.fftshift(x, 5), dt.AxisError, "fftshift: axis 5"),
    ],
)
def test_wrong_arguments_are_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call(dt.asarray(drawn(3, 4), device="reference"))


def test_twiddle_tables_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(twiddles, "TABLE_CACHE_BYTES_MAX", 4096)
    tables = twiddles._tables
    for n in range(40, 80, 2):
        near(fft.fft(dt.asarray(drawn(n), device="reference")), np.fft.fft(drawn(n)))
    assert sum(t.nbytes for t in tables.entries().values() if t.nbytes < 4096) <= 4096 + 2048


def test_twiddle_tables_beyond_host_memory_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(n: int) -> np.ndarray:
        raise MemoryError("Unable to allocate 15.0 GiB")

    monkeypatch.setattr("dovetail.fft.twiddles._concatenate_roots", refused)
    with pytest.raises(dt.OutOfMemoryError, match="roots of unity for 7,776 points"):
        dt.fft.fft(dt.ones(7776)).numpy()
