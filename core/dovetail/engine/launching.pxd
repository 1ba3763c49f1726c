# What the compiled form of `launching.py` knows of its types.
cimport cython

from dovetail.records cimport Counters
from dovetail.graph.expr cimport Expr, settle
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.opened cimport Opened


cdef Counters counters


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
    cdef public tuple written


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


@cython.locals(at=list, k=Py_ssize_t, e=Expr)
cpdef list addresses(BoundPlan plan, list leaves, Expr target)
@cython.locals(ptr=DataPtr)
cpdef place(list at, Py_ssize_t k, Expr e)
@cython.locals(
    at=list, keep=list, i=Py_ssize_t, kept=DataPtr
)
cpdef launch(
    Opened opened, BoundPlan plan, list nodes, list leaves, list numbers, Expr target, object stream
)
@cython.locals(slot=Py_ssize_t, ptr=DataPtr, step=Bound)
cdef in_turn(
    Opened opened, BoundPlan plan, list at, list keep, list nodes, list numbers, object stream
)
@cython.locals(slot=Py_ssize_t, ptr=DataPtr)
cpdef together(
    Opened opened, BoundPlan plan, list at, list keep, list nodes, list numbers, object stream
)
cdef tuple arguments(BoundStep step, list at)
cdef scalars(BoundStep step, object numbers)
@cython.locals(found=list, k=Py_ssize_t, j=Py_ssize_t)
cdef tuple picked(list at, tuple which)
@cython.locals(args=tuple)
cpdef run(Opened opened, BoundStep step, list at, object numbers, object stream)
cpdef call(Opened opened, BoundCall bound, list at, object stream)
@cython.locals(slot=Py_ssize_t)
cpdef tuple part(list at, tuple p)
@cython.locals(k=Py_ssize_t, slot=Py_ssize_t, i=Py_ssize_t)
cpdef run_checked(
    Opened opened, BoundStep step, list at, list nodes, object numbers, object stream
)
@cython.locals(found=list)
cpdef tuple shifted(tuple args, tuple offsets)
