"""The type slots of Tensor's operators and buffer: the compiled form of `c_slots.py`.

Python's default slots look the method up and call it, which takes longer than to record an op.
The slots here record directly if the operands are tensors and numbers, and call the method
otherwise. An assignment to `Tensor.__add__` restores the default slot.
"""

from functools import update_wrapper

from cpython.object cimport PyObject

from dovetail.graph.expr cimport Expr, storage_of
from dovetail.records cimport Flags
from dovetail.tensor.host cimport as_bool, as_float, as_int, evaluate_leaf, reachable_address
from dovetail.tensor cimport host_arithmetic
from dovetail.tensor.host_index cimport copy_elements, gather, scatter
from dovetail.tensor.host_read cimport create_scalar, read_index
from dovetail.tensor.immediate cimport is_observed
from dovetail.tensor.operators cimport as_number, record_binary, record_reflected
from dovetail.tensor.primitives cimport apply
from dovetail.tensor.slicing cimport basic_leaf, element_position
from dovetail.tensor.c_fields cimport create_view, expr_of, install_attribute_slot, is_strided
from dovetail.tensor.writes cimport (
    fill_elements, _idle_address, is_broadcast, update_element, write_element, write_result, write_value,
)

from ..ops import table as ops
from ..settings import flags as _process_flags
from .slicing import NO_ELEMENT

cdef extern from "Python.h":
    ctypedef object (*Binary "binaryfunc")(object, object)
    ctypedef int (*Assignment "objobjargproc")(object, object, PyObject*) except -1
    ctypedef object (*Unary "unaryfunc")(object)
    ctypedef object (*Comparison "richcmpfunc")(object, object, int)
    ctypedef bint (*Inquiry "inquiry")(object) except -1
    ctypedef struct Numbers "PyNumberMethods":
        Binary nb_add
        Binary nb_subtract
        Binary nb_multiply
        Binary nb_true_divide
        Binary nb_floor_divide
        Binary nb_remainder
        Unary nb_negative
        Unary nb_absolute
        Unary nb_invert
        Binary nb_and
        Binary nb_or
        Binary nb_xor
        Binary nb_matrix_multiply
        Unary nb_float
        Unary nb_int
        Inquiry nb_bool
        Binary nb_inplace_add
        Binary nb_inplace_subtract
        Binary nb_inplace_multiply
        Binary nb_inplace_true_divide
        Binary nb_inplace_and
        Binary nb_inplace_or
        Binary nb_inplace_xor
    ctypedef Py_ssize_t (*Length "lenfunc")(object) except -1
    ctypedef struct Sequence "PySequenceMethods":
        Length sq_length
    ctypedef struct Mapping "PyMappingMethods":
        Length mp_length
        Binary mp_subscript
        Assignment mp_ass_subscript
    ctypedef struct Buffer "Py_buffer":
        void* obj
    int PyObject_GetBuffer(object, Buffer*, int) except -1
    ctypedef int (*Getter "getbufferproc")(object, Buffer*, int) except -1
    ctypedef struct Buffers "PyBufferProcs":
        Getter bf_getbuffer
    ctypedef struct Type "PyTypeObject":
        Buffers* tp_as_buffer
        Numbers* tp_as_number
        Mapping* tp_as_mapping
        Sequence* tp_as_sequence
        Comparison tp_richcompare

cdef enum:
    ADD, SUBTRACT, MULTIPLY, DIVIDE, FLOOR_DIVIDE, REMAINDER
    AND = 8, OR = 9, XOR = 10  # and those that `host_arithmetic` has besides
    NEGATIVE = 0, ABSOLUTE = 1, INVERT = 8

cdef Flags _flags = _process_flags
cdef Py_ssize_t _NO_ELEMENT = NO_ELEMENT
cdef type _tensor = None
cdef Binary _default_subscript = NULL
cdef Length _default_length = NULL
cdef Assignment _default_assignment = NULL
cdef Unary _default_float = NULL, _default_int = NULL
cdef Inquiry _default_bool = NULL
cdef Comparison _default_comparison = NULL
cdef list _ops = [ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.DIVIDE, ops.FLOOR_DIVIDE, ops.REMAINDER]
cdef object _negate = ops.NEGATIVE, _take_absolute = ops.ABS, _cast = ops.ASTYPE
cdef list _comparisons = [ops.LESS, ops.LESS_EQUAL, ops.EQUAL, ops.NOT_EQUAL, ops.GREATER, ops.GREATER_EQUAL]
cdef list _forward = [], _reflected = [], _in_place = []
cdef object _product = None, _product_reflected = None, _read_at = None, _write_at = None
cdef object _read_cached = None, _write_cached = None, _multiply_cached = None


