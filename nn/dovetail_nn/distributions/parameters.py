"""Parameters of distributions: numbers and tensors, brought to one shape, dtype and device."""

from __future__ import annotations

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
            x = v if isinstance(v, dt.Tensor) else dt.asarray(v, device=device)
        if x.dtype.kind == "c":
            raise dt.DTypeError(f"{op}: {name} is {x.dtype.name}; it has to be a float")
        found.append(x if x.dtype is wanted else x.astype(wanted))
    return found


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


def sum_last(x: Tensor, dims: int) -> Tensor:
    """The sum over the last dimensions."""
    return dt.sum(x, axis=tuple(range(-dims, 0))) if dims else x


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities from log odds, or from logarithms of any scale."""
    return dt.sigmoid(logits) if is_binary else dt.softmax(logits, axis=-1)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds, or logarithms, of probabilities, which are kept off 0 and 1 by an eps."""
    eps = float(dt.finfo(probs.dtype).eps)
    p = dt.clip(probs, eps, 1.0 - eps)
    return dt.log(p) - dt.log1p(-p) if is_binary else dt.log(p)


def wide(d: dt.DType) -> dt.DType:
    """The dtype in which numbers are drawn for one: halves would be coarse."""
    return dt.float64 if d is dt.float64 else dt.float32
