# The C types of `launching.py`.
cimport cython

from dovetail.records cimport Counters, Flags
from dovetail.graph.expr cimport Expr, settle
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport Opened


cdef Counters counters
cdef Flags flags


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
cpdef list initial_addresses(BoundPlan plan, list leaves, Expr target)
@cython.locals(ptr=DataPtr)
cpdef set_address(list at, Py_ssize_t k, Expr e)
@cython.locals(launches=LaunchList, i=Py_ssize_t, memory=DataPtr)
cpdef launch(
    Opened opened, BoundPlan plan, list nodes, list leaves, list numbers, Expr target,
    object stream, object run_checked=*
)


cdef class LaunchList:
    cdef public list at
    cdef public list keep
    cdef public list nodes
    cdef public list numbers
    cdef public Opened opened
    cdef public object stream
    cdef bint _is_batched
    cdef list _waiting
    cdef list _steps
    cdef list _drops
    @cython.locals(slot=Py_ssize_t, ptr=DataPtr)
    cpdef run(self, list steps, object run_checked)
    cdef DataPtr _allocate(self, object nbytes)
    cdef _append(self, BoundStep step)
    cdef _flush(self)


cdef tuple arguments(BoundStep step, list at)
cdef scalars(BoundStep step, object numbers)
@cython.locals(values=list, k=Py_ssize_t, j=Py_ssize_t)
cdef tuple select(list at, tuple which)
@cython.locals(args=tuple)
cpdef run(Opened opened, BoundStep step, list at, object numbers, object stream)
cpdef call(Opened opened, BoundCall bound, list at, object stream)
@cython.locals(slot=Py_ssize_t)
cpdef tuple strided_operand(list at, tuple p)
@cython.locals(values=list)
cpdef tuple add_offsets(tuple args, tuple offsets)
