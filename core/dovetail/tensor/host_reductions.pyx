# cython: boundscheck=False, wraparound=False, cdivision=True
"""Reductions of small arrays that the host computes at once: the compiled `host_reductions.py`."""

from libc.stdint cimport int64_t, uint8_t, uintptr_t

from dovetail.graph.expr cimport Expr, Spec, spec
from dovetail.tensor.c_fields cimport expr_of, is_strided, new_tensor
from dovetail.tensor.host cimport allocate_leaf, reachable_address
from dovetail.tensor.host_read cimport create_scalar
from dovetail.tensor.immediate cimport is_observed

from ..dtypes import bool_ as _bool_dtype
from ..dtypes import int64 as _int64_dtype

cdef extern from *:
    """
    #include <math.h>
    #include <stdint.h>

    #if defined(__GNUC__) && !defined(__clang__)
    #define DOVETAIL_LOOPS __attribute__((optimize("O3")))
    #else
    #define DOVETAIL_LOOPS
    #endif

    /* The canonical order: element k is combined with lane k mod 32, then the lanes in halves.
       Lanes without elements would not change the others. */
    #define DOVETAIL_FOLD(NAME, T, L, FIRST, COMBINED)                                \\
        DOVETAIL_LOOPS static L NAME(const T *v, Py_ssize_t n) {                      \\
            L lanes[32];                                                              \\
            Py_ssize_t j, k, width = 1;                                               \\
            while (width < n && width < 32)                                           \\
                width *= 2;                                                           \\
            for (j = 0; j < width; j++)                                               \\
                lanes[j] = FIRST;                                                     \\
            for (k = 0; k + 32 <= n; k += 32)                                         \\
                for (j = 0; j < 32; j++) {                                            \\
                    L x = lanes[j], y = v[k + j]; lanes[j] = COMBINED; }              \\
            for (j = 0; j < n - k; j++) {                                             \\
                L x = lanes[j], y = v[k + j]; lanes[j] = COMBINED; }                  \\
            for (k = width / 2; k > 0; k /= 2)                                        \\
                for (j = 0; j < k; j++) {                                             \\
                    L x = lanes[j], y = lanes[j + k]; lanes[j] = COMBINED; }          \\
            return lanes[0];                                                          \\
        }
    DOVETAIL_FOLD(dovetail_sum_reals, double, double, 0.0, x + y)
    DOVETAIL_FOLD(dovetail_multiply_reals, double, double, 1.0, x * y)
    DOVETAIL_FOLD(dovetail_max_reals, double, double, -INFINITY, x < y || y != y ? y : x)
    DOVETAIL_FOLD(dovetail_min_reals, double, double, INFINITY, y < x || y != y ? y : x)
    DOVETAIL_FOLD(dovetail_sum_wholes, int64_t, uint64_t, 0, x + y)
    DOVETAIL_FOLD(dovetail_multiply_wholes, int64_t, uint64_t, 1, x * y)
    DOVETAIL_FOLD(dovetail_max_wholes, int64_t, int64_t, INT64_MIN, x < y ? y : x)
    DOVETAIL_FOLD(dovetail_min_wholes, int64_t, int64_t, INT64_MAX, y < x ? y : x)
    DOVETAIL_FOLD(dovetail_sum_truths, uint8_t, int64_t, 0, x + y)

    /* The same for each column of a matrix; `lanes` has 32 rows, or a power of two from n on. */
    #define DOVETAIL_COLUMNS(NAME, FIRST, COMBINED)                                   \\
        DOVETAIL_LOOPS static void NAME(const char *at, Py_ssize_t n, Py_ssize_t step, \\
                                        Py_ssize_t columns, double *lanes) {          \\
            Py_ssize_t c, j, k, width = 1;                                            \\
            while (width < n && width < 32)                                           \\
                width *= 2;                                                           \\
            for (j = 0; j < width * columns; j++)                                     \\
                lanes[j] = FIRST;                                                     \\
            for (k = 0; k < n; k++) {                                                 \\
                const double *row = (const double *)(at + k * step);                  \\
                double *lane = lanes + (k & 31) * columns;                            \\
                for (c = 0; c < columns; c++) {                                       \\
                    double x = lane[c], y = row[c]; lane[c] = COMBINED; }             \\
            }                                                                         \\
            for (k = width / 2 * columns; k >= columns; k = k / columns / 2 * columns) \\
                for (j = 0; j < k; j++) {                                             \\
                    double x = lanes[j], y = lanes[j + k]; lanes[j] = COMBINED; }     \\
        }
    DOVETAIL_COLUMNS(dovetail_sum_columns, 0.0, x + y)
    DOVETAIL_COLUMNS(dovetail_multiply_columns, 1.0, x * y)
    DOVETAIL_COLUMNS(dovetail_max_columns, -INFINITY, x < y || y != y ? y : x)
    DOVETAIL_COLUMNS(dovetail_min_columns, INFINITY, y < x || y != y ? y : x)

    #define DOVETAIL_SEARCH(NAME, T, BETTER)                                          \\
        static Py_ssize_t NAME(const T *v, Py_ssize_t n) {                            \\
            Py_ssize_t k, best = 0;                                                   \\
            for (k = 1; k < n; k++)                                                   \\
                if (v[k] BETTER v[best])                                              \\
                    best = k;                                                         \\
            return best;                                                              \\
        }
    DOVETAIL_SEARCH(dovetail_argmax_reals, double, >)
    DOVETAIL_SEARCH(dovetail_argmin_reals, double, <)
    DOVETAIL_SEARCH(dovetail_argmax_wholes, int64_t, >)
    DOVETAIL_SEARCH(dovetail_argmin_wholes, int64_t, <)
    DOVETAIL_SEARCH(dovetail_argmax_truths, uint8_t, >)
    DOVETAIL_SEARCH(dovetail_argmin_truths, uint8_t, <)

    #define DOVETAIL_COUNT(NAME, T)                                                   \\
        DOVETAIL_LOOPS static Py_ssize_t NAME(const T *v, Py_ssize_t n) {             \\
            Py_ssize_t k, count = 0;                                                  \\
            for (k = 0; k < n; k++)                                                   \\
                count += v[k] != 0;                                                   \\
            return count;                                                             \\
        }
    DOVETAIL_COUNT(dovetail_count_reals, double)
    DOVETAIL_COUNT(dovetail_count_wholes, int64_t)
    DOVETAIL_COUNT(dovetail_count_truths, uint8_t)

    DOVETAIL_LOOPS static int dovetail_has_nan(const double *v, Py_ssize_t n) {
        Py_ssize_t k;
        int found = 0;
        for (k = 0; k < n; k++)
            found |= v[k] != v[k];
        return found;
    }
    """
    double _sum_reals "dovetail_sum_reals"(double*, Py_ssize_t) noexcept
    double _multiply_reals "dovetail_multiply_reals"(double*, Py_ssize_t) noexcept
    double _max_reals "dovetail_max_reals"(double*, Py_ssize_t) noexcept
    double _min_reals "dovetail_min_reals"(double*, Py_ssize_t) noexcept
    void _sum_columns "dovetail_sum_columns"(char*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*) noexcept
    void _multiply_columns "dovetail_multiply_columns"(char*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*) noexcept
    void _max_columns "dovetail_max_columns"(char*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*) noexcept
    void _min_columns "dovetail_min_columns"(char*, Py_ssize_t, Py_ssize_t, Py_ssize_t, double*) noexcept
    int64_t _sum_wholes "dovetail_sum_wholes"(int64_t*, Py_ssize_t) noexcept
    int64_t _multiply_wholes "dovetail_multiply_wholes"(int64_t*, Py_ssize_t) noexcept
    int64_t _max_wholes "dovetail_max_wholes"(int64_t*, Py_ssize_t) noexcept
    int64_t _min_wholes "dovetail_min_wholes"(int64_t*, Py_ssize_t) noexcept
    int64_t _sum_truths "dovetail_sum_truths"(uint8_t*, Py_ssize_t) noexcept
    Py_ssize_t _argmax_reals "dovetail_argmax_reals"(double*, Py_ssize_t) noexcept
    Py_ssize_t _argmin_reals "dovetail_argmin_reals"(double*, Py_ssize_t) noexcept
    Py_ssize_t _argmax_wholes "dovetail_argmax_wholes"(int64_t*, Py_ssize_t) noexcept
    Py_ssize_t _argmin_wholes "dovetail_argmin_wholes"(int64_t*, Py_ssize_t) noexcept
    Py_ssize_t _argmax_truths "dovetail_argmax_truths"(uint8_t*, Py_ssize_t) noexcept
    Py_ssize_t _argmin_truths "dovetail_argmin_truths"(uint8_t*, Py_ssize_t) noexcept
    Py_ssize_t _count_reals "dovetail_count_reals"(double*, Py_ssize_t) noexcept
    Py_ssize_t _count_wholes "dovetail_count_wholes"(int64_t*, Py_ssize_t) noexcept
    Py_ssize_t _count_truths "dovetail_count_truths"(uint8_t*, Py_ssize_t) noexcept
    bint _has_nan "dovetail_has_nan"(double*, Py_ssize_t) noexcept

