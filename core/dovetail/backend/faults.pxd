# The C types of `faults.py`.
cdef class Faults:
    cdef object __weakref__
    cdef public object _backend
    cdef public dict _cells
    cdef public dict _free
    cdef public object _lock
    cdef public bint _may_be_prompt
    cdef public object _prompt
    cdef public object _untold
    cdef public dict _waiting
    cdef public bint pending
    cpdef object prompt(self)
