"""The fields of a Tensor: `fields.py`, compiled. A slot is read at its offset, not looked up."""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from dovetail.graph.expr cimport Expr


cdef extern from "Python.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t)

    void Py_XDECREF(PyObject*)
    bint PyObject_TypeCheck(object, PyTypeObject*)

cdef extern from "structmember.h":  # PyMemberDef
    pass

cdef extern from *:
    """
    static Py_ssize_t dovetail_offset(PyObject *descriptor) {
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }
    """
    Py_ssize_t dovetail_offset(object descriptor)

cdef Py_ssize_t _expr_at = 0, _aliases_at = 0
cdef object _tensor = None


cdef inline _put(object x, Py_ssize_t at, object value):
    cdef PyObject** place = <PyObject**>((<char*><void*>x) + at)
    cdef PyObject* before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject*>value
    Py_XDECREF(before)


def bind(tensor):
    """Says which class this is about."""
    global _expr_at, _aliases_at, _tensor
    _tensor = tensor
    _expr_at = dovetail_offset(tensor.__dict__["_expr"])
    _aliases_at = dovetail_offset(tensor.__dict__["_aliases"])


cpdef Expr expr_of(object x):
    """The node of a strided tensor."""
    cdef PyObject* found = NULL
    if _tensor is not None and PyObject_TypeCheck(x, <PyTypeObject*>_tensor):
        found = (<PyObject**>((<char*><void*>x) + _expr_at))[0]
    if found == NULL:
        return x._expr  # which is an error, and says so
    return <Expr>found


cpdef become(object x, Expr e):
    """Has a tensor stand for another node."""
    if type(x) is _tensor:
        _put(x, _expr_at, e)
    else:
        x._expr = e


cpdef bint is_strided(object x):
    """Whether it is a Tensor over strided memory: of that class, and no other."""
    return type(x) is _tensor


cpdef object aliases_of(object x):
    """The tensors over the same memory, once there are several."""
    cdef PyObject* found = NULL
    if type(x) is _tensor:
        found = (<PyObject**>((<char*><void*>x) + _aliases_at))[0]
    return x._aliases if found == NULL else <object>found


cpdef become_alias(object x, object group):
    """Says that it is one of these."""
    if type(x) is _tensor:
        _put(x, _aliases_at, group)
    else:
        x._aliases = group


cpdef object made(object kind, Expr e):
    """A tensor of a node."""
    cdef PyObject* found = (<PyTypeObject*>kind).tp_alloc(<PyTypeObject*>kind, 0)
    if found == NULL:
        raise MemoryError
    cdef object x = <object>found
    Py_DECREF(x)  # `found` was one reference, and `x` is another
    Py_INCREF(e)
    (<PyObject**>((<char*><void*>x) + _expr_at))[0] = <PyObject*>e
    Py_INCREF(None)
    (<PyObject**>((<char*><void*>x) + _aliases_at))[0] = <PyObject*>None
    return x
