# Static types of the compiled version of `index_writes.py`.
cimport cython

from dovetail.functions.graph_cache cimport replay_recipe
from dovetail.graph.expr cimport Expr, Spec, mark_index_check, node, spec
from dovetail.memory.tracing.stacktrace cimport current_line
from dovetail.tensor.c_fields cimport create_view, expr_of, is_strided
from dovetail.tensor.slicing cimport basic_leaf, is_integer_tensor
from dovetail.tensor.writes cimport cast_to_spec, value_node, write_element, write_tensor

cdef dict _put_young


@cython.locals(want=Spec)
cpdef Expr _value(object name, object value, object target)
cpdef bint _is_number(Expr e, Spec want) except -1
@cython.locals(e=Expr, i=Expr, v=Expr, scattered=Expr, key=tuple, cached=tuple)
cpdef list _put_rows(object x, object index, object value)
@cython.locals(e=Expr, mask_expr=Expr, s=Spec)
cpdef list _masked_number_expr(object x, object mask, object value)
