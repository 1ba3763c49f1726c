"""Losses of classes: cross entropy, and margins between the scores of classes."""

from __future__ import annotations

import math
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments, in_range

from .losses import log_of_one_plus_exp
from .precision import cast_like, require_floats
from .reductions import reduce_loss, require_same_shape, resolve_reduction

__all__ = [
    "cross_entropy",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
]

Tensor: TypeAlias = dt.Tensor


class _ClassTargets:
    """Scores of classes along an axis, and the class of each."""

    def __init__(
        self, op: str, x: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int | None
    ) -> None:
        self.axis = axis = _class_axis(op, x)
        self.count = x.shape[axis]
        want = (*x.shape[:axis], *x.shape[axis + 1 :])
        if target.shape != want:
            raise dt.ShapeError(
                f"{op}: the target must have shape {want} for an input of shape {x.shape} with "
                f"{self.count} classes along axis {axis}, got shape {target.shape}"
            )
        if target.dtype.kind not in "iu":
            raise dt.DTypeError(
                f"{op}: the target must have an integer dtype, got "
                f"{target.dtype.name}{list(target.shape)}; use target.astype(dt.int64)"
            )
        if weight is not None and weight.shape != (self.count,):
            raise dt.ShapeError(
                f"{op}: weight must have shape ({self.count},), one element for each class, got "
                f"shape {weight.shape}"
            )
        if ignore_index is not None:
            ignore_index = arguments.integer(op, ignore_index, "ignore_index")
        counts = None if ignore_index is None else target != ignore_index
        rule = f"a class index must be from 0 to {self.count - 1} for {self.count} classes"
        at = in_range(op, target, self.count, ignored=ignore_index, rule=rule)
        self.weight = _target_weights(
            x, at, weight, counts
        )  # of each target; 0 for the ignored class
        numbers = dt.arange(self.count, dtype=dt.int32, device=x.device)
        numbers = numbers.reshape((self.count, *(1,) * (x.ndim - axis - 1)))
        self.is_target = numbers == dt.expand_dims(target.astype(dt.int32), axis)

    def select_target(self, x: Tensor) -> Tensor:
        """Return the entries of `x` at the class of each example."""
        return dt.where(self.is_target, x, 0.0).sum(axis=self.axis)


def _target_weights(x: Tensor, at: Tensor, weight: Tensor | None, counts: Tensor | None) -> Tensor:
    """Return the weight of each target's class, 1 by default and 0 for ignored targets."""
    if weight is not None:
        weights = dt.take(weight, at, axis=0)
        return weights if counts is None else dt.where(counts, weights, 0.0)
    ones = at >= 0  # True for all, because in_range has checked them
    return (ones if counts is None else ones & counts).astype(x.dtype)


