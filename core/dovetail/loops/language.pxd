# What the compiled form of `language.py` knows of its types: the source is the same.
cimport cython


cdef class Value:
    cdef public str op
    cdef public object dtype
    cdef public tuple args
    cdef public object attr


cpdef Value const(object value, object dtype)
cpdef Value wrap(object x, object dtype)
cpdef Value binary(str op, object a, object b)
cdef Value _fold_integer(str op, Value a, Value b)
cpdef Value fma(Value a, object b, object c)
cpdef Value unary(str op, Value a)
cpdef tuple exactly(object value)
cdef Value _const(object value, object dtype)
cdef dict _consts
