# Static types of the compiled version of `matrix_products.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.tensor cimport create_tensor
from dovetail.tensor.primitives cimport apply, reduce, view_node, view


cdef Flags flags


@cython.locals(left=Expr, right=Expr)
cpdef _matmul(object name, object x1, object x2)
@cython.locals(s=Spec)
cpdef Expr _with_dense_rows(Expr left, Expr right, object routine)
