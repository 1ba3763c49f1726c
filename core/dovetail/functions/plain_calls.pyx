"""Plain calls of public functions, compiled.

A call of a Python function with `*more` and `**theirs` creates a frame, a tuple and a dict, which
takes as long as to record an op. The objects here run a plain call at once, and leave every other
call to the Python function. It also repeats a call that fails, and raises the error without frames
of the library: until then the call has changed nothing.
"""

from functools import update_wrapper
from types import FunctionType

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from dovetail.engine.evaluate cimport evaluate_node
from dovetail.functions.graph_cache cimport CachedFunction, replay_recipe
from dovetail.functions.known_calls cimport reduce_cached
from dovetail.graph.expr cimport Expr, Spec, leaf, storage_of
from dovetail.records cimport Flags
from dovetail.tensor.c_fields cimport create_view, expr_of, is_strided, keep_class
from dovetail.tensor.primitives cimport apply, apply_one, apply_two
from dovetail.tensor.tensor cimport create_tensor

from .. import device_class as _devices
from ..device_class import Device
from ..dtypes import DType
from ..errors import DovetailError
from ..ops.table import Op
from ..settings import _current, current
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
    void Py_XDECREF(PyObject*)
    int PyContextVar_Get(object, PyObject*, PyObject**) except -1  # a new reference

cdef Flags flags = _process_flags
cdef object _context_settings = _current
cdef dict _device_globals = _devices.__dict__  # a module's attribute takes 200 instructions more


cdef class PublicFunction:
    """A public function whose plain calls run in C; the type of `_work` selects how.

    It is as for `accelerate`, a list of RecentView for a function of views, or None for `evaluate`.
    """

    def __init__(self, function, work, count=1):
        self._function, self._work, self._count = function, work, count
        if isinstance(work, CachedFunction):
            self._vectorcall = <void*>_call_cached
        elif isinstance(work, list):
            self._vectorcall = <void*>_call_view
        elif work is None:
            self._vectorcall = <void*>_call_evaluate
        elif not isinstance(work, Op):
            self._vectorcall = <void*>_call_known
        elif work.kind == "reduce":
            self._vectorcall = <void*>_call_reduction
        elif work.arity == 3:
            self._vectorcall = <void*>_call_three
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


