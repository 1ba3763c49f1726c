# cython: boundscheck=False, wraparound=False, cdivision=True
"""Arithmetic of small arrays that the host computes at once: the compiled `host_arithmetic.py`.

The loops are C, so that the compiler makes one per layout of the operands.
"""

from libc.stdint cimport int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy

from dovetail.graph.expr cimport Expr, Spec, spec
from dovetail.tensor.c_fields cimport expr_of, is_strided, new_tensor
from dovetail.tensor.host cimport allocate_leaf, reachable_address
from dovetail.tensor.host_read cimport create_scalar
from dovetail.tensor.immediate cimport is_observed
from dovetail.tensor.slicing cimport spec_of_shape

from ..dtypes import bool_ as _bool_dtype
from ..dtypes import float64 as _float64_dtype
from ..dtypes import int64 as _int64_dtype

cdef extern from *:
    """
    #include <math.h>
    #include <stddef.h>
    #include <stdint.h>

    #if defined(__GNUC__) && !defined(__clang__)
    #define DOVETAIL_LOOPS __attribute__((optimize("O3")))
    #else
    #define DOVETAIL_LOOPS
    #endif

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

    /* One loop per layout: neighbours, or one number on either side, or other steps. */
    #define DOVETAIL_EACH(T, R, RESULT)                                               \\
        if (a_step == sizeof(T) && b_step == sizeof(T)) {                             \\
            for (i = 0; i < n; i++) {                                                 \\
                T x = ((T *)a)[i], y = ((T *)b)[i]; (void)y; ((R *)out)[i] = RESULT; } \\
        } else if (a_step == sizeof(T) && b_step == 0) {                              \\
            T y = *(T *)b; (void)y;                                                   \\
            for (i = 0; i < n; i++) { T x = ((T *)a)[i]; ((R *)out)[i] = RESULT; }    \\
        } else if (a_step == 0 && b_step == sizeof(T)) {                              \\
            T x = *(T *)a;                                                            \\
            for (i = 0; i < n; i++) { T y = ((T *)b)[i]; (void)y; ((R *)out)[i] = RESULT; } \\
        } else {                                                                      \\
            for (i = 0; i < n; i++) {                                                 \\
                T x = *(T *)(a + i * a_step), y = *(T *)(b + i * b_step); (void)y;    \\
                ((R *)out)[i] = RESULT; }                                             \\
        }                                                                             \\
        break;

    static int64_t dovetail_floor_divide(int64_t x, int64_t y) {
        if (y == 0 || y == -1)
            return y == 0 ? 0 : (int64_t)(0 - (uint64_t)x);
        int64_t q = x / y;
        return q - (x - q * y != 0 && (x ^ y) < 0);
    }
    static int64_t dovetail_remainder(int64_t x, int64_t y) {
        if (y == 0 || y == -1)
            return 0;
        int64_t r = x % y;
        return r != 0 && (r ^ y) < 0 ? r + y : r;
    }

    #define DOVETAIL_ROW char *a, Py_ssize_t a_step, char *b, Py_ssize_t b_step, \\
                         Py_ssize_t n, char *out
    DOVETAIL_LOOPS static int dovetail_real_row(int op, DOVETAIL_ROW) { /* 0 if one is NaN */
        Py_ssize_t i;
        int is_nan = 0;
        switch (op) {
        case 0: DOVETAIL_EACH(double, double, x + y)
        case 1: DOVETAIL_EACH(double, double, x - y)
        case 2: DOVETAIL_EACH(double, double, x * y)
        case 3: DOVETAIL_EACH(double, double, x / y)
        case 6: DOVETAIL_EACH(double, double, x < y || y != y ? y : x)
        case 7: DOVETAIL_EACH(double, double, y < x || y != y ? y : x)
        default: return 0;
        }
        for (i = 0; i < n; i++)
            is_nan |= ((double *)out)[i] != ((double *)out)[i];
        return !is_nan;
    }
    DOVETAIL_LOOPS static int dovetail_whole_row(int op, DOVETAIL_ROW) { /* integers wrap */
        Py_ssize_t i;
        switch (op) {
        case 0: DOVETAIL_EACH(uint64_t, uint64_t, x + y)
        case 1: DOVETAIL_EACH(uint64_t, uint64_t, x - y)
        case 2: DOVETAIL_EACH(uint64_t, uint64_t, x * y)
        case 4: DOVETAIL_EACH(int64_t, int64_t, dovetail_floor_divide(x, y))
        case 5: DOVETAIL_EACH(int64_t, int64_t, dovetail_remainder(x, y))
        case 6: DOVETAIL_EACH(int64_t, int64_t, x < y ? y : x)
        case 7: DOVETAIL_EACH(int64_t, int64_t, y < x ? y : x)
        case 8: DOVETAIL_EACH(uint64_t, uint64_t, x & y)
        case 9: DOVETAIL_EACH(uint64_t, uint64_t, x | y)
        case 10: DOVETAIL_EACH(uint64_t, uint64_t, x ^ y)
        default: return 0;
        }
        return 1;
    }
    DOVETAIL_LOOPS static int dovetail_truth_row(int op, DOVETAIL_ROW) {
        Py_ssize_t i;
        switch (op) {
        case 8: DOVETAIL_EACH(uint8_t, uint8_t, x & y)
        case 9: DOVETAIL_EACH(uint8_t, uint8_t, x | y)
        case 10: DOVETAIL_EACH(uint8_t, uint8_t, x ^ y)
        default: return 0;
        }
        return 1;
    }
    #define DOVETAIL_COMPARE(NAME, T)                                                 \\
        DOVETAIL_LOOPS static int NAME(int op, DOVETAIL_ROW) { /* by Py_LT, ... */    \\
            Py_ssize_t i;                                                             \\
            switch (op) {                                                             \\
            case 0: DOVETAIL_EACH(T, uint8_t, x < y)                                  \\
            case 1: DOVETAIL_EACH(T, uint8_t, x <= y)                                 \\
            case 2: DOVETAIL_EACH(T, uint8_t, x == y)                                 \\
            case 3: DOVETAIL_EACH(T, uint8_t, x != y)                                 \\
            case 4: DOVETAIL_EACH(T, uint8_t, x > y)                                  \\
            default: DOVETAIL_EACH(T, uint8_t, x >= y)                                \\
            }                                                                         \\
            return 1;                                                                 \\
        }
    DOVETAIL_COMPARE(dovetail_compare_reals, double)
    DOVETAIL_COMPARE(dovetail_compare_wholes, int64_t)
    DOVETAIL_COMPARE(dovetail_compare_truths, uint8_t)

    /* Functions of one operand; `b` is not read. */
    DOVETAIL_LOOPS static int dovetail_real_unary(int op, DOVETAIL_ROW) { /* 0 if one is NaN */
        Py_ssize_t i;
        int is_nan = 0;
        switch (op) {
        case 0: DOVETAIL_EACH(double, double, -x)
        case 1: DOVETAIL_EACH(double, double, fabs(x))
        case 2: DOVETAIL_EACH(double, double, sqrt(x))
        case 3: DOVETAIL_EACH(double, double, x * x)
        case 4: DOVETAIL_EACH(double, double, floor(x))
        case 5: DOVETAIL_EACH(double, double, ceil(x))
        case 6: DOVETAIL_EACH(double, double, rint(x))
        case 7: DOVETAIL_EACH(double, double, trunc(x))
        default: return 0;
        }
        for (i = 0; i < n; i++)
            is_nan |= ((double *)out)[i] != ((double *)out)[i];
        return !is_nan;
    }
    DOVETAIL_LOOPS static int dovetail_whole_unary(int op, DOVETAIL_ROW) {
        Py_ssize_t i;
        switch (op) {
        case 0: DOVETAIL_EACH(uint64_t, uint64_t, 0 - x)
        case 1: DOVETAIL_EACH(int64_t, uint64_t, x < 0 ? 0 - (uint64_t)x : (uint64_t)x)
        case 3: DOVETAIL_EACH(uint64_t, uint64_t, x * x)
        case 8: DOVETAIL_EACH(uint64_t, uint64_t, ~x)
        default: return 0;
        }
        return 1;
    }
    DOVETAIL_LOOPS static int dovetail_truth_unary(int op, DOVETAIL_ROW) {
        Py_ssize_t i;
        switch (op) {
        case 8: DOVETAIL_EACH(uint8_t, uint8_t, !x)
        default: return 0;
        }
        return 1;
    }
    """
    double _dot "dovetail_dot"(char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n) noexcept
    int _real_row "dovetail_real_row"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _whole_row "dovetail_whole_row"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _truth_row "dovetail_truth_row"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _compare_reals "dovetail_compare_reals"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _compare_wholes "dovetail_compare_wholes"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _compare_truths "dovetail_compare_truths"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _real_unary "dovetail_real_unary"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _whole_unary "dovetail_whole_unary"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept
    int _truth_unary "dovetail_truth_unary"(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept

cdef enum:
    _NDIM = 4
    _ELEMENTS = 1024  # of 8 bytes
    _ALWAYS = 256  # elements that take less time than a kernel of a cached plan
    _SIZES = 256
    _FREQUENT = 200
    _MULTIPLIES = 512
    _BLOCK = 256  # products that are summed in one chain
    _DIVIDE = 3
    _REAL = 0  # kinds of operands: float64, int64, bool, others
    _WHOLE = 1
    _TRUTH = 2
    _OTHER = 3

cdef long long _EXACT = 1 << 53  # ints up to here are float64 exactly

cdef union Number:
    double real
    int64_t whole
    uint8_t truth

cdef struct Operand:
    char* at
    Py_ssize_t steps[_NDIM]  # in bytes
    Number number

ctypedef int (*Row)(int op, char* a, Py_ssize_t a_step, char* b, Py_ssize_t b_step, Py_ssize_t n, char* out) noexcept

cdef struct Frequency:
    Py_ssize_t size
    Py_ssize_t count

cdef Frequency _frequencies[_SIZES]

cdef struct Work:
    int op
    Row row
    Py_ssize_t ndim
    Py_ssize_t shape[_NDIM]
    Py_ssize_t size
    Operand operands[2]
    double reals[2][_ELEMENTS]  # integers as float64, by operand

cdef str FLOAT64 = "float64", INT64 = "int64", BOOL = "bool"
cdef Row _rows[3]
cdef Row _comparisons[3]
cdef Row _unary_rows[3]
_rows[_REAL], _rows[_WHOLE], _rows[_TRUTH] = _real_row, _whole_row, _truth_row
_comparisons[_REAL], _comparisons[_WHOLE], _comparisons[_TRUTH] = _compare_reals, _compare_wholes, _compare_truths
_unary_rows[_REAL], _unary_rows[_WHOLE], _unary_rows[_TRUTH] = _real_unary, _whole_unary, _truth_unary


cpdef object compute(int op, object x, object y):
    """Return an op of two operands, or None for the general path."""
    cdef Work work
    cdef int kind = _common_kind(x, y)
    if op == _DIVIDE and kind == _WHOLE:
        kind = _REAL
    if kind == _OTHER or not _prepare(&work, x, y, kind):
        return None
    work.op, work.row = op, _rows[kind]
    return _result(&work, x if is_strided(x) else y, kind)


cpdef object compare(int op, object x, object y):
    """Return a comparison of two operands, or None for the general path."""
    cdef Work work
    cdef int kind = _common_kind(x, y)
    if kind == _OTHER or not _prepare(&work, x, y, kind):
        return None
    work.op, work.row = op, _comparisons[kind]
    return _result(&work, x if is_strided(x) else y, _TRUTH)


cpdef object compute_unary(int op, object x):
    """Return a function of the elements of an array, or None for the general path."""
    cdef Work work
    cdef int kind = _kind_of(x)
    if kind == _OTHER or not is_strided(x) or not _prepare(&work, x, x, kind):
        return None
    work.op, work.row = op, _unary_rows[kind]
    return _result(&work, x, kind)


cpdef object select(object condition, object x, object y):
    """Return the elements of `x` where a condition is True, else those of `y`; None for the general path."""
    cdef Work work, test
    cdef int kind = _common_kind(x, y)
    cdef Expr c = expr_of(condition), result
    cdef Py_ssize_t d
    cdef char* end
    if kind == _OTHER or (is_strided(x) and _kind_of(x) != kind) or (is_strided(y) and _kind_of(y) != kind):
        return None
    if c.spec.dtype.name is not BOOL or not _prepare(&test, condition, True, _TRUTH):
        return None
    if is_strided(x) or is_strided(y):
        if not _prepare(&work, x, y, kind) or work.ndim != test.ndim:
            return None
        for d in range(work.ndim):
            if work.shape[d] != test.shape[d]:
                return None
    elif not _convert(&work.operands[0], x, kind, test.ndim) or not _convert(&work.operands[1], y, kind, test.ndim):
        return None
    dtype = _float64_dtype if kind == _REAL else _bool_dtype if kind == _TRUTH else _int64_dtype
    result = allocate_leaf(spec(c.spec.shape, dtype, c.spec.device))
    end = <char*><uintptr_t>reachable_address(result)
    if end == NULL:
        return None
    _choose(&test, &work, 0, test.operands[0].at, work.operands[0].at, work.operands[1].at, &end, 1 if kind == _TRUTH else 8)
    return new_tensor(type(condition), result)


cdef void _choose(Work* test, Work* work, Py_ssize_t axis, char* c, char* a, char* b, char** end, Py_ssize_t itemsize) noexcept:
    """Append the chosen elements in C order."""
    cdef Py_ssize_t i, n = 1, step = 0, a_step = 0, b_step = 0
    if axis < test.ndim:
        n, step, a_step, b_step = test.shape[axis], test.operands[0].steps[axis], work.operands[0].steps[axis], work.operands[1].steps[axis]
    if axis + 1 < test.ndim:
        for i in range(n):
            _choose(test, work, axis + 1, c + i * step, a + i * a_step, b + i * b_step, end, itemsize)
        return
    if itemsize == 8:
        for i in range(n):
            (<int64_t*>end[0])[i] = (<int64_t*>(a + i * a_step))[0] if c[i * step] else (<int64_t*>(b + i * b_step))[0]
    else:
        for i in range(n):
            end[0][i] = a[i * a_step] if c[i * step] else b[i * b_step]
    end[0] += n * itemsize


cpdef bint update(int op, object x, object y, Py_ssize_t address) except -1:
    """Write an op of two operands into the first; return False with nothing done."""
    cdef Work work
    cdef Number results[_ELEMENTS]  # the operands may share memory with the target
    cdef Expr e = expr_of(x)
    cdef int kind = _common_kind(x, y)
    cdef Py_ssize_t d
    cdef char* end = <char*>results
    if kind == _OTHER or kind != _kind_of(x) or (op == _DIVIDE and kind != _REAL) or not _prepare(&work, x, y, kind):
        return False
    if work.ndim != len(e.spec.shape):
        return False
    for d in range(work.ndim):
        if work.shape[d] != <Py_ssize_t>e.spec.shape[d]:
            return False
    work.op, work.row = op, _rows[kind]
    if not _run(&work, 0, work.operands[0].at, work.operands[1].at, &end, e.spec.itemsize):
        return False
    end = <char*>results
    _store(&work, 0, <char*><uintptr_t>address, &end, e.spec.itemsize)
    return True


cpdef object multiply_matrices(object x, object y):
    """Return the product of float64 vectors or matrices in memory; None for the general path.

    That of two vectors is NumPy's scalar.
    """
    cdef Expr a = expr_of(x), b = expr_of(y), result
    cdef Py_ssize_t rows = 1, columns = 1, k, i, j, row_step = 0, column_step = 0, a_step, b_step, ndim = 0, address
    cdef Py_ssize_t first = len(a.spec.shape), second = len(b.spec.shape)
    cdef Py_ssize_t shape[2]
    cdef double results[_MULTIPLIES]
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
    if rows * columns * k > _MULTIPLIES or rows * columns == 0 or is_observed():
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
    if ndim == 0:
        return create_scalar(FLOAT64, 8, <Py_ssize_t>results)
    result = allocate_leaf(spec_of_shape(a.spec, shape, ndim))
    address = reachable_address(result)
    if address == 0:
        return None
    memcpy(<void*><uintptr_t>address, results, rows * columns * sizeof(double))
    return new_tensor(type(x), result)


# --- operands -------------------------------------------------------------------------------------


cdef int _kind_of(object x) except -1:
    """Return the kind of a tensor of these dtypes, or of a Python number; _OTHER for others."""
    if is_strided(x):
        name = expr_of(x).spec.dtype.name
        return _REAL if name is FLOAT64 else _WHOLE if name is INT64 else _TRUTH if name is BOOL else _OTHER
    if isinstance(x, float):  # NumPy's float64, too
        return _REAL
    return _WHOLE if type(x) is int else _TRUTH if type(x) is bool else _OTHER


cdef int _common_kind(object x, object y) except -1:
    """Return the kind to which two operands promote; _OTHER for the general path."""
    cdef int a = _kind_of(x), b = _kind_of(y)
    if a == b:
        return a
    return _REAL if a + b == _REAL + _WHOLE else _OTHER


cdef bint _prepare(Work* work, object x, object y, int kind) except -1:
    """Fill the shape and the operands of a kind; return False for the general path."""
    cdef Expr a = expr_of(x) if is_strided(x) else None, b = expr_of(y) if is_strided(y) else None
    cdef Py_ssize_t d
    if a is not None and b is not None and (a.spec.device is not b.spec.device or type(x) is not type(y)):
        return False
    work.ndim = max(len(a.spec.shape) if a is not None else 0, len(b.spec.shape) if b is not None else 0)
    if work.ndim > _NDIM:
        return False
    for d in range(work.ndim):
        work.shape[d] = 1
    if (a is not None and not _broadcast(a, work)) or (b is not None and not _broadcast(b, work)):
        return False
    work.size = 1
    for d in range(work.ndim):
        work.size *= work.shape[d]
    if not 0 < work.size <= (8 * _ELEMENTS if kind == _TRUTH else _ELEMENTS) or is_observed():
        return False
    if kind != _TRUTH and work.size > _ALWAYS and _is_frequent(work.size):
        return False
    if not (_locate(work, 0, a, kind) if a is not None else _convert(&work.operands[0], x, kind, work.ndim)):
        return False
    return _locate(work, 1, b, kind) if b is not None else _convert(&work.operands[1], y, kind, work.ndim)


cdef bint _is_frequent(Py_ssize_t size) noexcept:
    """Count an op of so many elements; return True if there were many, whose plans are cached.

    Kernels then fuse several of them in the time of two by the host.
    """
    cdef Frequency* frequency = &_frequencies[size % _SIZES]
    if frequency.size != size:
        frequency.size, frequency.count = size, 0
    frequency.count += 1
    return frequency.count > _FREQUENT


cdef bint _broadcast(Expr e, Work* work) except -1:
    """Widen the shape by that of a node; return False if they do not broadcast, or it is pending."""
    cdef tuple own = e.spec.shape
    cdef Py_ssize_t d, n, lead = work.ndim - len(own)
    if e.op is not None or e.tape is not None:
        return False
    for d in range(len(own)):
        n = own[d]
        if work.shape[lead + d] == 1:
            work.shape[lead + d] = n
        elif n != 1 and n != work.shape[lead + d]:
            return False
    return True


cdef bint _locate(Work* work, int k, Expr e, int kind) except -1:
    """Fill operand `k` with the address of a leaf and its steps, 0 along axes of size 1.

    Integers among reals are converted first.
    """
    cdef tuple own = e.spec.shape, strides = e.strides
    cdef Operand* operand = &work.operands[k]
    cdef Py_ssize_t d, lead = work.ndim - len(own), itemsize = e.spec.itemsize
    cdef double* end = work.reals[k]
    operand.at = <char*><uintptr_t>reachable_address(e)
    if operand.at == NULL:
        return False
    if kind == _REAL and e.spec.dtype.name is INT64:
        _convert_elements(own, strides, 0, operand.at, &end)
        operand.at, strides = <char*>work.reals[k], e.spec.strides
    for d in range(work.ndim):
        operand.steps[d] = 0
        if d >= lead and <Py_ssize_t>own[d - lead] != 1:
            operand.steps[d] = strides[d - lead] * itemsize
    return True


cdef void _convert_elements(tuple shape, tuple strides, Py_ssize_t axis, char* source, double** end):
    """Append integers in C order as float64."""
    cdef Py_ssize_t i, n = 1, step = 0
    if axis < len(shape):
        n, step = shape[axis], strides[axis] * 8
    if axis + 1 < len(shape):
        for i in range(n):
            _convert_elements(shape, strides, axis + 1, source + i * step, end)
        return
    for i in range(n):
        end[0][i] = <double>(<int64_t*>(source + i * step))[0]
    end[0] += n


cdef bint _convert(Operand* operand, object number, int kind, Py_ssize_t ndim) except -1:
    """Fill an operand with a Python number of a kind; return False for ints that it lacks."""
    cdef Py_ssize_t d
    if kind == _REAL:
        if type(number) is int and not -_EXACT <= number <= _EXACT:
            return False
        operand.number.real = number
    elif kind == _TRUTH:
        operand.number.truth = number
    else:
        if not -(1 << 62) <= number <= 1 << 62:
            return False
        operand.number.whole = number
    operand.at = <char*>&operand.number
    for d in range(ndim):
        operand.steps[d] = 0
    return True


# --- loops ----------------------------------------------------------------------------------------


cdef object _result(Work* work, object x, int kind):
    """Return the results in new memory, as an array of the class of `x`; None if one is NaN.

    A result without dimensions is NumPy's scalar.
    """
    cdef Spec s = expr_of(x).spec
    cdef Expr result
    cdef Py_ssize_t d
    cdef Number number
    cdef char* end = <char*>&number
    dtype = _float64_dtype if kind == _REAL else _bool_dtype if kind == _TRUTH else s.dtype
    if work.ndim == 0:
        if not _run(work, 0, work.operands[0].at, work.operands[1].at, &end, 1 if kind == _TRUTH else 8):
            return None
        return create_scalar(dtype.name, 1 if kind == _TRUTH else 8, <Py_ssize_t>&number)
    if dtype is s.dtype:
        s = spec_of_shape(s, work.shape, work.ndim)
    else:
        s = spec(tuple([work.shape[d] for d in range(work.ndim)]), dtype, s.device)
    result = allocate_leaf(s)
    end = <char*><uintptr_t>reachable_address(result)
    if end == NULL or not _run(work, 0, work.operands[0].at, work.operands[1].at, &end, s.itemsize):
        return None
    return new_tensor(type(x), result)


cdef bint _run(Work* work, Py_ssize_t axis, char* a, char* b, char** end, Py_ssize_t itemsize) noexcept:
    """Append the results to `end` in C order, and move it; return False at a NaN."""
    cdef Py_ssize_t i, n = 1, a_step = 0, b_step = 0
    if axis < work.ndim:
        n, a_step, b_step = work.shape[axis], work.operands[0].steps[axis], work.operands[1].steps[axis]
    if axis + 1 < work.ndim:
        for i in range(n):
            if not _run(work, axis + 1, a + i * a_step, b + i * b_step, end, itemsize):
                return False
        return True
    if not work.row(work.op, a, a_step, b, b_step, n, end[0]):
        return False
    end[0] += n * itemsize
    return True


cdef void _store(Work* work, Py_ssize_t axis, char* to, char** results, Py_ssize_t itemsize) noexcept:
    """Store results in C order into the memory of the first operand."""
    cdef Py_ssize_t i, n = 1, step = 0
    if axis < work.ndim:
        n, step = work.shape[axis], work.operands[0].steps[axis]
    if axis + 1 < work.ndim:
        for i in range(n):
            _store(work, axis + 1, to + i * step, results, itemsize)
        return
    if step == itemsize or n == 1:
        memcpy(to, results[0], n * itemsize)
    elif itemsize == 8:
        for i in range(n):
            memcpy(to + i * step, results[0] + i * 8, 8)
    else:
        for i in range(n):
            memcpy(to + i * step, results[0] + i * itemsize, itemsize)
    results[0] += n * itemsize
