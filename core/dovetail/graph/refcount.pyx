"""Reference counts of pending nodes: the compiled form of `refcount.py`.

The counts are read directly, so the baselines are constants.
"""

cdef extern from "Python.h":
    void* PyList_GET_ITEM(object, Py_ssize_t)  # borrowed
    Py_ssize_t Py_REFCNT(void*)


Box = list  # of one value


cdef inline Py_ssize_t references(list of, Py_ssize_t i) noexcept:
    """Return the reference count of an element, including the list's reference."""
    return Py_REFCNT(PyList_GET_ITEM(of, i))


def pop(list holder):
    """Remove the value from the holder and return it."""
    return holder.pop()


cpdef bint is_sole_owner(list box, Py_ssize_t known_references=0) noexcept:
    """Return True if the box and `known_references` others are the only references to its value."""
    return references(box, 0) - known_references == 1


def find_external_references(list nodes, internal_references):
    """Return positions of nodes referenced beyond the list, one dict and `internal_references`.

    The caller holds the nodes in the list `nodes` and as keys of exactly one dict.
    """
    cdef Py_ssize_t i = 0
    positions = []
    for inner in internal_references:
        if references(nodes, i) - <Py_ssize_t>inner > 2:
            positions.append(i)
        i += 1
    return positions


cpdef bint matches_references(list nodes, list internal_references, list pattern):
    """Return True if exactly the nodes marked True in `pattern` are referenced from outside.

    None matches both. The list `nodes` and the `internal_references` references do not count.
    """
    cdef Py_ssize_t i
    for i in range(len(nodes)):
        expected = pattern[i]
        if expected is not None:
            if (references(nodes, i) - <Py_ssize_t>internal_references[i] > 1) != <bint>expected:
                return False
    return True
