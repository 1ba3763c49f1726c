"""Functions and methods of PyTorch whose meaning differs from those of `dt`, or that `dt` lacks.

Those in METHODS are methods of `torch.Tensor`, too; each gets the tensor first. `axis=` keeps the
meaning of the Array API: code that is written for any of dovetail's classes uses it.
"""

from __future__ import annotations

import math
import string
from collections.abc import Callable
from typing import Any, NamedTuple

import dovetail as dt

from .adoption import Tensor
from .creation import TYPE_NAMES, TensorType


def _pair_class(name: str, *fields: str) -> type[Any]:
    """Return the class of a function's pair of results, with the names and the text of PyTorch."""
    pair: Any = NamedTuple(name, [(f, Any) for f in fields])  # type: ignore[misc]  # the fields are computed

    def __repr__(self: Any) -> str:
        texts = [f"{f}={getattr(self, f)!r}" for f in fields]
        return f"torch.return_types.{name}(\n" + ",\n".join(texts) + ")"

    pair.__repr__ = __repr__  # type: ignore[method-assign]  # of a class that is made here
    return pair


PAIRS = {name: _pair_class(name, "values", "indices") for name in ("max", "min", "sort", "median")}
PAIRS["nanmedian"] = _pair_class("nanmedian", "values", "indices")
PAIRS["aminmax"] = _pair_class("aminmax", "min", "max")


def _with_axes(x: dt.Tensor) -> dt.Tensor:
    """Return the tensor; a vector of one element in place of a number, which PyTorch gives axes."""
    return dt.reshape(x, (1,)) if x.ndim == 0 else x


def _pick(x: dt.Tensor, index: dt.Tensor, dim: int) -> dt.Tensor:
    """Return the elements at positions along an axis: their gradient goes there alone."""
    return dt.take_along_axis(x, index, axis=dim)


def _reduce_pair(name: str, x: dt.Tensor, index: dt.Tensor, dim: int, keepdim: bool) -> Any:
    """Return the pair (values, indices) of a reduction, from indices that keep the axis."""
    values = _pick(_with_axes(x), index, dim)
    if x.ndim == 0:
        return PAIRS[name](dt.reshape(values, ()), dt.reshape(index, ()))
    if not keepdim:
        values, index = dt.squeeze(values, axis=dim), dt.squeeze(index, axis=dim)
    return PAIRS[name](values, index)


