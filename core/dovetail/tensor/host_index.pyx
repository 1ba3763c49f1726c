# cython: boundscheck=False, wraparound=False
"""Reads and writes at indices that the host does at once: the compiled form of `host_index.py`.

A key becomes the axes of the result. The index arrays become one array of offsets, over which the
axes of the arrays run, so that one loop copies the elements of any key.
"""

from cpython.mem cimport PyMem_Calloc, PyMem_Free
from cpython.object cimport PyObject
from cpython.slice cimport PySlice_AdjustIndices, PySlice_Unpack
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.string cimport memcpy, memset

from dovetail.engine.evaluate cimport evaluate as evaluate_nodes
from dovetail.graph.expr cimport Expr, Spec, leaf, spec, storage_of
from dovetail.tensor.c_fields cimport create_view, expr_of, is_strided, new_tensor
from dovetail.tensor.host cimport allocate_leaf, evaluate_leaf, reachable_address
from dovetail.tensor.host_read cimport copy_array, fill_numbers, store_scalar
from dovetail.tensor.immediate cimport is_observed
from dovetail.tensor.slicing cimport add_step, spec_of_shape

from numpy import int64 as _int64_scalar

from ..dtypes import float64 as _float64_dtype
from ..dtypes import int64 as _int64_dtype

ELEMENTS_MAX, MASK_MAX = 1 << 14, 1 << 15
cdef tuple _TESTED = ("bool", "int64", "float64")
cdef Py_ssize_t _RANGE_MAX = 1 << 40

cdef enum:
    _AXES = 64
    _ARRAYS = 8
    _ELEMENTS = 1 << 14
    _COPIED = 4096
    _MASK = 1 << 15

cdef struct Axis:
    Py_ssize_t length
    Py_ssize_t step  # of the tensor, in elements; 0 for an axis of the index arrays
    Py_ssize_t shift  # of the array of offsets; 0 for other axes
    Py_ssize_t other  # of the dense result, or of the value

cdef struct Index:  # an index array, or the offsets of a mask's true elements
    Py_ssize_t* values
    int64_t* memory  # to be freed; null if the values are a tensor's
    Py_ssize_t ndim
    Py_ssize_t shape[_AXES]
    Py_ssize_t steps[_AXES]
    Py_ssize_t extent  # of the axis; 0: the values are offsets
    Py_ssize_t step

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1

cdef union Number:  # of any dtype
    double parts[2]

cdef struct Key:
    Axis axes[_AXES]
    Py_ssize_t ndim
    Py_ssize_t count  # elements of the result
    Py_ssize_t base  # the offset of the part that integers and slices select
    Py_ssize_t* offsets  # of the index arrays, in C order of their joint shape
    Index arrays[_ARRAYS]
    Py_ssize_t array_count


cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>

    /* Return the number of true elements, and store their positions times `step` unless null. */
    static Py_ssize_t dovetail_true_offsets(const uint8_t *mask, Py_ssize_t size, Py_ssize_t step,
                                            Py_ssize_t *offsets) {
        Py_ssize_t i, k, count = 0;
        for (i = 0; i < size; i += 8) {
            uint64_t word = 0;
            memcpy(&word, mask + i, size - i < 8 ? size - i : 8);
            if (word == 0)
                continue;
            if (offsets == NULL) {
                count += (Py_ssize_t)((word * 0x0101010101010101u) >> 56); /* bytes are 0 or 1 */
                continue;
            }
            for (k = 0; k < 8 && i + k < size; k++) {
                offsets[count] = (i + k) * step;
                count += mask[i + k];
            }
        }
        return count;
    }
    """
    Py_ssize_t _true_offsets "dovetail_true_offsets"(uint8_t*, Py_ssize_t, Py_ssize_t, Py_ssize_t*) noexcept


cpdef object gather(object x, object key):
    """Return a copy of the elements at a key with index arrays, or None for the general path."""
    cdef Key k
    cdef Expr e = expr_of(x), result
    cdef Py_ssize_t source, target
    k.offsets, k.array_count = NULL, 0
    if not _has_array(key) or is_observed() or e.tape is not None:
        return None
    if e.op is not None or storage_of(e).pending is not None:
        if e.spec.size > _MASK:
            return None
        e = evaluate_leaf(x)
    source = reachable_address(e)
    if source == 0:
        return None
    try:
        if not _parse(&k, e, key):
            return None
        result = allocate_leaf(_spec_of_key(e.spec, &k))
        target = reachable_address(result)
        if target == 0:
            return None
        source += k.base * e.spec.itemsize
        _walk(k.axes, k.ndim, <char*><uintptr_t>source, k.offsets, <char*><uintptr_t>target, e.spec.itemsize, True)
    finally:
        _free(&k)
    return new_tensor(type(x), result)


cpdef bint scatter(object x, object key, object value, Py_ssize_t address) except -1:
    """Write a value of the same dtype to the elements at a key; return False for the general path."""
    cdef Key k
    cdef Expr e = expr_of(x), v
    cdef Py_ssize_t source, d
    cdef Number number
    if not _has_array(key):
        return False
    k.offsets, k.array_count = NULL, 0
    try:
        if is_strided(value):
            v = _value_leaf(e, value)
            source = 0 if v is None or v.storage is e.storage else reachable_address(v)
            if source == 0 or not _parse(&k, e, key) or not _align(k.axes, k.ndim, v):
                return False
        else:
            source = <Py_ssize_t>&number
            if not store_scalar(e.spec.dtype.name, source, e.spec.itemsize, value) or not _parse(&k, e, key):
                return False
            for d in range(k.ndim):
                k.axes[d].other = 0
        address += k.base * e.spec.itemsize
        _walk(k.axes, k.ndim, <char*><uintptr_t>address, k.offsets, <char*><uintptr_t>source, e.spec.itemsize, False)
    finally:
        _free(&k)
    return True


cpdef bint copy_elements(Expr part, object value) except -1:
    """Copy a tensor in memory, broadcast, into a leaf of the same dtype; return True if done."""
    cdef Axis axes[_AXES]
    cdef Expr v
    cdef Py_ssize_t d, ndim = len(part.spec.shape), source, target, none = 0
    cdef char* dense
    if part.spec.size > _COPIED:
        return False
    v = _value_leaf(part, value)
    if v is None:
        return False
    for d in range(ndim):
        axes[d].length, axes[d].step, axes[d].shift = part.spec.shape[d], part.strides[d], 0
    if not _align(axes, ndim, v):
        return False
    source, target = reachable_address(v), reachable_address(part)
    if source == 0 or target == 0:
        return False
    if v.storage is not part.storage:
        _walk(axes, ndim, <char*><uintptr_t>target, &none, <char*><uintptr_t>source, part.spec.itemsize, False)
        return True
    dense = <char*>PyMem_Calloc(v.spec.size + 1, v.spec.itemsize)  # the elements may overlap
    if dense == NULL:
        raise MemoryError
    try:
        _copy_dense(v, <char*><uintptr_t>source, dense)
        for d in range(len(v.spec.shape)):
            if axes[ndim - 1 - d].other != 0:
                axes[ndim - 1 - d].other = v.spec.strides[len(v.spec.shape) - 1 - d]
        _walk(axes, ndim, <char*><uintptr_t>target, &none, dense, part.spec.itemsize, False)
    finally:
        PyMem_Free(dense)
    return True


cdef _copy_dense(Expr e, char* source, char* target):
    """Copy the elements of a leaf, whose first one is at `source`, to dense memory."""
    cdef Axis axes[_AXES]
    cdef Py_ssize_t d, ndim = len(e.spec.shape), none = 0
    for d in range(ndim):
        axes[d].length, axes[d].step, axes[d].shift = e.spec.shape[d], e.strides[d], 0
        axes[d].other = e.spec.strides[d]
    _walk(axes, ndim, source, &none, target, e.spec.itemsize, True)


cpdef object copy_tensor(object x, bint flat=False):
    """Return a dense copy of a small tensor in memory, or None for the general path."""
    cdef Expr e = expr_of(x), result
    cdef Py_ssize_t source, target, size
    if e.op is not None or e.tape is not None or e.spec.size > _COPIED or is_observed():
        return None
    source = reachable_address(e)
    if source == 0:
        return None
    size = e.spec.size
    result = allocate_leaf(spec_of_shape(e.spec, &size, 1) if flat else e.spec)
    target = reachable_address(result)
    if target == 0:
        return None
    _copy_dense(e, <char*><uintptr_t>source, <char*><uintptr_t>target)
    return new_tensor(type(x), result)


cpdef object stack_rows(list rows):
    """Return tensors of one spec, in memory, stacked along a new first axis; None for others."""
    cdef Py_ssize_t i, d, count = len(rows), ndim, nbytes, source, target = 0
    cdef Py_ssize_t shape[_AXES]
    cdef Expr first = expr_of(rows[0]), e, result
    ndim = len(first.spec.shape)
    if ndim >= _AXES or is_observed():
        return None
    for row in rows:
        e = expr_of(row)
        if e.spec is not first.spec or e.tape is not None:
            return None
    for row in rows:
        if reachable_address(evaluate_leaf(row)) == 0:
            return None
    shape[0] = count
    for d in range(ndim):
        shape[d + 1] = first.spec.shape[d]
    result = allocate_leaf(spec_of_shape(first.spec, shape, ndim + 1))
    target, nbytes = reachable_address(result), first.spec.size * first.spec.itemsize
    if target == 0:
        return None
    for i in range(count):
        e = expr_of(rows[i])
        source = reachable_address(e)
        _copy_dense(e, <char*><uintptr_t>source, <char*><uintptr_t>(target + i * nbytes))
    return new_tensor(type(rows[0]), result)


cpdef object concat(object tensors, Py_ssize_t axis):
    """Return small tensors of one dtype, joined along an axis; None for the general path."""
    cdef Axis axes[_AXES]
    cdef Py_ssize_t shape[_AXES]
    cdef Py_ssize_t d, ndim = 0, total = 0, size = 0, source, target, none = 0
    cdef list pending = []
    cdef Expr first = None, e, result
    for x in tensors:
        if not is_strided(x):
            return None
        e = expr_of(x)
        if first is None:
            first = e
            ndim = len(e.spec.shape)
            if axis < 0:
                axis += ndim
            if not 0 <= axis < ndim <= _AXES:
                return None
        if e.tape is not None or e.spec.dtype is not first.spec.dtype or len(e.spec.shape) != ndim:
            return None
        if e.spec.device is not first.spec.device:
            return None
        for d in range(ndim):
            if d != axis and e.spec.shape[d] != first.spec.shape[d]:
                return None
        total += e.spec.shape[axis]
        size += e.spec.size
        if e.op is not None:
            pending.append(e)
    if first is None or size > _COPIED or is_observed():
        return None
    if pending:
        e = None  # a value without other references gets no memory
        evaluate_nodes(tuple(pending))
    for d in range(ndim):
        shape[d] = first.spec.shape[d] if d != axis else total
    result = allocate_leaf(spec_of_shape(first.spec, shape, ndim))
    target = reachable_address(result)
    if target == 0:
        return None
    for x in tensors:
        e = evaluate_leaf(x)
        source = reachable_address(e)
        if source == 0:
            return None
        for d in range(ndim):
            axes[d].length, axes[d].step = e.spec.shape[d], result.spec.strides[d]
            axes[d].shift, axes[d].other = 0, e.strides[d]
        _walk(axes, ndim, <char*><uintptr_t>target, &none, <char*><uintptr_t>source, e.spec.itemsize, False)
        target += axes[axis].length * axes[axis].step * e.spec.itemsize
    return new_tensor(type(tensors[0]), result)


cpdef object create_filled(object kind, object shape, object dtype, object device, object value):
    """Return a small new tensor of a class, filled with a number; None for the general path."""
    cdef tuple sizes = (shape,) if type(shape) is int else shape if type(shape) is tuple else None
    cdef Spec s
    if sizes is None or dtype is None or is_observed():
        return None
    for n in sizes:
        if type(n) is not int or n < 0:
            return None
    s = spec(sizes, dtype, device, "full")
    if s.size * s.itemsize > 8 * _COPIED:
        return None
    cdef Expr e = allocate_leaf(s)
    cdef Py_ssize_t address = reachable_address(e)
    if address == 0:
        return None
    if type(value) is int and value == 0:
        memset(<void*><uintptr_t>address, 0, s.size * s.itemsize)
    elif not fill_numbers(s.dtype.name, address, value, s.size, s.itemsize, s.itemsize):
        return None
    return new_tensor(kind, e)


cpdef object create_range(object kind, tuple ends, object dtype, object device):
    """Return the int64 tensor `range(*ends)` if it is small, or None for the general path."""
    cdef Py_ssize_t start, stop, step, count, i
    for end in ends:
        if type(end) is not int or not -_RANGE_MAX < end < _RANGE_MAX:
            return None
    start, step = 0 if len(ends) == 1 else ends[0], ends[2] if len(ends) == 3 else 1
    stop = ends[0] if len(ends) == 1 else ends[1]
    if step == 0 or is_observed():
        return None
    count = max((stop - start + step - (1 if step > 0 else -1)) // step, 0)
    if count > _COPIED:
        return None
    cdef Expr e = allocate_leaf(spec((count,), dtype, device, "arange"))
    cdef int64_t* values = <int64_t*><uintptr_t>reachable_address(e)
    if values == NULL:
        return None
    for i in range(count):
        values[i] = start + i * step
    return new_tensor(kind, e)


cpdef object create_from_host(object kind, object values, object dtype, object device):
    """Return a tensor of a class with the values of NumPy's array; None for the general path."""
    if is_observed():
        return None
    cdef Expr e = allocate_leaf(spec(values.shape, dtype, device, "asarray"))
    cdef Py_ssize_t address = reachable_address(e)
    if address == 0 or not copy_array(address, values):
        return None
    return new_tensor(kind, e)


