# The C types of `replay.py`.
cimport cython

from dovetail.records cimport Counters
from dovetail.engine.launching cimport strided_operand
from dovetail.plugins.device_handle cimport Opened
from dovetail.records cimport Flags


cdef Counters counters
cdef Flags flags


cdef class Replayer:
    cdef public Opened opened
    cdef public object acts
    cdef public Py_ssize_t launches
    cdef public Py_ssize_t calls
    cdef public str name
    cdef public list steps
    cpdef run(self, list at, list env, object stream)


cdef class QueuedLaunches:
    cdef public object backend
    cdef public list launches


cdef class Checked:
    cdef public object queued
    cdef public list cells
    cdef public object prompt


cdef class Routine:
    cdef public object backend
    cdef public object routine
    cdef public list inputs
    cdef public tuple output


@cython.locals(addresses=list, slot=Py_ssize_t)
cpdef tuple handles(tuple buffers, list at)
cpdef list numbers(tuple scalars, list env)
