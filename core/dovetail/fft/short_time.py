"""Short-time Fourier transforms: spectra of overlapping windows of a signal, and their inverse."""

from __future__ import annotations

from ..argument_checks import choice, integer
from ..dtypes import float32, float64, int64
from ..errors import ArgumentError, DTypeError, ShapeError
from ..functions.creation.constructors import ones
from ..functions.datatypes import cast
from ..functions.elementwise import op_functions as ew
from ..functions.indexing.index_arrays import in_range
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import stack
from ..functions.shape.manipulation import broadcast_to, expand_dims, swapaxes
from ..functions.shape.padding import pad
from ..functions.shape.patches import fold, sliding_window_view
from ..functions.variants import public
from ..tensor.primitives import slice_along
from ..tensor.tensor import Tensor, required, strided
from .real_transforms import irfft, rfft
from .transform_arguments import Norm
from .transforms import fft, ifft

__all__ = ["istft", "stft"]

PAD_MODES = {  # PyTorch's names, and those of `pad`
    "reflect": "reflect",
    "constant": "constant",
    "replicate": "edge",
    "circular": "wrap",
}
ENVELOPE_MIN = 1e-11  # PyTorch's bound of the sum of squared windows


def _parse_hop(op: str, n_fft: int, hop_length: int | None) -> tuple[int, int]:
    """Return n_fft and the hop, n_fft // 4 for None, as ints. Raises: ArgumentError below 1."""
    n = integer(op, n_fft, "n_fft", 1)
    return n, integer(op, n // 4 if hop_length is None else hop_length, "hop_length", 1)


def _full_window(
    op: str, window: Tensor | None, win_length: int | None, n_fft: int, like: Tensor
) -> Tensor:
    """Return a window of n_fft points: the given one, or ones, between zeros.

    Raises: ArgumentError for a length out of range, ShapeError for a window of another length.
    """
    n = n_fft if win_length is None else integer(op, win_length, "win_length", 1)
    if n > n_fft:
        raise ArgumentError(f"{op}: win_length must be at most n_fft, {n_fft}, got {n}")
    if window is None:
        part = like.dtype.part or like.dtype
        window = ones((n,), dtype=float64 if part is float64 else float32, device=like.device)
    elif strided(op, required(op, window)).shape != (n,):
        raise ShapeError(f"{op}: window must have shape ({n},), got shape {window.shape}")
    before = (n_fft - n) // 2
    return window if n == n_fft else pad(window, (before, n_fft - n - before))


@public(widen=False)
def stft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Return the spectra of overlapping windows of a signal, PyTorch's `stft`.

    - `n_fft`: the number of points of each transform.
    - `hop_length`: the distance of windows, n_fft // 4 unless given.
    - `win_length`: the length of `window`, n_fft unless given. A shorter one has zeros on both
      sides.
    - `window`: the factors of the points of each window, such as `hann_window`; None is ones.
    - `center`: pad the signal by n_fft // 2 on both sides, so that window k is centered at
      k * hop_length. False begins window k there.
    - `pad_mode`: the padding: "reflect", "constant" (zeros), "replicate" or "circular".
    - `normalized`: divide by the square root of n_fft.
    - `onesided`: return frequencies 0 to n_fft // 2 only: the default for real numbers.
    - `return_complex`: False returns the real and imaginary parts along a last axis.

    Shapes: (..., n) gives (..., frequencies, windows).
    Dtypes: floats and complex numbers; halves are computed in float32.
    Raises: ShapeError for a signal shorter than n_fft, ArgumentError, DTypeError.
    See also: `istft`, `fft.rfft`, `hann_window`.

    >>> import dovetail as dt
    >>> x = dt.cos(dt.arange(64) * (dt.pi / 4))
    >>> y = dt.stft(x, 16, window=dt.hann_window(16))
    >>> y.shape, dt.argmax(dt.abs(y[:, 8])).item()
    ((9, 17), 2)
    """
    op = "stft"
    if strided(op, required(op, x)).dtype.kind not in "fc" or x.ndim < 1:
        raise DTypeError(
            f"{op}: expected a signal of floats or complex numbers, got {x.dtype.name}"
            f"{list(x.shape)}; use x.astype(dt.float32)"
        )
    n, hop = _parse_hop(op, n_fft, hop_length)
    factors = _full_window(op, window, win_length, n, x)
    mode = PAD_MODES[choice(op, pad_mode, "pad_mode", tuple(PAD_MODES))]
    if center:
        x = pad(x, [*[(0, 0)] * (x.ndim - 1), (n // 2, n // 2)], mode)
    if x.shape[-1] < n:
        raise ShapeError(
            f"{op}: the signal must have at least n_fft = {n} points, got shape {x.shape}"
        )
    frames = sliding_window_view(x, n, axis=-1)[..., ::hop, :] * factors
    is_real = frames.dtype.kind == "f"
    if onesided and not is_real:
        raise ArgumentError(f"{op}: onesided must be False for complex numbers, got {onesided}")
    transform = rfft if is_real and onesided is not False else fft
    spectra = swapaxes(transform(frames, norm="ortho" if normalized else "backward"), -1, -2)
    if return_complex is False:
        return stack([ew.real(spectra), ew.imag(spectra)], axis=-1)
    return spectra


@public(widen=False)
def istft(
    x: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal of given spectra, by least squares: the inverse of `stft`.

    - `n_fft`, `hop_length`, `win_length`, `window`, `normalized`: those of `stft`.
    - `center`: remove the padding of `stft`.
    - `onesided`: `x` has frequencies 0 to n_fft // 2 only, by default unless it has n_fft.
    - `length`: the length of the signal, which is cut or filled with zeros.
    - `return_complex`: True returns complex numbers; then `x` must have n_fft frequencies.

    Shapes: (..., frequencies, windows) gives (..., n).
    Dtypes: complex numbers.
    Raises: ShapeError, ArgumentError, DTypeError; OutOfRangeError for a point that no window
    covers.
    See also: `stft`.

    >>> import dovetail as dt
    >>> x, w = dt.arange(32) / 32.0, dt.hann_window(8)
    >>> y = dt.istft(dt.stft(x, 8, window=w), 8, window=w)
    >>> bool(dt.abs(y - x).max() < 1e-6)
    True
    """
    op = "istft"
    if strided(op, required(op, x)).dtype.kind != "c":
        raise DTypeError(f"{op}: x must be complex, got {x.dtype.name}; use x.astype(dt.complex64)")
    n, hop = _parse_hop(op, n_fft, hop_length)
    sizes = x.shape[-2:]
    one = sizes[:1] != (n,) if onesided is None else onesided
    if x.ndim < 2 or not sizes[1] or sizes[0] != (n // 2 + 1 if one else n):
        raise ShapeError(
            f"{op}: x must have shape (..., {n // 2 + 1 if one else n}, windows) for n_fft={n} "
            f"with at least one window, got shape {x.shape}"
        )
    factors = _full_window(op, window, win_length, n, x)
    if return_complex and one:
        raise ArgumentError(
            f"{op}: onesided must be False with return_complex=True, got {onesided}"
        )
    if not return_complex and factors.dtype.kind == "c":
        raise ArgumentError(f"{op}: return_complex must be True for a complex window, got False")

    norm: Norm = "ortho" if normalized else "backward"
    spectra = swapaxes(x, -1, -2)
    if return_complex:
        frames = ifft(spectra, norm=norm)
    else:
        frames = irfft(slice_along(spectra, x.ndim - 1, 0, n // 2 + 1), n, norm=norm)
    total = n + hop * (sizes[1] - 1)
    begin = n // 2 if center else 0
    end = total - begin if length is None else begin + integer(op, length, "length", 0)
    products = fold(swapaxes(frames * factors, -1, -2), (total,), (n,), stride=(hop,))
    squares = broadcast_to(expand_dims(factors * factors, -1), (n, sizes[1]))
    envelope = fold(squares, (total,), (n,), stride=(hop,))[0, begin:end]
    uncovered = sum_(ew.abs(envelope) <= ENVELOPE_MIN, dtype=int64)
    rule = "each point must be within a window that is not 0 there; points without one must be 0"
    covered = in_range(op, uncovered, 1, rule=rule)  # 0, when the work runs
    signal = products[..., 0, begin:end] / (envelope + cast(covered, envelope.dtype))
    missing = max(end - total, 0)
    return pad(signal, [*[(0, 0)] * (x.ndim - 2), (0, missing)]) if missing else signal
