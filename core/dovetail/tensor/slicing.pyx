# cython: boundscheck=False, wraparound=False
"""The fast path of `x[key]`: the compiled form of `slicing.py`.

Shapes are first compared with those of recently used specs, so no tuple is created on a hit.
"""

from cpython.exc cimport PyErr_Clear, PyErr_Occurred
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack

from dovetail.graph.expr cimport Expr, Spec, leaf, spec, storage_of
from dovetail.tensor.c_fields cimport expr_of, is_strided
from dovetail.tensor.host_read cimport read_index

from ..argument_checks import DIMENSIONS

cdef extern from "Python.h":
    ctypedef struct PySliceObject:
        PyObject* start
        PyObject* stop
        PyObject* step
    bint PyLong_CheckExact(PyObject*) nogil
    Py_ssize_t PyLong_AsSsize_t(PyObject*) noexcept
    PyObject* Py_None
    PyObject* PyTuple_GET_ITEM(tuple, Py_ssize_t)  # borrowed

cdef enum:
    _AXES_MAX = 64  # dimensions
    _SPECS_CACHED = 256  # specs

cdef Py_ssize_t _NEW_AXIS = -(1 << 62) - 1  # no stride
cdef Py_ssize_t _NO_ELEMENT = -(1 << 62) - 1  # no position
NO_ELEMENT = _NO_ELEMENT

assert DIMENSIONS <= _AXES_MAX

cdef list _parents = [None] * _SPECS_CACHED, _children = [None] * _SPECS_CACHED


cpdef Expr basic_leaf(object x, object key):
    """Return the leaf that a key selects from a tensor in memory, or None for the general path."""
    if not is_strided(x):
        return None
    cdef Expr e = expr_of(x)
    if e.op is not None or storage_of(e).pending is not None or e.tape is not None:
        return None
    cdef tuple extents = e.spec.shape, steps = e.strides
    cdef bint several = type(key) is tuple, dotted = False, widened = False
    cdef Py_ssize_t count = len(<tuple>key) if several else 1, ndim = len(extents), kept = 0, offset = e.offset
    cdef Py_ssize_t i, extent, step, start, stop, by, length, d = 0, rest = ndim
    cdef Py_ssize_t shape[_AXES_MAX]
    cdef Py_ssize_t strides[_AXES_MAX]
    if type(key) is slice and 0 < ndim <= _AXES_MAX:  # the most frequent keys have their own paths
        extent, step = extents[0], steps[0]
        if _are_near(<PySliceObject*>key, extent, &start, &stop) and start < stop:
            shape[0] = stop - start
            for d in range(1, ndim):
                shape[d] = extents[d]
            return leaf(e.storage, spec_of_shape(e.spec, shape, ndim), steps, offset + start * step)
    elif type(key) is int and 0 < ndim <= _AXES_MAX:
        if not add_step(<PyObject*>key, extents[0], steps[0], &offset):
            return None
        return _row_leaf(e, offset)
    elif several:
        start = element_position(e, key)
        if start != _NO_ELEMENT:
            return leaf(e.storage, spec_of_shape(e.spec, shape, 0), (), offset + start)
    elif key is not None and key is not Ellipsis and not _is_index(key):
        return None
    elif 0 < ndim <= _AXES_MAX and _is_index(key):
        return _row_leaf(e, offset) if add_step(<PyObject*>key, extents[0], steps[0], &offset) else None
    for i in range(count):
        part = (<tuple>key)[i] if several else key
        if part is None:
            widened = True
        elif part is not Ellipsis:
            rest -= 1
    if rest < 0 or count + ndim > _AXES_MAX:  # sufficient, although larger keys can be valid
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
                shape[kept], strides[kept] = extents[d], steps[d]
                kept += 1
                if widened and shape[kept - 1] == 0:
                    return None
            d += rest > 0
            continue
        if part is None:
            shape[kept], strides[kept] = 1, _NEW_AXIS
            kept += 1
            continue
        extent, step = extents[d], steps[d]
        d += 1
        if _is_index(part):
            if not add_step(<PyObject*>part, extent, step, &offset):
                return None
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
    if widened:  # new axes get the strides of a dense tensor
        step = 1
        for d in range(kept - 1, -1, -1):
            if strides[d] == _NEW_AXIS:
                strides[d] = step
            step *= shape[d]
    return leaf(e.storage, spec_of_shape(e.spec, shape, kept), _reuse_strides(steps, strides, kept), offset)


cpdef Py_ssize_t element_position(Expr e, object key) except? -1:
    """Return the position of the element at ints, relative to the first one; else NO_ELEMENT.

    A key is an integer or a tuple with one integer for each axis: ints, and integer scalars of
    NumPy. NO_ELEMENT is returned for other keys, and where an index is out of range.
    """
    cdef tuple extents = e.spec.shape, steps = e.strides
    cdef Py_ssize_t d, ndim = len(extents), position = 0
    if type(key) is tuple:
        if len(<tuple>key) != ndim:
            return _NO_ELEMENT
        for d in range(ndim):
            if not add_step(PyTuple_GET_ITEM(<tuple>key, d), extents[d], steps[d], &position):
                return _NO_ELEMENT
    elif ndim != 1 or not add_step(<PyObject*>key, extents[0], steps[0], &position):
        return _NO_ELEMENT
    return position