cpdef object create_from_numbers(object kind, object values, object dtype, object device):
    """Return a tensor of a class with the numbers of a list, or of lists of one length; None for the general path."""
    cdef Py_ssize_t count = len(values), columns = 0, i
    cdef bint nested = count > 0 and _is_list(values[0]), real = False
    cdef object row = values
    cdef int overflow = 0
    if nested:
        columns = len(values[0])
    cdef Py_ssize_t total = count * columns if nested else count
    if not 0 < total <= _COPIED or is_observed():
        return None
    for i in range(count if nested else 1):
        if nested:
            row = values[i]
            if not _is_list(row) or len(row) != columns:
                return None
        for v in row:
            if isinstance(v, float):
                real = True
            elif type(v) is int:
                PyLong_AsLongLongAndOverflow(v, &overflow)
                if overflow:
                    return None
            elif type(v) is not _int64_scalar:
                return None
    if dtype is None:
        dtype = _float64_dtype if real else _int64_dtype
    elif dtype is not _float64_dtype:
        return None
    real = dtype is _float64_dtype
    cdef tuple shape = (count,)
    if nested:
        shape = (count, columns)
    cdef Expr e = allocate_leaf(spec(shape, dtype, device, "asarray"))
    cdef Py_ssize_t at = reachable_address(e)
    if at == 0:
        return None
    for i in range(count if nested else 1):
        for v in values[i] if nested else values:
            if real:
                (<double*><uintptr_t>at)[0] = v
            else:
                (<int64_t*><uintptr_t>at)[0] = v
            at += 8
    return new_tensor(kind, e)


