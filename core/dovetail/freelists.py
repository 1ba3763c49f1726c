"""Memory of objects that come and go all the time, kept for the next ones.

Compiled (`freelists.pyx`); Python by itself does so for its own objects alone, and Cython for
classes that are written in its own language.
"""

from __future__ import annotations


def keep(kind: type) -> None:
    """Has the memory of so many objects of a class be kept when they end, for new ones of it."""
