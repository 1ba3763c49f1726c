# What the compiled form of `rewrite.py` knows of its types: the source is the same.
from dovetail.loops.language cimport Value


cdef class Cloner:
    cdef public object buffers
    cdef public dict new
    cdef public set emitted
    cdef public list out
    cpdef Value operand(self, Value v)
