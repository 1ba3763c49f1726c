# Types of the compiled form of `elementwise_op.py`.
from dovetail.identity_cache cimport IdentityCache
from dovetail.tensor.primitives cimport apply_cached
from dovetail.tensor.c_fields cimport is_strided

cdef IdentityCache _recent_ops
