"""The words of kernels of loops: kinds of parameters, grids and atomics.

In plain Python, on NumPy's arrays, each of them does what it means in a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Protocol, overload

from ..argument_checks import integer, shown
from ..declarations import public
from ..errors import ArgumentError, ArgumentTypeError, DovetailError, OutOfRangeError

__all__ = [
    "In",
    "InOut",
    "Out",
    "atomic_add",
    "atomic_and",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "grid",
]


class IntegerArray(Protocol):
    """Integers by index: a parameter of a kernel, an array, a list."""

    def __getitem__(self, place: int | tuple[int, ...], /) -> int: ...
    def __setitem__(self, place: int | tuple[int, ...], value: int, /) -> None: ...


class In:
    """Declare a parameter of a `dt.kernel` as a tensor that the kernel reads.

    >>> import dovetail as dt
    >>> dt.In.access
    'r'
    """

    access = "r"


class Out:
    """Declare a parameter of a `dt.kernel` as a tensor that the kernel writes, in whole or in part.

    >>> import dovetail as dt
    >>> dt.Out.access
    'w'
    """

    access = "w"


class InOut:
    """Declare a parameter of a `dt.kernel` as a tensor that the kernel reads and writes.

    >>> import dovetail as dt
    >>> dt.InOut.access
    'rw'
    """

    access = "rw"


@overload
def grid(extent: int | tuple[int, int], /) -> Iterator[int]: ...
@overload
def grid(*extents: int | tuple[int, int]) -> Iterator[tuple[int, ...]]: ...
def grid(*extents: int | tuple[int, int]) -> Iterator[int] | Iterator[tuple[int, ...]]:
    """Iterate over the points of a grid, in a `dt.kernel`: they are independent, in no order.

    A loop over a grid at the top of a kernel is one launch; within a point it is a loop with
    independent iterations. In plain Python it yields the points in order.

    - `extents`: the extent of each axis, or (start, stop).

    Raises: ArgumentError, ArgumentTypeError.
    See also: `kernel`.

    >>> import dovetail as dt
    >>> list(dt.grid(2, (1, 3)))
    [(0, 1), (0, 2), (1, 1), (1, 2)]
    """
    if not extents:
        raise ArgumentError(
            "grid: expected an extent per axis, got none; use dt.grid(n) or dt.grid((1, n), m)"
        )
    ranges = [_iterate_axis(e) for e in extents]
    return iter(ranges[0]) if len(ranges) == 1 else product(*ranges)


def _iterate_axis(extent: int | tuple[int, int]) -> range:
    """Return the range of an extent or (start, stop).

    Raises: ArgumentError for a tuple of another length, ArgumentTypeError for bounds that are no
    ints.
    """
    if isinstance(extent, tuple):
        if len(extent) != 2:
            raise ArgumentError(f"grid: an axis must be an extent or (start, stop), got {extent!r}")
        return range(integer("grid", extent[0], "start"), integer("grid", extent[1], "stop"))
    return range(integer("grid", extent, "extent"))


def _update_element(
    x: IntegerArray, place: int | tuple[int, ...], change: Callable[[int], int]
) -> None:
    """Replace x[place] by `change` of the old value.

    Raises: OutOfRangeError for a place outside of `x`, ArgumentTypeError unless `x` has writable
    integers.
    """
    if isinstance(x, str | bytes) or not hasattr(type(x), "__setitem__"):
        raise ArgumentTypeError(
            f"x must be a tensor or an array with writable elements, got {type(x).__name__}"
        )
    try:
        x[place] = change(x[place])
    except DovetailError:
        raise
    except IndexError as error:
        raise OutOfRangeError(f"place {shown(place)}: {error}") from error
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise ArgumentTypeError(
            f"x must hold integers at place {shown(place)}: {type(error).__name__}: {error}"
        ) from error


@public(widen=False)
def atomic_add(x: IntegerArray, place: int | tuple[int, ...], value: int) -> None:
    """Add to an integer element that many points of a `dt.kernel` may change; return nothing.

    - `x`: a parameter that is `dt.Out` or `dt.InOut`.
    - `place`: the index of the element, or a tuple of indices.
    - `value`: the number to add; sums wrap.

    Dtypes: int32, int64, uint32, uint64.
    Raises: KernelError in the kernel where the dtype is another one.

    >>> import dovetail as dt
    >>> counts = [0, 0, 0]
    >>> dt.atomic_add(counts, 1, 5); counts
    [0, 5, 0]
    """
    _update_element(x, place, lambda old: old + value)


@public(widen=False)
def atomic_max(x: IntegerArray, place: int | tuple[int, ...], value: int) -> None:
    """Replace an element by the larger of it and a value, atomically like `dt.atomic_add`.

    - `x`: a parameter that is `dt.Out` or `dt.InOut`.
    - `place`: the index of the element, or a tuple of indices.
    - `value`: the number to compare with.

    Dtypes: int32, int64, uint32, uint64.
    Raises: KernelError in the kernel where the dtype is another one.

    >>> import dovetail as dt
    >>> most = [3, 4]
    >>> dt.atomic_max(most, 0, 5); most
    [5, 4]
    """
    _update_element(x, place, lambda old: max(old, value))


@public(widen=False)
def atomic_min(x: IntegerArray, place: int | tuple[int, ...], value: int) -> None:
    """Replace an element by the smaller of it and a value, atomically like `dt.atomic_add`.

    - `x`: a parameter that is `dt.Out` or `dt.InOut`.
    - `place`: the index of the element, or a tuple of indices.
    - `value`: the number to compare with.

    Dtypes: int32, int64, uint32, uint64.
    Raises: KernelError in the kernel where the dtype is another one.

    >>> import dovetail as dt
    >>> least = [3, 4]
    >>> dt.atomic_min(least, 1, 2); least
    [3, 2]
    """
    _update_element(x, place, lambda old: min(old, value))


@public(widen=False)
def atomic_and(x: IntegerArray, place: int | tuple[int, ...], value: int) -> None:
    """Replace an element by the bits that it shares with a value, atomically like `dt.atomic_add`.

    - `x`: a parameter that is `dt.Out` or `dt.InOut`.
    - `place`: the index of the element, or a tuple of indices.
    - `value`: the bits that may stay.

    Dtypes: int32, int64, uint32, uint64.
    Raises: KernelError in the kernel where the dtype is another one.

    >>> import dovetail as dt
    >>> bits = [7, 5]
    >>> dt.atomic_and(bits, 0, 12); bits
    [4, 5]
    """
    _update_element(x, place, lambda old: old & value)


@public(widen=False)
def atomic_or(x: IntegerArray, place: int | tuple[int, ...], value: int) -> None:
    """Replace an element by its bits and those of a value, atomically like `dt.atomic_add`.

    - `x`: a parameter that is `dt.Out` or `dt.InOut`.
    - `place`: the index of the element, or a tuple of indices.
    - `value`: the bits that are set.

    Dtypes: int32, int64, uint32, uint64.
    Raises: KernelError in the kernel where the dtype is another one.

    >>> import dovetail as dt
    >>> bits = [1, 2]
    >>> dt.atomic_or(bits, 1, 5); bits
    [1, 7]
    """
    _update_element(x, place, lambda old: old | value)


ATOMICS = {
    id(f): f.__name__.removeprefix("atomic_")
    for f in (atomic_add, atomic_and, atomic_max, atomic_min, atomic_or)
}
