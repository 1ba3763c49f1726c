"""`stft` and `istft`: against their definition, SciPy and PyTorch."""

from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest


def signal(*shape: int, is_complex: bool = False) -> np.ndarray:
    r = np.random.default_rng(3)
    x = r.standard_normal(shape)
    return x + 1j * r.standard_normal(shape) if is_complex else x


def test_spectra_are_the_sums_of_their_definition(device: dt.Device) -> None:
    x, w, n, hop = signal(20), np.array([0.5, 1.0, 2.0, 1.0]), 6, 3
    padded = np.pad(x, 3, "reflect")
    full = np.array([0.0, *w, 0.0])
    want = [
        [sum(full[k] * padded[m * hop + k] * np.exp(-2j * np.pi * f * k / n) for k in range(n))
         for m in range(7)] for f in range(4)
    ]  # fmt: skip
    got = dt.stft(dt.asarray(x, device=device), n, hop, 4, dt.asarray(w, device=device))
    assert got.shape == (4, 7) and got.dtype is dt.complex128
    np.testing.assert_allclose(got.numpy(), want, atol=1e-13)
    back = dt.istft(got, n, hop, 4, dt.asarray(w, device=device), length=20)
    np.testing.assert_allclose(back.numpy(), x, atol=1e-13)


def test_methods_and_keywords_are_those_of_pytorch() -> None:
    x, w = dt.asarray(signal(2, 32)), dt.hann_window(8, dtype=dt.float64)
    y = x.stft(n_fft=8, hop_length=2, window=w, return_complex=True)
    assert y.tolist() == dt.stft(input=x, n_fft=8, hop_length=2, window=w).tolist()
    parts = x.stft(8, 2, window=w, return_complex=False)
    assert parts[..., 1].tolist() == y.imag.tolist()
    np.testing.assert_allclose(y.istft(8, 2, window=w).numpy(), x.numpy(), atol=1e-14)


def test_gradients_agree_with_finite_differences() -> None:
    x = dt.asarray(signal(12)).requires_grad_()
    w = dt.asarray([0.5, 1.0, 0.25, 1.0]).astype(dt.float64).requires_grad_()

    def spectra(x: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        return dt.abs(dt.stft(x, 4, 3, window=w, normalized=True)) ** 2

    def inverse(a: dt.Tensor, b: dt.Tensor, w: dt.Tensor) -> dt.Tensor:
        return dt.istft(a + 1j * b, 4, 2, window=w)

    assert dt.autograd.gradcheck(spectra, (x, w))
    a, b = (dt.asarray(signal(3, 5) * k).requires_grad_() for k in (1.0, 2.0))
    assert dt.autograd.gradcheck(inverse, (a, b, w))


def test_jit_and_vmap_give_the_same_values() -> None:
    x, w = dt.asarray(signal(3, 32)), dt.hann_window(8, dtype=dt.float64)
    want = dt.stft(x, 8, window=w)
    assert dt.vmap(lambda row: dt.stft(row, 8, window=w))(x).tolist() == want.tolist()
    back = dt.jit(lambda y: dt.istft(y, 8, window=w))
    for _ in range(3):
        assert back(want).tolist() == dt.istft(want, 8, window=w).tolist()


def test_float32_and_halves_give_complex64() -> None:
    x = dt.asarray(signal(16).astype("f"))
    for h in (x, x.astype(dt.float16)):
        assert dt.stft(h, 8).dtype is dt.complex64
    assert dt.istft(dt.stft(x, 8), 8).dtype is dt.float32


def test_point_without_a_window_is_an_error_when_the_work_runs() -> None:
    w = dt.hann_window(8)
    y = dt.stft(dt.ones(40), 8, 8, window=w, center=False)
    with pytest.raises(dt.OutOfRangeError, match="istft: each point must be within a window"):
        dt.istft(y, 8, 8, window=w, center=False).numpy()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: dt.stft(x.astype(dt.int32), 4), dt.DTypeError, "expected a signal of floats"),
        (lambda x: dt.stft(x, 0), dt.ArgumentError, "stft: n_fft"),
        (lambda x: dt.stft(x, 2), dt.ArgumentError, "stft: hop_length"),
        (lambda x: dt.stft(x, 8, win_length=9), dt.ArgumentError, "win_length must be at most"),
        (lambda x: dt.stft(x, 8, window=dt.ones(7)), dt.ShapeError, r"must have shape \(8,\)"),
        (lambda x: dt.stft(x, 8, pad_mode="wrap"), dt.ArgumentError, "stft: pad_mode"),
        (lambda x: dt.stft(x, 21, center=False), dt.ShapeError, "at least n_fft = 21 points"),
        (lambda x: dt.stft(x * 1j, 8, onesided=True), dt.ArgumentError, "onesided must be False"),
        (lambda x: dt.istft(x, 8), dt.DTypeError, "x must be complex"),
        (lambda x: dt.istft(dt.stft(x, 8), 10), dt.ShapeError, "must have shape"),
        (lambda x: dt.istft(dt.stft(x, 8), 8, return_complex=True), dt.ArgumentError, "onesided"),
        (
            lambda x: dt.istft(dt.stft(x, 8), 8, window=dt.ones(8) * 1j),
            dt.ArgumentError,
            "return_complex must be True",
        ),
    ],
)
def test_wrong_arguments_are_refused(call: Any, error: Any, text: str) -> None:
    with pytest.raises(error, match=text):
        call(dt.asarray(signal(20)))


