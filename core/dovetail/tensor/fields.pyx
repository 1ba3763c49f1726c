"""The fields of a Tensor: `fields.py`, compiled. A slot is read at its offset, not looked up.

Tensors over one memory are a list that goes through them: to enter it takes no memory, and to leave
it no search. Tensors end by a function of their own, which knows what there is to end.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from dovetail.freelists cimport keep
from dovetail.graph.expr cimport Expr


cdef extern from *:
    """
    #include "structmember.h"

    typedef struct {
        PyObject_HEAD
        PyObject *after, **named;
    } dovetail_linked;

    static Py_ssize_t dovetail_expr_at = 0, dovetail_aliases_at = 0;

    #define DOVETAIL_AT(x, at) (*(PyObject **)((char *)(x) + (at)))
    static Py_ssize_t dovetail_offset(PyObject *descriptor) {
        return ((PyMemberDescrObject *)descriptor)->d_member->offset;
    }

    /* Out of the list of those over one memory. */
    static inline void dovetail_unlink(PyObject *o) {
        dovetail_linked *x = (dovetail_linked *)o;
        if (x->named == NULL)
            return;
        *x->named = x->after;
        if (x->after != NULL)
            ((dovetail_linked *)x->after)->named = x->named;
        x->named = NULL;
        x->after = NULL;
    }

    static inline void dovetail_link(PyObject **first, PyObject *o) {
        dovetail_linked *x = (dovetail_linked *)o;
        dovetail_unlink(o);
        x->after = *first;
        if (x->after != NULL)
            ((dovetail_linked *)x->after)->named = &x->after;
        x->named = first;
        *first = o;
    }

    /* Nobody is first any more: for a list that ends before those in it. */
    static void dovetail_forget(PyObject **first) {
        while (*first != NULL)
            dovetail_unlink(*first);
    }

    /* What ends a tensor, also as the part of one of a derived class that is Tensor's. */
    static void dovetail_end(PyObject *o) {
        PyTypeObject *type = Py_TYPE(o);
        PyObject_GC_UnTrack(o);
        dovetail_unlink(o);
        Py_TRASHCAN_BEGIN(o, dovetail_end)
        if (DOVETAIL_AT(o, type->tp_weaklistoffset) != NULL)
            PyObject_ClearWeakRefs(o);
        Py_CLEAR(DOVETAIL_AT(o, dovetail_expr_at));
        Py_CLEAR(DOVETAIL_AT(o, dovetail_aliases_at));
        type->tp_free(o);
        Py_DECREF(type);
        Py_TRASHCAN_END
    }

    static void dovetail_bind(PyObject *tensor, PyObject *expr, PyObject *aliases) {
        dovetail_expr_at = dovetail_offset(expr);
        dovetail_aliases_at = dovetail_offset(aliases);
        ((PyTypeObject *)tensor)->tp_dealloc = dovetail_end;
    }

    /* Of classes with this base `object.__new__` makes objects, as of those without. */
    static void dovetail_plain(PyObject *base) {
        ((PyTypeObject *)base)->tp_new = PyBaseObject_Type.tp_new;
    }
    """
    Py_ssize_t _expr_at "dovetail_expr_at", _aliases_at "dovetail_aliases_at"
    void _link "dovetail_link"(PyObject** first, PyObject* x)
    void _unlink "dovetail_unlink"(PyObject* x)
    void _forget "dovetail_forget"(PyObject** first)
    void _bind "dovetail_bind"(object tensor, object expr, object aliases)
    void _plain "dovetail_plain"(object base)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t)
    void Py_XDECREF(PyObject*)
    Py_ssize_t Py_REFCNT(PyObject*)
    bint PyObject_TypeCheck(object, PyTypeObject*)

cdef object _tensor = None


cdef class Fields:
    """The base of Tensor: what links tensors over one memory."""


_plain(Fields)


cdef class Aliases:
    """The tensors over one memory, once there are several.

    A write to one concerns the gradients of the others. `taped`: whether any of them may have a
    tape.
    """

    def __dealloc__(self):
        _forget(&self.first)

    cpdef add(self, object y):
        """Notes another one."""
        if type(y) is _tensor:
            _put(y, _aliases_at, self)
        else:
            y._aliases = self
        _link(&self.first, <PyObject*>y)
        if expr_of(y).tape is not None:
            self.taped = True

    def leave(self, x):
        """Forgets one, whose memory is another one now."""
        _unlink(<PyObject*>x)
        x._aliases = None

    cpdef list live(self):
        """Those that are still there."""
        cdef list found = []
        cdef PyObject* x = self.first
        while x != NULL:
            if Py_REFCNT(x) > 0:  # else it is ending
                found.append(<object>x)
            x = (<Fields>x).after
        return found


cdef inline _put(object x, Py_ssize_t at, object value):
    cdef PyObject** place = <PyObject**>((<char*><void*>x) + at)
    cdef PyObject* before = place[0]
    Py_INCREF(value)
    place[0] = <PyObject*>value
    Py_XDECREF(before)


def bind(tensor):
    """Says which class this is about."""
    global _tensor
    _tensor = tensor
    _bind(tensor, tensor.__dict__["_expr"], tensor.__dict__["_aliases"])
    keep(tensor)


cpdef Expr expr_of(object x):
    """The node of a strided tensor."""
    cdef PyObject* found = NULL
    if type(x) is _tensor or (_tensor is not None and PyObject_TypeCheck(x, <PyTypeObject*>_tensor)):
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


cpdef object alias(object x, object y):
    """`y`, noted as sharing x's memory."""
    found = aliases_of(x)
    cdef Aliases group
    if found is None:
        group = Aliases()
        group.add(x)
    else:
        group = <Aliases>found
    group.add(y)
    return y


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
