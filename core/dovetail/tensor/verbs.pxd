# What the compiled form of `verbs.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, leaf, node, spec, storage_of
from dovetail.tensor.tensor cimport make


@cython.locals(e=Expr, found=tuple, operands=tuple)
cpdef apply(object op, object args, object attrs=*, object out=*)
@cython.locals(e=Expr, shape=tuple)
cpdef reduce(object op, object x, object axes, bint keepdims, object attrs=*)
@cython.locals(e=Expr, seen=Expr, s=Spec, strides=tuple)
cpdef view(object x, object m, object name=*)
