# The C types of `launch_eager.py`.
cimport cython

from dovetail.records cimport Counters
from dovetail.engine.launching cimport run as run_step
from dovetail.engine.launching cimport BoundStep
from dovetail.graph.expr cimport Expr, overwritten, readers, reads, storage_of
from dovetail.locks cimport Lock
from dovetail.memory.pointer cimport DataPtr
from dovetail.memory.storage cimport Storage
from dovetail.plugins.device_handle cimport Opened
from dovetail.records cimport Flags

cdef Counters counters
cdef Flags flags
cdef Lock _turn


cpdef launch(
    object name, object steps, list leaves, tuple written, list numbers, object line
)
@cython.locals(at=list, e=Expr, ptr=DataPtr)
cdef list _addresses(list leaves)
@cython.locals(opened=Opened, at=list, step=BoundStep)
cpdef _launch_locked(
    object name, object steps, list leaves, tuple written, list numbers, object line
)
@cython.locals(e=Expr, k=Py_ssize_t, target=Expr, storage=Storage, opened=Opened)
cpdef Opened ready(list leaves, tuple written)
cpdef run(
    object name, object source, list leaves, tuple written, list numbers, object work, object grid
)
@cython.locals(opened=Opened)
cpdef _run_locked(
    object name, object source, list leaves, tuple written, list numbers, object work, object grid
)
@cython.locals(k=Py_ssize_t, e=Expr)
cpdef _mark_written(list leaves, tuple written, Opened opened, object name)