cdef PyObject* _call_three(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call the function of a row of three operands, of which the first is a tensor; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    if names == NULL and PyVectorcall_NARGS(count) == 3 and is_strided(<object>args[0]):
        try:
            result = apply(f._work, (<object>args[0], <object>args[1], <object>args[2]))
            Py_INCREF(result)
            return <PyObject*>result
        except DovetailError:
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef PyObject* _call_reduction(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Record a cached reduction of a tensor, with `axis` and `keepdims` at most.

    The Python function records one that is not cached. The result is a new reference.
    """
    cdef PublicFunction f = <PublicFunction>function
    cdef Py_ssize_t k, n = PyVectorcall_NARGS(count)
    cdef bint is_plain = 1 <= n <= 2 and not flags.has_autocast
    cdef object axis = <object>args[1] if n == 2 else None, keepdims = False
    if names != NULL:
        for k, name in enumerate(<tuple><object>names):
            if name == "keepdims":
                keepdims = <object>args[n + k]
            elif name == "axis" and n == 1:
                axis = <object>args[n + k]
            else:
                is_plain = False
    if is_plain:
        try:
            result = reduce_cached(f._work, <object>args[0], axis, keepdims, None)
            if result is not None:
                Py_INCREF(result)
                return <PyObject*>result
        except DovetailError:
            pass
    return PyObject_Vectorcall(f._function, args, count, names)


cdef PyObject* _call_evaluate(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Compute one tensor, or call the Python function; return a new reference to None."""
    cdef PublicFunction f = <PublicFunction>function
    cdef Expr e
    if names != NULL or PyVectorcall_NARGS(count) != 1 or not is_strided(<object>args[0]):
        return PyObject_Vectorcall(f._function, args, count, names)
    e = expr_of(<object>args[0])
    if e.op is not None or storage_of(e).pending is not None or flags.has_unresolved_checks:
        evaluate_node(e)
    Py_INCREF(None)
    return <PyObject*>None


cdef PyObject* _call_known(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Call a function that returns None if it knows no such call; return a new reference."""
    cdef PublicFunction f = <PublicFunction>function
    cdef PyObject* returned
    if names == NULL and PyVectorcall_NARGS(count) == f._count:
        try:
            returned = PyObject_Vectorcall(f._work, args, count, NULL)
            if returned != <PyObject*>None:
                return returned
            Py_DECREF(None)
        except DovetailError:
            pass
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
                    patterns = _patterns((*positional, *options.values()))
                    if _NO_PATTERN not in patterns and not current().blocks:
                        work.latest = LatestCall(
                            keywords, patterns, recipe, device, work.creates, generation
                        )
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
    cdef bint _creates
    cdef Py_ssize_t _generation

    def __init__(
        self, keywords, list patterns, list recipe, device, bint creates, Py_ssize_t generation
    ):
        self._keywords, self._patterns, self._recipe = keywords, patterns, recipe
        self._device, self._creates, self._generation = device, creates, generation
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
        if not self._has_same_settings():
            return None
        for k in range(total):
            if not _matches(<object>args[k], self._patterns[k], exprs):
                return None
        result = create_tensor(replay_recipe(self._recipe, exprs))
        for k in range(n):
            keep_class(result, <object>args[k])
        return result


    cdef bint _has_same_settings(self) except -1:
        """Return True if the context's settings, and the device of created tensors, are as before."""
        cdef PyObject* settings = NULL
        PyContextVar_Get(_context_settings, NULL, &settings)
        try:
            return (
                settings == <PyObject*>self._settings
                and self._settings.vendor_products is self._vendor_products
                and (not self._creates or _device_globals["process_default"] is self._device)
            )
        finally:
            Py_XDECREF(settings)


# --- functions whose result is a view of their first operand --------------------------------------

cdef enum:
    RECENT_VIEWS_MAX = 16  # calls that each function repeats; another layout is one comparison


cdef class RecentView:
    """A call of a view function: its operand's layout, its other arguments, the result's layout."""

    cdef Spec spec, result_spec
    cdef tuple strides, arguments, result_strides
    cdef object keywords
    cdef Py_ssize_t offset

    cdef bint matches(self, Expr e, PyObject** args, Py_ssize_t n, object keywords) except -1:
        """Return True for a call with this operand layout and the same other arguments."""
        cdef Py_ssize_t k
        if e.spec is not self.spec or n != len(self.arguments):
            return False
        if e.strides is not self.strides and e.strides != self.strides:
            return False
        if keywords is not self.keywords and keywords != self.keywords:
            return False
        for k in range(n):
            if args[k] != <PyObject*>self.arguments[k] and not _equals_constant(<object>args[k], self.arguments[k]):
                return False
        return True


cdef PyObject* _call_view(PyObject* function, PyObject** args, size_t count, PyObject* names) except NULL:
    """Repeat a recent call on a tensor in memory, or call the Python function.

    Views without a tape do not depend on captures and devices, and on no setting but autocast. The
    result is a new reference.
    """
    cdef PublicFunction f = <PublicFunction>function
    cdef list recent = <list>f._work
    cdef RecentView call
    cdef Expr e = None
    cdef object keywords = None
    cdef Py_ssize_t n = PyVectorcall_NARGS(count)
    cdef PyObject* returned
    if n == 0 or flags.has_autocast or not is_strided(<object>args[0]):
        return PyObject_Vectorcall(f._function, args, count, names)
    e = expr_of(<object>args[0])
    if e.op is not None or e.tape is not None or storage_of(e).pending is not None:
        return PyObject_Vectorcall(f._function, args, count, names)
    if names != NULL:
        keywords = <object>names
        n += len(<tuple>keywords)
    for item in recent:
        call = <RecentView>item
        if call.matches(e, args + 1, n - 1, keywords):
            result = create_view(
                <object>args[0], leaf(e.storage, call.result_spec, call.result_strides, e.offset + call.offset)
            )
            Py_INCREF(result)
            return <PyObject*>result
    returned = PyObject_Vectorcall(f._function, args, count, names)
    if returned != NULL:
        _remember_view(f, recent, e, args + 1, n - 1, keywords, <object>args[0], <object>returned)
    return returned


cdef _remember_view(PublicFunction f, list recent, Expr e, PyObject** args, Py_ssize_t n, keywords, x, result):
    """Store a call if its result is a new view of the operand, and its arguments are constants."""
    cdef RecentView call
    cdef Expr view
    cdef Py_ssize_t k
    if result is x or not is_strided(result):
        return
    view = expr_of(result)
    if view.op is not None or view.storage is not e.storage or e.op is not None or e.tape is not None:
        return
    arguments = tuple([<object>args[k] for k in range(n)])
    if not all([_is_view_constant(a) for a in arguments]):
        return
    call = RecentView.__new__(RecentView)
    call.spec, call.strides, call.arguments, call.keywords = e.spec, e.strides, arguments, keywords
    call.result_spec, call.result_strides, call.offset = view.spec, view.strides, view.offset - e.offset
    if len(recent) < RECENT_VIEWS_MAX:
        recent.append(call)
    else:  # at a random place: of 17 calls in rotation, the oldest is needed next
        f._random = f._random * 1103515245 + 12345
        recent[(f._random >> 16) % RECENT_VIEWS_MAX] = call


cdef bint _is_view_constant(object a) except -1:
    """Return True for None, a bool, an int and a tuple of ints."""
    if type(a) is tuple:
        return all([type(x) is int for x in <tuple>a])
    return a is None or type(a) is int or type(a) is bool


# --- arguments of repeated calls ------------------------------------------------------------------

cdef object _NO_PATTERN = object()
cdef tuple _CONSTANTS = (int, bool, float, str, DType, Device, type(None))


cdef class RepeatedTensor:
    """The pattern of a tensor that is an argument once more; `position` counts the tensors."""

    cdef Py_ssize_t position

    def __init__(self, Py_ssize_t position):
        self.position = position


cdef list _patterns(tuple arguments):
    """Return the patterns of a call's arguments."""
    cdef list exprs = [], patterns = []
    for a in arguments:
        pattern = _pattern(a)
        if type(pattern) is Spec:
            e = expr_of(a)
            if e in exprs:
                pattern = RepeatedTensor(exprs.index(e))
            else:
                exprs.append(e)
        patterns.append(pattern)
    return patterns


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
    if type(pattern) is Spec:
        if not is_strided(a):
            return False
        e = expr_of(a)
        if (
            e.spec is not pattern or e.op is not None or e.tape is not None
            or e.strides is not e.spec.strides or storage_of(e).pending is not None
        ):
            return False
        for other in exprs:
            if other.storage is e.storage:
                return False
        exprs.append(e)
        return True
    if type(pattern) is RepeatedTensor:
        return is_strided(a) and expr_of(a) is exprs[(<RepeatedTensor>pattern).position]
    if a is pattern:
        return type(a) is not Device or a.opened is not None
    return _equals_constant(a, pattern)


cdef bint _equals_constant(object a, object pattern) except -1:
    """Return True if an int, a float or a tuple of ints is equal to a constant of its type."""
    cdef Py_ssize_t k
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


def accelerate(function, work, count=1):
    """Return a public function as an object that runs its plain calls in C."""
    return PublicFunction(function, work, count)


def cache_view_calls(function):
    """Wrap a function that returns a view: an object repeats its latest calls in C."""
    return PublicFunction(function, [])


def accelerate_evaluate(function):
    """Return `evaluate` as an object that computes one tensor in C."""
    return PublicFunction(function, None)
