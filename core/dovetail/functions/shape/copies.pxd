# Static types of the compiled version of `copies.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node
from dovetail.tensor.c_fields cimport expr_of, is_strided
from dovetail.tensor.tensor cimport create_tensor


@cython.locals(exprs=list)
cpdef list _exprs_if_strided(object arrays)
@cython.locals(e=Expr, key=list)
cpdef tuple _concat_key(object op, object axis, object exprs)
cpdef _concat_cached(object exprs, object moves, Spec result_spec, object axis)
@cython.locals(e=Expr, s=Spec, first=Spec, stacks=bint, address=Py_ssize_t, target=Py_ssize_t, nbytes=Py_ssize_t)
cpdef object _join_on_host(str op, list exprs)