def _class_axis(op: str, x: Tensor) -> int:
    """Return the axis of classes: 0 for a vector, else 1. Raises: ShapeError without classes."""
    if x.ndim == 0 or x.shape[0 if x.ndim == 1 else 1] == 0:
        raise dt.ShapeError(
            f"{op}: the input must have shape (classes,) or (batch, classes, ...) with at least "
            f"one class, got shape {x.shape}"
        )
    return 0 if x.ndim == 1 else 1


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return minus the entry at the class of each; `input` has logarithms of probabilities.

    - `target`: the classes, integers from 0, without the axis of classes.
    - `weight`: a factor of each class, of shape (classes,); the mean divides by the sum of the
      factors of the targets.
    - `ignore_index`: a class whose examples add nothing to the loss and the mean.

    Shapes: input (classes,), (batch, classes) or (batch, classes, ...); target the same without
    the classes.
    Dtypes: floats; target of integers.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError for a class that is none.
    See also: `cross_entropy`, `log_softmax`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[-1.0, -2.0]])
    >>> dt.nn.functional.nll_loss(x, dt.asarray([1])).item()
    2.0
    """
    reduction = resolve_reduction("nll_loss", reduction, size_average, reduce)
    require_floats("nll_loss", input)
    classes = _ClassTargets("nll_loss", input, target, weight, ignore_index)
    return _reduce_weighted(-classes.select_target(input), classes.weight, reduction, input)


def _reduce_weighted(loss: Tensor, weight: Tensor, reduction: str, like: Tensor) -> Tensor:
    """Return losses times weights, reduced; those of weight 0 are ignored even if infinite.

    The mean is the weighted one: the sum of losses, divided by the sum of weights.
    """
    loss = dt.where(weight == 0, 0.0, loss * weight)
    if reduction == "mean":
        return cast_like(loss.sum() / weight.sum(), like)
    return reduce_loss(loss, reduction, like)


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Return the cross entropy of softmax(input) and the target: classes or probabilities.

    - `target`: the classes, integers from 0, without the axis of classes; or probabilities, floats
      of the input's shape.
    - `weight`: a factor of each class, of shape (classes,); the mean over classes divides by the
      sum of the factors of the targets.
    - `ignore_index`: a class whose examples add nothing to the loss and the mean.
    - `label_smoothing`: the part of each target that is spread evenly over all classes.

    Shapes: input (classes,), (batch, classes) or (batch, classes, ...); target the same without
    the classes, or, of probabilities, with them.
    Dtypes: floats; target of integers, or floats for probabilities.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError for a class that is none.
    See also: `nll_loss`, `binary_cross_entropy_with_logits`, `log_softmax`,
    `dt.nn.CrossEntropyLoss`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.asarray([1])
    >>> round(dt.nn.functional.cross_entropy(x, y).item(), 4)
    0.6931
    """
    op = "cross_entropy"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input)
    if not 0.0 <= label_smoothing <= 1.0:
        raise dt.ArgumentError(
            f"{op}: label_smoothing must be between 0 and 1, got {label_smoothing}"
        )
    x, w, smooth = input, weight, float(label_smoothing)
    axis = _class_axis(op, x)
    if target.dtype.kind == "f":
        if target.ndim < input.ndim:
            raise dt.ShapeError(
                f"{op}: a float target holds class probabilities and must have the input's shape "
                f"{input.shape}, got shape {target.shape}; for class indices use "
                "target.astype(dt.int64)"
            )
        if ignore_index != -100:
            raise dt.ArgumentError(
                f"{op}: ignore_index is only allowed with an integer target of class indices, got "
                f"ignore_index={ignore_index} with a float target of probabilities"
            )
        return _cross_entropy_of_probabilities(input, target, w, axis, reduction, smooth)
    classes = _ClassTargets(op, x, target, w, ignore_index)
    total = dt.logsumexp(x, axis=axis)
    loss = total - classes.select_target(x)
    if smooth == 0.0:
        return _reduce_weighted(loss, classes.weight, reduction, input)
    count = classes.count
    if w is None:
        every = total * count - x.sum(axis=axis)
    else:
        shaped = w.reshape((count, *(1,) * (x.ndim - axis - 1)))
        every = total * w.sum() - (x * shaped).sum(axis=axis)
    weights = classes.weight
    counts = weights != 0 if w is None else target != ignore_index
    smoothed = dt.where(weights == 0, 0.0, loss * weights) * (1.0 - smooth)
    smoothed = smoothed + dt.where(counts, every, 0.0) * (smooth / count)
    if reduction == "mean":
        return cast_like(smoothed.sum() / weights.sum(), input)
    return reduce_loss(smoothed, reduction, input)