cdef inline bint _is_list(object x) noexcept:
    """Return True for a list or a tuple, but for those of subclasses."""
    return type(x) is list or type(x) is tuple


cpdef object find_true(object x, bint raveled):
    """Return int64 vectors of the indices of elements other than 0, one per axis, or None.

    raveled: the positions in C order as one vector. None is for the general path.
    """
    cdef Expr e = expr_of(x), result
    cdef Py_ssize_t ndim = len(e.spec.shape), size = e.spec.size, count = 0, d, rest, i, place, step, address
    cdef Py_ssize_t* positions
    cdef int64_t* target
    cdef Spec vector
    cdef list results = []
    cdef str name = e.spec.dtype.name
    if ndim == 0 or e.tape is not None or size * e.spec.itemsize > 8 * _COPIED or is_observed() or name not in _TESTED:
        return None
    if e.op is not None or storage_of(e).pending is not None:
        e = evaluate_leaf(x)
    address = reachable_address(e)
    if address == 0 or e.strides != e.spec.strides:
        return None
    positions = <Py_ssize_t*>PyMem_Calloc(size + 1, sizeof(Py_ssize_t))
    if positions == NULL:
        raise MemoryError
    try:
        if name == "bool":
            count = _true_offsets(<uint8_t*><uintptr_t>address, size, 1, positions)
        elif name == "int64":
            for i in range(size):
                positions[count] = i
                count += (<int64_t*><uintptr_t>address)[i] != 0
        else:
            for i in range(size):
                positions[count] = i
                count += (<double*><uintptr_t>address)[i] != 0
        step = size
        vector = spec((count,), _int64_dtype, e.spec.device)
        for d in range(1 if raveled else ndim):
            result = allocate_leaf(vector)
            target = <int64_t*><uintptr_t>reachable_address(result)
            if target == NULL:
                return None
            if raveled or ndim == 1:
                memcpy(target, positions, count * sizeof(int64_t))
            else:
                rest = e.spec.shape[d]
                step = step // rest if rest > 0 else 0
                for i in range(count):
                    target[i] = positions[i] // step % rest
            results.append(new_tensor(type(x), result))
    finally:
        PyMem_Free(positions)
    return results[0] if raveled else tuple(results)


