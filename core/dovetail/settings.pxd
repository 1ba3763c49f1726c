# What the compiled form of `settings.py` knows of its types.
cdef class Limits:
    cdef public Py_ssize_t depth