def _cross_entropy_of_probabilities(
    input: Tensor, target: Tensor, weight: Tensor | None, axis: int, reduction: str, smooth: float
) -> Tensor:
    """Return the cross entropy with a target that has a probability for each class."""
    require_same_shape("cross_entropy", input, target)
    x, count = input, input.shape[axis]
    if smooth:
        target = target * (1.0 - smooth) + smooth / count
    if weight is not None:
        if weight.shape != (count,):
            raise dt.ShapeError(
                f"cross_entropy: weight must have shape ({count},), one element for each class, "
                f"got shape {weight.shape}"
            )
        target = target * weight.reshape((count, *(1,) * (x.ndim - axis - 1)))
    loss = -(dt.log_softmax(x, axis=axis) * target).sum(axis=axis)
    if reduction == "mean":
        return cast_like(loss.sum() / max(1, x.size // count), input)
    return reduce_loss(loss, reduction, input)


def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over other classes of max(0, margin - x[class] + x[other])**p.

    - `target`: the class of each example.
    - `p`: the exponent of each difference, 1 or 2.
    - `margin`: the margin by which the class's score should exceed the others.
    - `weight`: a factor of each class, of shape (classes,).

    Shapes: input (classes,) or (batch, classes); target () or (batch,).
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of
    integers.
    Raises: ShapeError, DTypeError, ArgumentError; OutOfRangeError for a class that is none.

    >>> import dovetail as dt
    >>> x, y = dt.asarray([[0.0, 3.0]]), dt.asarray([0])
    >>> dt.nn.functional.multi_margin_loss(x, y).item()
    2.0
    """
    op = "multi_margin_loss"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input)
    if arguments.integer(op, p, "p") not in (1, 2):
        raise dt.ArgumentError(f"{op}: p must be 1 or 2, got {p}")
    if input.ndim > 2:
        raise dt.ShapeError(
            f"{op}: the input must have shape (classes,) or (batch, classes), got shape "
            f"{input.shape}"
        )
    x = input
    classes = _ClassTargets(op, x, target, weight, None)
    hinge = dt.maximum(margin - dt.expand_dims(classes.select_target(x), -1) + x, 0.0)
    hinge = hinge if p == 1 else hinge * hinge
    loss = dt.where(classes.is_target, 0.0, hinge).sum(axis=-1) * classes.weight / classes.count
    return reduce_loss(loss, reduction, input)


def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the sum of max(0, 1 - x[class] + x[other]), divided by the number of classes.

    - `target`: the classes of each example, before the first -1; all others are other classes.

    Shapes: (classes,) or (batch, classes) both.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of
    integers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.asarray([[0, -1]])
    >>> dt.nn.functional.multilabel_margin_loss(x, y).item()
    0.5
    """
    op = "multilabel_margin_loss"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input)
    require_same_shape(op, input, target)
    if input.ndim not in (1, 2) or input.shape[-1] == 0:
        raise dt.ShapeError(
            f"{op}: the input must have shape (classes,) or (batch, classes) with at least one "
            f"class, got shape {input.shape}"
        )
    x, n = input, input.shape[-1]
    valid = dt.cumulative_sum((target < 0).astype(dt.int32), axis=-1) == 0
    classes = dt.where(valid, target, 0)
    score = dt.take_along_axis(x, classes, axis=-1)
    numbers = dt.arange(n, device=x.device)
    is_target = (dt.expand_dims(classes, -1) == numbers) & dt.expand_dims(valid, -1)
    is_target = is_target.astype(dt.int32)
    is_other = dt.expand_dims(is_target.sum(axis=-2) == 0, -2) & dt.expand_dims(valid, -1)
    hinge = dt.maximum(1.0 - dt.expand_dims(score, -1) + dt.expand_dims(x, -2), 0.0)
    loss = dt.where(is_other, hinge, 0.0).sum(axis=(-2, -1)) / n
    return reduce_loss(loss, reduction, input)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return the mean over classes of `binary_cross_entropy_with_logits`.

    - `weight`: a factor of each class, of shape (classes,).

    Shapes: (..., classes) both.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.full((1, 2), 1000.0), dt.ones((1, 2))
    >>> dt.nn.functional.multilabel_soft_margin_loss(x, y).item()
    0.0
    """
    op = "multilabel_soft_margin_loss"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input)
    require_same_shape(op, input, target)
    x, t = input, target
    loss = (1.0 - t) * x + log_of_one_plus_exp(-x)
    loss = loss if weight is None else loss * weight
    return reduce_loss(loss.sum(axis=-1) / math.prod(x.shape[-1:]), reduction, input)
