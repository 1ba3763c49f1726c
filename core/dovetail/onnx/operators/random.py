"""Random values of dovetail's generators; other libraries draw other values."""

from __future__ import annotations

from typing import Any

import dovetail as dt

from ..library import dtype_of
from ..limits import size_of
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _result_dtype(call: OperatorCall, like: dt.DType) -> dt.DType:
    """Return the dtype of the attribute "dtype", or `like` if the node has none."""
    to = call.get("dtype")
    return like if to is None else dtype_of(to, call.op)


@register_operator("Bernoulli", folds=False)
def _bernoulli(call: OperatorCall, x: Tensor) -> Tensor:
    """Draw 1 with the probabilities of x, else 0, from dovetail's default generator."""
    uniform = dt.random.rand(*x.shape, device=x.device, dtype=x.dtype)
    return (uniform < x).astype(_result_dtype(call, x.dtype))


def _draw_uniform(call: OperatorCall, shape: Any, d: dt.DType, device: dt.Device) -> Tensor:
    """Draw numbers from `low` up to, but not including, `high`."""
    low, high = float(call.get("low", 0.0)), float(call.get("high", 1.0))
    wide = d if d.itemsize >= 4 else dt.float32
    x = dt.random.uniform(tuple(shape), low=low, high=high, dtype=wide, device=device).astype(d)
    if wide is d or not low < high:
        return x
    ends = dt.asarray([low, high], dtype=d, device=device)
    return dt.minimum(x, dt.nextafter(ends[1], ends[0]))  # a half may have rounded to `high`


def _draw_normal(call: OperatorCall, shape: Any, d: dt.DType, device: dt.Device) -> Tensor:
    """Draw normal numbers with the node's mean and scale."""
    wide = d if d.itemsize >= 4 else dt.float32
    standard = dt.random.randn(*shape, device=device, dtype=wide)
    scale, mean = float(call.get("scale", 1.0)), float(call.get("mean", 0.0))
    return (standard * scale + mean).astype(d)


@register_operator("RandomUniform", folds=False)
def _random_uniform(call: OperatorCall) -> Tensor:
    """Draw uniform numbers of the shape of an attribute."""
    return _draw_uniform(call, call.get("shape"), _result_dtype(call, dt.float32), call.device)


@register_operator("RandomUniformLike", folds=False)
def _random_uniform_like(call: OperatorCall, x: Tensor) -> Tensor:
    """Draw uniform numbers of the shape of x."""
    return _draw_uniform(call, x.shape, _result_dtype(call, x.dtype), call.device)


@register_operator("RandomNormal", folds=False)
def _random_normal(call: OperatorCall) -> Tensor:
    """Draw normal numbers of the shape of an attribute."""
    return _draw_normal(call, call.get("shape"), _result_dtype(call, dt.float32), call.device)


@register_operator("RandomNormalLike", folds=False)
def _random_normal_like(call: OperatorCall, x: Tensor) -> Tensor:
    """Draw normal numbers of the shape of x."""
    return _draw_normal(call, x.shape, _result_dtype(call, x.dtype), call.device)


@register_operator("Multinomial", folds=False)
def _multinomial(call: OperatorCall, x: Tensor) -> Tensor:
    """Draw `sample_size` classes for each row of logits."""
    logits = x.astype(dt.float32)
    count = call.get("sample_size", 1)
    shape = (x.shape[0], count, x.shape[1])
    call.reserve(size_of(shape, dt.float32))
    uniform = dt.random.rand(*shape, device=x.device)
    noise = -dt.log(-dt.log(dt.maximum(uniform, 2.0**-25)))  # half a step replaces 0
    return dt.argmax(dt.expand_dims(logits, axis=1) + noise, axis=2).astype(
        _result_dtype(call, dt.int32)
    )
