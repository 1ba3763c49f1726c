"""Layers that resize grids, cut them into patches, and move channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt

from ..functional import resampling
from ..functional.sizes import Sizes, check_counts, check_sizes
from .module import Module

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]

Tensor: TypeAlias = dt.Tensor
Factor: TypeAlias = float | Sequence[float]


class Upsample(Module):
    """A layer that resizes a grid over the same area; see `interpolate`.

    - `size`: the size of the result: an int for all axes, or one for each. Pass either `size` or
      `scale_factor`.
    - `scale_factor`: the factor of the sizes: a number for all axes, or one for each.
    - `mode`: "nearest", "nearest-exact", "linear", "bilinear", "bicubic", "trilinear" or "area";
      see `interpolate`.
    - `align_corners`: True if the first and last elements keep their positions; for "linear",
      "bilinear", "bicubic" and "trilinear". None is False.
    - `recompute_scale_factor`: True computes positions from the sizes instead of `scale_factor`.

    Shapes: (n, c, *axes).
    Raises: ArgumentError, ShapeError, DTypeError.
    See also: `dt.nn.functional.interpolate`, `ConvTranspose2d`, `PixelShuffle`.

    >>> import dovetail as dt
    >>> dt.nn.Upsample(scale_factor=2)(dt.ones((1, 2, 3, 4))).shape
    (1, 2, 6, 8)
    """

    def __init__(
        self,
        size: Sizes | None = None,
        scale_factor: Factor | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size, self.mode = size, mode
        if isinstance(scale_factor, (list, tuple)):
            self.scale_factor: Factor | None = tuple([float(f) for f in scale_factor])
        else:
            self.scale_factor = None if scale_factor is None else float(scale_factor)  # type: ignore[arg-type]  # no sequence
        self.align_corners, self.recompute_scale_factor = align_corners, recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Return the resized grid."""
        return resampling.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor}, mode={self.mode!r}"
        return f"size={self.size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """A layer that enlarges images by their nearest elements; see `interpolate`.

    - `size`: the height and width of the result: an int for both, or a pair. Pass either `size` or
      `scale_factor`.
    - `scale_factor`: the factor of height and width: a number, or a pair.

    Shapes: (n, c, h, w).
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.UpsamplingNearest2d(scale_factor=2)(dt.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, size: Sizes | None = None, scale_factor: Factor | None = None) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """A layer that enlarges images by bilinear weights with aligned corners.

    - `size`: the height and width of the result: an int for both, or a pair. Pass either `size` or
      `scale_factor`.
    - `scale_factor`: the factor of height and width: a number, or a pair.

    Shapes: (n, c, h, w).
    Raises: ArgumentError, ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.UpsamplingBilinear2d(scale_factor=2)(dt.ones((1, 1, 2, 2))).shape
    (1, 1, 4, 4)
    """

    def __init__(self, size: Sizes | None = None, scale_factor: Factor | None = None) -> None:
        super().__init__(size, scale_factor, "bilinear", True)


def _check_patches(
    name: str, kernel_size: Sizes, dilation: Sizes, padding: Sizes, stride: Sizes
) -> None:
    """Raise ArgumentError for sizes that patches cannot have."""
    for what, value in (("kernel_size", kernel_size), ("dilation", dilation), ("stride", stride)):
        check_sizes(name, value, what, 2, 1)
    check_sizes(name, padding, "padding", 2)


class Unfold(Module):
    """A layer that returns the patches of images as columns; see `unfold`.

    - `padding`: the number of zeros added at both ends of each axis.

    Shapes: (n, c, h, w) or (c, h, w).
    Raises: ArgumentError, ShapeError.
    See also: `Fold`, `dt.unfold`.

    >>> import dovetail as dt
    >>> dt.nn.Unfold(2)(dt.ones((1, 3, 4, 5))).shape
    (1, 12, 12)
    """

    def __init__(
        self, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
    ) -> None:
        super().__init__()
        _check_patches(type(self).__name__, kernel_size, dilation, padding, stride)
        self.kernel_size, self.dilation = kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the patches."""
        return resampling.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """A layer that returns the images whose patches are the columns; see `fold`.

    - `output_size`: the height and width of the images: an int for both, or a pair.
    - `kernel_size`, `dilation`, `padding`, `stride`: those of the `Unfold` that made the columns.

    Shapes: (n, c * elements of a patch, patches), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.Fold((4, 5), 2)(dt.ones((1, 12, 12))).shape
    (1, 3, 4, 5)
    """

    def __init__(
        self,
        output_size: Sizes,
        kernel_size: Sizes,
        dilation: Sizes = 1,
        padding: Sizes = 0,
        stride: Sizes = 1,
    ) -> None:
        super().__init__()
        _check_patches(type(self).__name__, kernel_size, dilation, padding, stride)
        check_sizes(type(self).__name__, output_size, "output_size", 2)
        self.output_size, self.kernel_size, self.dilation = output_size, kernel_size, dilation
        self.padding, self.stride = padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """Return the images."""
        return resampling.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class PixelShuffle(Module):
    """A layer that returns larger images with fewer channels; see `pixel_shuffle`.

    - `upscale_factor`: the factor r of height and width.

    Shapes: (..., c * r * r, h, w) gives (..., c, h * r, w * r).
    Raises: ArgumentError, ShapeError.
    See also: `PixelUnshuffle`, `Upsample`, `ConvTranspose2d`.

    >>> import dovetail as dt
    >>> dt.nn.PixelShuffle(2)(dt.ones((1, 4, 2, 3))).shape
    (1, 1, 4, 6)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        (self.upscale_factor,) = check_counts(type(self).__name__, 1, upscale_factor=upscale_factor)

    def forward(self, input: Tensor) -> Tensor:
        """Return the larger images."""
        return resampling.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """A layer that returns smaller images with more channels; see `pixel_unshuffle`.

    - `downscale_factor`: the factor r by which height and width are divided.

    Shapes: (..., c, h * r, w * r) gives (..., c * r * r, h, w).
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.PixelUnshuffle(2)(dt.ones((1, 1, 4, 6))).shape
    (1, 4, 2, 3)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        (self.downscale_factor,) = check_counts(
            type(self).__name__, 1, downscale_factor=downscale_factor
        )

    def forward(self, input: Tensor) -> Tensor:
        """Return the smaller images."""
        return resampling.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """A layer that interleaves the channels of groups; see `channel_shuffle`.

    - `groups`: the number of groups; it divides the number of channels.

    Shapes: (n, c, *axes).
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ChannelShuffle(2)(dt.ones((1, 4, 2, 3))).shape
    (1, 4, 2, 3)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        (self.groups,) = check_counts(type(self).__name__, 1, groups=groups)

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with its channels reordered."""
        return resampling.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"groups={self.groups}"
