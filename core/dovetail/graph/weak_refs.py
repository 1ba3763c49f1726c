"""Weak references to nodes: the log of pending nodes does not keep them alive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from weakref import ref
from weakref import ref as weakly

from ..locks import Lock

__all__ = ["append_weakly", "live_refs", "referent", "weakly"]

T = TypeVar("T")


def append_weakly(log: list[ref[T]], x: T, first: int, lock: Lock) -> None:
    """Append a weak reference to `x` to a log; compiled, a dead reference at its end is reused.

    x: a new object, without weak references.
    first: the references at this position and after it may be reused, if only the log has them.
    lock: is held while the log is replaced; none is reused then.
    """
    log.append(ref(x))


def referent(r: ref[T]) -> T | None:
    """Return the referent of a weak reference, or None if it is dead."""
    return r()


def live_refs(refs: Sequence[ref[T]]) -> list[ref[T]]:
    """Return a list of the references whose referents are alive."""
    return [r for r in refs if r() is not None]
