# Static types of the compiled version of `statistics.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.tensor cimport create_tensor


cdef Flags flags
cdef dict _young


@cython.locals(key=tuple, cached=tuple)
cpdef _reduce(
    object op, object x, object axis, object keepdims, object out, object dtype=*
)
