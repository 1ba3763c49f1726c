# What the compiled form of `emitter.py` knows of its types: the source is the same.
from dovetail.fusion.groups cimport Access, Term
from dovetail.loops.language cimport Value


cdef class Emitter:
    cdef public object builder
    cdef public list buffers
    cdef public list ints
    cdef public list scalars
    cdef public dict _buffer
    cdef public dict _scalar
    cdef public dict _done
    cdef public dict _reduced
    cdef public object _outer
    cdef public dict _below
    cdef public list _alive
    cdef public dict failures
    cdef public dict _strides
    cdef public dict _offsets
    cdef public object row_length
    cdef public list _row_sizes
