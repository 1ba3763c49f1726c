"""Layers of pooling, without parameters. Each applies the function of its name."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from ..functional import adaptive, pooling
from ..functional.adaptive import MaxPoolResult, OutputSize
from ..functional.sizes import Sizes, check_sizes
from .module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]

Tensor: TypeAlias = dt.Tensor


def _check_window(
    op: str,
    axes: int,
    kernel_size: Sizes,
    stride: Sizes | None,
    padding: Sizes = 0,
    dilation: Sizes = 1,
) -> None:
    """Raise ArgumentError for sizes that windows cannot have."""
    check_sizes(op, kernel_size, "kernel_size", axes, 1)
    if stride is not None:
        check_sizes(op, stride, "stride", axes, 1)
    check_sizes(op, padding, "padding", axes)
    check_sizes(op, dilation, "dilation", axes, 1)


class _MaxPool(Module):
    """The base of layers of window maxima."""

    axes: ClassVar[int] = 0

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        dilation: Sizes = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        _check_window(op, self.axes, kernel_size, stride, padding, dilation)
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices = arguments.flag(op, return_indices, "return_indices")
        self.ceil_mode = arguments.flag(op, ceil_mode, "ceil_mode")

    def forward(self, input: Tensor) -> MaxPoolResult:
        """Return the largest elements, and with `return_indices` their indices."""
        result: MaxPoolResult = getattr(pooling, f"max_pool{self.axes}d")(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class _AvgPool(Module):
    """The base of layers of window means."""

    axes: ClassVar[int] = 0

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        _check_window(op, self.axes, kernel_size, stride, padding)
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = arguments.flag(op, ceil_mode, "ceil_mode")
        self.count_include_pad = arguments.flag(op, count_include_pad, "count_include_pad")
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        options = [self.kernel_size, self.stride, self.padding, self.ceil_mode]
        divisor = [] if self.axes == 1 else [self.divisor_override]
        call = getattr(pooling, f"avg_pool{self.axes}d")
        result: Tensor = call(input, *options, self.count_include_pad, *divisor)
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _LPPool(Module):
    """The base of layers of window norms."""

    axes: ClassVar[int] = 0

    def __init__(
        self,
        norm_type: float,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        op = type(self).__name__
        _check_window(op, self.axes, kernel_size, stride)
        self.norm_type, self.kernel_size, self.stride = norm_type, kernel_size, stride
        self.ceil_mode = arguments.flag(op, ceil_mode, "ceil_mode")

    def forward(self, input: Tensor) -> Tensor:
        """Return the norms."""
        call = getattr(pooling, f"lp_pool{self.axes}d")
        result: Tensor = call(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class _MaxUnpool(Module):
    """The base of layers that put window maxima back to their positions."""

    axes: ClassVar[int] = 0

    def __init__(self, kernel_size: Sizes, stride: Sizes | None = None, padding: Sizes = 0) -> None:
        super().__init__()
        op, axes = type(self).__name__, self.axes
        self.kernel_size = check_sizes(op, kernel_size, "kernel_size", axes, 1)
        self.stride = (
            self.kernel_size if stride is None else check_sizes(op, stride, "stride", axes, 1)
        )
        self.padding = check_sizes(op, padding, "padding", axes)

    def forward(
        self, input: Tensor, indices: Tensor, output_size: tuple[int, ...] | None = None
    ) -> Tensor:
        """Return zeros with the elements at their indices."""
        call = getattr(pooling, f"max_unpool{self.axes}d")
        options = (self.kernel_size, self.stride, self.padding)
        result: Tensor = call(input, indices, *options, output_size)
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AdaptiveAvg(Module):
    """The base of layers of the means of a given number of windows."""

    axes: ClassVar[int] = 0

    def __init__(self, output_size: OutputSize) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Return the means."""
        call = getattr(adaptive, f"adaptive_avg_pool{self.axes}d")
        result: Tensor = call(input, self.output_size)
        return result

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"output_size={self.output_size}"


