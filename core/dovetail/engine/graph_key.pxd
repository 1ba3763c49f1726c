# The C types of `graph_key.py`.
cimport cython

from dovetail.graph.expr cimport Expr, overlaps, storage_of
from dovetail.memory.storage cimport Storage


cdef class Entry:
    cdef public object op
    cdef public object spec
    cdef public object attrs
    cdef public object strides
    cdef public object moves
    cdef public Py_ssize_t source
    cdef public tuple args
    cdef public tuple types
    cdef public Py_ssize_t first


@cython.locals(pending=Expr, i=Py_ssize_t, n=Py_ssize_t, node_key=list, numbers=list)
cpdef Py_ssize_t visit(
    Expr e, object walk, dict index, list nodes, list uses, list key
) except -1
