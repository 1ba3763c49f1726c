"""The compiled version of `stacktrace.py`, which reads frames without attribute lookups."""

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

cdef set _SKIPPED = {__name__.partition(".")[0]}
cdef dict _known = {}  # module name -> result of `is_ours`


def skip_package(entry_point):
    """See `stacktrace.py`."""
    _SKIPPED.add(re.split("[.:]", entry_point.strip())[0])
    _known.clear()


Line = object  # see `stacktrace.py`


cdef class CodeLocation:
    """An instruction of a code object, formatted as its source line."""

    cdef PyCodeObject* code  # a strong reference
    cdef int instruction

    def __dealloc__(self):
        Py_DECREF(<PyObject*>self.code)

    def __str__(self):
        return f"{<object>self.code.co_filename}:{PyCode_Addr2Line(self.code, self.instruction)}"

    __repr__ = __str__


cpdef object caller_line():
    """See `stacktrace.py`."""
    return str(current_line())


cpdef object current_line():
    """See `stacktrace.py`."""
    cdef PyFrameObject* frame = PyEval_GetFrame()
    cdef PyFrameObject* back
    cdef CodeLocation location
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
        location = CodeLocation.__new__(CodeLocation)
        location.code, location.instruction = PyFrame_GetCode(frame), PyFrame_GetLasti(frame)
        return location
    finally:
        Py_DECREF(<PyObject*>frame)


cdef bint is_frame_ours(PyFrameObject* frame) except -1:
    """Return True if a frame's module is of dovetail or of a plugin in use."""
    cdef PyObject* names = PyFrame_GetGlobals(frame)
    module = (<dict>names).get("__name__")
    Py_DECREF(names)
    return is_library_module(module)


cpdef bint is_library_module(module) except -1:
    """See `stacktrace.py`."""
    ours = _known.get(module)
    if ours is None:
        ours = _known[module] = str(module).partition(".")[0] in _SKIPPED
    return ours
