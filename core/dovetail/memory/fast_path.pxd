cimport cython

from dovetail.memory.blocks cimport MemoryBlock, Pool
from dovetail.memory.pointer cimport DataPtr


@cython.final
cdef class FastPath:
    cdef public object device
    cdef public object slow
    cdef public object lock
    cdef public int state
    cdef public list freed
    cdef public Pool pool
    cdef public Py_ssize_t live_bytes
    cdef public Py_ssize_t peak_bytes
    cdef public Py_ssize_t allocations
    cdef public Py_ssize_t frees
    cdef public object tracer
    cpdef DataPtr allocate(self, object nbytes, object stream=*)
    cpdef drain(self)
    cdef bint _is_reusable(self, MemoryBlock block) noexcept
    cdef void _hand_out(self, DataPtr ptr, MemoryBlock block, object nbytes) noexcept
    cdef DataPtr _allocate_locked(self, DataPtr ptr, object nbytes, object size, object stream)
    cdef _drain_bins(self)
    cdef void _take_back(self, MemoryBlock block) noexcept
