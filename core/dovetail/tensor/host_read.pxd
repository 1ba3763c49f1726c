# The C interface of `host_read.pyx`.
from cpython.object cimport PyObject


cpdef object element(str dtype, Py_ssize_t address)
cpdef bint store_number(str dtype, Py_ssize_t address, object value) except -1
cdef object create_scalar(str dtype, Py_ssize_t itemsize, Py_ssize_t address)
cdef bint read_index(PyObject* part, Py_ssize_t* index) noexcept
cpdef bint store_scalar(str dtype, Py_ssize_t address, Py_ssize_t itemsize, object value) except -1
cpdef bint fill_numbers(str dtype, Py_ssize_t address, object value, Py_ssize_t count, Py_ssize_t step, Py_ssize_t itemsize) except -1
cpdef bint update_number(str op, str dtype, Py_ssize_t address, object other) except -1
cpdef object round_number(str dtype, object value)
cpdef object compute_number(str op, str dtype, object x, object y)
cpdef copy_bytes(Py_ssize_t target, Py_ssize_t source, Py_ssize_t nbytes)
cpdef object array_over(object memory, tuple shape, object dtype, object start, object strides)
cpdef bint copy_array(Py_ssize_t address, object values) except -1
