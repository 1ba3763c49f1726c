# What the compiled form of `replay.py` knows of its types.
cimport cython

from dovetail.engine.events cimport Counters
from dovetail.plugins.opened cimport Opened


cdef Counters counters


cdef class Replayer:
    cdef public Opened opened
    cdef public object acts
    cdef public Py_ssize_t launches
    cdef public str name
    cdef public list steps
    cpdef run(self, list at, list env, object stream)


cdef class OneByOne:
    cdef public list launches
    @cython.locals(handles=list, slot=Py_ssize_t)
    cpdef launch(self, object queued, list at, list env, object stream)
