cdef class DataPtr:
    cdef object _handle
    cdef public object offset
    cdef public object nbytes
    cdef public object device
    cdef public object context
    cdef public object give_back
    cdef public object copy
    cdef inline object address(self)
