cimport cython

from cpython.object cimport PyObject

cdef enum:
    _ENTRIES = 512


@cython.final
cdef class IdentityCache:
    cdef PyObject* _entries[4 * _ENTRIES]  # objects and value of each entry
    cpdef object get(self, object a, object b, object c=*)
    cpdef put(self, object a, object b, object c, object value)
    cpdef age(self)