cdef object _array = None  # the subclass of which small arrays are computed at once
cdef object _array_product = None  # its `__matmul__`
cdef object _array_absolute = None  # its `__abs__`
cdef object _read_number = None  # the function that makes NumPy's scalar of a result without dimensions
cdef Unary _default_invert = NULL  # slots that call its methods
cdef Binary _default_updates[3]
cdef list _forward_bitwise = [], _reflected_bitwise = []


cdef inline bint _computes_at_once(object a, object b) noexcept:
    """Return True if one of two operands is of the class `_array`, and none of another class of tensors."""
    if type(a) is _array:
        return type(b) is _array or not is_strided(b)
    return type(b) is _array and not is_strided(a)


cdef inline object _finish(object result):
    """Return the result of an operator: that of `_array` without dimensions as NumPy's scalar."""
    if type(result) is _array and len(expr_of(result).spec.shape) == 0:
        return _read_number(result)
    return result


cdef inline object _binary(int k, object a, object b):
    """Record op `k` of two operands, or call the method; return NotImplemented without a tensor."""
    if _computes_at_once(a, b):
        if not is_strided(b):
            b = as_number(b, expr_of(a).spec.dtype)
        elif not is_strided(a):
            a = as_number(a, expr_of(b).spec.dtype)
        result = host_arithmetic.compute(k, a, b)
        if result is not None:
            return result
    if is_strided(a):
        return _finish(record_binary(_ops[k], a, b))
    if is_strided(b) and (type(a) is float or type(a) is int):
        if k == DIVIDE and _flags.has_autocast:
            return _finish(_reflected[k](b, a))
        return _finish(record_reflected(_ops[k], a, b))
    return _finish(_reflected[k](b, a)) if is_strided(b) else NotImplemented


cdef object _add(object a, object b):
    return _binary(ADD, a, b)


cdef object _subtract(object a, object b):
    return _binary(SUBTRACT, a, b)


cdef object _multiply(object a, object b):
    return _binary(MULTIPLY, a, b)


cdef object _divide(object a, object b):
    return _binary(DIVIDE, a, b)


cdef object _floor_divide(object a, object b):
    return _binary(FLOOR_DIVIDE, a, b)


cdef object _remainder(object a, object b):
    return _binary(REMAINDER, a, b)


cdef object _negative(object a):
    result = host_arithmetic.compute_unary(NEGATIVE, a) if type(a) is _array else None
    return _finish(apply(_negate, (a,))) if result is None else result


cdef object _absolute(object a):
    result = host_arithmetic.compute_unary(ABSOLUTE, a) if type(a) is _array else None
    if result is None and type(a) is _array and expr_of(a).spec.dtype.kind == "b":
        return _array_absolute(a)
    return _finish(apply(_take_absolute, (a,))) if result is None else result


cdef object _invert(object a):
    result = host_arithmetic.compute_unary(INVERT, a)
    return _default_invert(a) if result is None else result


cdef inline object _bitwise(int k, object a, object b):
    """Return a bitwise op of small arrays, or call the method; NotImplemented without a tensor."""
    result = host_arithmetic.compute(k, a, b) if _computes_at_once(a, b) else None
    if result is not None:
        return result
    if is_strided(a):
        return _forward_bitwise[k - AND](a, b)
    return _reflected_bitwise[k - AND](b, a) if is_strided(b) else NotImplemented


cdef object _and(object a, object b):
    return _bitwise(AND, a, b)


cdef object _or(object a, object b):
    return _bitwise(OR, a, b)


cdef object _xor(object a, object b):
    return _bitwise(XOR, a, b)


cdef inline object _update_bitwise(int k, Binary default, object a, object b):
    """Write a bitwise op of small arrays into the first one, or call the slot of the class."""
    cdef Py_ssize_t address = _idle_address(a) if len(expr_of(a).spec.shape) > 0 else 0
    return a if address != 0 and host_arithmetic.update(k, a, b, address) else default(a, b)


