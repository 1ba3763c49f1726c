# The C interface of `host_read.pyx`.
cpdef object element(str dtype, Py_ssize_t address)
cpdef object array_over(object memory, tuple shape, object dtype, object start, object strides)
cpdef bint copy_array(Py_ssize_t address, object values) except -1
