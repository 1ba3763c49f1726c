"""Weak references to nodes: `weak.py`, compiled: made without a look at their class."""

from cpython.object cimport PyObject
from cpython.weakref cimport PyWeakref_NewRef

cdef extern from "Python.h":
    PyObject* PyWeakref_GET_OBJECT(object)  # borrowed
    PyObject* Py_None


cpdef object weakly(object x):
    """A weak reference to `x`."""
    return PyWeakref_NewRef(x, None)


cpdef object referent(object r):
    """What it refers to, if that is there."""
    return <object>PyWeakref_GET_OBJECT(r)


cpdef list alive(list refs):
    """Those that refer to something still."""
    return [r for r in refs if PyWeakref_GET_OBJECT(r) != Py_None]
