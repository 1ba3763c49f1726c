# What the compiled form of `operators.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, binary_node, node
from dovetail.memo cimport Memo
from dovetail.tensor.fields cimport expr_of
from dovetail.tensor.tensor cimport make
from dovetail.tensor.verbs cimport apply, view
from dovetail.tensor.writes cimport write_result


cdef Memo lately

@cython.locals(a=Expr, b=Expr, found=tuple)
cdef recorded(object op, object x, object other)
@cython.locals(b=Expr, found=tuple)
cdef recorded_reflected(object op, object number, object x)
