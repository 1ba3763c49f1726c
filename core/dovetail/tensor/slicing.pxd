# What the compiled form of `slicing.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, leaf, spec
from dovetail.tensor.fields cimport expr_of


@cython.locals(
    e=Expr, whole=tuple, steps=tuple, parts=tuple, used=Py_ssize_t, ndim=Py_ssize_t, d=Py_ssize_t,
    offset=Py_ssize_t, extent=Py_ssize_t, step=Py_ssize_t, start=Py_ssize_t, length=Py_ssize_t,
    by=Py_ssize_t, shape=list, strides=list,
)
cpdef Expr basic_leaf(object x, object key)
cpdef tuple span(object part, object extent)