cdef object _and_to(object a, object b):
    return _update_bitwise(AND, _default_updates[0], a, b)


cdef object _or_to(object a, object b):
    return _update_bitwise(OR, _default_updates[1], a, b)


cdef object _xor_to(object a, object b):
    return _update_bitwise(XOR, _default_updates[2], a, b)


cdef object _compare(object a, object b, int k):
    """Record comparison `k` (Py_LT, ...) of a tensor and an operand, or call the method."""
    cdef object number
    if type(a) is _array:
        number = b if is_strided(b) else as_number(b, expr_of(a).spec.dtype)
        result = host_arithmetic.compare(k, a, number)
        if result is not None:
            return result
    if is_strided(a) and (is_strided(b) or type(b) is float or type(b) is int):
        return _finish(record_binary(_comparisons[k], a, b))
    return _finish(_default_comparison(a, b, k))


cdef inline object _update(int k, object a, object b):
    """Write op `k` of two operands into the first one, or call the method."""
    cdef Py_ssize_t address
    if type(a) is _array:
        b = b if is_strided(b) else as_number(b, expr_of(a).spec.dtype)
        if len(expr_of(a).spec.shape) > 0 and (is_strided(b) or type(b) is float or type(b) is int):
            address = _idle_address(a)
            if address != 0 and host_arithmetic.update(k, a, b, address):
                return a
    if type(a) is not _tensor or not (is_strided(b) or type(b) is float or type(b) is int):
        return _in_place[k](a, b)
    op = _ops[k]
    return a if update_element(op, a, b) else write_result(op.name, a, [record_binary(op, a, b)])


cdef object _add_to(object a, object b):
    return _update(ADD, a, b)


cdef object _subtract_from(object a, object b):
    return _update(SUBTRACT, a, b)


cdef object _multiply_by(object a, object b):
    return _update(MULTIPLY, a, b)


cdef object _divide_by(object a, object b):
    return _update(DIVIDE, a, b)


cdef object _multiply_matrices(object a, object b):
    """Call `__matmul__` or `__rmatmul__` of the tensor; return NotImplemented without one."""
    if type(a) is _array:
        if type(b) is _array:
            result = host_arithmetic.multiply_matrices(a, b)
            if result is not None:
                return result
        return _array_product(a, b)
    if is_strided(a):
        result = None if _flags.has_autocast else _multiply_cached(a, b)
        return _product(a, b) if result is None else result
    return _product_reflected(b, a) if is_strided(b) else NotImplemented


cdef Py_ssize_t _length(object x) except -1:
    """Return the size of the first dimension, or call the method."""
    cdef tuple shape = expr_of(x).spec.shape if is_strided(x) else ()
    return <Py_ssize_t>shape[0] if len(shape) > 0 else _default_length(x)


cdef object _subscript(object x, object key):
    """Return the view `x[key]` of a tensor in memory, or call the method."""
    cdef Expr e = basic_leaf(x, key)
    if e is not None:
        return create_view(x, e)
    if not is_strided(x):
        return _default_subscript(x, key)
    result = _read_cached(x, key)
    return _read_at(x, key) if result is None else result


cdef bint _copy_at_once(object x, Expr part, object value) except -1:
    """Copy a small tensor in other memory by the host into a part of `x`; return True if done."""
    cdef Expr v
    if not is_strided(value) or is_observed():
        return False
    v = expr_of(value)
    if v.op is not None or storage_of(v).pending is not None or v.storage is part.storage:
        return False  # a pending value is computed right into the target
    return _idle_address(x) != 0 and copy_elements(part, value)


cdef int _assign(object x, object key, PyObject* value) except -1:
    """Write `x[key] = value`; call the default slot for `del x[key]` and other classes."""
    cdef Expr e = None
    if value != NULL:  # null: `del x[key]`
        if type(key) is not slice and write_element(x, key, <object>value):
            return 0
        e = basic_leaf(x, key)
    if e is not None:
        if fill_elements(x, e, <object>value) or _copy_at_once(x, e, <object>value):
            return 0
        write_value("setitem", create_view(x, e), <object>value)
    elif value != NULL and is_strided(x):
        if not _write_cached(x, key, <object>value):
            _write_at(x, key, <object>value)
    else:
        return _default_assignment(x, key, value)
    return 0


