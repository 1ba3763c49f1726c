# The C interface of `host_read.pyx`.
cpdef object element(str dtype, Py_ssize_t address)
cpdef bint store_number(str dtype, Py_ssize_t address, object value) except -1
cpdef bint update_number(str op, str dtype, Py_ssize_t address, object other) except -1
cpdef copy_bytes(Py_ssize_t target, Py_ssize_t source, Py_ssize_t nbytes)
cpdef object array_over(object memory, tuple shape, object dtype, object start, object strides)
cpdef bint copy_array(Py_ssize_t address, object values) except -1
