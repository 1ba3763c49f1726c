"""Metrics of predicted numbers."""

from __future__ import annotations

from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments

from .samples import Array, divide, mean_over_samples, read_samples, require_same_shape

__all__ = ["mean_absolute_error", "mean_squared_error", "r2_score"]

Tensor: TypeAlias = dt.Tensor
OUTPUTS = ("uniform_average", "raw_values")


def _read_numbers(
    op: str, y_true: Array, y_pred: Array, sample_weight: Array | None, multioutput: str
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return targets and predictions as floats, and weights."""
    true, predicted, weight = read_samples(op, y_true, y_pred, sample_weight, "y_pred", (1, 2))
    require_same_shape(op, true, predicted)
    arguments.choice(op, multioutput, "multioutput", OUTPUTS)
    true, predicted = (
        x if x.dtype.kind == "f" else x.astype(dt.float32) for x in (true, predicted)
    )
    return true, predicted, weight


def _combine_outputs(x: Tensor, multioutput: str) -> Tensor:
    """Return the mean over outputs, or each one's score."""
    return x.mean() if multioutput == "uniform_average" else x


def mean_absolute_error(
    y_true: Array,
    y_pred: Array,
    *,
    sample_weight: Array | None = None,
    multioutput: str = "uniform_average",
) -> Tensor:
    """Return the mean of the magnitudes of differences.

    - `y_true`: the targets; or a row for each sample, one number for each output.
    - `y_pred`: the predictions, in the same form.
    - `sample_weight`: the weight of each sample.
    - `multioutput`: "uniform_average" is the mean over outputs, "raw_values" returns each.

    Shapes: (n,) or (n, outputs); the result () or (outputs,).
    Dtypes: numbers; integers are computed in float32.
    Raises: ShapeError, ArgumentError.
    See also: `mean_squared_error`, `dt.nn.functional.l1_loss`.

    >>> import dovetail as dt
    >>> dt.metrics.mean_absolute_error([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).item()
    0.5
    """
    true, predicted, weight = _read_numbers(
        "mean_absolute_error", y_true, y_pred, sample_weight, multioutput
    )
    return _combine_outputs(mean_over_samples(dt.abs(predicted - true), weight), multioutput)


def mean_squared_error(
    y_true: Array,
    y_pred: Array,
    *,
    sample_weight: Array | None = None,
    multioutput: str = "uniform_average",
) -> Tensor:
    """Return the mean of the squares of differences.

    - `y_true`, `y_pred`, `sample_weight`, `multioutput`: those of `mean_absolute_error`.

    Shapes: (n,) or (n, outputs); the result () or (outputs,).
    Dtypes: numbers; integers are computed in float32.
    Raises: ShapeError, ArgumentError.
    See also: `mean_absolute_error`, `r2_score`.

    >>> import dovetail as dt
    >>> dt.metrics.mean_squared_error([3.0, -0.5, 2.0, 7.0], [2.5, 0.0, 2.0, 8.0]).item()
    0.375
    """
    true, predicted, weight = _read_numbers(
        "mean_squared_error", y_true, y_pred, sample_weight, multioutput
    )
    return _combine_outputs(mean_over_samples(dt.square(predicted - true), weight), multioutput)


def r2_score(
    y_true: Array,
    y_pred: Array,
    *,
    sample_weight: Array | None = None,
    multioutput: str = "uniform_average",
) -> Tensor:
    """Return R2, the fraction of the targets' variance that the predictions explain.

    - `y_true`, `y_pred`, `sample_weight`, `multioutput`: those of `mean_absolute_error`.

    For constant targets the result is 1 if all predictions are exact, else 0.
    Shapes: (n,) or (n, outputs); the result () or (outputs,).
    Dtypes: numbers; integers are computed in float32.
    Raises: ShapeError, ArgumentError.
    See also: `mean_squared_error`.

    >>> import dovetail as dt
    >>> dt.metrics.r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 2.0]).item()
    0.5
    """
    true, predicted, weight = _read_numbers("r2_score", y_true, y_pred, sample_weight, multioutput)
    residue = mean_over_samples(dt.square(predicted - true), weight)
    spread = mean_over_samples(dt.square(true - mean_over_samples(true, weight)), weight)
    otherwise = dt.where(residue == 0, 0.0, 1.0)
    return _combine_outputs(1 - divide(residue, spread, otherwise), multioutput)
