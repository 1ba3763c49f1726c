# cython: cdivision=True
"""Reads and writes of host memory, one element or an array: the compiled form of `host_read.py`.

Names of dtypes and ops are interned, and compared by identity.
"""

import numpy as np

from cpython.buffer cimport (
    PyBUF_STRIDES, PyBuffer_FillInfo, PyBuffer_IsContiguous, PyBuffer_Release, PyObject_GetBuffer,
)

from cpython.object cimport PyObject

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)
from libc.string cimport memcmp, memcpy, memmove, memset

cdef extern from *:
    """
    #define DOVETAIL_SCALAR_AT ((Py_ssize_t)sizeof(PyObject))

    /* The value of a NumPy scalar follows its header. */
    static inline void *dovetail_scalar_value(PyObject *o) { return (char *)o + DOVETAIL_SCALAR_AT; }

    static inline PyObject *dovetail_new_scalar(PyObject *kind) {
        return ((PyTypeObject *)kind)->tp_alloc((PyTypeObject *)kind, 0);
    }
    """
    Py_ssize_t _VALUE_AT "DOVETAIL_SCALAR_AT"
    void* _value_of "dovetail_scalar_value"(PyObject*) noexcept
    object _new_scalar "dovetail_new_scalar"(PyObject* kind)

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    PyObject* PyDict_GetItem(dict, object)  # borrowed
    PyObject* Py_TYPE "(PyObject *)Py_TYPE"(PyObject*)
    Py_ssize_t PyLong_AsSsize_t(PyObject*) noexcept
    Py_ssize_t PY_SSIZE_T_MAX

cdef str FLOAT32 = "float32", FLOAT64 = "float64", INT64 = "int64", INT32 = "int32", BOOL = "bool"
cdef str UINT8 = "uint8", INT8 = "int8", INT16 = "int16", UINT16 = "uint16", UINT32 = "uint32", UINT64 = "uint64"
cdef str ADD = "add", SUBTRACT = "subtract", MULTIPLY = "multiply", DIVIDE = "divide"
cdef str REMAINDER = "remainder", FLOOR_DIVIDE = "floor_divide"
cdef str BITWISE_AND = "bitwise_and", BITWISE_OR = "bitwise_or", BITWISE_XOR = "bitwise_xor"
cdef str LESS = "less", LESS_EQUAL = "less_equal", GREATER = "greater"
cdef str GREATER_EQUAL = "greater_equal", EQUAL = "equal", NOT_EQUAL = "not_equal"


cpdef object element(str dtype, Py_ssize_t address):
    """Return the number of a dtype at an address, or None for a dtype that C does not have."""
    cdef void* at = <void*><uintptr_t>address
    if dtype is FLOAT32:
        return (<float*>at)[0]
    if dtype is FLOAT64:
        return (<double*>at)[0]
    if dtype is INT64:
        return (<int64_t*>at)[0]
    if dtype is INT32:
        return (<int32_t*>at)[0]
    if dtype is BOOL:
        return (<uint8_t*>at)[0] != 0
    if dtype is UINT8:
        return (<uint8_t*>at)[0]
    if dtype is INT8:
        return (<int8_t*>at)[0]
    if dtype is INT16:
        return (<int16_t*>at)[0]
    if dtype is UINT16:
        return (<uint16_t*>at)[0]
    if dtype is UINT32:
        return (<uint32_t*>at)[0]
    if dtype is UINT64:
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
        if dtype is FLOAT32:
            (<float*>at)[0] = <float><double>value
        elif dtype is FLOAT64:
            (<double*>at)[0] = <double>value
        else:
            return False
        return True
    if type(value) is not int and type(value) is not bool:
        return False
    whole = PyLong_AsLongLongAndOverflow(value, &overflow)
    if overflow:
        return False
    if dtype is FLOAT32:
        if not -EXACT_INT_MAX <= whole <= EXACT_INT_MAX:
            return False
        (<float*>at)[0] = <float>whole
    elif dtype is FLOAT64:
        if not -EXACT_INT_MAX <= whole <= EXACT_INT_MAX:
            return False
        (<double*>at)[0] = <double>whole
    elif dtype is INT64:
        (<int64_t*>at)[0] = whole
    elif dtype is INT32 and -0x80000000 <= whole <= 0x7FFFFFFF:
        (<int32_t*>at)[0] = <int32_t>whole
    elif dtype is BOOL and type(value) is bool:
        (<uint8_t*>at)[0] = <uint8_t>whole
    elif dtype is UINT8 and 0 <= whole <= 0xFF:
        (<uint8_t*>at)[0] = <uint8_t>whole
    elif dtype is INT8 and -0x80 <= whole <= 0x7F:
        (<int8_t*>at)[0] = <int8_t>whole
    elif dtype is INT16 and -0x8000 <= whole <= 0x7FFF:
        (<int16_t*>at)[0] = <int16_t>whole
    elif dtype is UINT16 and 0 <= whole <= 0xFFFF:
        (<uint16_t*>at)[0] = <uint16_t>whole
    elif dtype is UINT32 and 0 <= whole <= 0xFFFFFFFF:
        (<uint32_t*>at)[0] = <uint32_t>whole
    elif dtype is UINT64 and 0 <= whole:
        (<uint64_t*>at)[0] = <uint64_t>whole
    else:
        return False
    return True


