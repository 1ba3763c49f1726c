# The C types of `graph_key.py`.
cimport cython

from dovetail.graph.expr cimport Expr, find_shared_arguments, overlaps, storage_of
from dovetail.memory.storage cimport Storage


cdef class GraphNodeKey:
    cdef public object op
    cdef public object spec
    cdef public object attrs
    cdef public object strides
    cdef public object moves
    cdef public Py_ssize_t source
    cdef public tuple args
    cdef public tuple types
    cdef public Py_ssize_t first_number


@cython.locals(pending=Expr, i=Py_ssize_t, n=Py_ssize_t, node_key=list, numbers=list)
cpdef Py_ssize_t append_subgraph(
    Expr e, object walk, dict index, list nodes, list uses, list key
) except -1
