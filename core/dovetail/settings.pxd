# What the compiled form of `settings.py` knows of its types.
cdef class Flags:
    cdef public Py_ssize_t captures
    cdef public Py_ssize_t depth
    cdef public Py_ssize_t exports
    cdef public bint profiled
    cdef public bint tainted