cpdef bint fill_numbers(str dtype, Py_ssize_t address, object value, Py_ssize_t count, Py_ssize_t step, Py_ssize_t itemsize) except -1:
    """Store a number `count` times, `step` bytes apart; return False for what `store_number` refuses."""
    cdef char* at = <char*><uintptr_t>address
    cdef int64_t unused[2]
    cdef Py_ssize_t i
    if count == 0:  # the value is checked, and no memory touched
        address = <Py_ssize_t><uintptr_t>&unused[0]
    if not store_number(dtype, address, value):
        return False
    if count > 0 and itemsize == 1 and step == 1:
        memset(at, at[0], count)
        return True
    if step == itemsize:  # each copy doubles what is filled
        i = itemsize
        while i < count * itemsize:
            memcpy(at + i, at, min(i, count * itemsize - i))
            i *= 2
        return True
    for i in range(1, count):
        if itemsize == 8:
            (<int64_t*>(at + i * step))[0] = (<int64_t*>at)[0]
        elif itemsize == 4:
            (<int32_t*>(at + i * step))[0] = (<int32_t*>at)[0]
        else:
            memcpy(at + i * step, at, itemsize)
    return True


# --- NumPy's scalars ------------------------------------------------------------------------------

cdef dict _scalar_kinds = {}  # scalar types by the names of dtypes
cdef dict _index_kinds = {}  # the integer types, each with its itemsize; negative if signed
cdef object _generic = np.generic, _float64_kind = np.float64, _true = np.True_, _false = np.False_
cdef PyObject* _int64_kind = NULL


cdef bint _has_plain_value(object kind, Py_ssize_t itemsize) except -1:
    """Return True if the value of a scalar type is stored right after the object's header."""
    cdef object scalar = kind(1)
    cdef bytes stored = scalar.tobytes()
    if kind.__itemsize__ or kind.__basicsize__ < _VALUE_AT + itemsize or len(stored) != itemsize:
        return False
    return memcmp(<char*>stored, _value_of(<PyObject*>scalar), itemsize) == 0


cdef _register_scalars():
    """Fill the tables of scalar types; those of an unknown layout are left out."""
    global _int64_kind
    for name in (
        BOOL, UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, "float16", FLOAT32, FLOAT64, "complex64", "complex128",
    ):
        kind, size = np.dtype(name).type, np.dtype(name).itemsize
        if _has_plain_value(kind, size):
            _scalar_kinds[name] = kind
            if np.dtype(name).kind in "iu":
                _index_kinds[kind] = size if np.dtype(name).kind == "u" else -size
    if INT64 in _scalar_kinds:
        _int64_kind = <PyObject*>np.int64


_register_scalars()


cdef object create_scalar(str dtype, Py_ssize_t itemsize, Py_ssize_t address):
    """Return the element at an address as NumPy's scalar, or None for a dtype that NumPy lacks."""
    cdef PyObject* kind = PyDict_GetItem(_scalar_kinds, dtype)
    cdef void* at = <void*><uintptr_t>address
    cdef object scalar
    if kind == NULL:
        return None
    if dtype is BOOL:
        return _true if (<uint8_t*>at)[0] else _false
    scalar = _new_scalar(kind)
    if itemsize == 8:
        (<int64_t*>_value_of(<PyObject*>scalar))[0] = (<int64_t*>at)[0]
    else:
        memcpy(_value_of(<PyObject*>scalar), at, itemsize)
    return scalar


cdef bint read_index(PyObject* part, Py_ssize_t* index) noexcept:
    """Store the value of an integer scalar of NumPy; return False for other objects."""
    cdef PyObject* kind = Py_TYPE(part)
    cdef PyObject* size
    cdef void* at = _value_of(part)
    if kind == _int64_kind:
        index[0] = <Py_ssize_t>(<int64_t*>at)[0]
        return True
    size = PyDict_GetItem(_index_kinds, <object>kind)
    if size == NULL:
        return False
    cdef int bytes_of = <int>PyLong_AsSsize_t(size)
    if bytes_of == 8 and (<uint64_t*>at)[0] > <uint64_t>PY_SSIZE_T_MAX:
        return False
    if bytes_of == -4:
        index[0] = (<int32_t*>at)[0]
    elif bytes_of == -2:
        index[0] = (<int16_t*>at)[0]
    elif bytes_of == -1:
        index[0] = (<int8_t*>at)[0]
    elif bytes_of == 8:
        index[0] = <Py_ssize_t>(<uint64_t*>at)[0]
    elif bytes_of == 4:
        index[0] = <Py_ssize_t>(<uint32_t*>at)[0]
    elif bytes_of == 2:
        index[0] = (<uint16_t*>at)[0]
    else:
        index[0] = (<uint8_t*>at)[0]
    return True


