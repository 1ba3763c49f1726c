"""Computation of float16 and bfloat16 in float32, with one rounding at the end.

`widen_functions` does that for all public functions but those in `NOT_WIDENED_FUNCTIONS`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from types import ModuleType
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import dovetail as dt
from dovetail.extend import callbacks, widen_halves

__all__: list[str] = []

P = ParamSpec("P")
R = TypeVar("R")
Tensor: TypeAlias = dt.Tensor

# These write into their arguments, and widen halves themselves.
INPLACE_FUNCTIONS = """alpha_dropout batch_norm celu dropout dropout1d dropout2d dropout3d elu
embedding embedding_bag feature_alpha_dropout hardsigmoid hardswish hardtanh instance_norm
leaky_relu mish relu relu6 rrelu selu silu threshold"""
# These compare dtypes first, and widen halves after that.
DTYPE_CHECKED_FUNCTIONS = """bilinear conv_transpose1d conv_transpose2d conv_transpose3d
flex_attention group_norm gru_cell layer_norm lstm_cell prelu rnn_relu_cell rnn_tanh_cell
scaled_dot_product_attention"""
# These move or select elements, or are a single op.
MOVEMENT_FUNCTIONS = """BlockMask adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d
channel_shuffle conv1d conv2d conv3d create_block_mask hardshrink max_pool1d max_pool2d max_pool3d
max_unpool1d max_unpool2d max_unpool3d one_hot pad pixel_shuffle pixel_unshuffle sigmoid tanh
unfold"""
# These are products of halves, which a device may have units for: each product is rounded.
PRODUCT_FUNCTIONS = "linear multi_head_attention_forward"
NOT_WIDENED_FUNCTIONS = frozenset(
    " ".join(
        (INPLACE_FUNCTIONS, DTYPE_CHECKED_FUNCTIONS, MOVEMENT_FUNCTIONS, PRODUCT_FUNCTIONS)
    ).split()
)


def widen_functions(module: ModuleType) -> dict[str, Any]:
    """Replace a module's public functions by wrappers that widen halves; return these by name.

    Results have the dtype of the first tensor. `NOT_WIDENED_FUNCTIONS` are left as they are.
    """
    for name in {*module.__all__} - NOT_WIDENED_FUNCTIONS:
        setattr(module, name, widen_halves(getattr(module, name), "first"))
    return {name: getattr(module, name) for name in module.__all__}


def obey_autocast(name: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator of a function that layers call themselves; `name` is in autocast's lists.

    The public functions of `dt.nn.functional` obey autocast in `explain`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        """Return the function with operands cast under autocast."""

        @wraps(function)
        def call(*args: P.args, **options: P.kwargs) -> R:
            """Call the function; under autocast, cast its operands first."""
            if (run := callbacks.run_autocast) is not None:
                result: Any = run(function, name, args, options)
                if result is not callbacks.NOT_ACTIVE:
                    return cast(R, result)
            return function(*args, **options)

        return call

    return decorate


def is_half(x: Tensor) -> bool:
    """Return True if a tensor is float16 or bfloat16."""
    return x.dtype.itemsize == 2 and x.dtype.kind == "f"


def widen_half(x: Tensor) -> Tensor:
    """Return a tensor as float32 if it is float16 or bfloat16, else unchanged."""
    return x.astype(dt.float32) if is_half(x) else x


def cast_like(y: Tensor, x: Tensor) -> Tensor:
    """Return `y` in the dtype of `x`."""
    return y if y.dtype is x.dtype else y.astype(x.dtype)


def require_tensors(op: str, *values: object) -> None:
    """Raise DTypeError for arguments that are not tensors."""
    for x in values:
        if not isinstance(x, dt.Tensor):
            raise dt.DTypeError(
                f"{op}: expected a tensor, got {type(x).__name__}; use dt.asarray(x)"
            )


def require_floats(op: str, *values: Tensor) -> None:
    """Raise DTypeError for arguments that are not tensors of floats."""
    require_tensors(op, *values)
    for x in values:
        if x.dtype.kind != "f":
            raise dt.DTypeError(
                f"{op}: expected a float dtype, got {x.dtype.name}{list(x.shape)}; use "
                "x.astype(dt.float32)"
            )


def require_same_dtype(op: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raise DTypeError if weights have another dtype than the input."""
    for name, w in weights.items():
        if w is not None and w.dtype is not x.dtype:
            raise dtype_mismatch_error(op, x, name, w)


def require_same_dtype_or_float32(op: str, x: Tensor, **weights: Tensor | None) -> None:
    """Raise DTypeError like `require_same_dtype`, but allow float32 weights with a half input."""
    for name, w in weights.items():
        if w is None or w.dtype is x.dtype or (w.dtype is dt.float32 and is_half(x)):
            continue
        raise dtype_mismatch_error(op, x, name, w)


def dtype_mismatch_error(
    op: str, x: Tensor, name: str, w: Tensor, what: str = "input"
) -> dt.DTypeError:
    """Return the error for an input and a weight of different dtypes."""
    model = f", or model.to(dt.{x.dtype.name})" if x.dtype.kind in "fc" else ""
    return dt.DTypeError(
        f"{op}: {what} and {name} must have the same dtype, got {x.dtype.name} and "
        f"{w.dtype.name}; use x.astype(dt.{w.dtype.name}){model}"
    )
