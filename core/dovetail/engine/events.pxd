# What the compiled form of `events.py` knows of its types.
cdef class Counters:
    cdef public Py_ssize_t evaluations
    cdef public Py_ssize_t recognised
    cdef public Py_ssize_t plans
    cdef public Py_ssize_t launches
    cdef public Py_ssize_t calls
    cdef public Py_ssize_t compiles
    cdef public Py_ssize_t disk_hits
    cdef public Py_ssize_t load_failures
    cdef public double compile_seconds
