# What the compiled form of `guards.py` knows of its types.
cimport cython

from dovetail.engine.known cimport Known
from dovetail.graph.expr cimport Expr
from dovetail.memo cimport Memo

cdef Memo _values, _updates, _staying, _together


@cython.locals(known=Known)
cpdef bint match(Expr root, bint waits=*) except -1
@cython.locals(known=Known, root=Expr, found=tuple)
cpdef bint match_all(list roots, bint waits) except -1
@cython.locals(known=Known, done=int)
cpdef int match_into(Expr value, Expr target, Py_ssize_t others=*) except -1
@cython.locals(known=Known, done=int)
cpdef int match_update(Expr value, Expr target) except -1
cdef tuple _candidates(Memo lately, Expr root, tuple strides, object kind)
