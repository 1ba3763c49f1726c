# Static types of the compiled version of `statistics.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.tensor.c_fields cimport expr_of
from dovetail.tensor.tensor cimport make


cdef dict _young


@cython.locals(key=tuple, cached=tuple)
cpdef _reduce(
    object op, object x, object axis, object keepdims, object out, object dtype=*
)
