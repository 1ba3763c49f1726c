# The C interface of `slicing.pyx`.
from dovetail.graph.expr cimport Expr


cpdef Expr basic_leaf(object x, object key)
cpdef Py_ssize_t element_position(Expr e, object key) except? -1
cpdef tuple resolve_slice(object part, object extent)
cpdef bint is_integer_tensor(object key) except -1
