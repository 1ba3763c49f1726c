"""Reference counts of pending nodes.

A node gets no memory of its own if nothing outside of the graph refers to it. CPython's reference
counts answer that question. This is the only module that reads them, by C code that iterates over
a list. Each count is compared with a baseline measured in the same way at import, because the
references of the interpreter itself differ between versions (3.14 adds fewer than 3.13). The
compiled version, `refcount.pyx`, reads the counts directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from sys import getrefcount
from typing import TypeAlias, TypeVar

T = TypeVar("T")
# A list of one value. A local variable would be a reference of its own, so a value that may have
# its last owner travels in a holder.
Box: TypeAlias = list[T]


def pop(holder: Box[T]) -> T:
    """Remove the value from the holder and return it."""
    return holder.pop()


def is_sole_owner(box: Box[T], known_references: int = 0) -> bool:
    """Return True if only the box and `known_references` others refer to its value."""
    return next(map(getrefcount, box)) - known_references == BOX_REFERENCES_MIN


def find_external_references(
    nodes: Sequence[object], internal_references: Iterable[int]
) -> list[int]:
    """Return positions of nodes referenced beyond the list, one dict and `internal_references`.

    The caller holds the nodes in the list `nodes` and as keys of exactly one dict.
    """
    counts = zip(map(getrefcount, nodes), internal_references, strict=True)
    return [i for i, (count, inner) in enumerate(counts) if count - inner > INDEX_REFERENCES_MIN]


def matches_references(
    nodes: Sequence[object], internal_references: Iterable[int], pattern: Iterable[bool | None]
) -> bool:
    """Return True if exactly the nodes marked True in `pattern` are referenced from outside.

    None matches both. The list `nodes` and the `internal_references` references do not count.
    """
    for count, inner, expected in zip(
        map(getrefcount, nodes), internal_references, pattern, strict=True
    ):
        if expected is not None and (count - inner > BOX_REFERENCES_MIN) is not expected:
            return False
    return True


# --- baselines ------------------------------------------------------------------------------------


class _Probe:
    """An object with references that are counted."""


def _count_of_first(nodes: Sequence[object], index: object = None) -> int:
    """Return the reference count of the first node; `index` holds an extra reference."""
    return next(map(getrefcount, nodes))


def _count_in_index() -> int:
    """Return the reference count of an object in a list that is also a key of a dict."""
    nodes = [_Probe()]
    return _count_of_first(nodes, dict.fromkeys(nodes))


BOX_REFERENCES_MIN = _count_of_first([_Probe()])
INDEX_REFERENCES_MIN = _count_in_index()
