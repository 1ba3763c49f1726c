"""Gradients made smaller where they are too large: by their norm together, or by value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import write_together

__all__ = ["clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

Tensors: TypeAlias = "dt.Tensor | Iterable[dt.Tensor]"

TOGETHER = 8  # gradients that are written by one launch


def get_total_norm(
    tensors: Tensors,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> dt.Tensor:
    """The norm of all tensors together, as if they were one vector: 0-dimensional.

    `norm_type`: the p of the norm; infinity is the greatest magnitude. `error_if_nonfinite`: an
    infinite or NaN norm is an error, for which the host reads it. `tensors`: one, or several.
    `foreach` has no use.
    Shapes: any; the norm ().
    Dtypes: floats and complex; of several the norm has that to which all norms are promoted.
    Raises: GradientError for such a norm; DTypeError for integers and for what are no tensors;
    ArgumentTypeError for a `norm_type` that is no number.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import get_total_norm
    >>> float(get_total_norm([dt.asarray([3.0, 4.0], device="reference")]))
    5.0
    """
    found = _listed("get_total_norm", tensors)
    total = _total_norm(found, norm_type, error_if_nonfinite)
    return _rounded(total, *found)


def _total_norm(found: list[dt.Tensor], norm_type: float, error_if_nonfinite: bool) -> dt.Tensor:
    """Return the norm in the dtype that it is computed in: that of halves may be no half."""
    power = _number("get_total_norm", "norm_type", norm_type)
    if not found:
        return dt.asarray(0.0)
    first = found[0].device
    once = [_wide(_values(x, True)) for x in found]
    norms = [dt.linalg.vector_norm(x, ord=power).to(first) for x in once]
    total = dt.linalg.vector_norm(dt.stack(norms), ord=power) if len(norms) > 1 else norms[0]
    if error_if_nonfinite and not bool(dt.isfinite(total)):
        raise dt.GradientError(
            f"get_total_norm: the norm of order {power:g} of the gradients is {float(total)}; "
            "look for it with dt.autograd.detect_anomaly(), or let error_if_nonfinite be False"
        )
    return total


def _wide(x: dt.Tensor) -> dt.Tensor:
    return x.astype(x.dtype.compute, copy=False)


def _rounded(total: dt.Tensor, *of: dt.Tensor) -> dt.Tensor:
    """Return a norm of tensors in the dtype to which they promote, if that is a half."""
    d = dt.result_type(*of) if of else total.dtype
    return total if d.compute is d else total.astype(d)


def clip_grad_norm_(
    parameters: Tensors,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
    foreach: bool | None = None,
) -> dt.Tensor:
    """The norm of all gradients together, which are scaled, where it is greater, to `max_norm`.

    `parameters`: one tensor, or several; those without gradient do not count. Gradients are written
    in place. `norm_type`, `error_if_nonfinite`: as of `get_total_norm`. `foreach` has no use.
    Shapes: any; the norm ().
    Dtypes: gradients of floats and complex numbers, which keep theirs.
    Raises: ArgumentError for a norm below 0; GradientError for a norm that is infinite or NaN,
    where that is asked for; DTypeError for what are no tensors.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grad_norm_
    >>> w = dt.zeros(2, device="reference").requires_grad_()
    >>> (w * dt.asarray([3.0, 4.0], device="reference")).sum().backward()
    >>> float(clip_grad_norm_([w], 1.0)), [round(v, 3) for v in w.grad.tolist()]
    (5.0, [0.6, 0.8])
    """
    found = _listed("clip_grad_norm_", parameters)
    with dt.no_grad():
        given = [p.grad for p in found if p.grad is not None]
        total = _total_norm(given, norm_type, error_if_nonfinite)
        clip_grads_with_norm_(found, max_norm, total)
    return _rounded(total, *given)


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: dt.Tensor, foreach: bool | None = None
) -> None:
    """Scales all gradients by max_norm / total_norm where that is less than 1; returns nothing.

    `parameters`: one tensor, or several, whose gradients are written in place. `max_norm`: the norm
    that they are to have at most; `total_norm`: the one that they have, of `get_total_norm`.
    `foreach` has no use.
    Shapes: any; total_norm ().
    Dtypes: gradients of floats and complex numbers, which keep theirs.
    Raises: ArgumentError for a max_norm below 0; DTypeError for what are no tensors.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grads_with_norm_
    >>> w = dt.zeros(1, device="reference").requires_grad_()
    >>> w.sum().backward()
    >>> clip_grads_with_norm_([w], 1.0, dt.asarray(4.0, device="reference"))
    >>> round(float(w.grad), 3)
    0.25
    """
    most = _number("clip_grad_norm_", "max_norm", max_norm)
    if most < 0:
        raise dt.ArgumentError(f"clip_grad_norm_: max_norm is {most}; it is 0 or more")
    with dt.no_grad():
        factor = dt.minimum(most / (_wide(total_norm) + 1e-6), 1.0)
        for some in _grads(_listed("clip_grads_with_norm_", parameters)):
            by = factor.to(some[0].device).astype(some[0].dtype.compute)
            write_together("clip_grad_norm_", some, [
                (_wide(g) * by).astype(g.dtype, copy=False) for g in some
            ])  # fmt: skip


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Puts all gradients between -clip_value and clip_value, in place; returns nothing.

    `parameters`: one tensor, or several, whose gradients are written. `clip_value`: the bound.
    `foreach` has no use.
    Shapes: any.
    Dtypes: gradients of floats, which keep theirs.
    Raises: ArgumentError for a value below 0; DTypeError for what are no tensors.

    >>> import dovetail as dt
    >>> from dovetail.nn.clipping import clip_grad_value_
    >>> w = dt.zeros(2, device="reference").requires_grad_()
    >>> (w * dt.asarray([3.0, -0.5], device="reference")).sum().backward()
    >>> clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    most = _number("clip_grad_value_", "clip_value", clip_value)
    if most < 0:
        raise dt.ArgumentError(f"clip_grad_value_: clip_value is {most}; it is 0 or more")
    with dt.no_grad():
        for some in _grads(_listed("clip_grad_value_", parameters)):
            write_together("clip_grad_value_", some, [dt.clip(g, -most, most) for g in some])


def _listed(name: str, tensors: Tensors) -> list[dt.Tensor]:
    """Raises: DTypeError."""
    found = [tensors] if isinstance(tensors, dt.Tensor) else [*tensors]
    for x in found:
        if not isinstance(x, dt.Tensor):
            raise dt.DTypeError(f"{name}: needs tensors, not a {type(x).__name__}")
    return found


def _number(name: str, parameter: str, x: object) -> float:
    try:
        return float(x)  # type: ignore[arg-type]  # what is no number is refused
    except (TypeError, ValueError):
        raise dt.ArgumentTypeError(f"{name}: {parameter} is {x!r}, which is no number") from None


def _values(x: Any, once: bool = False) -> Any:
    """A tensor's elements; of one of another layout those that it has, each `once` if asked for."""
    if x.layout is dt.strided:
        return x
    return (x.coalesce() if once and x.layout is dt.sparse_coo else x).values()


def _grads(parameters: list[dt.Tensor]) -> Iterator[list[dt.Tensor]]:
    """The gradients, those of one shape together; of sparse ones their values."""
    alike: dict[object, list[dt.Tensor]] = {}
    for p in parameters:
        if p.grad is not None:
            g = _values(p.grad)
            some = alike.setdefault((g.shape, g.dtype, g.device), [])
            some.append(g)
            if len(some) == TOGETHER:
                yield [*some]
                some.clear()
    yield from [some for some in alike.values() if some]
