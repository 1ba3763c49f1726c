# The C types of `faults.py`.
cdef class ErrorCells:
    cdef object __weakref__
    cdef public object _backend
    cdef public dict _cells
    cdef public dict _free
    cdef public object _lock
    cdef public bint _may_have_host_cells
    cdef public object _host_cells
    cdef public object _unreported
    cdef public dict _unsettled
    cdef public bint pending
    cpdef object host_cells(self)