cpdef object transpose(object x):
    """Return a view of a tensor in memory with its axes reversed, or None for the general path."""
    cdef Expr e = expr_of(x)
    cdef Py_ssize_t shape[_AXES]
    cdef Py_ssize_t d, ndim = len(e.spec.shape)
    if e.op is not None or storage_of(e).pending is not None or e.tape is not None or ndim > _AXES:
        return None
    for d in range(ndim):
        shape[d] = e.spec.shape[ndim - 1 - d]
    return create_view(x, leaf(e.storage, spec_of_shape(e.spec, shape, ndim), e.strides[::-1], e.offset))


cpdef object diagonal_view(object x, Py_ssize_t k):
    """Return a view of diagonal `k` of a matrix in memory, or None for the general path."""
    cdef Expr e = expr_of(x)
    cdef Py_ssize_t length
    if e.op is not None or storage_of(e).pending is not None or e.tape is not None or len(e.spec.shape) != 2:
        return None
    length = min(<Py_ssize_t>e.spec.shape[0] + min(k, 0), <Py_ssize_t>e.spec.shape[1] - max(k, 0))
    if length <= 0:
        return None
    cdef Py_ssize_t rows = e.strides[0], columns = e.strides[1]
    cdef Expr diagonal = leaf(
        e.storage, spec_of_shape(e.spec, &length, 1), (rows + columns,), e.offset + max(k, 0) * columns - min(k, 0) * rows
    )
    return create_view(x, diagonal)


# --- copies ---------------------------------------------------------------------------------------


cdef void _walk(Axis* axes, Py_ssize_t ndim, char* x, Py_ssize_t* offsets, char* other, Py_ssize_t itemsize, bint reads) noexcept:
    """Copy all elements of axes: from `x` if `reads`, else to it; the other side is a value's memory."""
    cdef Py_ssize_t i
    if ndim == 0:
        _copy(x + offsets[0] * itemsize, other, itemsize, reads)
        return
    cdef Axis axis = axes[0]
    cdef Py_ssize_t step = axis.step * itemsize, by = axis.other * itemsize
    if ndim > 1:
        for i in range(axis.length):
            _walk(axes + 1, ndim - 1, x + i * step, offsets + i * axis.shift, other + i * by, itemsize, reads)
    elif axis.shift == 0:
        x += offsets[0] * itemsize
        if itemsize == step == by:
            _copy(x, other, axis.length * itemsize, reads)
        elif itemsize == 8:
            for i in range(axis.length):
                _copy(x + i * step, other + i * by, 8, reads)
        elif itemsize == 4:
            for i in range(axis.length):
                _copy(x + i * step, other + i * by, 4, reads)
        else:
            for i in range(axis.length):
                _copy(x + i * step, other + i * by, itemsize, reads)
    elif itemsize == 8:
        for i in range(axis.length):
            _copy(x + offsets[i * axis.shift] * 8, other + i * by, 8, reads)
    else:
        for i in range(axis.length):
            _copy(x + offsets[i * axis.shift] * itemsize, other + i * by, itemsize, reads)


