"""The class ndarray: a Tensor with NumPy's methods, attributes, defaults and printing."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any

import numpy as host

from ..device_class import default_device
from ..dtypes import BY_NAME, DType, bool_, float64, int64, uint64
from ..engine import tracer_api
from ..errors import ArgumentError, DTypeError, GradientError, ShapeError
from ..functions.creation.from_values import asarray as tensor_from
from ..functions.indexing.index_reads import getitem
from ..functions.indexing.index_writes import setitem
from ..functions.shape import copies, manipulation
from ..identity_cache import IdentityCache
from ..ops.table import Op
from ..settings import flags
from ..tensor.c_fields import become, expr_of, register_subclass, set_class
from ..tensor.c_slots import (
    PENDING_ELEMENTS_MAX,
    build_array_ufunc,
    install_element_slots,
    iterate_elements,
)
from ..tensor.host import evaluate, printable_values
from ..tensor.host import from_host as copy_from_host
from ..tensor.host_index import copy_tensor, create_from_host, transpose
from ..tensor.host_reductions import OPS as HOST_REDUCTIONS
from ..tensor.host_reductions import reduce as reduce_on_host
from ..tensor.immediate import is_observed
from ..tensor.operators import OPERATORS, number_readers, pending_numbers, promotions
from ..tensor.tensor import Size, Tensor
from ..tensor.writes import editable_array, require_not_broadcast
from . import calls
from .calls import (
    as_result,
    find_function,
    find_tensor,
    from_host,
    is_tracing,
    read_result,
    to_host,
)
from .masked_selections import MaskedSelection, select_by_mask
from .ufuncs import UFUNCS, find_ufunc

if TYPE_CHECKING:
    from .array_methods import ArrayMethods
else:
    ArrayMethods = Tensor

__all__ = ["flatiter", "ndarray"]

# Elements of a copy, or of an array of zeros, that is made at once. Programs slice it and write to
# it next, which takes several times as long while it is pending. A larger one may fuse.
COMPUTED_AT_ONCE_MAX = 1 << 14

_dtypes: dict[Any, DType] = {
    **calls.PYTHON_DTYPES,
    None: float64,
    bool: bool_,
    **{d.__numpy_dtype__.type: d for d in BY_NAME.values() if d.__numpy_dtype__ is not None},
}


def as_dtype(dtype: Any) -> DType | None:
    """Return dovetail's dtype for a value of NumPy's `dtype=`, None for dtypes that it lacks.

    None is float64, as are Python's `float` and "d".
    """
    if type(dtype) is DType:
        return dtype
    try:
        return _dtypes[dtype]
    except (KeyError, TypeError):
        pass
    d = host.dtype(dtype)
    return BY_NAME.get(d.name) if d.isnative else None


def compute_few(x: Tensor) -> Tensor:
    """Evaluate an array of few elements, unless a function is captured, and return the array."""
    if expr_of(x).spec.size <= COMPUTED_AT_ONCE_MAX and not flags.captures:
        evaluate(x)
    return x


_FROM_HOST = {d.__numpy_dtype__: d for d in BY_NAME.values() if d.__numpy_dtype__ is not None}


def upload(x: Any) -> Any:
    """Return values of NumPy as ndarrays: copies of small arrays, others as `as_result` does."""
    dtype = _FROM_HOST.get(x.dtype) if type(x) is host.ndarray else None
    if dtype is None or x.nbytes >= calls.SHARED_BYTES_MIN:
        return as_result(x)
    copied = create_from_host(ndarray, x, dtype, default_device())
    if copied is not None:
        return copied
    return set_class(copy_from_host(x, dtype, default_device()), ndarray)


def read_scalar(x: Tensor) -> Any:
    """Return the element of a tensor of no dimensions: NumPy's scalar, or a copy as an ndarray.

    It is a copy if the value cannot be read now, in a captured function that does not compute it
    from constants, or carries a gradient.
    """
    tracer = tracer_api.current()
    is_unknown = tracer is not None and not tracer.has_constant_value(x)
    if x.requires_grad or is_unknown or expr_of(x).spec.dtype.__numpy_dtype__ is None:
        number = set_class(copies.copy(x), ndarray)
        pending_numbers[number] = True
        return number
    return expr_of(x).spec.dtype.__numpy_dtype__.type(x.item())  # type: ignore[union-attr]  # tested


_read_view, _multiply_matrices = Tensor.__getitem__, Tensor.__matmul__
_raise_to_power = Tensor.__pow__


class ArrayType(type):
    """The class of `ndarray`: a selection of a captured function is an instance, too."""

    def __instancecheck__(cls, x: object) -> bool:
        """Read a selection, because the caller may do with an array what a selection cannot."""
        return super().__instancecheck__(x.read() if type(x) is MaskedSelection else x)


class ndarray(ArrayMethods, metaclass=ArrayType):
    """An array of NumPy's kind: a Tensor with NumPy's methods, attributes and defaults.

    `np.ndarray(shape, dtype)` is an uninitialised array. Results of its operators, methods and of
    the functions of `dovetail.numpy` are ndarrays. An index of integers reads a NumPy scalar.

    - `shape`: an int, or a tuple of ints.
    - `dtype`: a dtype of NumPy or dovetail; float64 by default.
    - `buffer`, `offset`, `strides`: memory to use, as in NumPy; strides are in bytes.
    - `order`: accepted; memory is row-major.

    >>> import dovetail.numpy as np
    >>> x = np.array([[1, 2], [3, 4]])
    >>> x / 2
    array([[0.5, 1. ],
           [1.5, 2. ]])
    """

    __slots__ = ()
    _divides_as_python = True

    def __new__(
        cls,
        shape: Any,
        dtype: Any = float,
        buffer: Any = None,
        offset: int = 0,
        strides: Any = None,
        order: Any = None,
    ) -> Any:
        """Return an uninitialised array, or one over a buffer."""
        array: host.ndarray = host.ndarray(
            shape, host.dtype(to_host(dtype)), to_host(buffer), offset, strides
        )
        if buffer is None or not array.flags.writeable:
            return from_host(array)
        return set_class(tensor_from(array, copy=False), ndarray)

    def __init__(self, *values: object, **options: object) -> None:
        pass

    # --- elements

    def __getitem__(self, key: Any) -> Any:
        """Return a view, a copy, or the scalar at integers."""
        if flags.captures and (selection := select_by_mask(self, key)) is not None:
            return selection
        result = _read_view(self, key)
        if expr_of(result).spec.shape == () and not _has_ellipsis(key):
            return read_scalar(result)
        return result if type(result) is ndarray else set_class(result, ndarray)

    def __iter__(self) -> Iterator[Any]:
        """Yield the elements of a vector as scalars, else the rows as views."""
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d array")
        return iterate_elements(self)

    def item(self, *args: Any) -> Any:
        """Return an element as a Python number; an int counts in row-major order."""
        if not args:
            return Tensor.item(self)
        index = args[0] if len(args) == 1 else args
        if isinstance(index, tuple):
            return Tensor.item(_read_view(self, index))
        return Tensor.item(_read_view(manipulation.ravel(self), int(index)))

    # --- attributes

    def _reshape_in_place(self, shape: Any) -> None:
        evaluate(self)
        view = manipulation.reshape(self, shape, copy=False)
        become(self, expr_of(view))

    # The getter of Tensor is compiled: a Python one takes three times as long.
    shape = property(
        Tensor.shape.fget,  # type: ignore[attr-defined]  # a property
        _reshape_in_place,
        doc="The size of each dimension; an assignment reshapes the array in place.",
    )

    @property
    def size(self) -> Any:
        """The number of elements."""
        return expr_of(self).spec.size

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance to the next element of each dimension, in bytes."""
        return tuple([n * self.itemsize for n in self.stride()])

    @property
    def T(self) -> ndarray:
        """The array with its dimensions reversed: a view."""
        e = expr_of(self)
        is_small = e.tape is None and e.spec.size <= PENDING_ELEMENTS_MAX
        if e.op is not None and is_small and not is_observed():
            evaluate(self)
        view = transpose(self)
        if view is not None:
            return view  # type: ignore[return-value]  # it has the class of self
        return _as_view(manipulation.permute_dims(self, tuple(range(self.ndim))[::-1]))

    @property
    def flat(self) -> flatiter:
        """The elements in row-major order, to read, write and iterate."""
        return flatiter(self)

    @flat.setter
    def flat(self, values: Any) -> None:
        self.flat[:] = values

    @property
    def flags(self) -> Flags:
        """The layout of the memory, as NumPy describes it."""
        return Flags(self)

    @property
    def base(self) -> Any:
        """The array whose memory this one views, or None: a larger one, or one that it repeats."""
        group = self._aliases
        if group is None:
            return None
        others = [t for t in group.live_tensors() if t is not self and not any(repeats(t))]
        largest = max(others, key=lambda t: int(t.size), default=None)
        if any(repeats(self)):  # if its base is gone: a view of each element once
            once = tuple([0 if repeated else slice(None) for repeated in repeats(self)])
            return self[(*once, ...)] if largest is None else largest
        if (
            largest is None
            or largest.size < self.size
            or (largest.size == self.size and self.is_contiguous())
        ):
            return None
        return largest

    @property
    def data(self) -> memoryview:  # type: ignore[override]  # NumPy's meaning
        """The memory as a buffer."""
        return memoryview(self)  # type: ignore[arg-type]  # it has a buffer

    @property
    def ctypes(self) -> Any:
        """The address of the memory for `ctypes`."""
        return self.numpy().ctypes

    @property
    def real(self) -> Any:
        """The real parts: a view, unless a gradient flows."""
        return _real(self) if self.requires_grad else _view_part(self, 0)

    @real.setter
    def real(self, values: Any) -> None:
        if not self.requires_grad:
            self.real[...] = values
        else:
            setitem(self, ..., values + 1j * _imag(self) if self.dtype.kind == "c" else values)

    @property
    def imag(self) -> Any:
        """The imaginary parts: a view, unless a gradient flows or they are all 0."""
        is_view = self.dtype.kind == "c" and not self.requires_grad
        return _view_part(self, 1) if is_view else _imag(self)

    @imag.setter
    def imag(self, values: Any) -> None:
        if self.dtype.kind != "c":
            raise TypeError("imag: a real array has no imaginary part to set; use astype(complex)")
        if self.requires_grad:
            setitem(self, ..., _real(self) + 1j * values)
        else:
            self.imag[...] = values

    # --- text and numbers

    def __repr__(self) -> str:
        """Return the text that NumPy prints."""
        text = Tensor.__repr__(self) if is_tracing() else ""  # which ends a capture
        return text if is_tracing() else repr(_printable(self))

    def __str__(self) -> str:
        """Return the text that NumPy prints."""
        text = Tensor.__str__(self) if is_tracing() else ""
        return text if is_tracing() else str(_printable(self))

    def __format__(self, spec: str) -> str:
        """Format a number by `spec`; other arrays only without one."""
        return format(printable_values(self).item() if self.ndim == 0 and spec else str(self), spec)

    def __hash__(self) -> int:
        """Return the hash of a number; other arrays hash by identity, as tensors do.

        The read of a pending number ends a capture.
        """
        if expr_of(self).spec.shape == () and (not is_tracing() or self in pending_numbers):
            return hash(self.item())
        return object.__hash__(self)

    def __round__(self, ndigits: int | None = None) -> Any:
        """Round a number as Python does."""
        return round(self.item(), ndigits)

    def __floor__(self) -> int:
        return int(self.item() // 1)

    def __ceil__(self) -> int:
        return -int(-self.item() // 1)

    def __trunc__(self) -> int:
        return int(self.item())

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle the tensor, and give it this class when it is loaded."""
        plain = set_class(_read_view(self.detach() if self.requires_grad else self, ...), Tensor)
        return _restore, (plain,)

    # --- NumPy's protocols

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Call a ufunc of NumPy with ndarrays."""
        if method == "__call__" and not options:
            operate, x = _OPERATORS.get(ufunc), inputs[-1]  # `scalar * x`
            if operate is not None and type(x) is ndarray:
                kind = type(inputs[0])
                if kind is host.float64 and expr_of(x).spec.dtype is float64:
                    return operate(float(inputs[0]), x)
                if kind is host.int64 and expr_of(x).spec.dtype is int64:
                    return operate(int(inputs[0]), x)
        return getattr(find_ufunc(ufunc), method)(*inputs, **options)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Call a function of NumPy with ndarrays."""
        return find_function(function)(*args, **options)

    # --- methods that differ

    def __abs__(self) -> Any:
        """Return the absolute values; bools are their own."""
        return UFUNCS["absolute"](self)

    def __pow__(self, other: Any) -> Any:
        """Return the powers; the square of an array has the dtype of `np.square`."""
        if type(other) is int and other == 2 and self not in pending_numbers:
            return UFUNCS["square"](self)
        return read_result(_raise_to_power(self, other))

    def __matmul__(self, other: Any) -> Any:
        """Return the matrix product, of NumPy's dtype."""
        if isinstance(other, Tensor) and other.dtype is not self.dtype:
            return read_result(UFUNCS["matmul"](self, other))
        return read_result(_multiply_matrices(self, other))

    def astype(
        self,
        dtype: Any,
        order: str = "K",
        casting: str = "unsafe",
        subok: bool = True,
        copy: bool = True,
        **options: Any,
    ) -> ndarray:
        """Return the elements as another dtype: a copy unless `copy` is False."""
        target = as_dtype(calls.as_argument(dtype))
        if target is None:
            return to_host(self).astype(dtype)  # type: ignore[no-any-return]  # text or objects
        own = self.dtype.__numpy_dtype__
        if casting != "unsafe" and not host.can_cast(own, target.__numpy_dtype__, casting):  # type: ignore[arg-type]  # NumPy checks it
            raise TypeError(f"astype: {own} does not fit {target.name} with casting={casting!r}")
        if target is self.dtype:
            return _as_view(copies.copy(self)) if copy else self
        return _as_view(calls.cast_values(self, target))

    def view(self, dtype: Any = None, type: Any = None) -> ndarray:  # type: ignore[override]  # NumPy has other parameters
        """Return the same memory, as another dtype if given."""
        if dtype is None or (isinstance(dtype, _type) and issubclass(dtype, Tensor)):
            return _as_view(_read_view(self, ...))
        target = as_dtype(calls.as_argument(dtype))
        if target is None:
            return to_host(self).view(dtype)  # type: ignore[no-any-return]  # text or objects
        return _as_view(Tensor.view(self, target))

    def copy(self, order: str = "C") -> ndarray:
        """Return a copy with memory of its own."""
        result = copy_tensor(self)
        if result is None:
            result = set_class(copies.copy(self), ndarray)
            if expr_of(self).op is None:
                compute_few(result)
        return result  # type: ignore[return-value]  # it has the class of self

    def flatten(self, order: str = "C") -> ndarray:  # type: ignore[override]  # NumPy has other parameters
        """Return a copy with one dimension; for order "F" the first index varies fastest."""
        x = self if order == "C" else _transpose_to_order(self, order)
        flat = copy_tensor(x, True)
        if flat is not None:
            return flat  # type: ignore[return-value]  # it has the class of self
        return x.copy().reshape(-1)

    def ravel(self, order: str = "C") -> ndarray:
        """Return the elements with one dimension: a view of contiguous memory, else a copy."""
        x = self if order == "C" else _transpose_to_order(self, order)
        return (x if x.is_contiguous() else x.copy()).reshape(-1)

    def reshape(self, *shape: Any, order: str = "C", copy: bool | None = None) -> ndarray:
        """Return the elements with another shape: a view if possible."""
        sizes = _read_ints(shape)
        if order in ("F", "f") or (order in ("A", "a") and self.flags.fnc):
            return self.T.reshape(_complete(sizes, self.size)[::-1], copy=copy).T
        return _as_view(manipulation.reshape(self, sizes, copy=copy))

    def transpose(self, *axes: Any) -> ndarray:
        """Return a view with the dimensions in another order, by default reversed."""
        if not axes or axes[0] is None:
            return self.T
        return _as_view(manipulation.permute_dims(self, _read_ints(axes)))

    def squeeze(self, axis: Any = None) -> ndarray:
        """Return a view without dimensions of size 1."""
        axis = None if self.ndim == 0 and axis in (0, -1) else axis
        return _as_view(manipulation.squeeze(self, axis))

    def conj(self) -> ndarray:  # type: ignore[override]  # NumPy has no `out`
        """Return the complex conjugates; an array of real numbers is returned itself."""
        return UFUNCS["conjugate"](self) if self.dtype.kind == "c" else self

    conjugate = conj

    def fill(self, value: Any) -> None:
        """Write a number to all elements; as in NumPy, numbers stay as they are."""
        if self not in pending_numbers:
            self[...] = value

    def sort(  # type: ignore[override]  # NumPy has other parameters
        self, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
    ) -> None:
        """Sort in place along an axis."""
        elements = editable_array(self) if kind is None and stable is None else None
        has_axis = axis in range(-self.ndim, self.ndim)
        if elements is not None and elements.dtype.kind != "c" and has_axis:
            elements.sort(axis, kind="stable")  # the order of `dt.sort`, also of -0.0 and 0.0
            return
        setitem(self, ..., _functions("sort")(self, axis))

    def partition(
        self, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
    ) -> None:
        """Partition in place along an axis."""
        setitem(self, ..., _functions("partition")(self, kth, axis))

    def resize(self, *shape: Any, refcheck: bool = True) -> None:
        """Change the shape in place; new elements are 0. The memory is another one afterwards."""
        sizes = _read_ints(shape)
        old = self.numpy().copy()
        old.resize(sizes, refcheck=False)
        become(self, expr_of(from_host(old)))

    def put(  # type: ignore[override]  # NumPy has other parameters
        self, indices: Any, values: Any, mode: str = "raise"
    ) -> None:
        """Write values at positions in row-major order."""
        _functions("put")(self, indices, values, mode)

    def choose(self, *choices: Any, out: Any = None, mode: str = "raise") -> ndarray:
        """Return elements of the arrays, or of those of one sequence, that these indices choose."""
        arrays = choices[0] if len(choices) == 1 else choices
        chosen: ndarray = _functions("choose")(self, arrays, out=out, mode=mode)
        return chosen

    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> ndarray:
        """Return the slices along an axis at which `condition` is True."""
        chosen: ndarray = _functions("compress")(condition, self, axis=axis, out=out)
        return chosen

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Accept flags that are true already. Raises: ArgumentError for write=False."""
        if write is not None and not write:
            raise ArgumentError(
                "setflags: dovetail cannot protect memory; pass a copy, x.copy(), to code that "
                "must not write"
            )

    def tofile(self, fid: Any, sep: str = "", format: str = "%s") -> None:
        """Write the elements to a file."""
        to_host(self).tofile(fid, sep, format)

    def tobytes(self, order: str = "C") -> bytes:
        """Return the bytes of the elements in row-major order."""
        return to_host(self).tobytes(order)  # type: ignore[no-any-return]  # bytes

    def byteswap(self, inplace: bool = False) -> ndarray:
        """Return the elements with their bytes reversed."""
        swapped = to_host(self).byteswap(inplace)
        return self if inplace else from_host(swapped)

    def dump(self, file: Any) -> None:
        """Pickle NumPy's array of the elements to a file."""
        to_host(self).dump(file)

    def dumps(self) -> bytes:
        """Return NumPy's pickle of the elements."""
        return to_host(self).dumps()  # type: ignore[no-any-return]  # bytes

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write values, cast to the dtype as NumPy does: floats lose their fraction in integers."""
        calls.require_array(self)
        require_not_broadcast("setitem", expr_of(self))  # as NumPy, but for rows
        if type(value) is MaskedSelection:
            if value.write_to(self, key):
                return
            value = value.read()
        elif flags.captures and type(value) in (tuple, list) and find_tensor(value) is not None:
            value = calls.join(value)
        try:
            setitem(self, key, value)
        except ShapeError:
            if not isinstance(value, (Tensor, host.ndarray)) or value.shape[:1] != (1,):
                raise
            self[key] = value[0]  # NumPy drops axes of size 1 in front of a value
        except (DTypeError, GradientError) as error:
            if isinstance(error, GradientError) and find_tensor([value]) is None:
                raise
            stored = calls.as_stored(self.dtype, value)
            if stored is value:
                raise
            setitem(self, key, stored)


_type = type
_OPERATORS = {
    host.add: operator.add,
    host.subtract: operator.sub,
    host.multiply: operator.mul,
    host.divide: operator.truediv,
    host.equal: operator.eq,
    host.not_equal: operator.ne,
    host.less: operator.lt,
    host.less_equal: operator.le,
    host.greater: operator.gt,
    host.greater_equal: operator.ge,
}


def _read_results_of(operate: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator whose results without dimensions are NumPy's scalars."""

    @wraps(operate)
    def read(*operands: Any) -> Any:
        return read_result(operate(*operands))

    return read


_KEPT = {"__contains__", "__divmod__", "__rdivmod__", *ndarray.__dict__}
for _name, _operate in OPERATORS.items():
    is_inplace = _name.startswith("__i") and _name != "__invert__"
    if callable(_operate) and _name not in _KEPT and not is_inplace:
        setattr(ndarray, _name, _read_results_of(_operate))
_REFLECTED = {host.add: 0, host.subtract: 1, host.multiply: 2, host.divide: 3}
register_subclass(ndarray)
install_element_slots(ndarray, read_result)
ndarray.__array_ufunc__ = build_array_ufunc(ndarray.__array_ufunc__, _REFLECTED)  # type: ignore[method-assign]  # the same signature
calls.register_ndarray(ndarray)
_real, _imag = find_function(host.real), find_function(host.imag)
# Functions whose results of no dimensions are scalars in NumPy.
_SCALAR_RESULTS = """
all allclose amax amin any argmax argmin around array_equal array_equiv average corrcoef
count_nonzero digitize dot einsum fix flip inner iscomplex isneginf isposinf isreal kron max mean
median min nan_to_num nanargmax nanargmin nanmax nanmean nanmedian nanmin nanpercentile nanprod
nanquantile nanstd nansum nanvar percentile prod ptp quantile round searchsorted sinc std sum trace
trapezoid unstack var vdot
"""
_LINALG_SCALAR_RESULTS = """
cond det lstsq matrix_norm matrix_rank multi_dot norm slogdet trace vecdot vector_norm
"""


def _read_results(theirs: Callable[..., Any]) -> None:
    """Let the function of the namespace return scalars for results of no dimensions."""
    call = find_function(theirs)
    op = HOST_REDUCTIONS.get(theirs.__name__)
    is_quantile = theirs.__name__.endswith(("median", "quantile", "percentile"))

    @wraps(theirs, updated=())
    def reduce(*args: Any, **options: Any) -> Any:
        """Call the function, and read a result of no dimensions."""
        if op is not None and args and type(args[0]) is ndarray:
            small = reduce_on_host(op, args, options)
            if small is not None:
                return small
        result = call(*args, **options)
        keeps_array = "out" in options or (is_quantile and options.get("keepdims"))
        return result if keeps_array else read_result(result, args)

    calls._wrappers[theirs] = reduce


for _module, _names in ((host, _SCALAR_RESULTS), (host.linalg, _LINALG_SCALAR_RESULTS)):
    for _name in _names.split():
        if hasattr(_module, _name):
            _read_results(getattr(_module, _name))
_SAME_METHODS = """
all any argmax argmin argpartition argsort cumprod cumsum diagonal dot max mean min nonzero
prod repeat round searchsorted std sum swapaxes take trace var
"""


def _functions(name: str) -> Callable[..., Any]:
    """Return the function of the namespace by its name."""
    return find_function(getattr(host, name))


# Reductions that are those of Tensor for these dtypes, so that no parameter is translated.
_DIRECT_REDUCTIONS = {
    **dict.fromkeys(["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"], "f8 i8"),
    "mean": "f8",
}


def _attach_reduction(name: str, codes: str) -> None:
    """Set the method of a reduction: Tensor's for arrays of these dtypes, else NumPy's function."""
    ours, general = getattr(Tensor, name), find_function(getattr(host, name))
    dtypes = {_dtypes[host.dtype(code).type] for code in codes.split()}
    op = HOST_REDUCTIONS[name]

    @wraps(getattr(host.ndarray, name), updated=(), assigned=("__name__", "__doc__"))
    def method(*args: Any, **options: Any) -> Any:
        if type(args[0]) is ndarray:
            small = reduce_on_host(op, args, options)
            if small is not None:
                return small
        return reduce(*args, **options)

    def reduce(self: ndarray, axis: Any = None, *args: Any, **options: Any) -> Any:
        """Call Tensor's method if it takes the arguments as they are, else NumPy's function."""
        is_plain = not args and (axis is None or type(axis) is int)
        s = expr_of(self).spec
        if is_plain and s.dtype in dtypes and (axis is None or s.shape):
            if not options:
                return read_result(ours(self, axis))
            if len(options) == 1 and type(options.get("keepdims")) is bool:
                return read_result(ours(self, axis, **options))
        return general(self, axis, *args, **options)

    setattr(ndarray, name, method)


for _name in _SAME_METHODS.split():
    setattr(ndarray, _name, _functions(_name))
for _name, _codes in _DIRECT_REDUCTIONS.items():
    _attach_reduction(_name, _codes)


def _transpose_to_order(x: ndarray, order: str) -> ndarray:
    """Return `x` transposed so that its elements, row by row, are in an order of NumPy.

    Raises: ValueError for an unknown order.
    """
    letter = str(order or "K").upper()
    if letter not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K', got {order!r}")
    if letter == "F" or (letter == "A" and x.flags.fnc):
        return x.T
    if letter != "K":
        return x
    strides = x.stride()
    return x.transpose(sorted(range(x.ndim), key=lambda d: -abs(strides[d])))


def _has_ellipsis(key: Any) -> bool:
    """Return True if an index has `...`, which makes a view of one element an array."""
    return key is ... or (type(key) is tuple and any(k is ... for k in key))


def _as_view(x: Tensor) -> ndarray:
    """Return a result that may be an argument or its view as an ndarray."""
    return x if type(x) is ndarray else set_class(x, ndarray)


def _read_ints(args: tuple[Any, ...]) -> tuple[int, ...]:
    """Return the ints of a call with several ints, or with one sequence or array of them."""
    values = args[0] if len(args) == 1 else args
    if isinstance(values, (Tensor, host.ndarray)):
        values = values.tolist()
    return tuple(map(operator.index, values if hasattr(values, "__iter__") else (values,)))


def _view_part(x: Tensor, k: int) -> Any:
    """Return a view of the real (0) or imaginary (1) parts; of real numbers, all of them."""
    part = x.dtype.part
    if part is x.dtype:
        return _as_view(_read_view(x, ...))
    return _as_view(_read_view(Tensor.view(_read_view(x, (..., None)), part), (..., k)))


def _printable(x: Tensor) -> host.ndarray:
    """Return the values to print, without a gradient."""
    array: host.ndarray = (x.detach() if x.requires_grad else x).numpy()
    return array


def _complete(sizes: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return a shape with the size that -1 stands for."""
    if -1 not in sizes:
        return sizes
    product = 1
    for n in sizes:
        product *= n if n != -1 else 1
    return tuple([size // max(product, 1) if n == -1 else n for n in sizes])


def _restore(x: Tensor) -> Tensor:
    """Give an unpickled tensor the class ndarray."""
    return set_class(x, ndarray)


def repeats(x: Tensor) -> list[bool]:
    """Return for each axis of a tensor whether it has the same elements at all positions."""
    return [step == 0 and n > 1 for step, n in zip(x.stride(), x.shape, strict=True)]


class Flags:
    """The flags of an ndarray: `x.flags.c_contiguous`, `x.flags["C_CONTIGUOUS"]`.

    - `x`: the array.
    """

    _NAMES = ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "ALIGNED", "WRITEBACKIFCOPY")

    def __init__(self, x: ndarray) -> None:
        theirs: Any = x.numpy().flags
        self._values = {name: bool(theirs[name]) for name in self._NAMES}
        self._values["OWNDATA"] = x.base is None
        c, f = self._values["C_CONTIGUOUS"], self._values["F_CONTIGUOUS"]
        self._values |= {"FNC": f and not c, "FORC": f or c, "CONTIGUOUS": c, "FORTRAN": f}
        self._values |= {"BEHAVED": self._values["ALIGNED"] and self._values["WRITEABLE"]}
        self._values |= {"CARRAY": self._values["BEHAVED"] and c}
        self._values |= {"FARRAY": self._values["BEHAVED"] and f and not c}
        shorts = {"C": "C_CONTIGUOUS", "F": "F_CONTIGUOUS", "O": "OWNDATA", "W": "WRITEABLE"}
        self._values |= {short: self._values[name] for short, name in shorts.items()}

    def __getitem__(self, name: str) -> bool:
        """Return a flag by NumPy's name."""
        return self._values[name]

    def __getattr__(self, name: str) -> bool:
        if name.upper() not in self.__dict__.get("_values", ()):
            raise AttributeError(f"flags: there is no flag {name!r}; see numpy.ndarray.flags")
        return self._values[name.upper()]

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "_values":
            object.__setattr__(self, name, value)
        elif name != "writeable" or not value:
            raise ArgumentError(f"flags: dovetail cannot set {name}; pass a copy, x.copy()")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and self._values == other._values

    __hash__ = None  # type: ignore[assignment]  # as NumPy's flags

    def __repr__(self) -> str:
        return "\n".join(f"  {name} : {self._values[name]}" for name in self._NAMES) + "\n"


class flatiter:
    """The elements of an ndarray in row-major order: `x.flat`.

    - `x`: the array.
    """

    def __init__(self, x: ndarray) -> None:
        self.base, self.index = x, 0

    @property
    def coords(self) -> tuple[int, ...]:
        """The position of the next element."""
        return tuple(map(int, host.unravel_index(self.index, self.base.shape)))

    def __len__(self) -> int:
        return int(self.base.size)

    def __iter__(self) -> flatiter:
        return self

    def __next__(self) -> Any:
        if self.index >= self.base.size:
            raise StopIteration
        self.index += 1
        return self[self.index - 1]

    def __getitem__(self, key: Any) -> Any:
        """Return an element, or a copy of several."""
        result = manipulation.ravel(self.base)
        value = getitem(result, key)
        return read_scalar(value) if value.ndim == 0 else set_class(copies.copy(value), ndarray)

    def __setitem__(self, key: Any, values: Any) -> None:
        """Write elements; values are repeated as often as needed."""
        require_not_broadcast("flat", expr_of(self.base))
        positions = host.arange(self.base.size)[to_host(key)]
        if positions.size == 0:
            return
        if isinstance(values, (Tensor, host.ndarray, list, tuple)):
            row = manipulation.ravel(calls.join(values))
            if not row.size:
                raise ShapeError("flat: cannot write from an empty array")
            if row.size != positions.size:
                row = getitem(row, host.resize(host.arange(row.size), positions.size))
            values = manipulation.reshape(row, positions.shape)
        values = calls.as_stored(self.base.dtype, values)
        if self.base.is_contiguous() and self.base.ndim:
            setitem(manipulation.reshape(self.base, (-1,)), positions, values)
        else:
            setitem(self.base, tuple(host.unravel_index(positions, self.base.shape)) or ..., values)

    def copy(self) -> Any:
        """Return a copy of the elements as a vector."""
        return self.base.flatten()

    def __array__(self, dtype: Any = None, copy: Any = None) -> host.ndarray:
        return to_host(self.copy()).astype(dtype)  # type: ignore[no-any-return]  # an array

    def __eq__(self, other: object) -> Any:
        return self.copy() == other

    __hash__ = None  # type: ignore[assignment]  # as NumPy's arrays


_UFUNC_NAMES = {
    "pow": "power",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}


# Ops of which NumPy computes bools, and all integers if they are divided, in another dtype.
_PROMOTED_BOOLS = """
    divide pow floor_divide remainder bitwise_left_shift bitwise_right_shift
""".split()  # noqa: SIM905


def find_promotion(op: Op, *operands: Any) -> Any:
    """Return the ufunc for an op if NumPy's promotion of its operands may differ, else None.

    NumPy computes integers beside floats, and quotients of integers, in float64.

    - `operands`: dtypes of tensors, types of numbers.
    """
    ufunc = UFUNCS.get(_UFUNC_NAMES.get(op.name, op.name))
    if host.ndarray in operands:
        return ufunc
    if list in operands or tuple in operands:
        return _multiply_by_list if op.name == "multiply" else ufunc
    numpy_kinds = {k: _dtypes.get(k, k) for k in operands if _is_scalar_type(k)}
    kinds = [int if k is Size else numpy_kinds.get(k, k) for k in operands]
    if op.name == "pow" and isinstance(kinds[1], DType) and kinds[1].kind == "i":
        return ufunc  # it refuses negative exponents of integers
    return ufunc if _differs(op.name, kinds) else None


def _multiply_by_list(a: Any, b: Any) -> Any:
    """Return the product with a list or tuple; a pending number repeats it, as NumPy's scalar.

    The read of the number ends a trace. Raises: TypeError for a number that is no integer.
    """
    x, values = (a, b) if isinstance(a, Tensor) else (b, a)
    return values * operator.index(x) if x in pending_numbers else UFUNCS["multiply"](a, b)


def _is_scalar_type(kind: Any) -> bool:
    """Return True for a type of NumPy's scalars."""
    return isinstance(kind, type) and issubclass(kind, host.generic)


def _differs(op: str, kinds: list[Any]) -> bool:
    """Return True if NumPy's promotion of two kinds of operands may differ from dovetail's."""
    numbers = (bool, int, float, complex)
    if not all(isinstance(k, DType) or k in numbers for k in kinds):
        return False
    letters = [k.kind if isinstance(k, DType) else "bifc"[numbers.index(k)] for k in kinds]
    if "c" in letters and op in ("less", "less_equal", "greater", "greater_equal"):
        return True  # NumPy orders complex numbers
    integers = [letter in "biu" for letter in letters]
    if not all(integers):
        return any(integers)
    return (
        op in _PROMOTED_BOOLS
        and (op == "divide" or letters == ["b", "b"] or kinds[0] is bool_ or kinds[1] is bool_)
    ) or ({*kinds} & {uint64} != set() and "i" in [k.kind for k in kinds if isinstance(k, DType)])


promotions[ndarray] = find_promotion, IdentityCache()
number_readers[ndarray] = read_result
