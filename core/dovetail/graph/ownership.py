"""Who else holds a value: a pending node that nobody else refers to needs no memory of its own.

Reference counts say it, at no cost to whoever makes and drops values. They are read here alone, by
C code that goes through a list, and compared with what the same way says of an object that nothing
else holds: what Python's own frames add (3.14 adds less than 3.13) is never assumed. Compiled,
`ownership.pyx` takes the place of this file, and reads them as they are.

A value on its way to whoever may be the last to hold it travels in a `Holder`, and not in a
variable, which would be one more that does: `take` hands it on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import TypeAlias, TypeVar

T = TypeVar("T")
Holder: TypeAlias = list[T]  # of one value


def take(holder: Holder[T]) -> T:
    """The value, which `holder` lets go of."""
    return holder.pop()


def is_alone(holder: Holder[T], others: int = 0) -> bool:
    """Whether nothing but `holder` refers to its value, and so many others."""
    return next(map(getrefcount, holder)) - others == IN_HOLDER


def shared(nodes: Sequence[object], uses: Iterable[int]) -> list[int]:
    """Positions of the nodes that something else refers to.

    Not counted are this list, a dict of which they are the keys, and as many others as `uses` says.
    """
    counted = zip(map(getrefcount, nodes), uses, strict=True)
    return [i for i, (n, known) in enumerate(counted) if n - known > IN_INDEX]


def is_held_alike(
    nodes: Sequence[object], uses: Iterable[int], held: Iterable[bool | None]
) -> bool:
    """Whether something refers to those nodes of which `held` says so, and to no others.

    Not counted are this list and as many others as `uses` says. Of nodes with None it is not asked.
    """
    for n, known, expected in zip(map(getrefcount, nodes), uses, held, strict=True):
        if expected is not None and (n - known > IN_HOLDER) is not expected:
            return False
    return True


# --- what each of these ways says of what nothing else holds --------------------------------------


class _Probe:
    """Something that can be counted."""


def _of_first(nodes: Sequence[object], index: object = None) -> int:
    return next(map(getrefcount, nodes))


def _in_index() -> int:
    nodes = [_Probe()]
    return _of_first(nodes, dict.fromkeys(nodes))


IN_HOLDER = _of_first([_Probe()])
IN_INDEX = _in_index()
