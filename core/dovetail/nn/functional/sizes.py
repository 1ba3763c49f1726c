"""What functions of images are given: sizes for each axis, and inputs with or without a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments, required

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor
Sizes: TypeAlias = int | Sequence[int]
NAMES = {1: ("length",), 2: ("h", "w"), 3: ("d", "h", "w")}
LARGEST = 1 << 40
LAYERS_MAX = 1 << 16  # a typing error must not make modules for hours


def sizes(op: str, value: object, name: str, axes: int, least: int = 0) -> tuple[int, ...]:
    """An int for each axis, of one for all of them or of as many. Raises: ArgumentError."""
    found = arguments.integers(op, value, name)
    found = found * axes if len(found) == 1 else found
    if len(found) != axes:
        raise dt.ArgumentError(
            f"{op}: {name}={arguments.shown(value)} has {len(found)} sizes for {axes} axes; "
            f"give one or {axes}"
        )
    if not all(least <= n < LARGEST for n in found):
        raise dt.ArgumentError(
            f"{op}: {name}={arguments.shown(value)}: sizes here are {least} or more"
        )
    return found


def counts(op: str, least: int = 0, **given: object) -> tuple[int, ...]:
    """Sizes of a layer, an int for each name. Raises: ArgumentTypeError, ArgumentError."""
    return tuple([arguments.integer(op, n, name, least) for name, n in given.items()])


def probability(op: str, value: object, name: str) -> float:
    """A number from 0 to 1. Raises: ArgumentTypeError, ArgumentError."""
    found = arguments.number(op, value, name)
    if not 0.0 <= found <= 1.0:
        raise dt.ArgumentError(f"{op}: {name} is a probability, from 0 to 1, not {found}")
    return found


def batched(op: str, x: object, axes: int) -> tuple[Tensor, bool]:
    """An input of (n, channels, *axes), and whether it had the batch. Raises: ShapeError."""
    found = required(op, x)
    if found.ndim not in (axes + 1, axes + 2):
        wanted = "channels, " + ", ".join(NAMES[axes])
        raise dt.ShapeError(
            f"{op}: an input of shape {found.shape}; it is (n, {wanted}), or ({wanted}) of one"
        )
    return (found, True) if found.ndim == axes + 2 else (found.reshape((1, *found.shape)), False)


def unbatched(x: Tensor, had: bool) -> Tensor:
    """A result without the batch that its input had not."""
    return x if had else x.reshape(x.shape[1:])