cpdef bint store_scalar(str dtype, Py_ssize_t address, Py_ssize_t itemsize, object value) except -1:
    """Store a number or a scalar of NumPy at an address; return False for what `store_number` refuses.

    False is returned for dates and spans of time.
    A scalar of the dtype itself is stored without a change, also if it is complex.
    """
    cdef PyObject* kind
    cdef Py_ssize_t index
    if type(value) is float or type(value) is int or type(value) is bool:
        return store_number(dtype, address, value)
    kind = PyDict_GetItem(_scalar_kinds, dtype)
    if kind != NULL and kind == Py_TYPE(<PyObject*>value):
        if itemsize == 8:
            (<int64_t*><uintptr_t>address)[0] = (<int64_t*>_value_of(<PyObject*>value))[0]
        else:
            memcpy(<void*><uintptr_t>address, _value_of(<PyObject*>value), itemsize)
        return True
    if type(value) is _float64_kind:
        return store_number(dtype, address, <double>value)
    if read_index(<PyObject*>value, &index):
        return store_number(dtype, address, index)
    if not isinstance(value, _generic) or value.dtype.kind in "mM":  # the item of a date may be an int
        return False
    return store_number(dtype, address, value.item())


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
    if op is ADD:
        result = at[0] + other
    elif op is SUBTRACT:
        result = at[0] - other
    elif op is MULTIPLY:
        result = at[0] * other
    elif op is DIVIDE:
        result = at[0] / other
    elif Updated is double or Updated is float:
        return False
    elif op is REMAINDER and other > 0:
        result = at[0] % other
        if result < 0:
            result += other
    elif op is FLOOR_DIVIDE and other > 0:
        result = at[0] / other - (at[0] % other < 0)
    elif op is BITWISE_AND:
        result = at[0] & other
    elif op is BITWISE_OR:
        result = at[0] | other
    elif op is BITWISE_XOR:
        result = at[0] ^ other
    else:
        return False
    if result != result:
        return False
    at[0] = result
    return True


cpdef bint update_number(str op, str dtype, Py_ssize_t address, object other) except -1:
    """Apply an arithmetic op to the number at an address and another one; return False for others.

    Nothing is stored for ops and dtypes without such a C operator, a number that `store_number`
    refuses, a divisor of integers below 1, and a result that is NaN, whose bits may differ between
    machines.
    """
    cdef void* at = <void*><uintptr_t>address
    cdef Number number
    if not store_number(dtype, <Py_ssize_t>&number, other) or (op is DIVIDE and dtype is not FLOAT32 and dtype is not FLOAT64):
        return False
    if dtype is FLOAT32:
        return _update(<float*>at, number.of_32, op)
    if dtype is FLOAT64:
        return _update(<double*>at, number.of_64, op)
    if dtype is INT64:
        return _update(<int64_t*>at, number.whole_64, op)
    if dtype is INT32:
        return _update(<int32_t*>at, number.whole_32, op)
    return False


cdef object _compare(Updated a, Updated b, str op):
    """Return the bool of a comparison, or None for other ops."""
    if op is LESS:
        return a < b
    if op is LESS_EQUAL:
        return a <= b
    if op is GREATER:
        return a > b
    if op is GREATER_EQUAL:
        return a >= b
    if op is EQUAL:
        return a == b
    return a != b if op is NOT_EQUAL else None


cpdef object round_number(str dtype, object value):
    """Return a number as one of a dtype, rounded; None for what `store_number` refuses."""
    cdef Number number
    return element(dtype, <Py_ssize_t>&number) if store_number(dtype, <Py_ssize_t>&number, value) else None


cpdef object compute_number(str op, str dtype, object x, object y):
    """Return the result of an op of two numbers in a dtype: a number, or a bool of a comparison.

    None is returned for what `update_number` and `store_number` refuse.
    """
    cdef Number a, b
    if not store_number(dtype, <Py_ssize_t>&a, x):
        return None
    if update_number(op, dtype, <Py_ssize_t>&a, y):
        return element(dtype, <Py_ssize_t>&a)
    if not store_number(dtype, <Py_ssize_t>&b, y):
        return None
    if dtype is FLOAT32:
        return _compare(a.of_32, b.of_32, op)
    if dtype is FLOAT64:
        return _compare(a.of_64, b.of_64, op)
    if dtype is INT64:
        return _compare(a.whole_64, b.whole_64, op)
    return _compare(a.whole_32, b.whole_32, op) if dtype is INT32 else None


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
