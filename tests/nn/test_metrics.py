"""`dt.metrics` against definitions, and against scikit-learn."""

from __future__ import annotations

import warnings
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import metrics

AVERAGES = ("micro", "macro", "weighted", None)


def same(mine: dt.Tensor, wanted: object, tolerance: float = 2e-6) -> None:
    np.testing.assert_allclose(mine.numpy(), np.asarray(wanted), tolerance, tolerance)


def draw(classes: int, n: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    true, predicted = generator.integers(0, classes, (2, n))
    return true, np.where(generator.random(n) < 0.5, true, predicted), generator.random(n)


@pytest.fixture
def sklearn() -> Any:
    warnings.filterwarnings("ignore", module="sklearn")
    return pytest.importorskip("sklearn.metrics")


def on(device: dt.Device, x: Any) -> dt.Tensor:
    return dt.asarray(x, device=device)


def test_scores_have_the_values_of_their_definitions(device: dt.Device) -> None:
    true, predicted = on(device, [0, 1, 1, 1, 2, 2]), on(device, [0, 1, 1, 2, 2, 0])
    assert metrics.accuracy_score(true, predicted).item() == pytest.approx(4 / 6)
    assert metrics.accuracy_score(true, predicted, normalize=False).item() == 4
    matrix = metrics.confusion_matrix(true, predicted, labels=range(3))
    assert matrix.tolist() == [[1, 0, 0], [0, 2, 1], [1, 0, 1]] and matrix.dtype is dt.int64
    assert metrics.confusion_matrix(true, predicted, labels=[2, 0]).tolist() == [[1, 1], [0, 1]]
    same(metrics.precision_score(true, predicted, average=None), [1 / 2, 1, 1 / 2])
    same(metrics.recall_score(true, predicted, average=None), [1, 2 / 3, 1 / 2])
    same(metrics.f1_score(true, predicted, average=None), [2 / 3, 4 / 5, 1 / 2])
    same(metrics.precision_score(true, predicted, pos_label=2), 1 / 2)
    same(metrics.f1_score(true, predicted, average="macro"), (2 / 3 + 4 / 5 + 1 / 2) / 3)
    same(metrics.recall_score(true, predicted, average="weighted"), (1 + 2 + 1) / 6)


def test_ranking_has_the_values_of_its_definitions(device: dt.Device) -> None:
    true, scores = on(device, [0, 1, 0, 1, 1]), on(device, [0.25, 0.25, 0.5, 0.75, 1.0])
    # six pairs: one tie, one with the negative above
    same(metrics.roc_auc_score(true, scores), (4 + 0.5) / 6)
    same(metrics.average_precision_score(true, scores), (1 + 1 + 3 / 5) / 3)
    false_rate, true_rate, thresholds = metrics.roc_curve(true, scores, drop_intermediate=False)
    assert thresholds.tolist() == [float("inf"), 1.0, 0.75, 0.5, 0.25]
    same(false_rate, [0, 0, 0, 1 / 2, 1])
    same(true_rate, [0, 1 / 3, 2 / 3, 2 / 3, 1])
    straight = metrics.roc_curve(on(device, [0, 0, 1, 1]), on(device, [0.0, 0.25, 0.5, 0.75]))
    assert [x.tolist() for x in straight] == [
        [0, 0, 0, 1], [0, 0.5, 1, 1], [float("inf"), 0.75, 0.5, 0]
    ]  # fmt: skip
    precision, recall, thresholds = metrics.precision_recall_curve(true, scores)
    same(precision, [3 / 5, 2 / 3, 1, 1, 1])
    same(recall, [1, 2 / 3, 2 / 3, 1 / 3, 0])
    assert thresholds.tolist() == [0.25, 0.5, 0.75, 1.0]


def test_top_k_counts_the_later_of_equal_scores_as_higher() -> None:
    scores = [[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.1, 0.2, 0.7]]
    assert metrics.top_k_accuracy_score([0, 1, 0], scores, k=1, normalize=False).item() == 1
    assert metrics.top_k_accuracy_score([0, 1, 0], scores, k=2, normalize=False).item() == 2
    assert metrics.top_k_accuracy_score([0, 1, 0], scores, k=3).item() == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 5])
