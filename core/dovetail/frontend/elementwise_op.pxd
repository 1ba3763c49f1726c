# What the compiled form of `elementwise_op.py` knows of its types.
from dovetail.memo cimport Memo
from dovetail.tensor.verbs cimport apply_noted

cdef Memo _lately
