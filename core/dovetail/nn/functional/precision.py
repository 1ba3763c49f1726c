"""Computation of float16 and bfloat16 in float32, with one rounding at the end.

`widen_functions` does that for all public functions but those in `AS_GIVEN`.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import widen_halves

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor

# These write into their arguments, and widen halves themselves.
WRITE = """alpha_dropout batch_norm celu dropout dropout1d dropout2d dropout3d elu embedding
embedding_bag feature_alpha_dropout hardsigmoid hardswish hardtanh instance_norm leaky_relu mish
relu relu6 rrelu selu silu threshold"""
# These compare dtypes first, and widen halves after that.
COMPARE = """bilinear conv_transpose1d conv_transpose2d conv_transpose3d group_norm gru_cell
layer_norm lstm_cell prelu rnn_relu_cell rnn_tanh_cell scaled_dot_product_attention"""
# These move or select elements, or are a single op.
MOVE = """adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d channel_shuffle conv1d conv2d
conv3d hardshrink max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d max_unpool3d one_hot
pad pixel_shuffle pixel_unshuffle sigmoid tanh unfold"""
# These are products of halves, which a device may have units for: each product is rounded.
MULTIPLY = "linear multi_head_attention_forward"
AS_GIVEN = frozenset(f"{WRITE} {COMPARE} {MOVE} {MULTIPLY}".split())


def widen_functions(module: ModuleType) -> dict[str, Any]:
    """Make a module's public functions compute halves in float32, except those in AS_GIVEN.

    Their results have the dtype of their first tensor. Return the functions by name.
    """
    for name in {*module.__all__} - AS_GIVEN:
        setattr(module, name, widen_halves(getattr(module, name), "first"))
    return {name: getattr(module, name) for name in module.__all__}


def is_short(x: Tensor) -> bool:
    """Return True if a tensor is float16 or bfloat16."""
    return x.dtype.itemsize == 2 and x.dtype.kind == "f"


def wide(x: Tensor) -> Tensor:
    """Return a tensor as float32 if it is float16 or bfloat16, else unchanged."""
    return x.astype(dt.float32) if is_short(x) else x


def narrow(y: Tensor, x: Tensor) -> Tensor:
    """Return `y` in the dtype of `x`."""
    return y if y.dtype is x.dtype else y.astype(x.dtype)


def tensors(op: str, *values: object) -> None:
    """Raise DTypeError for arguments that are not tensors."""
    for x in values:
        if not isinstance(x, dt.Tensor):
            raise dt.DTypeError(f"{op}: needs a tensor, not a {type(x).__name__}; see dt.asarray")


def floats(op: str, *values: Tensor) -> None:
    """Raise DTypeError for arguments that are not tensors of floats."""
    tensors(op, *values)
    for x in values:
        if x.dtype.kind != "f":
            raise dt.DTypeError(
                f"{op}: takes floats, not {x.dtype.name}{list(x.shape)}; see x.astype(dt.float32)"
            )


def one_dtype(op: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raise DTypeError if weights have another dtype than the input."""
    for name, w in weights.items():
        if w is not None and w.dtype is not x.dtype:
            raise other_dtype(op, x, name, w)


def one_dtype_or_wide(op: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raise DTypeError like `one_dtype`, but allow float32 weights with a half input."""
    for name, w in weights.items():
        if w is None or w.dtype is x.dtype or (w.dtype is dt.float32 and is_short(x)):
            continue
        raise other_dtype(op, x, name, w)


def other_dtype(op: str, x: Tensor, name: str, w: Tensor, what: str = "input") -> dt.DTypeError:
    """Return the error for an input and a weight of different dtypes."""
    model = f", or model.to(dt.{x.dtype.name})" if x.dtype.kind in "fc" else ""
    return dt.DTypeError(
        f"{op}: {what} is {x.dtype.name}, {name} {w.dtype.name}: use x.astype(dt.{w.dtype.name})"
        f"{model}"
    )