cdef inline bint _is_index(object key) noexcept:
    """Return True for an int, and for an integer scalar of NumPy."""
    cdef Py_ssize_t index
    return type(key) is int or read_index(<PyObject*>key, &index)


cdef bint add_step(PyObject* part, Py_ssize_t extent, Py_ssize_t step, Py_ssize_t* position) noexcept:
    """Add the distance of an index along an axis to a position; return False unless it is in range.

    The index is an int, or an integer scalar of NumPy; False is returned for other objects.
    """
    cdef Py_ssize_t index = 0
    if PyLong_CheckExact(part):
        index = PyLong_AsSsize_t(part)
    elif not read_index(part, &index):
        return False
    if index < 0:
        if index == -1 and PyErr_Occurred() != NULL:  # an int that exceeds Py_ssize_t
            PyErr_Clear()
            return False
        index += extent
    if not 0 <= index < extent:
        return False
    position[0] += index * step
    return True


cdef Expr _row_leaf(Expr e, Py_ssize_t offset):
    """Return the leaf at one index along the first axis of `e`, whose first element is at `offset`."""
    cdef tuple extents = e.spec.shape, steps = e.strides
    cdef Py_ssize_t d, ndim = len(extents) - 1
    cdef Py_ssize_t shape[_AXES_MAX]
    cdef Py_ssize_t strides[_AXES_MAX]
    for d in range(ndim):
        shape[d], strides[d] = extents[d + 1], steps[d + 1]
    cdef Spec row = spec_of_shape(e.spec, shape, ndim)
    return leaf(e.storage, row, _reuse_strides(row.strides, strides, ndim), offset)


cdef bint _are_near(PySliceObject* key, Py_ssize_t extent, Py_ssize_t* start, Py_ssize_t* stop) noexcept:
    """Return True for a slice of step 1 with ints or None; set `start` and `stop`, clamped."""
    if key.step != Py_None:
        return False
    start[0], stop[0] = 0, extent
    return (key.start == Py_None or _clamp_index(key.start, extent, start)) and (
        key.stop == Py_None or _clamp_index(key.stop, extent, stop)
    )


cdef inline bint _clamp_index(PyObject* part, Py_ssize_t extent, Py_ssize_t* to) noexcept:
    """Store an int index, from the end if negative, clamped to the axis; False for others."""
    if not PyLong_CheckExact(part):
        return False
    cdef Py_ssize_t index = PyLong_AsSsize_t(part)
    if index < 0:
        if index == -1 and PyErr_Occurred() != NULL:  # an int that exceeds Py_ssize_t
            PyErr_Clear()
            return False
        index = max(index + extent, 0)
    to[0] = min(index, extent)
    return True


cdef tuple _reuse_strides(tuple previous, Py_ssize_t* strides, Py_ssize_t ndim):
    """Return the strides as a tuple: that of the sliced tensor if equal, which compares faster."""
    cdef Py_ssize_t d
    if len(previous) == ndim:
        for d in range(ndim):
            if <Py_ssize_t>previous[d] != strides[d]:
                break
        else:
            return previous
    return _to_tuple(strides, ndim)


cdef Spec spec_of_shape(Spec parent, Py_ssize_t* shape, Py_ssize_t ndim):
    """Return the spec with the dtype and device of `parent` and another shape."""
    cdef Py_ssize_t d, slot = (<Py_ssize_t><void*>parent) >> 4
    cdef Spec child
    for d in range(ndim):
        slot = slot * 31 + shape[d]
    slot &= _SPECS_CACHED - 1
    if _parents[slot] is parent:
        child = <Spec>_children[slot]
        if _is_shape(child.shape, shape, ndim):
            return child
    child = spec(_to_tuple(shape, ndim), parent.dtype, parent.device)
    _parents[slot], _children[slot] = None, child  # in this order: an interrupt in between leaves a miss
    _parents[slot] = parent
    return child


cdef bint _is_shape(tuple expected, Py_ssize_t* shape, Py_ssize_t ndim) except -1:
    """Return True if a tuple has exactly these `ndim` extents."""
    cdef Py_ssize_t d
    if len(expected) != ndim:
        return False
    for d in range(ndim):
        if <Py_ssize_t>expected[d] != shape[d]:
            return False
    return True


cdef tuple _to_tuple(Py_ssize_t* numbers, Py_ssize_t count):
    """Return `count` C integers as a tuple."""
    if count == 1:
        return (numbers[0],)
    if count == 2:
        return (numbers[0], numbers[1])
    return tuple([numbers[d] for d in range(count)])


cpdef tuple resolve_slice(object part, object extent):
    """Return start, length and step of a slice along an axis. Raises: errors of `slice.indices`."""
    start, stop, step = part.indices(extent)
    length = len(range(start, stop, step))
    return start, length, step if length > 1 else 1  # a larger step may exceed any memory


cpdef bint is_integer_tensor(object key) except -1:
    """Return True if a key is a tensor of integers."""
    if not is_strided(key):
        return False
    kind = expr_of(key).spec.dtype.kind
    return kind == "i" or kind == "u"
