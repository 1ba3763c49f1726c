"""Who else holds a value: `ownership.py`, compiled. Here nothing stands between an object and its
count: what is counted is held, and by what, is known.
"""

cdef extern from "Python.h":
    void* PyList_GET_ITEM(object, Py_ssize_t)  # borrowed
    Py_ssize_t Py_REFCNT(void*)


Holder = list  # of one value


cdef inline Py_ssize_t references(list of, Py_ssize_t i) noexcept:
    """How many references there are to an element, that of the list among them."""
    return Py_REFCNT(PyList_GET_ITEM(of, i))


def take(list holder):
    """The value, which `holder` lets go of."""
    return holder.pop()


def is_alone(list holder, Py_ssize_t others=0):
    """Whether nothing but `holder` refers to its value, and so many others."""
    return references(holder, 0) - others == 1


def shared(list nodes, uses):
    """Positions of those that something refers to, besides this list, a dict of which they are the
    keys, and as many others as `uses` says.
    """
    cdef Py_ssize_t i = 0
    found = []
    for known in uses:
        if references(nodes, i) - <Py_ssize_t>known > 2:
            found.append(i)
        i += 1
    return found


cpdef bint is_held_alike(list nodes, list uses, list held):
    """Whether something refers to those of which `held` says so, besides this list and as many
    others as `uses` says, and nothing to the others; None where that is not asked.
    """
    cdef Py_ssize_t i
    for i in range(len(nodes)):
        expected = held[i]
        if expected is not None:
            if (references(nodes, i) - <Py_ssize_t>uses[i] > 1) != <bint>expected:
                return False
    return True