cdef enum:
    _NDIM = 8
    _ELEMENTS = 2048  # of 8 bytes
    _SUM = 0
    _PROD = 1
    _MAX = 2
    _MIN = 3
    _ARGMAX = 4
    _ARGMIN = 5
    _ANY = 6
    _ALL = 7
    _MEAN = 8
    _COUNT = 9

cdef union Number:
    double real
    int64_t whole
    uint8_t truth

cdef struct Fold:
    int op
    bint real  # the elements are float64
    Py_ssize_t itemsize
    Py_ssize_t ndim
    Py_ssize_t shape[_NDIM]
    Py_ssize_t steps[_NDIM]  # in bytes
    Py_ssize_t axis  # -1 for all
    Py_ssize_t out_itemsize
    char* out
    double row[_ELEMENTS]

OPS = {
    name: op
    for op, name in enumerate(
        ["sum", "prod", "max", "min", "argmax", "argmin", "any", "all", "mean", "count_nonzero"]
    )
}
cdef str FLOAT64 = "float64", INT64 = "int64", BOOL = "bool"
cdef object AXIS = "axis", KEEPDIMS = "keepdims"


cpdef object reduce(int op, tuple args, dict options):
    """Return a reduction `f(x, axis, keepdims=...)` of a small array, or None for the general path."""
    cdef Fold fold
    cdef Expr e, result
    cdef Py_ssize_t d, outputs = 1, ndim, count = len(args)
    cdef bint keeps = False
    cdef Number number
    cdef object axis = None
    if not 1 <= count <= 2 or not is_strided(args[0]):
        return None
    if count == 2:
        axis = args[1]
    for name in options:
        if name == AXIS and count == 1:
            axis = options[name]
        elif name == KEEPDIMS and type(options[name]) is bool:
            keeps = options[name]
        else:
            return None
    e = expr_of(args[0])
    ndim = len(e.spec.shape)
    if e.op is not None or e.tape is not None or not 0 < e.spec.size * e.spec.itemsize <= 8 * _ELEMENTS or ndim > _NDIM or is_observed():
        return None
    fold.op, fold.real, fold.itemsize, fold.ndim, fold.axis = op, e.spec.dtype.name is FLOAT64, e.spec.itemsize, ndim, -1
    if not fold.real and e.spec.dtype.name is not INT64 and e.spec.dtype.name is not BOOL:
        return None
    if op == _MEAN and not fold.real:
        return None
    if type(axis) is int:
        fold.axis = axis + ndim if axis < 0 else axis
        if not 0 <= fold.axis < ndim:
            return None
    elif axis is not None:
        return None
    cdef Py_ssize_t address = reachable_address(e)
    if address == 0:
        return None
    for d in range(ndim):
        fold.shape[d], fold.steps[d] = e.spec.shape[d], e.strides[d] * fold.itemsize
        if d != fold.axis and fold.axis >= 0:
            outputs *= fold.shape[d]
    dtype = _dtype_of(op, e.spec)
    fold.out_itemsize = dtype.itemsize
    if ndim == 0 or ((fold.axis < 0 or ndim == 1) and not keeps):
        fold.out = <char*>&number
        if not _fold(&fold, e, <char*><uintptr_t>address):
            return None
        return create_scalar(dtype.name, fold.out_itemsize, <Py_ssize_t>&number)
    shape = []
    for d in range(ndim):
        if fold.axis >= 0 and d != fold.axis:
            shape.append(fold.shape[d])
        elif keeps:
            shape.append(1)
    result = allocate_leaf(spec(tuple(shape), dtype, e.spec.device))
    fold.out = <char*><uintptr_t>reachable_address(result)
    if fold.out == NULL or not _fold(&fold, e, <char*><uintptr_t>address):
        return None
    return new_tensor(type(args[0]), result)


