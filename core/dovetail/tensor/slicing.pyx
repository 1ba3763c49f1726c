# cython: boundscheck=False, wraparound=False
"""`x[key]` of integers, slices, `...` and None: `slicing.py`, compiled. Shapes are compared with those of specs
that were found lately before any tuple is made of them.
"""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

from dovetail.graph.expr cimport Expr, Spec, leaf, spec
from dovetail.tensor.fields cimport expr_of, is_strided

from ..arguments import DIMENSIONS

cdef extern from "Python.h":
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step
    bint PyLong_CheckExact(PyObject*) nogil
    Py_ssize_t PyLong_AsSsize_t(PyObject*) noexcept
    PyObject* Py_None

cdef enum:
    MOST = 64  # dimensions
    LATELY = 256  # specs

cdef Py_ssize_t FRESH = -(1 << 62) - 1  # no stride

assert DIMENSIONS <= MOST

cdef list _parents = [None] * LATELY, _found = [None] * LATELY


cpdef Expr basic_leaf(object x, object key):
    """The leaf that a key selects of a tensor in memory; None where this is for the general way."""
    if not is_strided(x):
        return None
    cdef Expr e = expr_of(x)
    if e.op is not None or e.storage.pending is not None or e.tape is not None:
        return None
    cdef tuple whole = e.spec.shape, steps = e.strides
    cdef bint several = type(key) is tuple, dotted = False, widened = False
    cdef Py_ssize_t count = len(<tuple>key) if several else 1, ndim = len(whole), kept = 0, offset = e.offset
    cdef Py_ssize_t i, extent, step, start, stop, by, length, d = 0, rest = ndim
    cdef Py_ssize_t shape[MOST]
    cdef Py_ssize_t strides[MOST]
    if type(key) is slice and 0 < ndim <= MOST:  # the most frequent key, without a look at the rest
        extent, step = whole[0], steps[0]
        if _are_near(<PySliceObject*>key, extent, &start, &stop) and start < stop:
            shape[0] = stop - start
            for d in range(1, ndim):
                shape[d] = whole[d]
            return leaf(e.storage, _of_shape(e.spec, shape, ndim), steps, offset + start * step)
    elif not several and type(key) is not int and key is not None and key is not Ellipsis:
        return None
    for i in range(count):
        part = (<tuple>key)[i] if several else key
        if part is None:
            widened = True
        elif part is not Ellipsis:
            rest -= 1
    if rest < 0 or count + ndim > MOST:  # which is not so many as there may be, yet enough
        return None
    for i in range(count + 1):
        part = Ellipsis if i == count else (<tuple>key)[i] if several else key
        if part is Ellipsis:
            if dotted:
                if i < count:
                    return None
                break
            dotted = True
            for d in range(d, d + rest):
                shape[kept], strides[kept] = whole[d], steps[d]
                kept += 1
                if widened and shape[kept - 1] == 0:
                    return None
            d += rest > 0
            continue
        if part is None:
            shape[kept], strides[kept] = 1, FRESH
            kept += 1
            continue
        extent, step = whole[d], steps[d]
        d += 1
        if type(part) is int:
            try:
                start = part
            except OverflowError:
                return None
            if start < 0:
                start += extent
            if not 0 <= start < extent:
                return None
            offset += start * step
        elif type(part) is slice:
            try:
                PySlice_Unpack(part, &start, &stop, &by)
            except (TypeError, ValueError):
                return None
            length = PySlice_AdjustIndices(extent, &start, &stop, by)
            if length == 0:
                return None
            offset += start * step
            shape[kept], strides[kept] = length, step * (by if length > 1 else 1)
            kept += 1
        else:
            return None
    if widened:  # new axes have the strides that they have in a dense tensor
        step = 1
        for d in range(kept - 1, -1, -1):
            if strides[d] == FRESH:
                strides[d] = step
            step *= shape[d]
    return leaf(e.storage, _of_shape(e.spec, shape, kept), _kept(steps, strides, kept), offset)


cdef bint _are_near(PySliceObject* key, Py_ssize_t extent, Py_ssize_t* start, Py_ssize_t* stop) noexcept:
    """Whether a slice is of neighbours, by ints or None: `start` and `stop` within the extent, if so."""
    if key.step != Py_None:
        return False
    start[0], stop[0] = 0, extent
    return (key.start == Py_None or _is_put(key.start, extent, start)) and (
        key.stop == Py_None or _is_put(key.stop, extent, stop)
    )


cdef inline bint _is_put(PyObject* part, Py_ssize_t extent, Py_ssize_t* to) noexcept:
    if not PyLong_CheckExact(part):
        return False
    cdef Py_ssize_t found = PyLong_AsSsize_t(part)
    if found < 0:
        if found == -1 and PyErr_Occurred() != NULL:  # an int beyond all memory
            PyErr_Clear()
            return False
        found = max(found + extent, 0)
    to[0] = min(found, extent)
    return True


cdef tuple _kept(tuple known, Py_ssize_t* strides, Py_ssize_t ndim):
    """The strides, which are often those of what is sliced: the same tuple is soon compared."""
    cdef Py_ssize_t d
    if len(known) == ndim:
        for d in range(ndim):
            if <Py_ssize_t>known[d] != strides[d]:
                break
        else:
            return known
    return _in_tuple(strides, ndim)


cdef Spec _of_shape(Spec parent, Py_ssize_t* shape, Py_ssize_t ndim):
    """As `parent`, but for the shape."""
    cdef Py_ssize_t d, place = (<Py_ssize_t><void*>parent) >> 4
    cdef Spec found
    for d in range(ndim):
        place = place * 31 + shape[d]
    place &= LATELY - 1
    if _parents[place] is parent:
        found = <Spec>_found[place]
        if _is_shape(found.shape, shape, ndim):
            return found
    found = spec(_in_tuple(shape, ndim), parent.dtype, parent.device)
    _parents[place], _found[place] = None, found  # in this order: both change, or none is believed
    _parents[place] = parent
    return found


cdef bint _is_shape(tuple known, Py_ssize_t* shape, Py_ssize_t ndim) except -1:
    cdef Py_ssize_t d
    if len(known) != ndim:
        return False
    for d in range(ndim):
        if <Py_ssize_t>known[d] != shape[d]:
            return False
    return True


cdef tuple _in_tuple(Py_ssize_t* numbers, Py_ssize_t count):
    if count == 1:
        return (numbers[0],)
    if count == 2:
        return (numbers[0], numbers[1])
    return tuple([numbers[d] for d in range(count)])


cpdef tuple span(object part, object extent):
    """Start, length and step of a slice along an axis. Raises: as `slice.indices` does."""
    start, stop, step = part.indices(extent)
    length = len(range(start, stop, step))
    return start, length, step if length > 1 else 1  # which else may be beyond all memory


cpdef bint is_integer_tensor(object key) except -1:
    """Whether a key is nothing but a tensor of integers."""
    if not is_strided(key):
        return False
    kind = expr_of(key).spec.dtype.kind
    return kind == "i" or kind == "u"
