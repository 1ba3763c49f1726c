# The C types of `writes.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, node, mark_value_overwritten, spec, storage_of
from dovetail.engine.evaluate cimport may_write_at_once
from dovetail.engine.evaluate cimport update as update_memory
from dovetail.engine.evaluate cimport write as write_memory
from dovetail.identity_cache cimport IdentityCache
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport AliasGroup, aliases_of, become, expr_of, is_strided
from dovetail.tensor.host cimport number_at_hand, reachable_address
from dovetail.tensor.host_read cimport array_over, copy_bytes, fill_numbers, store_number, store_scalar, update_number
from dovetail.tensor.slicing cimport element_position
from dovetail.tensor.tensor cimport create_tensor

cdef Flags flags
cdef Py_ssize_t NO_ELEMENT
cdef IdentityCache _scalars
cdef IdentityCache _expanded
cdef dict _KINDS
cdef dict KIND_RANKS


@cython.locals(e=Expr)
cpdef write_tensor(object name, object x, list value, bint is_update=*, Py_ssize_t other_references=*)
cpdef _require_writable(object name, Expr e)
cpdef require_not_broadcast(object name, Expr e)
cpdef bint is_broadcast(Expr e) except -1
@cython.locals(group=AliasGroup)
cpdef _before_write(object name, object x, Expr value)
@cython.locals(want=Spec)
cpdef write_value(object name, object x, object value)
@cython.locals(e=Expr, source=Expr, position=Py_ssize_t, address=Py_ssize_t, origin=Py_ssize_t)
cpdef bint write_element(object x, object key, object value) except -1
@cython.locals(s=Spec, step=Py_ssize_t, itemsize=Py_ssize_t, address=Py_ssize_t)
cpdef bint fill_elements(object x, Expr part, object value) except -1
@cython.locals(e=Expr, s=Spec, address=Py_ssize_t)
cpdef editable_array(object x)
@cython.locals(e=Expr, source=Expr, address=Py_ssize_t)
cpdef bint update_element(object op, object x, object other) except -1
@cython.locals(e=Expr, group=AliasGroup)
cdef Py_ssize_t _idle_address(object x) except -1
cdef Py_ssize_t _address_of_number(Expr source) except -1
@cython.locals(before=Expr, after=Expr, e=Expr, copy=Expr)
cpdef _write_pending(object name, object x, object value)
cpdef bint _is_pending_as(Expr e, Spec want) except -1
cpdef bint _views_same_memory(Expr a, Expr b) except -1
cpdef Expr _node_of_result(object name, object made)
@cython.locals(value=list, want=Spec)
cpdef write_result(object name, object x, list made)
cpdef write_node_out(object name, object out, list result)
@cython.locals(have=Spec, want=Spec)
cpdef require_fits_out(object name, object out, Expr result)
cpdef Expr value_node(object name, object value, object want, object device)
@cython.locals(spec_and_attrs=tuple)
cpdef Expr _number(object name, object value, object want, object device)
cpdef bint _fits(str kind, str target_kind) except -1
@cython.locals(have=Spec)
cpdef Expr cast_to_spec(object name, Expr e, Spec want, object name_suffix=*)
