# C declarations for the compiled build of `tape.py`.
cimport cython

from dovetail.functions.graph_cache cimport again, described
from dovetail.graph.expr cimport Expr, Spec
from dovetail.tensor.tensor cimport is_to_finish, make


cdef class Kept:
    cdef public object value
    cdef public object watch


cdef class Edge:
    cdef public Node node
    cdef public Kept result


cdef class Node:
    cdef object __weakref__
    cdef public object asked_at
    cdef public tuple edges
    cdef public object grad
    cdef public dict hooks
    cdef public object name
    cdef public bint needs_result
    cdef public Py_ssize_t order
    cdef public bint released
    cdef public bint retains
    cdef public Spec spec


cdef class Leaf(Node):
    pass


cdef class OpNode(Node):
    cdef public object attrs
    cdef public dict kept
    cdef public object op
    cdef public tuple operands
    cdef public object result
    cdef public tuple rules
    @cython.locals(operands=list, key=tuple)
    cpdef object _part(self, Py_ssize_t i, object rule, list needs, object mask)
    @cython.locals(key=list)
    cpdef tuple _key_of_part(self, Py_ssize_t i, object rule, list needs, list operands)
    cpdef object _need(self, str name, Py_ssize_t i, object g, Kept result)


cpdef Kept keep(object e)
@cython.locals(cost=Py_ssize_t, leaves=set, stack=list, a=Expr)
cpdef bint _is_cheap(Expr e) except -1
cpdef object load_saved(Node node, object what, Kept saved)
cpdef Edge edge_to(object e)
cpdef object record(Expr e)
