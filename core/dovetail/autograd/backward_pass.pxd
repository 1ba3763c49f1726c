# C declarations for the compiled build of `backward_pass.py`.
cimport cython

from dovetail.autograd.tape cimport Edge, Kept, Node


cdef class GradientCollector:
    cdef public set wanted
    cdef public bint accumulate
    cdef public dict found
    cdef public dict reached
    cdef public set given
    cpdef take(self, Node n, object g)


cdef class _Flow:
    cdef public GradientCollector into
    cdef public set needed
    cdef public dict sent
    cdef public dict results
    cdef public dict reached
    cdef public list heap
    cdef public list passed
    cpdef send(self, Node n, object g, Kept result, object reach)
    @cython.locals(edge=Edge, inputs=tuple, is_op=bint, gradients=list, i=Py_ssize_t)
    cpdef bint pass_on(self, Node n, object g, Kept result, object reach) except -1
