# What the compiled form of `device.py` knows of its types: `==` and hashes without a call in Python.
cimport cython


@cython.final
cdef class Device:
    cdef object __weakref__
    cdef public Py_hash_t _hash
    cdef public object changes
    cdef public object index
    cdef public object opened
    cdef public object type
