"""Products with weights: `linear`, `bilinear`."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt
from dovetail.extend import widen_halves

from .precision import dtype_mismatch_error, require_same_dtype, require_tensors

__all__ = ["bilinear", "linear"]

Tensor: TypeAlias = dt.Tensor


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input @ weight.T + bias`.

    - `weight`: the matrix, with a row for each element of the result's last axis.
    - `bias`: a number for each of them; None adds none.

    Shapes: input (..., in), weight (out, in) or (in,), bias (out,) or (); the result (..., out).
    Dtypes: those of `dt.matmul`, the same for all. The product of float16 and bfloat16 is one
    product of halves, for which devices have units, and is rounded before the bias is added.
    Raises: ShapeError, DTypeError.
    See also: `bilinear`, `dt.matmul`, `dt.nn.Linear`.

    >>> import dovetail as dt
    >>> x, w = dt.ones((2, 3)), dt.ones((4, 3))
    >>> dt.nn.functional.linear(x, w).shape
    (2, 4)
    """
    require_tensors("linear", input, weight)
    if weight.ndim not in (1, 2) or input.ndim == 0 or input.shape[-1] != weight.shape[-1]:
        raise dt.ShapeError(
            f"linear: an input of shape {input.shape} has {_last(input)} features, and the weight "
            f"of shape {weight.shape} takes {_last(weight)}; the input is (..., in), the weight "
            "(out, in)"
        )
    if weight.dtype is not (dtype := input.dtype):
        raise dtype_mismatch_error("linear", input, "weight", weight)
    product = input @ weight.T if weight.ndim == 2 else input @ weight
    if bias is None:
        return product
    if bias.shape not in (weight.shape[:-1], ()):
        raise dt.ShapeError(
            f"linear: bias must have shape {weight.shape[:-1]} for a weight of shape "
            f"{weight.shape}, got shape {bias.shape}"
        )
    if bias.dtype is not dtype:
        raise dtype_mismatch_error("linear", input, "bias", bias)
    return product + bias


def _last(x: Tensor) -> int | str:
    """Return the size of the last axis for errors, "no" without axes."""
    return x.shape[-1] if x.ndim else "no"


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2` for each k, plus the bias.

    - `weight`: a matrix for each element of the result's last axis.
    - `bias`: a number for each of them; None adds none.

    Shapes: input1 (..., a), input2 (..., b), weight (out, a, b), bias (out,); the result
    (..., out).
    Dtypes: those of `dt.matmul`, the same for all.
    Raises: ShapeError, DTypeError.

    >>> import dovetail as dt
    >>> x, w = dt.ones((5, 3)), dt.ones((4, 3, 2))
    >>> dt.nn.functional.bilinear(x, dt.ones((5, 2)), w).shape
    (5, 4)
    """
    require_tensors("bilinear", input1, input2, weight)
    lead = input1.shape[:-1]
    features = (*input1.shape[-1:], *input2.shape[-1:])
    if weight.ndim != 3 or features != weight.shape[1:] or lead != input2.shape[:-1]:
        raise dt.ShapeError(
            "bilinear: expected inputs (..., a) and (..., b) and a weight (out, a, b), got shapes "
            f"{input1.shape}, {input2.shape} and {weight.shape}"
        )
    require_same_dtype("bilinear", input1, input2=input2, weight=weight, bias=bias)
    if bias is not None and bias.shape != weight.shape[:1]:
        raise dt.ShapeError(
            f"bilinear: bias must have shape {weight.shape[:1]} for a weight of shape "
            f"{weight.shape}, got shape {bias.shape}"
        )
    return _contract(input1, input2, weight, bias)


@widen_halves
def _contract(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Return the bilinear form of each weight matrix, plus the bias."""
    out, a, b = weight.shape
    left = input1.reshape((-1, a)) @ weight.permute_dims((1, 0, 2)).reshape((a, out * b))
    result = (left.reshape((-1, out, b)) * input2.reshape((-1, 1, b))).sum(axis=-1)
    result = result.reshape((*input1.shape[:-1], out))
    return result if bias is None else result + bias
