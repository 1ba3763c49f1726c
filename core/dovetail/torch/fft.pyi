# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.fft`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from collections.abc import Sequence
from dovetail.fft.transform_arguments import Norm, Sizes
from dovetail.functions.datatypes import DTypeLike, DeviceLike
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any, overload

@overload
def fft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the discrete Fourier transforms along an axis: sums of x[j] exp(-2 pi i j k /
    n)."""
@overload
def fft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def fft2(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the transforms along two axes, by default the last two; see `fftn`."""
@overload
def fft2(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
def fftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the frequencies of the result of `fft` for n points: 0, 1, ..., -2, -1, over n
    d."""
@overload
def fftn(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the transforms along several axes, one after the other."""
@overload
def fftn(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def fftshift(
    x: AnyTensor, /, axes: int | Sequence[int] | None = None, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a spectrum rolled so that frequency 0 is in the middle of some axes, of all for
    None."""
@overload
def fftshift(
    input: AnyTensor, dims: int | Sequence[int] | None = None, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def hfft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the real transforms along an axis of points whose other half is the
    conjugate."""
@overload
def hfft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def ifft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the inverse transforms along an axis: sums of x[j] exp(2 pi i j k / n), over
    n."""
@overload
def ifft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def ifft2(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the inverse transforms along two axes, by default the last two; see `ifftn`."""
@overload
def ifft2(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def ifftn(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the inverse transforms along several axes, one after the other."""
@overload
def ifftn(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def ifftshift(
    x: AnyTensor, /, axes: int | Sequence[int] | None = None, *, out: AnyTensor | None = None
) -> Tensor:
    """Return a spectrum with the frequency 0 first: the inverse of `fftshift`."""
@overload
def ifftshift(
    input: AnyTensor, dims: int | Sequence[int] | None = None, *, out: AnyTensor | None = None
) -> Tensor: ...
@overload
def ihfft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the first n // 2 + 1 inverse transforms of real points: the inverse of
    `hfft`."""
@overload
def ihfft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def irfft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along an axis is `x`: the inverse of
    `rfft`."""
@overload
def irfft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def irfft2(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along two axes is `x`: the inverse of
    `rfft2`."""
@overload
def irfft2(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def irfftn(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the real numbers whose half spectrum along several axes is `x`: inverse of
    `rfftn`."""
@overload
def irfftn(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def rfft(
    x: AnyTensor,
    /,
    n: int | None = None,
    axis: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along an axis: the half that determines the
    other."""
@overload
def rfft(
    input: AnyTensor,
    n: int | None = None,
    dim: int = -1,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
@overload
def rfft2(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along two axes, by default the last two; see
    `rfftn`."""
@overload
def rfft2(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = ...,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
def rfftfreq(
    n: int,
    /,
    *,
    d: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the frequencies of the result of `rfft` for n points: 0, 1, ..., over n d."""
@overload
def rfftn(
    x: AnyTensor,
    /,
    s: Sizes = None,
    axes: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor:
    """Return the transforms of real numbers along several axes: `rfft` of the last, then
    `fft`."""
@overload
def rfftn(
    input: AnyTensor,
    s: Sizes = None,
    dims: Sizes = None,
    norm: Norm = "backward",
    *,
    out: AnyTensor | None = None,
) -> Tensor: ...
def __getattr__(name: str) -> Any: ...
