"""Weak references to nodes: `weak.py`, compiled: made without a look at their class."""

from cpython.weakref cimport PyWeakref_NewRef


cpdef object weakly(object x):
    """A weak reference to `x`."""
    return PyWeakref_NewRef(x, None)
