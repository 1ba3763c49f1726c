"""Layers that pad their inputs; see `pad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from ..functional import resampling
from ..functional.sizes import Sizes
from .module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]

Tensor: TypeAlias = dt.Tensor


class _Padding(Module):
    """The base of padding layers.

    `padding`: elements before and after each axis, the last axis first, or one number for all.
    """

    axes: ClassVar[int] = 0
    mode: ClassVar[str] = "constant"

    def __init__(self, padding: Sizes) -> None:
        super().__init__()
        op = type(self).__name__
        widths = arguments.integers(op, padding, "padding")
        widths = widths if isinstance(padding, Sequence) else widths * (2 * self.axes)
        if len(widths) != 2 * self.axes:
            raise dt.ArgumentError(
                f"{op}: padding must be one number or {2 * self.axes}, got {padding!r}"
            )
        self.padding = widths

    def forward(self, input: Tensor) -> Tensor:
        """Return the padded input."""
        if input.ndim not in (self.axes + 1, self.axes + 2):
            raise dt.ShapeError(
                f"{type(self).__name__}: the input must have {self.axes + 2} dimensions, or "
                f"{self.axes + 1} without a batch, got shape {input.shape}"
            )
        return resampling.pad(input, self.padding, self.mode, getattr(self, "value", None))

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"{self.padding}"


class _Constant(_Padding):
    """The base of layers that pad with `value`."""

    def __init__(self, padding: Sizes, value: float) -> None:
        super().__init__(padding)
        self.value = value

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"padding={self.padding}, value={self.value}"


class ZeroPad1d(_Padding):
    """A layer that pads signals with zeros; see `pad`.

    - `padding`: the number of elements for both ends, or a pair (left, right).

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ZeroPad1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    axes = 1


class ZeroPad2d(_Padding):
    """A layer that pads images with zeros; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom).

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ZeroPad2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    axes = 2


class ZeroPad3d(_Padding):
    """A layer that pads volumes with zeros; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom, front, back).

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ZeroPad3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    axes = 3


class ConstantPad1d(_Constant):
    """A layer that pads signals with a number; see `pad`.

    - `padding`: the number of elements for both ends, or a pair (left, right).
    - `value`: the number to pad with.

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ConstantPad1d(1, 0.5)(dt.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    axes = 1


class ConstantPad2d(_Constant):
    """A layer that pads images with a number; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom).
    - `value`: the number to pad with.

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ConstantPad2d(1, 0.5)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    axes = 2


class ConstantPad3d(_Constant):
    """A layer that pads volumes with a number; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom, front, back).
    - `value`: the number to pad with.

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ConstantPad3d(1, 0.5)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    axes = 3


class ReflectionPad1d(_Padding):
    """A layer that pads signals with mirrored elements; see `pad`.

    - `padding`: the number of elements for both ends, or a pair (left, right).

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReflectionPad1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    axes = 1
    mode = "reflect"


class ReflectionPad2d(_Padding):
    """A layer that pads images with mirrored elements; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom).

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReflectionPad2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    axes = 2
    mode = "reflect"


class ReflectionPad3d(_Padding):
    """A layer that pads volumes with mirrored elements; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom, front, back).

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReflectionPad3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    axes = 3
    mode = "reflect"


class ReplicationPad1d(_Padding):
    """A layer that pads signals with their nearest elements; see `pad`.

    - `padding`: the number of elements for both ends, or a pair (left, right).

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReplicationPad1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    axes = 1
    mode = "replicate"


class ReplicationPad2d(_Padding):
    """A layer that pads images with their nearest elements; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom).

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReplicationPad2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    axes = 2
    mode = "replicate"


class ReplicationPad3d(_Padding):
    """A layer that pads volumes with their nearest elements; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom, front, back).

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.ReplicationPad3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    axes = 3
    mode = "replicate"


class CircularPad1d(_Padding):
    """A layer that pads signals with elements from the other end; see `pad`.

    - `padding`: the number of elements for both ends, or a pair (left, right).

    Shapes: (n, c, length), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.CircularPad1d(1)(dt.ones((1, 1, 4))).shape
    (1, 1, 6)
    """

    axes = 1
    mode = "circular"


class CircularPad2d(_Padding):
    """A layer that pads images with elements from the other end; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom).

    Shapes: (n, c, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.CircularPad2d(1)(dt.ones((1, 1, 4, 4))).shape
    (1, 1, 6, 6)
    """

    axes = 2
    mode = "circular"


class CircularPad3d(_Padding):
    """A layer that pads volumes with elements from the other end; see `pad`.

    - `padding`: the number of elements for all sides, or (left, right, top, bottom, front, back).

    Shapes: (n, c, d, h, w), or without n.
    Raises: ArgumentError, ShapeError.

    >>> import dovetail as dt
    >>> dt.nn.CircularPad3d(1)(dt.ones((1, 1, 4, 4, 4))).shape
    (1, 1, 6, 6, 6)
    """

    axes = 3
    mode = "circular"
