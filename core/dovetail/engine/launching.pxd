# The C types of `launching.py`.
cimport cython

from dovetail.records cimport Counters, Flags
from dovetail.graph.expr cimport Expr, convert_to_leaf
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage, storage_over
from dovetail.plugins.device_handle cimport OpenedDevice


cdef Counters counters
cdef Flags flags


cdef class BoundPlanStep:
    cdef public tuple allocations
    cdef public tuple freed_slots
    cdef public object run
    cdef public tuple address_positions
    cdef public tuple offsets


cdef class BoundKernel(BoundPlanStep):
    cdef public object step
    cdef public tuple scalars
    cdef public bint all_scalars
    cdef public bint has_empty_grid
    cdef public tuple checks
    cdef public tuple written


cdef class BoundCall(BoundPlanStep):
    cdef public object call
    cdef public tuple inputs
    cdef public tuple output
    cdef public object routine


cdef class BoundPlan:
    cdef object __weakref__
    cdef public object plan
    cdef public list steps
    cdef public tuple kept
    cdef public list empty_memory
    cdef public list empty_addresses
    cdef public Py_ssize_t checks
    cdef public bint is_cached
    cpdef bint is_prompt(self, OpenedDevice opened, bint reports_checks) except -1


@cython.locals(at=list, k=Py_ssize_t, e=Expr)
cpdef list initial_addresses(BoundPlan plan, list leaves, Expr target)
@cython.locals(ptr=DataPtr)
cpdef set_address(list at, Py_ssize_t k, Expr e)
@cython.locals(launches=LaunchList, i=Py_ssize_t, memory=DataPtr)
cpdef launch_plan(
    OpenedDevice opened, BoundPlan plan, list nodes, list leaves, list numbers, Expr target,
    object stream, object run_checked=*
)


cdef class LaunchList:
    cdef public list addresses
    cdef public list keep
    cdef public list nodes
    cdef public list numbers
    cdef public OpenedDevice opened
    cdef public object stream
    cdef bint _is_batched
    cdef list _queued_launches
    cdef list _steps
    cdef list _drops
    @cython.locals(slot=Py_ssize_t, ptr=DataPtr)
    cpdef run(self, list steps, object run_checked)
    cdef DataPtr _allocate(self, object nbytes)
    cdef _append(self, BoundKernel step)
    cdef _flush(self)


cdef tuple launch_arguments(BoundKernel step, list at)
cdef scalars(BoundKernel step, object numbers)
@cython.locals(values=list, k=Py_ssize_t, j=Py_ssize_t)
cdef tuple select_addresses(list at, tuple which)
@cython.locals(args=tuple)
cpdef run(OpenedDevice opened, BoundKernel step, list at, object numbers, object stream)
cpdef run_library_call(OpenedDevice opened, BoundCall bound, list at, object stream)
@cython.locals(slot=Py_ssize_t)
cpdef tuple strided_operand(list at, tuple p)
@cython.locals(values=list)
cpdef tuple add_offsets(tuple args, tuple offsets)
