from cpython.object cimport PyObject

from dovetail.graph.expr cimport Expr


cdef class Fields:
    cdef PyObject* after  # the next one over the same memory
    cdef PyObject** named  # the pointer that points to this one; null outside of a list


cdef class Aliases:
    cdef PyObject* first
    cdef public bint taped
    cpdef add(self, object y)
    cpdef list live(self)


cpdef Expr expr_of(object x)
cpdef become(object x, Expr e)
cpdef bint is_strided(object x)
cpdef object aliases_of(object x)
cpdef object alias(object x, object y)
cpdef object new_tensor(object kind, Expr e)
