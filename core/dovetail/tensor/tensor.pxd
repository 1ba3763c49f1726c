# The C types of `tensor.py`.
cimport cython

from dovetail.graph.expr cimport Expr, leaf, reads_exported
from dovetail.memory.storage cimport Storage
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport new_tensor

cdef Flags flags


cpdef object make(Expr e)
cdef _limit_pending(Expr e)
cpdef bint is_to_finish(Expr e) except -1
@cython.locals(e=Expr)
cpdef Expr lazy_storage(object x)
@cython.locals(storage=Storage)
cpdef Storage waiting_storage(Expr e)