def test_class_metrics_equal_sklearn(sklearn: Any, classes: int, weighted: bool) -> None:
    true, predicted, w = draw(classes)
    weight = w if weighted else None
    options: dict[str, Any] = {"sample_weight": weight}
    for name in ("accuracy_score", "confusion_matrix"):
        same(getattr(metrics, name)(true, predicted, **options),
             getattr(sklearn, name)(true, predicted, **options))  # fmt: skip
    for how in metrics.classification.NORMALIZATIONS:
        same(metrics.confusion_matrix(true, predicted, labels=[3, 1, 9], normalize=how, **options),
             sklearn.confusion_matrix(true, predicted, labels=[3, 1, 9], normalize=how, **options)
             )  # fmt: skip
    for name in ("precision_score", "recall_score", "f1_score"):
        mine, wanted = getattr(metrics, name), getattr(sklearn, name)
        for how in AVERAGES:
            for labels in (None, [1, 0], [7, 1]):
                for zero in ("warn", 1.0, float("nan")):
                    given = {"average": how, "labels": labels, "zero_division": zero, **options}
                    same(mine(true, predicted, **given), wanted(true, predicted, **given))
        if classes == 2:
            same(mine(true, predicted, **options), wanted(true, predicted, **options))


@pytest.mark.parametrize("how", [*AVERAGES, "samples"])
def test_metrics_of_rows_of_labels_equal_sklearn(sklearn: Any, how: str | None) -> None:
    true, predicted = np.random.default_rng(1).random((2, 40, 3)) < 0.4
    same(metrics.accuracy_score(true, predicted), sklearn.accuracy_score(true, predicted))
    for name in ("precision_score", "recall_score", "f1_score"):
        for options in ({}, {"sample_weight": np.arange(40.0)}, {"zero_division": float("nan")}):
            mine = getattr(metrics, name)(true, predicted, average=how, **options)
            same(mine, getattr(sklearn, name)(true, predicted, average=how, **options))


@pytest.mark.parametrize("weighted", [False, True])
def test_ranking_equals_sklearn_with_and_without_ties(sklearn: Any, weighted: bool) -> None:
    true, _, w = draw(2)
    generator = np.random.default_rng(3)
    options: dict[str, Any] = {"sample_weight": w if weighted else None}
    for scores in (generator.random(200), generator.integers(0, 9, 200) / 8):
        for name in ("roc_auc_score", "average_precision_score"):
            same(getattr(metrics, name)(true, scores, **options),
                 getattr(sklearn, name)(true, scores, **options))  # fmt: skip
        for name in ("roc_curve", "precision_recall_curve"):
            for drop in (False, True):
                mine = getattr(metrics, name)(true, scores, drop_intermediate=drop, **options)
                wanted = getattr(sklearn, name)(true, scores, drop_intermediate=drop, **options)
                for a, b in zip(mine, wanted, strict=True):
                    same(a, b)


def test_ranking_of_several_labels_and_classes_equals_sklearn(sklearn: Any) -> None:
    generator = np.random.default_rng(4)
    labels, scores = generator.random((50, 3)) < 0.4, generator.random((50, 3))
    for how in AVERAGES:
        for name in ("roc_auc_score", "average_precision_score"):
            for weight in (None, generator.random(50)):
                options: dict[str, Any] = {"average": how, "sample_weight": weight}
                same(getattr(metrics, name)(labels, scores, **options),
                     getattr(sklearn, name)(labels, scores, **options))  # fmt: skip
    true = generator.integers(0, 3, 50)
    p = scores / scores.sum(1, keepdims=True)
    for how in ("macro", "weighted", None):
        same(metrics.roc_auc_score(true, p, average=how, multi_class="ovr"),
             sklearn.roc_auc_score(true, p, average=how, multi_class="ovr"))  # fmt: skip
    for k in (1, 2, 3):
        same(metrics.top_k_accuracy_score(true, np.round(p, 1), k=k),
             sklearn.top_k_accuracy_score(true, np.round(p, 1), k=k))  # fmt: skip


