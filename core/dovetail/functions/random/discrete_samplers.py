"""Distributions over integers: Poisson, binomial, multinomial and categorical.

Each element has fixed positions in the stream, as for the other distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...argument_checks import integer, shown
from ...device_class import Device, usable
from ...dtypes import float64, int64
from ...engine import tracer_api
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops import table as ops
from ...tensor.host import evaluate, read_values
from ...tensor.primitives import apply, select_along
from ...tensor.promotion import ARRAY_TYPES, Array
from ...tensor.tensor import Tensor
from ..creation.constructors import arange, extents, full, zeros
from ..datatypes import DeviceLike, DTypeLike, cast, device_supporting, move, move_as, real_dtype
from ..elementwise.op_functions import exp, floor, lgamma, log, log1p, softmax, sqrt
from ..indexing.index_reads import gather_unchecked
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import sum as sum_of
from ..shape.manipulation import expand_dims, moveaxis, reshape
from ..variants import public
from .generator import Extents, Generator, generator_or_default
from .samplers import GAMMA_PROPOSALS_MAX, Parameter, open_uniform, resolve_parameters

__all__ = ["binomial", "categorical", "multinomial", "poisson"]


INVERSION_MEAN_MAX = 10.0  # up to this mean, inversion adds up the probabilities
INVERSION_STEPS_MAX = 40  # fewer than one in 1e11 variables of that mean need more


def _resolve_in_float64(
    op: str,
    names: Sequence[str],
    values: Sequence[object],
    shape: Extents | None,
    device: DeviceLike,
) -> tuple[list[Tensor | float], tuple[int, ...], Device, Device]:
    """Return parameters, the result's shape and device, and the device that computes in float64.

    Parameters that are tensors are on the latter.
    """
    operands, sizes, _, on = resolve_parameters(op, names, values, shape, None, device)
    home, wide = usable(on, op), device_supporting(float64, on)
    moved = [move(v, wide) if isinstance(v, Tensor) and v.device is home else v for v in operands]
    return moved, sizes, home, wide


@public(in_place=True, out=True, widen=False)
def poisson(
    lam: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw integers from the Poisson distribution with mean `lam`.

    - `lam`: the mean: one number, or a tensor of them, not negative.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of `lam` unless given.
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for a negative number.
    Source: inversion up to a mean of 10; above it Hormann, "The transformed rejection method for
    generating Poisson random variables", 1993, with ten proposals.

    >>> import dovetail as dt
    >>> dt.random.poisson(0.0, 3).tolist()
    [0, 0, 0]
    """
    (rate,), sizes, home, on = _resolve_in_float64("poisson", ("lam",), (lam,), shape, device)
    if not isinstance(rate, Tensor) and not 0 <= rate < math.inf:
        raise ArgumentError(f"poisson: lam must be finite and not negative, got {rate}")
    d = int64 if dtype is None else real_dtype("poisson", dtype)
    g = generator_or_default("poisson", generator)
    zero = g.uniform(sizes, dtype=float64, device=on)
    mean = zero * 0.0 + (cast(rate, float64) if isinstance(rate, Tensor) else rate)
    if not isinstance(rate, Tensor):
        is_small = rate <= INVERSION_MEAN_MAX
        counts = (
            _invert_poisson(zero, mean)
            if is_small
            else _draw_poisson_by_proposals(g, mean, sizes, on)
        )
        return move_as(counts, d, home)
    small = mean <= INVERSION_MEAN_MAX
    inverted = _invert_poisson(zero, apply(ops.MINIMUM, (mean, INVERSION_MEAN_MAX)))
    proposed = _draw_poisson_by_proposals(
        g, apply(ops.MAXIMUM, (mean, INVERSION_MEAN_MAX)), sizes, on
    )
    return move_as(apply(ops.WHERE, (small, inverted, proposed)), d, home)


def _invert_poisson(u: Tensor, mean: Tensor) -> Tensor:
    """Return the first k at which the sum of probabilities exceeds u."""
    p = exp(-mean)
    total, count = p, u * 0.0
    for k in range(1, INVERSION_STEPS_MAX):
        count = apply(ops.WHERE, (u >= total, float(k), count))
        p = p * (mean / float(k))
        total = total + p
    return count


