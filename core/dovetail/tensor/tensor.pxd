# The C types of `tensor.py`.
cimport cython

from dovetail.graph.expr cimport Expr, Spec, leaf, reads_exported
from dovetail.memory.storage cimport Storage
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, new_tensor, is_strided

cdef Flags flags


cpdef object create_tensor(Expr e)
cdef _settle_new_node(Expr e)
cpdef bint must_evaluate(Expr e) except -1
@cython.locals(e=Expr)
cpdef Expr attach_lazy_storage(object x)
@cython.locals(storage=Storage)
cpdef Storage create_lazy_storage(Expr e)