def test_spectra_agree_with_scipy() -> None:
    scipy_signal = pytest.importorskip("scipy.signal", reason="scipy is not installed")
    x, w = signal(2, 50), np.hanning(9)[:-1] + 0.1
    _, _, want = scipy_signal.stft(
        x, window=w, nperseg=8, noverlap=5, boundary=None, padded=False, scaling="spectrum"
    )
    got = dt.stft(dt.asarray(x), 8, 3, window=dt.asarray(w), center=False)
    np.testing.assert_allclose(got.numpy() / w.sum(), want, atol=1e-14)


# --- PyTorch --------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [
    {}, {"hop_length": 3}, {"win_length": 5}, {"win_length": 4, "window": 4}, {"window": 8},
    {"window": 8, "center": False, "hop_length": 2}, {"normalized": True, "window": 8},
    {"onesided": False, "window": 8}, {"pad_mode": "constant"}, {"pad_mode": "replicate"},
    {"pad_mode": "circular"}, {"n_fft": 9, "hop_length": 4}, {"return_complex": False},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("is_complex", [False, True])
@pytest.mark.parametrize("shape", [(23,), (3, 32)])
def test_spectra_and_signals_agree_with_pytorch(
    options: dict[str, Any], is_complex: bool, shape: tuple[int, ...]
) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    x = signal(*shape, is_complex=is_complex)
    options = {"n_fft": 8, "return_complex": True, **options}
    if is_complex:
        options["onesided"] = False
    w = np.linspace(
        0.5, 1.5, options.pop("window", 0) or options.get("win_length", options["n_fft"])
    )
    with warnings.catch_warnings():  # PyTorch warns of return_complex=False
        warnings.simplefilter("ignore")
        want = torch.stft(torch.from_numpy(x), window=torch.from_numpy(w), **options)
    got = dt.stft(dt.asarray(x), window=dt.asarray(w), **options)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-13)
    if not options.pop("return_complex"):
        return
    options.pop("pad_mode", None)
    if "win_length" in options:
        return  # some points are in no window
    for length in (None, 12, 28 if shape == (23,) else 40):
        more = {**options, "length": length, "return_complex": is_complex}
        with warnings.catch_warnings():  # PyTorch warns of zeros at the end
            warnings.simplefilter("ignore")
            back = torch.istft(want, window=torch.from_numpy(w), **more)
        ours = dt.istft(got, window=dt.asarray(w), **more)
        np.testing.assert_allclose(ours.numpy(), back.numpy(), atol=1e-12)


@pytest.mark.parametrize("name", ["hann", "hamming", "blackman", "bartlett", "kaiser"])
@pytest.mark.parametrize("periodic", [True, False])
@pytest.mark.parametrize("n", [0, 1, 2, 7, 12])
def test_windows_agree_with_pytorch(name: str, periodic: bool, n: int) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    got = getattr(dt, f"{name}_window")(n, periodic, dtype=dt.float64)
    want = getattr(torch, f"{name}_window")(n, periodic, dtype=torch.float64)
    np.testing.assert_allclose(got.numpy(), want.numpy(), atol=1e-14)


def test_windows_with_parameters_agree_with_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    calls = "hamming_window(9, True, 0.6, 0.3) | kaiser_window(9, False, 3.0)"
    for call in calls.split(" | "):
        ours, theirs = eval(f"dt.{call}", {"dt": dt}), eval(f"torch.{call}", {"torch": torch})
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), atol=1e-6)
