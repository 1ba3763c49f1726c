"""Reference counts of pending nodes: the compiled form of `refcount.py`.

The counts are read directly, so the baselines are constants.
"""

cdef extern from "Python.h":
    void* PyList_GET_ITEM(object, Py_ssize_t)  # borrowed
    Py_ssize_t Py_REFCNT(void*)


Holder = list  # of one value


cdef inline Py_ssize_t references(list of, Py_ssize_t i) noexcept:
    """Return the reference count of an element, including the list's reference."""
    return Py_REFCNT(PyList_GET_ITEM(of, i))


def take(list holder):
    """Remove the value from the holder and return it."""
    return holder.pop()


def is_sole_owner(list holder, Py_ssize_t known=0):
    """Return True if the holder and `known` others are the only references to its value."""
    return references(holder, 0) - known == 1


def externally_referenced(list nodes, known):
    """Return the positions of nodes with more references than `known`.

    The list `nodes` and a dict that has the nodes as keys are part of the baseline.
    """
    cdef Py_ssize_t i = 0
    positions = []
    for inner in known:
        if references(nodes, i) - <Py_ssize_t>inner > 2:
            positions.append(i)
        i += 1
    return positions


cpdef bint matches_references(list nodes, list known, list pattern):
    """Return True if exactly the nodes marked True in `pattern` are referenced from outside.

    None matches both. The list `nodes` and the `known` references do not count.
    """
    cdef Py_ssize_t i
    for i in range(len(nodes)):
        expected = pattern[i]
        if expected is not None:
            if (references(nodes, i) - <Py_ssize_t>known[i] > 1) != <bint>expected:
                return False
    return True
