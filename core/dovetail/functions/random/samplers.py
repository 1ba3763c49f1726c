"""Continuous distributions, choices and shuffles, composed of the draws of a `Generator`.

Each element has fixed positions in the stream, so that a seed gives the same numbers on every
device. Rejection methods draw a fixed number of proposals for every element and take the first that
is accepted; the host reads none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import layout as lay
from ...argument_checks import flag, integer, real
from ...device_class import usable
from ...dtypes import FORMATS, DType, bool_, float32, float64
from ...errors import ArgumentError, DovetailError, DTypeError, ShapeError
from ...ops import table as ops
from ...tensor.host import evaluate, read_values
from ...tensor.primitives import apply
from ...tensor.promotion import ARRAY_TYPES, Array
from ...tensor.tensor import Tensor, required, strided
from ...tensor.writes import write_result
from ..creation.constructors import extents
from ..creation.from_values import asarray
from ..datatypes import (
    DeviceLike,
    DTypeLike,
    cast,
    device_supporting,
    get_default_dtype,
    move,
    real_dtype,
)
from ..elementwise.op_functions import erfinv, exp, log, log1p, softmax, sqrt
from ..indexing.index_reads import searchsorted, take
from ..reductions.cumulative import cumulative_sum
from ..reductions.statistics import max as max_of
from ..reductions.statistics import min as min_of
from ..reductions.statistics import sum as sum_of
from ..shape.manipulation import broadcast_shapes
from ..sorting.stable_sort import topk
from ..variants import public
from .generator import Extents, Generator, generator_or_default, largest_below

__all__ = [
    "bernoulli",
    "beta",
    "choice",
    "dirichlet",
    "exponential",
    "gamma",
    "laplace",
    "rand",
    "rand_like",
    "randint",
    "randn",
    "randn_like",
    "shuffle",
    "truncated_normal",
]

Parameter = Array | float  # one number, or a tensor with one for each element

GAMMA_PROPOSALS_MAX = 10  # gamma accepts 95 %: for one in 1e13 elements no proposal is accepted


# --- short names ----------------------------------------------------------------------------------


@public(out=True, widen=False)
def rand(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= x < 1, as NumPy's and PyTorch's `rand`.

    - `generator`: the random generator; None is that of this process.

    Shapes: the sizes are passed one by one, or as a tuple.
    Dtypes: floats, float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError.

    >>> import dovetail as dt
    >>> dt.random.rand(2, 3).shape
    (2, 3)
    """
    g = generator_or_default("rand", generator)
    return g.uniform(_parse_sizes(shape), dtype=dtype, device=device)


