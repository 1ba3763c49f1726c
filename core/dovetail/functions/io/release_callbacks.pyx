"""C functions that release exported memory: the compiled form of `release_callbacks.py`.

They save a pending exception, and run in any thread. After Python has shut down they do nothing.
"""

from cpython.exc cimport PyErr_Fetch, PyErr_Restore
from cpython.object cimport PyObject
from libc.stdint cimport int64_t
from libc.string cimport strcmp, strncmp

cdef extern from "Python.h":
    bint Py_IsInitialized() nogil
    object PyCapsule_New(void*, const char*, void (*)(PyObject*) noexcept)
    const char* PyCapsule_GetName(PyObject*)
    void* PyCapsule_GetPointer(PyObject*, const char*)

cdef struct Schema:  # ArrowSchema
    const char* format
    const char* name
    const char* metadata
    int64_t flags
    int64_t n_children
    Schema** children
    Schema* dictionary
    void (*release)(Schema*) noexcept nogil
    void* key

cdef struct Array:  # ArrowArray
    int64_t length
    int64_t null_count
    int64_t offset
    int64_t n_buffers
    int64_t n_children
    const void** buffers
    Array** children
    Array* dictionary
    void (*release)(Array*) noexcept nogil
    void* key

live_exports = {}
cdef dict _live = live_exports


cdef void _pop(size_t key) noexcept with gil:
    """Drop the references of an export; keep the pending exception."""
    cdef PyObject *kind, *value, *traceback
    PyErr_Fetch(&kind, &value, &traceback)
    _live.pop(key, None)
    PyErr_Restore(kind, value, traceback)


cdef void _release(void* key) noexcept nogil:
    if Py_IsInitialized():
        _pop(<size_t>key)


cdef void _release_schema(Schema* schema) noexcept nogil:
    for i in range(schema.n_children):
        if schema.children[i].release != NULL:  # else the consumer has moved the child
            schema.children[i].release(schema.children[i])
    schema.release = NULL
    _release(schema.key)


cdef void _release_array(Array* array) noexcept nogil:
    for i in range(array.n_children):
        if array.children[i].release != NULL:
            array.children[i].release(array.children[i])
    array.release = NULL
    _release(array.key)


cdef void _discard(PyObject* capsule) noexcept:
    """Release the struct of a dying capsule, unless a consumer has taken it."""
    cdef const char* name = PyCapsule_GetName(capsule)
    cdef void* at = PyCapsule_GetPointer(capsule, name)
    if strcmp(name, "arrow_schema") == 0 and (<Schema*>at).release != NULL:
        (<Schema*>at).release(<Schema*>at)
    elif strcmp(name, "arrow_array") == 0 and (<Array*>at).release != NULL:
        (<Array*>at).release(<Array*>at)
    if strncmp(name, "used_", 5) != 0:
        _pop(<size_t>at)


RELEASE = <size_t>&_release
RELEASE_SCHEMA, RELEASE_ARRAY = <size_t>&_release_schema, <size_t>&_release_array


cpdef object new_capsule(size_t address, bytes name):
    """Return a capsule that drops what `live_exports` has for the address; `name` is a constant."""
    return PyCapsule_New(<void*>address, name, _discard)
