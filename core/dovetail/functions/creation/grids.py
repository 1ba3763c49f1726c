"""Coordinate grids, logarithmic spacing, and tensors from functions of indices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...argument_checks import flag, number, real, refused, shown
from ...argument_checks import function as a_function
from ...device_class import usable
from ...dtypes import DType, float64, int64
from ...errors import ArgumentError
from ...ops import table as ops
from ...tensor.primitives import view
from ...tensor.tensor import Tensor
from ..datatypes import (
    DeviceLike,
    DTypeLike,
    cast,
    device_supporting,
    get_default_dtype,
    move,
    move_as,
    real_dtype,
)
from ..elementwise.op_functions import equal, pow, where
from ..shape.copies import stack
from ..variants import public
from .constructors import arange, extents, generate, linspace

__all__ = ["fromfunction", "geomspace", "indices", "logspace", "mgrid", "ogrid"]

Cut: TypeAlias = slice  # start:stop:step, or start:stop:nj for n points


def _open_grid(vectors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return vectors as views that broadcast to their grid, each along its own axis."""
    count = len(vectors)
    shapes = [tuple(-1 if d == i else 1 for d in range(count)) for i in range(count)]
    return tuple(
        [
            view(v, ("reshape", tuple(v.size if n < 0 else n for n in s)))
            for v, s in zip(vectors, shapes, strict=True)
        ]
    )


def _dense_grid(vectors: Sequence[Tensor]) -> Tensor:
    """Return the coordinates of the grid that vectors span, along a new first axis."""
    shape = tuple(v.size for v in vectors)
    return stack([view(v, ("expand", shape)) for v in _open_grid(vectors)])


def _vector_of_slice(name: str, cut: object) -> Tensor:
    """Return the numbers that a slice describes; an imaginary step gives their count."""
    if not isinstance(cut, slice):
        raise refused(name, "the key", "slices start:stop:step", cut)
    if cut.stop is None:
        raise ArgumentError(f"{name}: a slice must have a stop, got {cut}")
    start = 0 if cut.start is None else number(name, cut.start, "start")
    stop = number(name, cut.stop, "stop")
    if isinstance(cut.step, complex):
        points = abs(cut.step)
        if not math.isfinite(points):
            raise ArgumentError(
                f"{name}: the number of points must be finite, got {shown(cut.step)}"
            )
        return linspace(real(name, start, "start"), real(name, stop, "stop"), int(points))
    return arange(start, stop, 1 if cut.step is None else number(name, cut.step, "step"))


def _vectors_of_slices(name: str, key: Cut | tuple[Cut, ...]) -> list[Tensor]:
    """Return one vector per slice, of ints if all are ints."""
    vectors = [_vector_of_slice(name, cut) for cut in (key if isinstance(key, tuple) else (key,))]
    ints = all(v.dtype is int64 for v in vectors)
    return [cast(v, int64 if ints else get_default_dtype()) for v in vectors]


class ClosedGrid:
    """A closed grid by slices: all coordinates, along a new first axis.

    `start:stop:step` means the same as in `arange`; a step `nj` gives n points, of which the last
    is `stop`. The grid is int64 if all numbers are ints, else of the default float dtype. One
    slice gives a vector.

    >>> import dovetail as dt
    >>> with dt.device("reference"):
    ...     dt.mgrid[0:2, 0:3].tolist()
    [[[0, 0, 0], [1, 1, 1]], [[0, 1, 2], [0, 1, 2]]]
    """

    def __getitem__(self, key: Cut | tuple[Cut, ...]) -> Tensor:
        """Return the grid on the default device."""
        vectors = _vectors_of_slices("mgrid", key)
        return _dense_grid(vectors) if isinstance(key, tuple) else vectors[0]


class OpenGrid:
    """An open grid by slices: one vector per slice along its own axis; see `mgrid`.

    >>> import dovetail as dt
    >>> [v.shape for v in dt.ogrid[0:2, 0:1:5j]]
    [(2, 1), (1, 5)]
    """

    def __getitem__(self, key: Cut | tuple[Cut, ...]) -> Tensor | tuple[Tensor, ...]:
        """Return the vectors on the default device."""
        vectors = _vectors_of_slices("ogrid", key)
        return _open_grid(vectors) if isinstance(key, tuple) else vectors[0]


mgrid = ClosedGrid()
ogrid = OpenGrid()


