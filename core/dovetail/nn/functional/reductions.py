"""What losses have in common: how they are reduced, and what they say of wrong shapes."""

from __future__ import annotations

import warnings
from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
KINDS = ("none", "mean", "sum")


def reduction_of(
    op: str, reduction: str, size_average: bool | None = None, reduce: bool | None = None,
    others: tuple[str, ...] = (),
) -> str:  # fmt: skip
    """How a loss is reduced; the two flags are of before there were names for it.

    Raises: ArgumentError for another name.
    """
    if size_average is not None or reduce is not None:
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in (*KINDS, *others):
        known = ", ".join(map(repr, (*KINDS, *others)))
        raise dt.ArgumentError(f"{op}: reduction is one of {known}, not {reduction!r}")
    return reduction


def reduced(loss: Tensor, reduction: str, like: Tensor) -> Tensor:
    """The losses themselves, their mean or their sum, in the dtype of `like`."""
    if reduction == "mean":
        loss = dt.mean(loss)
    elif reduction == "sum":
        loss = dt.sum(loss)
    return loss if loss.dtype is like.dtype else loss.astype(like.dtype)


def same_shape(op: str, a: Tensor, b: Tensor, what: str = "target") -> None:
    """Raises: ShapeError where the two have different ones."""
    if a.shape != b.shape:
        raise dt.ShapeError(
            f"{op}: an input of shape {a.shape} has a {what} of shape {b.shape}; they are the same "
            "(see x.reshape, dt.broadcast_to)"
        )


def broadcast(op: str, a: Tensor, b: Tensor) -> None:
    """Warns, as PyTorch does, of a target that is broadcast, which is seldom what is meant.

    Raises: ShapeError where it cannot be.
    """
    if a.shape == b.shape:
        return
    try:
        dt.broadcast_shapes(a.shape, b.shape)
    except dt.ShapeError:
        raise dt.ShapeError(
            f"{op}: an input of shape {a.shape} has a target of shape {b.shape}, which do not "
            "broadcast"
        ) from None
    warnings.warn(
        f"{op}: an input of shape {a.shape} has a target of shape {b.shape}, and both are "
        "broadcast, which is seldom what is meant",
        stacklevel=4,
    )
