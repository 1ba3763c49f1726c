# Static types of the compiled version of `masks.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec
from dovetail.tensor.host cimport evaluate_leaf
from dovetail.tensor.tensor cimport create_tensor


@cython.locals(e=Expr)
cpdef _pack_positions(Expr flat)
