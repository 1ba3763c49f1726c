"""Reads of host memory, one element or an array: the compiled form of `host_read.py`."""

import numpy as np

from cpython.buffer cimport (
    PyBUF_STRIDES, PyBuffer_FillInfo, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer,
)

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.string cimport memcpy


cpdef object element(str dtype, Py_ssize_t address):
    """Return the number of a dtype at an address, or None for a dtype that C does not have."""
    cdef void* at = <void*><uintptr_t>address
    if dtype == "float32":
        return (<float*>at)[0]
    if dtype == "float64":
        return (<double*>at)[0]
    if dtype == "int64":
        return (<int64_t*>at)[0]
    if dtype == "int32":
        return (<int32_t*>at)[0]
    if dtype == "bool":
        return (<uint8_t*>at)[0] != 0
    if dtype == "uint8":
        return (<uint8_t*>at)[0]
    if dtype == "int8":
        return (<int8_t*>at)[0]
    if dtype == "int16":
        return (<int16_t*>at)[0]
    if dtype == "uint16":
        return (<uint16_t*>at)[0]
    if dtype == "uint32":
        return (<uint32_t*>at)[0]
    if dtype == "uint64":
        return (<uint64_t*>at)[0]
    return None


cdef object _array = np.ndarray


cdef class HostMemory:
    """A buffer over host memory; arrays over it keep its owner alive."""

    cdef readonly object owner
    cdef void* at
    cdef Py_ssize_t nbytes
    cdef bint writable

    def __init__(self, Py_ssize_t address, Py_ssize_t nbytes, object owner, bint writable):
        self.at, self.nbytes = <void*><uintptr_t>address, nbytes
        self.owner, self.writable = owner, writable

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.at, self.nbytes, not self.writable, flags)


cpdef object array_over(object memory, tuple shape, object dtype, object start, object strides):
    """Return an array that begins at byte `start` of the memory; strides in bytes, or None."""
    if strides is None and not start:
        return _array(shape, dtype, memory)
    return _array(shape, dtype, memory, start, strides)


cpdef bint copy_array(Py_ssize_t address, object values) except -1:
    """Copy an array in C order to memory; return False if it has gaps, or is no buffer."""
    cdef Py_buffer view
    try:
        PyObject_GetBuffer(values, &view, PyBUF_STRIDES)
    except (BufferError, ValueError):
        return False
    cdef bint done = PyBuffer_IsContiguous(&view, b"C")
    if done:
        if view.len > 65536:
            with nogil:
                memcpy(<void*><uintptr_t>address, view.buf, view.len)
        else:
            memcpy(<void*><uintptr_t>address, view.buf, view.len)
    PyBuffer_Release(&view)
    return done
