"""Layers of dropout, which act only in training."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt

from .. import functional as F
from ..functional.sizes import check_probability
from .module import Module

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]

Tensor: TypeAlias = dt.Tensor


class _Dropout(Module):
    """The base of dropout layers, with the probability `p`."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        self.p, self.inplace = check_probability(type(self).__name__, p, "p"), inplace

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """A layer that sets values to 0 with probability `p` in training, and scales the others.

    - `p`: the probability of each value, from 0 to 1.

    See also: `Dropout2d`, `AlphaDropout`, `Module.eval`, `dt.nn.functional.dropout`.

    >>> import dovetail as dt
    >>> dt.nn.Dropout().eval()(dt.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.dropout`."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, length).

    - `p`: the probability of each channel, from 0 to 1.

    >>> import dovetail as dt
    >>> dt.nn.Dropout1d(0.2)
    Dropout1d(p=0.2, inplace=False)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.dropout1d`."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, height, width).

    - `p`: the probability of each channel, from 0 to 1.

    >>> import dovetail as dt
    >>> dt.nn.Dropout2d(0.2)
    Dropout2d(p=0.2, inplace=False)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.dropout2d`."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels of (batch, channels, depth, height, width).

    - `p`: the probability of each channel, from 0 to 1.

    >>> import dovetail as dt
    >>> dt.nn.Dropout3d(0.2)
    Dropout3d(p=0.2, inplace=False)
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.dropout3d`."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """Dropout that preserves mean and variance of the output of `SELU`.

    - `p`: the probability of each value, from 0 to 1.

    >>> import dovetail as dt
    >>> dt.nn.AlphaDropout().eval()(dt.ones(2)).tolist()
    [1.0, 1.0]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.alpha_dropout`."""
        return F.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels.

    - `p`: the probability of each channel, from 0 to 1.

    >>> import dovetail as dt
    >>> dt.nn.FeatureAlphaDropout().eval()(dt.ones((1, 2))).tolist()
    [[1.0, 1.0]]
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.feature_alpha_dropout`."""
        return F.feature_alpha_dropout(input, self.p, self.training, self.inplace)
