"""Weak references to nodes: the compiled form of `weak_refs.py`."""

from cpython.object cimport PyObject
from cpython.weakref cimport PyWeakref_NewRef

cdef extern from "Python.h":
    PyObject* PyWeakref_GET_OBJECT(object)  # borrowed
    PyObject* Py_None


cpdef object weakly(object x):
    """Return a weak reference to `x`."""
    return PyWeakref_NewRef(x, None)


cpdef object referent(object r):
    """Return the referent of a weak reference, or None if it is dead."""
    return <object>PyWeakref_GET_OBJECT(r)


cpdef list alive(list refs):
    """Return the references whose referents are alive."""
    return [r for r in refs if PyWeakref_GET_OBJECT(r) != Py_None]
