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
    int PyFrame_GetLasti(PyFrameObject*)
    int PyCode_Addr2Line(PyCodeObject*, int)
    void Py_INCREF(PyObject*)
    void Py_DECREF(PyObject*)

cdef set _OURS = {__name__.partition(".")[0]}
cdef dict _known = {}  # module -> whether it is ours


def pass_over(place):
    """See `callers.py`."""
    _OURS.add(re.split("[.:]", place.strip())[0])
    _known.clear()


Line = object  # see `callers.py`


cdef class Place:
    """An instruction, and so a source line."""

    cdef PyCodeObject* code  # held
    cdef int instruction

    def __dealloc__(self):
        Py_DECREF(<PyObject*>self.code)

    def __str__(self):
        return f"{<object>self.code.co_filename}:{PyCode_Addr2Line(self.code, self.instruction)}"

    __repr__ = __str__


cpdef object caller():
    """See `callers.py`."""
    return str(line())


cpdef object line():
    """See `callers.py`."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef Place found
    if frame == NULL:
        return "?"
    Py_INCREF(<PyObject*>frame)
    try:
        while is_frame_ours(frame):
            back = PyFrame_GetBack(frame)
            if back == NULL:
                break
            Py_DECREF(<PyObject*>frame)
            frame = back
        found = Place.__new__(Place)
        found.code, found.instruction = PyFrame_GetCode(frame), PyFrame_GetLasti(frame)
        return found
    finally:
        Py_DECREF(<PyObject*>frame)


cdef bint is_frame_ours(PyFrameObject* frame) except -1:
    cdef PyObject* names = PyFrame_GetGlobals(frame)
    module = (<dict>names).get("__name__")
    Py_DECREF(names)
    return is_ours(module)


cpdef bint is_ours(module) except -1:
    """See `callers.py`."""
    ours = _known.get(module)
    if ours is None:
        ours = _known[module] = str(module).partition(".")[0] in _OURS
    return ours
