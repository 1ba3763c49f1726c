"""Reading one element of host memory: `reading.py`, compiled."""

from libc.stdint cimport (
    int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, uintptr_t,
)


cpdef object element(str dtype, Py_ssize_t address):
    """The number of that dtype at an address; None for a dtype that C does not know."""
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
