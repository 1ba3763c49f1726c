"""Metrics of predicted classes: accuracy, confusion matrices, precision, recall and F1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .samples import Array, count, divide, mean_over_samples, read_samples, require_same_shape

__all__ = [
    "accuracy_score",
    "confusion_matrix",
    "f1_score",
    "precision_score",
    "recall_score",
    "top_k_accuracy_score",
]

Tensor: TypeAlias = dt.Tensor
Labels: TypeAlias = "Sequence[int] | range | Tensor | None"
AVERAGES = ("binary", "micro", "macro", "weighted", "samples")
NORMALIZATIONS = ("true", "pred", "all")


def accuracy_score(
    y_true: Array,
    y_pred: Array,
    *,
    normalize: bool = True,
    sample_weight: Array | None = None,
) -> Tensor:
    """Return the fraction of samples that are predicted correctly.

    - `y_true`: the class of each sample; or a row of True and False for each, where a sample is
      correct if its whole row is.
    - `y_pred`: the predictions, in the same form.
    - `normalize`: False returns the number of correct samples, or the sum of their weights.
    - `sample_weight`: the weight of each sample.

    Shapes: (n,) or (n, labels); the result ().
    Dtypes: integers and bool; the result is float32, or int64 for a number of samples.
    Raises: ShapeError.
    See also: `top_k_accuracy_score`.

    >>> import dovetail as dt
    >>> dt.metrics.accuracy_score([0, 1, 2, 3], [0, 2, 1, 3]).item()
    0.5
    """
    true, predicted, weight = read_samples(
        "accuracy_score", y_true, y_pred, sample_weight, "y_pred", (1, 2)
    )
    require_same_shape("accuracy_score", true, predicted)
    correct = true == predicted
    return _score_hits(correct.all(axis=1) if correct.ndim == 2 else correct, normalize, weight)


def top_k_accuracy_score(
    y_true: Array,
    y_score: Array,
    *,
    k: int = 2,
    normalize: bool = True,
    sample_weight: Array | None = None,
) -> Tensor:
    """Return the fraction of samples whose class is among the `k` classes of highest score.

    - `y_true`: the class of each sample, from 0.
    - `y_score`: the score of each class, for each sample. Of equal scores the later class is
      higher, as in scikit-learn.
    - `k`: the number of classes.
    - `normalize`: False returns the number of such samples, or the sum of their weights.
    - `sample_weight`: the weight of each sample.

    Shapes: y_true (n,), y_score (n, classes); the result ().
    Dtypes: integers and floats; the result is float32, or int64 for a number of samples.
    Raises: ShapeError; ArgumentError for a `k` below 1.
    See also: `accuracy_score`.

    >>> import dovetail as dt
    >>> scores = [[0.5, 0.2, 0.3], [0.1, 0.2, 0.7]]
    >>> dt.metrics.top_k_accuracy_score([2, 0], scores, k=2).item()
    0.5
    """
    op = "top_k_accuracy_score"
    true, scores, weight = read_samples(op, y_true, y_score, sample_weight, "y_score", (1,))
    if scores.ndim != 2:
        raise dt.ShapeError(f"{op}: y_score must have shape (samples, classes), got {scores.shape}")
    k = arguments.integer(op, k, "k", 1)
    classes = dt.arange(scores.shape[1], device=scores.device)
    own = dt.take_along_axis(scores, true[:, None], axis=1)
    is_higher = (scores > own) | ((scores == own) & (classes > true[:, None]))
    return _score_hits(dt.count_nonzero(is_higher, axis=1) < k, normalize, weight)


def _score_hits(hits: Tensor, normalize: bool, weight: Tensor | None) -> Tensor:
    """Return the fraction of True, or their number, or the sum of their weights."""
    return mean_over_samples(hits, weight) if normalize else count(hits, weight)


def _resolve_labels(op: str, labels: Labels, true: Tensor, predicted: Tensor) -> Tensor:
    """Return the labels as a vector; without any, the distinct values, which are evaluated.

    Raises: ShapeError.
    """
    if labels is None:
        return dt.unique_values(dt.concat([true, predicted]))
    values = labels if isinstance(labels, dt.Tensor) else dt.asarray([*labels], device=true.device)
    if values.ndim != 1:
        raise dt.ShapeError(f"{op}: labels must be a vector, got shape {values.shape}")
    return values


def confusion_matrix(
    y_true: Array,
    y_pred: Array,
    *,
    labels: Labels = None,
    sample_weight: Array | None = None,
    normalize: str | None = None,
) -> Tensor:
    """Return the matrix whose element i, j counts samples of class i that are predicted as j.

    Add the matrices of batches to get that of all.

    - `y_true`: the class of each sample.
    - `y_pred`: the predicted classes.
    - `labels`: the classes of rows and columns, such as `range(10)`; samples of others are left
      out. None takes the distinct values in both arguments, which are evaluated.
    - `sample_weight`: the weight of each sample.
    - `normalize`: "true" divides by the sums of rows, "pred" by those of columns, "all" by the sum
      of all; None does not divide.

    Shapes: vectors of n; the result (labels, labels).
    Dtypes: integers and bool; the result is int64, or float32 with weights or `normalize`.
    Raises: ShapeError; ArgumentError for another `normalize`; CaptureError within
    `dt.jit(fullgraph=True)` without `labels`.
    See also: `precision_score`, `recall_score`.

    >>> import dovetail as dt
    >>> dt.metrics.confusion_matrix([0, 1, 2, 2], [0, 2, 2, 2], labels=range(3)).tolist()
    [[1, 0, 0], [0, 0, 1], [0, 0, 2]]
    """
    op = "confusion_matrix"
    true, predicted, weight = read_samples(op, y_true, y_pred, sample_weight, "y_pred", (1,))
    require_same_shape(op, true, predicted)
    if normalize is not None:
        arguments.choice(op, normalize, "normalize", NORMALIZATIONS)
    classes = _resolve_labels(op, labels, true, predicted)
    n = classes.shape[0]
    is_row, is_column = (x[:, None] == classes for x in (true, predicted))
    if not n or not true.size:
        return dt.zeros((n, n), dtype=dt.int64, device=true.device)
    cell = dt.argmax(is_row, axis=1) * n + dt.argmax(is_column, axis=1)
    cell = dt.where(is_row.any(axis=1) & is_column.any(axis=1), cell, n * n)  # others: the last one
    dtype = dt.int64 if weight is None else weight.dtype
    cells = dt.zeros(n * n + 1, dtype=dtype, device=true.device)
    matrix = dt.index_add(cells, 0, cell, 1 if weight is None else weight)[:-1].reshape((n, n))
    if normalize is None:
        return matrix
    axis = {"true": 1, "pred": 0, "all": None}[normalize]
    return divide(matrix, matrix.sum(axis=axis, keepdims=True), 0.0)


class Counts(NamedTuple):
    """Correct predictions, all predictions, and all samples, of each label; or weighted sums."""

    correct: Tensor
    predicted: Tensor
    true: Tensor


def _count_classes(
    op: str,
    true: Tensor,
    predicted: Tensor,
    labels: Labels,
    pos_label: int,
    how: str | None,
    weight: Tensor | None,
) -> Counts:
    """Return the counts of each label, or of the one that `how` scores."""
    require_same_shape(op, true, predicted)
    if true.ndim == 2:
        if how == "binary" or labels is not None:
            raise dt.ArgumentError(
                f"{op}: rows of labels need average='micro', 'macro', 'weighted', 'samples' or "
                "None, and no labels"
            )
        if how == "samples":  # a score for each sample, in place of each label
            true, predicted, weight = true.mT, predicted.mT, None
        is_true, is_predicted = true != 0, predicted != 0
    elif how == "samples":
        raise dt.ArgumentError(f"{op}: average='samples' needs y_true of shape (samples, labels)")
    elif how == "micro" and labels is None:  # every sample is of some label
        every = dt.ones(true.shape, dtype=dt.bool, device=true.device)
        return Counts(count(true == predicted, weight), *[count(every, weight)] * 2)
    else:
        if how == "binary":
            classes = dt.asarray([pos_label], device=true.device)
        else:
            classes = _resolve_labels(op, labels, true, predicted)
        is_true, is_predicted = (x[:, None] == classes for x in (true, predicted))
    masks = (is_true & is_predicted, is_predicted, is_true)
    counts = Counts(*[count(mask, weight) for mask in masks])
    return Counts(*[x.sum() for x in counts]) if how == "micro" else counts


def _score(
    op: str,
    y_true: Array,
    y_pred: Array,
    labels: Labels,
    pos_label: int,
    how: str | None,
    sample_weight: Array | None,
    zero_division: float | str,
) -> Tensor:
    """Return precision, recall or F1, by the name of the function, averaged over labels."""
    true, predicted, weight = read_samples(op, y_true, y_pred, sample_weight, "y_pred", (1, 2))
    if how is not None:
        arguments.choice(op, how, "average", AVERAGES)
    otherwise = (
        0.0 if zero_division == "warn" else arguments.real(op, zero_division, "zero_division")
    )
    counts = _count_classes(op, true, predicted, labels, pos_label, how, weight)
    if op == "f1_score":
        scores = divide(2 * counts.correct, counts.true + counts.predicted, otherwise)
    else:
        of = counts.predicted if op == "precision_score" else counts.true
        scores = divide(counts.correct, of, otherwise)
    if how is None or how == "micro":
        return scores
    if how == "binary":
        return dt.reshape(scores, ())
    weights = {"weighted": counts.true, "samples": weight}.get(how)
    if weights is None:
        weights = dt.ones_like(scores)
    if not math.isnan(otherwise):
        if how == "weighted":  # without a sample of any label all scores are equal
            weights = dt.where(weights.sum() == 0, 1, weights)
        return (scores * weights).sum() / weights.sum()
    is_nan = dt.isnan(scores)  # NaNs are left out of the mean
    chosen = dt.where(is_nan, 0.0, scores * weights).sum()
    return chosen / dt.where(is_nan, 0, weights).sum()


def precision_score(
    y_true: Array,
    y_pred: Array,
    *,
    labels: Labels = None,
    pos_label: int = 1,
    average: str | None = "binary",
    sample_weight: Array | None = None,
    zero_division: float | str = "warn",
) -> Tensor:
    """Return the precision: of the samples that are predicted as a class, the correct fraction.

    - `y_true`: the class of each sample; or a row of True and False for each sample, one for each
      label.
    - `y_pred`: the predictions, in the same form.
    - `labels`: the classes that are scored, such as `range(10)`. None takes the distinct values in
      both arguments, which are evaluated; "binary" and "micro" do not need them.
    - `pos_label`: the class that "binary" scores.
    - `average`: "binary" scores one class; "micro" counts all classes together; "macro" is the
      mean over classes, "weighted" by their numbers of samples, "samples" the mean over rows; None
      returns the score of each class.
    - `sample_weight`: the weight of each sample.
    - `zero_division`: the score of a class without predictions; "warn" is 0. NaNs are left out of
      means.

    No value is checked: with "binary" all classes but `pos_label` count as one.
    Shapes: (n,) or (n, labels); the result () or (labels,).
    Dtypes: integers and bool; the result is float32.
    Raises: ShapeError, ArgumentError; CaptureError within
    `dt.jit(fullgraph=True)` if `labels` are missing.
    See also: `recall_score`, `f1_score`, `confusion_matrix`.

    >>> import dovetail as dt
    >>> dt.metrics.precision_score([0, 1, 1, 0], [1, 1, 1, 0]).item()
    0.6666666865348816
    >>> dt.metrics.precision_score([0, 1, 2], [0, 1, 1], labels=range(3), average=None).tolist()
    [1.0, 0.5, 0.0]
    """
    return _score(
        "precision_score", y_true, y_pred, labels, pos_label, average, sample_weight, zero_division
    )


def recall_score(
    y_true: Array,
    y_pred: Array,
    *,
    labels: Labels = None,
    pos_label: int = 1,
    average: str | None = "binary",
    sample_weight: Array | None = None,
    zero_division: float | str = "warn",
) -> Tensor:
    """Return the recall: of the samples of a class, the fraction that is predicted as such.

    - `y_true`, `y_pred`, `labels`, `pos_label`, `average`, `sample_weight`: those of
      `precision_score`.
    - `zero_division`: the score of a class without samples; "warn" is 0. NaNs are left out of
      means.

    Shapes: (n,) or (n, labels); the result () or (labels,).
    Dtypes: integers and bool; the result is float32.
    Raises: ShapeError, ArgumentError; CaptureError within
    `dt.jit(fullgraph=True)` if `labels` are missing.
    See also: `precision_score`, `f1_score`.

    >>> import dovetail as dt
    >>> dt.metrics.recall_score([0, 1, 1, 1], [1, 1, 0, 0]).item()
    0.3333333432674408
    """
    return _score(
        "recall_score", y_true, y_pred, labels, pos_label, average, sample_weight, zero_division
    )


def f1_score(
    y_true: Array,
    y_pred: Array,
    *,
    labels: Labels = None,
    pos_label: int = 1,
    average: str | None = "binary",
    sample_weight: Array | None = None,
    zero_division: float | str = "warn",
) -> Tensor:
    """Return F1, the harmonic mean of precision and recall.

    - `y_true`, `y_pred`, `labels`, `pos_label`, `average`, `sample_weight`: those of
      `precision_score`.
    - `zero_division`: the score of a class without samples and predictions; "warn" is 0. NaNs are
      left out of means.

    Shapes: (n,) or (n, labels); the result () or (labels,).
    Dtypes: integers and bool; the result is float32.
    Raises: ShapeError, ArgumentError; CaptureError within
    `dt.jit(fullgraph=True)` if `labels` are missing.
    See also: `precision_score`, `recall_score`.

    >>> import dovetail as dt
    >>> dt.metrics.f1_score([0, 1, 1, 0], [1, 1, 0, 0]).item()
    0.5
    """
    return _score(
        "f1_score", y_true, y_pred, labels, pos_label, average, sample_weight, zero_division
    )
