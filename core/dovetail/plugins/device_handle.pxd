# The C types of `device_handle.py`.
from dovetail.memory.fast_path cimport FastPath


cdef class OpenedDevice:
    cdef object __weakref__
    cdef public object _allocator
    cdef public object allocate
    cdef public bint asynchronous
    cdef public object backend
    cdef public bint takes_batches
    cdef public object device
    cdef public FastPath fast_path
    cdef public object faults
    cdef public object host_address
    cdef public object host_cells
    cdef public object library_calls
    cdef public object ordered_calls
    cdef public object programs
    cdef public object scaling_calls
    cdef public bint has_streams
