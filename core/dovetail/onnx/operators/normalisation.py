"""Normalisation, dropout, and losses."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt

from .convolutions import channels
from .shapes import pad
from .table import OperatorCall, register_operator

Tensor = dt.Tensor


def _normalize(x: Tensor, axes: tuple[int, ...], epsilon: float) -> Tensor:
    """Return values with mean 0 and variance 1 over axes."""
    centred = x - dt.mean(x, axis=axes, keepdims=True)
    return centred * dt.rsqrt(dt.mean(centred * centred, axis=axes, keepdims=True) + epsilon)


@register_operator("BatchNormalization", folds=False)
def _batch_normalization(
    call: OperatorCall, x: Tensor, scale: Tensor, bias: Tensor, mean: Tensor, var: Tensor
) -> Any:
    """Normalise channels by `mean`, `var`; in training by the batch's, and return updated ones."""
    if not call.get("spatial", 1):
        raise dt.ArgumentError("BatchNormalization: spatial must be 1, got 0")
    epsilon = call.get("epsilon", 1e-5)
    wide = [channels(v, x.ndim) for v in (scale, bias)]
    if not call.get("training_mode", 0):
        m, v = channels(mean, x.ndim), channels(var, x.ndim)
        result = ((x - m) * (wide[0] * dt.rsqrt(v + epsilon)) + wide[1]).astype(x.dtype)
        return result
    axes = (0, *range(2, x.ndim))
    m = dt.mean(x, axis=axes)
    v = dt.mean(dt.square(x - channels(m, x.ndim)), axis=axes)
    result = (x - channels(m, x.ndim)) * dt.rsqrt(channels(v, x.ndim) + epsilon) * wide[0] + wide[1]
    k = call.get("momentum", 0.9)
    return result.astype(x.dtype), mean * k + m * (1 - k), var * k + v * (1 - k)


