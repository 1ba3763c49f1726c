"""Conversion of parameters to one shape, dtype and device, and stable formulas of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, TypeAlias

import dovetail as dt

__all__ = ["Value", "broadcast_all", "logits_to_probs", "probs_to_logits", "softplus", "sum_last"]

Tensor: TypeAlias = dt.Tensor
Value: TypeAlias = "dt.Tensor | float"
EULER = 0.57721566490153286060


def as_float_tensors(op: str, parameters: Mapping[str, object]) -> list[Tensor]:
    """Return parameters as tensors of one float dtype, numbers on the first tensor's device.

    Each keeps its own shape. Raises: DTypeError for complex numbers.
    """
    tensors = [v for v in parameters.values() if isinstance(v, dt.Tensor)]
    kinds = [t.dtype for t in tensors if t.dtype.kind == "f"]
    dtype = dt.result_type(*kinds) if kinds else dt.get_default_dtype()
    device = tensors[0].device if tensors else None
    converted = []
    for name, v in parameters.items():
        if isinstance(v, Real):
            x = dt.full((), float(v), dtype=dtype, device=device)
        else:
            x = v if isinstance(v, dt.Tensor) else as_tensor(v, dtype, device)
        if x.dtype.kind == "c":
            raise dt.DTypeError(f"{op}: {name} must be real, got {x.dtype.name}")
        converted.append(x if x.dtype is dtype else x.astype(dtype))
    return converted


def as_tensor(value: Any, d: dt.DType, device: Any) -> Tensor:
    """Return a tensor of numbers. Python's floats take the dtype `d`, arrays have their own."""
    tensor = dt.asarray(value, device=device)
    if hasattr(value, "dtype") or tensor.dtype.kind != "f":
        return tensor
    return dt.asarray(value, dtype=d, device=device)


def broadcast_all(op: str, **parameters: object) -> list[Tensor]:
    """Return parameters as tensors of one shape and float dtype.

    A number takes the dtype and the device of the tensors; integers become floats.
    Raises: ShapeError if the shapes do not broadcast, DTypeError for complex numbers.
    """
    tensors = as_float_tensors(op, parameters)
    shape = joint_shape(op, list(parameters), [x.shape for x in tensors])
    return [x if x.shape == shape else dt.broadcast_to(x, shape) for x in tensors]


def joint_shape(
    op: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the shape to which parameters broadcast. Raises: ShapeError, which names them."""
    try:
        return tuple(dt.broadcast_shapes(*shapes))
    except dt.ShapeError:
        shapes_text = ", ".join(f"{n} of shape {s}" for n, s in zip(names, shapes, strict=True))
        raise dt.ShapeError(
            f"{op}: parameters must have shapes that broadcast, got {shapes_text}"
        ) from None


def only_argument(op: str, **arguments: object) -> tuple[str, Any]:
    """Return (name, value) of the one argument that is not None.

    Raises: ArgumentError otherwise.
    """
    passed = [(name, v) for name, v in arguments.items() if v is not None]
    if len(passed) != 1:
        names = " or ".join(arguments)
        raise dt.ArgumentError(f"{op}: exactly one of {names} must be given, got {len(passed)}")
    return passed[0]


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x))."""
    return dt.logaddexp(x, 0.0)


# Weights times logarithms: 0 if the weight is 0 and the logarithm infinite, with the gradients of
# the limit, so an impossible event that did not happen contributes 0.


def xlogy(weight: Value, x: Tensor) -> Tensor:
    """Return weight * log(x), and 0 where both are 0."""
    none = (weight == 0.0) & (x == 0.0)
    return weight * dt.log(dt.where(none, 1.0, x))


def xlog1py(weight: Value, x: Tensor) -> Tensor:
    """Return weight * log(1 + x), and 0 where the weight is 0 and x is -1."""
    none = (weight == 0.0) & (x == -1.0)
    return weight * dt.log1p(dt.where(none, 0.0, x))


def xsoftplus(weight: Value, x: Tensor) -> Tensor:
    """Return weight * softplus(x), and 0 where the weight is 0 and x is infinite."""
    none = (weight == 0.0) & (x == math.inf)
    return weight * softplus(dt.where(none, 0.0, x))


def weighted_logsumexp(x: Tensor, weights: Tensor) -> Tensor:
    """Return log(sum(weights * exp(x))) along the last axis; infinite results have no gradient.

    A weight of 0 has the gradient that its term would have.
    """
    with dt.no_grad():
        top = dt.max(dt.where(weights > 0.0, x, -math.inf), axis=-1, keepdims=True)
        infinite = dt.isinf(top)
    base = dt.where(infinite, 0.0, top)
    most = math.log(float(dt.finfo(x.dtype).max)) - 1.0  # 0 times an infinite term would be NaN
    exponent = dt.minimum(dt.where(infinite, 0.0, x) - base, most)
    total = dt.sum(weights * dt.exp(exponent), axis=-1, keepdims=True)
    return dt.where(infinite, top, base + dt.log(total))[..., 0]


def log_cosh(x: Tensor) -> Tensor:
    """Return log(cosh(x))."""
    far = dt.abs(x)
    return far + softplus(far * -2.0) - math.log(2.0)


def log1p_square(x: Tensor) -> Tensor:
    """Return log(1 + x * x), also where x * x overflows."""
    far = dt.abs(x) > 1e15
    near = dt.where(far, 0.0, x)
    return dt.where(far, dt.log(dt.where(far, dt.abs(x), 1.0)) * 2.0, dt.log1p(near * near))


def sum_last(x: Tensor, dims: int) -> Tensor:
    """Return the sum over the last dimensions."""
    return dt.sum(x, axis=tuple(range(-dims, 0))) if dims else x


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Return probabilities from log odds, or from logarithms of any scale."""
    return dt.sigmoid(logits) if is_binary else dt.softmax(logits, axis=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log odds, or the logarithms, of probabilities; those of 0 and 1 are infinite."""
    return dt.log(probs) - dt.log1p(-probs) if is_binary else dt.log(probs)


def sampling_dtype(d: dt.DType) -> dt.DType:
    """Return the dtype in which numbers are drawn: at least float32, as halves are too coarse."""
    return dt.float64 if d is dt.float64 else dt.float32
