"""Random numbers as functions of a key: those of `jax.random`, with the same bits.

A key is a tensor of two uint32; its generator is Threefry-2x32 with 20 rounds. The word of an
element depends on the key and the element's index only, so results are the same on every device,
under `vmap` and in `jit`. Bits and uniform numbers equal JAX's; normal ones and others may differ
in the last bits, because functions such as `erfinv` do.
Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import dovetail as dt
from dovetail.extend import ArgumentError

from .dtype_config import as_tensor, config
from .lax import at_axis

__all__ = [
    "PRNGKey",
    "bernoulli",
    "bits",
    "categorical",
    "cauchy",
    "choice",
    "exponential",
    "fold_in",
    "gumbel",
    "key",
    "key_data",
    "laplace",
    "logistic",
    "multivariate_normal",
    "normal",
    "permutation",
    "rademacher",
    "randint",
    "split",
    "truncated_normal",
    "uniform",
    "wrap_key_data",
]

Shape: TypeAlias = int | Sequence[int]

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


@dt.elementwise
def _threefry(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Return two random words of a key of two words, and a counter of two."""
    keys = k0, k1, k0 ^ k1 ^ _PARITY
    x0, x1 = x0 + k0, x1 + k1
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = ((x1 << r) | (x1 >> (32 - r))) ^ x0
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + (group + 1)
    return x0, x1


def _words(key: dt.Tensor, shape: tuple[int, ...]) -> tuple[dt.Tensor, dt.Tensor]:
    """Return two random words for each element of a shape."""
    size = math.prod(shape)
    low = dt.arange(size, dtype=dt.uint32, device=key.device).reshape(shape)
    k0, k1 = key[..., 0], key[..., 1]
    return _threefry(k0, k1, dt.zeros_like(low), low)  # type: ignore[no-any-return]  # it is a tensor


def _shape(shape: Shape) -> tuple[int, ...]:
    """Return a shape as a tuple."""
    return (shape,) if isinstance(shape, int) else tuple(shape)


def _float(dtype: Any) -> dt.DType:
    """Return a float dtype; None and Python's float are the default one."""
    if dtype in (None, float):
        return dt.float64 if config.jax_enable_x64 else dt.float32
    return dt.zeros((), dtype=dtype).dtype


def _number(value: Any, dtype: Any, key: dt.Tensor) -> dt.Tensor:
    """Return a parameter as a tensor of a dtype on the device of the key."""
    if isinstance(value, (bool, int, float)):
        return dt.full((), value, dtype=dtype, device=key.device)
    return as_tensor(value).to(key.device).astype(dtype)


# --- keys -----------------------------------------------------------------------------------------


def key(seed: Any) -> dt.Tensor:
    """Return the key of a seed: two uint32.

    - `seed`: an int, or a tensor of one.

    >>> import dovetail.jax as jax
    >>> jax.random.key(42).tolist()
    [0, 42]
    """
    if isinstance(seed, dt.Tensor):
        low = seed.astype(dt.uint32)
        return dt.stack([dt.zeros_like(low), low])
    wide = int(seed) & 0xFFFFFFFFFFFFFFFF
    return dt.asarray([wide >> 32 if config.jax_enable_x64 else 0, wide & 0xFFFFFFFF], dt.uint32)


PRNGKey = key


def key_data(keys: dt.Tensor) -> dt.Tensor:
    """Return the words of a key, which is the key itself.

    - `keys`: a key, or several.

    >>> import dovetail.jax as jax
    >>> jax.random.key_data(jax.random.key(1)).tolist()
    [0, 1]
    """
    return keys


wrap_key_data = key_data


def split(key: dt.Tensor, num: Shape = 2) -> dt.Tensor:
    """Return new keys, which are independent of each other and of the key.

    - `key`: a key.
    - `num`: the number of keys, or a shape.

    >>> import dovetail.jax as jax
    >>> first, second = jax.random.split(jax.random.key(0))
    >>> first.tolist()
    [1797259609, 2579123966]
    """
    return dt.stack(_words(key, _shape(num)), axis=-1)


