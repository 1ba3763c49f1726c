# Types of the compiled form of `launch_arguments.py`.
cimport cython

from dovetail.graph.expr cimport Expr
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport Aliases, aliases_of, expr_of, is_strided

cdef Flags flags


@cython.locals(leaves=list, e=Expr, k=Py_ssize_t, i=Py_ssize_t, group=Aliases, grad=bint)
cpdef list leaves_of(
    object kernel, object parameters, tuple tensors, tuple written, tuple args
)
@cython.locals(i=Py_ssize_t, j=Py_ssize_t, target=Expr, e=Expr)
cpdef _copy_overlapping(
    object kernel, object parameters, tuple tensors, tuple written, list leaves
)
cpdef bint _may_overlap(Expr a, Expr b) except -1