cdef inline void _copy(char* x, char* other, Py_ssize_t nbytes, bint reads) noexcept:
    """Copy bytes from `x` if `reads`, else to it."""
    if reads:
        memcpy(other, x, nbytes)
    else:
        memcpy(x, other, nbytes)


cdef Expr _value_leaf(Expr target, object value):
    """Return the leaf of a value to copy into the memory of a leaf, or None for the general path.

    A pending value is computed, unless that may take long. Other storages over the same memory are
    for the general path.
    """
    cdef Expr v = expr_of(value)
    if v.spec.dtype is not target.spec.dtype or v.spec.device is not target.spec.device:
        return None
    if v.tape is not None or v.spec.size > _ELEMENTS:
        return None
    if v.op is not None or storage_of(v).pending is not None:
        v = evaluate_leaf(value)
    if v.storage.overlap is not None or target.storage.overlap is not None:
        return None
    return v


cdef bint _align(Axis* axes, Py_ssize_t ndim, Expr v) except -1:
    """Set the steps of a value that is broadcast to the axes; return False if it does not fit."""
    cdef tuple shape = v.spec.shape, strides = v.strides
    cdef Py_ssize_t d, own = len(shape), length
    if own > ndim:
        return False
    for d in range(ndim):
        axes[d].other = 0
        if d >= ndim - own:
            length = shape[d - ndim + own]
            if length != axes[d].length:
                if length != 1:
                    return False
            else:
                axes[d].other = strides[d - ndim + own]
    return True


# --- keys -----------------------------------------------------------------------------------------


cdef bint _has_array(object key) except -1:
    """Return True if a key has a tensor, a list or a range."""
    if type(key) is tuple:
        for part in <tuple>key:
            if _is_array(part):
                return True
        return False
    return _is_array(key)


cdef inline bint _is_array(object part) except -1:
    """Return True for a tensor, a list or a range."""
    return type(part) is list or is_strided(part) or type(part) is range


cdef Spec _spec_of_key(Spec parent, Key* k):
    """Return the spec of a key's result, and set the steps of a dense result."""
    cdef Py_ssize_t shape[_AXES]
    cdef Py_ssize_t d, step = 1
    for d in range(k.ndim - 1, -1, -1):
        shape[d], k.axes[d].other = k.axes[d].length, step
        step *= k.axes[d].length
    return spec_of_shape(parent, shape, k.ndim)


cdef void _free(Key* k) noexcept:
    """Free the memory of a key."""
    cdef Py_ssize_t i
    PyMem_Free(k.offsets)
    for i in range(k.array_count):
        PyMem_Free(k.arrays[i].memory)


cdef bint _parse(Key* k, Expr e, object key) except -1:
    """Fill a key for a leaf; return False for the general path. The caller frees it in any case."""
    cdef tuple parts = <tuple>key if type(key) is tuple else (key,), extents = e.spec.shape, steps = e.strides
    cdef Py_ssize_t used = 0, i, d = 0, start, stop, by, others = 0, kept = 0, lead = -1, run = 0, rest
    cdef bint dotted = False, separate = False
    cdef Axis axes[_AXES]
    cdef list alive = []  # keeps the memory of index tensors
    k.offsets, k.array_count, k.ndim, k.base = NULL, 0, 0, 0
    for part in parts:
        if part is Ellipsis:
            if dotted:
                return False
            dotted = True
        elif part is not None:
            used += _axes_of(part)
    rest = len(extents) - used
    if rest < 0 or len(parts) + len(extents) > _AXES:
        return False
    for i in range(len(parts) + 1):
        part = Ellipsis if i == len(parts) else parts[i]
        if part is Ellipsis:
            if i == len(parts) and dotted:
                break
            others += i < len(parts)
            for d in range(d, d + rest):
                axes[kept].length, axes[kept].step, axes[kept].shift = extents[d], steps[d], 0
                kept += 1
            d += rest > 0
        elif part is None:
            others += 1
            axes[kept].length, axes[kept].step, axes[kept].shift = 1, 0, 0
            kept += 1
        elif type(part) is slice:
            others += 1
            try:
                PySlice_Unpack(part, &start, &stop, &by)
            except (TypeError, ValueError):
                return False
            axes[kept].length = PySlice_AdjustIndices(extents[d], &start, &stop, by)
            if axes[kept].length > 0:
                k.base += start * <Py_ssize_t>steps[d]
            axes[kept].step, axes[kept].shift = steps[d] * (by if axes[kept].length > 1 else 1), 0
            kept += 1
            d += 1
        else:
            if lead < 0:
                lead, run = kept, others
            elif run != others:
                separate = True
            if _is_array(part):
                if k.array_count == _ARRAYS or not _add_array(k, part, d, extents, steps, alive):
                    return False
                d += _axes_of(part)
            else:
                if not add_step(<PyObject*>part, extents[d], steps[d], &k.base):
                    return False
                d += 1
    return _join(k, axes, kept, 0 if separate else lead)


