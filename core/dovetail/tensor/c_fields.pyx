"""The fields of a Tensor: the compiled form of `c_fields.py`, with slots read at their offsets.

Tensors over one memory form an intrusive doubly linked list: to enter it takes no allocation, to
leave it no search. Tensors have a `tp_dealloc` of their own, which clears just these fields.
"""

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from dovetail.object_pool cimport pool_objects
from dovetail.graph.expr cimport Expr
from dovetail.errors import ArgumentTypeError


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

    /* Remove a tensor from the list of those over one memory. */
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

    /* Unlink all tensors of a list that is freed before them. */
    static void dovetail_forget(PyObject **first) {
        while (*first != NULL)
            dovetail_unlink(*first);
    }

    /* Deallocate a tensor; subclasses call this for the fields of Tensor. */
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

    /* True for Tensor and its registered subclasses. */
    static inline int dovetail_is_strided_class(PyObject *kind) {
        return ((PyTypeObject *)kind)->tp_dealloc == dovetail_end;
    }

    /* True for instances of Tensor and of its registered subclasses. */
    static inline int dovetail_is_strided(PyObject *o) {
        return dovetail_is_strided_class((PyObject *)Py_TYPE(o));
    }

    /* Change the class of an object; both classes have the same fields. */
    static inline void dovetail_set_class(PyObject *o, PyObject *kind) {
        PyTypeObject *previous = Py_TYPE(o);
        Py_INCREF(kind);
        Py_SET_TYPE(o, (PyTypeObject *)kind);
        Py_DECREF(previous);
    }

    static void dovetail_bind_subclass(PyObject *kind) {
        ((PyTypeObject *)kind)->tp_dealloc = dovetail_end;
    }

    /* Let `object.__new__` create instances, although the base is an extension type. */
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
    bint _is_strided_class "dovetail_is_strided_class"(object kind)
    bint _is_strided "dovetail_is_strided"(object x)
    void _set_class "dovetail_set_class"(object x, object kind)
    void _bind_subclass "dovetail_bind_subclass"(object kind)

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        PyObject* (*tp_alloc)(PyTypeObject*, Py_ssize_t)
        object (*tp_getattro)(object, object)
    void Py_XDECREF(PyObject*)
    Py_ssize_t Py_REFCNT(PyObject*)
    bint PyObject_TypeCheck(object, PyTypeObject*)
    object PyObject_GenericGetAttr(object, object)

cdef object _tensor = None


cdef class Fields:
    """The base of Tensor: the links between tensors over one memory."""


_plain(Fields)


cdef class AliasGroup:
    """The tensors that share one memory, if there are several.

    A write to one of them affects the gradients of the others.
    has_tape: True if any of them may have a tape.
    """

    def __dealloc__(self):
        _forget(&self.first)

    cpdef add(self, object y):
        """Add a tensor without a reference, and set its `_aliases` to this group."""
        if _is_strided(y):
            _store_reference(y, _aliases_at, self)
        else:
            y._aliases = self
        _link(&self.first, <PyObject*>y)
        if expr_of(y).tape is not None:
            self.has_tape = True

    def remove(self, x):
        """Remove a tensor that no longer shares the memory; its `_aliases` becomes None."""
        _unlink(<PyObject*>x)
        x._aliases = None

    cpdef list live_tensors(self):
        """Return the tensors that are alive."""
        cdef list tensors = []
        cdef PyObject* x = self.first
        while x != NULL:
            if Py_REFCNT(x) > 0:  # else it is being deallocated
                tensors.append(<object>x)
            x = (<Fields>x).after
        return tensors


cdef inline _store_reference(object x, Py_ssize_t at, object value):
    """Store a reference in the slot at byte `at` of an object, and drop the old one."""
    cdef PyObject** slot = <PyObject**>((<char*><void*>x) + at)
    cdef PyObject* previous = slot[0]
    Py_INCREF(value)
    slot[0] = <PyObject*>value
    Py_XDECREF(previous)


def register_tensor_class(tensor):
    """Store the class Tensor, its slots' offsets and its deallocator; pool its objects."""
    global _tensor
    _tensor = tensor
    _bind(tensor, tensor.__dict__["_expr"], tensor.__dict__["_aliases"])
    pool_objects(tensor)


