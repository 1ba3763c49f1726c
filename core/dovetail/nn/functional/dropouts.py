"""Dropout: random values, or whole channels, become 0 in training.

Random numbers are those of `dt.random`: a seed gives the same ones on every device, functions
captured with `dt.jit` draw new ones at each call, and `dt.autograd.checkpoint` repeats its draws.
"""

from __future__ import annotations

import math
from typing import TypeAlias

import dovetail as dt

from .precision import cast_like, require_floats, widen_half

__all__ = [
    "alpha_dropout",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "feature_alpha_dropout",
]

Tensor: TypeAlias = dt.Tensor
SELU_LIMIT = -1.7580993408473766  # selu(-infinity)


def _check_input(op: str, x: Tensor, p: float) -> None:
    """Raise DTypeError unless `x` holds floats, ArgumentError unless p is in 0..1."""
    require_floats(op, x)
    if not 0.0 <= p <= 1.0:
        raise dt.ArgumentError(f"{op}: p must be a probability between 0 and 1, got {p}")


def _keep_mask(x: Tensor, shape: tuple[int, ...], p: float) -> Tensor:
    """Draw a random mask that is True with probability 1 - p."""
    return dt.random.uniform(shape, dtype=dt.float32, device=x.device) >= p


def _store_result(x: Tensor, y: Tensor, inplace: bool) -> Tensor:
    """Return `y` in x's dtype; write it into `x` if `inplace`, unless `x` is being recorded."""
    y = cast_like(y, x)
    if inplace and not (x.requires_grad and dt.is_grad_enabled()):
        return x.copy_(y)
    return y


def _zeros_of(x: Tensor) -> Tensor:
    """Return zeros with a gradient of 0 to `x`, also where `x` is infinite or NaN."""
    return dt.where(dt.zeros((), dtype=dt.bool, device=x.device), x, 0.0)


def _drop(
    op: str, x: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Tensor:
    """Set values to 0 by a mask of `shape`, scale the others; return `x` unless training."""
    _check_input(op, x, p)
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return _store_result(x, _zeros_of(x), inplace)
    y = dt.where(_keep_mask(x, shape, p), widen_half(x) * (1.0 / (1.0 - p)), 0.0)
    return _store_result(x, y, inplace)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Set each value to 0 with probability `p`, and divide the others by 1 - p.

    - `p`: the probability, from 0 to 1.
    - `training`: False returns the input.

    Shapes: any; the result's is the input's.
    Dtypes: floats; the result has the input's.
    Raises: ArgumentError, DTypeError.
    See also: `dropout2d`, `alpha_dropout`, `dt.nn.Dropout`.
    Source: Hinton, Srivastava, Krizhevsky, Sutskever, Salakhutdinov, "Improving neural networks by
    preventing co-adaptation of feature detectors", 2012.

    >>> import dovetail as dt
    >>> x = dt.nn.functional.dropout(dt.ones(99))
    >>> bool(((x == 0) | (x == 2)).all())
    True
    """
    shape = input.shape if isinstance(input, dt.Tensor) else ()
    return _drop("dropout", input, shape, p, training, inplace)


def _drop_channels(
    op: str, x: Tensor, dims: int, p: float, training: bool, inplace: bool, unbatched: bool
) -> Tensor:
    """Drop channels of x, unless not training; `unbatched`: `dims` dimensions have no batch."""
    require_floats(op, x)
    if x.ndim not in (dims, dims + 1):
        raise dt.ShapeError(
            f"{op}: the input must have {dims} dimensions, (channels, ...), or {dims + 1} with a "
            f"batch in front, got shape {x.shape}"
        )
    lead = 1 if unbatched and x.ndim == dims else 2
    shape = (*x.shape[:lead], *(1,) * (x.ndim - lead))
    return _drop(op, x, shape, p, training, inplace)


def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p.

    - `p`: the probability, from 0 to 1.

    Shapes: (batch, channels, length) or (channels, length).
    Dtypes: floats; the result has the input's.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.functional.dropout1d(dt.ones((2, 3, 4)), 0.0).shape
    (2, 3, 4)
    """
    return _drop_channels("dropout1d", input, 2, p, training, inplace, True)


def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p.

    - `p`: the probability, from 0 to 1.

    Shapes: (batch, channels, height, width); (batch, channels, length) is as of `dropout1d`, as
    PyTorch has it.
    Dtypes: floats; the result has the input's.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.functional.dropout2d(dt.ones((2, 3, 4, 4)), 0.0).shape
    (2, 3, 4, 4)
    """
    return _drop_channels("dropout2d", input, 3, p, training, inplace, False)


def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Set each channel to 0 with probability `p`, and divide the others by 1 - p.

    - `p`: the probability, from 0 to 1.

    Shapes: (batch, channels, depth, height, width), or without the batch.
    Dtypes: floats; the result has the input's.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.functional.dropout3d(dt.ones((2, 3, 4, 4, 4)), 0.0).shape
    (2, 3, 4, 4, 4)
    """
    return _drop_channels("dropout3d", input, 4, p, training, inplace, True)


def _alpha_drop(
    op: str, x: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool
) -> Tensor:
    """Apply dropout for `selu`: dropped values become its limit; return `x` itself if none are."""
    _check_input(op, x, p)
    if not training or p == 0.0:
        return x
    if p == 1.0:
        return _store_result(x, _zeros_of(x), inplace)
    scale = 1.0 / math.sqrt((SELU_LIMIT * SELU_LIMIT * p + 1.0) * (1.0 - p))
    y = dt.where(_keep_mask(x, shape, p), widen_half(x), SELU_LIMIT)
    return _store_result(x, y * scale - scale * SELU_LIMIT * p, inplace)


def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply dropout for `selu`: dropped values become its limit; mean and variance stay.

    - `p`: the probability, from 0 to 1.

    Shapes: any; the result's is the input's.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ArgumentError, DTypeError.
    Source: Klambauer, Unterthiner, Mayr, Hochreiter, "Self-normalizing neural networks", 2017.

    >>> import dovetail as dt
    >>> dt.nn.functional.alpha_dropout(dt.ones(2)).tolist()
    [1.0, 1.0]
    """
    shape = input.shape if isinstance(input, dt.Tensor) else ()
    return _alpha_drop("alpha_dropout", input, shape, p, training, inplace)


def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Apply `alpha_dropout` to whole channels.

    - `p`: the probability, from 0 to 1.

    Shapes: (batch, channels, ...); the result's is the input's.
    Dtypes: floats; halves are computed as float32, and the result has the input's.
    Raises: ShapeError, ArgumentError, DTypeError.

    >>> import dovetail as dt
    >>> dt.nn.functional.feature_alpha_dropout(dt.ones((1, 2))).tolist()
    [[1.0, 1.0]]
    """
    require_floats("feature_alpha_dropout", input)
    if input.ndim < 2:
        raise dt.ShapeError(
            "feature_alpha_dropout: the input must have shape (batch, channels, ...), got shape "
            f"{input.shape}"
        )
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _alpha_drop("feature_alpha_dropout", input, shape, p, training, inplace)
