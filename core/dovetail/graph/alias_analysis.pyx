"""The compiled form of `alias_analysis.py`, with the same names."""

from ..argument_checks import DIMENSIONS

cdef enum:
    _AXES_MAX = 64

assert DIMENSIONS <= _AXES_MAX


cdef struct Axis:
    Py_ssize_t stride
    Py_ssize_t last


cdef struct View:
    Py_ssize_t low, high
    bint dense
    int count
    Axis axes[_AXES_MAX]


cpdef bint are_disjoint(
    tuple shape, tuple strides, Py_ssize_t offset,
    tuple shape_b, tuple strides_b, Py_ssize_t offset_b,
) except -1:
    """Return True if the strides prove that two views share no element."""
    cdef View a, b
    _find_ends(&a, shape, strides, offset)
    _find_ends(&b, shape_b, strides_b, offset_b)
    if a.high < b.low or b.high < a.low or a.low > a.high or b.low > b.high:
        return True
    if a.dense and b.dense:
        return False
    _find_axes(&a, shape, strides)
    _find_axes(&b, shape_b, strides_b)
    return _are_axes_disjoint(a.axes, a.count, b.axes, b.count, b.low - a.low)


cdef int _find_ends(View* v, tuple shape, tuple strides, Py_ssize_t offset) except -1:
    """Set the lowest and highest offset, and `dense` if enough elements exist to fill them."""
    cdef Py_ssize_t n, s, count = 1
    v.low = v.high = offset
    for k in range(len(shape)):
        n, s = shape[k], strides[k]
        if n == 0:
            v.low, v.high = 1, 0
            return 0
        count *= n
        if s < 0:
            v.low += (n - 1) * s
        else:
            v.high += (n - 1) * s
    v.dense = v.high - v.low < count
    return 0


cdef int _find_axes(View* v, tuple shape, tuple strides) except -1:
    """Set the falling strides of axes with over one element; add last indices of equal ones."""
    cdef Py_ssize_t n, s
    cdef int at, m
    v.count = 0
    for k in range(len(shape)):
        n, s = shape[k], abs(<Py_ssize_t>strides[k])
        if n > 1 and s:
            at = 0
            while at < v.count and v.axes[at].stride > s:
                at += 1
            if at < v.count and v.axes[at].stride == s:
                v.axes[at].last += n - 1
                continue
            for m in range(v.count, at, -1):
                v.axes[m] = v.axes[m - 1]
            v.axes[at].stride, v.axes[at].last = s, n - 1
            v.count += 1
    return 0


cdef bint _are_axes_disjoint(Axis* a, int count, Axis* b, int count_b, Py_ssize_t distance) noexcept:
    """Return True if the axes prove that `b`, `distance` after `a`, shares no element with `a`."""
    cdef Py_ssize_t step, span, span_b, row, rows = 0, rows_b = 0, first, at
    while True:
        step = _step(b, count_b, _step(a, count, 0))
        if step == 0:
            return distance != 0
        span, span_b = _span(a, count), _span(b, count_b)
        if distance % step or distance > span or -distance > span_b:
            return True
        row = max(a.stride if count else 0, b.stride if count_b else 0)
        rows = rows_b = 0
        if count and a.stride == row:
            rows = a.last
            a, count = a + 1, count - 1
        if count_b and b.stride == row:
            rows_b = b.last
            b, count_b = b + 1, count_b - 1
        span, span_b = _span(a, count), _span(b, count_b)
        first, at = distance // row, distance % row  # rounded down, as in Python
        if at + span_b >= row or span >= row:  # count rows from the other view's first element
            first, at = first + 1, at - row
            if span_b >= row or span - at >= row:
                return False
        if first > rows or -first > rows_b:
            return True
        distance = at


cdef Py_ssize_t _step(Axis* axes, int count, Py_ssize_t step) noexcept:
    """Return the greatest common divisor of `step` and all strides."""
    cdef Py_ssize_t s
    for k in range(count):
        s = axes[k].stride
        while s:
            step, s = s, step % s
    return step


cdef Py_ssize_t _span(Axis* axes, int count) noexcept:
    """Return the distance from the first to the last element of the axes."""
    cdef Py_ssize_t span = 0
    for k in range(count):
        span += axes[k].stride * axes[k].last
    return span
