# Static types of the compiled version of `index_reads.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, mark_index_check, node, spec
from dovetail.memory.tracing.stacktrace cimport current_line
from dovetail.tensor.c_fields cimport create_view, expr_of, is_strided, keep_class
from dovetail.tensor.slicing cimport basic_leaf, is_integer_tensor
from dovetail.tensor.tensor cimport create_tensor


@cython.locals(e=Expr, i=Expr, gathered=Expr, key=tuple, cached=tuple, s=Spec)
cpdef _take_one_axis(object name, object x, object index, object d)
cpdef _record_check_site(Expr e)
