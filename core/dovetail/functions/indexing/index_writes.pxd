# Static types of the compiled version of `index_writes.py`.
cimport cython

from dovetail.functions.graph_cache cimport again
from dovetail.graph.expr cimport Expr, Spec, ask, node, spec
from dovetail.memory.tracing.stacktrace cimport line
from dovetail.tensor.c_fields cimport expr_of, is_strided
from dovetail.tensor.slicing cimport basic_leaf, is_integer_tensor
from dovetail.tensor.writes cimport to_spec, value_node, write

cdef dict _put_young


@cython.locals(want=Spec)
cpdef Expr _value(object name, object value, object target)
cpdef bint _is_number(Expr e, Spec want) except -1
@cython.locals(e=Expr, i=Expr, v=Expr, scattered=Expr, key=tuple, cached=tuple)
cpdef list _put_rows(object x, object index, object value)
@cython.locals(e=Expr, under=Expr, s=Spec)
cpdef list _masked_number(object x, object mask, object value)