cdef Py_ssize_t _axes_of(object part) except -1:
    """Return the number of axes that a part of a key selects from: of a mask all, else 1."""
    cdef Expr e
    if is_strided(part):
        e = expr_of(part)
        if e.spec.dtype.kind == "b":
            return len(e.spec.shape)
    return 1


cdef bint _add_array(Key* k, object part, Py_ssize_t axis, tuple extents, tuple steps, list alive) except -1:
    """Append the index array of a list, a tensor or a mask to a key; return False for others."""
    cdef Index* index = &k.arrays[k.array_count]
    cdef Expr e
    cdef str name
    cdef Py_ssize_t d, i, address
    index.memory, index.extent, index.step = NULL, extents[axis] if axis < len(extents) else 0, 1
    k.array_count += 1
    if type(part) is range:
        part = list(part) if len(part) <= _ELEMENTS else []
    if type(part) is list:
        index.ndim, index.shape[0], index.steps[0] = 1, len(<list>part), 1
        if not 0 < index.shape[0] <= _ELEMENTS or index.extent == 0:
            return False
        index.values = <Py_ssize_t*>_allocate(index, index.shape[0])
        for i in range(index.shape[0]):
            index.values[i] = 0
            if type((<list>part)[i]) is bool or not add_step(<PyObject*>(<list>part)[i], index.extent, 1, &index.values[i]):
                return False
        index.step = steps[axis]
        return True
    e = expr_of(part)
    if e.tape is not None or e.spec.size > _MASK:
        return False
    if e.op is not None or storage_of(e).pending is not None:
        e = evaluate_leaf(part)
    address = reachable_address(e)
    if address == 0:
        return False
    alive.append(e)
    if e.spec.dtype.kind == "b":
        return _add_mask(index, e, <uint8_t*><uintptr_t>address, axis, extents, steps)
    if index.extent == 0:
        return False
    index.ndim, index.step = len(e.spec.shape), steps[axis]
    for d in range(index.ndim):
        index.shape[d], index.steps[d] = e.spec.shape[d], e.strides[d]
    name = e.spec.dtype.name
    if name == "int64":
        index.values = <Py_ssize_t*><uintptr_t>address
        return True
    if (name != "int32" and name != "uint8") or e.strides != e.spec.strides:
        return False
    index.values = <Py_ssize_t*>_allocate(index, e.spec.size)
    for i in range(e.spec.size):
        index.values[i] = (<int32_t*><uintptr_t>address)[i] if name == "int32" else (<uint8_t*><uintptr_t>address)[i]
    return True


