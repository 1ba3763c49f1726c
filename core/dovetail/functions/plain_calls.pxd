# The C types of `plain_calls.pyx`.
from dovetail.records cimport Flags

cdef Flags flags


cdef class PublicFunction:
    cdef void* _vectorcall
    cdef object _function
    cdef object _work
    cdef object __weakref__
    cdef dict __dict__
