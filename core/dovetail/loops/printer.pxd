# What the compiled form of `printer.py` knows of its types: the source is the same.
from dovetail.loops.language cimport Value


cdef class _Printer:
    cdef public list lines
    cdef public object _taken
    cdef public dict _names
    cdef public dict _counts
    cpdef str fresh(self, Value value, str letter)
    cpdef str name(self, Value v)
