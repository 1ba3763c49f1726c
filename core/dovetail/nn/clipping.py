"""Gradient clipping, by the norm of all gradients or by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import write_together

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors: TypeAlias = "dt.Tensor | Iterable[dt.Tensor]"

LAUNCH_GRADS_MAX = 8  # gradients that one launch writes


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> dt.Tensor:
    """Return the norm of all tensors, as if they were one vector.

    - `tensors`: one tensor, or several.
    - `norm_type`: the order of the norm; infinity is the greatest magnitude.
    - `error_if_nonfinite`: raise an error for an infinite or NaN norm, which the host has to read.
    - `foreach`: has no effect.

    Shapes: any; the norm ().
    Dtypes: floats and complex; the norm has the dtype to which the norms of all tensors promote.
    Raises: GradientError for such a norm; DTypeError for integers and for values that are not
    tensors; ArgumentTypeError for a `norm_type` that is not a number.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import get_total_norm
    >>> float(get_total_norm([dt.asarray([3.0, 4.0])]))
    5.0
    """
    op = "get_total_norm"
    checked = _check_tensors(op, tensors)
    power = _as_float(op, "norm_type", norm_type)
    total = _compute_norm(checked, power)
    if error_if_nonfinite:
        _require_finite(op, total, power)
    return _to_result_dtype(total, *checked)


def _compute_norm(tensors: list[dt.Tensor], power: float) -> dt.Tensor:
    """Return the norm of tensors in its compute dtype: that of halves may not fit a half."""
    if not tensors:
        return dt.asarray(0.0)
    first = tensors[0].device
    values = [_to_compute_dtype(_stored_values(x, True)) for x in tensors]
    norms = [dt.linalg.vector_norm(x, ord=power).to(first) for x in values]
    return dt.linalg.vector_norm(dt.stack(norms), ord=power) if len(norms) > 1 else norms[0]


def _require_finite(op: str, total: dt.Tensor, power: float) -> None:
    """Raise GradientError for a norm that is infinite or NaN; the host reads it."""
    if not bool(dt.isfinite(total)):
        raise dt.GradientError(
            f"{op}: the norm of order {power:g} of the gradients must be finite, got "
            f"{float(total)}; find the source with dt.autograd.detect_anomaly(), or pass "
            "error_if_nonfinite=False"
        )


def _to_compute_dtype(x: dt.Tensor) -> dt.Tensor:
    """Return halves as float32, others unchanged."""
    return x.astype(x.dtype.compute, copy=False)


def _to_result_dtype(total: dt.Tensor, *tensors: dt.Tensor) -> dt.Tensor:
    """Return a norm of tensors in the dtype to which these promote, if that is a half."""
    dtype = dt.result_type(*tensors) if tensors else total.dtype
    return total if dtype.compute is dtype else total.astype(dtype)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> dt.Tensor:
    """Scale all gradients in place to a norm of at most `max_norm`, and return their old norm.

    - `parameters`: one tensor, or several; tensors without a gradient are ignored.
    - `max_norm`: the greatest norm allowed.
    - `norm_type`, `error_if_nonfinite`: as of `get_total_norm`.
    - `foreach`: has no effect.

    Shapes: any; the norm ().
    Dtypes: gradients of floats and complex numbers, which keep their dtypes.
    Raises: ArgumentError for a norm below 0; GradientError for an infinite or NaN norm with
    `error_if_nonfinite`; DTypeError for values that are not tensors.
    See also: `clip_grad_value_`, `get_total_norm`.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grad_norm_
    >>> w = dt.zeros(2).requires_grad_()
    >>> (w * dt.asarray([3.0, 4.0])).sum().backward()
    >>> float(clip_grad_norm_([w], 1.0)), [round(v, 3) for v in w.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    op = "clip_grad_norm_"
    tensors, limit = _check_tensors(op, parameters), _as_bound(op, "max_norm", max_norm)
    power = _as_float(op, "norm_type", norm_type)
    grads = _gradients(tensors)
    with dt.no_grad():
        if _can_be_captured(grads) and not error_if_nonfinite:
            total = _CAPTURED_CLIP_BY_NORM(grads, limit, power)
        else:
            total = _clip_by_norm(grads, limit, power, error_if_nonfinite)
    return _to_result_dtype(total, *grads)


def _clip_by_norm(
    grads: list[dt.Tensor], limit: float, power: float, requires_finite: bool = False
) -> dt.Tensor:
    """Scale gradients to a norm of at most `limit`, and return their old norm."""
    total = _compute_norm(grads, power)
    if requires_finite:
        _require_finite("clip_grad_norm_", total, power)
    _scale_grads("clip_grad_norm_", grads, limit, total)
    return total


# A replay takes one launch of all work, where Python's calls would take longer than the kernels.
_CAPTURED_CLIP_BY_NORM = dt.jit(_clip_by_norm, static_argnames="power", fullgraph=True)


def _can_be_captured(grads: list[dt.Tensor]) -> bool:
    """Return True for dense gradients on one device."""
    return len({g.device for g in grads}) == 1 and all(g.layout is dt.strided for g in grads)


def _gradients(tensors: list[dt.Tensor]) -> list[Any]:
    """Return the gradients of tensors that have one."""
    return [g for p in tensors if (g := p.grad) is not None]


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: dt.Tensor, foreach: bool | None = None
) -> None:
    """Scale all gradients in place by max_norm / total_norm, if that is less than 1.

    - `parameters`: one tensor, or several; tensors without a gradient are ignored.
    - `max_norm`: the greatest norm allowed.
    - `total_norm`: the current norm, of `get_total_norm`.
    - `foreach`: has no effect.

    Shapes: any; total_norm ().
    Dtypes: gradients of floats and complex numbers, which keep their dtypes.
    Raises: ArgumentError for a max_norm below 0; DTypeError for values that are not tensors.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grads_with_norm_
    >>> w = dt.zeros(1).requires_grad_()
    >>> w.sum().backward()
    >>> clip_grads_with_norm_([w], 1.0, dt.asarray(4.0))
    >>> round(float(w.grad), 3)
    0.25
    """
    op = "clip_grads_with_norm_"
    tensors, limit = _check_tensors(op, parameters), _as_bound(op, "max_norm", max_norm)
    with dt.no_grad():
        _scale_grads(op, _gradients(tensors), limit, total_norm)


