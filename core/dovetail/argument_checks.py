"""Checks of the arguments of users that are no tensors.

Each function here returns the value, or raises an error that names the op, the parameter and the
value.

An integer is a value that `operator.index` accepts, except arrays and bools. An axis in a tensor
would have to be read from its device. A bool in the place of a number is a flag of another
parameter: the False of PyTorch's `x.std(False)` is `unbiased`. `tensor.required` checks tensors.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from .compat import hints as hints  # these and `declarations`: for packages that see `extend` alone
from .compat.keywords import MISSING
from .compat.keywords import accepts_arguments as accepts_arguments
from .compat.keywords import call_translated as call_translated
from .declarations import names_request as names_request
from .declarations import public as public
from .errors import ArgumentError, ArgumentTypeError, OutOfMemoryError, ShapeError

named = public  # its name in the first version of `extend`

DIMENSIONS = 64  # as in NumPy, which prints tensors
LARGEST = (1 << 63) - 1  # of a size, a stride, an offset: the kernel IR counts in int64
# Ints of this absolute value and more do not round to a float64.
BEYOND_FLOAT = (1 << 1024) - (1 << 970)
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type, np.generic, np.dtype)


def shown(value: object) -> str:
    """Return a short text of any value for a message; never raise an error."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an int of {value.bit_length()} bits"
    if value is MISSING:
        return "nothing"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(shown(v) for v in value[:8]) + (", ..." if len(value) > 8 else "")
        return f"({inside})" if isinstance(value, tuple) else f"[{inside}]"
    if not isinstance(value, _PLAIN):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def foreign_type_name(value: object) -> str:
    """Return the name of a value's type; a tensor's has its library: "torch.Tensor"."""
    if value is MISSING:
        return "nothing"
    kind = type(value)
    package = kind.__module__.partition(".")[0]
    return f"{package}.{kind.__name__}" if kind.__name__ == "Tensor" else kind.__name__


def refused(op: str, name: str, wanted: str, value: object) -> ArgumentTypeError:
    """Build the ArgumentTypeError for a value of a wrong kind; `wanted` is the accepted kind."""
    return ArgumentTypeError(f"{op}: {name} must be {wanted}, got {shown(value)}")


def _find_index(value: object) -> int | None:
    """Return a value as an int, or None for a bool, an array, and other non-integers.

    An array of integers without dimensions is read, as NumPy and PyTorch do.
    """
    if type(value) is int:
        return value
    if isinstance(value, bool):
        return None
    if isinstance(value, int):  # a subclass of int: of an enumeration, or `x.size`
        return int(value)
    if hasattr(type(value), "__dlpack__") and getattr(value, "ndim", None) != 0:
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]  # it says whether it can
    except TypeError:
        return None


def integer(
    op: str, value: object, name: str, low: int | None = None, high: int | None = None
) -> int:
    """Return an int. Raises: ArgumentTypeError for others, ArgumentError outside of low..high."""
    number = _find_index(value)
    if number is None:
        raise refused(op, name, "an int", value)
    if (low is not None and number < low) or (high is not None and number > high):
        if high is None and low == 0:
            raise ArgumentError(f"{op}: {name} must not be negative, got {shown(number)}")
        is_wide = high is not None and high >= 1 << 31  # such a bound says nothing to a user
        if is_wide and low in (0, 1) and number < low:
            what = "be positive" if low else "not be negative"
            raise ArgumentError(f"{op}: {name} must {what}, got {shown(number)}")
        bounds = (
            f"between {low} and {high}"
            if low is not None and high is not None
            else (f"at most {high}" if low is None else f"at least {low}")
        )
        raise ArgumentError(f"{op}: {name} must be {bounds}, got {shown(number)}")
    return number


def integers(op: str, value: object, name: str) -> tuple[int, ...]:
    """Return an int, or a list, tuple or range of ints, as a tuple. Raises: ArgumentTypeError."""
    listed = value if isinstance(value, (list, tuple, range)) else (value,)
    numbers = tuple([v if type(v) is int else _find_index(v) for v in listed])
    if None in numbers:
        raise refused(op, name, "an int or a tuple of ints", value)
    return numbers  # type: ignore[return-value]  # there is no None


