# The C types of `operators.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, binary_node, node
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.host_index cimport transpose
from dovetail.tensor.immediate cimport compute_binary
from dovetail.tensor.tensor cimport create_tensor
from dovetail.tensor.primitives cimport apply, view
from dovetail.tensor.writes cimport update_element, write_result


cdef Flags flags
cdef IdentityCache recent_binary
cdef object FLOOR_DIVIDE, PYTHON_FLOOR_DIVIDE

@cython.locals(a=Expr, b=Expr, inferred=tuple)
cdef record_binary(object op, object x, object other)
@cython.locals(cache=IdentityCache)
cpdef object promote(object op, object owner, object a, object b)
cpdef object as_number(object x, object dtype)
cdef object _record(object op, Expr a, object b, Spec s, object x, object y)
cdef object _choose_division(object dtype, object x, object y)
cdef object _apply(object op, object a, object b)
@cython.locals(b=Expr, inferred=tuple)
cdef record_reflected(object op, object number, object x)
