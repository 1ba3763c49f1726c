"""Random generators, and the distributions that are rows of the op table.

`samplers` and `discrete_samplers` compose other distributions from these.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from inspect import unwrap
from typing import cast as type_cast

from ...argument_checks import dimensions, instance, integer, real, refused, sequence, shown
from ...argument_checks import integers as ints
from ...compat import hints
from ...compat.aliases import find_original
from ...device_class import usable
from ...dtypes import FORMATS, DType, float32, float64, int64, uint32, uint64
from ...engine import tracer_api
from ...errors import ArgumentError, DTypeError
from ...graph.expr import node, spec
from ...layout import Shape
from ...locks import Lock
from ...ops import table as ops
from ...tensor.primitives import apply
from ...tensor.tensor import Tensor, create_tensor
from ..creation.constructors import arange, complex_from_parts, extents
from ..datatypes import DeviceLike, DTypeLike, any_dtype, cast, get_default_dtype, real_dtype
from ..indexing.index_reads import take
from ..sorting.stable_sort import order_of, sort_by_bits
from ..variants import public

__all__ = [
    "Generator",
    "default_rng",
    "get_state",
    "integers",
    "manual_seed",
    "normal",
    "permutation",
    "set_state",
    "uniform",
]

LAZY_FUNCTIONS = {  # name -> the module that is loaded at its first use
    **dict.fromkeys(("binomial", "categorical", "multinomial", "poisson"), "discrete_samplers"),
    **dict.fromkeys((
        "bernoulli", "beta", "choice", "dirichlet", "exponential", "gamma", "laplace", "rand",
        "rand_like", "randint", "randn", "randn_like", "shuffle", "truncated_normal",
    ), "samplers"),
}  # fmt: skip
Extents = int | Sequence[int]
PACKED_POSITION_BITS_MAX = 22  # bits of a key that hold its position; 42 random ones are left
ALL_UINT64 = (0, 0)  # scalars of RANDOM_BELOW for all integers: 2**64, which wraps to 0, from 0 on


class Generator:
    """A stream of random numbers: a seed and the number of elements already used.

    Each element has a fixed position in the stream, for every device, shape and number of threads.

    - `seed`: an int, taken modulo 2**64; None seeds from the system's entropy.

    Source: Philox4x32-10, from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
    2, 3", SC 2011.

    >>> import dovetail as dt
    >>> a, b = dt.random.Generator(7), dt.random.Generator(7)
    >>> bool((a.uniform(3) == b.uniform(3)).all())
    True
    """

    def __init__(self, seed: int | None = None) -> None:
        self._lock = Lock()
        self._seed = self._offset = 0
        if seed is None:
            _run_effect(self._seed_from_entropy)
        else:
            self.manual_seed(integer("Generator", seed, "seed"))

    def __repr__(self) -> str:
        return f"Generator(seed={self._seed}, offset={self._offset})"

    def _seed_from_entropy(self) -> None:
        """Restart at the start of the stream of a seed from the operating system."""
        self._set_state(int.from_bytes(os.urandom(8)), 0)

    def _set_state(self, seed: int, offset: int) -> None:
        """Set seed and offset, both modulo 2**64, under the lock."""
        with self._lock:
            self._seed, self._offset = seed % (1 << 64), offset % (1 << 64)

    def manual_seed(self, seed: int) -> Generator:
        """Restart at the start of the stream of `seed`, and return the generator.

        - `seed`: an int, taken modulo 2**64.

        Raises: ArgumentTypeError unless it is an int.
        """
        self.state = (integer("manual_seed", seed, "seed"), 0)
        return self

    @property
    def state(self) -> tuple[int, int]:
        """Return (seed, offset); a generator with the same state continues at the same element."""
        return self._seed, self._offset

    @state.setter
    def state(self, state: tuple[int, int]) -> None:
        """Continue from (seed, offset); in a traced function, also in each replay."""
        numbers = ints("set_state", sequence("set_state", state, "state", "two ints"), "state")
        if len(numbers) != 2:
            raise refused("set_state", "state", "two ints, (seed, offset)", state)
        seed, offset = numbers
        _run_effect(partial(self._set_state, seed, offset))

    def spawn(self, n: int) -> list[Generator]:
        """Return `n` new generators whose streams are independent of each other and of this one.

        The seeds are drawn from this generator: an equal seed gives equal generators.

        - `n`: the number of generators.

        Raises: ArgumentError for a negative n, ArgumentTypeError.

        >>> import dovetail as dt
        >>> a, b = dt.random.default_rng(7).spawn(2)
        >>> a.state == b.state
        False
        """
        n = integer("spawn", n, "n", 0, 1 << 20)
        seed, offset = self._reserve(n)
        return [Generator(_spawn_seed(seed, offset + k)) for k in range(n)]

    def __getattr__(self, name: str) -> Callable[..., Tensor]:
        """Return the method for a function of `dt.random`: `g.exponential(2.0, 3)`."""
        if (original := find_original("Generator", name)) is not None:
            return type_cast(Callable[..., Tensor], getattr(self, original))
        if name.startswith("_") or name not in LAZY_FUNCTIONS:
            raise hints.missing_attribute(self, name)
        sampler: Callable[..., Tensor] = getattr(sys.modules[__package__], name)
        return partial(sampler, generator=self)

    # Copies and pickles do not contain the lock.
    def __reduce__(self) -> tuple[Callable[..., Generator], tuple[tuple[int, int]]]:
        return _generator_at, (self.state,)

    def _reserve(self, n: int) -> tuple[int, int]:
        """Reserve the next `n` elements: return their seed and offset, and advance the offset."""
        with self._lock:
            position = self._seed, self._offset
            self._offset = (self._offset + n) % (1 << 64)
        return position

    @public(out=True, widen=False)
    def uniform(
        self,
        shape: Extents = (),
        *,
        low: float = 0.0,
        high: float = 1.0,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Draw floats from the uniform distribution over low <= x < high.

        A number that rounds to `high` becomes the largest number below it; without a number between
        the bounds all results are `low`.

        - `low`, `high`: the bounds, numbers that are finite in the dtype.

        Shapes: `shape` is an int or a tuple of ints.
        Dtypes: floats, float32 unless `dtype` is given. Steps of (high - low) times 2**-24 in
        float32, 2**-53 in float64, 2**-11 in float16, 2**-8 in bfloat16.
        Raises: ArgumentError for bounds that are not finite in the dtype, DTypeError for a dtype
        that is no float, ShapeError, DeviceError.
        Source: Philox4x32-10, from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as
        1, 2, 3", SC 2011.

        >>> import dovetail as dt
        >>> x = dt.random.default_rng(7).uniform((2, 3), low=-1, high=1)
        >>> x.shape, bool((x >= -1).all() & (x <= 1).all())
        ((2, 3), True)
        """
        d, sizes = _resolve_float("uniform", dtype), extents("uniform", shape)
        is_unit = type(low) is type(high) is float and (low, high) == (0.0, 1.0)
        if not is_unit:
            low = _require_finite("uniform", "low", low, d)
            high = _require_finite("uniform", "high", high, d)
        if d is float64:
            u = self._draw(ops.RANDOM_UNIFORM64, sizes, (), (), d, device)
        else:
            digits = FORMATS[d].digits  # so many bits keep the number below 1
            u = self._draw(
                ops.RANDOM_UNIFORM32,
                sizes,
                (32 - digits, 2.0**-digits),
                (uint32, float32),
                d,
                device,
            )
        if is_unit or (low, high) == (0.0, 1.0):
            return u
        if abs(_round_to_dtype(high - low, d)) <= FORMATS[d].max:
            x = apply(ops.ADD, (apply(ops.MULTIPLY, (u, high - low)), low))
        else:  # the range overflows, its half does not
            x = apply(ops.MULTIPLY, (u, high * 0.5 - low * 0.5))
            x = apply(ops.MULTIPLY, (apply(ops.ADD, (x, low * 0.5)), 2.0))
        if high < low:
            return x
        return apply(
            ops.MINIMUM,
            (x, max(largest_below(_round_to_dtype(high, d), d), _round_to_dtype(low, d))),
        )

    @public(out=True)
    def normal(
        self,
        shape: Extents = (),
        *,
        mean: complex = 0.0,
        std: float = 1.0,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Draw floats from the normal distribution, or complex numbers from the circular one.

        - `mean`: the mean, a number.
        - `std`: the standard deviation, a number. That of each part of a
          complex number is std / sqrt(2), so that the mean of |z - mean|**2 is std**2.

        Shapes: `shape` is an int or a tuple of ints.
        Dtypes: floats and complex, float32 unless `dtype` is given; float16 and bfloat16 are
        rounded from float32.
        Accuracy: all are within 6.66 standard deviations of the mean (8.57 in float64).
        Raises: DTypeError for an integer dtype, or a complex mean of floats; ShapeError,
        DeviceError.
        Source: Box and Muller, 1958, of bits by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC
        2011).

        >>> import dovetail as dt
        >>> dt.random.default_rng(7).normal((2, 3), mean=5.0).shape
        (2, 3)
        """
        sizes, std = extents("normal", shape), real("normal", std, "std")
        d = get_default_dtype() if dtype is None else any_dtype("normal", dtype)
        if d.kind == "c":
            both = (*sizes, 2)
            part = self.normal(both, std=std / math.sqrt(2.0), dtype=d.part, device=device)
            z = complex_from_parts(part[..., 0], part[..., 1])
            return z if mean == 0 else apply(ops.ADD, (z, complex(mean)))
        d, mean = _resolve_float("normal", dtype), real("normal", mean, "mean")
        op = ops.RANDOM_NORMAL64 if d is float64 else ops.RANDOM_NORMAL32
        z = self._draw(op, sizes, (), (), d, device)
        if (mean, std) == (0.0, 1.0):
            return z
        return apply(ops.ADD, (apply(ops.MULTIPLY, (z, std)), mean))

    @public(out=True, widen=False)
    def integers(
        self,
        low: int,
        high: int | None = None,
        shape: Extents = (),
        *,
        dtype: DTypeLike = None,
        device: DeviceLike = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """Draw integers from low <= k < high, or from 0 <= k < low without `high`.

        Probabilities of two numbers differ by at most (high - low) / 2**64.

        - `low`, `high`: the bounds, ints; without `high`, 0 <= k < low.

        Shapes: `shape` is an int or a tuple of ints.
        Dtypes: integers, int64 unless `dtype` is given.
        Raises: ArgumentError for an empty range or one beyond the dtype; DTypeError, ShapeError,
        DeviceError.
        Source: Lemire, "Fast random integer generation in an interval", 2019, without the
        rejection, of 64 bits by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).

        >>> import dovetail as dt
        >>> x = dt.random.default_rng(7).integers(1, 7, (2, 3))
        >>> x.shape, bool((x >= 1).all() & (x < 7).all())
        ((2, 3), True)
        """
        low = integer("integers", low, "low")
        low, high = (0, low) if high is None else (low, integer("integers", high, "high"))
        d = int64 if dtype is None else real_dtype("integers", dtype)
        if not d.is_integer:
            raise DTypeError(
                f"integers: dtype must be an integer dtype, got {d.name}; "
                "use dt.random.uniform for floats"
            )
        if not low < high:
            raise ArgumentError(
                f"integers: low must be below high, got low={shown(low)}, high={shown(high)}"
            )
        if not d.min <= low < high <= d.max + 1:
            raise ArgumentError(
                f"integers: low and high - 1 must fit into {d.name} ({d.min}..{d.max}), "
                f"got low={shown(low)}, high={shown(high)}"
            )
        n = (high - low) % (1 << 64)
        scalars = (n, low % (1 << 64))
        sizes = extents("integers", shape)
        return self._draw(ops.RANDOM_BELOW, sizes, scalars, (uint64, uint64), d, device)

    @public(out=True, widen=False)
    def permutation(
        self, x: int | Tensor, *, device: DeviceLike = None, out: Tensor | None = None
    ) -> Tensor:
        """Return the integers 0..x-1, or the slices of a tensor `x`, in random order.

        The slices are those along the first axis. Random 64-bit keys are drawn and sorted on the
        device, ties by position; up to 2**22 slices by as many upper bits as leave room for them.

        - `x`: the number of integers, or a tensor.

        Shapes: (x,), or that of the tensor.
        Dtypes: int64, or that of the tensor.
        Raises: ArgumentError for a tensor of no dimensions or a negative int, DeviceError.
        Source: keys by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).

        >>> import dovetail as dt
        >>> sorted(dt.random.default_rng(7).permutation(5).tolist())
        [0, 1, 2, 3, 4]
        """
        if isinstance(x, Tensor):
            if x.ndim == 0:
                raise ArgumentError("permutation: expected at least 1 dimension, got shape ()")
            return take(x, self.permutation(x.shape[0], device=x.device), axis=0)
        (x,) = dimensions("permutation", (integer("permutation", x, "x", 0),))
        kinds = (uint64, uint64)
        keys = self._draw(ops.RANDOM_BELOW, (x,), ALL_UINT64, kinds, uint64, device)
        bits = max(x - 1, 1).bit_length()
        if bits > PACKED_POSITION_BITS_MAX:
            return order_of(keys, 64)
        position, low = arange(x, dtype=uint64, device=keys.device), (1 << bits) - 1
        return cast(sort_by_bits(keys >> bits << bits | position, bits) & low, int64)

    def _draw(
        self,
        op: ops.Op,
        shape: Shape,
        scalars: Sequence[int | float],
        kinds: Sequence[DType],
        d: DType,
        device_like: DeviceLike,
    ) -> Tensor:
        """Reserve one number per element, and return the pending tensor that computes them."""
        result_spec = spec(
            shape, d, usable(device_like), op.name
        )  # raises before anything is drawn
        recorder = tracer_api.current()
        if recorder is None:
            args = (*self._reserve(result_spec.size), *scalars)
        else:
            args = (*recorder.draw(partial(self._reserve, result_spec.size)), *scalars)
            recorder.mark_drawn(args)
        return create_tensor(node(op, args, result_spec, ((uint64, uint64, *kinds), d)))


def _resolve_float(name: str, dtype: DTypeLike) -> DType:
    """Return a float dtype, the default one for None. Raises: DTypeError for others."""
    d = get_default_dtype() if dtype is None else real_dtype(name, dtype)
    if d.kind != "f":
        raise DTypeError(
            f"{name}: dtype must be floating-point, got {d.name}; "
            "use dt.random.integers for integers"
        )
    return d


def _require_finite(name: str, argument: str, x: float, d: DType) -> float:
    """Return `x`; raise ArgumentError if it is not finite after rounding to dtype `d`."""
    x = real(name, x, argument)
    if not abs(x) < math.inf or abs(_round_to_dtype(x, d)) > FORMATS[d].max:
        raise ArgumentError(
            f"{name}: {argument} must be finite in {d.name}, whose largest number is "
            f"{FORMATS[d].max:g}, got {x}"
        )
    return x


def _round_to_dtype(x: float, d: DType) -> float:
    """Round a number to a float dtype without a limit of the exponent."""
    if not abs(x) < math.inf:
        return x
    step = _spacing_at(x, d)
    return round(x / step) * step if x / step < 2.0**53 else x


def largest_below(x: float, d: DType) -> float:
    """Return the largest number of a float dtype below one of its numbers."""
    x = math.nextafter(x, -math.inf)
    step = _spacing_at(x, d)
    return math.floor(x / step) * step


def _spacing_at(x: float, d: DType) -> float:
    """Return the distance of neighbours in a float dtype at a number."""
    f = FORMATS[d]
    return max(math.ldexp(1.0, max(math.frexp(x)[1] - f.digits, -1074)), f.smallest)


def _run_effect(action: Callable[[], object]) -> None:
    """Change a generator now, and in each replay of the function that is being traced."""
    recorder = tracer_api.current()
    if recorder is None:
        action()
    else:
        recorder.run_effect(action)


def _spawn_seed(seed: int, k: int) -> int:
    """Return the seed of the k-th spawned generator. Source: SplitMix64's steps, twice."""
    for word in (k % (1 << 64), 0):
        seed = (seed + 0x9E3779B97F4A7C15 + word) % (1 << 64)
        seed = (seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9 % (1 << 64)
        seed = (seed ^ (seed >> 27)) * 0x94D049BB133111EB % (1 << 64)
        seed ^= seed >> 31
    return seed


def _generator_at(state: tuple[int, int]) -> Generator:
    """Return a generator that continues from a (seed, offset)."""
    generator = Generator(0)
    generator.state = state
    return generator


_METHODS = {
    name: unwrap(getattr(Generator, name))
    for name in ("uniform", "normal", "integers", "permutation")
}


def _method_of(g: Generator, name: str) -> Callable[..., Tensor]:
    """Return a generator's method without its `out` and error decorations."""
    if type(g) is not Generator:
        method: Callable[..., Tensor] = getattr(g, name)
        return method
    return partial(_METHODS[name], g)


# One generator with a lock for the whole process: one seed determines the draws of all threads.
_default = Generator()
reserve_by_default = _default._reserve


def generator_or_default(op: str, generator: Generator | None) -> Generator:
    """Return a Generator, or for None the default one. Raises: ArgumentTypeError for others."""
    return _default if generator is None else instance(op, generator, "generator", Generator)


@public(widen=False)
def default_rng(seed: int | None = None) -> Generator:
    """Return a new generator of random numbers.

    - `seed`: an int, taken modulo 2**64; None seeds from the system's entropy.

    Raises: ArgumentTypeError unless it is an int or None.
    See also: `random.Generator`, `random.manual_seed`.
    Source: Philox4x32-10, from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
    2, 3", SC 2011.

    >>> import dovetail as dt
    >>> dt.random.default_rng(7).state
    (7, 0)
    """
    return Generator(seed)


def manual_seed(seed: int) -> Generator:
    """Restart the default generator at the start of the stream of `seed`, and return it.

    - `seed`: an int, taken modulo 2**64.

    Raises: ArgumentTypeError unless it is an int.
    See also: `random.get_state`, `random.default_rng`, `random.Generator`.

    >>> import dovetail as dt
    >>> dt.random.manual_seed(7).state
    (7, 0)
    """
    return _default.manual_seed(seed)


def get_state() -> tuple[int, int]:
    """Return the state of the default generator: (seed, offset), the offset in elements.

    >>> import dovetail as dt
    >>> state = dt.random.get_state()
    >>> x = dt.random.uniform(3).tolist()
    >>> dt.random.set_state(state)
    >>> dt.random.uniform(3).tolist() == x
    True
    """
    return _default.state


def set_state(state: tuple[int, int]) -> None:
    """Make the default generator continue from a state.

    - `state`: the pair (seed, offset) that `get_state` returned; both are taken modulo 2**64.

    Raises: ArgumentError, ArgumentTypeError unless it is two ints.

    >>> import dovetail as dt
    >>> dt.random.set_state((7, 100))
    >>> dt.random.get_state()
    (7, 100)
    """
    _default.state = state


@public(in_place=True, out=True, widen=False)
def uniform(
    shape: Extents = (),
    *,
    low: float = 0.0,
    high: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the uniform distribution over low <= x < high.

    A number that rounds to `high` becomes the largest number below it; without a number between the
    bounds all results are `low`.

    - `low`, `high`: the bounds, numbers that are finite in the dtype.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: floats, float32 unless `dtype` is given. Steps of (high - low) times 2**-24 in float32,
    2**-53 in float64, 2**-11 in float16, 2**-8 in bfloat16.
    Raises: ArgumentError for bounds that are not finite in the dtype, DTypeError for a dtype that
    is no float, ShapeError, DeviceError.
    See also: `random.normal`, `random.integers`, `random.manual_seed`.
    Source: Philox4x32-10, from Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1,
    2, 3", SC 2011.

    >>> import dovetail as dt
    >>> x = dt.random.uniform((2, 3), low=-1, high=1)
    >>> x.shape, bool((x >= -1).all() & (x <= 1).all())
    ((2, 3), True)
    """
    g = generator_or_default("uniform", generator)
    return _method_of(g, "uniform")(shape, low=low, high=high, dtype=dtype, device=device)


@public(in_place=True, out=True)
def normal(
    shape: Extents = (),
    *,
    mean: complex = 0.0,
    std: float = 1.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw floats from the normal distribution.

    The numbers depend on the seed, on the number of elements drawn before, and on nothing else: the
    element at position k of the stream is the same for every device, shape and number of threads.
    `dt.random.manual_seed(0)` makes a program repeatable. Inside `dt.jit` each call of the compiled
    function draws new numbers.

    - `mean`: the mean, a number; add a tensor of means to the result.
    - `std`: the standard deviation, a number.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: floats and complex, float32 unless `dtype` is given; float16 and bfloat16 are rounded
    from float32. Each part of a complex number has the deviation std / sqrt(2).
    Accuracy: all are within 6.66 standard deviations of the mean (8.57 in float64).
    Raises: DTypeError for an integer dtype, or a complex mean of floats; ShapeError, DeviceError.
    See also: `random.manual_seed`, `random.Generator`, `random.truncated_normal`,
    `distributions.Normal`.
    Source: Box and Muller, 1958, of bits by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).

    >>> import dovetail as dt
    >>> dt.random.normal((2, 3), mean=5.0).shape
    (2, 3)
    """
    g = generator_or_default("normal", generator)
    return _method_of(g, "normal")(shape, mean=mean, std=std, dtype=dtype, device=device)


@public(in_place=True, out=True, widen=False)
def integers(
    low: int,
    high: int | None = None,
    shape: Extents = (),
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Draw integers from low <= k < high, or from 0 <= k < low without `high`.

    Probabilities of two numbers differ by at most (high - low) / 2**64.

    - `low`, `high`: the bounds, ints; without `high`, 0 <= k < low.
    - `generator`: the random generator; None is that of this process.

    Shapes: `shape` is an int or a tuple of ints.
    Dtypes: integers, int64 unless `dtype` is given.
    Raises: ArgumentError for an empty range or one beyond the dtype; DTypeError, ShapeError,
    DeviceError.
    See also: `random.permutation`, `random.choice`, `random.uniform`.
    Source: Lemire, "Fast random integer generation in an interval", 2019, without the rejection, of
    64 bits by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).

    >>> import dovetail as dt
    >>> x = dt.random.integers(1, 7, (2, 3))
    >>> x.shape, bool((x >= 1).all() & (x < 7).all())
    ((2, 3), True)
    """
    g = generator_or_default("integers", generator)
    return _method_of(g, "integers")(low, high, shape, dtype=dtype, device=device)


@public(out=True, widen=False)
def permutation(
    x: int | Tensor,
    *,
    device: DeviceLike = None,
    generator: Generator | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return the integers 0..x-1, or the slices of a tensor `x`, in random order.

    The slices are those along the first axis. Random 64-bit keys are drawn and sorted on the
    device, ties by position; up to 2**22 slices by as many upper bits as leave room for them.

    - `x`: the number of integers, or a tensor.
    - `generator`: the random generator; None is that of this process.

    Shapes: (x,), or that of the tensor.
    Dtypes: int64, or that of the tensor.
    Cost: a sort of the keys.
    Raises: ArgumentError for a tensor of no dimensions or a negative int, DeviceError.
    See also: `random.shuffle`, `random.choice`.
    Source: keys by Philox4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011).

    >>> import dovetail as dt
    >>> sorted(dt.random.permutation(5).tolist())
    [0, 1, 2, 3, 4]
    """
    return _method_of(generator_or_default("permutation", generator), "permutation")(
        x, device=device
    )
