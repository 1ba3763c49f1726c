# The C types of `blocks.py`.

cdef class Segment:
    cdef public MemoryBlock first
    cdef public object handle
    cdef public object nbytes
    cdef public object owner
    cdef public Pool pool


cdef class MemoryBlock:
    cdef public list bin
    cdef public object finalizer
    cdef public object handle
    cdef public MemoryBlock next
    cdef public object offset
    cdef public MemoryBlock prev
    cdef public Segment segment
    cdef public object serial
    cdef public Py_ssize_t size
    cdef public int state
    cdef public list streams
    cdef public object allocation_line


cdef class Pool:
    cdef public dict bins
    cdef public bint is_flushed
    cdef public list large
    cdef public list large_bins
    cdef public list small
    cdef public object stream
