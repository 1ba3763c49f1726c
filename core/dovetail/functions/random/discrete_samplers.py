"""Distributions over integers: how many events, successes, or elements of each kind.

Each element has places of its own in the stream, as of the other distributions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...arguments import integer, shown
from ...dtypes import float64, int64
from ...engine import recording
from ...errors import ArgumentError, DTypeError, ShapeError
from ...ops import table as ops
from ...tensor.host import evaluate, values_of
from ...tensor.operands import ARRAYS, Array
from ...tensor.tensor import Tensor
from ...tensor.verbs import apply, place_along
from ..creation.constructors import arange, extents, full, zeros
from ..datatypes import DeviceLike, DTypeLike, cast, real_dtype
from ..elementwise.op_functions import exp, floor, lgamma, log, log1p, sqrt
from ..indexing.index_reads import fetch
from ..shape.manipulation import reshape
from ..variants import into
from .generator import Extents, Generator, chosen
from .samplers import PROPOSALS, Parameter, open_uniform, parameters

__all__ = ["binomial", "multinomial", "poisson"]


FEW = 10.0  # a mean up to which a Poisson variable is found by going through its probabilities
STEPS = 40  # of which fewer than one in 1e11 needs more


@into(widen=False)
def poisson(
    lam: Parameter = 1.0, shape: Extents | None = None, *, dtype: DTypeLike = None,
    device: DeviceLike = None, generator: Generator | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Integers from the Poisson distribution: how many events there are where `lam` are expected.

    `lam`: one number, or a tensor of them, not negative. `generator`: whose stream is used; unless
    given, the default one.
    Shapes: `shape` is an int or a tuple of ints; that of `lam` unless given.
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for a negative number.
    Source: up to 10 by inversion; beyond Hormann, "The transformed rejection method for generating
    Poisson random variables", 1993, of ten proposals.

    >>> import dovetail as dt
    >>> dt.random.poisson(0.0, 3, device="reference").tolist()
    [0, 0, 0]
    """
    (rate,), sizes, _, on = parameters("poisson", ("lam",), (lam,), shape, None, device)
    if not isinstance(rate, Tensor) and not 0 <= rate < math.inf:
        raise ArgumentError(f"poisson: lam must be finite and not negative, got {rate}")
    d = int64 if dtype is None else real_dtype("poisson", dtype)
    g = chosen("poisson", generator)
    zero = g.uniform(sizes, dtype=float64, device=on)
    mean = zero * 0.0 + (cast(rate, float64) if isinstance(rate, Tensor) else rate)
    if not isinstance(rate, Tensor):
        few, found = rate <= FEW, mean
        return cast(_by_inversion(zero, mean) if few else _by_proposals(g, mean, sizes, on), d)
    small = mean <= FEW
    found = _by_inversion(zero, apply(ops.MINIMUM, (mean, FEW)))
    many = _by_proposals(g, apply(ops.MAXIMUM, (mean, FEW)), sizes, on)
    return cast(apply(ops.WHERE, (small, found, many)), d)


def _by_inversion(u: Tensor, mean: Tensor) -> Tensor:
    """The first k up to which the probabilities reach u."""
    p = exp(-mean)
    total, found = p, u * 0.0
    for k in range(1, STEPS):
        found = apply(ops.WHERE, (u >= total, float(k), found))
        p = p * (mean / float(k))
        total = total + p
    return found


def _by_proposals(g: Generator, mean: Tensor, sizes: Sequence[int], on: DeviceLike) -> Tensor:
    root = sqrt(mean)
    b = root * 2.53 + 0.931
    a = b * 0.02483 - 0.059
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    logarithm = log(mean)
    found = floor(mean)
    done = mean < 0.0
    for _ in range(PROPOSALS):
        u = g.uniform(sizes, dtype=float64, device=on) - 0.5
        v = open_uniform(g, sizes, float64, on)
        us = 0.5 - apply(ops.ABS, (u,))
        k = floor((a * 2.0 / us + b) * u + mean + 0.43)
        safe = apply(ops.MAXIMUM, (k, 0.0))
        ratio = log(v * inverse / (a / (us * us) + b))
        fine = (k >= 0.0) & (us > 0.0) & (ratio <= safe * logarithm - mean - lgamma(safe + 1.0))
        found = apply(ops.WHERE, (fine & ~done, k, found))
        done = done | fine
    return found


# --- how many of n --------------------------------------------------------------------------------


