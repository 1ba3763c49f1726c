# What the compiled form of `operators.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, binary_node
from dovetail.tensor.fields cimport expr_of
from dovetail.tensor.tensor cimport make
from dovetail.tensor.verbs cimport apply, view
from dovetail.tensor.writes cimport write_result


@cython.locals(a=Expr, b=Expr, found=tuple)
cdef recorded(object op, object known, dict specs, object x, object other)
