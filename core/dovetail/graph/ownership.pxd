from cpython.object cimport PyObject

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)


cdef inline bint is_held_beyond(PyObject* node, Py_ssize_t known) noexcept:
    """Whether something refers to a node, besides one who asks and so many others."""
    return Py_REFCNT(node) - known > 1


cpdef bint is_held_alike(list nodes, list uses, list held)
