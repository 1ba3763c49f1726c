from dovetail.memory.blocks cimport Block, Pool
from dovetail.memory.pointer cimport DataPtr


cdef class Front:
    cdef object __weakref__
    cdef public object device
    cdef public object _lock
    cdef public int _state
    cdef public list _freed
    cdef public Pool _default
    cdef public Py_ssize_t _live
    cdef public Py_ssize_t _peak
    cdef public Py_ssize_t _allocations
    cdef public Py_ssize_t _frees
    cdef public object _tracer
    cpdef DataPtr allocate(self, object nbytes, object stream=*)
    cpdef _drain(self)
    cdef bint _is_ready(self, Block block)
    cdef _hand_out(self, DataPtr ptr, Block block, object nbytes)
    cdef DataPtr _allocate(self, DataPtr ptr, object nbytes, object size, object stream)
    cdef _drain_small(self)
    cdef _take_back(self, Block block)
