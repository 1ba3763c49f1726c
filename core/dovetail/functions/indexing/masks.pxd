# What the compiled form of `masks.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec
from dovetail.tensor.host cimport evaluated
from dovetail.tensor.tensor cimport make


@cython.locals(e=Expr)
cpdef _packed(Expr flat)
