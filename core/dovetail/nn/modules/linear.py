"""Linear layers: `Linear`, `Bilinear`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import dovetail as dt

from .. import functional as F
from .. import init
from ..functional.sizes import check_counts
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__ = ["Bilinear", "Linear"]

Tensor: TypeAlias = dt.Tensor


def empty_parameter(shape: tuple[int, ...], device: DeviceLike, dtype: DTypeLike) -> Tensor:
    """Return a parameter with uninitialised elements."""
    return Parameter(dt.empty(shape, dtype=dtype, device=device))


class Linear(Module):
    """A layer that returns `input @ weight.T + bias`.

    - `in_features`: the size of the last axis of the input.
    - `out_features`: the size of the last axis of the result.
    - `bias`: False has none. Weight and bias are initially uniform within +-1 / sqrt(in_features).

    State: `weight` of (out_features, in_features), and `bias` of (out_features,).
    Shapes: (..., in_features) to (..., out_features).
    See also: `Bilinear`, `dt.nn.functional.linear`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Linear(3, 4)
    >>> layer, layer(dt.ones((2, 3))).shape
    (Linear(in_features=3, out_features=4, bias=True), (2, 4))
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = check_counts(
            type(self).__name__, in_features=in_features, out_features=out_features
        )
        self.weight = empty_parameter((out_features, in_features), device, dtype)
        parameter = empty_parameter((out_features,), device, dtype) if bias else None
        self.register_parameter("bias", parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights and biases."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features else 0.0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        """Apply `dt.nn.functional.linear`."""
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """A layer that returns `input1 @ weight[k] @ input2 + bias[k]` for each k.

    - `in1_features`, `in2_features`: the sizes of the last axes of the two inputs.
    - `out_features`: the size of the last axis of the result.
    - `bias`: False has none. Weight and bias are initially uniform within +-1 / sqrt(in1_features).

    State: `weight` of (out_features, in1_features, in2_features), and `bias` of (out_features,).
    Shapes: (..., in1_features) and (..., in2_features) to (..., out_features).
    See also: `Linear`, `dt.nn.functional.bilinear`.

    >>> import dovetail as dt
    >>> layer = dt.nn.Bilinear(3, 2, 4)
    >>> layer(dt.ones((5, 3)), dt.ones((5, 2))).shape
    (5, 4)
    """

    weight: Tensor
    bias: Tensor | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        (self.in1_features,) = check_counts(name, 1, in1_features=in1_features)
        self.in2_features, self.out_features = check_counts(
            name, in2_features=in2_features, out_features=out_features
        )
        self.weight = empty_parameter((out_features, in1_features, in2_features), device, dtype)
        parameter = empty_parameter((out_features,), device, dtype) if bias else None
        self.register_parameter("bias", parameter)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw new weights and biases."""
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        """Apply `dt.nn.functional.bilinear`."""
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