def fold_in(key: dt.Tensor, data: Any) -> dt.Tensor:
    """Return a new key of a key and an integer.

    - `key`: a key.
    - `data`: an integer, such as the number of a step.

    >>> import dovetail.jax as jax
    >>> jax.random.fold_in(jax.random.key(0), 1).tolist()
    [928981903, 3453687069]
    """
    if not isinstance(data, dt.Tensor):
        data = dt.asarray(int(data) & 0xFFFFFFFF, dtype=dt.uint32)
    low = data.astype(dt.uint32)
    return dt.stack(_threefry(key[..., 0], key[..., 1], dt.zeros_like(low), low), axis=-1)


# --- bits and numbers -----------------------------------------------------------------------------


def bits(key: dt.Tensor, shape: Shape = (), dtype: Any = dt.uint32) -> dt.Tensor:
    """Return random unsigned integers.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: uint8, uint16, uint32 or uint64.

    >>> import dovetail.jax as jax
    >>> jax.random.bits(jax.random.key(0), (2,)).tolist()
    [4070199207, 4202968722]
    """
    high, low = _words(key, _shape(shape))
    if dt.zeros((), dtype=dtype).dtype is dt.uint64:
        return (high.astype(dt.uint64) << 32) | low.astype(dt.uint64)
    return (high ^ low).astype(dtype)


