# cython: boundscheck=False, wraparound=False, cdivision=True
"""Arithmetic of small arrays that the host computes at once: the compiled `host_arithmetic.py`.

Results are computed into a buffer on the stack, so operands may share memory with the target.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libc.string cimport memcpy

from dovetail.graph.expr cimport Expr, Spec, spec
from dovetail.tensor.c_fields cimport expr_of, is_strided, new_tensor
from dovetail.tensor.host cimport allocate_leaf, reachable_address
from dovetail.tensor.immediate cimport is_observed
from dovetail.tensor.slicing cimport spec_of_shape

from ..dtypes import bool_ as _bool_dtype

cdef extern from *:
    """
    #include <math.h>

    /* Inline fused multiply-add where the CPU has it; elsewhere that of the C library. */
    #define DOVETAIL_DOT                                                              \\
        double sum = 0;                                                               \\
        for (Py_ssize_t i = 0; i < n; i++)                                            \\
            sum = fma(*(const double *)(a + i * a_step), *(const double *)(b + i * b_step), sum); \\
        return sum;
    static double dovetail_dot_plain(const char *a, Py_ssize_t a_step, const char *b,
                                     Py_ssize_t b_step, Py_ssize_t n) { DOVETAIL_DOT }
    #if defined(__GNUC__) && defined(__x86_64__)
    __attribute__((target("fma")))
    static double dovetail_dot_fma(const char *a, Py_ssize_t a_step, const char *b,
                                   Py_ssize_t b_step, Py_ssize_t n) { DOVETAIL_DOT }
    static inline double dovetail_dot(const char *a, Py_ssize_t a_step, const char *b,
                                      Py_ssize_t b_step, Py_ssize_t n) {
        return (__builtin_cpu_supports("fma") ? dovetail_dot_fma : dovetail_dot_plain)(
            a, a_step, b, b_step, n);
    }
    #else
    #define dovetail_dot dovetail_dot_plain
    #endif
    """
    double _dot "dovetail_dot"(char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n) noexcept

cdef enum:
    _NDIM = 4
    _ELEMENTS = 256
    _MULTIPLIES = 512
    _BLOCK = 256  # products that are summed in one chain
    _ADD = 0
    _SUBTRACT = 1
    _MULTIPLY = 2
    _DIVIDE = 3

cdef long long _EXACT = 1 << 53  # ints up to here are float64 exactly

cdef union Number:
    double real
    int64_t whole

cdef struct Operand:
    char* at
    Py_ssize_t steps[_NDIM]  # in bytes
    Number number

cdef str FLOAT64 = "float64", INT64 = "int64"


cpdef object compute(int op, object x, object y):
    """Return an op of two operands, or None for the general path."""
    cdef Operand a, b
    cdef Py_ssize_t shape[_NDIM]
    cdef Number results[_ELEMENTS]
    cdef Number* end = results
    cdef Expr e = expr_of(x if is_strided(x) else y), result
    cdef bint real = e.spec.dtype.name is FLOAT64
    cdef Py_ssize_t ndim, address
    if op == _DIVIDE and not real:
        return None
    ndim = _match(e, x, y, shape, &a, &b)
    if ndim < 0 or not _run(op, real, shape, ndim, a.at, a.steps, b.at, b.steps, &end):
        return None
    result = allocate_leaf(spec_of_shape(e.spec, shape, ndim))
    address = reachable_address(result)
    if address == 0:
        return None
    memcpy(<void*><uintptr_t>address, results, (end - results) * sizeof(Number))
    return new_tensor(type(x if is_strided(x) else y), result)


cpdef object compare(int op, object x, object y):
    """Return a comparison of two operands, or None for the general path."""
    cdef Operand a, b
    cdef Py_ssize_t shape[_NDIM]
    cdef uint8_t results[_ELEMENTS]
    cdef uint8_t* end = results
    cdef Expr e = expr_of(x), result
    cdef Py_ssize_t ndim = _match(e, x, y, shape, &a, &b), address, d
    if ndim < 0:
        return None
    _run_comparison(op, e.spec.dtype.name is FLOAT64, shape, ndim, a.at, a.steps, b.at, b.steps, &end)
    result = allocate_leaf(spec(tuple([shape[d] for d in range(ndim)]), _bool_dtype, e.spec.device))
    address = reachable_address(result)
    if address == 0:
        return None
    memcpy(<void*><uintptr_t>address, results, end - results)
    return new_tensor(type(x), result)


cpdef bint update(int op, object x, object y, Py_ssize_t address) except -1:
    """Write an op of two operands into the first; return False with nothing done."""
    cdef Operand a, b
    cdef Py_ssize_t shape[_NDIM]
    cdef Number results[_ELEMENTS]
    cdef Number* end = results
    cdef Expr e = expr_of(x)
    cdef bint real = e.spec.dtype.name is FLOAT64
    cdef Py_ssize_t ndim, d
    if op == _DIVIDE and not real:
        return False
    ndim = _match(e, x, y, shape, &a, &b)
    if ndim != len(e.spec.shape):
        return False
    for d in range(ndim):
        if shape[d] != <Py_ssize_t>e.spec.shape[d]:
            return False
    if not _run(op, real, shape, ndim, a.at, a.steps, b.at, b.steps, &end):
        return False
    end = results
    _store(shape, ndim, <char*><uintptr_t>address, a.steps, &end)
    return True


cpdef object multiply_matrices(object x, object y):
    """Return the product of float64 vectors or matrices in memory; None for the general path."""
    cdef Expr a = expr_of(x), b = expr_of(y), result
    cdef Py_ssize_t rows = 1, columns = 1, k, i, j, row_step = 0, column_step = 0, a_step, b_step, ndim = 0, address
    cdef Py_ssize_t first = len(a.spec.shape), second = len(b.spec.shape)
    cdef Py_ssize_t shape[2]
    cdef double results[_ELEMENTS]
    cdef double value
    cdef char* left
    cdef char* right
    if a.spec.dtype.name is not FLOAT64 or b.spec.dtype is not a.spec.dtype or a.spec.device is not b.spec.device:
        return None
    if not 0 < first <= 2 or not 0 < second <= 2 or a.tape is not None or b.tape is not None or a.op is not None or b.op is not None:
        return None
    k = a.spec.shape[first - 1]
    if k != <Py_ssize_t>b.spec.shape[0] or not 0 < k <= _BLOCK:
        return None
    if first == 2:
        rows, row_step = a.spec.shape[0], a.strides[0] * 8
        shape[ndim] = rows
        ndim += 1
    if second == 2:
        columns, column_step = b.spec.shape[1], b.strides[1] * 8
        shape[ndim] = columns
        ndim += 1
    if rows * columns * k > _MULTIPLIES or rows * columns == 0 or rows * columns > _ELEMENTS or is_observed():
        return None
    left, right = <char*><uintptr_t>reachable_address(a), <char*><uintptr_t>reachable_address(b)
    if left == NULL or right == NULL:
        return None
    a_step, b_step = a.strides[first - 1] * 8, b.strides[0] * 8
    for i in range(rows):
        for j in range(columns):
            value = _dot(left + i * row_step, a_step, right + j * column_step, b_step, k)
            if value != value:
                return None
            results[i * columns + j] = value
    result = allocate_leaf(spec_of_shape(a.spec, shape, ndim))
    address = reachable_address(result)
    if address == 0:
        return None
    memcpy(<void*><uintptr_t>address, results, rows * columns * sizeof(double))
    return new_tensor(type(x), result)


# --- operands -------------------------------------------------------------------------------------


cdef Py_ssize_t _match(Expr e, object x, object y, Py_ssize_t* shape, Operand* a, Operand* b) except -2:
    """Fill the operands and the shape to which they broadcast; return its length, or -1.

    -1 is for the general path. `e` is the node of the tensor, or of the first of two.
    """
    cdef Py_ssize_t ndim = len(e.spec.shape), other, d, size = 1
    cdef Expr second = None
    if e.spec.dtype.name is not FLOAT64 and e.spec.dtype.name is not INT64:
        return -1
    if is_strided(x) and is_strided(y):
        second = expr_of(y)
        if second.spec.dtype is not e.spec.dtype or second.spec.device is not e.spec.device:
            return -1
        other = len(second.spec.shape)
        ndim = max(ndim, other)
    if ndim > _NDIM:
        return -1
    for d in range(ndim):
        shape[d] = 1
    if not _broadcast(e, shape, ndim) or (second is not None and not _broadcast(second, shape, ndim)):
        return -1
    for d in range(ndim):
        size *= shape[d]
    if not 0 < size <= _ELEMENTS or is_observed():
        return -1
    if second is not None:
        return ndim if _locate(e, shape, ndim, a) and _locate(second, shape, ndim, b) else -1
    if is_strided(x):
        return ndim if _locate(e, shape, ndim, a) and _convert(e, y, ndim, b) else -1
    return ndim if _convert(e, x, ndim, a) and _locate(e, shape, ndim, b) else -1


cdef bint _broadcast(Expr e, Py_ssize_t* shape, Py_ssize_t ndim) except -1:
    """Widen a shape by that of a node; return False if they do not broadcast, or it is pending."""
    cdef tuple own = e.spec.shape
    cdef Py_ssize_t d, n, lead = ndim - len(own)
    if e.op is not None or e.tape is not None:
        return False
    for d in range(len(own)):
        n = own[d]
        if shape[lead + d] == 1:
            shape[lead + d] = n
        elif n != 1 and n != shape[lead + d]:
            return False
    return True


cdef bint _locate(Expr e, Py_ssize_t* shape, Py_ssize_t ndim, Operand* operand) except -1:
    """Fill an operand with the address of a leaf and its steps, 0 along axes of size 1."""
    cdef tuple own = e.spec.shape, strides = e.strides
    cdef Py_ssize_t d, lead = ndim - len(own)
    operand.at = <char*><uintptr_t>reachable_address(e)
    if operand.at == NULL:
        return False
    for d in range(ndim):
        operand.steps[d] = 0
        if d >= lead and <Py_ssize_t>own[d - lead] != 1:
            operand.steps[d] = strides[d - lead] * 8
    return True


cdef bint _convert(Expr e, object number, Py_ssize_t ndim, Operand* operand) except -1:
    """Fill an operand with a Python number in the dtype of a node; return False for others."""
    cdef Py_ssize_t d
    if e.spec.dtype.name is FLOAT64:
        if type(number) is int:
            if not -_EXACT <= number <= _EXACT:
                return False
        elif type(number) is not float:
            return False
        operand.number.real = number
    else:
        if type(number) is not int or not -(1 << 62) <= number <= 1 << 62:
            return False
        operand.number.whole = number
    operand.at = <char*>&operand.number
    for d in range(ndim):
        operand.steps[d] = 0
    return True


# --- loops ----------------------------------------------------------------------------------------


cdef bint _run(int op, bint real, Py_ssize_t* shape, Py_ssize_t ndim, char* a, Py_ssize_t* a_steps, char* b, Py_ssize_t* b_steps, Number** end) noexcept:
    """Append the results to `end` in C order, and move it; return False at a NaN."""
    cdef Py_ssize_t i, n = shape[0] if ndim > 0 else 1, a_step = a_steps[0] if ndim > 0 else 0, b_step = b_steps[0] if ndim > 0 else 0
    cdef Number* out = end[0]
    cdef double x
    cdef bint has_nan = False
    if ndim > 1:
        for i in range(n):
            if not _run(op, real, shape + 1, ndim - 1, a + i * a_step, a_steps + 1, b + i * b_step, b_steps + 1, end):
                return False
        return True
    if not real:
        for i in range(n):
            out[i].whole = _whole(op, (<int64_t*>(a + i * a_step))[0], (<int64_t*>(b + i * b_step))[0])
    elif op == _ADD:
        for i in range(n):
            out[i].real = x = (<double*>(a + i * a_step))[0] + (<double*>(b + i * b_step))[0]
            has_nan |= x != x
    elif op == _SUBTRACT:
        for i in range(n):
            out[i].real = x = (<double*>(a + i * a_step))[0] - (<double*>(b + i * b_step))[0]
            has_nan |= x != x
    elif op == _MULTIPLY:
        for i in range(n):
            out[i].real = x = (<double*>(a + i * a_step))[0] * (<double*>(b + i * b_step))[0]
            has_nan |= x != x
    else:
        for i in range(n):
            out[i].real = x = (<double*>(a + i * a_step))[0] / (<double*>(b + i * b_step))[0]
            has_nan |= x != x
    end[0] = out + n
    return not has_nan


cdef inline int64_t _whole(int op, int64_t a, int64_t b) noexcept:
    """Return an op of two integers, which wraps."""
    if op == _ADD:
        return <int64_t>(<uint64_t>a + <uint64_t>b)
    if op == _SUBTRACT:
        return <int64_t>(<uint64_t>a - <uint64_t>b)
    return <int64_t>(<uint64_t>a * <uint64_t>b)


cdef void _run_comparison(int op, bint real, Py_ssize_t* shape, Py_ssize_t ndim, char* a, Py_ssize_t* a_steps, char* b, Py_ssize_t* b_steps, uint8_t** end) noexcept:
    """Append the results of a comparison to `end` in C order, and move it."""
    cdef Py_ssize_t i, n = shape[0] if ndim > 0 else 1, a_step = a_steps[0] if ndim > 0 else 0, b_step = b_steps[0] if ndim > 0 else 0
    cdef uint8_t* out = end[0]
    if ndim > 1:
        for i in range(n):
            _run_comparison(op, real, shape + 1, ndim - 1, a + i * a_step, a_steps + 1, b + i * b_step, b_steps + 1, end)
        return
    for i in range(n):
        if real:
            out[i] = _compared((<double*>(a + i * a_step))[0], (<double*>(b + i * b_step))[0], op)
        else:
            out[i] = _compared((<int64_t*>(a + i * a_step))[0], (<int64_t*>(b + i * b_step))[0], op)
    end[0] = out + n


ctypedef fused Compared:
    double
    int64_t


cdef inline bint _compared(Compared a, Compared b, int op) noexcept:
    """Return a comparison by its number in Python's C interface: Py_LT, ..."""
    if op == 0:
        return a < b
    if op == 1:
        return a <= b
    if op == 2:
        return a == b
    if op == 3:
        return a != b
    return a > b if op == 4 else a >= b


cdef void _store(Py_ssize_t* shape, Py_ssize_t ndim, char* to, Py_ssize_t* steps, Number** results) noexcept:
    """Store results in C order into memory with these steps."""
    cdef Py_ssize_t i, n = shape[0] if ndim > 0 else 1, step = steps[0] if ndim > 0 else 0
    if ndim > 1:
        for i in range(n):
            _store(shape + 1, ndim - 1, to + i * step, steps + 1, results)
        return
    for i in range(n):
        (<int64_t*>(to + i * step))[0] = results[0][i].whole
    results[0] += n
