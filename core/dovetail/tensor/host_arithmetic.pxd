# The C interface of `host_arithmetic.pyx`.


cpdef object compute(int op, object x, object y)
cpdef object compare(int op, object x, object y)
cpdef object compute_unary(int op, object x)
cpdef object select(object condition, object x, object y)
cpdef bint update(int op, object x, object y, Py_ssize_t address) except -1
cpdef object multiply_matrices(object x, object y)
