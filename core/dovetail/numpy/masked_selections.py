"""Selections by a mask in a captured function, where the number of true elements is not known."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as host

from ..dtypes import bool_, float32, float64
from ..engine import tracer_api
from ..functions.creation.constructors import arange
from ..functions.datatypes import cast
from ..functions.elementwise.op_functions import where
from ..functions.indexing.index_reads import getitem, take
from ..functions.indexing.index_writes import setitem
from ..functions.indexing.masks import nonzero
from ..functions.shape.copies import copy
from ..functions.shape.manipulation import reshape
from ..graph.expr import Expr, storage_of
from ..ops.table import COPY
from ..tensor.c_fields import expr_of, is_strided, set_class
from ..tensor.tensor import Tensor
from .calls import as_result, as_stored, find_function, ndarray_class
from .ufuncs import find_ufunc

MASK_DEPTH_MAX = 8  # of the expressions of two masks that are compared
NUMBERS = (int, float, complex, host.number, host.bool_)
ARITHMETIC = "add sub mul truediv pow and or xor"
COMPARISONS = "lt le gt ge eq ne"
UNARY = "neg pos abs invert"
MEANS = (float32, float64)  # dtypes of sums that are divided by the number of elements
REDUCING = ("sum", "mean", "any", "all")
SUPPORTED_KEYS = re.compile("[se]*i*mi*[se]*")  # letters of `_kind_of_part`
# Special methods that read the elements first.
READING = """
    bool complex contains delitem divmod float floordiv format getitem ifloordiv
    ilshift imatmul imod index int irshift iter len lshift matmul mod rdivmod reduce_ex repr
    rfloordiv rlshift rmatmul rmod round rrshift rshift setitem str
