"""The meaning of dovetail's functions in NumPy, op by op: `import numpy_oracle as dt`.

It shares no code with dovetail, so it cannot have dovetail's errors. It accepts only integral
values of small magnitude, for which every op is exact in every order of summation: any difference
is an error. Anything else raises `Unfit`.
"""

from __future__ import annotations

import builtins
import contextlib
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

bool = np.dtype("?")  # as `dt.bool`
int64, float32, float64 = np.dtype("i8"), np.dtype("f4"), np.dtype("f8")
LADDER = [bool, int64, float32, float64]  # an op's dtype is the highest of its operands'
LARGEST = 2**12  # bound of values; sums and products may reach EXACT in between
EXACT = 2**24
MANY = 2**17  # bound of a result's elements, so that no program requests all memory

Host = np.ndarray[Any, Any]


class Unfit(Exception):
    """Raised by a program that this oracle cannot judge."""


def along(x: Array, axis: Any) -> None:
    """Reject an axis of a scalar: NumPy accepts 0 and -1 there."""
    if axis is not None and not x.ndim:
        raise Unfit("an axis of no dimensions")


def fit(a: Host) -> Host:
    """Return `a` if its values are small integers."""
    if a.dtype not in LADDER:
        raise Unfit(f"a result in {a.dtype}")
    if a.size and a.dtype != bool and not np.abs(a).max() <= LARGEST:
        raise Unfit("large values")
    if a.dtype.kind == "f" and (a != np.rint(a)).any():
        raise Unfit("fractions")
    return a


def few(*shape: int) -> None:
    """Reject a result of too many elements before it is computed."""
    if math.prod(shape) > MANY:
        raise Unfit("a large result")


def exact(total: Any) -> None:
    """Reject sums whose absolute terms add up to more than is exact in any order."""
    if np.size(total) and np.max(total) > EXACT:
        raise Unfit("a sum that may round")


