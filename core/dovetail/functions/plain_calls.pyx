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

from dovetail.functions.graph_cache cimport CachedFunction, replay_recipe
from dovetail.graph.expr cimport Expr, Spec
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport expr_of, is_strided, keep_class
from dovetail.tensor.primitives cimport apply_one, apply_two
from dovetail.tensor.tensor cimport create_tensor

from .. import device_class as _devices
from ..device_class import Device
from ..dtypes import DType
from ..errors import DovetailError
from ..ops.table import Op
from ..settings import current
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
    """Replay the latest call, or call the cached function, or else the Python one.

    The Python one gets calls with `out` or under autocast, and raises errors again. The result is a
    new reference.
    """
    cdef PublicFunction f = <PublicFunction>function
    cdef CachedFunction work = <CachedFunction>f._work
    cdef LatestCall latest
    cdef Py_ssize_t k, generation, n = PyVectorcall_NARGS(count)
    cdef object keywords = None if names == NULL else <object>names
    if not flags.has_autocast:
        try:
            result = None
            if type(work.latest) is LatestCall:
                latest = <LatestCall>work.latest
                result = latest.replay_if_equal(args, n, keywords, work.generation)
            if result is None:
                options = {} if names == NULL else {
                    name: <object>args[n + k] for k, name in enumerate(<tuple>keywords)
                }
                if "out" in options:
                    return PyObject_Vectorcall(f._function, args, count, names)
                device, generation = _devices.process_default, work.generation
                positional = tuple([<object>args[k] for k in range(n)])
                result, recipe = work.call_and_find_template(positional, options)
                if recipe is work.latest and recipe is not None:
                    patterns = [_pattern(a) for a in (*positional, *options.values())]
                    if _NO_PATTERN not in patterns and not current().blocks:
                        work.latest = LatestCall(keywords, patterns, recipe, device, generation)
                else:
                    work.latest = recipe
            Py_INCREF(result)
            return <PyObject*>result
        except (DovetailError, TypeError):
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef class LatestCall:
    """The latest call of a cached function that replayed a template twice: a cache of one entry.

    A call with tensors of equal specs and equal constants replays it again; no key is built.
    """

    cdef object _keywords, _settings, _vendor_products, _device
    cdef list _patterns, _recipe
    cdef Py_ssize_t _generation

    def __init__(self, keywords, list patterns, list recipe, device, Py_ssize_t generation):
        self._keywords, self._patterns, self._recipe = keywords, patterns, recipe
        self._device, self._generation = device, generation
        self._settings = current()
        self._vendor_products = self._settings.vendor_products

    cdef replay_if_equal(self, PyObject** args, Py_ssize_t n, object keywords, Py_ssize_t generation):
        """Replay the template if the call is equal; return the result, or None.

        - `n`: the number of positional arguments; those of `keywords` follow.
        """
        cdef list exprs = []
        cdef Py_ssize_t k, total = n if keywords is None else n + len(<tuple>keywords)
        if (
            not flags.depth or flags.captures or generation != self._generation
            or total != len(self._patterns)
            or (keywords is not self._keywords and keywords != self._keywords)
        ):
            return None
        settings = current()
        if (
            settings is not self._settings
            or settings.vendor_products is not self._vendor_products
            or _devices.process_default is not self._device
        ):
            return None
        for k in range(total):
            if not _matches(<object>args[k], self._patterns[k], exprs):
                return None
        result = create_tensor(replay_recipe(self._recipe, exprs))
        for k in range(n):
            keep_class(result, <object>args[k])
        return result


cdef object _NO_PATTERN = object()
cdef tuple _CONSTANTS = (int, bool, float, str, DType, Device, type(None))


cdef object _pattern(object a):
    """Return the Spec of a dense tensor in memory, a constant itself, or `_NO_PATTERN`."""
    cdef Expr e
    if is_strided(a):
        e = expr_of(a)
        return e.spec if e.op is None and e.strides is e.spec.strides else _NO_PATTERN
    if type(a) is tuple:
        return a if all([type(x) is int for x in <tuple>a]) else _NO_PATTERN
    return a if type(a) in _CONSTANTS else _NO_PATTERN


cdef bint _matches(object a, object pattern, list exprs) except -1:
    """Return True if an argument fits a pattern; append a tensor's expression to `exprs`."""
    cdef Expr e, other
    cdef Py_ssize_t k
    if type(pattern) is Spec:
        if not is_strided(a):
            return False
        e = expr_of(a)
        if (
            e.spec is not pattern or e.op is not None or e.tape is not None
            or e.strides is not e.spec.strides or e.storage.pending is not None
        ):
            return False
        for other in exprs:
            if other.storage is e.storage:
                return False
        exprs.append(e)
        return True
    if a is pattern:
        return type(a) is not Device or a.opened is not None
    if type(a) is not type(pattern):
        return False
    if type(a) is int:
        return a == pattern
    if type(a) is float:
        return a == pattern and a != 0  # 0.0 == -0.0
    if type(a) is not tuple or len(<tuple>a) != len(<tuple>pattern):
        return False
    for k in range(len(<tuple>a)):
        if type((<tuple>a)[k]) is not int or (<tuple>a)[k] != (<tuple>pattern)[k]:
            return False
    return True


cdef _enable(PublicFunction f):
    """Enable vectorcalls of the class; `f` tells the offset of the field."""
    _enable_calls(PublicFunction, <char*>&f._vectorcall - <char*><void*>f)


_enable(PublicFunction.__new__(PublicFunction))


def accelerate(function, work):
    """Return a public function as an object that runs its plain calls in C."""
    return PublicFunction(function, work)
