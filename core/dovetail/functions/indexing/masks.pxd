# Static types of the compiled version of `masks.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec
from dovetail.tensor.host cimport evaluated
from dovetail.tensor.tensor cimport make


@cython.locals(e=Expr)
cpdef _pack_positions(Expr flat)