cdef object _dtype_of(int op, Spec s):
    """Return the dtype of the result."""
    if op == _ARGMAX or op == _ARGMIN or op == _COUNT:
        return _int64_dtype
    if op == _ANY or op == _ALL:
        return _bool_dtype
    if op <= _PROD and s.dtype.name is BOOL:
        return _int64_dtype
    return s.dtype


cdef bint _fold(Fold* fold, Expr e, char* at) except -1:
    """Write the results; return False for the general path."""
    cdef char* end = <char*>fold.row
    if fold.axis == 0 and fold.ndim == 2 and fold.steps[1] == 8 and fold.real and (fold.op <= _MIN or fold.op == _MEAN):
        return _fold_columns(fold, at)
    if fold.axis >= 0:
        return _walk(fold, 0, at)
    if e.strides is e.spec.strides or e.strides == e.spec.strides:
        return _fold_row(fold, at, e.spec.size)
    _copy(fold, 0, at, &end)
    return _fold_row(fold, <char*>fold.row, e.spec.size)


cdef bint _fold_columns(Fold* fold, char* at) noexcept:
    """Write the results of the columns of a matrix of float64; return False where one is NaN."""
    cdef double lanes[2 * _ELEMENTS]
    cdef double* out = <double*>fold.out
    cdef Py_ssize_t n = fold.shape[0], columns = fold.shape[1], c
    if fold.op == _MAX:
        _max_columns(at, n, fold.steps[0], columns, lanes)
    elif fold.op == _MIN:
        _min_columns(at, n, fold.steps[0], columns, lanes)
    elif fold.op == _PROD:
        _multiply_columns(at, n, fold.steps[0], columns, lanes)
    else:
        _sum_columns(at, n, fold.steps[0], columns, lanes)
    for c in range(columns):
        out[c] = lanes[c] / n if fold.op == _MEAN else lanes[c]
    return not _has_nan(out, columns)


