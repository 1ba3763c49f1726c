# Types of the compiled form of `elementwise_op.py`.
from dovetail.memo cimport Memo
from dovetail.tensor.verbs cimport apply_noted

cdef Memo _recent_ops
