"""Who else holds a value: a pending node that nobody else refers to needs no memory of its own.

Reference counts say it, at no cost to whoever makes and drops values. They are read in one way
only, by C code that goes through a list, and compared with what the same way says of an object
that nothing else holds: what Python's own frames add (3.14 adds less than 3.13) is never assumed.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import getrefcount
from typing import Any


def counts(objects: Sequence[Any]) -> list[int]:
    """How often each of these is referred to, as `IN_LIST`, `IN_GRAPH` and `ALONE` count."""
    return list(map(getrefcount, objects))


def is_alone(holder: list[Any]) -> bool:
    """Whether nothing but `holder`, a list of one object, refers to that object."""
    return counts(holder)[0] == IN_LIST


class _Probe:
    """Something that can be counted."""


def _in_list() -> int:
    return counts([_Probe()])[0]


def _in_graph() -> int:
    """Of what is in a list and the key of a dict, as an evaluation's nodes are."""
    nodes = [_Probe()]
    index = dict.fromkeys(nodes)
    found = counts(nodes)[0]
    del index
    return found


IN_LIST = _in_list()
IN_GRAPH = _in_graph()