cdef void _copy(Fold* fold, Py_ssize_t d, char* at, char** end) noexcept:
    """Append the elements in C order."""
    cdef Py_ssize_t i
    if d == fold.ndim:
        if fold.itemsize == 8:
            (<int64_t*>end[0])[0] = (<int64_t*>at)[0]
        else:
            end[0][0] = at[0]
        end[0] += fold.itemsize
        return
    for i in range(fold.shape[d]):
        _copy(fold, d + 1, at + i * fold.steps[d], end)


cdef bint _walk(Fold* fold, Py_ssize_t d, char* at) noexcept:
    """Fold the rows along the axis, in C order of the others; return False for the general path."""
    cdef Py_ssize_t i, n = fold.shape[fold.axis], step = fold.steps[fold.axis]
    if d == fold.axis:
        return _walk(fold, d + 1, at)
    if d < fold.ndim:
        for i in range(fold.shape[d]):
            if not _walk(fold, d + 1, at + i * fold.steps[d]):
                return False
        return True
    if step == fold.itemsize:
        return _fold_row(fold, at, n)
    if fold.itemsize == 8:
        for i in range(n):
            (<int64_t*>fold.row)[i] = (<int64_t*>(at + i * step))[0]
    else:
        for i in range(n):
            (<char*>fold.row)[i] = at[i * step]
    return _fold_row(fold, <char*>fold.row, n)


cdef bint _fold_row(Fold* fold, char* row, Py_ssize_t n) noexcept:
    """Write the result of neighbours, and move `out`; return False where one is NaN."""
    cdef double* reals = <double*>row
    cdef int64_t* wholes = <int64_t*>row
    cdef uint8_t* truths = <uint8_t*>row
    cdef Number* out = <Number*>fold.out
    cdef int op = fold.op
    cdef Py_ssize_t n_true
    fold.out += fold.out_itemsize
    if op == _ANY or op == _ALL or op == _COUNT:
        n_true = _count_reals(reals, n) if fold.real else _count_wholes(wholes, n) if fold.itemsize == 8 else _count_truths(truths, n)
        if op == _COUNT:
            out.whole = n_true
        else:
            out.truth = n_true > 0 if op == _ANY else n_true == n
    elif fold.real:
        if op == _ARGMAX or op == _ARGMIN:
            if _has_nan(reals, n):
                return False
            out.whole = _argmax_reals(reals, n) if op == _ARGMAX else _argmin_reals(reals, n)
            return True
        if op == _MAX or op == _MIN:
            out.real = _max_reals(reals, n) if op == _MAX else _min_reals(reals, n)
        else:
            out.real = _multiply_reals(reals, n) if op == _PROD else _sum_reals(reals, n)
            if op == _MEAN:
                out.real /= n
        return out.real == out.real
    elif fold.itemsize == 8:
        if op == _SUM:
            out.whole = _sum_wholes(wholes, n)
        elif op == _PROD:
            out.whole = _multiply_wholes(wholes, n)
        elif op == _MAX:
            out.whole = _max_wholes(wholes, n)
        elif op == _MIN:
            out.whole = _min_wholes(wholes, n)
        else:
            out.whole = _argmax_wholes(wholes, n) if op == _ARGMAX else _argmin_wholes(wholes, n)
    elif op == _SUM:
        out.whole = _sum_truths(truths, n)
    elif op == _PROD:
        out.whole = _count_truths(truths, n) == n
    elif op == _MAX or op == _MIN:
        out.truth = _count_truths(truths, n) > 0 if op == _MAX else _count_truths(truths, n) == n
    else:
        out.whole = _argmax_truths(truths, n) if op == _ARGMAX else _argmin_truths(truths, n)
    return True
