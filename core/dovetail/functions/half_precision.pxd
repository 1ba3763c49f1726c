# Static types of the compiled version of `half_precision.py`.
cimport cython

from dovetail.records cimport DTypeRecord
from dovetail.tensor.c_fields cimport expr_of, is_strided


@cython.locals(own=DTypeRecord)
cpdef bint _is_half(object a) except -1
cpdef bint holds_half(tuple args, dict options) except -1
