# Static types of the compiled version of `copies.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.tensor.fields cimport expr_of, is_strided
from dovetail.tensor.tensor cimport make


@cython.locals(found=list)
cpdef list _exprs(object arrays)
@cython.locals(e=Expr, key=list)
cpdef tuple _key(object op, object axis, object exprs)
cpdef _rejoined(object parts, object moves, Spec made, object axis)