cdef bint _add_mask(Index* index, Expr e, uint8_t* mask, Py_ssize_t axis, tuple extents, tuple steps) except -1:
    """Store the offsets of a mask's true elements; return False if it does not fit, or has gaps."""
    cdef Py_ssize_t d, i, ndim = len(e.spec.shape), size = e.spec.size, count, offset
    cdef bint dense = True
    cdef Py_ssize_t at[_AXES]
    cdef Py_ssize_t shape[_AXES]
    cdef Py_ssize_t by[_AXES]
    if ndim == 0 or e.strides != e.spec.strides:
        return False
    for d in range(ndim):
        at[d], shape[d], by[d] = 0, e.spec.shape[d], steps[axis + d]
        if shape[d] != <Py_ssize_t>extents[axis + d]:
            return False
        dense = dense and (d == 0 or by[d - 1] == by[d] * shape[d])
    count = _true_offsets(mask, size, 1, NULL)
    if count > _ELEMENTS:
        return False
    index.values = <Py_ssize_t*>_allocate(index, count)
    index.ndim, index.shape[0], index.steps[0], index.extent = 1, count, 1, 0
    if dense:
        _true_offsets(mask, size, by[ndim - 1], index.values)
        return True
    count = offset = 0
    for i in range(size):
        if mask[i]:
            index.values[count] = offset
            count += 1
        for d in range(ndim - 1, -1, -1):  # the next position in C order
            at[d] += 1
            offset += by[d]
            if at[d] < shape[d]:
                break
            offset -= shape[d] * by[d]
            at[d] = 0
    return True


cdef int64_t* _allocate(Index* index, Py_ssize_t count) except NULL:
    """Allocate an index array's own values. Raises: MemoryError."""
    index.memory = <int64_t*>PyMem_Calloc(count + 1, sizeof(int64_t))
    if index.memory == NULL:
        raise MemoryError
    return index.memory


cdef bint _join(Key* k, Axis* kept, Py_ssize_t count, Py_ssize_t lead) except -1:
    """Broadcast the index arrays, add their offsets, and place their axes among those of slices.

    Return False if they do not broadcast, an index is out of range, or the result is too large.
    """
    cdef Py_ssize_t joint[_AXES]
    cdef Py_ssize_t ndim = 0, d, i, n, total = 1, shift
    cdef Index* index
    for i in range(k.array_count):
        ndim = max(ndim, k.arrays[i].ndim)
    if ndim + count > _AXES:
        return False
    for d in range(ndim):
        joint[d] = 1
        for i in range(k.array_count):
            index = &k.arrays[i]
            if d >= ndim - index.ndim:
                n = index.shape[d - ndim + index.ndim]
                if n != 1 and joint[d] != 1 and n != joint[d]:
                    return False
                if n != 1:
                    joint[d] = n
        total *= joint[d]
    k.count = total
    for d in range(count):
        k.count *= kept[d].length
    if total > _ELEMENTS or k.count > _ELEMENTS:
        return False
    k.offsets = <Py_ssize_t*>PyMem_Calloc(total + 1, sizeof(Py_ssize_t))
    if k.offsets == NULL:
        raise MemoryError
    for i in range(k.array_count):
        if not _add_offsets(&k.arrays[i], joint, ndim, 0, k.arrays[i].values, k.offsets, total):
            return False
    for d in range(lead):
        k.axes[d] = kept[d]
    shift = total
    for d in range(ndim):
        shift = shift // joint[d] if joint[d] > 0 else 0
        k.axes[lead + d].length, k.axes[lead + d].step, k.axes[lead + d].shift = joint[d], 0, shift
    for d in range(lead, count):
        k.axes[ndim + d] = kept[d]
    k.ndim = count + ndim
    return True


cdef bint _add_offsets(Index* index, Py_ssize_t* joint, Py_ssize_t ndim, Py_ssize_t d, Py_ssize_t* values, Py_ssize_t* offsets, Py_ssize_t total) noexcept:
    """Add the offsets of an index array, broadcast to a joint shape; return False if one is out of range."""
    cdef Py_ssize_t i, own = d - ndim + index.ndim, step = 0, shift
    if d == ndim:
        i = values[0]
        if index.extent > 0:
            if i < 0:
                i += index.extent
            if not 0 <= i < index.extent:
                return False
            i *= index.step
        offsets[0] += i
        return True
    if joint[d] == 0:
        return True
    shift = total // joint[d]
    if own >= 0 and index.shape[own] != 1:
        step = index.steps[own]
    for i in range(joint[d]):
        if not _add_offsets(index, joint, ndim, d + 1, values + i * step, offsets + i * shift, shift):
            return False
    return True
