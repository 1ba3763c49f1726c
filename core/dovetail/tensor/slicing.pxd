# What other modules know of the compiled form of `slicing.py`.
from dovetail.graph.expr cimport Expr


cpdef Expr basic_leaf(object x, object key)
cpdef tuple span(object part, object extent)
cpdef bint is_integer_tensor(object key) except -1