def _draw_poisson_by_proposals(
    g: Generator, mean: Tensor, sizes: Sequence[int], device: DeviceLike
) -> Tensor:
    """Draw Poisson variables by rejection; take the mean's floor if ten proposals fail."""
    root = sqrt(mean)
    b = root * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    logarithm = log(mean)
    accepted = floor(mean)
    is_accepted = mean < 0.0
    for _ in range(GAMMA_PROPOSALS_MAX):
        u = g.uniform(sizes, dtype=float64, device=device) - 0.5
        v = open_uniform(g, sizes, float64, device)
        us = 0.5 - apply(ops.ABS, (u,))
        k = floor((a * 2.0 / us + b) * u + mean + 0.43)
        safe = apply(ops.MAXIMUM, (k, 0.0))
        ratio = log(v * inverse / (a / (us * us) + b))
        accepts = (k >= 0.0) & (us > 0.0) & (ratio <= safe * logarithm - mean - lgamma(safe + 1.0))
        accepted = apply(ops.WHERE, (accepts & ~is_accepted, k, accepted))
        is_accepted = is_accepted | accepts
    return accepted


# --- binomial and multinomial ---------------------------------------------------------------------


@public(in_place=True, out=True, widen=False)
def binomial(
    n: Array | int,
    p: Parameter,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw integers from the binomial distribution: the successes of n trials of chance p.

    `n`: an integer from 0 on, or a tensor of them. `p`: a number in 0..1, or a tensor of them.
    `generator`: the generator to use; default: that of this process.
    Shapes: `shape` is an int or a tuple of ints; that of `n` and `p` unless given.
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for numbers out of range.
    Source: inversion up to 10 expected successes or failures; above Hormann, "The generation of
    binomial random variates", 1993, with ten proposals.

    >>> import dovetail as dt
    >>> dt.random.binomial(5, 1.0, 3).tolist()
    [5, 5, 5]
    """
    if isinstance(n, Tensor) and n.dtype.kind not in "iu":
        raise DTypeError(f"binomial: n must hold integers, got {n.dtype.name}")
    n = n if isinstance(n, (Tensor, *ARRAY_TYPES)) else integer("binomial", n, "n", 0)
    resolved = _resolve_in_float64("binomial", ("n", "p"), (n, p), shape, device)
    (trials, chance), sizes, home, on = resolved
    if not isinstance(chance, Tensor) and not 0 <= chance <= 1:
        raise ArgumentError(f"binomial: p must be between 0 and 1, got {chance}")
    d = int64 if dtype is None else real_dtype("binomial", dtype)
    g = generator_or_default("binomial", generator)
    return move_as(_draw_successes(g, trials, chance, sizes, on), d, home)


def _draw_successes(
    g: Generator, n: Tensor | float, p: Tensor | float, sizes: Sequence[int], device: DeviceLike
) -> Tensor:
    """Return binomial variables as floats; failures are counted for chances above one half."""
    u = g.uniform(sizes, dtype=float64, device=device)
    trials = u * 0.0 + (cast(n, float64) if isinstance(n, Tensor) else n)
    chance = u * 0.0 + (cast(p, float64) if isinstance(p, Tensor) else p)
    is_likely = chance > 0.5
    q = apply(ops.WHERE, (is_likely, 1.0 - chance, chance))
    is_small = trials * q <= INVERSION_MEAN_MAX
    inverted = _invert_binomial(u, trials, apply(ops.WHERE, (is_small, q, 0.0)))
    if not (isinstance(n, (int, float)) and n <= INVERSION_MEAN_MAX):
        safe_n, safe_q = (
            apply(ops.WHERE, (is_small, x, v))
            for x, v in ((4 * INVERSION_MEAN_MAX, trials), (0.5, q))
        )
        proposed = _draw_successes_by_proposals(g, safe_n, safe_q, sizes, device)
        inverted = apply(ops.WHERE, (is_small, inverted, proposed))
    return apply(ops.WHERE, (is_likely, trials - inverted, inverted))


def _invert_binomial(u: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """Return the first k at which the sum of probabilities exceeds u."""
    odds = p / (1.0 - p)
    chance = exp(n * log1p(-p))
    total, count = chance, u * 0.0
    for k in range(1, INVERSION_STEPS_MAX):
        count = apply(ops.WHERE, (u >= total, float(k), count))
        chance = chance * (n - (k - 1.0)) / float(k) * odds
        total = total + chance
    return apply(ops.MINIMUM, (count, n))


def _draw_successes_by_proposals(
    g: Generator, n: Tensor, p: Tensor, sizes: Sequence[int], device: DeviceLike
) -> Tensor:
    """Draw binomial variables by rejection, and evaluate them after each of ten rounds."""
    root = sqrt(n * p * (1.0 - p))
    b = root * 2.53 + 1.15
    a = b * 0.0248 + p * 0.01 - 0.0873
    c = n * p + 0.5
    alpha = (5.1 / b + 2.83) * root
    middle = floor((n + 1.0) * p)
    logarithm = log(p / (1.0 - p))
    most = lgamma(middle + 1.0) + lgamma(n - middle + 1.0)
    constants = (n, a, b, c, alpha, middle, most, logarithm)
    accepted, is_accepted = middle, n < 0.0
    for _ in range(GAMMA_PROPOSALS_MAX):
        evaluate(
            *constants, accepted, is_accepted
        )  # each round is a graph of its own, with the same kernels
        k, accepts = _propose_successes(g, constants, sizes, device)
        accepted, is_accepted = (
            apply(ops.WHERE, (accepts & ~is_accepted, k, accepted)),
            is_accepted | accepts,
        )
        del k, accepts  # expressions without a reference are not written to memory
    evaluate(accepted)
    return accepted


def _propose_successes(
    g: Generator, constants: Sequence[Tensor], sizes: Sequence[int], device: DeviceLike
) -> tuple[Tensor, Tensor]:
    """Draw a proposal for each element; return the proposals, and True where accepted."""
    n, a, b, c, alpha, middle, most, logarithm = constants
    u = g.uniform(sizes, dtype=float64, device=device) - 0.5
    v = open_uniform(g, sizes, float64, device)
    us = 0.5 - apply(ops.ABS, (u,))
    k = floor((a * 2.0 / us + b) * u + c)
    safe = apply(ops.CLIP, (k, 0.0, n))
    ratio = log(v * alpha / (a / (us * us) + b))
    bound = most - lgamma(safe + 1.0) - lgamma(n - safe + 1.0) + (safe - middle) * logarithm
    return k, apply(ops.EQUAL, (safe, k)) & (us > 0.0) & (ratio <= bound)


@public(out=True, widen=False)
def multinomial(
    n: int,
    p: Array,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw the numbers of n elements of several kinds from the multinomial distribution.

    `n`: an integer from 0 on. `p`: the weights of the kinds, which need not sum to 1. The host
    reads and checks them, but not within `jit` and `vmap`, where weights that are all 0 give 0 of
    each kind. PyTorch's function of this name chooses elements; see `choice`. `generator`: the
    generator to use; default: that of this process.
    Shapes: `p` is a vector or a batch of them, (*batch, kinds), `shape` an int or a tuple of ints;
    the result is (*shape, *batch, kinds).
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for a negative n, and for weights
    that are negative, NaN, infinite or all 0.
    Source: repeated halving of the kinds, with a binomial share for each half; see `binomial`.

    >>> import dovetail as dt
    >>> dt.random.multinomial(6, [0.0, 1.0], 2).tolist()
    [[0, 6], [0, 6]]
    """
    total = float(integer("multinomial", n, "n", 0, int64.max))
    (kinds,), own, home, on = _resolve_in_float64("multinomial", ("p",), (p,), None, device)
    if not isinstance(kinds, Tensor) or not own or not own[-1]:
        raise ShapeError(
            f"multinomial: p must be a non-empty vector or a batch of such vectors, got shape {own}"
        )
    d = int64 if dtype is None else real_dtype("multinomial", dtype)
    g, sizes = (
        generator_or_default("multinomial", generator),
        (*extents("multinomial", shape), *own[:-1]),
    )
    rows, count = math.prod(sizes), own[-1]
    if not rows:
        return zeros((*sizes, count), dtype=d, device=home)
    weights = reshape(cast(kinds, float64), (-1,))
    if tracer_api.current() is None:
        require_weights(read_values("multinomial", weights).reshape(-1, count))
    counts = full((rows,), total, dtype=float64, device=on)
    evaluate(counts)
    for share in _shares_of_first_halves(weights, count):
        counts = _split_counts(g, counts, share, on)
    positions = arange(rows * count, device=on)
    counts = gather_unchecked(
        counts, positions // count * (counts.size // rows) + positions % count
    )
    return move_as(reshape(counts, (*sizes, count)), d, home)


def require_weights(rows: np.ndarray, name: str = "p") -> None:
    """Raise ArgumentError for a row of weights that is not a distribution."""
    totals = rows.sum(-1)
    bad = ~((rows >= 0.0).all(-1) & (totals > 0.0) & (totals < math.inf))
    if bad.any():
        raise ArgumentError(
            f"multinomial: {name} must have no negative number, and a sum that is positive and "
            f"finite, got {shown(rows[bad][0].tolist())}"
        )


def _split_counts(g: Generator, counts: Tensor, share: Tensor, device: DeviceLike) -> Tensor:
    """Divide each count between the halves of its kinds; return all pairs, evaluated.

    Each level is a graph of its own, so that all of them share their kernels.
    """
    positions = arange(counts.size, device=device) % share.size
    first = _draw_successes(g, counts, gather_unchecked(share, positions), counts.shape, device)
    evaluate(first)
    positions = arange(2 * counts.size, device=device)
    first_half, counts_read = (
        gather_unchecked(first, positions // 2),
        gather_unchecked(counts, positions // 2),
    )
    halves = apply(
        ops.WHERE, (apply(ops.EQUAL, (positions % 2, 0)), first_half, counts_read - first_half)
    )
    evaluate(halves)
    return halves


def _shares_of_first_halves(weights: Tensor, count: int) -> list[Tensor]:
    """Return the share of each part's first half, from the whole to the smallest part.

    `weights`: rows of `count` weights, one after the other. Each row is padded to a power of 2.
    """
    size = 1 << (count - 1).bit_length()
    positions = arange(weights.size // count * size, device=weights.device)
    kind = positions % size
    nearest = positions // size * count + apply(ops.MINIMUM, (kind, count - 1))
    level = apply(ops.WHERE, (kind < count, gather_unchecked(weights, nearest), 0.0))
    evaluate(level)
    shares: list[Tensor] = []
    while size > 1:
        pairs = reshape(level, (level.size // 2, 2))
        first = select_along(pairs, 1, 0)
        level = first + select_along(pairs, 1, 1)
        shares.insert(0, first / apply(ops.WHERE, (level > 0.0, level, 1.0)))
        evaluate(level, shares[0])
        size //= 2
    return shares


# --- indices --------------------------------------------------------------------------------------


@public(out=True)
def categorical(
    logits: Array,
    axis: int = -1,
    shape: Extents | None = None,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw indices of categories whose probabilities are the softmax of `logits` along `axis`.

    - `logits`: logarithms of weights, which need not be normalized; -inf is never drawn.
    - `axis`: the axis of the categories.
    - `shape`: the shape of the result; it ends with that of `logits` without the axis, which is the
      default.
    - `generator`: the random generator; None is that of this process.

    Shapes: as `shape`.
    Dtypes: floats; the result is int64.
    Raises: ShapeError, AxisError, DTypeError, DeviceError.
    See also: `dt.multinomial` for weights and draws without replacement, `choice`.

    >>> import dovetail as dt
    >>> dt.random.categorical([0.0, -dt.inf, -dt.inf], shape=(3,)).tolist()
    [0, 0, 0]
    """
    (x,), own, _, _ = resolve_parameters("categorical", ("logits",), (logits,), None, None, device)
    if not isinstance(x, Tensor) or not own:
        raise ShapeError(f"categorical: expected at least 1 dimension, got shape {own}")
    x = moveaxis(x, axis, -1)
    batch = x.shape[:-1]
    sizes = batch if shape is None else tuple(extents("categorical", shape))
    if sizes[len(sizes) - len(batch) :] != batch:
        raise ShapeError(f"categorical: shape must end with {batch}, got {sizes}")
    return draw_indices(generator_or_default("categorical", generator), softmax(x), sizes)


def draw_indices(g: Generator, weights: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Draw indices along the last axis, with replacement, by inverting the sums of the weights.

    `shape`: ends with that of the weights without the last axis.
    """
    sums = cumulative_sum(weights, axis=-1)
    total = select_along(sums, sums.ndim - 1, sums.shape[-1] - 1)
    last = sum_of(apply(ops.LESS, (sums, expand_dims(total, -1))), axis=-1)
    u = g.uniform(shape, dtype=sums.dtype, device=sums.device) * total
    indices = sum_of(apply(ops.GREATER_EQUAL, (expand_dims(u, -1), sums)), axis=-1)
    return apply(ops.MINIMUM, (indices, last))  # rounding may give an index beyond the last one