def test_regression_equals_sklearn(sklearn: Any) -> None:
    generator = np.random.default_rng(5)
    for shape in ((30,), (30, 3)):
        true, predicted = generator.normal(size=(2, *shape))
        for weight in (None, generator.random(30)):
            for name in ("mean_absolute_error", "mean_squared_error", "r2_score"):
                for how in ("uniform_average", "raw_values")[: len(shape)]:
                    options: dict[str, Any] = {"sample_weight": weight, "multioutput": how}
                    same(getattr(metrics, name)(true, predicted, **options),
                         getattr(sklearn, name)(true, predicted, **options), 1e-12)  # fmt: skip
    assert metrics.r2_score([2.0, 2.0], [2.0, 2.0]).item() == 1
    assert metrics.r2_score([2.0, 2.0], [2.0, 3.0]).item() == 0


def test_metrics_with_labels_are_deferred_and_captured() -> None:
    true, scores = dt.asarray([0, 1, 2, 1]), dt.random.rand(4, 3)

    def score(true: dt.Tensor, scores: dt.Tensor) -> list[dt.Tensor]:
        predicted = dt.argmax(scores, axis=1)
        return [
            metrics.accuracy_score(true, predicted),
            metrics.top_k_accuracy_score(true, scores),
            metrics.confusion_matrix(true, predicted, labels=range(3)),
            metrics.f1_score(true, predicted, labels=range(3), average="macro"),
            metrics.recall_score(true, predicted, average="micro"),
            metrics.precision_score(true, predicted),
            metrics.roc_auc_score(true, scores, multi_class="ovr"),
            metrics.average_precision_score(true, scores[:, 1]),
            metrics.r2_score(true, scores[:, 1]),
        ]

    captured = dt.jit(score)
    for _ in range(3):
        assert str(captured(true, scores)) == str(score(true, scores))
    with pytest.raises(dt.CaptureError):
        dt.jit(lambda a, b: metrics.f1_score(a, b, average="macro"), fullgraph=True)(true, true)
    with pytest.raises(dt.CaptureError):
        dt.jit(metrics.roc_curve, fullgraph=True)(true, scores[:, 1])


def test_undefined_scores_are_zero_or_nan() -> None:
    none = dt.zeros(3, dtype=dt.int64)
    assert metrics.f1_score(none, none).item() == 0
    assert metrics.f1_score(none, none, zero_division=1.0).item() == 1
    assert metrics.average_precision_score(none, dt.ones(3)).item() == 0
    assert dt.isnan(metrics.roc_auc_score(none, dt.ones(3))).item()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: metrics.accuracy_score([0, 1], [0]), dt.ShapeError, "one row for each sample"),
        (lambda: metrics.confusion_matrix([[0]], [[0]]), dt.ShapeError, "1 dimension"),
        (lambda: metrics.roc_auc_score([0, 1], [[0.0, 1.0]] * 2), dt.ArgumentError, "ovr"),
        (lambda: metrics.f1_score([0], [0], average="mean"), dt.ArgumentError, "average"),
        (lambda: metrics.f1_score([[0]], [[0]]), dt.ArgumentError, "rows of labels"),
        (lambda: metrics.f1_score([0], [0], average="samples"), dt.ArgumentError, "samples"),
        (lambda: metrics.r2_score([0.0], [0.0], sample_weight=[1, 2]), dt.ShapeError, "weight"),
        (lambda: metrics.top_k_accuracy_score([0], [0.5]), dt.ShapeError, "classes"),
        (lambda: metrics.auroc, AttributeError, "roc_auc_score"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()
