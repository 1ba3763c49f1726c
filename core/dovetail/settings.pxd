# What the compiled form of `settings.py` knows of its types.
cdef class Flags:
    cdef public Py_ssize_t depth
    cdef public Py_ssize_t noted
    cdef public bint tainted