def _scale_grads(op: str, grads: list[dt.Tensor], limit: float, total_norm: dt.Tensor) -> None:
    """Multiply gradients by limit / total_norm, if that is less than 1."""
    factor = dt.minimum(limit / (_to_compute_dtype(total_norm) + 1e-6), 1.0)
    for batch in _grad_batches(grads):
        local_factor = factor.to(batch[0].device).astype(batch[0].dtype.compute)
        scaled = [(_to_compute_dtype(g) * local_factor).astype(g.dtype, copy=False) for g in batch]
        write_together(op, batch, scaled)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Clip all gradients in place to the range from -clip_value to clip_value.

    - `parameters`: one tensor, or several; tensors without a gradient are ignored.
    - `clip_value`: the bound.
    - `foreach`: has no effect.

    Shapes: any.
    Dtypes: gradients of floats, which keep their dtypes.
    Raises: ArgumentError for a value below 0; DTypeError for values that are not tensors.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grad_value_
    >>> w = dt.zeros(2).requires_grad_()
    >>> (w * dt.asarray([3.0, -0.5])).sum().backward()
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    bound = _as_bound("clip_grad_value_", "clip_value", clip_value)
    grads = _gradients(_check_tensors("clip_grad_value_", parameters))
    clip = _CAPTURED_CLIP_BY_VALUE if _can_be_captured(grads) else _clip_by_value
    with dt.no_grad():
        clip(grads, bound)


def _clip_by_value(grads: list[dt.Tensor], bound: float) -> None:
    """Clip gradients to the range from -bound to bound."""
    for batch in _grad_batches(grads):
        write_together("clip_grad_value_", batch, [dt.clip(g, -bound, bound) for g in batch])


_CAPTURED_CLIP_BY_VALUE = dt.jit(_clip_by_value, fullgraph=True)


def _check_tensors(name: str, tensors: Tensors) -> list[dt.Tensor]:
    """Return one or several tensors as a list. Raises: DTypeError for other values."""
    values = [tensors] if isinstance(tensors, dt.Tensor) else [*tensors]
    for x in values:
        if not isinstance(x, dt.Tensor):
            raise dt.DTypeError(f"{name}: expected tensors, got {type(x).__name__}")
    return values


def _as_float(name: str, parameter: str, x: object) -> float:
    """Return `float(x)`. Raises: ArgumentTypeError where `float` raises TypeError or ValueError."""
    try:
        return float(x)  # type: ignore[arg-type]  # errors are handled
    except (TypeError, ValueError):
        raise dt.ArgumentTypeError(f"{name}: {parameter} must be a number, got {x!r}") from None


def _as_bound(name: str, parameter: str, x: object) -> float:
    """Return a number from 0 on as a float. Raises: ArgumentTypeError, ArgumentError."""
    bound = _as_float(name, parameter, x)
    if bound < 0:
        raise dt.ArgumentError(f"{name}: {parameter} must not be negative, got {bound}")
    return bound


def _stored_values(x: Any, coalesced: bool = False) -> Any:
    """Return a tensor, or the stored values of a sparse tensor.

    `coalesced`: add values of duplicate indices first.
    """
    if x.layout is dt.strided:
        return x
    return (x.coalesce() if coalesced and x.layout is dt.sparse_coo else x).values()


def _grad_batches(grads: list[dt.Tensor]) -> Iterator[list[dt.Tensor]]:
    """Yield gradients in batches of one shape, dtype and device; of sparse ones the values."""
    batches: dict[object, list[dt.Tensor]] = {}
    for g in map(_stored_values, grads):
        batch = batches.setdefault((g.shape, g.dtype, g.device), [])
        batch.append(g)
        if len(batch) == LAUNCH_GRADS_MAX:
            yield [*batch]
            batch.clear()
    yield from [batch for batch in batches.values() if batch]
