"""The functions of `jax.lax`: loops, branches, slices at computed places, elementwise functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import dovetail as dt

from .dtype_config import NARROW, as_tensor, config
from .lookup import make_module_dir, make_module_getattr, table
from .transforms import tensors_of

__all__ = [
    "clamp",
    "concatenate",
    "cond",
    "convert_element_type",
    "dynamic_index_in_dim",
    "dynamic_slice",
    "dynamic_slice_in_dim",
    "dynamic_update_index_in_dim",
    "dynamic_update_slice",
    "dynamic_update_slice_in_dim",
    "expand_dims",
    "fori_loop",
    "iota",
    "map",
    "scan",
    "select_n",
    "slice_in_dim",
    "stop_gradient",
    "switch",
    "top_k",
    "while_loop",
]

_NAMES = table("""
    abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_not=bitwise_invert bitwise_or
    bitwise_xor cbrt ceil conj cos cosh digamma erf erfc eq=equal exp
    exp2 expm1 floor ge=greater_equal gt=greater imag integer_pow=pow is_finite=isfinite
    le=less_equal lgamma log log1p logistic=sigmoid lt=less max=maximum min=minimum mul=multiply
    ne=not_equal neg=negative nextafter population_count=bitwise_count pow real reciprocal rem=fmod
    rsqrt select=where shift_left=bitwise_left_shift shift_right_arithmetic=bitwise_right_shift sign
    sin sinh sqrt square sub=subtract tan tanh erf_inv=erfinv dot=matmul batch_matmul=matmul reshape
    squeeze transpose rev=flip reduce_max=max reduce_min=min reduce_sum=sum reduce_prod=prod
    full_like
""")
__getattr__ = make_module_getattr(globals(), _NAMES)
__dir__ = make_module_dir(globals(), _NAMES)

# --- loops and branches ---------------------------------------------------------------------------


def _as_before(carry: Any, after: Any) -> Any:
    """Return the next carry with 32-bit tensors where the carry has them."""

    def convert(x: Any, y: Any) -> Any:
        """Return a leaf in the dtype of the one before, if only the width differs."""
        if not isinstance(y, dt.Tensor):
            return y
        return y.astype(x.dtype) if NARROW.get(y.dtype) is x.dtype else y

    return dt.tree.map(convert, carry, after)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Return the last carry of `f`, and the stacked outputs of its iterations; see `dt.scan`.

    - `f`: takes the carry and a part of `xs`, and gives `(carry, y)`.
    - `init`: the first carry.
    - `xs`: tensors, or containers of them, along whose first axis the loop runs.
    - `length`: the number of iterations; None takes it from `xs`.
    - `reverse`: True begins with the last part.
    - `unroll`: ignored.

    >>> import dovetail.jax as jax
    >>> jax.lax.scan(lambda c, x: (c + x, c), 0, jax.numpy.arange(3))[1].tolist()
    [0, 0, 1]
    """

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        """Run one iteration with the dtypes of the first carry."""
        after, y = f(carry, x)
        return _as_before(carry, tensors_of(after)), y

    return dt.scan(step, tensors_of(init), tensors_of(xs), length, reverse)


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, unroll: Any = None
) -> Any:
    """Return the last carry of `carry = body_fun(i, carry)` for i from lower to upper - 1.

    - `lower`, `upper`: ints, or tensors of one.
    - `body_fun`: a function of the index, an int32 tensor, and the carry.
    - `init_val`: the first carry.
    - `unroll`: ignored.

    >>> import dovetail.jax as jax
    >>> jax.lax.fori_loop(0, 4, lambda i, x: x + i, 0).item()
    6
    """

    def body(i: dt.Tensor, carry: Any) -> Any:
        """Run one iteration with the dtypes of the first carry."""
        index = i if config.jax_enable_x64 else i.astype(dt.int32)
        return _as_before(carry, tensors_of(body_fun(index, carry)))

    return dt.fori_loop(lower, upper, body, tensors_of(init_val))


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any
) -> Any:
    """Return the last carry of `carry = body_fun(carry)`, repeated while `cond_fun(carry)` is true.

    - `cond_fun`: a function of the carry that gives a bool.
    - `body_fun`: a function from the carry to the next one.
    - `init_val`: the first carry.

    >>> import dovetail.jax as jax
    >>> jax.lax.while_loop(lambda x: x < 10, lambda x: 2 * x, 1).item()
    16
    """

    def body(carry: Any) -> Any:
        """Run one iteration with the dtypes of the first carry."""
        return _as_before(carry, tensors_of(body_fun(carry)))

    return dt.while_loop(cond_fun, body, tensors_of(init_val))


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any
) -> Any:
    """Return `true_fun(*operands)` if `pred` is true, else `false_fun(*operands)`.

    - `pred`: a bool, or a tensor of one.
    - `true_fun`, `false_fun`: functions with results of the same shapes and dtypes.
    - `operands`: their arguments.

    >>> import dovetail.jax as jax
    >>> jax.lax.cond(True, lambda x: x + 1, lambda x: x, 1).item()
    2
    """
    return dt.cond(pred, true_fun, false_fun, *tensors_of(operands))


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any) -> Any:
    """Return `branches[index](*operands)`; an index out of range takes the nearest branch.

    - `index`: an int, or a tensor of one.
    - `branches`: functions with results of the same shapes and dtypes.
    - `operands`: their arguments.

    >>> import dovetail.jax as jax
    >>> jax.lax.switch(1, [lambda x: x, lambda x: -x], 3).item()
    -3
    """
    first, *others = branches
    if not others:
        return first(*tensors_of(operands))
    return cond(index <= 0, first, lambda *values: switch(index - 1, others, *values), *operands)


