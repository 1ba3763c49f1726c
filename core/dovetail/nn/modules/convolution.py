"""Layers of convolutions with learnable filters."""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeAlias

import dovetail as dt
from dovetail.extend import DeviceLike, DTypeLike, arguments

from ..functional import convolution as functions
from ..functional.resampling import pad
from ..functional.sizes import Sizes, check_sizes
from .module import Module
from .parameter import Parameter

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
]

Tensor: TypeAlias = dt.Tensor

PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """The base of convolutions: `weight`, `bias` and the options of positions."""

    axes: ClassVar[int] = 0
    transposed: ClassVar[bool] = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes,
        padding: Sizes | str,
        dilation: Sizes,
        output_padding: Sizes,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike | None,
        dtype: DTypeLike | None,
    ) -> None:
        super().__init__()
        op, axes = type(self).__name__, self.axes
        (self.in_channels,) = check_sizes(op, in_channels, "in_channels", 1, 1)
        (self.out_channels,) = check_sizes(op, out_channels, "out_channels", 1, 1)
        (self.groups,) = check_sizes(op, groups, "groups", 1, 1)
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise dt.ArgumentError(
                    f"{op}: {name} must be divisible by groups, got {getattr(self, name)} and "
                    f"groups={self.groups}"
                )
        self.kernel_size = check_sizes(op, kernel_size, "kernel_size", axes, 1)
        self.stride = check_sizes(op, stride, "stride", axes, 1)
        self.dilation = check_sizes(op, dilation, "dilation", axes, 1)
        self.output_padding = check_sizes(op, output_padding, "output_padding", axes)
        self.padding = self._check_padding(op, padding)
        allowed = PADDING_MODES[:1] if self.transposed else PADDING_MODES
        self.padding_mode = arguments.choice(op, padding_mode, "padding_mode", allowed)
        lead = (
            (self.in_channels, self.out_channels)
            if self.transposed
            else (self.out_channels, self.in_channels)
        )
        shape = (lead[0], lead[1] // self.groups, *self.kernel_size)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = Parameter(dt.zeros(shape, **options))
        if arguments.flag(op, bias, "bias"):
            self.bias = Parameter(dt.zeros((self.out_channels,), **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _check_padding(self, op: str, padding: Sizes | str) -> tuple[int, ...] | str:
        """Return the padding per axis, or its name.

        Raises: ArgumentError for invalid sizes, an unknown name, and "same" with strides.
        """
        if not isinstance(padding, str):
            return check_sizes(op, padding, "padding", self.axes)
        arguments.choice(op, padding, "padding", ("same", "valid"))
        if padding == "same" and any(s != 1 for s in self.stride):
            raise dt.ArgumentError(f"{op}: padding='same' needs stride=1, got stride={self.stride}")
        return padding

    def reset_parameters(self) -> None:
        """Draw new parameters, uniform within +-1 / sqrt(the size of `weight[0]`)."""
        bound = 1.0 / math.sqrt(math.prod(self.weight.shape[1:]))
        with dt.no_grad():
            for x in (self.weight, self.bias):
                if x is not None:
                    x.copy_(
                        dt.random.uniform(
                            x.shape, low=-bound, high=bound, dtype=x.dtype, device=x.device
                        )
                    )

    def _pad_widths(self) -> list[int]:
        """Return the padding as `pad` takes it: the last axis first."""
        widths: list[int] = []
        for a in reversed(range(self.axes)):
            if self.padding == "same":
                reach = self.dilation[a] * (self.kernel_size[a] - 1)
                widths += [reach // 2, reach - reach // 2]
            else:
                widths += [0 if isinstance(self.padding, str) else self.padding[a]] * 2
        return widths

    def forward(self, input: Tensor) -> Tensor:
        """Return the convolution of an input."""
        x, padding = input, self.padding
        if self.padding_mode != "zeros":
            x, padding = pad(x, self._pad_widths(), self.padding_mode), (0,) * self.axes
        call = getattr(functions, f"conv{self.axes}d")
        result: Tensor = call(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        options = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * self.axes:
            options.append(f"padding={self.padding}")
        if max(self.dilation) > 1:
            options.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            options.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            options.append(f"groups={self.groups}")
        if self.bias is None:
            options.append("bias=False")
        if self.padding_mode != "zeros":
            options.append(f"padding_mode={self.padding_mode}")
        return ", ".join(options)


class _Transposed(_Convolution):
    """The base of transposed convolutions."""

    transposed = True

    def forward(self, input: Tensor, output_size: Sizes | None = None) -> Tensor:
        """Return the transposed convolution of an input.

        `output_size`: the sizes of the result's last axes, which a stride leaves undetermined.
        """
        call = getattr(functions, f"conv_transpose{self.axes}d")
        if output_size is None:
            output_padding = self.output_padding
        else:
            output_padding = self._output_padding(input, output_size)
        result: Tensor = call(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )
        return result

    def _output_padding(self, x: Tensor, output_size: Sizes) -> tuple[int, ...]:
        """Return the output padding that gives `output_size`. Raises: ShapeError if none does."""
        op = type(self).__name__
        values = arguments.integers(op, output_size, "output_size")[-self.axes :]
        requested, output_padding = check_sizes(op, values, "output_size", self.axes, 1), []
        assert not isinstance(self.padding, str)
        for a, n in enumerate(x.shape[-self.axes :]):
            least = (n - 1) * self.stride[a] - 2 * self.padding[a]
            least += self.dilation[a] * (self.kernel_size[a] - 1) + 1
            if not least <= requested[a] < least + self.stride[a]:
                raise dt.ShapeError(
                    f"{op}: output_size must be between {least} and {least + self.stride[a] - 1} "
                    f"along axis {a} for an input of shape {x.shape}, got {output_size}"
                )
            output_padding.append(requested[a] - least)
        return tuple(output_padding)


class Conv1d(_Convolution):
    """A layer that convolves signals with learnable filters; see `conv1d`.

    - `in_channels`, `out_channels`: the number of channels of the input, and the number of filters.
    - `padding`: the number of elements added before and after the axis, or "same" for a result of
      the input's length (needs `stride` 1), or "valid" for none.
    - `groups`: the number of equal parts of the channels; each part is convolved with its own
      filters. It divides `in_channels` and `out_channels`; `in_channels` groups make a depthwise
      convolution.
    - `bias`: False has no bias.
    - `padding_mode`: the added elements: "zeros", "reflect", "replicate" or "circular", see `pad`.

    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; initially uniform within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv1d`, `ConvTranspose1d`, `MaxPool1d`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv1d(3, 5, 3)
    >>> layer(dt.ones((2, 3, 8))).shape
    (2, 5, 6)
    """

    axes = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv2d(_Convolution):
    """A layer that convolves images with learnable filters; see `conv2d`.

    - `in_channels`, `out_channels`: the number of channels of the input, and the number of filters.
    - `padding`: the number of elements added before and after each axis, or "same" for a result of
      the input's size (needs `stride` 1), or "valid" for none.
    - `groups`: the number of equal parts of the channels; each part is convolved with its own
      filters. It divides `in_channels` and `out_channels`; `in_channels` groups make a depthwise
      convolution.
    - `bias`: False has no bias.
    - `padding_mode`: the added elements: "zeros", "reflect", "replicate" or "circular", see `pad`.

    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; initially uniform within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv2d`, `ConvTranspose2d`, `MaxPool2d`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv2d(3, 5, 3)
    >>> layer(dt.ones((2, 3, 8, 8))).shape
    (2, 5, 6, 6)
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv3d(_Convolution):
    """A layer that convolves volumes with learnable filters; see `conv3d`.

    - `in_channels`, `out_channels`: the number of channels of the input, and the number of filters.
    - `padding`: the number of elements added before and after each axis, or "same" for a result of
      the input's size (needs `stride` 1), or "valid" for none.
    - `groups`: the number of equal parts of the channels; each part is convolved with its own
      filters. It divides `in_channels` and `out_channels`; `in_channels` groups make a depthwise
      convolution.
    - `bias`: False has no bias.
    - `padding_mode`: the added elements: "zeros", "reflect", "replicate" or "circular", see `pad`.

    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; initially uniform within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv3d`, `ConvTranspose3d`, `MaxPool3d`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv3d(3, 5, 3)
    >>> layer(dt.ones((2, 3, 8, 8, 8))).shape
    (2, 5, 6, 6, 6)
    """

    axes = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes | str = 0,
        dilation: Sizes = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            0,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class ConvTranspose1d(_Transposed):
    """A layer that spreads each element of signals by learnable filters.

    - `in_channels`, `out_channels`: the numbers of channels of the input and of the result.
    - `padding`: the number of elements removed at both ends of the result.
    - `output_padding`: the number of elements added at the end of the result, less than `stride` or
      `dilation`.
    - `groups`: the number of equal parts of the channels; each part has its own filters.
    - `bias`: False has no bias.
    - `padding_mode`: only "zeros".

    A call accepts `output_size`, the sizes of the result's last axes, in place of `output_padding`.
    It is the transpose of `Conv1d`, not its inverse.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv_transpose1d`, `Conv1d`, `Upsample`.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose1d(3, 5, 3, stride=2)
    >>> layer(dt.ones((2, 3, 8))).shape
    (2, 5, 17)
    """

    axes = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class ConvTranspose2d(_Transposed):
    """A layer that spreads each element of images by learnable filters.

    - `in_channels`, `out_channels`: the numbers of channels of the input and of the result.
    - `padding`: the number of elements removed at both ends of each axis of the result.
    - `output_padding`: the number of elements added at the end of each axis of the result, less
      than `stride` or `dilation`.
    - `groups`: the number of equal parts of the channels; each part has its own filters.
    - `bias`: False has no bias.
    - `padding_mode`: only "zeros".

    A call accepts `output_size`, the sizes of the result's last axes, in place of `output_padding`.
    It is the transpose of `Conv2d`, not its inverse.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv_transpose2d`, `Conv2d`, `Upsample`.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose2d(3, 5, 3, stride=2)
    >>> layer(dt.ones((2, 3, 8, 8))).shape
    (2, 5, 17, 17)
    """

    axes = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class ConvTranspose3d(_Transposed):
    """A layer that spreads each element of volumes by learnable filters.

    - `in_channels`, `out_channels`: the numbers of channels of the input and of the result.
    - `padding`: the number of elements removed at both ends of each axis of the result.
    - `output_padding`: the number of elements added at the end of each axis of the result, less
      than `stride` or `dilation`.
    - `groups`: the number of equal parts of the channels; each part has its own filters.
    - `bias`: False has no bias.
    - `padding_mode`: only "zeros".

    A call accepts `output_size`, the sizes of the result's last axes, in place of `output_padding`.
    It is the transpose of `Conv3d`, not its inverse.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.conv_transpose3d`, `Conv3d`, `Upsample`.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose3d(3, 5, 3, stride=2)
    >>> layer(dt.ones((2, 3, 8, 8, 8))).shape
    (2, 5, 17, 17, 17)
    """

    axes = 3

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Sizes,
        stride: Sizes = 1,
        padding: Sizes = 0,
        output_padding: Sizes = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Sizes = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