class _AdaptiveMax(Module):
    """The base of layers of the maxima of a given number of windows."""

    axes: ClassVar[int] = 0

    def __init__(self, output_size: OutputSize, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size = output_size
        self.return_indices = arguments.flag(type(self).__name__, return_indices, "return_indices")

    def forward(self, input: Tensor) -> MaxPoolResult:
        """Return the largest elements, and with `return_indices` their indices."""
        call = getattr(adaptive, f"adaptive_max_pool{self.axes}d")
        result: MaxPoolResult = call(input, self.output_size, self.return_indices)
        return result

    def extra_repr(self) -> str:
        """Return the text of `output_size` for `repr`."""
        return f"output_size={self.output_size}"


class MaxPool1d(_MaxPool):
    """A layer that returns the maximum of each window of signals; see `max_pool1d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements added at both ends of each axis, smaller than any number; at
      most half of a window.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `AvgPool1d`, `AdaptiveMaxPool1d`, `MaxUnpool1d`, `dt.nn.functional.max_pool1d`.

    >>> import dovetail as dt
    >>> dt.nn.MaxPool1d(2)(dt.ones((1, 1, 4))).shape
    (1, 1, 2)
    """

    axes = 1


class MaxPool2d(_MaxPool):
    """A layer that returns the maximum of each window of images; see `max_pool2d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements added at both ends of each axis, smaller than any number; at
      most half of a window.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `AvgPool2d`, `AdaptiveMaxPool2d`, `MaxUnpool2d`, `dt.nn.functional.max_pool2d`.

    >>> import dovetail as dt
    >>> dt.nn.MaxPool2d(2)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 2, 2)
    """

    axes = 2


class MaxPool3d(_MaxPool):
    """A layer that returns the maximum of each window of volumes; see `max_pool3d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of elements added at both ends of each axis, smaller than any number; at
      most half of a window.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.MaxPool3d(2)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 2, 2, 2)
    """

    axes = 3


class AvgPool1d(_AvgPool):
    """A layer that returns the mean of each window of signals; see `avg_pool1d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros added at both ends; at most half of a window.
    - `count_include_pad`: True counts the added zeros in the divisor of the mean.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AvgPool1d(2)(dt.ones((1, 1, 4))).shape
    (1, 1, 2)
    """

    axes = 1

    def __init__(
        self,
        kernel_size: Sizes,
        stride: Sizes | None = None,
        padding: Sizes = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        op = type(self).__name__
        self.kernel_size = check_sizes(op, self.kernel_size, "kernel_size", 1, 1)
        self.stride = check_sizes(op, self.stride, "stride", 1, 1)
        self.padding = check_sizes(op, self.padding, "padding", 1)


class AvgPool2d(_AvgPool):
    """A layer that returns the mean of each window of images; see `avg_pool2d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros added at both ends of each axis; at most half of a window.
    - `count_include_pad`: True counts the added zeros in the divisor of the mean.
    - `divisor_override`: the divisor of the sums. Default: the number of elements of the window.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `MaxPool2d`, `AdaptiveAvgPool2d`, `LPPool2d`, `dt.nn.functional.avg_pool2d`.

    >>> import dovetail as dt
    >>> dt.nn.AvgPool2d(2)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 2, 2)
    """

    axes = 2


class AvgPool3d(_AvgPool):
    """A layer that returns the mean of each window of volumes; see `avg_pool3d`.

    - `stride`: the distance between windows. Default: `kernel_size`.
    - `padding`: the number of zeros added at both ends of each axis; at most half of a window.
    - `count_include_pad`: True counts the added zeros in the divisor of the mean.
    - `divisor_override`: the divisor of the sums. Default: the number of elements of the window.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AvgPool3d(2)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 2, 2, 2)
    """

    axes = 3


class LPPool1d(_LPPool):
    """A layer that returns the norm of each window of signals; see `lp_pool1d`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p). Infinity takes the greatest
      magnitude.
    - `stride`: the distance between windows. Default: `kernel_size`.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.LPPool1d(2, 2)(dt.ones((1, 1, 4))).shape
    (1, 1, 2)
    """

    axes = 1


class LPPool2d(_LPPool):
    """A layer that returns the norm of each window of images; see `lp_pool2d`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p). Infinity takes the greatest
      magnitude.
    - `stride`: the distance between windows. Default: `kernel_size`.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.LPPool2d(2, 2)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 2, 2)
    """

    axes = 2


class LPPool3d(_LPPool):
    """A layer that returns the norm of each window of volumes; see `lp_pool3d`.

    - `norm_type`: the exponent p of the norm: (sum of x**p)**(1/p). Infinity takes the greatest
      magnitude.
    - `stride`: the distance between windows. Default: `kernel_size`.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.LPPool3d(2, 2)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 2, 2, 2)
    """

    axes = 3


class AdaptiveAvgPool1d(_AdaptiveAvg):
    """A layer of the means of a given number of windows; see `adaptive_avg_pool1d`.

    - `output_size`: the number of windows; None for the input's length.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveAvgPool1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 1)
    """

    axes = 1


class AdaptiveAvgPool2d(_AdaptiveAvg):
    """A layer of the means of a given number of windows; see `adaptive_avg_pool2d`.

    - `output_size`: the number of windows: an int for both axes, or a pair (rows, columns). None
      keeps the input's size of an axis.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `AvgPool2d`, `AdaptiveMaxPool2d`.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveAvgPool2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 1, 1)
    """

    axes = 2


class AdaptiveAvgPool3d(_AdaptiveAvg):
    """A layer of the means of a given number of windows; see `adaptive_avg_pool3d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveAvgPool3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 1, 1, 1)
    """

    axes = 3


class AdaptiveMaxPool1d(_AdaptiveMax):
    """A layer of the maxima of a given number of windows; see `adaptive_max_pool1d`.

    - `output_size`: the number of windows; None for the input's length.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveMaxPool1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 1)
    """

    axes = 1


class AdaptiveMaxPool2d(_AdaptiveMax):
    """A layer of the maxima of a given number of windows; see `adaptive_max_pool2d`.

    - `output_size`: the number of windows: an int for both axes, or a pair (rows, columns). None
      keeps the input's size of an axis.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveMaxPool2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 1, 1)
    """

    axes = 2


class AdaptiveMaxPool3d(_AdaptiveMax):
    """A layer of the maxima of a given number of windows; see `adaptive_max_pool3d`.

    - `output_size`: the number of windows: an int for all axes, or one for each. None keeps the
      input's size of an axis.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.AdaptiveMaxPool3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 1, 1, 1)
    """

    axes = 3


class MaxUnpool1d(_MaxUnpool):
    """A layer that puts window maxima of signals back to their indices; see `max_unpool1d`.

    - `kernel_size`, `stride`, `padding`: those of the pooling layer that returned the indices.
      Default of `stride`: `kernel_size`.

    A call `unpool(input, indices, output_size)` needs the indices that the pooling layer returned;
    `output_size` is for sizes that the windows leave undetermined.
    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 4))
    >>> best, at = dt.nn.MaxPool1d(2, return_indices=True)(x)
    >>> dt.nn.MaxUnpool1d(2)(best, at).shape
    (1, 1, 4)
    """

    axes = 1


class MaxUnpool2d(_MaxUnpool):
    """A layer that puts window maxima of images back to their indices; see `max_unpool2d`.

    - `kernel_size`, `stride`, `padding`: those of the pooling layer that returned the indices.
      Default of `stride`: `kernel_size`.

    A call `unpool(input, indices, output_size)` needs the indices that the pooling layer returned;
    `output_size` is for sizes that the windows leave undetermined.
    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 4, 4))
    >>> best, at = dt.nn.MaxPool2d(2, return_indices=True)(x)
    >>> dt.nn.MaxUnpool2d(2)(best, at).shape
    (1, 1, 4, 4)
    """

    axes = 2


class MaxUnpool3d(_MaxUnpool):
    """A layer that puts window maxima of volumes back to their indices; see `max_unpool3d`.

    - `kernel_size`, `stride`, `padding`: those of the pooling layer that returned the indices.
      Default of `stride`: `kernel_size`.

    A call `unpool(input, indices, output_size)` needs the indices that the pooling layer returned;
    `output_size` is for sizes that the windows leave undetermined.
    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x = dt.ones((1, 1, 4, 4, 4))
    >>> best, at = dt.nn.MaxPool3d(2, return_indices=True)(x)
    >>> dt.nn.MaxUnpool3d(2)(best, at).shape
    (1, 1, 4, 4, 4)
    """

    axes = 3
