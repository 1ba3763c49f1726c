# The C interface of `host_index.pyx`.
from dovetail.graph.expr cimport Expr


cpdef object gather(object x, object key)
cpdef bint scatter(object x, object key, object value, Py_ssize_t address) except -1
cpdef bint copy_elements(Expr part, object value) except -1
cpdef object copy_tensor(object x, bint flat=*)
cpdef object stack_rows(list rows)
cpdef object concat(object tensors, Py_ssize_t axis)
cpdef object create_filled(object kind, object shape, object dtype, object device, object value)
cpdef object create_range(object kind, tuple ends, object dtype, object device)
cpdef object create_from_host(object kind, object values, object dtype, object device)
cpdef object create_from_numbers(object kind, object values, object dtype, object device)
cpdef object find_true(object x, bint raveled)
cpdef object transpose(object x)
cpdef object diagonal_view(object x, Py_ssize_t k)
