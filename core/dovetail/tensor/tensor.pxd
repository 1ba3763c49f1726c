# What the compiled form of `tensor.py` knows of its types.
cimport cython

from dovetail.graph.expr cimport Expr, leaf, reads_exported
from dovetail.memory.storage cimport Storage
from dovetail.settings cimport Flags
from dovetail.graph.weak cimport alive, weakly
from dovetail.tensor.fields cimport aliases_of, become_alias, expr_of, made

cdef Flags flags


cdef class Aliases:
    cdef public list refs
    cdef public bint taped
    @cython.locals(n=Py_ssize_t, e=Expr)
    cpdef add(self, object y)


cpdef object make(Expr e)
cdef _bound(Expr e)
cpdef bint is_to_finish(Expr e) except -1
@cython.locals(group=Aliases)
cpdef object alias(object x, object y)
@cython.locals(e=Expr)
cpdef Expr lazy_storage(object x)
@cython.locals(storage=Storage)
cpdef Storage waiting_storage(Expr e)
