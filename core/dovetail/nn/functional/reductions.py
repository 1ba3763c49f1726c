"""Reductions of losses, and checks of their shapes."""

from __future__ import annotations

import warnings
from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
REDUCTIONS = ("none", "mean", "sum")


def resolve_reduction(
    op: str,
    reduction: str,
    size_average: bool | None = None,
    reduce: bool | None = None,
    others: tuple[str, ...] = (),
) -> str:
    """Return the name of a reduction; `size_average` and `reduce` are PyTorch's older flags.

    Raises: ArgumentError for another name.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in (*REDUCTIONS, *others):
        allowed = ", ".join(map(repr, (*REDUCTIONS, *others)))
        raise dt.ArgumentError(f"{op}: reduction must be one of {allowed}, got {reduction!r}")
    return reduction


def reduce_loss(loss: Tensor, reduction: str, like: Tensor) -> Tensor:
    """Return the losses, their mean or their sum, in the dtype of `like`."""
    if reduction == "mean":
        loss = dt.mean(loss)
    elif reduction == "sum":
        loss = dt.sum(loss)
    return loss if loss.dtype is like.dtype else loss.astype(like.dtype)


def require_same_shape(op: str, a: Tensor, b: Tensor, what: str = "target") -> None:
    """Raise ShapeError if two tensors have different shapes."""
    if a.shape != b.shape:
        raise dt.ShapeError(
            f"{op}: the input and the {what} must have the same shape, got {a.shape} and "
            f"{b.shape}; use x.reshape or dt.broadcast_to"
        )


def warn_if_broadcast(op: str, a: Tensor, b: Tensor) -> None:
    """Warn, as PyTorch does, of a target that is broadcast, which is seldom intended.

    Raises: ShapeError if the shapes do not broadcast.
    """
    if a.shape == b.shape:
        return
    try:
        dt.broadcast_shapes(a.shape, b.shape)
    except dt.ShapeError:
        raise dt.ShapeError(
            f"{op}: the input and the target must have shapes that broadcast, got {a.shape} and "
            f"{b.shape}"
        ) from None
    warnings.warn(
        f"{op}: an input of shape {a.shape} has a target of shape {b.shape}, and both are "
        "broadcast, which is rarely intended",
        stacklevel=4,
    )
