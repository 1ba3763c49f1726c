"""Losses between the output of a network and a target. Each is a few kernels.

`reduction`: "mean", "sum", or "none" for a loss of each. `size_average` and `reduce` say the same
as PyTorch once did. Losses of float16 and bfloat16 are computed as float32.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import call_along

from .precision import cast_like, require_floats
from .reductions import reduce_loss, require_same_shape, resolve_reduction, warn_if_broadcast

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "gaussian_nll_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "mse_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
]

Tensor: TypeAlias = dt.Tensor
BCE_VARIANCE_MIN = 1e-12  # PyTorch's, of x (1 - x)


def log_of_one_plus_exp(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), without overflow."""
    return dt.logaddexp(x, dt.zeros((), dtype=x.dtype, device=x.device))


def _apply_weight(op: str, loss: Tensor, input: Tensor, weight: Tensor | None) -> Tensor:
    """Return the losses times `weight`, if given. Raises: ShapeError if shapes differ."""
    if weight is None:
        return loss
    require_same_shape(op, input, weight, "weight")
    return loss * weight


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the squared differences.

    - `weight`: a factor of each loss; the mean divides by the sum of the factors.

    Shapes: the same; a target that is broadcast is warned of.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `l1_loss`, `smooth_l1_loss`, `huber_loss`.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.zeros(2)
    >>> dt.nn.functional.mse_loss(x, y).item()
    1.0
    """
    reduction = resolve_reduction("mse_loss", reduction, size_average, reduce)
    require_floats("mse_loss", input)
    warn_if_broadcast("mse_loss", input, target)
    difference = input - target
    loss = _apply_weight("mse_loss", difference * difference, input, weight)
    if weight is not None and reduction == "mean":
        return cast_like(loss.sum() / weight.sum(), input)
    return reduce_loss(loss, reduction, input)


def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """Return the absolute differences.

    - `weight`: a factor of each loss; the mean divides by the sum of the factors.

    Shapes: the same; a target that is broadcast is warned of.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `mse_loss`, `smooth_l1_loss`, `huber_loss`.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.zeros(2)
    >>> dt.nn.functional.l1_loss(x, y, reduction="sum").item()
    2.0
    """
    reduction = resolve_reduction("l1_loss", reduction, size_average, reduce)
    require_floats("l1_loss", input)
    warn_if_broadcast("l1_loss", input, target)
    loss = _apply_weight("l1_loss", dt.abs(input - target), input, weight)
    if weight is not None and reduction == "mean":
        return cast_like(loss.sum() / weight.sum(), input)
    return reduce_loss(loss, reduction, input)


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """Return d**2 / (2 beta) for differences d below `beta`, else |d| - beta / 2.

    - `beta`: the difference at which the loss becomes linear; 0 is `l1_loss`.

    Shapes: the same; a target that is broadcast is warned of.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError; ArgumentError for a negative beta.
    Source: Girshick, "Fast R-CNN", ICCV 2015.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 3.0), dt.zeros(2)
    >>> dt.nn.functional.smooth_l1_loss(x, y).item()
    2.5
    """
    reduction = resolve_reduction("smooth_l1_loss", reduction, size_average, reduce)
    if beta < 0:
        raise dt.ArgumentError(f"smooth_l1_loss: beta must not be negative, got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    require_floats("smooth_l1_loss", input)
    warn_if_broadcast("smooth_l1_loss", input, target)
    difference = input - target
    d = dt.abs(difference)
    loss = dt.where(d < beta, difference * difference * (0.5 / beta), d - 0.5 * beta)
    return reduce_loss(loss, reduction, input)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Return d**2 / 2 for differences d up to `delta`, else delta * (|d| - delta / 2).

    - `delta`: the difference, greater than 0, at which the loss becomes linear.
    - `weight`: a factor of each loss; the mean divides by their number.

    Shapes: the same; a target that is broadcast is warned of.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError; ArgumentError for a delta that is not positive, and for another
    `reduction`.
    Source: Huber, "Robust estimation of a location parameter", 1964.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 3.0), dt.zeros(2)
    >>> dt.nn.functional.huber_loss(x, y).item()
    2.5
    """
    reduction = resolve_reduction("huber_loss", reduction)
    if delta <= 0:
        raise dt.ArgumentError(f"huber_loss: delta must be positive, got {delta}")
    require_floats("huber_loss", input)
    warn_if_broadcast("huber_loss", input, target)
    difference = input - target
    d = dt.abs(difference)
    loss = dt.where(d <= delta, difference * difference * 0.5, (d - 0.5 * delta) * delta)
    return reduce_loss(_apply_weight("huber_loss", loss, input, weight), reduction, input)