@public(out=True)
def randn(
    *shape: int,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution; a short name for `normal`.

    - `generator`: the random generator; None is that of this process.

    Shapes: the sizes are given one by one, or as a tuple.
    Dtypes: floats, float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError.
    See also: `random.normal`, `random.rand`.

    >>> import dovetail as dt
    >>> dt.random.randn(2, 3).shape
    (2, 3)
    """
    g = generator_or_default("randn", generator)
    return g.normal(_parse_sizes(shape), dtype=dtype, device=device)


@public(widen=False)
def rand_like(
    x: Tensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over 0 <= u < 1, in the shape of `x`.

    - `generator`: the random generator; None is that of this process.

    Shapes: any; the result has that of `x`.
    Dtypes: floats, that of `x` unless `dtype` is given.
    Raises: DTypeError for another dtype, DeviceError.
    See also: `rand`, `randn_like`.

    >>> import dovetail as dt
    >>> dt.random.rand_like(dt.ones((2, 3))).shape
    (2, 3)
    """
    return rand(*required("rand_like", x).shape, **_like(x, dtype, device), generator=generator)


@public(widen=False)
def randn_like(
    x: Tensor,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
) -> Tensor:
    """Draw floats from the standard normal distribution, in the shape of `x`.

    - `generator`: the random generator; None is that of this process.

    Shapes: any; the result has that of `x`.
    Dtypes: floats, that of `x` unless `dtype` is given.
    Raises: DTypeError for another dtype, DeviceError.
    See also: `randn`, `rand_like`.

    >>> import dovetail as dt
    >>> dt.random.randn_like(dt.ones((2, 3))).shape
    (2, 3)
    """
    return randn(*required("randn_like", x).shape, **_like(x, dtype, device), generator=generator)


def _like(x: Tensor, dtype: DTypeLike, device: DeviceLike) -> dict[str, Any]:
    """Return the dtype and the device of a result, by default those of `x`."""
    return {
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }


def _parse_sizes(shape: Sequence[int]) -> Sequence[int]:
    """Return the sizes of `f(2, 3)` or `f((2, 3))`."""
    return shape[0] if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


@public(out=True, widen=False)
def randint(
    low: int,
    high: int | None = None,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw integers from low <= k < high; NumPy's and PyTorch's older name for `integers`.

    - `low`, `high`: the bounds, ints; without `high`, 0 <= k < low.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: integers, int64 unless `dtype` is given.
    Raises: ArgumentError for an empty range or one beyond the dtype; DTypeError, ShapeError,
    DeviceError.

    >>> import dovetail as dt
    >>> dt.random.randint(0, 10, (2, 3)).shape
    (2, 3)
    """
    g = generator_or_default("randint", generator)
    try:
        return g.integers(low, high, shape, dtype=dtype, device=device)
    except DovetailError as error:
        error.args = (str(error).replace("integers: ", "randint: ", 1), *error.args[1:])
        raise


# --- parameters -----------------------------------------------------------------------------------


def resolve_parameters(
    op: str,
    names: Sequence[str],
    values: Sequence[object],
    shape: Extents | None,
    dtype: DTypeLike,
    device: DeviceLike,
) -> tuple[list[Tensor | float], tuple[int, ...], DType, DeviceLike]:
    """Return parameters as tensors or numbers, and the shape, dtype and device of the result."""
    operands: list[Tensor | float] = []
    tensors = [g for g in values if isinstance(g, Tensor)]
    device = tensors[0].device if device is None and tensors else device
    for name, g in zip(names, values, strict=True):
        if isinstance(g, ARRAY_TYPES):
            g = asarray(g, device=device)
        operands.append(strided(op, g) if isinstance(g, Tensor) else real(op, g, name))
    shapes = [f.shape for f in operands if isinstance(f, Tensor)]
    joint = broadcast_shapes(*shapes) if shapes else ()
    sizes = joint if shape is None else extents(op, shape)
    if broadcast_shapes(joint, sizes) != sizes:
        raise ShapeError(
            f"{op}: parameters must broadcast to the result's shape {sizes}, got shape {joint}"
        )
    float_dtypes = [f.dtype for f in operands if isinstance(f, Tensor) and f.dtype.kind == "f"]
    d = real_dtype(op, dtype) if dtype is not None else [*float_dtypes, get_default_dtype()][0]
    if d.kind != "f":
        raise DTypeError(f"{op}: dtype must be floating-point, got {d.name}")
    return operands, sizes, d, device


def open_uniform(g: Generator, shape: Extents, d: DType, device: DeviceLike) -> Tensor:
    """Draw floats from the uniform distribution over 0 < u <= 1."""
    return 1.0 - g.uniform(shape, dtype=d, device=device)


# --- inversion methods ----------------------------------------------------------------------------


@public(in_place=True, out=True, widen=False)
def bernoulli(
    p: Parameter = 0.5,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw True or 1 with probability `p`, else False or 0.

    - `p`: the probability: one number, or a tensor of them.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of `p` unless given.
    Dtypes: bool unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentError for a number outside of 0..1.

    >>> import dovetail as dt
    >>> dt.random.bernoulli(1.0, 3).tolist()
    [True, True, True]
    """
    (q,), sizes, d, on = resolve_parameters("bernoulli", ("p",), (p,), shape, None, device)
    if not isinstance(q, Tensor) and not 0 <= q <= 1:
        raise ArgumentError(f"bernoulli: p must be between 0 and 1, got {q}")
    wide = float64 if d is float64 else float32
    u = generator_or_default("bernoulli", generator).uniform(sizes, dtype=wide, device=on)
    return cast(apply(ops.LESS, (u, q)), bool_ if dtype is None else real_dtype("bernoulli", dtype))


@public(in_place=True, out=True)
def exponential(
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the exponential distribution with mean `scale`.

    - `scale`: the mean: one number, or a tensor of them.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of `scale` unless given.
    Dtypes: floats, that of `scale` or float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> bool((dt.random.exponential(2.0, 9) >= 0).all())
    True
    """
    (s,), sizes, d, on = resolve_parameters(
        "exponential", ("scale",), (scale,), shape, dtype, device
    )
    u = generator_or_default("exponential", generator).uniform(sizes, dtype=d, device=on)
    return cast(-log1p(-u) * s, d)


@public(in_place=True, out=True)
def laplace(
    loc: Parameter = 0.0,
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the Laplace distribution: exponential on both sides of `loc`.

    - `loc`: the mean: a number or a tensor.
    - `scale`: the mean distance from `loc`: a number or a tensor.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of the parameters unless given.
    Dtypes: floats, that of the parameters or float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> dt.random.laplace(0.0, 1.0, (2, 3)).shape
    (2, 3)
    """
    resolved = resolve_parameters("laplace", ("loc", "scale"), (loc, scale), shape, dtype, device)
    (m, s), sizes, d, on = resolved
    g = generator_or_default("laplace", generator)
    size = -log(open_uniform(g, sizes, d, on)) * s
    sign = g.uniform(sizes, dtype=d, device=on) < 0.5
    return cast(apply(ops.WHERE, (sign, -size, size)) + m, d)


@public(in_place=True, out=True)
def truncated_normal(
    low: Parameter = -2.0,
    high: Parameter = 2.0,
    shape: Extents | None = None,
    *,
    mean: Parameter = 0.0,
    std: Parameter = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the normal distribution between two bounds.

    All parameters are numbers or tensors.

    - `low`, `high`: the bounds, both included.
    - `mean`, `std`: the mean and the standard deviation of the distribution without bounds.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of the parameters unless given.
    Dtypes: floats, that of the parameters or float32 unless `dtype` is given.
    Accuracy: by the inverse error function; if both bounds are 3 standard deviations or more on one
    side of the mean, by Newton's method for the tail.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.

    >>> import dovetail as dt
    >>> x = dt.random.truncated_normal(-1.0, 1.0, 9)
    >>> bool((x >= -1).all() & (x <= 1).all())
    True
    """
    names = ("low", "high", "mean", "std")
    resolved = resolve_parameters(
        "truncated_normal", names, (low, high, mean, std), shape, dtype, device
    )
    (a, b, m, s), sizes, d, on = resolved
    u = generator_or_default("truncated_normal", generator).uniform(sizes, dtype=d, device=on)
    erf = ops.TABLE["erf"]
    ends = [apply(erf, (((u * 0.0 + e) - m) / (s * math.sqrt(2.0)),)) for e in (a, b)]
    last = largest_below(1.0, d)  # its inverse is finite
    height = apply(ops.CLIP, (ends[0] + (ends[1] - ends[0]) * u, -last, last))
    x = erfinv(height) * (s * math.sqrt(2.0)) + m
    # the host can compare numbers: they may be outside of the tails
    if (
        any(isinstance(v, Tensor) for v in (a, b, m, s))
        or a - m > TAIL_DEVIATIONS_MIN * s
        or b - m < -TAIL_DEVIATIONS_MIN * s
    ):
        x = _correct_tails(x, u, a, b, m, s)
    return cast(apply(ops.CLIP, (x, a, b)), d)


TAIL_DEVIATIONS_MIN = 3.0  # standard deviations beyond which 1 - erf has lost digits


def _correct_tails(
    x: Tensor,
    u: Tensor,
    low: Tensor | float,
    high: Tensor | float,
    mean: Tensor | float,
    std: Tensor | float,
) -> Tensor:
    """Return x, with accurate variables where both bounds are in one tail."""
    u = cast(u, u.dtype.compute)
    lower, upper = ((u * 0.0 + end - mean) / std for end in (low, high))
    right, left = lower > TAIL_DEVIATIONS_MIN, upper < -TAIL_DEVIATIONS_MIN
    near = apply(ops.WHERE, (right, lower, apply(ops.WHERE, (left, -upper, TAIL_DEVIATIONS_MIN))))
    far = apply(ops.WHERE, (right, upper, apply(ops.WHERE, (left, -lower, math.inf))))
    # the exponent of the probability beyond y is y * y / 2 - log(mills(y))
    first = _mills_ratio(near)
    tail_ratio = exp((near - far) * ((near + far) * 0.5)) * (_mills_ratio(far) / first)
    exponent = -log1p(u * (tail_ratio - 1.0))
    y = near + exponent * 2.0 / (near + sqrt(near * near + exponent * 2.0))
    for _ in range(3):
        ratio = _mills_ratio(y)
        error = (y - near) * ((y + near) * 0.5) - log(ratio / first) - exponent
        y = apply(ops.MAXIMUM, (y - error * ratio, near))
    y = apply(ops.WHERE, (right, y, -y)) * std + mean
    return apply(ops.WHERE, (right | left, y, x))


def _mills_ratio(y: Tensor) -> Tensor:
    """Return the probability beyond y over the density at y, by its continued fraction."""
    fraction = y
    for k in range(24, 0, -1):
        fraction = y + float(k) / fraction
    return 1.0 / fraction


# --- rejection methods ----------------------------------------------------------------------------


@public(out=True)
def gamma(
    concentration: Parameter,
    scale: Parameter = 1.0,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the gamma distribution with mean concentration * scale.

    - `concentration`: NumPy's `shape`, its first parameter: a positive number or tensor.
    - `scale`: NumPy's second parameter: a positive number or tensor.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of the parameters unless given.
    Dtypes: floats, that of the parameters or float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.
    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", 2000, of ten
    proposals.

    >>> import dovetail as dt
    >>> bool((dt.random.gamma(2.0, 1.0, 9) > 0).all())
    True
    """
    names = ("concentration", "scale")
    resolved = resolve_parameters("gamma", names, (concentration, scale), shape, dtype, device)
    (k, s), sizes, d, on = resolved
    return cast(_draw_gamma(generator_or_default("gamma", generator), k, sizes, d, on) * s, d)


def _draw_gamma(
    g: Generator, k: Tensor | float, sizes: Sequence[int], d: DType, device: DeviceLike
) -> Tensor:
    """Draw gamma variables of concentration `k` and scale 1."""
    return _boost(*_draw_gamma_factors(g, k, sizes, d, device))


def _draw_gamma_factors(
    g: Generator, k: Tensor | float, sizes: Sequence[int], d: DType, device: DeviceLike
) -> tuple[Tensor, Tensor, Tensor]:
    """Draw x and log(u) such that x u**(1 / k) are gamma variables; return them and k.

    x does not underflow. Where k is 1 or more, log(u) is 0.
    """
    wide = float64 if d is float64 else float32
    boost = open_uniform(g, sizes, wide, device)
    k = boost * 0.0 + k
    small = k < 1.0
    c = apply(ops.WHERE, (small, k + 1.0, k)) - 1.0 / 3.0
    b = 1.0 / sqrt(c * 9.0)
    accepted = c  # the most probable value, if no proposal is accepted
    is_accepted = small & ~small
    for _ in range(GAMMA_PROPOSALS_MAX):
        x = g.normal(sizes, dtype=wide, device=device)
        u = open_uniform(g, sizes, wide, device)
        v = x * b + 1.0
        v = v * v * v
        accepts = (v > 0.0) & (log(u) < x * x * 0.5 + c - c * v + c * log(apply(ops.ABS, (v,))))
        accepted = apply(ops.WHERE, (accepts & ~is_accepted, c * v, accepted))
        is_accepted = is_accepted | accepts
    return accepted, apply(ops.WHERE, (small, log(boost), 0.0)), k


def _boost(x: Tensor, log_u: Tensor, k: Tensor) -> Tensor:
    """Return x u**(1 / k) from log(u); 0 where that underflows and where k is 0."""
    small = k < 1.0
    product = x * exp(log_u / apply(ops.WHERE, (small, k, 1.0)))
    return apply(ops.WHERE, (small, apply(ops.WHERE, (k > 0.0, product, 0.0)), x))


def _is_exact(total: Tensor) -> Tensor:
    """Return True where no summand of a sum can have lost digits to underflow or overflow."""
    f = FORMATS[total.dtype]
    return (total >= f.smallest_normal) & (total <= f.max)


@public(out=True)
def beta(
    a: Parameter,
    b: Parameter,
    shape: Extents | None = None,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats in 0..1 from the beta distribution with mean a / (a + b).

    - `a`, `b`: positive numbers or tensors.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; that of the parameters unless given.
    Dtypes: floats, that of the parameters or float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.
    Source: a quotient of two gamma variables; see `gamma`.

    >>> import dovetail as dt
    >>> x = dt.random.beta(2.0, 3.0, 9)
    >>> bool((x >= 0).all() & (x <= 1).all())
    True
    """
    (p, q), sizes, d, on = resolve_parameters("beta", ("a", "b"), (a, b), shape, dtype, device)
    g = generator_or_default("beta", generator)
    (x, log_u, j), (y, log_v, k) = (_draw_gamma_factors(g, c, sizes, d, on) for c in (p, q))
    gamma_x, gamma_y = _boost(x, log_u, j), _boost(y, log_v, k)
    total = gamma_x + gamma_y
    # by logarithms; divide by the lesser concentration last, since 1 / k may be infinite
    least = apply(ops.MINIMUM, (apply(ops.MINIMUM, (j, k)), 1.0))
    odds = (log_u * (least / j) - log_v * (least / k)) / least + (log(x) - log(y))
    share = 1.0 / (exp(-odds) + 1.0)
    return cast(apply(ops.WHERE, (_is_exact(total), gamma_x / total, share)), d)


@public(out=True)
def dirichlet(
    alpha: Array,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw vectors of positive floats that sum to 1 from the Dirichlet distribution.

    - `alpha`: a vector of positive concentrations.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints; the result is (*shape, alpha's length).
    Dtypes: floats, that of `alpha` or float32 unless `dtype` is given.
    Raises: DTypeError, ShapeError, DeviceError, ArgumentTypeError.
    Source: gamma variables over their sum; see `gamma`.

    >>> import dovetail as dt
    >>> dt.random.dirichlet([1.0, 2.0, 3.0], 4).shape
    (4, 3)
    """
    (k,), own, d, on = resolve_parameters("dirichlet", ("alpha",), (alpha,), None, dtype, device)
    if len(own) != 1:
        raise ShapeError(f"dirichlet: alpha must be a vector, got shape {own}")
    sizes = (*extents("dirichlet", shape), *own)
    x, log_u, k = _draw_gamma_factors(generator_or_default("dirichlet", generator), k, sizes, d, on)
    evaluate(x, log_u, k)  # several passes read them
    product = _boost(x, log_u, k)
    total = sum_of(product, axis=-1, keepdims=True)
    # by logarithms; divide by the least concentration last, since 1 / k may be infinite
    least = apply(ops.MINIMUM, (min_of(k, axis=-1, keepdims=True), 1.0))
    logs = log_u * (least / k)
    logs = (logs - max_of(logs, axis=-1, keepdims=True)) / least + log(x)
    return cast(apply(ops.WHERE, (_is_exact(total), product / total, softmax(logs))), d)


# --- choices --------------------------------------------------------------------------------------


@public(out=True, widen=False)
def choice(
    x: int | Array,
    shape: Extents = (),
    *,
    replace: bool = True,
    p: Array | None = None,
    axis: int = 0,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw random elements of `x` along an axis, or of the integers 0..x-1.

    - `x`: an int, or a tensor of elements.
    - `replace`: True may choose an element several times.
    - `p`: the probabilities, which the host reads; None takes equal ones.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints, which replaces the axis.
    Dtypes: x's, for an int int64.
    Raises: ArgumentError for probabilities that are negative or do not sum to 1, or for more
    elements than `x` has; ShapeError, AxisError, DTypeError, DeviceError.
    See also: `random.permutation`, `random.integers`.

    >>> import dovetail as dt
    >>> sorted(dt.random.choice(3, 3, replace=False).tolist())
    [0, 1, 2]
    """
    g, sizes = generator_or_default("choice", generator), extents("choice", shape)
    if isinstance(x, ARRAY_TYPES):
        x = asarray(x, device=device)
    if isinstance(x, Tensor):
        n, device = x.shape[lay.axis("choice", axis, x.ndim)], x.device
    else:
        n = integer("choice", x, "x", 0, 1 << 40)
    at = _choose_positions(g, n, sizes, flag("choice", replace, "replace"), p, device)
    return take(x, at, axis=axis) if isinstance(x, Tensor) else at


def _choose_positions(
    g: Generator, n: int, sizes: tuple[int, ...], replace: bool, p: Array | None, device: DeviceLike
) -> Tensor:
    """Draw positions in 0..n-1, weighted by `p`, which the host reads.

    Raises: ArgumentError if there are too few values, or `p` is negative or does not sum to 1;
    ShapeError unless `p` has n elements.
    """
    count = math.prod(sizes)
    if count and not n:
        raise ArgumentError(f"choice: cannot draw {count} samples from 0 values")
    if not replace and count > n:
        raise ArgumentError(
            f"choice: cannot draw {count} samples from {n} values without replacement; "
            "pass replace=True"
        )
    if p is None:
        if replace:
            return g.integers(0, max(n, 1), sizes, device=device)
        return g.permutation(n, device=device)[:count].reshape(sizes)
    weights = read_values("choice", p) if isinstance(p, Tensor) else np.asarray(p, np.float64)
    if weights.shape != (n,):
        raise ShapeError(f"choice: p must have shape ({n},), got {weights.shape}")
    if not (np.all(weights >= 0) and abs(float(weights.sum()) - 1.0) < 1e-5):
        raise ArgumentError(
            f"choice: p must not be negative and must sum to 1, got the sum {weights.sum():g}"
        )
    home, wide = usable(device, "choice"), device_supporting(float64, device)
    shares = asarray(weights.astype(np.float64), device=wide)
    u = g.uniform(sizes if replace else (n,), dtype=float64, device=wide)
    if replace:
        total = cumulative_sum(shares)
        return move(searchsorted(total, u * total[-1:].reshape(()), side="right"), home)
    if np.count_nonzero(weights) < count:
        raise ArgumentError(
            f"choice: cannot draw {count} samples from {np.count_nonzero(weights)} values with "
            "positive p; pass replace=True"
        )
    # the smallest exponential waits. Source: Efraimidis and Spirakis, 2006
    longest = FORMATS[float64].max  # for elements with positive probability
    waits = apply(ops.MINIMUM, (-log1p(-u) / shares, longest))
    waits = apply(ops.WHERE, (shares > 0.0, waits, math.inf))
    return move(topk(waits, count, largest=False).indices.reshape(sizes), home)


@public(widen=False)
def shuffle(x: Tensor, *, axis: int = 0, generator: Generator | None = None) -> Tensor:
    """Put the slices of this tensor along `axis` in random order, and return it.

    `permutation` returns a new tensor instead.

    - `generator`: the random generator; None is that of this process.

    Shapes: of at least 1 dimension; all views of the memory see the write.
    Dtypes: all.
    Raises: AxisError, ReadOnlyError, GradientError for a leaf that requires one, DTypeError.

    >>> import dovetail as dt
    >>> sorted(dt.random.shuffle(dt.arange(4)).tolist())
    [0, 1, 2, 3]
    """
    d = lay.axis("shuffle", axis, strided("shuffle", x).ndim)
    order = generator_or_default("shuffle", generator).permutation(x.shape[d], device=x.device)
    return write_result("shuffle", x, [take(x, order, axis=d)])
