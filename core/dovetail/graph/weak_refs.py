"""Weak references to nodes: the log of pending nodes does not keep them alive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from weakref import ref
from weakref import ref as weakly

__all__ = ["live_refs", "referent", "weakly"]

T = TypeVar("T")


def referent(r: ref[T]) -> T | None:
    """Return the referent of a weak reference, or None if it is dead."""
    return r()


def live_refs(refs: Sequence[ref[T]]) -> list[ref[T]]:
    """Return a list of the references whose referents are alive."""
    return [r for r in refs if r() is not None]