def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Return target * (log(target) - input); `input` has logarithms of probabilities.

    - `reduction`: "mean", "sum", "none", or "batchmean": the sum by the size of the first axis,
      which is the divergence's definition.
    - `log_target`: the target has logarithms, too.

    Shapes: both are broadcast.
    Dtypes: floats, the target too; halves are computed as float32, and the loss has the input's.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x = dt.log(dt.asarray([[0.5, 0.5]]))
    >>> dt.nn.functional.kl_div(x, dt.exp(x), reduction="batchmean").item()
    0.0
    """
    reduction = resolve_reduction("kl_div", reduction, size_average, reduce, ("batchmean",))
    require_floats("kl_div", input, target)
    x, t = input, target
    loss = dt.exp(t) * (t - x) if log_target else dt.xlogy(t, t) - t * x
    if reduction == "batchmean":
        return cast_like(loss.sum() / (input.shape[0] if input.ndim else 1), input)
    return reduce_loss(loss, reduction, input)


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return -(t log(x) + (1 - t) log(1 - x)); logarithms are no less than -100.

    - `target`: probabilities of class 1, from 0 to 1, of the input's shape.
    - `weight`: a factor of each loss, which broadcasts with the input.

    A value below 0 or above 1, in the input or in the target, is not a probability: its loss and
    its gradient are NaN, and `dt.debug_nans()` names the line (PyTorch raises an error, for which
    the host has to wait for the values). After a sigmoid, `binary_cross_entropy_with_logits` is
    more exact.
    Gradient: (x - t) / (x (1 - x)), the divisor no less than 1e-12. It is finite for x of 0 and 1,
    and not 0 if the target differs.
    Shapes: input and target are the same.
    Dtypes: floats, the target too; halves are computed as float32, and the loss has the input's.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `binary_cross_entropy_with_logits`, `cross_entropy`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros(2), dt.zeros(2)
    >>> dt.nn.functional.binary_cross_entropy(x, y).item()
    0.0
    """
    reduction = resolve_reduction("binary_cross_entropy", reduction, size_average, reduce)
    require_floats("binary_cross_entropy", input, target)
    require_same_shape("binary_cross_entropy", input, target)
    x, t = input, target
    if x.layout is t.layout is dt.strided:
        loss = _BinaryCrossEntropy.apply(x, t)
    else:
        loss = call_along("binary_cross_entropy", _BinaryCrossEntropy.apply, (x, t), ())
    return reduce_loss(loss if weight is None else loss * weight, reduction, input)


class _BinaryCrossEntropy(dt.autograd.Function):
    """The cross entropy of a target and a probability, with exact finite slopes at 0 and 1."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, t: Tensor) -> Tensor:
        """Return the cross entropy; a target outside of 0..1 gives NaN."""
        # a target outside [0, 1] becomes NaN here, so that dt.debug_nans reports this line
        t = t * dt.sqrt(dt.where(t * (1.0 - t) < 0, -1.0, 1.0))
        ctx.save_for_backward(x, t)
        return -(t * _log(x) + (1.0 - t) * _log_complement(x))

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of the probability and of the target."""
        x, t = ctx.saved_tensors
        product = x * (1.0 - x)
        slope = (x - t) / dt.where(product < 0, dt.nan, dt.maximum(product, BCE_VARIANCE_MIN))
        return g * slope, g * (_log_complement(x) - _log(x))


def _log(x: Tensor) -> Tensor:
    """Return the logarithm, no less than -100, with slope 0 there; NaN below 0."""
    zero = x == 0
    return dt.where(zero, -100.0, dt.maximum(dt.log(dt.where(zero, 1.0, x)), -100.0))


