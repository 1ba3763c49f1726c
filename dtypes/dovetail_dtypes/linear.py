"""Linear layers with quantised weights."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import dovetail as dt
from dovetail import nn

from .blocks import FORMATS, BlockFormat, BlockTensor, from_parts

__all__ = ["QuantizedLinear", "quantize_"]

M = TypeVar("M", bound=nn.Module)


class QuantizedLinear(nn.Module):
    """A linear layer whose weight has a format of blocks: `input @ weight.T + bias`.

    - `linear`: the trained layer; its weight is quantised, its bias is kept.
    - `format`: "int8_32" or "int4_32".

    State: `codes`, `scales` and, if the layer has one, `bias`. The weight gets no gradient.
    Shapes: (..., in_features) to (..., out_features).

    >>> import dovetail as dt
    >>> from dovetail_dtypes.linear import QuantizedLinear
    >>> layer = QuantizedLinear(dt.nn.Linear(64, 32))
    >>> layer
    QuantizedLinear(in_features=64, out_features=32, bias=True, format=int8_32)
    >>> layer(dt.ones((2, 64))).shape
    (2, 32)
    """

    def __init__(self, linear: nn.Linear, format: str = "int8_32") -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.format = format
        weight = _format_named("QuantizedLinear", format).quantise(linear.weight)
        self.register_buffer("codes", weight.codes)
        self.register_buffer("scales", weight.scales)
        self.register_parameter("bias", linear.bias)

    @property
    def weight(self) -> BlockTensor:
        """Return the weight, of (out_features, in_features)."""
        shape = (self.out_features, self.in_features)
        return from_parts(self.format, self.codes, self.scales, shape)

    def forward(self, input: dt.Tensor) -> dt.Tensor:
        """Return `input @ weight.T + bias`, computed in float32, in the dtype of the input."""
        result = dt.astype(input @ self.weight.T, input.dtype, copy=False)
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        """Return the options that `repr` shows."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}, format={self.format}"
        )


def quantize_(
    model: M, format: str = "int8_32", filter_fn: Callable[[nn.Module, str], bool] | None = None
) -> M:
    """Replace the linear layers of a trained model by quantised ones, and return the model.

    - `model`: the model, which is changed. A `Linear` itself cannot be replaced in place: use the
      result.
    - `format`: "int8_32" (9 bits per weight) or "int4_32" (5 bits).
    - `filter_fn`: a function of a layer and its name, as in torchao; a layer is replaced where it
      returns True. None: every `nn.Linear`.

    A layer that occurs twice is quantised once. Raises: ArgumentError.
    See also: `QuantizedLinear`.

    >>> import dovetail as dt
    >>> from dovetail_dtypes.linear import quantize_
    >>> net = dt.nn.Sequential(dt.nn.Linear(64, 64), dt.nn.ReLU(), dt.nn.Linear(64, 10))
    >>> quantize_(net, "int4_32", lambda layer, name: name != "2")
    Sequential(
      (0): QuantizedLinear(in_features=64, out_features=64, bias=True, format=int4_32)
      (1): ReLU()
      (2): Linear(in_features=64, out_features=10, bias=True)
    )
    """
    _format_named("quantize_", format)
    replacements: dict[nn.Module, QuantizedLinear] = {}
    for name, layer in list(model.named_modules(remove_duplicate=False)):
        if type(layer) is not nn.Linear or (filter_fn is not None and not filter_fn(layer, name)):
            continue
        if layer not in replacements:
            replacements[layer] = QuantizedLinear(layer, format)
        if layer is model:
            return replacements[layer]  # type: ignore[return-value]  # another class
        parent, _, key = name.rpartition(".")
        setattr(model.get_submodule(parent), key, replacements[layer])
    return model


def _format_named(op: str, name: str) -> BlockFormat:
    """Return the format of blocks of a name. Raises: ArgumentError for an unknown name."""
    if not isinstance(name, str) or name not in FORMATS:
        raise dt.ArgumentError(f"{op}: format must be one of {[*FORMATS]}, got {name!r}")
    return FORMATS[name]
