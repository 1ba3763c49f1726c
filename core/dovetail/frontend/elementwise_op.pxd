# Types of the compiled form of `elementwise_op.py`.
from dovetail.identity_cache cimport Memo
from dovetail.tensor.primitives cimport apply_noted

cdef Memo _recent_ops
