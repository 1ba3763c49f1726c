cdef class BlockFinalizer:
    cdef Py_ssize_t host_address  # of the block; 0: not known yet
    cdef long long sum  # of handle and offset; 0: not known yet
    cdef int run(self) except -1


cdef class DataPtr:
    cdef object _handle
    cdef public object offset
    cdef public object nbytes
    cdef public object device
    cdef public object context
    cdef public object give_back
    cdef public object copy
    cdef Py_ssize_t _known_address  # where the host reaches it; 0: not known yet
    cdef long long _sum  # of handle and offset; 0: not known yet
    cdef inline object address(self)
    cdef long long sum(self) except? -1
    cpdef Py_ssize_t _host_address(self, object find) except -1