def _extremum(name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Compute `max` or `min`: of all elements, a pair along `dim`, or of two tensors."""
    function, arg = getattr(dt, name), getattr(dt, f"arg{name}")
    if "axis" in options or "keepdims" in options:
        return function(x, *args, **options)
    other = options.pop("other", args[0] if args and isinstance(args[0], dt.Tensor) else None)
    if other is not None:
        return getattr(dt, f"{name}imum")(x, other, **options)
    dim, keepdim, out = _read_arguments(name, args, options, dim=None, keepdim=False, out=None)
    if dim is None:
        return function(x)
    pair = _reduce_pair(name, x, arg(_with_axes(x), axis=dim, keepdims=True), dim, keepdim)
    return _write_pair(pair, out)


def _read_arguments(
    name: str, args: tuple[Any, ...], options: dict[str, Any], **defaults: Any
) -> list[Any]:
    """Return the arguments in the order of `defaults`. Raises: ArgumentTypeError for others."""
    values = dict(zip(defaults, args, strict=False))
    for key, value in options.items():
        if key not in defaults or key in values:
            raise dt.ArgumentTypeError(
                f"{name}: got an unexpected argument {key}; the parameters are "
                f"{', '.join(defaults)}"
            )
        values[key] = value
    if len(args) > len(defaults):
        raise dt.ArgumentTypeError(
            f"{name}: expected at most {len(defaults)} arguments ({', '.join(defaults)}), got "
            f"{len(args)}"
        )
    return [*({**defaults, **values}).values()]


def _write_pair(pair: Any, out: Any) -> Any:
    """Return the pair, after it is written into the tensors of `out` if they are given."""
    if out is None:
        return pair
    for target, value in zip(out, pair, strict=True):
        target.copy_(value)
    return type(pair)(*out)


def max(input: Any, *args: Any, **options: Any) -> Any:
    """Return the largest element; with `dim` the pair (values, indices) along it.

    - `input`: a tensor.
    - `args`, `options`: `dim` and `keepdim`, or `other`, a tensor of which each larger element is
      taken.
    """
    return _extremum("max", input, args, options)


def min(input: Any, *args: Any, **options: Any) -> Any:
    """Return the smallest element; with `dim` the pair (values, indices) along it.

    - `input`: a tensor.
    - `args`, `options`: `dim` and `keepdim`, or `other`, a tensor of which each smaller element is
      taken.
    """
    return _extremum("min", input, args, options)


def aminmax(
    input: Any, *, dim: int | None = None, keepdim: bool = False, axis: int | None = None
) -> Any:
    """Return the pair (min, max) of all elements, or along an axis; `axis` is `dim`."""
    dim = dim if axis is None else axis
    return PAIRS["aminmax"](*(f(input, dim, keepdim=keepdim) for f in (dt.amin, dt.amax)))


def sort(input: Any, dim: int = -1, descending: bool = False, **options: Any) -> Any:
    """Return the pair (values, indices), ordered along an axis; equal elements keep their order.

    - `input`: a tensor.
    - `dim`: the axis.
    - `descending`: the largest first.
    - `options`: `stable`, which is always true, and `out`.
    """
    if "axis" in options:
        return dt.sort(input, descending=descending, **options)
    options.pop("stable", None)
    out = options.pop("out", None)
    x = _with_axes(input)
    index = dt.argsort(x, axis=dim, descending=descending, **options)
    values, shape = _pick(x, index, dim), input.shape
    return _write_pair(PAIRS["sort"](dt.reshape(values, shape), dt.reshape(index, shape)), out)


def argsort(
    input: Any,
    dim: int = -1,
    descending: bool = False,
    stable: bool = True,
    *,
    axis: int | None = None,
) -> Any:
    """Return the indices that order the elements along an axis; equal ones keep their order.

    - `input`: a tensor.
    - `dim`: the axis; `axis` is another name of it.
    - `descending`: the largest first.
    - `stable`: has no effect.
    """
    index = dt.argsort(_with_axes(input), axis=dim if axis is None else axis, descending=descending)
    return dt.reshape(index, input.shape)


def msort(input: Any) -> Any:
    """Return the elements, ordered along the first axis."""
    return dt.sort(_with_axes(input), axis=0).reshape(input.shape)


def _median(name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Compute the lower of the two middle elements, of all or along an axis with its index."""
    if "axis" in options or "keepdims" in options:
        return getattr(dt, name)(x, *args, **options)
    dim, keepdim = _read_arguments(name, args, options, dim=None, keepdim=False)
    x = x if dim is not None else dt.reshape(x, (-1,))
    if x.size == 0:
        raise dt.ArgumentError(f"{name}: expected at least one element, got shape {x.shape}")
    axis, y = 0 if dim is None else dim, _with_axes(x)
    order = dt.argsort(y, axis=axis)  # NaNs are last
    if y.dtype.kind == "f":
        is_nan = dt.isnan(y)
        count = dt.sum(~is_nan, axis=axis, keepdims=True)
        nans_win = (count < y.shape[axis]) if name == "median" else (count == 0)
        middle = dt.take_along_axis(order, dt.clip((count - 1) // 2, 0), axis=axis)
        index = dt.where(nans_win, dt.argmax(is_nan, axis=axis, keepdims=True), middle)
    else:
        index = dt.narrow(order, axis, (y.shape[axis] - 1) // 2, 1)
    pair = _reduce_pair(name, x, index, axis, keepdim)
    return pair if dim is not None else pair.values


def median(input: Any, *args: Any, **options: Any) -> Any:
    """Return the lower median; with `dim` the pair (values, indices). A NaN makes it NaN.

    - `input`: a tensor.
    - `args`, `options`: `dim` and `keepdim`.
    """
    return _median("median", input, args, options)


def nanmedian(input: Any, *args: Any, **options: Any) -> Any:
    """Return the lower median without NaNs; with `dim` the pair (values, indices).

    - `input`: a tensor.
    - `args`, `options`: `dim` and `keepdim`.
    """
    return _median("nanmedian", input, args, options)


def _compute_spread(name: str, x: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Compute `std` or `var`, which divide by n - 1 unless told otherwise."""
    function = getattr(dt, name)
    if "axis" in options or "keepdims" in options:
        return function(x, *args, **options)
    if args and isinstance(args[0], bool):
        args = (None, *args)
    parameters = {"dim": None, "unbiased": None, "keepdim": False, "correction": None, "out": None}
    dim, unbiased, keepdim, correction, out = _read_arguments(name, args, options, **parameters)
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    dim = tuple(dim) if isinstance(dim, list) else dim
    if x.ndim == 0:
        dim = None
    target = {} if out is None else {"out": out}
    return function(
        x,
        axis=dim or (dim if dim == 0 else None),
        correction=correction,
        keepdims=keepdim,
        **target,
    )


def std(input: Any, *args: Any, **options: Any) -> Any:
    """Return the standard deviation, of all elements or along axes; it divides by n - 1.

    - `input`: a tensor.
    - `args`, `options`: `dim`, `unbiased` or `correction`, `keepdim`.
    """
    return _compute_spread("std", input, args, options)


def var(input: Any, *args: Any, **options: Any) -> Any:
    """Return the variance, of all elements or along axes; it divides by n - 1.

    - `input`: a tensor.
    - `args`, `options`: `dim`, `unbiased` or `correction`, `keepdim`.
    """
    return _compute_spread("var", input, args, options)


def _mean_beside(input: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the mean along the axes of a call of `std_mean` or `var_mean`."""
    dim = options.get("dim", args[0] if args and not isinstance(args[0], bool) else None)
    keepdim = options.get("keepdim", len(args) > 2 and args[2])
    return dt.mean(input, axis=tuple(dim) if isinstance(dim, list) else dim, keepdims=keepdim)


def std_mean(input: Any, *args: Any, **options: Any) -> Any:
    """Return the pair of the standard deviation, as `std`, and the mean."""
    return std(input, *args, **options), _mean_beside(input, args, options)


def var_mean(input: Any, *args: Any, **options: Any) -> Any:
    """Return the pair of the variance, as `var`, and the mean."""
    return var(input, *args, **options), _mean_beside(input, args, options)


def equal(input: Any, other: Any) -> bool:
    """Return True if both tensors have one shape and equal elements."""
    return input.shape == other.shape and bool(dt.all(dt.equal(input, other)))


def nonzero(input: Any, *, as_tuple: bool = False) -> Any:
    """Return the indices of nonzero elements: rows of a matrix, or a tuple of one vector an axis.

    - `input`: a tensor.
    - `as_tuple`: True for the tuple.
    """
    return dt.nonzero(_with_axes(input)) if as_tuple else dt.argwhere(input)


def where(condition: Any, input: Any = None, other: Any = None) -> Any:
    """Return elements of `input` where the condition is true, else of `other`.

    Without both it returns the indices of true elements, a vector for each axis.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    return dt.where(condition, input, other)


def repeat(input: Any, *sizes: Any, **options: Any) -> Any:
    """Return the tensor, repeated as a whole along each axis.

    - `input`: a tensor.
    - `sizes`: the number of repetitions of each axis; more than the tensor has add axes in front.
    - `options`: `axis=` and `repeats` of the Array API repeat elements.
    """
    if options:
        return dt.repeat(input, *sizes, **options)
    counts = sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes
    if len(counts) < input.ndim:
        raise dt.ShapeError(
            f"repeat: expected at least {input.ndim} sizes, one for each axis, got {len(counts)}"
        )
    return dt.tile(input, tuple(counts))


def flip(input: Any, *args: int, dims: Any = (), axis: Any = None) -> Any:
    """Return the elements in reverse order along axes.

    - `input`: a tensor.
    - `args`, `dims`: the axes, as ints or as one sequence.
    - `axis`: the Array API's parameter, an int or a tuple.
    """
    axes: Any = (args[0] if len(args) == 1 else args or dims) if axis is None else axis
    axes = (axes,) if isinstance(axes, int) else tuple(axes)
    return dt.flip(input, axes) if input.ndim else dt.copy(input)


def clamp_min(input: Any, min: Any) -> Any:
    """Return the elements, raised to a lower bound."""
    return dt.clip(input, min, None)


def clamp_max(input: Any, max: Any) -> Any:
    """Return the elements, lowered to an upper bound."""
    return dt.clip(input, None, max)


def frac(input: Any) -> Any:
    """Return the part of each element behind the point, with its sign."""
    return input - dt.trunc(input)


def dist(input: Any, other: Any, p: float = 2) -> Any:
    """Return the p-norm of the difference of two tensors."""
    return dt.linalg.vector_norm(dt.subtract(input, other).reshape(-1), ord=p)


def addr(input: Any, vec1: Any, vec2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return `beta * input + alpha * outer(vec1, vec2)`."""
    product = dt.outer(vec1, vec2)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: float = 1, alpha: float = 1) -> Any:
    """Return `beta * input + alpha * (batch1 @ batch2).sum(0)`."""
    product = dt.sum(batch1 @ batch2, axis=0)
    return (input if beta == 1 else input * beta) + (product if alpha == 1 else product * alpha)


def rsub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return `other - alpha * input`."""
    return other - (input if alpha == 1 else input * alpha)


def div(input: Any, other: Any, *, rounding_mode: str | None = None, **options: Any) -> Any:
    """Return the quotients, rounded if asked.

    - `input`, `other`: tensors or numbers.
    - `rounding_mode`: "floor" rounds down, "trunc" towards 0; None does not round.
    - `options`: `out`.
    """
    if rounding_mode is None:
        return dt.divide(input, other, **options)
    if rounding_mode == "floor":
        return floor_divide(input, other, **options)
    if rounding_mode != "trunc":
        raise dt.ArgumentError(
            f'div: rounding_mode must be "floor", "trunc" or None, got {rounding_mode!r}'
        )
    down = floor_divide(input, other)
    if down.dtype.kind == "f":
        return dt.trunc(dt.divide(input, other, **options))
    return down + ((down < 0) & (dt.multiply(down, other) != input))


def floor_divide(input: Any, other: Any, *, out: Any = None) -> Any:
    """Return the quotients rounded down; `inf // 1` is NaN, as in PyTorch.

    - `input`, `other`: tensors or numbers.
    - `out`: a tensor for the result.
    """
    quotient = input // other
    return quotient if out is None else dt.positive(quotient, out=out)


def take(input: Any, index: Any, *, axis: int | None = None) -> Any:
    """Return the elements at positions in the flattened tensor.

    - `input`: a tensor.
    - `index`: a tensor of integers.
    - `axis`: the Array API's parameter: the positions are those along this axis.
    """
    x = dt.reshape(input, (-1,)) if axis is None else input
    return dt.take(x, index, axis=0 if axis is None else axis)


def select(input: Any, dim: int, index: int) -> Any:
    """Return a view without an axis, at one position along it."""
    return input.select(dim, index)


def einsum(equation: Any, *operands: Any) -> Any:
    """Return a sum of products by Einstein's notation; operands may be one list.

    - `equation`: a string; or the first operand, which numbers of its axes follow.
    - `operands`: the operands; or further pairs of operand and axes, and the axes of the result.
    """
    if isinstance(equation, dt.Tensor) and operands:
        return _einsum_of_axes((equation, *operands))
    listed = len(operands) == 1 and isinstance(operands[0], (list, tuple))
    return dt.einsum(equation, *(operands[0] if listed else operands))


def _einsum_of_axes(arguments: tuple[Any, ...]) -> Any:
    """Compute `einsum` of operands with lists of axes: ints from 0 to 51, or an ellipsis."""
    n = len(arguments) // 2
    lists = (*arguments[1::2], *(arguments[-1:] if len(arguments) % 2 else ()))
    for axes in lists:
        if not isinstance(axes, (list, tuple)) or not {*axes} <= {*range(52), Ellipsis}:
            raise dt.ArgumentError(
                f"einsum: axes must be a list of ints from 0 to 51 and ..., got {axes!r}"
            )
    labels = ["".join("..." if k is ... else string.ascii_letters[k] for k in t) for t in lists]
    return dt.einsum("->".join([",".join(labels[:n]), *labels[n:]]), *arguments[0 : 2 * n : 2])


def squeeze(input: Any, *dims: Any, dim: Any = None, axis: Any = None) -> Any:
    """Return a view without axes of size 1; axes of other sizes stay.

    - `input`: a tensor.
    - `dims`, `dim`: one axis or several; without them all.
    - `axis`: the Array API's parameter: an axis whose size is not 1 is an error.
    """
    if bool(dims) + (dim is not None) + (axis is not None) > 1:
        raise dt.ArgumentTypeError("squeeze: the axes are given twice; give them as dim")
    if axis is not None:
        return dt.squeeze(input, axis=axis)
    dim = dims[0] if len(dims) == 1 else dims or dim
    if dim is None:
        return dt.squeeze(input)
    chosen = dim if isinstance(dim, (tuple, list)) else (dim,)
    if input.ndim == 0:  # PyTorch gives a number one axis
        return dt.squeeze(input, axis=()) if {*chosen} <= {0, -1} else dt.squeeze(input, axis=dim)
    bounds = range(-input.ndim, input.ndim)  # others raise an AxisError
    return dt.squeeze(
        input, axis=tuple(d for d in chosen if d not in bounds or input.shape[d] == 1)
    )


def index_put(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Return a copy with `values` at indices.

    - `input`: a tensor.
    - `indices`: a tuple of tensors, one for each of the first axes.
    - `values`: a tensor that broadcasts to the selected elements.
    - `accumulate`: add the values, also those at equal indices.
    """
    key = tuple(indices)
    return input.at[key].add(values) if accumulate else input.at[key].set(values)


def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    """Write `values` at indices, or add them; return the tensor. See `index_put`."""
    if accumulate:
        return input.copy_(index_put(input, indices, values, accumulate))
    input[tuple(indices)] = values
    return input


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Any:
    """Return normal numbers: of tensors of means and deviations, or of a size."""
    if size is not None:
        return dt.random.normal(tuple(size), mean=mean, std=std, **options)
    shape = dt.broadcast_shapes(*[x.shape for x in (mean, std) if isinstance(x, dt.Tensor)])
    like = mean if isinstance(mean, dt.Tensor) else std
    noise = dt.random.normal(shape, dtype=like.dtype, device=like.device, **options)
    return mean + std * noise


def bernoulli(input: Any, p: float | None = None, *, generator: Any = None) -> Any:
    """Return zeros and ones in the dtype of `input`, whose elements are the probabilities of 1."""
    probabilities = input if p is None else dt.full_like(input, p)
    draws = dt.random.uniform(input.shape, device=input.device, generator=generator)
    return dt.astype(draws < probabilities, input.dtype)


def randint(low: int, *bounds: Any, **options: Any) -> Any:
    """Return random integers: `randint(high, size)` or `randint(low, high, size)`.

    - `low`: the smallest integer; 0 if there is only `high`.
    - `bounds`, `options`: `high` (excluded), `size`, `generator`, `dtype`, `device`.
    """
    high, size = options.pop("high", None), options.pop("size", None)
    numbers = [low, *([] if high is None else [high]), *bounds]
    if size is None:
        size = numbers.pop()
    if len(numbers) == 1:
        numbers.insert(0, 0)
    options.setdefault("dtype", dt.int64)
    return _finish(dt.random.randint, (*numbers, tuple(size)), options)


def _finish(function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a function without the options that have no effect; then set `requires_grad`."""
    requires_grad = options.pop("requires_grad", False)
    for name in ("layout", "pin_memory", "out"):
        if options.get(name, ...) in (None, False, dt.strided):
            options.pop(name)
    result = function(*args, **options)
    return result.requires_grad_() if requires_grad else result


def unique(
    input: Any,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
    *,
    axis: int | None = None,
) -> Any:
    """Return the distinct elements in ascending order, or the distinct slices along an axis.

    - `input`: a tensor.
    - `sorted`: has no effect; they are always in order.
    - `return_inverse`: also return the position of each element in the result.
    - `return_counts`: also return how often each is there.
    - `dim`: the axis, also as `axis`; None takes single elements.
    """
    axis = dim if axis is None else axis
    return dt.unique(input, False, return_inverse, return_counts, axis)


def randint_like(input: Any, *bounds: int, dtype: Any = None, device: Any = None) -> Any:
    """Return random integers below `high`, or from `low` on, in the shape of `input`."""
    low, high = (0, *bounds) if len(bounds) == 1 else bounds
    draws = dt.random.randint(low, high, tuple(input.shape), device=device or input.device)
    return dt.astype(draws, dtype or input.dtype)


def complex(real: Any, imag: Any) -> Any:
    """Return complex numbers of real and imaginary parts."""
    return real + 1j * imag


def polar(abs: Any, angle: Any) -> Any:
    """Return complex numbers of absolute values and angles in radians."""
    return abs * dt.cos(angle) + 1j * (abs * dt.sin(angle))


def view_as_real(input: Any) -> Any:
    """Return real and imaginary parts along a new last axis, as a new tensor."""
    return dt.stack([dt.real(input), dt.imag(input)], axis=-1)


def view_as_complex(input: Any) -> Any:
    """Return complex numbers of a last axis of two parts, as a new tensor."""
    return input[..., 0] + 1j * input[..., 1]


def cartesian_prod(*tensors: Any) -> Any:
    """Return all combinations of elements of vectors, as rows."""
    if len(tensors) == 1:
        return dt.copy(tensors[0])
    grids = dt.meshgrid(*tensors, indexing="ij")
    return dt.stack([g.reshape(-1) for g in grids], axis=1)


def combinations(input: Any, r: int = 2, with_replacement: bool = False) -> Any:
    """Return the combinations of `r` elements of a vector, as rows."""
    from itertools import combinations, combinations_with_replacement

    choose = combinations_with_replacement if with_replacement else combinations
    rows = [*choose(range(input.shape[0]), r)]
    index = dt.asarray(rows, dtype=dt.int64, device=input.device).reshape(len(rows), r)
    return dt.take(input, index.reshape(-1), axis=0).reshape(len(rows), r)


def meshgrid(*tensors: Any, indexing: str = "ij") -> Any:
    """Return the coordinates of a grid; the first vector runs along the first axis."""
    vectors = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors
    return tuple(dt.meshgrid(*vectors, indexing=indexing))


def arange_with_end(start: float, end: float | None = None, step: float = 1, **options: Any) -> Any:
    """Return numbers from `start` to `end`, which is included: `torch.range`."""
    start, end = (0, start) if end is None else (start, end)
    options.setdefault("dtype", dt.get_default_dtype())
    return dt.arange(
        start, start + step * (math.floor((end - start) / step) + 0.5), step, **options
    )


def scalar_tensor(value: Any, **options: Any) -> Any:
    """Return a tensor of one number, without axes."""
    return dt.asarray(float(value) if isinstance(value, float) else value, **options)


def seed() -> int:
    """Seed the default generator from the system's entropy, and return the seed."""
    import secrets

    number = secrets.randbits(63)
    dt.random.manual_seed(number)
    return number


def initial_seed() -> int:
    """Return the seed of the default generator."""
    return dt.random.get_state()[0]


def numel(input: Any) -> int:
    """Return the number of elements."""
    return int(input.size)


def is_nonzero(input: Any) -> bool:
    """Return True if the only element is not 0."""
    return bool(input)


# --- methods alone


def convert_type(x: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """Return the tensor in a dtype; without one the name of its class, such as torch.FloatTensor.

    - `dtype`: a dtype, a class such as `torch.LongTensor`, or its name.
    - `non_blocking`: has no effect.
    """
    if dtype is None:
        return TYPE_NAMES.get(x.dtype, f"torch.{x.dtype.name}")
    if isinstance(dtype, str):
        names = {name: kind for kind, name in TYPE_NAMES.items()}
        dtype = names.get(dtype.replace("torch.cuda.", "torch."), dtype)
    return dt.astype(x, dtype.dtype if isinstance(dtype, TensorType) else dtype, copy=False)


def get_device(x: Tensor) -> int:
    """Return the number of the tensor's CUDA device; -1 for another device."""
    return x.device.index if x.is_cuda else -1  # type: ignore[attr-defined]  # by `__getattr__`


def fill_diagonal_(x: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """Write a number to the diagonal, and return the tensor."""
    dt.fill_diagonal(x, fill_value, wrap)  # in place, as NumPy's
    return x


def sum_to_size(x: Tensor, *size: Any) -> Any:
    """Return the sums over the axes in which a shape has size 1 or none."""
    shape = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
    extra = x.ndim - len(shape)
    axes = [
        *range(extra),
        *(extra + i for i, n in enumerate(shape) if n == 1 != x.shape[extra + i]),
    ]
    return dt.reshape(dt.sum(x, axis=tuple(axes)), tuple(shape)) if axes else x


def _alias_in_place(view: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that lets a tensor become a view of itself."""

    def change(x: Tensor, *args: Any) -> Tensor:
        """Let the tensor become a view of its memory; gradients must not be recorded."""
        x.set_(view(x.detach(), *args))
        return x

    return change


def _write_in_place(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method that writes the result of a function into the tensor.

    The method raises DTypeError if the result is of a higher kind: complex, float, integer, bool.
    """

    def change(x: Tensor, *args: Any, **options: Any) -> Tensor:
        """Write the result into this tensor, and return it."""
        x[...] = function(x, *args, **options)
        return x

    return change


# Functions that are methods, too.
METHODS = (
    max,
    min,
    aminmax,
    sort,
    argsort,
    msort,
    median,
    nanmedian,
    std,
    var,
    equal,
    nonzero,
    repeat,
    flip,
    clamp_min,
    clamp_max,
    frac,
    dist,
    addr,
    addbmm,
    bernoulli,
    is_nonzero,
    get_device,
    fill_diagonal_,
    sum_to_size,
    unique,
    div,
    floor_divide,
    take,
    squeeze,
    index_put,
)
# Functions of `dt` that are methods in PyTorch.
DT_METHODS = """
    fmax fmin fmod hsplit vsplit dsplit tensor_split isneginf isposinf isreal logaddexp2
    logdet polygamma
"""
LINALG_METHODS = {"svd": "svd", "lu_solve": "lu_solve", "cholesky_solve": "cholesky_solve"}
OTHER_NAMES = {  # PyTorch's name -> the method of dt.Tensor
    "fix": "trunc",
    "fix_": "trunc_",
    "sgn": "sign",
    "sgn_": "sign_",
    "ndimension": "dim",
    "split_with_sizes": "split",
    "unsafe_split": "split",
    "unsafe_chunk": "chunk",
    "conj_physical": "conj",
    "conj_physical_": "conj_",
    "dequantize": "float",
}
FALSE_PROPERTIES = """
    is_sparse is_sparse_csr is_quantized is_meta is_mkldnn is_nested is_vulkan is_xla is_ipu
    is_mtia is_maia
"""
FALSE_METHODS = "is_conj is_neg is_distributed is_shared"
IN_PLACE: dict[str, Callable[..., Any]] = {
    "clamp_min_": clamp_min,
    "clamp_max_": clamp_max,
    "frac_": frac,
    "div_": div,
    "divide_": div,
    "floor_divide_": floor_divide,
    "addr_": addr,
    "addbmm_": addbmm,
    "bernoulli_": bernoulli,
    "baddbmm_": dt.baddbmm,
    "float_power_": dt.float_power,
    "polygamma_": dt.polygamma,
}
ALIASES_IN_PLACE: dict[str, Callable[..., Any]] = {
    "squeeze_": squeeze,
    "unsqueeze_": dt.unsqueeze,
    "transpose_": dt.swapaxes,
    "swapaxes_": dt.swapaxes,
    "swapdims_": dt.swapaxes,
    "t_": dt.t,
    "as_strided_": dt.as_strided,
}
METHODS_IN_PLACE: dict[str, Callable[..., Any]] = {
    **{name: _alias_in_place(view) for name, view in ALIASES_IN_PLACE.items()},
    **{name: _write_in_place(function) for name, function in IN_PLACE.items()},
    "index_put_": index_put_,
    "type": convert_type,
}
# Functions of `torch` that are no methods.
FUNCTIONS = (
    std_mean,
    var_mean,
    where,
    rsub,
    normal,
    randint,
    randint_like,
    complex,
    polar,
    view_as_real,
    view_as_complex,
    cartesian_prod,
    combinations,
    meshgrid,
    scalar_tensor,
    seed,
    initial_seed,
    numel,
    select,
    einsum,
)
ONLY_METHODS = frozenset(["get_device", "fill_diagonal_", "sum_to_size"])