@register_operator("InstanceNormalization", folds=False)
def _instance_normalization(call: OperatorCall, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Normalise each channel of each example, then scale and shift."""
    result = _normalize(x, tuple(range(2, x.ndim)), call.get("epsilon", 1e-5))
    return result * channels(scale, x.ndim) + channels(bias, x.ndim)


@register_operator("LayerNormalization", folds=False)
def _layer_normalization(
    call: OperatorCall, x: Tensor, scale: Tensor, bias: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Normalise over the axes from `axis` on; return result, mean and inverse deviation."""
    axis = call.axis(call.get("axis", -1), x.ndim)
    axes, d = tuple(range(axis, x.ndim)), x.dtype
    wide = x.astype(dt.float32) if call.get("stash_type", 1) == 1 and d.itemsize < 4 else x
    mean = dt.mean(wide, axis=axes, keepdims=True)
    centred = wide - mean
    var = dt.mean(centred * centred, axis=axes, keepdims=True)
    inverse = dt.rsqrt(var + call.get("epsilon", 1e-5))
    result = (centred * inverse).astype(d) * scale
    return (result if bias is None else result + bias), mean, inverse


@register_operator("RMSNormalization", folds=False)
def _rms_normalization(call: OperatorCall, x: Tensor, scale: Tensor) -> Tensor:
    """Divide by the root mean square over the axes from `axis` on, and scale."""
    axis = call.axis(call.get("axis", -1), x.ndim)
    axes, d = tuple(range(axis, x.ndim)), x.dtype
    wide = x.astype(dt.float32) if call.get("stash_type", 1) == 1 and d.itemsize < 4 else x
    size = dt.mean(wide * wide, axis=axes, keepdims=True)
    return (wide * dt.rsqrt(size + call.get("epsilon", 1e-5))).astype(d) * scale


@register_operator("GroupNormalization", folds=False)
def _group_normalization(call: OperatorCall, x: Tensor, scale: Tensor, bias: Tensor) -> Tensor:
    """Normalise groups of channels; scale by channel, or by group in older opsets."""
    groups, (n, c) = call.get("num_groups"), x.shape[:2]
    grouped = x.reshape((n, groups, c // groups, *x.shape[2:]))
    result = _normalize(grouped, tuple(range(2, grouped.ndim)), call.get("epsilon", 1e-5))
    if scale.shape[0] == c:
        return result.reshape(x.shape) * channels(scale, x.ndim) + channels(bias, x.ndim)
    return (result * channels(scale, grouped.ndim) + channels(bias, grouped.ndim)).reshape(x.shape)


@register_operator("LpNormalization", folds=False)
def _lp_normalization(call: OperatorCall, x: Tensor) -> Tensor:
    """Divide by the 1-norm or 2-norm along an axis; rows of norm 0 become 0."""
    axis, p = call.axis(call.get("axis", -1), x.ndim), call.get("p", 2)
    size = dt.abs(x) if p == 1 else x * x
    total = dt.sum(size, axis=axis, keepdims=True)
    total = total if p == 1 else dt.sqrt(total)
    return dt.where(total == 0, 0.0, x / total)


@register_operator("LRN", folds=False)
def _lrn(call: OperatorCall, x: Tensor) -> Tensor:
    """Divide by a power of the mean square of neighbouring channels."""
    size = call.get("size")
    before = min((size - 1) // 2, x.shape[1])  # all channels beyond are zeros
    after = min(size - 1 - (size - 1) // 2, x.shape[1])
    squares = pad(x * x, [(before, after) if d == 1 else (0, 0) for d in range(x.ndim)])
    total: Any = None
    for k in range(before + after + 1):
        part = squares[:, k : k + x.shape[1]]
        total = part if total is None else total + part
    factor = total * (call.get("alpha", 1e-4) / size) + call.get("bias", 1.0)
    return x / dt.pow(factor, call.get("beta", 0.75))


@register_operator("MeanVarianceNormalization", folds=False)
def _mean_variance_normalization(call: OperatorCall, x: Tensor) -> Tensor:
    """Subtract the mean, and divide by the deviation plus 1e-9, over axes."""
    axes = tuple(call.axis(a, x.ndim) for a in call.get("axes", [0, 2, 3]))
    mean = dt.mean(x, axis=axes, keepdims=True)
    var = dt.mean(x * x, axis=axes, keepdims=True) - mean * mean
    return (x - mean) / (dt.sqrt(var) + 1e-9)


@register_operator("Dropout", host=(1, 2), folds=False)
def _dropout(
    call: OperatorCall, x: Tensor, ratio: Any = None, training: Any = None
) -> tuple[Tensor, Tensor]:
    """Return a copy of x and a mask; in training, x is 0 where the mask is False, else scaled."""
    p = 0.5 if ratio is None else float(call.array(ratio).reshape(-1)[0])
    trains = training is not None and bool(call.array(training).reshape(-1)[0])
    if trains and not 0 <= p < 1:
        raise dt.ArgumentError(f"Dropout: ratio must be at least 0 and less than 1, got {p}")
    if not trains or p == 0:
        return x.copy(), dt.full(x.shape, True, dtype=dt.bool, device=x.device)
    mask = dt.random.rand(*x.shape, device=x.device) >= p
    return dt.where(mask, x / (1 - p), 0.0), mask


# --- losses ---------------------------------------------------------------------------------------


def _reduce_losses(
    call: OperatorCall, scores: Tensor, labels: Tensor, weight: Tensor | None
) -> Tensor:
    """Return the reduced negative scores of the labels; scores (N, C, ...), labels (N, ...)."""
    ignore_index = call.get("ignore_index")
    is_counted = dt.full(labels.shape, True, dtype=dt.bool, device=labels.device)
    if ignore_index is not None:
        is_counted = labels != ignore_index
        labels = dt.where(is_counted, labels, 0)
    indices = dt.expand_dims(labels.astype(dt.int64), axis=1)
    losses = -dt.take_along_axis(scores, indices, axis=1)
    losses = dt.squeeze(losses, axis=1)
    if weight is None:
        factor = is_counted.astype(scores.dtype)
    else:
        factor = dt.where(is_counted, weight[labels.astype(dt.int64)], 0.0)
    losses = dt.where(is_counted, losses * factor, 0.0)
    how = call.get("reduction", "mean")
    if how == "none":
        return losses
    total = dt.sum(losses)
    if how == "sum":
        return total
    if weight is None and ignore_index is None:
        return total / math.prod(labels.shape)
    return total / dt.sum(factor)


@register_operator("NegativeLogLikelihoodLoss", folds=False)
def _nll(
    call: OperatorCall, scores: Tensor, labels: Tensor, weight: Tensor | None = None
) -> Tensor:
    """Return the reduced negative log likelihood of the labels."""
    return _reduce_losses(call, scores, labels, weight)


@register_operator("SoftmaxCrossEntropyLoss", folds=False)
def _sce(
    call: OperatorCall, scores: Tensor, labels: Tensor, weight: Tensor | None = None
) -> tuple[Tensor, ...]:
    """Return the reduced cross entropy of the labels, and the log probabilities."""
    logs = dt.log_softmax(scores, 1)
    return _reduce_losses(call, logs, labels, weight), logs