def register_subclass(kind):
    """Let the core treat instances of a subclass of Tensor without fields as strided tensors."""
    if not issubclass(kind, _tensor) or kind.__dict__.get("__slots__") != ():
        raise ArgumentTypeError(
            f"register_subclass: {kind.__name__} must derive from Tensor and have __slots__ = ()"
        )
    if not _is_strided_class(kind):
        _bind_subclass(kind)
        pool_objects(kind)
    install_attribute_slot(kind)


cdef install_attribute_slot(object kind):
    """Let attributes of Tensor or a subclass be found in C; `__getattr__` gets the others."""
    if kind.__getattribute__ is object.__getattribute__:
        (<PyTypeObject*>kind).tp_getattro = _get_attribute


cdef object _get_attribute(object x, object name):
    """Return an attribute; Python's slot looks `__getattr__` up first, which takes as long."""
    try:
        return PyObject_GenericGetAttr(x, name)
    except AttributeError:
        pass
    return type(x).__getattr__(x, name)


cpdef object set_class(object x, object kind):
    """Change the class of a strided tensor in place, and return it."""
    if not _is_strided(x) or not _is_strided_class(kind):
        raise ArgumentTypeError(
            "set_class: expected a strided tensor, and Tensor or a registered subclass; got "
            f"{type(x).__name__} and {kind}; call register_subclass first"
        )
    if type(x) is not kind:
        _set_class(x, kind)
    return x


cpdef object keep_class(object result, object operand):
    """Give a new Tensor the class of `operand`, if that is a subclass, and return it."""
    if type(operand) is not _tensor and type(result) is _tensor and _is_strided(operand):
        _set_class(result, type(operand))
    return result


cpdef Expr expr_of(object x):
    """Return the node of a strided tensor."""
    cdef PyObject* expr = NULL
    if _is_strided(x) or (_tensor is not None and PyObject_TypeCheck(x, <PyTypeObject*>_tensor)):
        expr = (<PyObject**>((<char*><void*>x) + _expr_at))[0]
    if expr == NULL:
        return x._expr  # raises AttributeError
    return <Expr>expr


cpdef become(object x, Expr e):
    """Replace the node of a tensor in place; its aliases are not changed."""
    if _is_strided(x):
        _store_reference(x, _expr_at, e)
    else:
        x._expr = e


cpdef bint is_strided(object x) noexcept:
    """Return True for a Tensor over strided memory: of that class or a registered subclass."""
    return _is_strided(x)


cpdef object aliases_of(object x):
    """Return the group of tensors that share the memory, or None if there are no others."""
    cdef PyObject* group = NULL
    if _is_strided(x):
        group = (<PyObject**>((<char*><void*>x) + _aliases_at))[0]
    return x._aliases if group == NULL else <object>group


cpdef object record_alias(object x, object y):
    """Add `x` and `y`, its view, to one alias group, and return `y` with the class of `x`."""
    if type(x) is not type(y):
        keep_class(y, x)
    found = aliases_of(x)
    cdef AliasGroup group
    if found is None:
        group = AliasGroup()
        group.add(x)
    else:
        group = <AliasGroup>found
    group.add(y)
    return y


cpdef object create_view(object x, Expr e):
    """Return a tensor over a leaf without a tape, in memory that it shares with `x`."""
    cdef object y = new_tensor(type(x), e), found = aliases_of(x)
    cdef AliasGroup group
    if found is None:
        group = AliasGroup()
        group.add(x)
    else:
        group = <AliasGroup>found
    _store_reference(y, _aliases_at, group)
    _link(&group.first, <PyObject*>y)
    return y


cpdef object new_tensor(object kind, Expr e):
    """Create a tensor of class `kind` over a node, without aliases and without evaluation."""
    cdef PyObject* memory = (<PyTypeObject*>kind).tp_alloc(<PyTypeObject*>kind, 0)
    if memory == NULL:
        raise MemoryError
    cdef object x = <object>memory
    Py_DECREF(x)  # `memory` owned one reference, and `x` owns another
    Py_INCREF(e)
    (<PyObject**>((<char*><void*>x) + _expr_at))[0] = <PyObject*>e
    Py_INCREF(None)
    (<PyObject**>((<char*><void*>x) + _aliases_at))[0] = <PyObject*>None
    return x
