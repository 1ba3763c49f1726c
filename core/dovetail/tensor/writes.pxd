# The C types of `writes.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node, overwritten, spec, storage_of
from dovetail.engine.evaluate cimport update as update_memory
from dovetail.engine.evaluate cimport write as write_memory
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport Aliases, aliases_of, become, expr_of, is_strided
from dovetail.tensor.tensor cimport make

cdef Flags flags
cdef IdentityCache _scalars
cdef IdentityCache _expanded
cdef dict _KINDS
cdef dict _ORDER


@cython.locals(e=Expr)
cpdef write(object name, object x, list value, bint updates=*, Py_ssize_t others=*)
cpdef _require_writable(object name, Expr e)
@cython.locals(group=Aliases)
cpdef _before_write(object name, object x, Expr value)
@cython.locals(want=Spec)
cpdef write_value(object name, object x, object value)
@cython.locals(before=Expr, after=Expr, e=Expr)
cpdef _move(object name, object x, object value)
cpdef bint _is_pending_as(Expr e, Spec want) except -1
cpdef bint _views_same_memory(Expr a, Expr b) except -1
cpdef Expr _result(object name, object made)
@cython.locals(value=list, want=Spec)
cpdef write_result(object name, object x, list made)
cpdef write_node_out(object name, object out, list result)
@cython.locals(have=Spec, want=Spec)
cpdef require_fits_out(object name, object out, Expr result)
cpdef Expr value_node(object name, object value, object want, object device)
@cython.locals(spec_and_attrs=tuple)
cpdef Expr _number(object name, object value, object want, object device)
cpdef bint _fits(str kind, str into) except -1
@cython.locals(have=Spec)
cpdef Expr to_spec(object name, Expr e, Spec want, object how=*)