def _log_complement(x: Tensor) -> Tensor:
    """Return log(1 - x), no less than -100, with slope 0 there; exact also for tiny x."""
    one = x == 1
    return dt.where(one, -100.0, dt.maximum(dt.log1p(dt.where(one, 0.0, -x)), -100.0))


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Return `binary_cross_entropy` of sigmoid(input), without overflow.

    - `target`: probabilities of class 1, from 0 to 1, of the input's shape.
    - `weight`: a factor of each loss, which broadcasts with the input.
    - `pos_weight`: a factor of the loss of targets 1, which broadcasts with the input: usually one
      number for each class.

    Shapes: input and target are the same.
    Dtypes: floats, the target too; halves are computed as float32, and the loss has the input's.
    Raises: ShapeError, DTypeError, ArgumentError.
    See also: `binary_cross_entropy`, `cross_entropy`.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 1000.0), dt.ones(2)
    >>> dt.nn.functional.binary_cross_entropy_with_logits(x, y).item()
    0.0
    """
    op = "binary_cross_entropy_with_logits"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input, target)
    require_same_shape(op, input, target)
    x, t = input, target
    low = x < 0  # each side uses its small exponential: a tail must not be a difference of ones
    below = log_of_one_plus_exp(dt.where(low, x, -x))
    of_one = -t
    if pos_weight is not None:
        below, of_one = below * ((pos_weight - 1.0) * t + 1.0), of_one * pos_weight
    loss = dt.where(low, of_one, 1.0 - t) * x + below
    return reduce_loss(loss if weight is None else loss * weight, reduction, input)


def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log probability of `target` under Poisson distributions.

    - `log_input`: True if the input has logarithms of the rates, False for the rates.
    - `full`: add Stirling's approximation of the part that depends on the target alone.
    - `eps`: is added to the rates before their logarithm, if `log_input` is False.

    Shapes: both are broadcast.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.zeros(2), dt.zeros(2)
    >>> dt.nn.functional.poisson_nll_loss(x, y).item()
    1.0
    """
    reduction = resolve_reduction("poisson_nll_loss", reduction, size_average, reduce)
    require_floats("poisson_nll_loss", input)
    x, t = input, target
    loss = dt.exp(x) - t * x if log_input else x - t * dt.log(x + eps)
    if full:
        more = t > 1
        safe = dt.where(more, t, 1.0)
        part = safe * dt.log(safe) - safe + dt.log(safe * (2 * math.pi)) * 0.5
        loss = loss + dt.where(more, part, 0.0)
    return reduce_loss(loss, reduction, input)


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the log density of `target` under normal distributions.

    - `var`: their variances: a tensor or a number. Negative elements of a tensor are not detected.
    - `full`: add the constant log(2 pi) / 2.
    - `eps`: the least variance; lesser ones count as this one, without a change of gradients.

    Shapes: var has input's shape, or that without the last axis, or 1 along one axis.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target and
    variances of real numbers.
    Raises: ShapeError, DTypeError; ArgumentError for a negative number as variance.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.zeros(2)
    >>> dt.nn.functional.gaussian_nll_loss(x, y, 1.0).item()
    0.5
    """
    reduction = resolve_reduction("gaussian_nll_loss", reduction)
    require_floats("gaussian_nll_loss", input)
    v = _variances(input, var)
    v = dt.where(v < eps, v * 0.0 + eps, v) if v.requires_grad is False else _clamp_min(v, eps)
    difference = input - target
    loss = (dt.log(v) + difference * difference / v) * 0.5
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction, input)


def _clamp_min(v: Tensor, eps: float) -> Tensor:
    """Return `v`, but at least `eps`, with the gradient of `v` everywhere."""
    return v + dt.where(v < eps, eps - v, 0.0).detach()


def _variances(input: Tensor, var: Tensor | float) -> Tensor:
    """Return the variances in a shape that broadcasts with the input."""
    if not isinstance(var, dt.Tensor):
        if var < 0:
            raise dt.ArgumentError(f"gaussian_nll_loss: var must not be negative, got {var}")
        return dt.full((), var, dtype=input.dtype, device=input.device)
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return dt.expand_dims(var, -1)
    unequal_sizes = [n for n, m in zip(var.shape, input.shape, strict=False) if n != m]
    if var.ndim == input.ndim and unequal_sizes == [1]:
        return var
    raise dt.ShapeError(
        f"gaussian_nll_loss: var must have the input's shape {input.shape}, or that shape without "
        f"the last axis or with one axis of size 1, got shape {var.shape}"
    )


def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return log(1 + exp(-target * input)), for targets 1 or -1.

    - `target`: 1 or -1 for each element.

    Shapes: both are broadcast.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 1000.0), dt.ones(2)
    >>> dt.nn.functional.soft_margin_loss(x, y).item()
    0.0
    """
    reduction = resolve_reduction("soft_margin_loss", reduction, size_average, reduce)
    require_floats("soft_margin_loss", input)
    return reduce_loss(log_of_one_plus_exp(-(target * input)), reduction, input)
