# The C interface of `alias_analysis.pyx`.
cpdef bint are_apart(
    tuple shape, tuple strides, Py_ssize_t offset,
    tuple shape_b, tuple strides_b, Py_ssize_t offset_b,
) except -1
