from cpython.object cimport PyObject

cdef extern from "Python.h":
    Py_ssize_t Py_REFCNT(PyObject*)


cdef inline bint has_references_beyond(PyObject* node, Py_ssize_t known) noexcept:
    """Return True if there are references to a node beyond the caller's and `known` others."""
    return Py_REFCNT(node) - known > 1


cpdef bint is_sole_owner(list box, Py_ssize_t known_references=*) noexcept
cpdef bint matches_references(list nodes, list internal_references, list pattern)
