"""Parameters of distributions: numbers and tensors, brought to one shape, dtype and device."""

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


def brought(op: str, given: Mapping[str, object]) -> list[Tensor]:
    """Parameters as tensors of one float dtype on one device, each of a shape of its own."""
    tensors = [v for v in given.values() if isinstance(v, dt.Tensor)]
    kinds = [t.dtype for t in tensors if t.dtype.kind == "f"]
    wanted = dt.result_type(*kinds) if kinds else dt.get_default_dtype()
    device = tensors[0].device if tensors else None
    found = []
    for name, v in given.items():
        if isinstance(v, Real):
            x = dt.full((), float(v), dtype=wanted, device=device)
        else:
            x = v if isinstance(v, dt.Tensor) else as_tensor(v, wanted, device)
        if x.dtype.kind == "c":
            raise dt.DTypeError(f"{op}: {name} is {x.dtype.name}; it has to be a float")
        found.append(x if x.dtype is wanted else x.astype(wanted))
    return found


def as_tensor(value: Any, d: dt.DType, device: Any) -> Tensor:
    """Return a tensor of numbers. Python's floats take the dtype `d`, arrays have their own."""
    found = dt.asarray(value, device=device)
    if hasattr(value, "dtype") or found.dtype.kind != "f":
        return found
    return dt.asarray(value, dtype=d, device=device)


def broadcast_all(op: str, **given: object) -> list[Tensor]:
    """Parameters as tensors of one shape, float dtype and device. Raises: ShapeError, DTypeError.

    A number takes the dtype and the device of the tensors; integers become floats.
    """
    found = brought(op, given)
    shape = joint_shape(op, list(given), [x.shape for x in found])
    return [x if x.shape == shape else dt.broadcast_to(x, shape) for x in found]


def joint_shape(
    op: str, names: Sequence[str], shapes: Sequence[tuple[int, ...]]
) -> tuple[int, ...]:
    """The shape to which parameters broadcast. Raises: ShapeError, which names them."""
    try:
        return tuple(dt.broadcast_shapes(*shapes))
    except dt.ShapeError:
        said = ", ".join(f"{n} of shape {s}" for n, s in zip(names, shapes, strict=True))
        raise dt.ShapeError(f"{op}: {said} do not broadcast") from None


def one_of(op: str, **given: object) -> tuple[str, Any]:
    """The name and value of the one argument that is given. Raises: ArgumentError."""
    there = [(name, v) for name, v in given.items() if v is not None]
    if len(there) != 1:
        names = " or ".join(given)
        raise dt.ArgumentError(f"{op}: needs {names}, exactly one of them; got {len(there)}")
    return there[0]


def softplus(x: Tensor) -> Tensor:
    """log(1 + exp(x))."""
    return dt.logaddexp(x, 0.0)


# Weights times logarithms: 0 where the weight is 0 and the logarithm infinite, with the gradients
# of the limit, so that what cannot be and did not happen counts for nothing.


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
    """Return log(sum(weights * exp(x))) along the last axis, without gradient where it is infinite.

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
    """The sum over the last dimensions."""
    return dt.sum(x, axis=tuple(range(-dims, 0))) if dims else x


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds, or from logarithms of any scale."""
    return dt.sigmoid(logits) if is_binary else dt.softmax(logits, axis=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Return the log odds, or the logarithms, of probabilities; those of 0 and 1 are infinite."""
    return dt.log(probs) - dt.log1p(-probs) if is_binary else dt.log(probs)


def wide(d: dt.DType) -> dt.DType:
    """The dtype in which numbers are drawn for one: halves would be coarse."""
    return dt.float64 if d is dt.float64 else dt.float32
