# C declarations for the compiled build of `backward_pass.py`.
cimport cython

from dovetail.autograd.tape cimport Edge, SavedValue, Node
from dovetail.tensor.c_fields cimport is_strided


cdef class GradientCollector:
    cdef public set requested_nodes
    cdef public bint accumulate
    cdef public dict collected
    cdef public dict new_gradients
    cdef public set gradient_ids
    cpdef store_gradient(self, Node n, object g)


cdef class _GradientQueue:
    cdef public GradientCollector collector
    cdef public set needed
    cdef public dict pending
    cdef public dict results
    cdef public dict masks
    cdef public list heap
    cdef public list visited
    cpdef send(self, Node n, object g, SavedValue result, object reach)
    @cython.locals(edge=Edge, inputs=tuple, is_op=bint, gradients=list, i=Py_ssize_t)
    cpdef bint propagate(self, Node n, object g, SavedValue result, object reach) except -1
