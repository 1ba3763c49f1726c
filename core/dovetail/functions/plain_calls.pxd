# The C types of `plain_calls.pyx`.
from dovetail.records cimport Flags

cdef Flags flags


cdef class PublicFunction:
    cdef void* _vectorcall
    cdef object _function
    cdef object _work
    cdef Py_ssize_t _count
    cdef unsigned int _random
    cdef object __weakref__
    cdef dict __dict__
