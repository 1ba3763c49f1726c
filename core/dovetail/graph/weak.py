"""Weak references to nodes: those that are pending are noted, and not kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar
from weakref import ref
from weakref import ref as weakly

__all__ = ["alive", "referent", "weakly"]

T = TypeVar("T")


def referent(r: ref[T]) -> T | None:
    """What it refers to, if that is there."""
    return r()


def alive(refs: Sequence[ref[T]]) -> list[ref[T]]:
    """Those that refer to something still."""
    return [r for r in refs if r() is not None]
