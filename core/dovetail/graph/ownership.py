"""Who else holds a value: a pending node that nobody else refers to needs no memory of its own.

Reference counts say it, at no cost to whoever makes and drops values. They are read here, by C code
that goes through a list, and by guards, of their variables; and compared with what the same way
says of an object that nothing else holds: what Python's own frames add (3.14 adds less than 3.13)
is never assumed.

A value on its way to whoever may be the last to hold it travels in a `Holder`, and not in a
variable, which would be one more that does: `take` hands it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Holder: TypeAlias = list[T]  # of one value
count = getrefcount  # by which guards ask of a variable, to compare it with `IN_VARIABLE`


def take(holder: Holder[T]) -> T:
    """The value, which `holder` lets go of."""
    return holder.pop()


def is_alone(holder: Holder[T]) -> bool:
    """Whether nothing but `holder` refers to its value."""
    return next(map(getrefcount, holder)) == IN_HOLDER


def shared(nodes: Sequence[object], uses: Iterable[int]) -> list[int]:
    """Positions of those that something refers to, besides this list, a dict of which they are the
    keys, and as many others as `uses` says.
    """
    counted = zip(map(getrefcount, nodes), uses, strict=True)
    return [i for i, (n, known) in enumerate(counted) if n - known > IN_INDEX]


# --- what each of these ways says of what nothing else holds --------------------------------------


class _Probe:
    """Something that can be counted."""


def _of_first(nodes: Sequence[object], index: object = None) -> int:
    return next(map(getrefcount, nodes))


def _in_index() -> int:
    nodes = [_Probe()]
    return _of_first(nodes, dict.fromkeys(nodes))


def _in_variable() -> int:
    args = (_Probe(),)
    (variable,) = args
    return getrefcount(variable) - 1  # which is that of `args`


IN_HOLDER = _of_first([_Probe()])
IN_INDEX = _in_index()
IN_VARIABLE = _in_variable()
