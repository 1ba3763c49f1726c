# What the compiled form of `dtypes.py` knows of its types: `==` and hashes without a call in Python.
cimport cython


@cython.final
cdef class DType:
    cdef object __weakref__
    cdef public object __numpy_dtype__
    cdef public Py_hash_t _hash
    cdef public object bits
    cdef public object code
    cdef public DType compute
    cdef public object itemsize
    cdef public object kind
    cdef public object name
    cdef public DType part
