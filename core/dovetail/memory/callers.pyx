"""The compiled form of `callers.py`: frames are looked at without their attributes."""

import re

from cpython.object cimport PyObject

cdef extern from "Python.h":
    ctypedef struct PyFrameObject:
        pass
    ctypedef struct PyCodeObject:
        PyObject* co_filename

    PyFrameObject* PyEval_GetFrame()  # borrowed; compiled functions have none
    PyFrameObject* PyFrame_GetBack(PyFrameObject*)  # these are new
    PyCodeObject* PyFrame_GetCode(PyFrameObject*)
    PyObject* PyFrame_GetGlobals(PyFrameObject*)
    int PyFrame_GetLineNumber(PyFrameObject*)
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)

cdef set _OURS = {__name__.partition(".")[0]}
cdef dict _known = {}  # module -> whether it is ours


def pass_over(place):
    """See `callers.py`."""
    _OURS.add(re.split("[.:]", place.strip())[0])
    _known.clear()


cpdef object caller():
    """See `callers.py`."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef PyCodeObject* code
    cdef str name
    if frame == NULL:
        return "?"
    Py_INCREF(<PyObject*>frame)
    try:
        while _is_ours(frame):
            back = PyFrame_GetBack(frame)
            if back == NULL:
                break
            Py_DECREF(<PyObject*>frame)
            frame = back
        code = PyFrame_GetCode(frame)
        name = <str>code.co_filename
        Py_DECREF(<PyObject*>code)
        return f"{name}:{PyFrame_GetLineNumber(frame)}"
    finally:
        Py_DECREF(<PyObject*>frame)


cdef bint _is_ours(PyFrameObject* frame) except -1:
    cdef PyObject* names = PyFrame_GetGlobals(frame)
    module = (<dict>names).get("__name__")
    Py_DECREF(names)
    found = _known.get(module)
    if found is None:
        found = _known[module] = str(module).partition(".")[0] in _OURS
    return found
