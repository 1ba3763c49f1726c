from cpython.object cimport PyObject

from dovetail.graph.expr cimport Expr


cdef class Fields:
    cdef PyObject* after  # the next one over the same memory
    cdef PyObject** named  # the pointer that points to this one; null outside of a list


cdef class AliasGroup:
    cdef PyObject* first
    cdef public bint has_tape
    cpdef add(self, object y)
    cpdef list live_tensors(self)


cdef install_attribute_slot(object kind)
cpdef Expr expr_of(object x)
cpdef become(object x, Expr e)
cpdef bint is_strided(object x) noexcept
cpdef object set_class(object x, object kind)
cpdef object keep_class(object result, object operand)
cpdef object aliases_of(object x)
cpdef object record_alias(object x, object y)
cpdef object create_view(object x, Expr e)
cpdef object new_tensor(object kind, Expr e)
