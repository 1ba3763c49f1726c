cimport cython

from dovetail.memory.pointer cimport DataPtr
from dovetail.records cimport DeviceRecord


cdef class Storage:
    cdef object __weakref__
    cdef public tuple checks
    cdef public DeviceRecord device
    cdef public object dtype
    cdef public list exports
    cdef public object nbytes
    cdef public object overlap
    cdef public object pending
    cdef public DataPtr ptr
    cdef public bint read_only
    cdef public list readers
    cdef public bint seen
    cdef public long long serial
    cdef public object watch
    cpdef bint is_exported(self) except -1



cdef long long _serial
cpdef long long next_serial() noexcept


@cython.locals(storage=Storage)
cpdef Storage storage_over(DataPtr ptr, object device)
@cython.locals(storage=Storage)
cpdef Storage storage_at(DataPtr ptr, object nbytes, object device, bint read_only=*)
