"""Checks of targets, predictions and weights, and means over samples."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Array: TypeAlias = object  # a tensor, or what `dt.asarray` accepts


def read_samples(
    op: str, y_true: Array, y: Array, sample_weight: Array, name: str, dimensions: tuple[int, ...]
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return targets, predictions and weights as tensors on one device.

    - `name`: the name of `y` in errors.
    - `dimensions`: the allowed numbers of axes of `y_true`.

    Raises: ShapeError if their numbers of samples or of axes do not fit.
    """
    device = next((x.device for x in (y, y_true) if isinstance(x, dt.Tensor)), None)
    true, values = (dt.asarray(x, device=device) for x in (y_true, y))
    if true.ndim not in dimensions or not values.ndim:
        wanted = " or ".join(f"{n} dimension{'s' * (n > 1)}" for n in dimensions)
        raise dt.ShapeError(
            f"{op}: y_true must have {wanted}, got shapes {true.shape} and {values.shape} of "
            f"y_true and {name}"
        )
    if true.shape[0] != values.shape[0]:
        raise dt.ShapeError(
            f"{op}: y_true and {name} must have one row for each sample, got shapes {true.shape} "
            f"and {values.shape}"
        )
    if sample_weight is None:
        return true, values, None
    weight = dt.asarray(sample_weight, device=values.device)
    if weight.shape != true.shape[:1]:
        raise dt.ShapeError(
            f"{op}: sample_weight must have shape {true.shape[:1]}, got shape {weight.shape}"
        )
    return true, values, weight if weight.dtype.kind == "f" else weight.astype(dt.float32)


def require_same_shape(op: str, y_true: Tensor, y: Tensor, name: str = "y_pred") -> None:
    """Raise ShapeError unless targets and predictions have the same shape."""
    if y_true.shape != y.shape:
        raise dt.ShapeError(
            f"{op}: y_true and {name} must have the same shape, got {y_true.shape} and {y.shape}"
        )


def count(mask: Tensor, weight: Tensor | None, axis: int | None = 0) -> Tensor:
    """Return the number of True elements along the samples, or the sum of their weights."""
    if weight is None:
        return dt.count_nonzero(mask, axis=axis)
    weight = weight.reshape((-1, *(1,) * (mask.ndim - 1)))
    return dt.where(mask, weight, 0.0).sum(axis=axis)


def mean_over_samples(x: Tensor, weight: Tensor | None) -> Tensor:
    """Return the mean over samples, or the weighted mean."""
    if weight is None:
        return x.astype(dt.float32).mean(axis=0) if x.dtype.kind in "biu" else x.mean(axis=0)
    column = weight.reshape((-1, *(1,) * (x.ndim - 1)))
    return (x * column).sum(axis=0) / weight.sum()


def divide(numerator: Tensor, denominator: Tensor, otherwise: float | Tensor) -> Tensor:
    """Return quotients, and `otherwise` where the denominator is 0."""
    is_zero = denominator == 0
    return dt.where(is_zero, otherwise, numerator / dt.where(is_zero, 1, denominator))
