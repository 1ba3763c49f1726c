# The C types of `immediate.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, log_constant
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport DTypeRecord, Flags
from dovetail.tensor.c_fields cimport new_tensor
from dovetail.tensor.host cimport number_at_hand
from dovetail.tensor.host_read cimport compute_number, round_number

cdef Flags flags
cdef dict _UNARY
cdef DTypeRecord bool_
cdef object FULL
cdef object SQRT
cdef IdentityCache _attrs_of_specs


@cython.locals(computed=DTypeRecord)
cpdef object compute_binary(object op, object a, object b, Spec s)
cpdef object compute_unary(object op, Expr a, Spec s)
cpdef bint is_observed() except -1
cdef DTypeRecord _dtype_of(Expr e)
@cython.locals(e=Expr)
cdef object _read_number(object a)
@cython.locals(e=Expr)
cdef object _create_constant(Spec s, object value)