def uniform(
    key: dt.Tensor, shape: Shape = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> dt.Tensor:
    """Return uniform numbers, minval <= u < maxval.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.
    - `minval`, `maxval`: numbers, or tensors that are broadcast to the shape.

    >>> import dovetail.jax as jax
    >>> jax.random.uniform(jax.random.key(0), (2,)).tolist()
    [0.41845703125, 0.6004999876022339]
    """
    shape, dtype = _shape(shape), _float(dtype)
    if dtype is dt.float64:
        fraction = (bits(key, shape, dt.uint64) >> 12).astype(dt.float64) * 2.0**-52
    else:
        width = {dt.float32: 23, dt.float16: 10, dt.bfloat16: 7}[dtype]
        word = {23: dt.uint32, 10: dt.uint16, 7: dt.uint8}[width]
        shift = word.bits - width
        fraction = (bits(key, shape, word) >> shift).astype(dtype) * 2.0**-width
    low, high = (_number(v, dtype, key) for v in (minval, maxval))
    return dt.maximum(low, fraction * (high - low) + low)


def normal(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return standard normal numbers.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.normal(jax.random.key(0), (2, 3)).shape
    (2, 3)
    """
    dtype = _float(dtype)
    smallest = dt.nextafter(*(_number(v, dtype, key) for v in (-1.0, 0.0)))
    return dt.erfinv(uniform(key, shape, dtype, smallest, 1.0)) * math.sqrt(2)


def truncated_normal(
    key: dt.Tensor, lower: Any, upper: Any, shape: Shape | None = None, dtype: Any = None
) -> dt.Tensor:
    """Return normal numbers between two bounds.

    - `key`: a key.
    - `lower`, `upper`: the bounds.
    - `shape`: the shape of the result; None is that of the bounds.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> float(jax.random.truncated_normal(jax.random.key(0), 1.0, 1.5)) > 1
    True
    """
    low, high = (_number(v, _float(dtype), key) for v in (lower, upper))
    if shape is None:
        shape = dt.broadcast_shapes(low.shape, high.shape)
    ends = (dt.erf(v / math.sqrt(2)) for v in (low, high))
    x = dt.erfinv(uniform(key, shape, dtype, *ends)) * math.sqrt(2)
    infinity = dt.full_like(low, math.inf)
    return dt.clip(x, dt.nextafter(low, infinity), dt.nextafter(high, -infinity))


def multivariate_normal(
    key: dt.Tensor, mean: Any, cov: Any, shape: Shape | None = None, dtype: Any = None
) -> dt.Tensor:
    """Return normal vectors of a mean and a covariance.

    - `key`: a key.
    - `mean`: a vector.
    - `cov`: a positive definite matrix.
    - `shape`: the shape of the result without its last axis.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.multivariate_normal(jax.random.key(0), dt.zeros(2), dt.eye(2), (5,)).shape
    (5, 2)
    """
    center, matrix = (_number(v, _float(dtype), key) for v in (mean, cov))
    if shape is None:
        shape = dt.broadcast_shapes(center.shape[:-1], matrix.shape[:-2])
    noise = normal(key, (*_shape(shape), center.shape[-1]), dtype)
    return center + (dt.linalg.cholesky(matrix) @ noise[..., None])[..., 0]


def bernoulli(key: dt.Tensor, p: Any = 0.5, shape: Shape | None = None) -> dt.Tensor:
    """Return bools that are true with probability p.

    - `key`: a key.
    - `p`: the probability, a number or a tensor.
    - `shape`: the shape of the result; None is that of p.

    >>> import dovetail.jax as jax
    >>> jax.random.bernoulli(jax.random.key(0), 1.0).item()
    True
    """
    limit = _number(p, _float(None), key) if isinstance(p, (int, float)) else as_tensor(p)
    return uniform(key, limit.shape if shape is None else shape, limit.dtype) < limit


def rademacher(key: dt.Tensor, shape: Shape = (), dtype: Any = dt.int32) -> dt.Tensor:
    """Return -1 or 1 with equal probability.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: the dtype of the result.

    >>> import dovetail.jax as jax
    >>> abs(jax.random.rademacher(jax.random.key(0)).item())
    1
    """
    return 2 * bernoulli(key, 0.5, shape).astype(dtype) - 1


def randint(
    key: dt.Tensor, shape: Shape, minval: Any, maxval: Any, dtype: Any = dt.int32
) -> dt.Tensor:
    """Return integers, minval <= k < maxval.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `minval`, `maxval`: integers, or tensors that are broadcast to the shape.
    - `dtype`: the dtype of the result, of at most 32 bits.

    >>> import dovetail.jax as jax
    >>> jax.random.randint(jax.random.key(0), (3,), 5, 6).tolist()
    [5, 5, 5]
    """
    low, high = (_number(v, dtype, key) for v in (minval, maxval))
    span = dt.where(high > low, high - low, 1).astype(dt.uint32)
    upper, lower = (bits(k, shape) for k in split(key))
    factor = 2**16 % span
    factor = factor * factor % span
    return low + ((upper % span * factor + lower % span) % span).astype(low.dtype)


# --- other distributions --------------------------------------------------------------------------


def exponential(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return exponentially distributed numbers of rate 1.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.exponential(jax.random.key(0)).item() >= 0
    True
    """
    return -dt.log1p(-uniform(key, shape, dtype))


def gumbel(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return numbers of the standard Gumbel distribution.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.gumbel(jax.random.key(0), (2,)).shape
    (2,)
    """
    return -dt.log(-dt.log(_open_uniform(key, shape, dtype)))


def logistic(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return numbers of the standard logistic distribution.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.logistic(jax.random.key(0), (2,)).shape
    (2,)
    """
    u = _open_uniform(key, shape, dtype)
    return dt.log(u / (1 - u))


def laplace(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return numbers of the standard Laplace distribution.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.laplace(jax.random.key(0), (2,)).shape
    (2,)
    """
    u = uniform(key, shape, dtype, -1.0 + dt.finfo(_float(dtype)).eps / 2, 1.0)
    return dt.sign(u) * dt.log1p(-dt.abs(u))


def cauchy(key: dt.Tensor, shape: Shape = (), dtype: Any = None) -> dt.Tensor:
    """Return numbers of the standard Cauchy distribution.

    - `key`: a key.
    - `shape`: the shape of the result.
    - `dtype`: a float dtype; None is float32.

    >>> import dovetail.jax as jax
    >>> jax.random.cauchy(jax.random.key(0), (2,)).shape
    (2,)
    """
    u = uniform(key, shape, dtype, dt.finfo(_float(dtype)).eps, 1.0)
    return dt.tan((u - 0.5) * math.pi)


def _open_uniform(key: dt.Tensor, shape: Shape, dtype: Any) -> dt.Tensor:
    """Return uniform numbers between 0 and 1 that are not 0."""
    return uniform(key, shape, dtype, dt.finfo(_float(dtype)).smallest_normal, 1.0)


# --- choices --------------------------------------------------------------------------------------


def categorical(
    key: dt.Tensor, logits: Any, axis: int = -1, shape: Shape | None = None
) -> dt.Tensor:
    """Return indices with probabilities in proportion to the exponentials of the logits.

    - `key`: a key.
    - `logits`: logarithms of weights.
    - `axis`: the axis of the categories.
    - `shape`: the shape of the result; None is that of the logits without the axis.

    >>> import dovetail.jax as jax
    >>> jax.random.categorical(jax.random.key(0), [0.0, -dt.inf]).item()
    0
    """
    x = dt.moveaxis(as_tensor(logits), axis, -1)
    shape = x.shape[:-1] if shape is None else _shape(shape)
    noise = gumbel(key, (*shape, x.shape[-1]), x.dtype)
    return dt.argmax(noise + x, axis=-1).astype(dt.int32)


def permutation(key: dt.Tensor, x: Any, axis: int = 0) -> dt.Tensor:
    """Return the slices of a tensor in random order.

    - `key`: a key.
    - `x`: a tensor, or an int n for `jnp.arange(n)`.
    - `axis`: the axis of the slices.

    >>> import dovetail.jax as jax
    >>> sorted(jax.random.permutation(jax.random.key(0), 3).tolist())
    [0, 1, 2]
    """
    if isinstance(x, int):
        return permutation(key, dt.arange(x, dtype=dt.int32, device=key.device))
    x = as_tensor(x)
    n = x.shape[axis]
    order = dt.arange(n, dtype=dt.int32, device=key.device)
    # A sort by random words may meet equal words: several sorts make their traces unlikely.
    rounds = math.ceil(3 * math.log(max(1, n)) / math.log(2**32 - 1))
    for _ in range(rounds):
        key, word_key = split(key)
        order = dt.take(order, dt.argsort(bits(word_key, (n,)), stable=True), axis=0)
    return dt.take(x, order, axis=axis)


def choice(
    key: dt.Tensor, a: Any, shape: Shape = (), replace: bool = True, p: Any = None, axis: int = 0
) -> dt.Tensor:
    """Return random slices of a tensor.

    - `key`: a key.
    - `a`: a tensor, or an int n for `jnp.arange(n)`.
    - `shape`: the shape of the draws.
    - `replace`: False draws each slice at most once.
    - `p`: the probability of each slice; None is the same for all.
    - `axis`: the axis of the slices.

    Raises: ArgumentError for more draws than slices without replacement.

    >>> import dovetail.jax as jax
    >>> jax.random.choice(jax.random.key(0), 3, (4,)).shape
    (4,)
    """
    shape = _shape(shape)
    x = dt.arange(a, dtype=dt.int32, device=key.device) if isinstance(a, int) else as_tensor(a)
    n, draws = x.shape[axis], math.prod(shape)
    if not replace and draws > n:
        raise ArgumentError(
            f"choice: cannot draw {draws} samples from {n} values without replacement; pass "
            "replace=True"
        )
    if p is None and not replace:
        return dt.take(permutation(key, x, axis), dt.arange(draws), axis=axis).reshape(
            (*x.shape[:axis], *shape, *x.shape[axis + 1 :])
        )
    if p is None:
        index = randint(key, shape, 0, n)
    elif replace:
        sums = dt.cumulative_sum(as_tensor(p))
        index = dt.searchsorted(sums, sums[-1] * (1 - uniform(key, shape, sums.dtype)))
    else:
        scores = dt.log(as_tensor(p)) + gumbel(key, (n,))
        index = dt.argsort(-scores, stable=True)[:draws].reshape(shape)
    return at_axis(x, index, axis)
