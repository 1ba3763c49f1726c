"""Layers of convolutions: filters that they learn."""

from __future__ import annotations

import math
from typing import Any, ClassVar, TypeAlias

import dovetail as dt
from dovetail.extend import DeviceLike, DTypeLike, arguments

from ..functional import convolution as functions
from ..functional.resampling import pad
from ..functional.sizes import Sizes, sizes
from .module import Module
from .parameter import Parameter

__all__ = [
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
]  # fmt: skip

Tensor: TypeAlias = dt.Tensor

AROUND = ("zeros", "reflect", "replicate", "circular")


class _Convolution(Module):
    """What all of them have: `weight` and `bias`, and how they lie."""

    axes: ClassVar[int] = 0
    transposed: ClassVar[bool] = False
    weight: Tensor
    bias: Tensor | None

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes,
        padding: Sizes | str, dilation: Sizes, output_padding: Sizes, groups: int, bias: bool,
        padding_mode: str, device: DeviceLike | None, dtype: DTypeLike | None,
    ) -> None:  # fmt: skip
        super().__init__()
        op, axes = type(self).__name__, self.axes
        (self.in_channels,) = sizes(op, in_channels, "in_channels", 1, 1)
        (self.out_channels,) = sizes(op, out_channels, "out_channels", 1, 1)
        (self.groups,) = sizes(op, groups, "groups", 1, 1)
        for name in ("in_channels", "out_channels"):
            if getattr(self, name) % self.groups:
                raise dt.ArgumentError(
                    f"{op}: {name}={getattr(self, name)} do not fall into groups={self.groups}"
                )
        self.kernel_size = sizes(op, kernel_size, "kernel_size", axes, 1)
        self.stride = sizes(op, stride, "stride", axes, 1)
        self.dilation = sizes(op, dilation, "dilation", axes, 1)
        self.output_padding = sizes(op, output_padding, "output_padding", axes)
        self.padding = self._padding(op, padding)
        allowed = AROUND[:1] if self.transposed else AROUND
        self.padding_mode = arguments.choice(op, padding_mode, "padding_mode", allowed)
        lead = (self.in_channels, self.out_channels) if self.transposed else (
            self.out_channels, self.in_channels)  # fmt: skip
        shape = (lead[0], lead[1] // self.groups, *self.kernel_size)
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        self.weight = Parameter(dt.zeros(shape, **options))
        if arguments.flag(op, bias, "bias"):
            self.bias = Parameter(dt.zeros((self.out_channels,), **options))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _padding(self, op: str, padding: Sizes | str) -> tuple[int, ...] | str:
        if not isinstance(padding, str):
            return sizes(op, padding, "padding", self.axes)
        arguments.choice(op, padding, "padding", ("same", "valid"))
        if padding == "same" and any(s != 1 for s in self.stride):
            raise dt.ArgumentError(f"{op}: padding='same' with stride={self.stride}: there it is 1")
        return padding

    def reset_parameters(self) -> None:
        """Draws the parameters anew, evenly within 1 / sqrt(products of a sum)."""
        bound = 1.0 / math.sqrt(math.prod(self.weight.shape[1:]))
        with dt.no_grad():
            for x in (self.weight, self.bias):
                if x is not None:
                    x.copy_(
                        dt.random.uniform(
                            x.shape, low=-bound, high=bound, dtype=x.dtype, device=x.device
                        )
                    )

    def _around(self) -> list[int]:
        """How much is put around inputs, as `pad` takes it: the last axis first."""
        found: list[int] = []
        for a in reversed(range(self.axes)):
            if self.padding == "same":
                reach = self.dilation[a] * (self.kernel_size[a] - 1)
                found += [reach // 2, reach - reach // 2]
            else:
                found += [0 if isinstance(self.padding, str) else self.padding[a]] * 2
        return found

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of an input."""
        x, padding = input, self.padding
        if self.padding_mode != "zeros":
            x, padding = pad(x, self._around(), self.padding_mode), (0,) * self.axes
        call = getattr(functions, f"conv{self.axes}d")
        found: Tensor = call(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )
        return found

    def extra_repr(self) -> str:
        """See `Module`."""
        said = [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}",
                f"stride={self.stride}"]  # fmt: skip
        if self.padding != (0,) * self.axes:
            said.append(f"padding={self.padding}")
        if max(self.dilation) > 1:
            said.append(f"dilation={self.dilation}")
        if any(self.output_padding):
            said.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            said.append(f"groups={self.groups}")
        if self.bias is None:
            said.append("bias=False")
        if self.padding_mode != "zeros":
            said.append(f"padding_mode={self.padding_mode}")
        return ", ".join(said)


class _Transposed(_Convolution):
    """What transposed ones have."""

    transposed = True

    def forward(self, input: Tensor, output_size: Sizes | None = None) -> Tensor:
        """The transposed convolution of an input.

        `output_size`: that of the result along its last axes, where several have as many positions.
        """
        call = getattr(functions, f"conv_transpose{self.axes}d")
        more = self.output_padding if output_size is None else self._more(input, output_size)
        found: Tensor = call(
            input, self.weight, self.bias, self.stride, self.padding, more, self.groups,
            self.dilation,
        )  # fmt: skip
        return found

    def _more(self, x: Tensor, output_size: Sizes) -> tuple[int, ...]:
        op = type(self).__name__
        given = arguments.integers(op, output_size, "output_size")[-self.axes :]
        asked, more = sizes(op, given, "output_size", self.axes, 1), []
        assert not isinstance(self.padding, str)
        for a, n in enumerate(x.shape[-self.axes :]):
            least = (n - 1) * self.stride[a] - 2 * self.padding[a]
            least += self.dilation[a] * (self.kernel_size[a] - 1) + 1
            if not least <= asked[a] < least + self.stride[a]:
                raise dt.ShapeError(
                    f"{op}: output_size={output_size} of an input of shape {x.shape}: along axis "
                    f"{a} there are {least} to {least + self.stride[a] - 1} elements"
                )
            more.append(asked[a] - least)
        return tuple(more)


class Conv1d(_Convolution):
    """A layer that is the convolution of signals with filters that it learns; see `conv1d`.

    `in_channels`, `out_channels`: how many channels come in, and how many filters there are.
    `padding_mode`: what is around: "zeros", "reflect", "replicate" or "circular", see `pad`.
    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; drawn evenly within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv1d(3, 5, 3, device="reference")
    >>> layer(dt.ones((2, 3, 8), device="reference")).shape
    (2, 5, 6)
    """

    axes = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip


class Conv2d(_Convolution):
    """A layer that is the convolution of images with filters that it learns; see `conv2d`.

    `in_channels`, `out_channels`: how many channels come in, and how many filters there are.
    `padding_mode`: what is around: "zeros", "reflect", "replicate" or "circular", see `pad`.
    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; drawn evenly within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv2d(3, 5, 3, device="reference")
    >>> layer(dt.ones((2, 3, 8, 8), device="reference")).shape
    (2, 5, 6, 6)
    """

    axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip


class Conv3d(_Convolution):
    """A layer that is the convolution of volumes with filters that it learns; see `conv3d`.

    `in_channels`, `out_channels`: how many channels come in, and how many filters there are.
    `padding_mode`: what is around: "zeros", "reflect", "replicate" or "circular", see `pad`.
    State: `weight` of (out_channels, in_channels // groups, *kernel_size), and `bias` unless that
    is False; drawn evenly within 1 / sqrt(in_channels // groups * taps).
    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.Conv3d(3, 5, 3, device="reference")
    >>> layer(dt.ones((2, 3, 8, 8, 8), device="reference")).shape
    (2, 5, 6, 6, 6)
    """

    axes = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes | str = 0, dilation: Sizes = 1, groups: int = 1, bias: bool = True,
        padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip


class ConvTranspose1d(_Transposed):
    """A layer that spreads each element of signals by filters that it learns.

    See `conv_transpose1d`, and `Conv1d` for what else it is given.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose1d(3, 5, 3, stride=2, device="reference")
    >>> layer(dt.ones((2, 3, 8), device="reference")).shape
    (2, 5, 17)
    """

    axes = 1

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
        dilation: Sizes = 1, padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip


class ConvTranspose2d(_Transposed):
    """A layer that spreads each element of images by filters that it learns.

    See `conv_transpose2d`, and `Conv2d` for what else it is given.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose2d(3, 5, 3, stride=2, device="reference")
    >>> layer(dt.ones((2, 3, 8, 8), device="reference")).shape
    (2, 5, 17, 17)
    """

    axes = 2

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
        dilation: Sizes = 1, padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip


class ConvTranspose3d(_Transposed):
    """A layer that spreads each element of volumes by filters that it learns.

    See `conv_transpose3d`, and `Conv3d` for what else it is given.
    State: `weight` of (in_channels, out_channels // groups, *kernel_size), and `bias` unless that
    is False.
    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> layer = dt.nn.ConvTranspose3d(3, 5, 3, stride=2, device="reference")
    >>> layer(dt.ones((2, 3, 8, 8, 8), device="reference")).shape
    (2, 5, 17, 17, 17)
    """

    axes = 3

    def __init__(
        self, in_channels: int, out_channels: int, kernel_size: Sizes, stride: Sizes = 1,
        padding: Sizes = 0, output_padding: Sizes = 0, groups: int = 1, bias: bool = True,
        dilation: Sizes = 1, padding_mode: str = "zeros", device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, output_padding,
            groups, bias, padding_mode, device, dtype,
        )  # fmt: skip
