"""Weak references to nodes: the compiled form of `weak_refs.py`."""

from cpython.object cimport PyObject
from cpython.weakref cimport PyWeakref_NewRef

from dovetail.locks cimport Lock

cdef extern from *:
    """
    /* Let the last reference of a log, if it is dead and only the log has it, refer to a new object.
       A statement that is computed and dropped needs no new reference for its node then. */
    static int dovetail_reuse_last(PyObject *log, Py_ssize_t first, PyObject *x) {
    #ifdef Py_GIL_DISABLED
        return 0;
    #else
        Py_ssize_t last = PyList_GET_SIZE(log) - 1;
        if (last < first)
            return 0;
        PyWeakReference *r = (PyWeakReference *)PyList_GET_ITEM(log, last);
        PyWeakReference **head = (PyWeakReference **)((char *)x + Py_TYPE(x)->tp_weaklistoffset);
        if (Py_REFCNT(r) != 1 || !PyWeakref_CheckRefExact(r) || r->wr_object != Py_None
            || r->wr_callback != NULL || *head != NULL)
            return 0;
        r->wr_object = x;
        r->hash = -1;
        *head = r;
        return 1;
    #endif
    }
    """
    bint _reuse_last "dovetail_reuse_last"(list log, Py_ssize_t first, object x)

cdef extern from "Python.h":
    PyObject* PyWeakref_GET_OBJECT(object)  # borrowed
    PyObject* Py_None


cpdef object weakly(object x):
    """Return a weak reference to `x`."""
    return PyWeakref_NewRef(x, None)


cpdef append_weakly(list log, object x, Py_ssize_t first, Lock lock):
    """Append a weak reference to `x` to a log, or reuse a dead one at its end."""
    if lock._depth or not _reuse_last(log, first, x):
        log.append(PyWeakref_NewRef(x, None))


cpdef object referent(object r):
    """Return the referent of a weak reference, or None if it is dead."""
    return <object>PyWeakref_GET_OBJECT(r)


cpdef list live_refs(list refs):
    """Return the references whose referents are alive."""
    return [r for r in refs if PyWeakref_GET_OBJECT(r) != Py_None]