"""
# NumPy's functions of elements that are defined for all numbers.
ELEMENTWISE = frozenset(
    getattr(host, name)
    for name in """
        abs add arccos arccosh arcsin arcsinh arctan arctan2 arctanh bitwise_and bitwise_or
        bitwise_xor cbrt ceil conj copysign cos cosh deg2rad divide equal exp exp2 expm1 fabs floor
        fmax fmin greater greater_equal heaviside hypot invert isfinite isinf isnan less less_equal
        log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor maximum
        minimum multiply negative not_equal positive rad2deg rint sign signbit sin sinh sqrt square
        subtract tan tanh trunc
    """.split()  # noqa: SIM905
)


class MaskedSelection(tracer_api.StandIn):
    """The elements of an array under a mask, `x[mask]`, with an unknown number of them.

    Elementwise functions compute all elements of the array. A write `x[mask] = selection` of the
    same mask chooses between old and new ones, and a sum adds the chosen ones in their order. Every
    other use reads the number of the elements, so that the function runs without a capture.

    - `values`: the array, with axes from `axis` on as the mask has them.
    - `mask`: True at the elements that are selected.
    """

    __slots__ = ("_axis", "_elements", "_mask", "_values")
    __hash__ = object.__hash__

    def __init__(self, values: Any, mask: Tensor, axis: int) -> None:
        self._values, self._mask, self._axis = values, mask, axis
        self._elements: Any = None

    def __setattr__(self, name: str, value: Any) -> None:
        """Set an attribute of the elements, such as their shape."""
        if name in MaskedSelection.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self.read(), name, value)

    def read(self) -> Any:
        """Return the elements as an ndarray. Raises: CaptureError with `fullgraph=True`."""
        if self._elements is None:
            key = (*[slice(None)] * self._axis, self._mask)
            self._elements = as_result(getitem(self._values, key))
        return self._elements

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._values.dtype

    @property
    def ndim(self) -> int:
        """The number of dimensions of the elements."""
        return int(self._values.ndim) - self._mask.ndim + 1

    def apply(self, function: Callable[..., Any], *operands: Any) -> Any:
        """Return an elementwise function of operands: a selection unless elements must be read."""
        result = self._apply_to_all(function, operands)
        return function(*map(read, operands)) if result is None else result

    def apply_in_place(self, function: Callable[..., Any], other: Any) -> Any:
        """Apply a function of `operator` in place; return the selection, or the array read."""
        result = self._apply_to_all(function, (self, other))
        if result is None or result.dtype is not self.dtype:
            update = getattr(operator, f"i{function.__name__.strip('_')}")
            return update(self.read(), read(other))
        self._values = result._values
        return self

    def _apply_to_all(
        self, function: Callable[..., Any], operands: Sequence[Any]
    ) -> MaskedSelection | None:
        """Apply a function to all elements; return None if the selected ones must be read."""
        is_defined = function is not operator.pow or self.dtype.kind in "fc"
        if self._elements is not None or not is_defined:
            return None
        if not all(self._selects_same(x) or _is_number(x) for x in operands):
            return None
        values = [x._values if type(x) is MaskedSelection else x for x in operands]
        return MaskedSelection(function(*values), self._mask, self._axis)

    def copy(self, order: str = "C") -> Any:
        """Return an independent copy: a selection, or an array if the elements must be read."""
        must_read = self._elements is not None or order != "C"
        return self.read().copy(order) if must_read else self.apply(lambda x: x, self)

    def _selects_same(self, x: Any) -> bool:
        """Return True for a selection by an equal mask, from an array of the same shape."""
        return x is self or (
            type(x) is MaskedSelection
            and x._elements is None
            and (x._axis, x._values.shape) == (self._axis, self._values.shape)
            and _are_equal(expr_of(x._mask), expr_of(self._mask))
        )

    def write_to(self, x: Tensor, key: Any) -> bool:
        """Write `x[key] = self` without a read; return False, unwritten, for other masks."""
        split = None if self._elements is not None else split_key(x, key)
        if split is None:
            return False
        view, mask, axis = split
        same_place = (axis, view.shape) == (self._axis, self._values.shape)
        if not same_place or not _are_equal(expr_of(mask), expr_of(self._mask)):
            return False
        new = as_stored(view.dtype, self._values)
        setitem(view, ..., where(self._broadcast_mask(), new, view))
        return True

    def _broadcast_mask(self) -> Tensor:
        """Return the mask with an axis of size 1 for each axis of the values after its own."""
        after = self._values.ndim - self._axis - self._mask.ndim
        return reshape(self._mask, (*self._mask.shape, *(1,) * after))

    def reduce(self, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Return a reduction of the elements, without a read along the masked axis or over all.

        - `name`: one of `REDUCING`. A mean is the sum divided by the number of elements.
        """
        axis = args[0] if args else options.get("axis")
        is_plain = len(args) + len(options) <= 1 and options.keys() <= {"axis"}
        along = type(axis) is int and axis in (self._axis, self._axis - self.ndim)
        whole = axis is None and self._axis == 0 and (self.ndim == 1 or name != "mean")
        must_read = self._elements is not None or (name == "mean" and self.dtype not in MEANS)
        if must_read or not is_plain or not (along or whole):
            return getattr(self.read(), name)(*args, **options)
        padded = self._pad(fill=name == "all")
        result = getattr(padded, "sum" if name == "mean" else name)(self._axis if along else None)
        return result / cast(self._mask.sum(), self.dtype) if name == "mean" else result

    def _pad(self, fill: bool) -> Any:
        """Return the array with `fill` for the elements that are not selected.

        Selected floats move to the front, so that a sum adds them in their order. Each lane of a
        sum begins with 0, so that more zeros change no bit.
        """
        shape, count = self._values.shape, self._mask.size
        before, after = shape[: self._axis], shape[self._axis + self._mask.ndim :]
        mask = reshape(self._mask, (count,))
        values = reshape(self._values, (*before, count, *after))
        if self.dtype.kind in "fc":
            values = take(values, nonzero(mask, size=count)[0], axis=self._axis)
            mask = arange(count, device=mask.device) < mask.sum()
        padded = where(reshape(mask, (count, *[1] * len(after))), values, fill)
        return set_class(padded, ndarray_class())

    # --- NumPy's protocols, and all else

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return NumPy's array of the elements."""
        return host.asarray(self.read(), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Call a ufunc of NumPy with selections."""
        function = find_ufunc(ufunc)
        if method == "__call__" and not options and ufunc in ELEMENTWISE:
            return self.apply(function, *inputs)
        call = function if method == "__call__" else getattr(function, method)
        return call(*[read(x) for x in inputs], **{k: read(v) for k, v in options.items()})

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """Call a function of NumPy with selections."""
        name = function.__name__
        if name in REDUCING and args and args[0] is self:
            return self.reduce(name, args[1:], options)
        ours = find_function(function)
        return ours(*[read(x) for x in args], **{k: read(v) for k, v in options.items()})

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the elements, which are read."""
        if name.startswith("__"):
            raise AttributeError(f"'ndarray' object has no attribute {name!r}")
        return getattr(self.read(), name)


def select_by_mask(x: Tensor, key: Any) -> MaskedSelection | None:
    """Return `x[key]` if a trace does not know how many elements a mask in the key selects."""
    if not any(isinstance(k, Tensor) for k in (key if type(key) is tuple else (key,))):
        return None  # numbers and slices, in most reads
    tracer = tracer_api.current()
    split = None if tracer is None or not tracer.is_capture else split_key(x, key)
    if split is None or x.requires_grad or tracer.has_constant_value(split[1]):  # type: ignore[union-attr]  # there is one
        return None
    view, mask, axis = split
    return MaskedSelection(set_class(copy(view), ndarray_class()), copy(mask), axis)


def split_key(x: Tensor, key: Any) -> tuple[Tensor, Tensor, int] | None:
    """Return the view of `x` that a mask in the key selects from, the mask, and its first axis.

    The key may have slices, `...`, and integers beside the mask. None is returned for other keys.
    """
    indices = key if type(key) is tuple else (key,)
    kinds = "".join(map(_kind_of_part, indices))
    match = SUPPORTED_KEYS.fullmatch(kinds)
    if match is None or kinds.count("e") > 1 or not is_strided(x):
        return None
    at = kinds.index("m")
    mask, before, after = indices[at], kinds[:at], kinds[at:]
    if len(kinds) - kinds.count("e") + mask.ndim - 1 > x.ndim:
        return None
    view = x
    if len(indices) > 1:
        view = getitem(x, (*indices[:at], *[slice(None)] * mask.ndim, *indices[at + 1 :]))
    axis = view.ndim - mask.ndim - after.count("s") if "e" in before else before.count("s")
    return (view, mask, axis) if view.shape[axis : axis + mask.ndim] == mask.shape else None


def _kind_of_part(part: Any) -> str:
    """Return a letter for a part of a key: mask, integer, slice, ellipsis, or "?" for others."""
    if isinstance(part, Tensor):
        return "m" if part.dtype is bool_ and part.ndim and is_strided(part) else "?"
    if isinstance(part, slice):
        return "s"
    if part is ...:
        return "e"
    return "i" if isinstance(part, (int, host.integer)) and not isinstance(part, bool) else "?"


def _are_equal(a: Expr, b: Expr, depth: int = MASK_DEPTH_MAX) -> bool:
    """Return True if two nodes have equal values for sure: equal ops of the same leaves.

    A pending copy of a leaf shows that its memory was not written since: else it would be computed.
    """
    a, b = _source(a), _source(b)
    if a is b:
        return True
    if a.spec is not b.spec or a.op is not b.op or not depth:
        return False
    if a.op is None:
        same_memory = storage_of(a) is storage_of(b) and not storage_of(a).pending
        return same_memory and (a.strides, a.offset) == (b.strides, b.offset)
    same_op = a.op.kind in ("map", "view") and a.attrs == b.attrs and len(a.args) == len(b.args)
    return same_op and all(_is_equal_argument(a, b, k, depth) for k in range(len(a.args)))


def _source(e: Expr) -> Expr:
    """Return the node whose values a copy, or a leaf over pending memory, has."""
    while True:
        pending = storage_of(e).pending if e.op is None and not e.moves else None
        if e.op is COPY:
            e = e.args[0]
        elif pending is not None and pending.spec is e.spec:
            e = pending
        else:
            return e


def _is_equal_argument(a: Expr, b: Expr, k: int, depth: int) -> bool:
    """Return True if argument `k` of two nodes is equal for sure."""
    x, y = a.args[k], b.args[k]
    if type(x) is Expr or type(y) is Expr:
        return type(x) is type(y) and _are_equal(x, y, depth - 1)
    tracer = tracer_api.current()
    return tracer is not None and tracer.has_equal_number(a, b, k)


def read(x: Any) -> Any:
    """Return an object with the elements in place of selections, also in lists and tuples."""
    if type(x) is MaskedSelection:
        return x.read()
    return type(x)(map(read, x)) if type(x) in (list, tuple) else x


def _is_number(x: Any) -> bool:
    """Return True for a number, which may be a tensor of no dimensions without a gradient.

    The gradient of such a tensor would be NaN if a function of an element that is not selected is.
    """
    if isinstance(x, Tensor):
        return not x.ndim and not x.requires_grad
    return isinstance(x, NUMBERS)


def _install_operators() -> None:
    """Set the reductions and the special methods of selections."""

    def install(name: str, method: Callable[..., Any]) -> None:
        method.__name__ = name if name in REDUCING else f"__{name}__"
        setattr(MaskedSelection, method.__name__, method)

    for name in REDUCING:
        install(name, lambda self, *args, n=name, **options: self.reduce(n, args, options))

    for name in (*ARITHMETIC.split(), *COMPARISONS.split()):
        operate = getattr(operator, f"__{name}__")
        install(name, lambda self, other, f=operate: self.apply(f, self, other))
    for name in ARITHMETIC.split():
        operate = getattr(operator, f"__{name}__")
        install(f"r{name}", lambda self, other, f=operate: self.apply(f, other, self))
        install(f"i{name}", lambda self, other, f=operate: self.apply_in_place(f, other))
    for name in UNARY.split():
        operate = getattr(operator, f"__{name}__")
        install(name, lambda self, f=operate: self.apply(f, self))
    for name in READING.split():
        install(name, lambda self, *args, n=f"__{name}__": getattr(self.read(), n)(*read(args)))


_install_operators()