# --- the subclass whose elements are NumPy's scalars ----------------------------------------------

cdef double _EXACT_INT_MAX = 1 << 53
cdef Py_ssize_t _PENDING_ELEMENTS_MAX = 4096
PENDING_ELEMENTS_MAX = _PENDING_ELEMENTS_MAX
cdef Binary _element_subscript = NULL  # the slots that call the methods of the subclass
cdef Assignment _element_assignment = NULL


cdef inline bint _is_index(object part) noexcept:
    """Return True for an int, and for an integer scalar of NumPy."""
    cdef Py_ssize_t index
    return type(part) is int or read_index(<PyObject*>part, &index)


cdef bint _selects_element(object key, Py_ssize_t ndim) except -1:
    """Return True if a key has one integer for each of `ndim` axes."""
    if type(key) is not tuple:
        return ndim == 1 and _is_index(key)
    if len(<tuple>key) != ndim:
        return False
    for part in <tuple>key:
        if not _is_index(part):
            return False
    return True


cdef object _read_element(object x, object key):
    """Return the scalar `x[key]` of a tensor that the host reads at once; None for others."""
    cdef Expr e = expr_of(x)
    cdef Py_ssize_t position, address
    if e.tape is not None or _flags.captures:
        return None
    if e.op is not None or storage_of(e).pending is not None:
        if not _selects_element(key, len(e.spec.shape)):
            return None  # a view of a pending value stays pending
        e = evaluate_leaf(x)
    position = element_position(e, key)
    if position == _NO_ELEMENT:
        return None
    address = reachable_address(e)
    if address == 0:
        return None
    return create_scalar(e.spec.dtype.name, e.spec.itemsize, address + position * e.spec.itemsize)


cdef object _subscript_element(object x, object key):
    """Return the scalar, view or small copy `x[key]` of a tensor in memory, or call the method."""
    cdef Expr e
    if is_strided(x):
        if type(key) is not slice:
            scalar = _read_element(x, key)
            if scalar is not None:
                return scalar
        if _is_small_pending(x):
            evaluate_leaf(x)
        e = basic_leaf(x, key)
        if e is None:
            result = gather(x, key)
            if result is not None:
                e = expr_of(result)
                if len(e.spec.shape) > 0:
                    return result
                return create_scalar(e.spec.dtype.name, e.spec.itemsize, reachable_address(e))
        elif len(e.spec.shape) > 0:
            return create_view(x, e)
    return _element_subscript(x, key)


cdef inline bint _is_small_pending(object x) except -1:
    """Return True for a pending value that takes less time to compute than its view to record."""
    cdef Expr e = expr_of(x)
    if e.op is None and storage_of(e).pending is None:
        return False
    return e.tape is None and e.spec.size <= _PENDING_ELEMENTS_MAX and not is_observed()


cdef bint _assign_tensor(object x, object key, object value) except -1:
    """Write a tensor of the same dtype, or a number at index arrays; return False for the method."""
    cdef Expr e = basic_leaf(x, key), v
    cdef Py_ssize_t address
    cdef object dtype = expr_of(x).spec.dtype
    if is_strided(value) and expr_of(value).spec.dtype is not dtype:
        if expr_of(value).spec.dtype.kind == "c" and dtype.kind != "c":
            return False  # the method warns that imaginary parts are lost
        value = apply(_cast, (value,), dtype)  # NumPy casts what is assigned
    if e is None:
        for part in <tuple>key if type(key) is tuple else (key,):
            if is_strided(part) and _is_small_pending(part):
                evaluate_leaf(part)  # it may read `x`
        address = _idle_address(x)
        return address != 0 and scatter(x, key, value, address)
    if not is_strided(value):
        return False
    v = expr_of(value)
    if v.op is None and _idle_address(x) != 0 and copy_elements(e, value):
        return True
    if v.spec is not e.spec:
        return False
    v = None  # a value without other references is computed right into the target
    write_value("setitem", create_view(x, e), value)
    return True


