# cython: cdivision=True
"""Reads and writes of host memory, one element or an array: the compiled form of `host_read.py`."""

import numpy as np

from cpython.buffer cimport (
    PyBUF_STRIDES, PyBuffer_FillInfo, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer,
)

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.string cimport memcpy, memmove

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1


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


cdef long long EXACT_INT_MAX = 1 << 53  # ints up to here are float64 exactly, so a cast to float32 rounds once


cpdef bint store_number(str dtype, Py_ssize_t address, object value) except -1:
    """Store a bool, int or float at an address; return False for others.

    Nothing is stored for a dtype that C lacks, a number of a higher kind than the dtype, and an int
    that the dtype may not hold exactly.
    """
    cdef void* at = <void*><uintptr_t>address
    cdef long long whole
    cdef int overflow = 0
    if type(value) is float:
        if dtype == "float32":
            (<float*>at)[0] = <float><double>value
        elif dtype == "float64":
            (<double*>at)[0] = <double>value
        else:
            return False
        return True
    if type(value) is not int and type(value) is not bool:
        return False
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        return False
    if dtype == "float32":
        if not -EXACT_INT_MAX <= whole <= EXACT_INT_MAX:
            return False
        (<float*>at)[0] = <float>whole
    elif dtype == "float64":
        if not -EXACT_INT_MAX <= whole <= EXACT_INT_MAX:
            return False
        (<double*>at)[0] = <double>whole
    elif dtype == "int64":
        (<int64_t*>at)[0] = whole
    elif dtype == "int32" and -0x80000000 <= whole <= 0x7FFFFFFF:
        (<int32_t*>at)[0] = <int32_t>whole
    elif dtype == "bool" and type(value) is bool:
        (<uint8_t*>at)[0] = <uint8_t>whole
    elif dtype == "uint8" and 0 <= whole <= 0xFF:
        (<uint8_t*>at)[0] = <uint8_t>whole
    elif dtype == "int8" and -0x80 <= whole <= 0x7F:
        (<int8_t*>at)[0] = <int8_t>whole
    elif dtype == "int16" and -0x8000 <= whole <= 0x7FFF:
        (<int16_t*>at)[0] = <int16_t>whole
    elif dtype == "uint16" and 0 <= whole <= 0xFFFF:
        (<uint16_t*>at)[0] = <uint16_t>whole
    elif dtype == "uint32" and 0 <= whole <= 0xFFFFFFFF:
        (<uint32_t*>at)[0] = <uint32_t>whole
    elif dtype == "uint64" and 0 <= whole:
        (<uint64_t*>at)[0] = <uint64_t>whole
    else:
        return False
    return True


cdef union Number:
    float of_32
    double of_64
    int32_t whole_32
    int64_t whole_64


ctypedef fused Updated:
    float
    double
    int32_t
    int64_t


cdef bint _update(Updated* at, Updated other, str op) noexcept:
    """Apply an op to the number at an address; return False, with nothing done, if the result is NaN."""
    cdef Updated result
    if op == "add":
        result = at[0] + other
    elif op == "subtract":
        result = at[0] - other
    elif op == "multiply":
        result = at[0] * other
    elif op == "divide":
        result = at[0] / other
    else:
        return False
    if result != result:
        return False
    at[0] = result
    return True


cpdef bint update_number(str op, str dtype, Py_ssize_t address, object other) except -1:
    """Add a number to that at an address, or subtract, multiply or divide; return False for others.

    Nothing is stored for ops and dtypes without such a C operator, a number that `store_number`
    refuses, and a result that is NaN, whose bits may differ between machines.
    """
    cdef void* at = <void*><uintptr_t>address
    cdef Number number
    if not store_number(dtype, <Py_ssize_t>&number, other) or (op == "divide" and dtype[0] != "f"):
        return False
    if dtype == "float32":
        return _update(<float*>at, number.of_32, op)
    if dtype == "float64":
        return _update(<double*>at, number.of_64, op)
    if dtype == "int64":
        return _update(<int64_t*>at, number.whole_64, op)
    if dtype == "int32":
        return _update(<int32_t*>at, number.whole_32, op)
    return False


cpdef copy_bytes(Py_ssize_t target, Py_ssize_t source, Py_ssize_t nbytes):
    """Copy bytes between two host addresses."""
    memmove(<void*><uintptr_t>target, <void*><uintptr_t>source, nbytes)


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
