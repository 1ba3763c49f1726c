"""Metrics of scores: curves of true and false positives, and the areas under them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .samples import Array, count, divide, mean_over_samples, read_samples, require_same_shape

__all__ = ["average_precision_score", "precision_recall_curve", "roc_auc_score", "roc_curve"]

Tensor: TypeAlias = dt.Tensor


class _BinaryScores(NamedTuple):
    """Scores of samples, True for the positive ones, and their weights."""

    is_positive: Tensor
    scores: Tensor
    weight: Tensor | None


def _read_binary(
    op: str, y_true: Array, y_score: Array, pos_label: int | None, sample_weight: Array | None
) -> _BinaryScores:
    """Return binary samples. Raises: ShapeError unless both are vectors."""
    true, scores, weight = read_samples(op, y_true, y_score, sample_weight, "y_score", (1,))
    require_same_shape(op, true, scores, "y_score")
    positive = 1 if pos_label is None else arguments.integer(op, pos_label, "pos_label")
    return _BinaryScores(true == positive, scores, weight)


def _count_above(samples: _BinaryScores) -> tuple[Tensor, Tensor, Tensor]:
    """Return the numbers of positives and negatives at or above each distinct score, and these.

    Scores descend. Their number depends on values, so they are evaluated.
    """
    is_positive, scores, weight = samples
    order = dt.argsort(scores, descending=True)
    scores, is_positive = scores[order], is_positive[order]
    weights = dt.ones_like(order) if weight is None else weight[order]
    true = dt.cumulative_sum(dt.where(is_positive, weights, 0))
    false = dt.cumulative_sum(dt.where(is_positive, 0, weights))
    is_last = dt.concat([scores[1:] != scores[:-1], dt.ones_like(scores[:1], dtype=dt.bool)])
    return true[is_last], false[is_last], scores[is_last]


def roc_curve(
    y_true: Array,
    y_score: Array,
    *,
    pos_label: int | None = None,
    sample_weight: Array | None = None,
    drop_intermediate: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the rates of false and true positives for falling thresholds, and the thresholds.

    A sample counts as positive if its score is at least the threshold. The first threshold is
    infinite. The length depends on the values, so they are evaluated. `roc_auc_score` is not.

    - `y_true`: the class of each sample.
    - `y_score`: the score of each sample.
    - `pos_label`: the positive class; None is 1.
    - `sample_weight`: the weight of each sample.
    - `drop_intermediate`: leave out thresholds on straight pieces of the curve.

    Shapes: vectors of n; three vectors of one length.
    Dtypes: integers or bool, and floats; rates are float32, thresholds have the dtype of scores.
    Raises: ShapeError; CaptureError within
    `dt.jit(fullgraph=True)`.
    See also: `roc_auc_score`, `precision_recall_curve`.
    Source: Fawcett, "An introduction to ROC analysis", 2006.

    >>> import dovetail as dt
    >>> [x.tolist() for x in dt.metrics.roc_curve([0, 1, 1], [0.5, 0.25, 0.75])]
    [[0.0, 0.0, 1.0, 1.0], [0.0, 0.5, 0.5, 1.0], [inf, 0.75, 0.5, 0.25]]
    """
    samples = _read_binary("roc_curve", y_true, y_score, pos_label, sample_weight)
    true, false, thresholds = _count_above(samples)
    if drop_intermediate and thresholds.size > 2:
        bends = (dt.diff(true, n=2) != 0) | (dt.diff(false, n=2) != 0)
        end = dt.ones_like(bends[:1])
        chosen = dt.concat([end, bends, end])
        true, false, thresholds = true[chosen], false[chosen], thresholds[chosen]
    zero = dt.zeros_like(true[:1])
    infinity = dt.full_like(thresholds[:1], math.inf)
    true, false = dt.concat([zero, true]), dt.concat([zero, false])
    return false / false[-1:], true / true[-1:], dt.concat([infinity, thresholds])