cdef int _assign_element(object x, object key, PyObject* value) except -1:
    """Write `x[key] = value` if the host writes at once, or no cast is needed, else call the method."""
    cdef Expr e
    cdef object whole
    if value != NULL and is_strided(x):
        if key is not Ellipsis and _is_small_pending(x):
            evaluate_leaf(x)
        if type(key) is not slice and write_element(x, key, <object>value):
            return 0
        if is_broadcast(expr_of(x)):
            return _element_assignment(x, key, value)
        if not _flags.captures and _assign_tensor(x, key, <object>value):
            return 0
        if isinstance(<object>value, float) and _holds_integers(x):  # NumPy drops the fraction
            if -_EXACT_INT_MAX < <double><object>value < _EXACT_INT_MAX:
                whole = <long long><double><object>value
                if write_element(x, key, whole):
                    return 0
        elif type(<object>value) is float or type(<object>value) is int:
            e = basic_leaf(x, key)
            if e is not None and fill_elements(x, e, <object>value):
                return 0
    return _element_assignment(x, key, value)


cdef inline bint _holds_integers(object x) except -1:
    """Return True if the dtype of a tensor is one of integers."""
    kind = expr_of(x).spec.dtype.kind
    return kind == "i" or kind == "u"


cdef class ElementIterator:
    """An iterator over x[0], x[1], ...; each is read when it is asked for."""

    cdef object x
    cdef Py_ssize_t i, count

    def __init__(self, x):
        self.x, self.i, self.count = x, 0, len(x)

    def __iter__(self):
        return self

    def __next__(self):
        if self.i >= self.count:
            raise StopIteration
        cdef object key = self.i
        self.i += 1
        return self.x[key]


def iterate_elements(x):
    """Return an iterator over the elements or rows of a tensor, as they are when they are read."""
    return ElementIterator(x)


def build_array_ufunc(function, dict ufuncs):
    """Return `__array_ufunc__` that records `scalar op x` itself, and calls `function` for others.

    ufuncs: the positions in `_ops` of NumPy's ufuncs.
    """
    def method(self, ufunc, method, *inputs, **options):
        cdef object k, number, x
        if method == "__call__" and len(inputs) == 2 and not options and not _flags.has_autocast:
            k, x = ufuncs.get(ufunc), inputs[1]
            if k is not None and is_strided(x):
                number = as_number(inputs[0], expr_of(x).spec.dtype)
                if type(number) is float or type(number) is int:
                    result = host_arithmetic.compute(<int>k, number, x)
                    if result is not None:
                        return result
                    return _finish(record_reflected(_ops[<int>k], number, x))
        return function(self, ufunc, method, *inputs, **options)

    return update_wrapper(method, function)


def _compiled_method(function):
    """Return a method that calls `function`.

    The interpreter would call a Python function in place of the slot.
    """
    def method(self, key):
        return function(self, key)

    return update_wrapper(method, function)


def install_element_slots(kind, read_number):
    """Let elements and operators of a subclass return NumPy's scalars.

    Its methods serve what the slots do not. Raises: RuntimeError for a second class.
    """
    global _element_subscript, _element_assignment, _array, _array_product, _array_absolute, _read_number
    if _element_subscript != NULL:
        raise RuntimeError(f"install_element_slots: another class than {kind.__name__} has them")
    _array, _array_product = kind, kind.__dict__["__matmul__"]
    _array_absolute, _read_number = kind.__dict__["__abs__"], read_number
    cdef Mapping* mapping = (<Type*>kind).tp_as_mapping
    mapping.mp_length = (<Type*>kind).tp_as_sequence.sq_length = _length
    (<Type*>kind).tp_richcompare = _compare
    _set_operators(kind)
    _set_bitwise_operators(kind)
    kind.__getitem__ = _compiled_method(kind.__dict__["__getitem__"])
    _element_subscript, mapping.mp_subscript = mapping.mp_subscript, _subscript_element
    _element_assignment, mapping.mp_ass_subscript = mapping.mp_ass_subscript, _assign_element


cdef object _to_float(object x):
    return as_float(x) if is_strided(x) else _default_float(x)


cdef object _to_int(object x):
    return as_int(x) if is_strided(x) else _default_int(x)


cdef bint _to_bool(object x) except -1:
    return as_bool(x) if is_strided(x) else _default_bool(x)


