# The C types of `known_calls.py`.
cimport cython

from dovetail.functions.graph_cache cimport replay_recipe
from dovetail.graph.expr cimport Expr, Spec, leaf, mark_index_check, node, spec, storage_of
from dovetail.memory.tracing.stacktrace cimport current_line
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.host cimport allocate_leaf, evaluate_leaf, reachable_address
from dovetail.tensor.host_read cimport copy_bytes
from dovetail.records cimport Flags
from dovetail.tensor.primitives cimport apply, apply_one, view
from dovetail.tensor.slicing cimport is_integer_tensor
from dovetail.tensor.tensor cimport create_tensor
from dovetail.tensor.writes cimport (
    cast_to_spec, value_node, write_tensor,
)


cdef Flags flags

cpdef copy_plain(object x)
cpdef cast_plain(object x, object dtype)
cpdef round_plain(object x)
cpdef clip_plain(object x, object low, object high)
cpdef empty_like_plain(object x)
@cython.locals(s=Spec, filling=tuple)
cpdef full_like_plain(object x, object value=*)
cpdef ones_like_plain(object x)
@cython.locals(s=Spec)
cpdef read_cached(object x, object key)
@cython.locals(e=Expr, i=Expr, gathered=Expr, key=tuple, cached=tuple, s=Spec)
cpdef take_cached(object name, object x, object index, object axis)
cpdef gather(object x, object indices, object shape, object axes, object indexed_axes, object index_checks=*)
@cython.locals(e=Expr)
cpdef pack_positions(Expr flat)
@cython.locals(s=Spec)
cpdef Expr record_check(object check, Expr e)
cpdef record_check_site(Expr e)
cpdef bint write_cached(object x, object key, object value) except -1
@cython.locals(e=Expr, i=Expr, v=Expr, scattered=Expr, s=Spec, key=tuple, cached=tuple)
cpdef list _put_cached(object x, object index, object value)
cpdef bint is_number(Expr e, Spec want) except -1
@cython.locals(e=Expr, mask_expr=Expr, s=Spec)
cpdef list _masked_number_expr(object x, object mask, object value)
cpdef product_routine()
@cython.locals(left=Expr, right=Expr, key=tuple)
cpdef multiply_cached(object x1, object x2)
@cython.locals(s=Spec)
cpdef Expr with_dense_rows(Expr left, Expr right, object routine)
cpdef tuple reduction_key(object op, object x, object axis, object keepdims, object dtype)
@cython.locals(key=tuple, cached=tuple)
cpdef reduce_cached(object op, object x, object axis, object keepdims, object dtype)
@cython.locals(exprs=list)
cpdef list exprs_if_strided(object arrays)
@cython.locals(e=Expr, key=list)
cpdef tuple concat_key(object op, object axis, list exprs)
@cython.locals(cached=tuple)
cpdef concat_cached(tuple key, list exprs)
@cython.locals(exprs=list)
cpdef concat_plain(object arrays)
@cython.locals(e=Expr, s=Spec, first=Spec, stacks=bint, address=Py_ssize_t, target=Py_ssize_t, nbytes=Py_ssize_t)
cpdef object join_on_host(str op, list exprs)
