# What the compiled form of `builder.py` knows of its types: the source is the same.
cimport cython

from dovetail.loops.language cimport Value, exactly
from dovetail.loops.rewrite cimport Cloner


cdef class _Scope:
    cdef public Py_ssize_t depth
    cdef public object loop
    cdef public list statements


cdef class _Scheduler(Cloner):
    cdef public list open
    cdef public dict _scope
    cdef public dict _same
    cdef public dict _loops
    cdef public list _keep
    cdef public bint _in_order
    @cython.locals(stack=list, v=Value, waiting=Py_ssize_t, a=Value)
    cpdef Value operand(self, Value root)
    @cython.locals(a=Value, args=tuple, new=Value, known=Value, scope=_Scope, its=_Scope)
    cdef Value _place(self, Value v)
