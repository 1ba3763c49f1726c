# The C types of `device_handle.py`.
from dovetail.backend.faults cimport Faults
from dovetail.memory.fast_path cimport FastPath


cdef class Opened:
    cdef object __weakref__
    cdef public object _allocator
    cdef public object allocate
    cdef public bint asynchronous
    cdef public object backend
    cdef public bint batches
    cdef public object device
    cdef public FastPath fast_path
    cdef public Faults faults
    cdef public object host_address
    cdef public object library_calls
    cdef public object programs
    cdef public bint streams
