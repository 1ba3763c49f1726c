from cpython.object cimport PyObject

cdef enum:
    _PLACES = 512


cdef class Memo:
    cdef PyObject* _found[4 * _PLACES]  # objects and value of each entry
    cpdef object get(self, object a, object b, object c=*)
    cpdef put(self, object a, object b, object c, object value)
    cpdef turn(self)
