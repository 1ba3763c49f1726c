# The C interface of `slicing.pyx`.
from cpython.object cimport PyObject

from dovetail.graph.expr cimport Expr, Spec


cpdef Expr basic_leaf(object x, object key)
cpdef Py_ssize_t element_position(Expr e, object key) except? -1
cpdef tuple resolve_slice(object part, object extent)
cpdef bint is_integer_tensor(object key) except -1
cdef bint add_step(PyObject* part, Py_ssize_t extent, Py_ssize_t step, Py_ssize_t* position) noexcept
cdef Spec spec_of_shape(Spec parent, Py_ssize_t* shape, Py_ssize_t ndim)
