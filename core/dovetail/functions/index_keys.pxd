# What the compiled form of `index_keys.py` knows of its types.
from dovetail.graph.expr cimport Expr
from dovetail.tensor.fields cimport expr_of, is_strided

cpdef bint is_integer_tensor(object key) except -1