@into(widen=False)
def binomial(
    n: Array | int, p: Parameter, shape: Extents | None = None, *, dtype: DTypeLike = None,
    device: DeviceLike = None, generator: Generator | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Integers from the binomial distribution: how many of n trials succeed, each with chance p.

    `n`: an integer from 0 on, or a tensor of them. `p`: a number in 0..1, or a tensor of them.
    `generator`: whose stream is used; unless given, the default one.
    Shapes: `shape` is an int or a tuple of ints; that of `n` and `p` unless given.
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for numbers out of range.
    Source: up to 10 successes or failures to be expected by inversion; beyond Hormann, "The
    generation of binomial random variates", 1993, of ten proposals.

    >>> import dovetail as dt
    >>> dt.random.binomial(5, 1.0, 3, device="reference").tolist()
    [5, 5, 5]
    """
    if isinstance(n, Tensor) and n.dtype.kind not in "iu":
        raise DTypeError(f"binomial: n is of integers, not {n.dtype.name}")
    n = n if isinstance(n, (Tensor, *ARRAYS)) else integer("binomial", n, "n", 0)
    given = parameters("binomial", ("n", "p"), (n, p), shape, None, device)
    (trials, chance), sizes, _, on = given
    if not isinstance(chance, Tensor) and not 0 <= chance <= 1:
        raise ArgumentError(f"binomial: p is {chance}, not in 0..1")
    d = int64 if dtype is None else real_dtype("binomial", dtype)
    return cast(_successes(chosen("binomial", generator), trials, chance, sizes, on), d)


def _successes(
    g: Generator, n: Tensor | float, p: Tensor | float, sizes: Sequence[int], on: DeviceLike
) -> Tensor:
    """As floats. Of chances above one half failures are counted."""
    u = g.uniform(sizes, dtype=float64, device=on)
    trials = u * 0.0 + (cast(n, float64) if isinstance(n, Tensor) else n)
    chance = u * 0.0 + (cast(p, float64) if isinstance(p, Tensor) else p)
    often = chance > 0.5
    q = apply(ops.WHERE, (often, 1.0 - chance, chance))
    few = trials * q <= FEW
    found = _successes_by_inversion(u, trials, apply(ops.WHERE, (few, q, 0.0)))
    if not (isinstance(n, (int, float)) and n <= FEW):
        safe_n, safe_q = (apply(ops.WHERE, (few, x, v)) for x, v in ((4 * FEW, trials), (0.5, q)))
        many = _successes_by_proposals(g, safe_n, safe_q, sizes, on)
        found = apply(ops.WHERE, (few, found, many))
    return apply(ops.WHERE, (often, trials - found, found))


def _successes_by_inversion(u: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The first k up to which the probabilities reach u."""
    odds = p / (1.0 - p)
    chance = exp(n * log1p(-p))
    total, found = chance, u * 0.0
    for k in range(1, STEPS):
        found = apply(ops.WHERE, (u >= total, float(k), found))
        chance = chance * (n - (k - 1.0)) / float(k) * odds
        total = total + chance
    return apply(ops.MINIMUM, (found, n))


def _successes_by_proposals(
    g: Generator, n: Tensor, p: Tensor, sizes: Sequence[int], on: DeviceLike
) -> Tensor:
    root = sqrt(n * p * (1.0 - p))
    b = root * 2.53 + 1.15
    a = b * 0.0248 + p * 0.01 - 0.0873
    c = n * p + 0.5
    alpha = (5.1 / b + 2.83) * root
    middle = floor((n + 1.0) * p)
    logarithm = log(p / (1.0 - p))
    most = lgamma(middle + 1.0) + lgamma(n - middle + 1.0)
    known = (n, a, b, c, alpha, middle, most, logarithm)
    found, done = middle, n < 0.0
    for _ in range(PROPOSALS):
        evaluate(*known, found, done)  # each round is a graph of its own, with the same kernels
        k, fine = _proposed_successes(g, known, sizes, on)
        found, done = apply(ops.WHERE, (fine & ~done, k, found)), done | fine
        del k, fine  # what nothing refers to is not written to memory
    evaluate(found)
    return found


def _proposed_successes(
    g: Generator, known: Sequence[Tensor], sizes: Sequence[int], on: DeviceLike
) -> tuple[Tensor, Tensor]:
    """Draw one proposal for each element, and decide whether it is accepted."""
    n, a, b, c, alpha, middle, most, logarithm = known
    u = g.uniform(sizes, dtype=float64, device=on) - 0.5
    v = open_uniform(g, sizes, float64, on)
    us = 0.5 - apply(ops.ABS, (u,))
    k = floor((a * 2.0 / us + b) * u + c)
    safe = apply(ops.CLIP, (k, 0.0, n))
    ratio = log(v * alpha / (a / (us * us) + b))
    bound = most - lgamma(safe + 1.0) - lgamma(n - safe + 1.0) + (safe - middle) * logarithm
    return k, apply(ops.EQUAL, (safe, k)) & (us > 0.0) & (ratio <= bound)


@into(widen=False)
def multinomial(
    n: int, p: Array, shape: Extents = (), *, dtype: DTypeLike = None, device: DeviceLike = None,
    generator: Generator | None = None, out: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """Draw how many of n elements are of each of several kinds, from the multinomial distribution.

    `n`: an integer from 0 on. `p`: how probable each kind is, relative to their sum, which the host
    reads; within `jit` and `vmap` it does not, and weights that are all 0 give 0 of each kind.
    PyTorch's function of the same name chooses elements; see `choice`. `generator`: the generator
    whose stream is used; unless given, the default one.
    Shapes: `p` is a vector or a batch of them, (*batch, kinds), `shape` an int or a tuple of ints;
    the result is (*shape, *batch, kinds).
    Dtypes: int64 unless `dtype` is given. Computed in float64.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for a negative n, and for weights
    that are negative, NaN, infinite or all 0.
    Source: kinds are halved, and each half gets a binomial share of what there is; see `binomial`.

    >>> import dovetail as dt
    >>> dt.random.multinomial(6, [0.0, 1.0], 2, device="reference").tolist()
    [[0, 6], [0, 6]]
    """
    total = float(integer("multinomial", n, "n", 0, int64.max))
    (kinds,), own, _, on = parameters("multinomial", ("p",), (p,), None, None, device)
    if not isinstance(kinds, Tensor) or not own or not own[-1]:
        raise ShapeError(
            f"multinomial: p is a vector with an element or more, or a batch, not of shape {own}"
        )
    d = int64 if dtype is None else real_dtype("multinomial", dtype)
    g, sizes = chosen("multinomial", generator), (*extents("multinomial", shape), *own[:-1])
    rows, count = math.prod(sizes), own[-1]
    if not rows:
        return zeros((*sizes, count), dtype=d, device=on)
    weights = reshape(cast(kinds, float64), (-1,))
    if recording.current() is None:
        _require_weights(values_of("multinomial", weights).reshape(-1, count))
    counts = full((rows,), total, dtype=float64, device=on)
    evaluate(counts)
    for share in _shares_of_first_halves(weights, count):
        counts = _halved(g, counts, share, on)
    places = arange(rows * count, device=on)
    counts = fetch(counts, places // count * (counts.size // rows) + places % count)
    return cast(reshape(counts, (*sizes, count)), d)


def _require_weights(rows: np.ndarray) -> None:
    """Raise an ArgumentError for a row of weights that is no distribution."""
    totals = rows.sum(-1)
    bad = ~((rows >= 0.0).all(-1) & (totals > 0.0) & (totals < math.inf))
    if bad.any():
        raise ArgumentError(
            "multinomial: p must have no negative number, and a sum that is positive and finite, "
            f"got {shown(rows[bad][0].tolist())}"
        )


def _halved(g: Generator, counts: Tensor, share: Tensor, on: DeviceLike) -> Tensor:
    """Divide each count between the first and the second half of its kinds.

    Each level is a graph of its own, so that all of them share their kernels.
    """
    places = arange(counts.size, device=on) % share.size
    first = _successes(g, counts, fetch(share, places), counts.shape, on)
    evaluate(first)
    places = arange(2 * counts.size, device=on)
    before, whole = fetch(first, places // 2), fetch(counts, places // 2)
    found = apply(ops.WHERE, (apply(ops.EQUAL, (places % 2, 0)), before, whole - before))
    evaluate(found)
    return found


def _shares_of_first_halves(weights: Tensor, count: int) -> list[Tensor]:
    """Return how much of each part of the kinds its first half weighs, from the whole down.

    `weights`: rows of `count` weights, one after the other. Each row is padded to a power of 2.
    """
    size = 1 << (count - 1).bit_length()
    places = arange(weights.size // count * size, device=weights.device)
    kind = places % size
    nearest = places // size * count + apply(ops.MINIMUM, (kind, count - 1))
    level = apply(ops.WHERE, (kind < count, fetch(weights, nearest), 0.0))
    evaluate(level)
    shares: list[Tensor] = []
    while size > 1:
        pairs = reshape(level, (level.size // 2, 2))
        first = place_along(pairs, 1, 0)
        level = first + place_along(pairs, 1, 1)
        shares.insert(0, first / apply(ops.WHERE, (level > 0.0, level, 1.0)))
        evaluate(level, shares[0])
        size //= 2
    return shares
