"""Free lists for objects of frequently created classes.

Compiled (`object_pool.pyx`); Python keeps free lists only for its own objects, and Cython only for
classes that are written in its own language.
"""

from __future__ import annotations


def keep(kind: type) -> None:
    """Keep the memory of ended objects of a class, up to a limit, for new objects of it."""
