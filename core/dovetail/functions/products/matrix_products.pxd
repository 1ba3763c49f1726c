# Static types of the compiled version of `matrix_products.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.tensor.c_fields cimport expr_of
from dovetail.tensor.tensor cimport make
from dovetail.tensor.primitives cimport apply, reduce, seen_as, view


@cython.locals(e1=Expr, e2=Expr, products=Expr, left=Expr, right=Expr)
cpdef _matmul(object name, object x1, object x2)
@cython.locals(moved=Expr)
cpdef Expr _apply_move(object x, object move)
@cython.locals(s=Spec)
cpdef Expr _with_dense_rows(Expr left, Expr right, object how)