cdef int _buffer(object x, Buffer* view, int flags) except -1:
    """Get the buffer of the memoryview from `__buffer__`, as Python 3.12 does by itself."""
    view.obj = NULL
    return PyObject_GetBuffer(x.__buffer__(flags), view, flags)


cdef _set_operators(object kind):
    """Fill the slots of the operators of Tensor, or of a subclass, which Python fills with slower ones."""
    cdef Numbers* numbers = (<Type*>kind).tp_as_number
    numbers.nb_add, numbers.nb_subtract = _add, _subtract
    numbers.nb_multiply, numbers.nb_true_divide = _multiply, _divide
    numbers.nb_floor_divide, numbers.nb_remainder = _floor_divide, _remainder
    numbers.nb_negative, numbers.nb_absolute = _negative, _absolute
    numbers.nb_inplace_add, numbers.nb_inplace_subtract = _add_to, _subtract_from
    numbers.nb_inplace_multiply, numbers.nb_inplace_true_divide = _multiply_by, _divide_by
    numbers.nb_matrix_multiply = _multiply_matrices


cdef _set_bitwise_operators(object kind):
    """Fill the slots of the bitwise operators of the subclass whose small arrays are computed at once."""
    global _default_invert
    cdef Numbers* numbers = (<Type*>kind).tp_as_number
    _default_invert, numbers.nb_invert = numbers.nb_invert, _invert
    for name in ("and", "or", "xor"):
        _forward_bitwise.append(getattr(kind, f"__{name}__"))
        _reflected_bitwise.append(getattr(kind, f"__r{name}__"))
    numbers.nb_and, numbers.nb_or, numbers.nb_xor = _and, _or, _xor
    _default_updates[0], numbers.nb_inplace_and = numbers.nb_inplace_and, _and_to
    _default_updates[1], numbers.nb_inplace_or = numbers.nb_inplace_or, _or_to
    _default_updates[2], numbers.nb_inplace_xor = numbers.nb_inplace_xor, _xor_to


def fill(type tensor, read_cached, write_cached, multiply_cached):
    """Fill the slots of Tensor, once the class has all of its methods; do nothing when repeated.

    The other arguments are functions of `functions/known_calls.py`.
    """
    global _read_cached, _write_cached, _multiply_cached
    global _tensor, _default_subscript, _default_assignment, _product, _product_reflected, _read_at, _write_at
    global _default_float, _default_int, _default_bool, _default_comparison, _default_length
    cdef Numbers* numbers = (<Type*>tensor).tp_as_number
    cdef Mapping* mapping = (<Type*>tensor).tp_as_mapping
    if _tensor is not None:
        return
    _tensor = tensor
    _read_cached, _write_cached, _multiply_cached = read_cached, write_cached, multiply_cached
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod"):
        _forward.append(tensor.__dict__[f"__{name}__"])
        _reflected.append(tensor.__dict__[f"__r{name}__"])
        _in_place.append(tensor.__dict__[f"__i{name}__"])
    _set_operators(tensor)
    install_attribute_slot(tensor)
    _default_comparison, (<Type*>tensor).tp_richcompare = (<Type*>tensor).tp_richcompare, _compare
    _product, _product_reflected = tensor.__dict__["__matmul__"], tensor.__dict__["__rmatmul__"]
    _default_float, numbers.nb_float = numbers.nb_float, _to_float
    _default_int, numbers.nb_int = numbers.nb_int, _to_int
    _default_bool, numbers.nb_bool = numbers.nb_bool, _to_bool
    _default_length, mapping.mp_length = mapping.mp_length, _length
    (<Type*>tensor).tp_as_sequence.sq_length = _length
    _read_at = tensor.__dict__["__getitem__"]
    tensor.__getitem__ = _compiled_method(_read_at)
    _default_subscript, mapping.mp_subscript = mapping.mp_subscript, _subscript
    _default_assignment, mapping.mp_ass_subscript = mapping.mp_ass_subscript, _assign
    _write_at = tensor.__dict__["__setitem__"]
    if (<Type*>tensor).tp_as_buffer.bf_getbuffer == NULL:  # before Python 3.12
        (<Type*>tensor).tp_as_buffer.bf_getbuffer = _buffer