def precision_recall_curve(
    y_true: Array,
    y_score: Array,
    *,
    pos_label: int | None = None,
    sample_weight: Array | None = None,
    drop_intermediate: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return precision and recall for rising thresholds, and the thresholds.

    A sample counts as positive if its score is at least the threshold. The curve ends with
    precision 1 and recall 0, which have no threshold. The length depends on the values, so they are
    evaluated. `average_precision_score` is not.

    - `y_true`: the class of each sample.
    - `y_score`: the score of each sample.
    - `pos_label`: the positive class; None is 1.
    - `sample_weight`: the weight of each sample.
    - `drop_intermediate`: leave out thresholds between others of equal recall.

    Shapes: vectors of n; precision and recall are one longer than the thresholds.
    Dtypes: integers or bool, and floats; rates are float32, thresholds have the dtype of scores.
    Raises: ShapeError; CaptureError within
    `dt.jit(fullgraph=True)`.
    See also: `average_precision_score`, `roc_curve`.

    >>> import dovetail as dt
    >>> [x.tolist() for x in dt.metrics.precision_recall_curve([0, 1, 1], [0.5, 0.25, 0.75])[1:]]
    [[1.0, 0.5, 0.5, 0.0], [0.25, 0.5, 0.75]]
    """
    samples = _read_binary("precision_recall_curve", y_true, y_score, pos_label, sample_weight)
    true, false, thresholds = _count_above(samples)
    if drop_intermediate and thresholds.size > 2:
        changes = dt.diff(true) != 0
        end = dt.ones_like(changes[:1])
        chosen = dt.concat([end, changes[:-1] | changes[1:], end])
        true, false, thresholds = true[chosen], false[chosen], thresholds[chosen]
    precision, recall = divide(true, true + false, 0.0), divide(true, true[-1:], 1.0)
    one = dt.ones_like(precision[:1])
    return (
        dt.concat([dt.flip(precision), one]),
        dt.concat([dt.flip(recall), 0 * one]),
        dt.flip(thresholds),
    )


def roc_auc_score(
    y_true: Array,
    y_score: Array,
    *,
    average: str | None = "macro",
    sample_weight: Array | None = None,
    multi_class: str = "raise",
) -> Tensor:
    """Return the area under the ROC curve: the chance that a positive sample has the higher score.

    - `y_true`: 1 for each positive sample; a row for each sample, one number for each label; or
      with `multi_class`, the class of each sample, from 0.
    - `y_score`: the score of each sample; or a row for each, one for each label or class.
    - `average`: of several labels, "macro" is the mean, "weighted" that by their numbers of
      positives, "micro" takes all as one; None returns the score of each.
    - `sample_weight`: the weight of each sample.
    - `multi_class`: "ovr" scores each class against all others.

    Without positives or negatives the result is NaN. Scikit-learn's "ovo" and `max_fpr` are
    missing.
    Shapes: (n,), or (n, labels); the result () or (labels,).
    Dtypes: integers or bool, and floats; the result is float32, or the dtype of weights.
    Raises: ShapeError, ArgumentError.
    See also: `roc_curve`, `average_precision_score`.
    Source: Hanley, McNeil, "The meaning and use of the area under a ROC curve", 1982.

    >>> import dovetail as dt
    >>> dt.metrics.roc_auc_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).item()
    0.75
    """
    op = "roc_auc_score"
    arguments.choice(op, multi_class, "multi_class", ("raise", "ovr"))
    true, scores, weight = read_samples(op, y_true, y_score, sample_weight, "y_score", (1, 2))
    if true.ndim == 1 and scores.ndim == 2:
        if multi_class == "raise":
            raise dt.ArgumentError(
                f"{op}: y_score has {scores.shape[1]} classes; pass multi_class='ovr', or the "
                "scores of the positive class"
            )
        true = true[:, None] == dt.arange(scores.shape[1], device=scores.device)
    return _score_labels(op, _area, true, scores, weight, average)


def _score_labels(
    op: str,
    score: Callable[[_BinaryScores], Tensor],
    true: Tensor,
    scores: Tensor,
    weight: Tensor | None,
    how: str | None,
) -> Tensor:
    """Return the score of binary samples, or the mean of those of each column."""
    require_same_shape(op, true, scores, "y_score")
    if how is not None:
        arguments.choice(op, how, "average", ("macro", "micro", "weighted"))
    is_positive = true == 1
    if true.ndim == 1:
        return score(_BinaryScores(is_positive, scores, weight))
    if how == "micro":
        every = None if weight is None else dt.repeat(weight, true.shape[1])
        return score(_BinaryScores(is_positive.reshape((-1,)), scores.reshape((-1,)), every))
    columns = dt.stack(
        [
            score(_BinaryScores(is_positive[:, i], scores[:, i], weight))
            for i in range(true.shape[1])
        ]
    )
    if how is None:
        return columns
    return mean_over_samples(columns, count(is_positive, weight) if how == "weighted" else None)


def _area(samples: _BinaryScores) -> Tensor:
    """Return the area under the ROC curve: the mean of the negatives' fraction below a positive.

    Negatives of equal score count half.
    """
    is_positive, scores, weight = samples
    order = dt.argsort(scores)
    weights = dt.ones_like(order) if weight is None else weight
    negatives = dt.where(is_positive, 0, weights)
    below = dt.cumulative_sum(negatives[order], include_initial=True)
    ranks = [dt.searchsorted(scores[order], scores, side=side) for side in ("left", "right")]
    pairs = (dt.where(is_positive, weights, 0) * (below[ranks[0]] + below[ranks[1]])).sum()
    return pairs / 2 / ((weights - negatives).sum() * negatives.sum())


def average_precision_score(
    y_true: Array,
    y_score: Array,
    *,
    average: str | None = "macro",
    pos_label: int = 1,
    sample_weight: Array | None = None,
) -> Tensor:
    """Return the mean precision at the scores of positive samples.

    It is the sum over thresholds of (rise of recall) * precision, without interpolation.

    - `y_true`: the class of each sample; or a row for each, one number for each label.
    - `y_score`: the score of each sample; or a row for each.
    - `average`: of several labels, as of `roc_auc_score`.
    - `pos_label`: the positive class.
    - `sample_weight`: the weight of each sample.

    Without positives the result is 0.
    Shapes: (n,), or (n, labels); the result () or (labels,).
    Dtypes: integers or bool, and floats; the result is float32, or the dtype of weights.
    Raises: ShapeError, ArgumentError.
    See also: `precision_recall_curve`, `roc_auc_score`.

    >>> import dovetail as dt
    >>> dt.metrics.average_precision_score([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]).item()
    0.8333333730697632
    """
    op = "average_precision_score"
    true, scores, weight = read_samples(op, y_true, y_score, sample_weight, "y_score", (1, 2))
    positive = arguments.integer(op, pos_label, "pos_label")
    return _score_labels(op, _mean_precision, true == positive, scores, weight, average)


def _mean_precision(samples: _BinaryScores) -> Tensor:
    """Return the mean over positives of the precision at their scores."""
    is_positive, scores, weight = samples
    order = dt.argsort(scores)
    weights = dt.ones_like(order) if weight is None else weight
    positives = dt.where(is_positive, weights, 0)
    first = dt.searchsorted(scores[order], scores, side="left")
    above = [
        x.sum() - dt.cumulative_sum(x[order], include_initial=True)[first]
        for x in (positives, weights)
    ]
    return divide((positives * divide(above[0], above[1], 0.0)).sum(), positives.sum(), 0.0)
