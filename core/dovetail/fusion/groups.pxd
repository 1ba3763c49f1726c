# What the compiled form of `groups.py` knows of its types: the source is the same.


cdef class Access:
    cdef public Py_ssize_t slot
    cdef public object dtype
    cdef public tuple strides
    cdef public object offset
    cdef public bint computed
    cdef public object most
    cdef public bint begins


cdef class Term:
    cdef public str what
    cdef public object dtype
    cdef public object op
    cdef public tuple args
    cdef public tuple casts
    cdef public Access access
    cdef public Py_ssize_t scalar
    cdef public object gathered
    cdef public tuple parts


cdef class Group:
    cdef public Py_ssize_t index
    cdef public object domain
    cdef public list outputs
    cdef public list accesses
    cdef public dict memo
    cdef public Py_ssize_t size
    cdef public bint by_division
    cdef public Py_ssize_t refusals
