# What the compiled form of `programs.py` knows of its types.
from dovetail.plugins.opened cimport Opened


cdef class Bound:
    cdef public tuple fresh
    cdef public tuple drops
    cdef public object run
    cdef public tuple picked
    cdef public tuple offsets


cdef class BoundStep(Bound):
    cdef public object step
    cdef public tuple scalars
    cdef public bint all_scalars
    cdef public bint empty
    cdef public tuple checks


cdef class BoundCall(Bound):
    cdef public object call
    cdef public tuple inputs
    cdef public tuple output
    cdef public object routine


cdef class BoundPlan:
    cdef object __weakref__
    cdef public object plan
    cdef public list steps
    cdef public tuple kept
    cdef public list none
    cdef public list blank
    cdef public Py_ssize_t checks
    cdef public bint guarded
    cpdef bint is_prompt(self, Opened opened, bint waits) except -1
