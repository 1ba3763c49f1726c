"""Layers of losses. Each applies the function of its name in `dt.nn.functional`.

`reduction`: "mean", "sum", or "none". `size_average`, `reduce`: PyTorch's older flags for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import dovetail as dt

from .. import functional as F
from ..functional.reductions import resolve_reduction
from .module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "CTCLoss",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "GaussianNLLLoss",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "MarginRankingLoss",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "NLLLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]

Tensor: TypeAlias = dt.Tensor
Flag: TypeAlias = bool | None


class _Loss(Module):
    """The base of losses with a reduction."""

    def __init__(
        self, size_average: Flag = None, reduce: Flag = None, reduction: str = "mean"
    ) -> None:
        super().__init__()
        others = ("batchmean",) if isinstance(self, KLDivLoss) else ()
        name = type(self).__name__
        self.reduction = resolve_reduction(name, reduction, size_average, reduce, others)


class _Weighted(_Loss):
    """The base of losses with a weight, which is a buffer."""

    weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """The absolute error: `l1_loss`.

    See also: `SmoothL1Loss`, `HuberLoss`.

    >>> import dovetail as dt
    >>> dt.nn.L1Loss()(dt.ones(2), dt.zeros(2)).item()
    1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.l1_loss`."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """The squared error: `mse_loss`.

    See also: `SmoothL1Loss`, `HuberLoss`.

    >>> import dovetail as dt
    >>> dt.nn.MSELoss()(dt.ones(2), dt.zeros(2)).item()
    1.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.mse_loss`."""
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """A loss that is quadratic for errors below `beta` and linear above: `smooth_l1_loss`.

    - `beta`: the error at which the loss becomes linear; 0 is `L1Loss`.

    See also: `HuberLoss`, `dt.nn.functional.smooth_l1_loss`.

    >>> import dovetail as dt
    >>> dt.nn.SmoothL1Loss()(dt.ones(2), dt.zeros(2)).item()
    0.5
    """

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        beta: float = 1.0,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.smooth_l1_loss`."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """A loss that is quadratic for errors below `delta` and linear above: `huber_loss`.

    - `delta`: the error, greater than 0, at which the loss becomes linear.

    See also: `SmoothL1Loss`, `dt.nn.functional.huber_loss`.

    >>> import dovetail as dt
    >>> dt.nn.HuberLoss()(dt.ones(2), dt.zeros(2)).item()
    0.5
    """

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.huber_loss`."""
        return F.huber_loss(input, target, self.reduction, self.delta)


