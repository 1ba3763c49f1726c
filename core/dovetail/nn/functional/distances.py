"""Losses of distances between two or three inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import dovetail as dt

from .precision import require_floats
from .reductions import reduce_loss, resolve_reduction
from .softmax_functions import pairwise_distance

__all__ = [
    "cosine_embedding_loss",
    "hinge_embedding_loss",
    "margin_ranking_loss",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]

Tensor: TypeAlias = dt.Tensor
EPSILON = 1e-12  # PyTorch's, in `cosine_embedding_loss`


def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return x where the target is 1, max(0, margin - x) where it is -1.

    - `target`: 1 or -1 for each pair.
    - `margin`: the distance from which a pair with target -1 costs nothing.

    Shapes: both are broadcast.
    Dtypes: floats; halves are computed as float32, and the loss has the input's; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.ones(2), dt.asarray([1, -1])
    >>> dt.nn.functional.hinge_embedding_loss(x, y).item()
    0.5
    """
    reduction = resolve_reduction("hinge_embedding_loss", reduction, size_average, reduce)
    require_floats("hinge_embedding_loss", input)
    x = input
    dissimilar_loss = dt.where(target != 1, dt.maximum(margin - x, 0.0), 0.0)
    return reduce_loss(dissimilar_loss + dt.where(target != -1, x, 0.0), reduction, input)


def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin - target * (input1 - input2)): 1 ranks the first higher, -1 the second.

    - `target`: 1 where the first input should be higher, -1 where the second should.
    - `margin`: the least difference that costs nothing.

    Shapes: all have as many dimensions, and are broadcast.
    Dtypes: floats; halves are computed as float32, and the loss has that of input1; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.ones(1), dt.zeros(1)
    >>> dt.nn.functional.margin_ranking_loss(x, y, dt.asarray([-1])).item()
    1.0
    """
    reduction = resolve_reduction("margin_ranking_loss", reduction, size_average, reduce)
    require_floats("margin_ranking_loss", input1, input2)
    if not input1.ndim == input2.ndim == target.ndim:
        raise dt.ShapeError(
            "margin_ranking_loss: the inputs and the target must have the same number of "
            f"dimensions, got shapes {input1.shape}, {input2.shape} and {target.shape}"
        )
    signed_difference = target * (input1 - input2)
    return reduce_loss(dt.maximum(margin - signed_difference, 0.0), reduction, input1)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return max(0, margin + |anchor - positive| - |anchor - negative|), by `pairwise_distance`.

    - `anchor`, `positive`, `negative`: vectors along the last axis: `positive` should be nearer to
      `anchor` than `negative`.
    - `margin`: the difference of the distances, greater than 0, from which a triplet costs nothing.
    - `p`, `eps`: the order of the norm of the distance, and the number added to each difference;
      see `pairwise_distance`.
    - `swap`: use the lesser of the distances from anchor and from positive to the negative.

    Shapes: (..., n) all, broadcast.
    Dtypes: floats; halves are computed as float32, and the loss has that of anchor.
    Raises: ShapeError, DTypeError; ArgumentError for a margin that is not positive.
    Source: Balntas, Riba, Ponsa, Mikolajczyk, "Learning local feature descriptors with triplets and
    shallow convolutional neural networks", BMVC 2016.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((1, 2))
    >>> dt.nn.functional.triplet_margin_loss(x, x, y).item()
    0.0
    """
    if margin <= 0:
        raise dt.ArgumentError(f"triplet_margin_loss: margin must be positive, got {margin}")
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        margin=margin,
        swap=swap,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        reduction=resolve_reduction("triplet_margin_loss", reduction, size_average, reduce),
    )


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """Return `triplet_margin_loss` with another distance than `pairwise_distance`.

    - `anchor`, `positive`, `negative`: vectors along the last axis: `positive` should be nearer to
      `anchor` than `negative`.
    - `distance_function`: a function of two tensors, by default `pairwise_distance`.
    - `margin`: the difference of the distances, greater than 0, from which a triplet costs nothing.
    - `swap`: use the lesser of the distances from anchor and from positive to the negative.

    Shapes: of as many dimensions, such as the distance takes; a loss for each distance.
    Dtypes: floats; the distance gets halves as float32, and the loss has the dtype of anchor.
    Raises: ShapeError, DTypeError; ArgumentError for a margin that is not positive, and for another
    `reduction`.

    >>> import dovetail as dt
    >>> x, y = dt.zeros((1, 2)), dt.ones((1, 2))
    >>> far = lambda a, b: dt.abs(a - b).max(axis=-1)
    >>> dt.nn.functional.triplet_margin_with_distance_loss(x, x, y, distance_function=far).item()
    0.0
    """
    op = "triplet_margin_with_distance_loss"
    reduction = resolve_reduction(op, reduction)
    require_floats(op, anchor, positive, negative)
    if margin <= 0:
        raise dt.ArgumentError(f"{op}: margin must be positive, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise dt.ShapeError(
            f"{op}: anchor, positive and negative must have the same number of dimensions, got "
            f"shapes {anchor.shape}, {positive.shape} and {negative.shape}"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = dt.minimum(far, distance(positive, negative))
    return reduce_loss(dt.maximum(margin + near - far, 0.0), reduction, anchor)


def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Return 1 - cos(angle) where the target is 1, max(0, cos - margin) where it is -1.

    - `target`: 1 or -1 for each pair.
    - `margin`: the cosine up to which a pair with target -1 costs nothing.

    Shapes: inputs (batch, n) and target (batch,), or (n,) and ().
    Dtypes: floats; halves are computed as float32, and the loss has that of input1; target of real
    numbers.
    Raises: ShapeError, DTypeError, ArgumentError.

    >>> import dovetail as dt
    >>> x, y = dt.ones((1, 4)), dt.asarray([1])
    >>> dt.nn.functional.cosine_embedding_loss(x, x, y).item()
    0.0
    """
    op = "cosine_embedding_loss"
    reduction = resolve_reduction(op, reduction, size_average, reduce)
    require_floats(op, input1, input2)
    if not (input1.ndim == input2.ndim == target.ndim + 1 and target.ndim in (0, 1)):
        raise dt.ShapeError(
            f"{op}: expected inputs (batch, n) with a target (batch,), or (n,) with (), got "
            f"inputs of shapes {input1.shape} and {input2.shape} with a target of shape "
            f"{target.shape}"
        )
    a, b = input1, input2
    squares = ((a * a).sum(axis=-1) + EPSILON) * ((b * b).sum(axis=-1) + EPSILON)
    cos = (a * b).sum(axis=-1) / dt.sqrt(squares)
    loss = dt.where(target == 1, 1.0 - cos, 0.0)
    loss = loss + dt.where(target == -1, dt.maximum(cos - margin, 0.0), 0.0)
    return reduce_loss(loss, reduction, input1)
