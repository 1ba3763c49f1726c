"""Free lists for objects of frequently created classes.

Compiled (`object_pool.pyx`); Python keeps free lists only for its own objects, and Cython only for
classes that are written in its own language.
"""

from __future__ import annotations


def pool_objects(kind: type) -> None:
    """Keep dead objects' memory of a class for new ones, if compiled; else do nothing.

    The compiled form has free lists for eight classes, and does nothing for further ones.
    Raises: AssertionError, if compiled, for a class whose objects differ in size.
    """