def dimensions(op: str, shape: Sequence[int]) -> tuple[int, ...]:
    """Return a valid shape as a tuple. Raises: ShapeError for its rank or a size."""
    if len(shape) > DIMENSIONS:
        raise ShapeError(f"{op}: expected at most {DIMENSIONS} dimensions, got {len(shape)}")
    for n in shape:
        if not 0 <= n <= LARGEST:
            what = "must not be negative" if n < 0 else "must be below 2**63"
            raise ShapeError(f"{op}: sizes {what}, got {shown(tuple(shape))}")
    return tuple(shape)


def number(op: str, value: object, name: str) -> int | float:
    """Return a number as a Python int or float. Raises: ArgumentTypeError, also for a bool."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise refused(op, name, "a number", value)
    return value


def real(op: str, value: object, name: str) -> float:
    """Return a number as a float. Raises: ArgumentTypeError; ArgumentError beyond float64."""
    checked = number(op, value, name)
    if isinstance(checked, int) and not -BEYOND_FLOAT < checked < BEYOND_FLOAT:
        raise ArgumentError(f"{op}: {name} must fit into float64, got {shown(checked)}")
    return float(checked)


def flag(op: str, value: object, name: str) -> bool:
    """Return a bool, an int or a NumPy bool as a bool. Raises: ArgumentTypeError for others."""
    if not isinstance(value, (bool, int, np.bool_)):
        raise refused(op, name, "True or False", value)
    return bool(value)


def choice(op: str, value: object, name: str, allowed: Sequence[Choice]) -> Choice:
    """Return the allowed value equal to `value`, of its type. Raises: ArgumentError if none is."""
    for a in allowed:
        if type(value) is type(a) and value == a:
            return a
    listed = " or ".join(map(repr, allowed))
    raise ArgumentError(f"{op}: {name} must be {listed}, got {shown(value)}")


def sequence(op: str, value: object, name: str, wanted: str) -> Sequence[object]:
    """Return a list or tuple unchanged. Raises: ArgumentTypeError for others."""
    if not isinstance(value, (list, tuple)):
        raise refused(op, name, f"a list or tuple of {wanted}", value)
    return value


def exclusive(op: str, **values: object) -> None:
    """Raise ArgumentError if more than one of these values is not None."""
    names = [name for name, value in values.items() if value is not None]
    if len(names) > 1:
        raise ArgumentError(
            f"{op}: {' and '.join(names)} cannot be combined; pass only one of them"
        )


Choice = TypeVar("Choice")
Kind = TypeVar("Kind")


def function(op: str, value: object, name: str = "function") -> Callable[..., object]:
    """Return a callable unchanged. Raises: ArgumentTypeError for others."""
    if not callable(value):
        raise refused(op, name, "a function", value)
    return value


def path(op: str, value: object, name: str = "path") -> str | os.PathLike[str]:
    """Return a str or path object unchanged. Raises: ArgumentTypeError; ArgumentError for "\\0"."""
    if not isinstance(value, (str, os.PathLike)):
        raise refused(op, name, "the name of a file", value)
    if "\0" in str(value):
        raise ArgumentError(f"{op}: {name} must not contain a null character, got {shown(value)}")
    return value


def instance(op: str, value: object, name: str, kind: type[Kind]) -> Kind:
    """Return an instance of `kind` unchanged. Raises: ArgumentTypeError for others."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOU" else "a"
        raise refused(op, name, f"{article} {kind.__name__}", value)
    return value


@contextmanager
def host_memory(what: str) -> Iterator[None]:
    """Return a context that turns a MemoryError into an OutOfMemoryError that names `what`.

    Raises: OutOfMemoryError.
    """
    try:
        yield
    except MemoryError as error:
        if isinstance(error, OutOfMemoryError):
            raise
        raise OutOfMemoryError(f"{what}: the host does not have enough memory") from error
