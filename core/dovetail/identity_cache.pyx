"""The identity-keyed cache of `identity_cache.py`, compiled: a direct-mapped table, indexed by addresses."""

cimport cython

cdef extern from "Python.h":
    void Py_INCREF(PyObject*)
    void Py_XDECREF(PyObject*)

ENTRIES_MAX = _ENTRIES


cdef inline Py_ssize_t _slot(PyObject* a, PyObject* b, PyObject* c):
    return 4 * (((<size_t>a >> 4) ^ (<size_t>b >> 5) ^ (<size_t>c >> 6)) & (_ENTRIES - 1))


@cython.final
cdef class IdentityCache:
    """A cache of values under up to three objects, which it keeps alive."""

    cpdef object get(self, object a, object b, object c=None):
        """Return the value under these very objects, or None."""
        cdef PyObject* x = <PyObject*>a
        cdef PyObject* y = <PyObject*>b
        cdef PyObject* z = <PyObject*>c
        cdef PyObject** at = &self._entries[_slot(x, y, z)]
        if at[0] == x and at[1] == y and at[2] == z and at[3] != NULL:
            return <object>at[3]
        return None

    cpdef put(self, object a, object b, object c, object value):
        """Store a value under these objects, in place of the entry of their slot."""
        cdef PyObject* x = <PyObject*>a
        cdef PyObject* y = <PyObject*>b
        cdef PyObject* z = <PyObject*>c
        cdef PyObject** at = &self._entries[_slot(x, y, z)]
        cdef PyObject* before[4]
        for i in range(4):
            before[i] = at[i]
        at[0], at[1], at[2], at[3] = x, y, z, <PyObject*>value
        for i in range(4):
            Py_INCREF(at[i])
        for i in range(4):
            Py_XDECREF(before[i])

    cpdef age(self):
        """Remove all entries."""
        cdef Py_ssize_t i
        cdef PyObject* before
        for i in range(4 * _ENTRIES):
            before, self._entries[i] = self._entries[i], NULL
            Py_XDECREF(before)

    def __dealloc__(self):
        self.age()
