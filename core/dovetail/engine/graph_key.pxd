# The C types of `graph_key.py`.
cimport cython

from dovetail.graph.expr cimport Expr, find_shared_arguments, overlaps, storage_of
from dovetail.memory.storage cimport Storage


cdef class GraphNodeKey:
    cdef public object op
    cdef public object spec
    cdef public object codes
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


cdef class DistinctSizes:
    cdef public dict numbers
    cpdef encode(self, long long size)


cpdef tuple map_move(tuple move, object map_size)
cpdef map_attrs(object op, object attrs, object map_size)
@cython.locals(e=Expr, i=Py_ssize_t, index=dict, key=list, sources=dict, sizes=DistinctSizes)
cpdef tuple build_skeleton(object graph, tuple referenced, tuple roots, object target, bint fast_math)
