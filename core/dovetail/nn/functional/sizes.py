"""Checks of arguments for functions of images: a size for each axis, inputs with a batch axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments, required

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Sizes: TypeAlias = int | Sequence[int]
AXIS_NAMES = {1: ("length",), 2: ("h", "w"), 3: ("d", "h", "w")}
SIZE_MAX = 1 << 40
LAYERS_MAX = 1 << 16  # a mistyped number must not create modules for hours


def check_sizes(op: str, value: object, name: str, axes: int, minimum: int = 0) -> tuple[int, ...]:
    """Return an int for each axis, from one int or one for each axis.

    Raises: ArgumentError for another number of sizes or one below `minimum`, ArgumentTypeError for
    no ints.
    """
    values = arguments.integers(op, value, name)
    values = values * axes if len(values) == 1 else values
    if len(values) != axes:
        raise dt.ArgumentError(
            f"{op}: {name} must have one size or {axes}, one for each axis, got "
            f"{arguments.shown(value)}"
        )
    if not all(minimum <= n < SIZE_MAX for n in values):
        raise dt.ArgumentError(
            f"{op}: {name} must be at least {minimum}, got {arguments.shown(value)}"
        )
    return values


def check_counts(op: str, minimum: int = 0, **values: object) -> tuple[int, ...]:
    """Check sizes of a layer by name and return them in order.

    Raises: ArgumentTypeError for other objects than ints, ArgumentError for one below `minimum`.
    """
    return tuple([arguments.integer(op, n, name, minimum) for name, n in values.items()])


def check_probability(op: str, value: object, name: str) -> float:
    """Return a number in 0..1. Raises: ArgumentTypeError for no number, ArgumentError outside."""
    number = arguments.number(op, value, name)
    if not 0.0 <= number <= 1.0:
        raise dt.ArgumentError(f"{op}: {name} must be a probability between 0 and 1, got {number}")
    return number


def with_batch(op: str, x: object, axes: int) -> tuple[Tensor, bool]:
    """Return the input with a batch axis, and True if it had one.

    Raises: ShapeError for another number of dimensions, DTypeError for no tensor.
    """
    tensor = required(op, x)
    if tensor.ndim not in (axes + 1, axes + 2):
        axis_names = "channels, " + ", ".join(AXIS_NAMES[axes])
        raise dt.ShapeError(
            f"{op}: the input must have shape (n, {axis_names}) or ({axis_names}), got shape "
            f"{tensor.shape}"
        )
    if tensor.ndim == axes + 2:
        return tensor, True
    return tensor.reshape((1, *tensor.shape)), False


def without_batch(x: Tensor, had_batch: bool) -> Tensor:
    """Return a result without the batch axis, if the input had none."""
    return x if had_batch else x.reshape(x.shape[1:])
