"""Weak references to nodes: those that are pending are noted, and not kept."""

from __future__ import annotations

from weakref import ref as weakly

__all__ = ["weakly"]