def map(f: Callable[[Any], Any], xs: Any) -> Any:
    """Return the stacked results of `f` on the parts of `xs`, computed one after the other.

    - `f`: a function of one part.
    - `xs`: tensors, or containers of them, along whose first axis it runs.

    >>> import dovetail.jax as jax
    >>> jax.lax.map(lambda x: x * x, jax.numpy.arange(3)).tolist()
    [0, 1, 4]
    """
    return scan(lambda carry, x: (carry, f(x)), (), xs)[1]


def stop_gradient(x: Any) -> Any:
    """Return a tree with tensors through which no gradient flows.

    - `x`: a tree of tensors.

    >>> import dovetail.jax as jax
    >>> jax.grad(lambda x: x * jax.lax.stop_gradient(x))(3.0).item()
    3.0
    """
    return dt.tree.map(lambda leaf: leaf.detach() if isinstance(leaf, dt.Tensor) else leaf, x)


# --- values ---------------------------------------------------------------------------------------


def select_n(which: Any, *cases: Any) -> dt.Tensor:
    """Return the elements of `cases[which]`, element by element.

    - `which`: bools or integers.
    - `cases`: tensors of one shape; two for bools.

    >>> import dovetail.jax as jax
    >>> jax.lax.select_n(jax.numpy.array([True, False]), dt.zeros(2), dt.ones(2)).tolist()
    [1.0, 0.0]
    """
    which, result = as_tensor(which), as_tensor(cases[-1])
    for i in reversed(range(len(cases) - 1)):
        result = dt.where(which == i, as_tensor(cases[i]), result)
    return result


def convert_element_type(operand: Any, new_dtype: Any) -> dt.Tensor:
    """Return a value as a tensor of another dtype, rounded once.

    - `operand`: a tensor, an array or a number.
    - `new_dtype`: the dtype.

    >>> import dovetail.jax as jax
    >>> jax.lax.convert_element_type(2**40, jax.numpy.float32).item() == 2**40
    True
    """
    return as_tensor(operand, new_dtype)


def clamp(min: Any, x: Any, max: Any) -> dt.Tensor:
    """Return x with values below `min` or above `max` replaced by them.

    - `min`: the lower bound.
    - `x`: a tensor.
    - `max`: the upper bound.

    >>> import dovetail.jax as jax
    >>> jax.lax.clamp(0.0, jax.numpy.array([-1.0, 5.0]), 1.0).tolist()
    [0.0, 1.0]
    """
    return dt.clip(as_tensor(x), min, max)


def iota(dtype: Any, size: int) -> dt.Tensor:
    """Return 0, 1, ..., size - 1.

    - `dtype`: the dtype.
    - `size`: the number of elements.

    >>> import dovetail.jax as jax
    >>> jax.lax.iota(jax.numpy.float32, 3).tolist()
    [0.0, 1.0, 2.0]
    """
    return dt.arange(size, dtype=dtype)


def expand_dims(array: Any, dimensions: Sequence[int]) -> dt.Tensor:
    """Return a tensor with axes of size 1 at these places.

    - `array`: a tensor.
    - `dimensions`: the places of the new axes in the result.

    >>> import dovetail.jax as jax
    >>> jax.lax.expand_dims(jax.numpy.ones(2), (0, 2)).shape
    (1, 2, 1)
    """
    return dt.expand_dims(as_tensor(array), axis=tuple(dimensions))


def concatenate(operands: Sequence[Any], dimension: int) -> dt.Tensor:
    """Return tensors joined along an axis.

    - `operands`: tensors.
    - `dimension`: the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.concatenate([dt.zeros(1), dt.ones(1)], 0).tolist()
    [0.0, 1.0]
    """
    return dt.concat([as_tensor(x) for x in operands], axis=dimension)


def top_k(operand: Any, k: int) -> tuple[dt.Tensor, dt.Tensor]:
    """Return the k largest elements of each row, and their indices.

    - `operand`: a tensor.
    - `k`: their number.

    >>> import dovetail.jax as jax
    >>> [x.tolist() for x in jax.lax.top_k(jax.numpy.array([3.0, 1.0, 2.0]), 2)]
    [[3.0, 2.0], [0, 2]]
    """
    values, indices = dt.topk(as_tensor(operand), k)
    return values, indices.astype(dt.int32)


# --- slices at computed places --------------------------------------------------------------------


def at_axis(x: dt.Tensor, index: Any, axis: int) -> dt.Tensor:
    """Return the elements at an index along one axis.

    index: an int, a slice or a tensor of integers.
    """
    return x[(slice(None),) * (axis % x.ndim) + (index,)]