class Array:
    """A stand-in for Tensor: strided, or (`.sparse`) a sparse one, which is never written."""

    def __init__(self, a: Any, sparse: Any = False) -> None:
        self.a: Host = np.asarray(a)
        self.sparse = sparse

    shape = property(lambda self: self.a.shape)
    ndim = property(lambda self: self.a.ndim)
    dtype = property(lambda self: self.a.dtype)
    T = property(lambda self: permute_dims(self, tuple(reversed(_matrix(self)))))
    mT = property(lambda self: Array(np.swapaxes(self.a, -1, -2)))

    def tolist(self) -> Any:
        return self.a.tolist()

    def item(self) -> Any:
        return self.a.item()

    def __getitem__(self, key: Any) -> Array:
        if _is_basic(key):
            parts = key if type(key) is tuple else (key,)
            return Array(self.a[parts if Ellipsis in parts else (*parts, ...)])  # always a view
        return new(self.a[_plain(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        if value is not self:
            self.a[_plain(key)] = _stored(value, self.a[_plain(key)])

    def copy_(self, value: Any) -> Array:
        if not isinstance(value, Array):
            raise Unfit("not a tensor")
        self[...] = value
        return self

    def fill_(self, value: Any) -> Array:
        self[...] = value
        return self

    def zero_(self) -> Array:
        return self.fill_(0)

    def index_add_(self, dim: int, index: Any, source: Array) -> Array:
        along(self, dim)
        where = (slice(None),) * (dim % self.ndim) + (index.a,)
        result = self.a.copy()
        np.add.at(result, where, _stored(source, result[where]))
        self.a[...] = fit(result)
        return self

    def scatter_(self, dim: int, index: Array, src: Array) -> Array:
        along(self, dim)
        result = self.a.copy()
        values = _stored(src, np.empty(index.shape, self.dtype))
        for place in np.ndindex(index.shape):
            to = list(place)
            to[dim] = int(index.a[place])
            result[tuple(to)] = values[place]
        self.a[...] = result
        return self

    def to_sparse(self) -> Array:
        if not self.ndim:
            raise Unfit("sparse tensors have dimensions")
        return Array(self.a.copy(), sparse=True)

    def to_dense(self) -> Array:
        return new(self.a) if self.sparse else self

    def sum(self, axis: Any = None) -> Array:
        return sum(self, axis=axis)


def new(a: Any) -> Array:
    """Return a result with memory of its own, in row-major order, as dovetail's are."""
    return Array(fit(np.array(a, order="C")))


def _matrix(x: Array) -> range:
    if x.ndim != 2:
        raise Unfit("not a matrix")
    return range(2)


def _is_basic(key: Any) -> Any:
    parts = key if type(key) is tuple else (key,)
    return not builtins.any(isinstance(p, (Array, list)) for p in parts)


def _plain(key: Any) -> Any:
    if type(key) is tuple:
        return tuple(_plain(p) for p in key)
    return key.a if isinstance(key, Array) else key


def _stored(value: Any, into: Any) -> Host:
    """Return a value broadcast and cast to its target, if its kind matches."""
    a = value.a if isinstance(value, Array) else np.asarray(value)
    if "biuf".index(a.dtype.kind) > "biuf".index(into.dtype.kind):
        raise Unfit("a kind that does not fit")
    return fit(np.broadcast_to(a, np.shape(into)).astype(into.dtype))


# --- elementwise


def _operands(*xs: Any, arithmetic: Any = True) -> list[Host]:
    """Return the operands in their common dtype."""
    tensors = [x for x in xs if isinstance(x, Array)]
    if not tensors or builtins.any(x.sparse for x in tensors):
        raise Unfit("no tensor, or a sparse one")
    weak = [int64 for x in xs if not isinstance(x, Array)]  # numbers in programs are integers
    d = builtins.max([*(x.dtype for x in tensors), *weak], key=LADDER.index)
    if arithmetic and d == bool:
        raise Unfit("bool has rules of its own")
    found = [np.asarray(x.a if isinstance(x, Array) else x).astype(d) for x in xs]
    few(*np.broadcast_shapes(*(a.shape for a in found)))
    return found


def _elementwise(rule: Callable[..., Any], arithmetic: Any = True) -> Callable[..., Array]:
    def function(*xs: Any, out: Array | None = None) -> Array:
        found = new(rule(*_operands(*xs, arithmetic=arithmetic)))
        return found if out is None else _out(found, out)

    return function


def _out(found: Array, out: Array) -> Array:
    if out.a.dtype != found.a.dtype or out.shape != found.shape:
        raise Unfit("out= of another dtype or shape")
    out[...] = found
    return out


def _divisible(rule: Callable[..., Any]) -> Callable[..., Any]:
    def divided(x: Host, y: Host) -> Any:
        if (y == 0).any():
            raise Unfit("a division by zero")
        return rule(x, y)

    return divided


add = _elementwise(np.add)
subtract = _elementwise(np.subtract)
multiply = _elementwise(np.multiply)
floor_divide = _elementwise(_divisible(np.floor_divide))
remainder = _elementwise(_divisible(np.remainder))
maximum = _elementwise(np.maximum, arithmetic=False)
minimum = _elementwise(np.minimum, arithmetic=False)
equal = _elementwise(np.equal, arithmetic=False)
less = _elementwise(np.less, arithmetic=False)
less_equal = _elementwise(np.less_equal, arithmetic=False)
negative = _elementwise(np.negative)
abs = _elementwise(np.abs)
square = _elementwise(np.square)
sign = _elementwise(np.sign)
relu = _elementwise(lambda x: np.where(x > 0, x, 0).astype(x.dtype))
logical_not = _elementwise(np.logical_not, arithmetic=False)
logical_and = _elementwise(np.logical_and, arithmetic=False)
logical_xor = _elementwise(np.logical_xor, arithmetic=False)


def where(condition: Array, x: Any, y: Any) -> Array:
    if condition.a.dtype != bool:
        raise Unfit("a condition is bool")
    return new(np.where(condition.a, *_operands(x, y, arithmetic=False)))


def clip(x: Array, low: Any, high: Any) -> Array:
    return minimum(maximum(x, low), high)


def exp2(x: Array) -> Array:
    return new(np.exp2(_operands(x)[0].astype(_float(x))))


def astype(x: Array, dtype: Any) -> Array:
    return new(x.a.astype(dtype))


def _float(x: Array) -> Any:
    return x.dtype if x.dtype.kind == "f" else float32


def softmax64(x: Array, axis: int) -> Array:
    """Return 64ths of a softmax to base 2, rounded down: see `random_programs.PRELUDE`."""
    along(x, axis)
    d, (a,) = _float(x), _operands(x)
    e = np.exp2(np.maximum(a - a.max(axis, keepdims=True), -9).astype(d))
    return new(np.floor(e / e.sum(axis, keepdims=True, dtype=d) * d.type(64)))


def spread(x: Array, axis: int) -> Array:
    """Return the sum of squared distances from the mean, rounded down: see
    `random_programs.PRELUDE`.
    """
    along(x, axis)
    d, (a,), n = _float(x), _operands(x), x.shape[axis]
    if not n:
        raise Unfit("the mean of nothing")
    mean = np.floor(a.sum(axis, keepdims=True).astype(d) / d.type(n))
    return new(np.square(fit(a - mean)).sum(axis).astype(d))


for _name, _rule in {
    "add": add, "sub": subtract, "mul": multiply, "floordiv": floor_divide, "mod": remainder,
}.items():  # fmt: skip

    def _in_place(self: Array, other: Any, rule: Any = _rule) -> Array:
        self[...] = rule(self, other)
        return self

    setattr(Array, f"__{_name}__", lambda x, y, rule=_rule: rule(x, y))
    setattr(Array, f"__r{_name}__", lambda x, y, rule=_rule: rule(y, x))
    setattr(Array, f"__i{_name}__", _in_place)
    setattr(Array, f"{_name}_", _in_place)
Array.__lt__ = lambda x, y: less(x, y)  # type: ignore[attr-defined]
Array.__le__ = lambda x, y: less_equal(x, y)  # type: ignore[attr-defined]
Array.__neg__ = lambda x: negative(x)  # type: ignore[attr-defined]


# --- reductions


def sum(x: Array, axis: Any = None, keepdims: Any = False, out: Array | None = None) -> Array:
    along(x, axis)
    d = int64 if x.dtype.kind == "b" else x.dtype
    exact(np.abs(x.a.astype(float64)).sum(axis))
    found = new(x.a.sum(axis, keepdims=keepdims, dtype=d))
    found.sparse = x.sparse
    return found if out is None else _out(found, out)


def _grown(x: Array) -> Host:
    """Return absolute values, without zeros that would hide large partial products; of few
    elements.
    """
    if x.a.size > 80:
        raise Unfit("a long product")
    return np.clip(np.abs(x.a.astype(float64)), 1, None)


def prod(x: Array, axis: Any = None, keepdims: Any = False) -> Array:
    along(x, axis)
    exact(_grown(x).prod(axis))
    d = int64 if x.dtype.kind == "b" else x.dtype
    return new(x.a.prod(axis, keepdims=keepdims, dtype=d))


def _reduction(rule: Any) -> Callable[..., Array]:
    def function(x: Array, axis: Any = None, keepdims: Any = False) -> Array:
        along(x, axis)
        return new(rule(x.a, axis=axis, keepdims=keepdims))

    return function


max = _reduction(np.max)
min = _reduction(np.min)
any = _reduction(np.any)
all = _reduction(np.all)
argmax = _reduction(np.argmax)
argmin = _reduction(np.argmin)
count_nonzero = _reduction(np.count_nonzero)


def cumulative_sum(x: Array, axis: int, include_initial: Any = False) -> Array:
    along(x, axis)
    d = int64 if x.dtype.kind == "b" else x.dtype
    found = np.cumsum(x.a, axis, dtype=d)
    if include_initial:
        first = np.zeros_like(np.take(found, [0] if found.shape[axis] else [], axis))
        if not found.shape[axis]:
            raise Unfit("an empty axis")
        found = np.concatenate([first, found], axis)
    return new(found)


def cumulative_prod(x: Array, axis: int) -> Array:
    along(x, axis)
    d = int64 if x.dtype.kind == "b" else x.dtype
    exact(np.cumprod(_grown(x), axis))
    return new(np.cumprod(x.a, axis, dtype=d))


def diff(x: Array, axis: int) -> Array:
    along(x, axis)
    return new(np.diff(_operands(x)[0], axis=axis))


# --- products


def matmul(x: Array, y: Array, out: Array | None = None) -> Array:
    if x.ndim > 1 and y.ndim > 1:
        few(*np.broadcast_shapes(x.shape[:-2], y.shape[:-2]), x.shape[-2], y.shape[-1])
    found = _product(x, y, np.matmul)
    return found if out is None else _out(found, out)


def _product(x: Array, y: Array, rule: Callable[[Host, Host], Any]) -> Array:
    a, b = (v.a for v in (x, y))
    d = LADDER[np.maximum(LADDER.index(a.dtype), LADDER.index(b.dtype))]
    if d == bool:
        raise Unfit("bool has no product")
    exact(rule(np.abs(a.astype(float64)), np.abs(b.astype(float64))))
    return new(rule(a.astype(d), b.astype(d)))


def outer(x: Array, y: Array) -> Array:
    if x.ndim != 1 or y.ndim != 1:
        raise Unfit("not vectors")
    few(*x.shape, *y.shape)
    return _product(x, y, np.outer)


def tensordot(x: Array, y: Array, axes: Any) -> Array:
    few(*x.shape[: x.ndim - axes], *y.shape[axes:])
    return _product(x, y, lambda a, b: np.tensordot(a, b, axes))


def vecdot(x: Array, y: Array) -> Array:
    if not x.ndim or not y.ndim or x.shape[-1] != y.shape[-1]:
        raise Unfit("vectors of two sizes")
    return _product(x, y, lambda a, b: (a * b).sum(-1))


def einsum(text: str, x: Array, y: Array) -> Array:
    """Contract two matrices along their last axes."""
    if x.shape[-1] != y.shape[-1]:
        raise Unfit("axes of two sizes")
    found = _product(x, y, lambda a, b: np.einsum(text, a, b).T)
    return Array(found.a.T)  # a transpose in memory: whether `reshape` copies depends on it


Array.__matmul__ = lambda x, y: matmul(x, y)  # type: ignore[attr-defined]


# --- sorting and selection


def sort(x: Array, axis: int = -1, descending: Any = False) -> Array:
    order = argsort(x, axis, descending)
    return _last(np.take_along_axis(x.a, order.a, axis), axis)


def _last(a: Host, axis: int) -> Array:
    """Return an array that has this axis last in memory."""
    return Array(np.moveaxis(new(np.moveaxis(a, axis, -1)).a, -1, axis))


def argsort(x: Array, axis: int = -1, descending: Any = False) -> Array:
    along(x, axis)
    keys = x.a.astype(float64)
    return _last(np.argsort(-keys if descending else keys, axis, kind="stable"), axis)


class TopK(NamedTuple):
    """A result with dovetail's field names."""

    values: Array
    indices: Array


def topk(x: Array, k: int) -> TopK:
    first = argsort(x, -1, True)[..., :k]
    return TopK(take_along_axis(x, first, -1), first)


def take(x: Array, indices: Array, axis: int) -> Array:
    along(x, axis)
    return new(np.take(x.a, indices.a, axis))


def take_along_axis(x: Array, indices: Array, axis: int) -> Array:
    along(x, axis)
    return new(np.take_along_axis(x.a, indices.a, axis))


def searchsorted(x: Array, y: Array) -> Array:
    if x.ndim != 1:
        raise Unfit("not a vector")
    a, b = _operands(x, y, arithmetic=False)
    return new(np.searchsorted(a, b))


def unique_values(x: Array) -> Array:
    return new(np.unique(x.a))


def index_add(x: Array, dim: int, index: Array, source: Array) -> Array:
    return new(x.a).index_add_(dim, index, source)


# --- shapes


def asarray(values: Any, dtype: Any) -> Array:
    return new(np.asarray(values, dtype))


def arange(n: int) -> Array:
    return new(np.arange(n))


def zeros(shape: Any, dtype: Any) -> Array:
    return new(np.zeros(shape, dtype))


def copy(x: Array) -> Array:
    return new(x.a)


def reshape(x: Array, shape: Any) -> Array:
    seen = x.a.reshape(shape)
    return Array(seen if np.shares_memory(seen, x.a) else seen.copy())


def permute_dims(x: Array, axes: Any) -> Array:
    return Array(np.transpose(x.a, axes))


def expand_dims(x: Array, axis: int) -> Array:
    return Array(np.expand_dims(x.a, axis))


def squeeze(x: Array) -> Array:
    return Array(np.squeeze(x.a))


def flip(x: Array, axis: Any = None) -> Array:
    along(x, axis)
    return Array(np.flip(x.a, axis))


def broadcast_to(x: Array, shape: Any) -> Array:
    return Array(np.broadcast_to(x.a, shape))


def diagonal(x: Array, offset: int = 0) -> Array:
    seen = np.diagonal(x.a, offset)
    if x.a.flags.writeable:
        seen.flags.writeable = True
    return Array(seen)


def _joined(arrays: Sequence[Array]) -> list[Host]:
    return _operands(*arrays, arithmetic=False)


def concat(arrays: Sequence[Array], axis: int = 0) -> Array:
    return new(np.concatenate(_joined(arrays), axis))


def stack(arrays: Sequence[Array], axis: int = 0) -> Array:
    return new(np.stack(_joined(arrays), axis))


def roll(x: Array, shift: int, axis: Any = None) -> Array:
    along(x, axis)
    return new(np.roll(x.a, shift, axis))


def repeat(x: Array, repeats: int, axis: Any = None) -> Array:
    along(x, axis)
    return new(np.repeat(x.a, repeats, axis))


def tile(x: Array, times: Any) -> Array:
    return new(np.tile(x.a, times))


def tril(x: Array) -> Array:
    if x.ndim < 2:
        raise Unfit("not a matrix")
    return new(np.tril(x.a))


# --- evaluation: always immediate


def evaluate(*xs: Array) -> None:
    """Do nothing: values are computed immediately."""


eager = contextlib.nullcontext
