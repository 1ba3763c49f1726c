# The C types of `launch_eager.py`.
cimport cython

from dovetail.records cimport Counters
from dovetail.engine.launching cimport run as run_step
from dovetail.engine.launching cimport BoundKernel
from dovetail.graph.expr cimport Expr, mark_value_overwritten, find_readers, reads, storage_of
from dovetail.locks cimport Lock
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage
from dovetail.plugins.device_handle cimport OpenedDevice
from dovetail.records cimport Flags

cdef Counters counters
cdef Flags flags
cdef Lock _lock


cpdef launch_steps(
    object name, object steps, list leaves, tuple written, list numbers, object line
)
@cython.locals(at=list, e=Expr, ptr=DataPtr)
cdef list _addresses(list leaves)
@cython.locals(opened=OpenedDevice, at=list, step=BoundKernel)
cpdef _launch_locked(
    object name, object steps, list leaves, tuple written, list numbers, object line
)
@cython.locals(e=Expr, k=Py_ssize_t, target=Expr, storage=Storage, opened=OpenedDevice)
cpdef OpenedDevice prepare_leaves(list leaves, tuple written)
cpdef launch_raw(
    object name, object source, list leaves, tuple written, list numbers, object work, object grid
)
@cython.locals(opened=OpenedDevice)
cpdef _launch_raw_locked(
    object name, object source, list leaves, tuple written, list numbers, object work, object grid
)
@cython.locals(k=Py_ssize_t, e=Expr)
cpdef _mark_written(list leaves, tuple written, OpenedDevice opened, object name)