class KLDivLoss(_Loss):
    """The Kullback-Leibler divergence; inputs are log-probabilities: `kl_div`.

    - `reduction`: "mean", "sum", "none", or "batchmean": the sum by the size of the first axis,
      which is the divergence's definition.
    - `log_target`: True if targets are logarithms of probabilities, too.

    See also: `CrossEntropyLoss`, `dt.distributions.kl_divergence`.

    >>> import dovetail as dt
    >>> x = dt.log(dt.asarray([[0.5, 0.5]]))
    >>> dt.nn.KLDivLoss(reduction="batchmean", log_target=True)(x, x).item()
    0.0
    """

    def __init__(
        self,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        log_target: bool = False,
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.kl_div`."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_Weighted):
    """The cross entropy of two classes; inputs are probabilities: `binary_cross_entropy`.

    - `weight`: a factor of each loss, which broadcasts with the input; None is 1.

    See also: `BCEWithLogitsLoss`, `CrossEntropyLoss`, `dt.nn.functional.binary_cross_entropy`.

    >>> import dovetail as dt
    >>> dt.nn.BCELoss()(dt.zeros(2), dt.zeros(2)).item()
    0.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.binary_cross_entropy`."""
        return F.binary_cross_entropy(input, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Weighted):
    """The cross entropy of two classes; inputs are logits: `binary_cross_entropy_with_logits`.

    - `weight`: a factor of each loss, which broadcasts with the input; None is 1.
    - `pos_weight`: a factor of the loss of targets 1, which broadcasts with the input: usually one
      number for each class.

    See also: `BCELoss`, `CrossEntropyLoss`, `dt.nn.functional.binary_cross_entropy_with_logits`.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 1000.0), dt.ones(2)
    >>> dt.nn.BCEWithLogitsLoss()(x, y).item()
    0.0
    """

    pos_weight: Tensor | None

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.binary_cross_entropy_with_logits`."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, reduction=self.reduction, pos_weight=self.pos_weight
        )


class CrossEntropyLoss(_Weighted):
    """The cross entropy of several classes; inputs are logits: `cross_entropy`.

    - `weight`: a factor of each class, of shape (classes,); the mean divides by the sum of the
      factors of the targets.
    - `ignore_index`: a class whose examples add nothing to the loss and the mean.
    - `label_smoothing`: the part of each target, from 0 to 1, that is spread evenly over all
      classes.

    See also: `NLLLoss`, `BCEWithLogitsLoss`, `dt.nn.functional.cross_entropy`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.asarray([1])
    >>> round(dt.nn.CrossEntropyLoss()(x, y).item(), 4)
    0.6931
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.cross_entropy`."""
        return F.cross_entropy(
            input,
            target,
            self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class NLLLoss(_Weighted):
    """The negative log-likelihood; inputs are log-probabilities: `nll_loss`.

    - `weight`: a factor of each class, of shape (classes,); the mean divides by the sum of the
      factors of the targets.
    - `ignore_index`: a class whose examples add nothing to the loss and the mean.

    See also: `CrossEntropyLoss`, `LogSoftmax`, `dt.nn.functional.nll_loss`.

    >>> import dovetail as dt
    >>> x = dt.asarray([[-1.0, -2.0]])
    >>> dt.nn.NLLLoss()(x, dt.asarray([1])).item()
    2.0
    """

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average: Flag = None,
        ignore_index: int = -100,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.nll_loss`."""
        return F.nll_loss(
            input, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction
        )


class PoissonNLLLoss(_Loss):
    """The negative log-likelihood of a Poisson distribution: `poisson_nll_loss`.

    - `log_input`: True if the input has logarithms of the rates, False for the rates.
    - `full`: add Stirling's approximation of the part that depends on the target alone.
    - `eps`: is added to the rates before their logarithm, if `log_input` is False.

    >>> import dovetail as dt
    >>> x, y = dt.zeros(2), dt.zeros(2)
    >>> dt.nn.PoissonNLLLoss()(x, y).item()
    1.0
    """

    def __init__(
        self,
        log_input: bool = True,
        full: bool = False,
        size_average: Flag = None,
        eps: float = 1e-8,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.log_input, self.full, self.eps = log_input, full, eps

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.poisson_nll_loss`."""
        return F.poisson_nll_loss(
            log_input, target, self.log_input, self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log-likelihood of a normal distribution: `gaussian_nll_loss`.

    - `full`: add the constant log(2 pi) / 2.
    - `eps`: the least variance; lesser ones count as this one.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.zeros(2)
    >>> dt.nn.GaussianNLLLoss()(x, y, x).item()
    0.5
    """

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction=reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Apply `dt.nn.functional.gaussian_nll_loss`."""
        return F.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class SoftMarginLoss(_Loss):
    """The loss log(1 + exp(-target * input)): `soft_margin_loss`.

    >>> import dovetail as dt
    >>> x, y = dt.full(2, 1000.0), dt.ones(2)
    >>> dt.nn.SoftMarginLoss()(x, y).item()
    0.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.soft_margin_loss`."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """A hinge loss for examples with several classes: `multilabel_margin_loss`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.asarray([[0, -1]])
    >>> dt.nn.MultiLabelMarginLoss()(x, y).item()
    0.5
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.multilabel_margin_loss`."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_Weighted):
    """A cross entropy for examples with several classes: `multilabel_soft_margin_loss`.

    - `weight`: a factor of each class, of shape (classes,); None is 1.

    >>> import dovetail as dt
    >>> x, y = dt.full((1, 2), 1000.0), dt.ones((1, 2))
    >>> dt.nn.MultiLabelSoftMarginLoss()(x, y).item()
    0.0
    """

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.multilabel_soft_margin_loss`."""
        return F.multilabel_soft_margin_loss(input, target, self.weight, reduction=self.reduction)


class MultiMarginLoss(_Weighted):
    """A hinge loss for examples with one of several classes: `multi_margin_loss`.

    - `p`: the exponent of each difference, 1 or 2.
    - `margin`: the difference by which the score of the class should exceed the others.
    - `weight`: a factor of each class, of shape (classes,); None is 1.

    >>> import dovetail as dt
    >>> x, y = dt.asarray([[0.0, 3.0]]), dt.asarray([0])
    >>> dt.nn.MultiMarginLoss()(x, y).item()
    2.0
    """

    def __init__(
        self,
        p: int = 1,
        margin: float = 1.0,
        weight: Tensor | None = None,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(weight, size_average, reduce, reduction)
        if p not in (1, 2):
            raise dt.ArgumentError(f"MultiMarginLoss: p must be 1 or 2, got {p}")
        if weight is not None and weight.ndim != 1:
            raise dt.ShapeError(
                f"MultiMarginLoss: weight must have shape (classes,), got shape {weight.shape}"
            )
        self.p, self.margin = p, margin

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.multi_margin_loss`."""
        return F.multi_margin_loss(
            input, target, self.p, self.margin, self.weight, reduction=self.reduction
        )


class _Margin(_Loss):
    """The base of losses with a margin."""

    def __init__(
        self,
        margin: float = 0.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin = margin


class HingeEmbeddingLoss(_Margin):
    """A loss on distances: small for label 1, at least `margin` for -1: `hinge_embedding_loss`.

    - `margin`: the distance from which a pair with label -1 costs nothing.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.asarray([1, -1])
    >>> dt.nn.HingeEmbeddingLoss()(x, y).item()
    0.5
    """

    def __init__(
        self,
        margin: float = 1.0,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(margin, size_average, reduce, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.hinge_embedding_loss`."""
        return F.hinge_embedding_loss(input, target, self.margin, reduction=self.reduction)


class CTCLoss(_Loss):
    """The loss of sequences without an alignment, for speech and handwriting: `ctc_loss`.

    - `blank`: the class that stands between labels, and for none.
    - `zero_infinity`: replace infinite losses, of targets that are too long, by 0.

    See also: `dt.nn.functional.ctc_loss`, `LogSoftmax`.

    >>> import dovetail as dt
    >>> x = dt.log_softmax(dt.zeros((2, 1, 3)), axis=-1)
    >>> round(dt.nn.CTCLoss()(x, dt.asarray([[1]]), (2,), (1,)).item(), 4)
    1.0986
    """

    def __init__(
        self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False
    ) -> None:
        super().__init__(reduction=reduction)
        self.blank, self.zero_infinity = blank, zero_infinity

    def forward(
        self,
        log_probs: Tensor,
        targets: Tensor,
        input_lengths: Tensor | Sequence[int],
        target_lengths: Tensor | Sequence[int],
    ) -> Tensor:
        """Apply `dt.nn.functional.ctc_loss`."""
        return F.ctc_loss(
            log_probs,
            targets,
            input_lengths,
            target_lengths,
            self.blank,
            self.reduction,
            self.zero_infinity,
        )


class MarginRankingLoss(_Margin):
    """A loss that ranks one input above the other by a margin: `margin_ranking_loss`.

    - `margin`: the least difference of the two inputs that costs nothing.

    >>> import dovetail as dt
    >>> x, y = dt.ones(1), dt.zeros(1)
    >>> dt.nn.MarginRankingLoss()(x, y, dt.asarray([-1])).item()
    1.0
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.margin_ranking_loss`."""
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_Margin):
    """A loss on pairs by cosine distance: `cosine_embedding_loss`.

    - `margin`: the cosine up to which a pair with label -1 costs nothing, usually from 0 to 0.5.

    It pulls pairs with label 1 together and pushes pairs with label -1 apart.

    >>> import dovetail as dt
    >>> x, y = dt.ones((1, 4)), dt.asarray([1])
    >>> dt.nn.CosineEmbeddingLoss()(x, x, y).item()
    0.0
    """

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Apply `dt.nn.functional.cosine_embedding_loss`."""
        return F.cosine_embedding_loss(
            input1, input2, target, self.margin, reduction=self.reduction
        )


def _check_positive(name: str, margin: float) -> float:
    """Return the margin. Raises: ArgumentError unless it is positive."""
    if margin <= 0:
        raise dt.ArgumentError(f"{name}: margin must be positive, got {margin}")
    return margin


class TripletMarginLoss(_Loss):
    """A loss that pulls an anchor to a positive example and away from a negative one.

    - `margin`: the least difference of the two distances that costs nothing, greater than 0.
    - `p`, `eps`: the order of the norm of the distance, and the number added to each difference;
      see `pairwise_distance`.
    - `swap`: use the lesser of the distances from anchor and from positive to the negative.

    It applies `triplet_margin_loss`.
    See also: `TripletMarginWithDistanceLoss`, `CosineEmbeddingLoss`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((1, 2))
    >>> dt.nn.TripletMarginLoss()(x, x, y).item()
    0.0
    """

    def __init__(
        self,
        margin: float = 1.0,
        p: float = 2.0,
        eps: float = 1e-6,
        swap: bool = False,
        size_average: Flag = None,
        reduce: Flag = None,
        reduction: str = "mean",
    ) -> None:
        super().__init__(size_average, reduce, reduction)
        self.margin, self.p = _check_positive("TripletMarginLoss", margin), p
        self.eps, self.swap = eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Apply `dt.nn.functional.triplet_margin_loss`."""
        return F.triplet_margin_loss(
            anchor,
            positive,
            negative,
            self.margin,
            self.p,
            self.eps,
            self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """A `TripletMarginLoss` with any distance: `triplet_margin_with_distance_loss`.

    - `distance_function`: a function of two tensors; None is `pairwise_distance`.
    - `margin`: the least difference of the two distances that costs nothing, greater than 0.
    - `swap`: use the lesser of the distances from anchor and from positive to the negative.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((1, 2))
    >>> dt.nn.TripletMarginWithDistanceLoss(margin=0.5)(x, x, y).item()
    0.0
    """

    def __init__(
        self,
        *,
        distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
        margin: float = 1.0,
        swap: bool = False,
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction=reduction)
        self.distance_function = distance_function or PairwiseDistance()
        self.margin, self.swap = _check_positive("TripletMarginWithDistanceLoss", margin), swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Apply `dt.nn.functional.triplet_margin_with_distance_loss`."""
        return F.triplet_margin_with_distance_loss(
            anchor,
            positive,
            negative,
            distance_function=self.distance_function,
            margin=self.margin,
            swap=self.swap,
            reduction=self.reduction,
        )


class CosineSimilarity(Module):
    """The cosine of the angle between two tensors along an axis: `cosine_similarity`.

    - `eps`: the lower bound of each norm.

    >>> import dovetail as dt
    >>> dt.nn.CosineSimilarity()(*[dt.ones((1, 4))] * 2).tolist()
    [1.0]
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Apply `dt.nn.functional.cosine_similarity`."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of differences along the last axis: `pairwise_distance`.

    - `p`: the order of the norm.
    - `eps`: is added to each difference.
    - `keepdim`: True keeps the last axis, with size 1.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((1, 2))
    >>> dt.nn.PairwiseDistance(1.0, eps=0.0)(x, y).tolist()
    [2.0]
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Apply `dt.nn.functional.pairwise_distance`."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
