# The C types of `primitives.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, binary_node, leaf, node, spec, storage_of
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport record_alias, expr_of, keep_class, is_strided
from dovetail.tensor.immediate cimport compute_unary
from dovetail.tensor.slicing cimport basic_leaf
from dovetail.tensor.tensor cimport create_tensor

cdef Flags flags
cdef IdentityCache recent_binary
cdef IdentityCache recent_unary
cdef dict _young_inferred


@cython.locals(e=Expr, inferred=tuple)
cpdef apply(object op, object args, object attrs=*, object out=*)
cdef object _record_unary(object op, Expr e, Spec s, object attrs)
@cython.locals(e=Expr, inferred=tuple)
cpdef apply_one(object op, object x, object out)
cpdef apply_two(object op, object x1, object x2, object out)
cpdef apply_cached(IdentityCache ops_by_key, object key, object x1, object x2, object out)
@cython.locals(operands=list, key=list, inferred=tuple, e=Expr)
cdef _apply_cached_ternary(object op, object args)
@cython.locals(operands=tuple)
cdef _apply_general(object op, object args, object attrs, object out)
@cython.locals(b=Expr, inferred=tuple)
cdef _apply_cached_binary(object op, Expr a, object other)
@cython.locals(e=Expr, shape=tuple)
cpdef reduce(object op, object x, object axes, bint keepdims, object attrs=*)
@cython.locals(viewed_leaf=Expr)
cpdef view(object x, object m, object name=*)
@cython.locals(e=Expr, viewed_leaf=Expr, s=Spec, strides=tuple)
cpdef Expr view_node(object x, object m)