@public(out=True, widen=False)
def logspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    base: float = 10.0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return `num` powers of `base` with evenly spaced exponents from `start` to `stop`.

    - `start`, `stop`: the exponents at both ends.
    - `num`: the number of elements.
    - `endpoint`: False excludes the last exponent.
    - `base`: the number that is raised to the exponents.

    Shapes: (num,).
    Dtypes: `dtype`, the default one (float32) unless given; computed in float64. Integers are
    truncated.
    Raises: ArgumentError for a negative `num`, ArgumentTypeError, DTypeError, DeviceError.
    See also: `linspace`, `geomspace`.

    >>> import dovetail as dt
    >>> dt.logspace(0, 3, 4).tolist()
    [1.0, 10.0, 100.0, 1000.0]
    """
    d = get_default_dtype() if dtype is None else real_dtype("logspace", dtype)
    first, last = real("logspace", start, "start"), real("logspace", stop, "stop")
    wide = device_supporting(float64, device)
    exponents = linspace(first, last, num, dtype=float64, device=wide, endpoint=endpoint)
    powers = cast(pow(real("logspace", base, "base"), exponents), d)
    return move(powers, usable(device, "logspace"))


@public(out=True, widen=False)
def geomspace(
    start: float,
    stop: float,
    /,
    num: int = 50,
    *,
    endpoint: bool = True,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return `num` numbers from `start` to `stop` with a constant ratio.

    - `start`, `stop`: the ends, numbers of one sign that are not 0; both are exact.
    - `num`: the number of elements.
    - `endpoint`: False excludes `stop`.

    Shapes: (num,).
    Dtypes: `dtype`, the default one (float32) unless given; computed in float64. Integers are
    truncated.
    Raises: ArgumentError for a negative `num`, for an end that is 0 or not finite, and for ends of
    different signs; ArgumentTypeError, DTypeError, DeviceError.
    See also: `logspace`, `linspace`.

    >>> import dovetail as dt
    >>> dt.geomspace(1, 81, 5).tolist()
    [1.0, 3.0, 9.0, 27.0, 81.0]
    """
    d = get_default_dtype() if dtype is None else real_dtype("geomspace", dtype)
    first, last = real("geomspace", start, "start"), real("geomspace", stop, "stop")
    if not (0 < first * math.copysign(1.0, last) < math.inf and 0 < abs(last) < math.inf):
        raise ArgumentError(
            f"geomspace: start and stop must be finite, of the same sign and not 0, "
            f"got {shown(start)} and {shown(stop)}"
        )
    low, high = math.log2(abs(first)), math.log2(abs(last))
    wide = device_supporting(float64, device)
    along = linspace(0.0, 1.0, num, dtype=float64, device=wide, endpoint=endpoint)
    powers = pow(2.0, along * (high - low) + low) * math.copysign(1.0, first)
    powers = where(equal(along, 0.0), first, where(equal(along, 1.0), last, powers))
    return move_as(powers, d, usable(device, "geomspace"))


@public(widen=False)
def indices(
    shape: int | Sequence[int],
    /,
    *,
    dtype: DTypeLike = None,
    sparse: bool = False,
    device: DeviceLike = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the indices of every position of a shape, along a new first axis.

    - `shape`: the shape of which positions are taken.
    - `sparse`: True gives a tuple of tensors that broadcast to the indices, and use less memory.

    Shapes: `shape` is an int or a tuple of ints; the result is (axes, *shape).
    Dtypes: `dtype`, int64 unless given.
    Raises: ShapeError, DTypeError, DeviceError.
    See also: `meshgrid`, `fromfunction`, `mgrid`.

    >>> import dovetail as dt
    >>> dt.indices((1, 2)).tolist()
    [[[0, 0]], [[0, 1]]]
    """
    sparse, sizes = flag("indices", sparse, "sparse"), extents("indices", shape)
    d = int64 if dtype is None else real_dtype("indices", dtype)
    vectors = [cast(_position_vector(n, device), d) for n in sizes]
    if sparse:
        return _open_grid(vectors)
    if not vectors:
        return cast(generate(ops.POSITION, (0,), (), (), int64, device), d)
    return _dense_grid(vectors)


def _position_vector(n: int, device: DeviceLike) -> Tensor:
    """Return the int64 vector 0..n-1 on a device."""
    return generate(ops.POSITION, (n,), (), (), int64, device, "indices")


@public(widen=False)
def fromfunction(
    function: Callable[..., Tensor],
    shape: int | Sequence[int],
    /,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Return the result of a function that is called once with the indices of all positions.

    - `function`: gets one tensor per axis, with the index along it at every position.
    - `dtype`: the dtype of the indices.

    Shapes: `shape` is an int or a tuple of ints; the result has the function's shape.
    Dtypes: the indices have `dtype`, the default one (float32) unless given.
    Raises: ShapeError, DTypeError, DeviceError, ArgumentTypeError unless it is a function.
    See also: `indices`, `meshgrid`.

    >>> import dovetail as dt
    >>> dt.fromfunction(lambda i, j: i + j, (2, 2), dtype=int).tolist()
    [[0, 1], [1, 2]]
    """
    a_function("fromfunction", function)
    d: DType = get_default_dtype() if dtype is None else real_dtype("fromfunction", dtype)
    sizes = extents("fromfunction", shape)
    vectors = _open_grid([cast(_position_vector(n, device), d) for n in sizes])
    return function(*[view(v, ("expand", sizes)) for v in vectors])