def _start(x: dt.Tensor, start: Any, size: int, axis: int) -> Any:
    """Return a start such that the slice is inside the tensor."""
    last = x.shape[axis] - size
    if isinstance(start, int):
        start = start + x.shape[axis] if start < 0 else start
        return min(max(start, 0), last)
    start = as_tensor(start)
    return dt.clip(dt.where(start < 0, start + x.shape[axis], start), 0, last)


def dynamic_slice(operand: Any, start_indices: Sequence[Any], slice_sizes: Sequence[int]) -> Any:
    """Return a slice of fixed size at a computed place, which is moved inside the tensor.

    - `operand`: a tensor.
    - `start_indices`: the first index along each axis: ints, or tensors of one.
    - `slice_sizes`: the size along each axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_slice(jax.numpy.arange(5), (jax.numpy.array(4),), (2,)).tolist()
    [3, 4]
    """
    x = as_tensor(operand)
    for axis, (start, size) in enumerate(zip(start_indices, slice_sizes, strict=True)):
        x = dynamic_slice_in_dim(x, start, size, axis)
    return x


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Any:
    """Return a slice of fixed size along one axis at a computed place.

    - `operand`: a tensor.
    - `start_index`: the first index: an int, or a tensor of one.
    - `slice_size`: the size.
    - `axis`: the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_slice_in_dim(jax.numpy.arange(5), 1, 2).tolist()
    [1, 2]
    """
    x = as_tensor(operand)
    start = _start(x, start_index, slice_size, axis)
    if isinstance(start, int):
        return slice_in_dim(x, start, start + slice_size, axis=axis)
    return dt.take(x, start + dt.arange(slice_size, device=x.device), axis=axis)


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Any:
    """Return the slice at a computed index of an axis.

    - `operand`: a tensor.
    - `index`: an int, or a tensor of one.
    - `axis`: the axis.
    - `keepdims`: False removes the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_index_in_dim(jax.numpy.arange(5), 1, keepdims=False).item()
    1
    """
    x = dynamic_slice_in_dim(operand, index, 1, axis)
    return x if keepdims else dt.squeeze(x, axis=axis)


def dynamic_update_slice(operand: Any, update: Any, start_indices: Sequence[Any]) -> dt.Tensor:
    """Return a copy of a tensor with a slice at a computed place replaced.

    - `operand`: a tensor.
    - `update`: the new elements; the slice has its shape, and is moved inside the tensor.
    - `start_indices`: the first index along each axis: ints, or tensors of one.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_update_slice(jax.numpy.zeros(3), jax.numpy.ones(2), (1,)).tolist()
    [0.0, 1.0, 1.0]
    """
    x, values = as_tensor(operand), as_tensor(update)
    starts = [
        _start(x, start, size, axis)
        for axis, (start, size) in enumerate(zip(start_indices, values.shape, strict=True))
    ]
    key: Any
    if all(isinstance(start, int) for start in starts):
        key = [slice(s, s + n) for s, n in zip(starts, values.shape, strict=True)]
    else:
        key = [
            (start + dt.arange(n, device=x.device)).reshape((-1,) + (1,) * (x.ndim - 1 - axis))
            for axis, (start, n) in enumerate(zip(starts, values.shape, strict=True))
        ]
    return x.at[tuple(key)].set(values)


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int
) -> dt.Tensor:
    """Return a copy of a tensor with a slice along one axis replaced.

    - `operand`: a tensor.
    - `update`: the new elements.
    - `start_index`: the first index: an int, or a tensor of one.
    - `axis`: the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_update_slice_in_dim(jax.numpy.zeros(3), jax.numpy.ones(1), 1, 0).tolist()
    [0.0, 1.0, 0.0]
    """
    x = as_tensor(operand)
    starts = [0] * x.ndim
    starts[axis] = start_index
    return dynamic_update_slice(x, update, starts)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> dt.Tensor:
    """Return a copy of a tensor with the slice at an index of an axis replaced.

    - `operand`: a tensor.
    - `update`: the new elements, with or without the axis.
    - `index`: an int, or a tensor of one.
    - `axis`: the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.dynamic_update_index_in_dim(jax.numpy.zeros(3), 1.0, 1, 0).tolist()
    [0.0, 1.0, 0.0]
    """
    x, values = as_tensor(operand), as_tensor(update)
    if values.ndim < x.ndim:
        values = dt.expand_dims(values, axis=axis)
    return dynamic_update_slice_in_dim(x, values, index, axis)


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Any:
    """Return `operand[start_index:limit_index:stride]` along one axis.

    - `operand`: a tensor.
    - `start_index`, `limit_index`: ints, or None for the ends.
    - `stride`: the step.
    - `axis`: the axis.

    >>> import dovetail.jax as jax
    >>> jax.lax.slice_in_dim(jax.numpy.arange(5), 1, 3).tolist()
    [1, 2]
    """
    return at_axis(as_tensor(operand), slice(start_index, limit_index, stride), axis)
