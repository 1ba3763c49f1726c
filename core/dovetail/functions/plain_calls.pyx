"""Plain calls of public functions, compiled.

A call of a Python function with `*more` and `**theirs` creates a frame, a tuple and a dict, which
takes as long as to record an op. The objects here run a plain call at once, and leave every other
call to the Python function. It also repeats a call that fails, and raises the error without frames
of the library: until then the call has changed nothing.
"""

from functools import update_wrapper
from types import FunctionType

from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from dovetail.functions.graph_cache cimport CachedFunction
from dovetail.records cimport Flags
from dovetail.tensor.primitives cimport apply_one, apply_two

from ..errors import DovetailError
from ..ops.table import Op
from ..settings import flags as _process_flags

cdef extern from *:
    """
    /* Let calls of a class go to the function at `offset` of its objects; allow binding in C. */
    static void dovetail_enable_calls(PyObject *kind, Py_ssize_t offset) {
        PyTypeObject *type = (PyTypeObject *)kind;
        type->tp_vectorcall_offset = offset;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(type);
    }
    """
    void _enable_calls "dovetail_enable_calls"(object kind, Py_ssize_t offset)

cdef extern from "Python.h":
    Py_ssize_t PyVectorcall_NARGS(size_t)
    PyObject* PyObject_Vectorcall(object, PyObject**, size_t, PyObject*)  # a new reference, or null
    object PyMethod_New(object, object)

cdef Flags flags = _process_flags
cdef dict _NO_OPTIONS = {}


cdef class PublicFunction:
    """A public function whose plain calls run in C; `_work` is as for `accelerate`."""

    def __init__(self, function, work):
        self._function, self._work = function, work
        if isinstance(work, CachedFunction):
            self._vectorcall = <void*>_call_cached
        elif not isinstance(work, Op):
            self._vectorcall = <void*>_call_known
        else:
            self._vectorcall = <void*>_call_one if work.arity == 1 else <void*>_call_two
        update_wrapper(self, function)

    def __call__(self, *args, **options):
        return self._function(*args, **options)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    def __repr__(self):
        return f"<function {self.__qualname__}>"

    def __reduce__(self):
        return self.__qualname__

    @property
    def __class__(self):  # `help`, `inspect` and captures treat it as a Python function
        return FunctionType

    @property
    def __code__(self):
        return self._function.__code__

    @property
    def __defaults__(self):
        return self._function.__defaults__

    @property
    def __kwdefaults__(self):
        return self._function.__kwdefaults__

    @property
    def __globals__(self):
        return self._function.__globals__

    @property
    def __closure__(self):
        return self._function.__closure__


cdef PyObject* _call_one(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call the function of a row of one operand; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    if names == NULL and PyVectorcall_NARGS(count) == 1:
        try:
            result = apply_one(f._work, <object>args[0], None)
            Py_INCREF(result)
            return <PyObject*>result
        except DovetailError:
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef PyObject* _call_two(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call the function of a row of two operands; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    if names == NULL and PyVectorcall_NARGS(count) == 2:
        try:
            result = apply_two(f._work, <object>args[0], <object>args[1], None)
            Py_INCREF(result)
            return <PyObject*>result
        except DovetailError:
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef PyObject* _call_known(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call a function that returns None if it knows no such call; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    if names == NULL and PyVectorcall_NARGS(count) == 1:
        result = f._work(<object>args[0])
        if result is not None:
            Py_INCREF(result)
            return <PyObject*>result
    return PyObject_Vectorcall(f._function, args, count, names)


cdef PyObject* _call_cached(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call a cached function, unless a keyword is `out`; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(count)
    cdef dict options = _NO_OPTIONS if names == NULL else {}
    if names != NULL:
        for k in range(len(<tuple>names)):
            options[(<tuple>names)[k]] = <object>args[n + k]
    if not flags.has_autocast and "out" not in options:
        try:
            result = (<CachedFunction>f._work).call(tuple([<object>args[k] for k in range(n)]), options)
            Py_INCREF(result)
            return <PyObject*>result
        except (DovetailError, TypeError):
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef _enable(PublicFunction f):
    """Enable vectorcalls of the class; `f` tells the offset of the field."""
    _enable_calls(PublicFunction, <char*>&f._vectorcall - <char*><void*>f)


_enable(PublicFunction.__new__(PublicFunction))


def accelerate(function, work):
    """Return a public function as an object that runs its plain calls in C."""
    return PublicFunction(function, work)
