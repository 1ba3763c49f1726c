"""Layers that only change shapes: `Flatten`, `Unflatten`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .module import Module

__all__ = ["Flatten", "Unflatten"]

Tensor: TypeAlias = dt.Tensor


class Flatten(Module):
    """A layer that merges the axes from `start_dim` to `end_dim` into one.

    - `start_dim`, `end_dim`: the first and the last axis to merge; negative ones count from the
      end.

    See also: `Unflatten`, `dt.flatten`.

    >>> import dovetail as dt
    >>> dt.nn.Flatten()(dt.zeros((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with fewer axes."""
        return dt.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """A layer that splits an axis into axes of `unflattened_size`; one size may be -1.

    - `unflattened_size`: the sizes of the new axes. Their product is the size of the axis; one may
      be -1.

    See also: `Flatten`, `dt.unflatten`.

    >>> import dovetail as dt
    >>> dt.nn.Unflatten(1, (3, 4))(dt.zeros((2, 12))).shape
    (2, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = arguments.integer("Unflatten", dim, "dim")
        sizes = arguments.sequence("Unflatten", unflattened_size, "unflattened_size", "ints")
        self.unflattened_size = arguments.integers("Unflatten", sizes, "unflattened_size")

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with more axes.

        Raises: AxisError, ShapeError.
        """
        if not -input.ndim <= self.dim < input.ndim:
            raise dt.AxisError(
                f"Unflatten: axis {arguments.shown(self.dim)} is out of range for shape "
                f"{input.shape}"
            )
        at = self.dim % input.ndim
        return input.reshape((*input.shape[:at], *self.unflattened_size, *input.shape[at + 1 :]))

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
