# C declarations for the compiled build of `records.py`.
cdef class DeviceRecord:
    cdef public Py_hash_t _hash
    cdef public object opened


cdef class DTypeRecord:
    cdef public Py_hash_t _hash
    cdef public DTypeRecord compute
    cdef public object itemsize
    cdef public object kind
    cdef public object name


cdef class Flags:
    cdef public Py_ssize_t captures
    cdef public Py_ssize_t depth
    cdef public Py_ssize_t exports
    cdef public bint is_observed
    cdef public bint has_autocast
    cdef public bint has_fast_math
    cdef public bint has_unresolved_checks
    cdef public bint may_fill_junk


cdef class Counters:
    cdef public Py_ssize_t evaluations
    cdef public Py_ssize_t graph_hits
    cdef public Py_ssize_t plans
    cdef public Py_ssize_t shape_class_hits
    cdef public Py_ssize_t launches
    cdef public Py_ssize_t calls
    cdef public Py_ssize_t compiles
    cdef public Py_ssize_t disk_hits
    cdef public Py_ssize_t load_failures
    cdef public double compile_seconds
