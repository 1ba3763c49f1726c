"""NumPy's functions on tensors: `np.exp(x)`, `array * x`, `np.stack([x, array])`.

Results are tensors on the tensor's device, and carry gradients. A function that dovetail lacks is a
TypeError whose message suggests `np.asarray(x)`. Functions that only read values, such as `np.save`
and `np.array2string`, get the values on the host.

Source: NEP 13 (`__array_ufunc__`) and NEP 18 (`__array_function__`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ... import layout as lay
from ...argument_checks import exclusive, integers
from ...dtypes import DType
from ...errors import DTypeError
from ...tensor.operators import divide_as_python
from ...tensor.promotion import (
    ARRAY_TYPES,
    PYTHON_NUMBERS,
    Array,
    Operand,
    Scalar,
    as_operand,
    as_tensors,
    overrides_operators,
)
from ...tensor.tensor import Tensor
from ...tensor.writes import write_out
from .. import datatypes
from ..creation import constructors
from ..datatypes import DeviceLike, DTypeLike
from ..elementwise import composed, op_functions
from ..indexing import index_reads, masks
from ..products import einsum as contraction
from ..products import matrix_products
from ..reductions import cumulative, statistics
from ..reductions.statistics import Axis, Mask
from ..shape import copies, manipulation, patches
from ..shape.joining import SplitPoints, split_views
from ..sorting import distinct, stable_sort
from .like_creation import LIKE_FUNCTIONS, with_dims
from .same_names import (
    Function,
    call_namesake,
    call_with_signature,
    drop_default_keywords,
    full_name,
    has_same_parameters,
    namesake,
    not_supported_error,
    signature_of,
)

TensorFunction: TypeAlias = Callable[..., Tensor]


def _adapt_each(
    names: str, module: ModuleType, adapt: Callable[[TensorFunction], Function] = lambda ours: ours
) -> dict[str, Function]:
    """Return a module's functions of these names, each passed through `adapt`."""
    return {n: adapt(getattr(module, n)) for n in names.split()}


# --- ufuncs --------------------------------------------------------------------------------------

_SAME_NAME = """
abs add subtract multiply divide remainder negative positive sign square sqrt cbrt
reciprocal hypot copysign nextafter exp exp2 expm1 log log2 log10 log1p logaddexp sin cos tan sinh
cosh tanh floor ceil trunc maximum minimum equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor isnan isinf
isfinite signbit gcd lcm heaviside ldexp deg2rad rad2deg
"""
_OTHER_NAME = {
    "power": "pow", "rint": "round", "invert": "bitwise_invert", "arctan2": "atan2",
    "radians": "deg2rad", "degrees": "rad2deg", "fabs": "abs",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip
_SCIPY_UFUNCS: dict[str, Function] = {
    **_adapt_each("erf erfc erfinv gamma i0 i1 logit ndtr ndtri xlogy beta zeta", op_functions),
    "expit": op_functions.sigmoid,
    "gammaln": op_functions.lgamma,
    "psi": op_functions.digamma,
}


def _divmod(x1: Operand, x2: Operand) -> tuple[Tensor, Tensor]:
    """Return the quotients rounded down and the remainders."""
    return divide_as_python(x1, x2), op_functions.remainder(x1, x2)


UFUNCS: dict[object, Function] = {
    **{getattr(np, name): f for name, f in _adapt_each(_SAME_NAME, op_functions).items()},
    **{getattr(np, name): getattr(op_functions, ours) for name, ours in _OTHER_NAME.items()},
    np.floor_divide: divide_as_python,
    np.divmod: _divmod,
    np.matmul: matrix_products.matmul,
    np.vecdot: matrix_products.vecdot,
    np.conjugate: op_functions.conj,
}
_REDUCTIONS: dict[object, TensorFunction] = {
    np.add: statistics.sum,
    np.multiply: statistics.prod,
    np.maximum: statistics.max,
    np.minimum: statistics.min,
    np.logical_and: statistics.all,
    np.logical_or: statistics.any,
}
_ACCUMULATIONS: dict[object, TensorFunction] = {
    np.add: cumulative.cumulative_sum,
    np.multiply: cumulative.cumulative_prod,
}


def array_ufunc(
    x: Tensor,
    ufunc: np.ufunc,
    method: str,
    *inputs: object,
    out: Sequence[object] = (),
    **keywords: object,
) -> object:
    """Call dovetail's function for a ufunc of NumPy with a tensor as an operand or `out=`.

    Raises: DTypeError for ufuncs, methods and parameters that dovetail lacks; else as the function.
    """
    if any(overrides_operators(v) for v in (*inputs, *out)):
        return NotImplemented
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    targets = [o for o in out if o is None or isinstance(o, Tensor)]
    if len(targets) < len(out):
        raise DTypeError(
            f"np.{name}: out= must be a tensor if an operand is one, got a NumPy array; "
            "pass a tensor as out=, or np.asarray(x) as the operand"
        )
    ours = _find_function(ufunc, method)
    if ours is None:
        raise not_supported_error(name)
    if not any(isinstance(v, Tensor) for v in inputs):
        inputs = tuple(
            [as_operand(name, v, out) if isinstance(v, ARRAY_TYPES) else v for v in inputs]
        )
    if method == "__call__" and keywords.get("dtype") is not None:
        inputs, keywords = _in_dtype(ufunc, inputs, dict(keywords))
    result = call_with_signature(
        name, ours, inputs, drop_default_keywords(ufunc, ours, dict(keywords))
    )
    if not out:
        return result
    results = result if isinstance(result, tuple) else (result,)
    written_results = tuple(
        r if o is None else write_out(name, o, r) for r, o in zip(results, targets, strict=True)
    )
    return written_results if len(written_results) > 1 else written_results[0]


def _in_dtype(
    ufunc: np.ufunc, inputs: tuple[object, ...], keywords: dict[str, object]
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Cast operands to the ufunc's `dtype`; comparisons keep the dtypes of theirs."""
    target = datatypes.real_dtype(ufunc.__name__, keywords.pop("dtype"))  # type: ignore[arg-type]  # real_dtype raises for others
    if any(not kinds.endswith(("?", "O")) for kinds in ufunc.types):
        inputs = tuple([datatypes.cast(v, target) if isinstance(v, Tensor) else v for v in inputs])
    return inputs, keywords


def _find_function(ufunc: np.ufunc, method: str) -> Function | None:
    """Return dovetail's function for a method of a ufunc, or None."""
    if method == "__call__":
        return (
            UFUNCS.get(ufunc)
            or _SCIPY_UFUNCS.get(ufunc.__name__)
            or namesake(ufunc)
            or _extra_function(ufunc)
        )
    if method == "reduce" and ufunc in _REDUCTIONS:
        return _adapt_reduction(_REDUCTIONS[ufunc])
    if method == "accumulate" and ufunc in _ACCUMULATIONS:
        return _adapt_accumulation(_ACCUMULATIONS[ufunc])
    ours = UFUNCS.get(ufunc) or namesake(ufunc)
    if method == "outer" or ours is None:
        return ours and _adapt_outer(ours)
    other: Function | None = import_module(".ufunc_folds", __package__).adapt_method(
        ufunc, method, ours
    )
    return other


@lru_cache
def _adapt_reduction(implementation: TensorFunction) -> Function:
    """Return NumPy's `ufunc.reduce` by a reduction, over axis 0 by default."""

    def reduce(
        array: Tensor, axis: Axis = 0, *, keepdims: bool = False, **options: object
    ) -> object:
        """Call the reduction by its own parameter names."""
        return call_with_signature(
            implementation.__name__,
            implementation,
            (array,),
            {"axis": axis, "keepdims": keepdims, **options},
        )

    return reduce


@lru_cache
def _adapt_accumulation(implementation: TensorFunction) -> Function:
    """Return NumPy's `ufunc.accumulate` by a running function, along axis 0 by default."""

    def accumulate(array: Tensor, axis: int = 0, dtype: DTypeLike = None) -> Tensor:
        """Call the running function along an axis."""
        return implementation(array, axis=axis, dtype=dtype)

    return accumulate


@lru_cache
def _adapt_outer(implementation: Function) -> Function:
    """Return NumPy's `ufunc.outer`: the function of each pair of elements."""

    def outer(a: Array, b: Array) -> object:
        """Call the function with the axes of `b` behind those of `a`."""
        x, y = as_tensors(implementation.__name__, a, b)
        return implementation(manipulation.reshape(x, (*x.shape, *(1,) * y.ndim)), y)

    return outer


# --- functions, with NumPy's parameters ----------------------------------------------------------


def _adapt_sum(implementation: TensorFunction) -> Function:
    """Return a reduction with the parameters of NumPy's `sum`."""

    def f(
        a: Tensor,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
        keepdims: bool = False,
        *options: object,
        **named: object,
    ) -> Tensor:
        """Call the reduction by its own parameter names."""
        named.update(zip(("initial", "where"), options, strict=False))
        return implementation(a, axis=axis, dtype=dtype, out=out, keepdims=keepdims, **named)

    return f


def _adapt_extreme(implementation: TensorFunction) -> Function:
    """Return a reduction with the parameters of NumPy's `max`."""

    def f(
        a: Tensor,
        axis: Axis = None,
        out: Tensor | None = None,
        keepdims: bool = False,
        *options: object,
        **named: object,
    ) -> Tensor:
        """Call the reduction by its own parameter names."""
        named.update(zip(("initial", "where"), options, strict=False))
        return implementation(a, axis=axis, out=out, keepdims=keepdims, **named)

    return f


def _adapt_moment(implementation: TensorFunction) -> Function:
    """Return a reduction with the parameters of NumPy's `std`; `ddof` is `correction`."""

    def f(
        a: Tensor,
        axis: Axis = None,
        dtype: DTypeLike = None,
        out: Tensor | None = None,
        ddof: float = 0,
        keepdims: bool = False,
        *,
        where: Mask = None,
        correction: float | None = None,
    ) -> Tensor:
        """Cast to `dtype`, and call the function. Raises: ArgumentError for ddof and correction."""
        exclusive(implementation.__name__, ddof=ddof or None, correction=correction)
        n = ddof if correction is None else correction
        x = datatypes.cast(a, None if dtype is None else datatypes.real_dtype("std", dtype))
        return implementation(x, axis=axis, correction=n, keepdims=keepdims, out=out, where=where)

    return f


def _adapt_cumulative(implementation: TensorFunction) -> Function:
    """Return a running function with NumPy's parameters; axis None ravels first."""

    def f(
        a: Tensor, axis: int | None = None, dtype: DTypeLike = None, out: Tensor | None = None
    ) -> Tensor:
        """Call the running function on `a`, raveled if `axis` is None."""
        x = manipulation.ravel(a) if axis is None and a.ndim != 1 else a
        return implementation(x, axis=0 if axis is None else axis, dtype=dtype, out=out)

    return f


def _adapt_sort(implementation: TensorFunction) -> Function:
    """Return a sort with NumPy's parameters; axis None ravels first, `kind` is ignored."""

    def f(
        a: Tensor, axis: int | None = -1, kind: object = None, *, stable: bool | None = None
    ) -> Tensor:
        """Call the sort on `a`, raveled if `axis` is None."""
        if kind is not None:
            exclusive(implementation.__name__, kind=kind, stable=stable)
        return implementation(
            manipulation.ravel(a) if axis is None else a, axis=-1 if axis is None else axis
        )

    return f


def _adapt_like(implementation: TensorFunction) -> Function:
    """Return a creation function with NumPy's parameters; `order` and `subok` are ignored."""

    def f(
        a: Tensor,
        dtype: DTypeLike = None,
        order: str = "K",
        subok: bool = True,
        shape: int | Sequence[int] | None = None,
        *,
        device: DeviceLike = None,
    ) -> Tensor:
        """Call the creation function with a prototype of `shape`."""
        return implementation(_prototype(a, shape), dtype=dtype, device=device)

    return f


def _full_like(
    a: Tensor,
    fill_value: Scalar,
    dtype: DTypeLike = None,
    order: str = "K",
    subok: bool = True,
    shape: int | Sequence[int] | None = None,
    *,
    device: DeviceLike = None,
) -> Tensor:
    """Call `dt.full_like` with NumPy's parameters; ignore `order` and `subok`.

    The value may also be an array, which is broadcast.
    """
    if isinstance(fill_value, (Tensor, *ARRAY_TYPES)) and np.ndim(fill_value):
        like = _prototype(a, shape)
        value = fill_value
        if not isinstance(value, Tensor):
            value = as_operand("full_like", value, (a,))
        value = datatypes.astype(value, dtype or like.dtype)
        return copies.copy(manipulation.broadcast_to(value, like.shape))
    return constructors.full_like(_prototype(a, shape), fill_value, dtype=dtype, device=device)


def _prototype(a: Tensor, shape: int | Sequence[int] | None) -> Tensor:
    """Return a tensor with the dtype and device of `a`, and this shape."""
    if shape is None:
        return a
    return manipulation.broadcast_to(constructors.empty((), dtype=a.dtype, device=a.device), shape)


def _adapt_triangle(implementation: Function) -> Function:
    """Return a function of triangles with NumPy's parameters; a vector is that of all rows."""

    def f(m: Tensor, k: int = 0) -> object:
        """Call the function on a matrix."""
        square = manipulation.broadcast_to(m, (m.size, m.size)) if m.ndim == 1 else m
        return implementation(square, k=k)

    return f


def _adapt_close(implementation: Function) -> Function:
    """Return a comparison with NumPy's parameters; NumPy compares two arrays itself."""

    def f(
        a: Operand, b: Operand, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
    ) -> object:
        """Call the comparison, or that of NumPy if both values are arrays."""
        if not isinstance(a, Tensor) and not isinstance(b, Tensor):  # a tolerance is a tensor
            theirs = getattr(np, implementation.__name__)
            return theirs(a, b, float(rtol), float(atol), equal_nan)
        return implementation(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)

    return f


def _where(condition: Tensor, *choices: Operand) -> Tensor | tuple[Tensor, ...]:
    """Call `dt.where`, or `dt.nonzero` if only the condition is given."""
    return op_functions.where(condition, *choices) if choices else masks.nonzero(condition)


def _clip(
    a: Tensor,
    a_min: Operand | None = None,
    a_max: Operand | None = None,
    out: Tensor | None = None,
    *,
    min: Operand | None = None,
    max: Operand | None = None,
) -> Tensor:
    """Call `dt.clip` with both of NumPy's names for each bound."""
    exclusive("clip", a_min=a_min, min=min)
    exclusive("clip", a_max=a_max, max=max)
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    return op_functions.clip(a, low, high, out=out)


def _transpose(a: Tensor, axes: Sequence[int] | None = None) -> Tensor:
    """Call `dt.permute_dims`; without axes reverse them all."""
    return manipulation.transpose(a) if axes is None else manipulation.permute_dims(a, tuple(axes))


def _concatenate(
    arrays: Sequence[Array], axis: int | None = 0, out: Tensor | None = None, **options: Any
) -> Tensor:
    """Call `dt.concat`, or write its result into `out` and return that."""
    result = copies.concat(arrays, axis=axis, **options)
    return result if out is None else write_out("concatenate", out, result)


def _stack(
    arrays: Sequence[Array], axis: int = 0, out: Tensor | None = None, **options: Any
) -> Tensor:
    """Call `dt.stack`, or write its result into `out` and return that."""
    result = copies.stack(arrays, axis=axis, **options)
    return result if out is None else write_out("stack", out, result)


def _build_atleast(dims: int) -> Function:
    """Return NumPy's `atleast_<dims>d`: one result for one argument, else a tuple."""

    def f(*arys: object) -> object:
        """Return each value with at least `dims` axes: one alone, else a tuple."""
        results = tuple(with_dims(x, dims) for x in arys)
        return results[0] if len(results) == 1 else results

    return f


def _vstack(tup: Sequence[Array], **options: Any) -> Tensor:
    """Concatenate along the first axis; vectors become rows."""
    return copies.concat([with_dims(x, 2) for x in tup], **options)


def _hstack(tup: Sequence[Array], **options: Any) -> Tensor:
    """Concatenate along the second axis, vectors along their only one."""
    tensors = [with_dims(x, 1) for x in tup]
    return copies.concat(tensors, axis=0 if tensors[0].ndim == 1 else 1, **options)


def _broadcast_arrays(*args: object) -> tuple[Tensor | np.ndarray, ...]:
    """Broadcast tensors on their device, and other values on the host."""
    arrays = [x if isinstance(x, Tensor) else np.asarray(x) for x in args]
    shape = manipulation.broadcast_shapes(*(x.shape for x in arrays))
    return tuple(
        manipulation.broadcast_to(x, shape) if isinstance(x, Tensor) else np.broadcast_to(x, shape)
        for x in arrays
    )


def _split(ary: Tensor, indices_or_sections: SplitPoints, axis: int = 0) -> list[Tensor]:
    """Return the views of `dt.split` as a list, by NumPy's rules for sections."""
    return list(split_views("split", ary, indices_or_sections, lay.axis("split", axis, ary.ndim)))


def _numbers_as_arrays(implementation: Function) -> Function:
    """Return a function of two arrays that takes a number as an array of no dimensions."""

    def compare(a1: object, a2: object, **options: object) -> object:
        """Call the function with numbers as 0-dimensional arrays."""
        numbers = (*PYTHON_NUMBERS, np.generic)
        arrays = [np.asarray(a) if isinstance(a, numbers) else a for a in (a1, a2)]
        return implementation(*map(_bits_as_integers, arrays), **options)

    return compare


def _bits_as_integers(a: object) -> object:
    """Return an array of bytes without a meaning as unsigned integers, as `x.view("V4")` does."""
    if isinstance(a, np.ndarray) and a.dtype.kind == "V" and a.dtype.itemsize in (1, 2, 4, 8):
        return a.view(f"u{a.dtype.itemsize}")
    return a


def _take(a: Tensor, indices: Array, axis: int | None = None, mode: str = "raise") -> Tensor:
    """Call `dt.take`; axis None ravels first."""
    x = manipulation.ravel(a) if axis is None and a.ndim != 1 else a
    return index_reads.take(x, indices, axis=0 if axis is None else axis, mode=mode)


def _diff(
    a: Tensor,
    n: int = 1,
    axis: int = -1,
    prepend: Operand | None = None,
    append: Operand | None = None,
) -> Tensor:
    """Call `dt.diff` with NumPy's parameters."""
    return cumulative.diff(a, axis=axis, n=n, prepend=prepend, append=append)


def _dot(a: Operand, b: Operand, out: Tensor | None = None) -> Tensor:
    """Return NumPy's dot product; a scalar operand multiplies. Write into `out` if given."""
    if isinstance(a, Tensor) and isinstance(b, Tensor) and a.ndim and 0 < b.ndim <= 2:
        result = matrix_products.matmul(a, b)
    elif not isinstance(a, (Tensor, *ARRAY_TYPES)) or not isinstance(b, (Tensor, *ARRAY_TYPES)):
        result = op_functions.multiply(a, b)
    else:
        x, y = as_tensors("dot", a, b)
        if not x.ndim or not y.ndim:
            result = op_functions.multiply(x, y)
        elif y.ndim <= 2:
            result = matrix_products.matmul(x, y)
        else:
            result = matrix_products.tensordot(x, y, axes=((-1,), (-2,)))
    return result if out is None else write_out("dot", out, result)


def _size(a: Tensor, axis: int | Sequence[int] | None = None) -> int:
    """Return the number of elements, or the product of the sizes of some axes."""
    if axis is None:
        return a.size
    return math.prod(a.shape[lay.axis("size", d, a.ndim)] for d in integers("size", axis, "axis"))


def _angle(z: Tensor, deg: bool = False) -> Tensor:
    """Return angles in radians, or in degrees if `deg`."""
    radians = op_functions.angle(z)
    return op_functions.multiply(radians, 180.0 / np.pi) if deg else radians


def _outer_product(a: Array, b: Array) -> Tensor:
    """Return the outer product of the raveled operands."""
    operands = as_tensors("outer", a, b)
    return matrix_products.outer(*[x if x.ndim == 1 else manipulation.ravel(x) for x in operands])


def _einsum(
    subscripts: object,
    *operands: Operand,
    optimize: contraction.Optimize = True,
    dtype: DTypeLike = None,
    order: str = "K",
    casting: str = "safe",
    out: Tensor | None = None,
) -> Tensor:
    """Call `dt.einsum`, also with sublists or a dtype; ignore `order` and `casting`."""
    if not isinstance(subscripts, str):
        subscripts, operands = contraction.parse_sublists(subscripts, *operands)
    if dtype is not None:
        want = datatypes.real_dtype("einsum", dtype)
        arrays = [x for x in operands if not isinstance(x, PYTHON_NUMBERS)]
        cast_arrays = iter([datatypes.cast(x, want) for x in as_tensors("einsum", *arrays)])
        operands = tuple(
            [x if isinstance(x, PYTHON_NUMBERS) else next(cast_arrays) for x in operands]
        )
    return contraction.einsum(subscripts, *operands, optimize=optimize, out=out)


# Functions of NumPy whose first parameters mean the same in dovetail.
REDUCTIONS: dict[object, Function] = {
    getattr(np, name): f
    for name, f in _adapt_each(
        "sum prod mean max min any all argmax argmin std var", statistics
    ).items()
}
_NUMPY_FUNCTIONS: dict[str, Function] = {
    **_adapt_each("sum prod mean", statistics, _adapt_sum),
    **_adapt_each("max min any all argmax argmin", statistics, _adapt_extreme),
    **_adapt_each("std var", statistics, _adapt_moment),
    **_adapt_each("isclose allclose", op_functions, _adapt_close),
    **_adapt_each("sort argsort", stable_sort, _adapt_sort),
    **_adapt_each("tril triu", constructors, _adapt_triangle),
    **_adapt_each("zeros_like ones_like empty_like", constructors, _adapt_like),
    "full_like": _full_like,
    **_adapt_each("unique_all unique_counts unique_inverse unique_values", distinct),
    **_adapt_each("cumulative_sum cumulative_prod", cumulative),
    **_adapt_each("unstack", manipulation),
    "atleast_1d": _build_atleast(1),
    "atleast_2d": _build_atleast(2),
    "broadcast_arrays": _broadcast_arrays,
    "vstack": _vstack,
    "hstack": _hstack,
    "amax": _adapt_extreme(statistics.max),
    "amin": _adapt_extreme(statistics.min),
    "cumsum": _adapt_cumulative(cumulative.cumulative_sum),
    "cumprod": _adapt_cumulative(cumulative.cumulative_prod),
    "diff": _diff,
    "count_nonzero": lambda a, axis=None, *, keepdims=False: statistics.count_nonzero(
        a, axis=axis, keepdims=keepdims
    ),
    "real": lambda val: op_functions.real(val),
    "imag": lambda val: op_functions.imag(val),
    "angle": _angle,
    "where": _where,
    "clip": _clip,
    "round": lambda a, decimals=0, out=None: op_functions.round(a, decimals=decimals, out=out),
    "around": lambda a, decimals=0, out=None: op_functions.round(a, decimals=decimals, out=out),
    "array_equal": lambda a1, a2, equal_nan=False: _numbers_as_arrays(op_functions.array_equal)(
        a1, a2, equal_nan=equal_nan
    ),
    "array_equiv": _numbers_as_arrays(composed.array_equiv),
    "astype": lambda x, dtype, /, *, copy=True, device=None: datatypes.astype(
        x, dtype, copy=copy, device=device
    ),
    "reshape": lambda a, /, shape, *, copy=None: manipulation.reshape(a, shape, copy=copy),
    "transpose": _transpose,
    "matrix_transpose": lambda x, /: matrix_products.matrix_transpose(x),
    "swapaxes": lambda a, axis1, axis2: manipulation.swapaxes(a, axis1, axis2),
    "moveaxis": lambda a, source, destination: manipulation.moveaxis(a, source, destination),
    "expand_dims": lambda a, axis: manipulation.expand_dims(a, axis),
    "squeeze": lambda a, axis=None: manipulation.squeeze(a, axis),
    "flip": lambda m, axis=None: manipulation.flip(m, axis),
    "ravel": lambda a: manipulation.ravel(a),
    "copy": lambda a: copies.copy(a),
    "broadcast_to": lambda array, shape: manipulation.broadcast_to(array, shape),
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "roll": lambda a, shift, axis=None: copies.roll(a, shift, axis=axis),
    "repeat": lambda a, repeats, axis=None: copies.repeat(a, repeats, axis=axis),
    "tile": lambda A, reps: copies.tile(A, reps),
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: manipulation.diagonal(
        a, offset, axis1, axis2
    ),
    "meshgrid": lambda *xi, indexing="xy": constructors.meshgrid(*xi, indexing=indexing),
    "take": _take,
    "take_along_axis": lambda arr, indices, axis=-1: index_reads.take_along_axis(
        arr, indices, axis=axis
    ),
    "nonzero": lambda a: masks.nonzero(a),
    "argwhere": lambda a: masks.argwhere(a),
    "searchsorted": lambda a, v, side="left", sorter=None: index_reads.searchsorted(
        a, v, side=side, sorter=sorter
    ),
    "isin": lambda element, test_elements, assume_unique=False, invert=False, *, kind=None: (
        distinct.isin(element, test_elements, invert=invert)
    ),
    "dot": _dot,
    "outer": _outer_product,
    "tensordot": lambda a, b, axes=2: matrix_products.tensordot(a, b, axes=axes),
    "einsum": _einsum,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": _size,
}
_NUMPY_LINALG_FUNCTIONS = _adapt_each(
    "outer diagonal matmul tensordot vecdot matrix_transpose", matrix_products
)
# Functions that read values and return no array of them.
_HOST_FUNCTIONS = """
save savez savez_compressed savetxt array2string array_repr array_str iscomplexobj isrealobj
result_type can_cast common_type min_scalar_type may_share_memory shares_memory
"""

_WRITERS = "put place putmask put_along_axis fill_diagonal"


def call_with_host_values(
    function: Function, args: Sequence[object], keywords: Mapping[str, object]
) -> Any:
    """Call a function of NumPy with arrays in place of tensors.

    Raises: CaptureError in a captured function; DeviceError if the host cannot read the memory.
    """
    return function(*map(to_host, args), **{k: to_host(v) for k, v in keywords.items()})


def to_host(x: Any) -> Any:
    """Return an argument for NumPy: tensors as arrays over their memory, also in lists.

    Raises: CaptureError in a captured function; DeviceError if the host cannot read the memory.
    """
    if isinstance(x, Tensor):
        return x.numpy()
    if type(x) is DType:
        return x.__numpy_dtype__
    if type(x) in (tuple, list):
        return type(x)(map(to_host, x))
    if type(x) is dict:
        return {k: to_host(v) for k, v in x.items()}
    return getattr(x, "__wrapped_ufunc__", x)


def _call_on_host(function: Function) -> Function:
    """Return a NumPy function that converts tensor arguments to arrays, read by the host."""

    def f(*args: object, **keywords: object) -> object:
        """Call NumPy's function with arrays in place of tensors."""
        return call_with_host_values(function, args, keywords)

    return f


def _dispatch_on_target(function: Function) -> Function:
    """Return a function that writes into a tensor by dovetail, into an array by NumPy."""

    def f(*args: object, **keywords: object) -> object:
        """Write into the first argument; return None for a tensor, else NumPy's result."""
        target = next(iter((*args, *keywords.values())), None)
        if not isinstance(target, Tensor):
            return call_with_host_values(function, args, keywords)
        ours = namesake(function)
        assert ours is not None
        call_namesake(target, function, ours, args, keywords)
        return None

    return f


def _copyto(dst: object, src: object, casting: str = "same_kind", where: object = True) -> object:
    """Copy into a tensor by dovetail, into an array by NumPy with values read by the host."""
    ours = namesake(np.copyto) if isinstance(dst, Tensor) else None
    if ours is None:
        return call_with_host_values(np.copyto, (dst, src, casting), {"where": where})
    if casting != "same_kind":
        raise not_supported_error("copyto", f"dovetail does not support casting={casting!r}")
    return ours(dst, src, where=where)


FUNCTIONS: dict[object, Function] = {  # those that the installed NumPy has
    getattr(where, name): ours
    for where, table in (
        (
            np,
            _NUMPY_FUNCTIONS
            | _adapt_each(_HOST_FUNCTIONS, np, _call_on_host)
            | _adapt_each(_WRITERS, np, _dispatch_on_target),
        ),
        (np, {"copyto": _copyto}),
        (np.linalg, _NUMPY_LINALG_FUNCTIONS),
        (np.lib.stride_tricks, _adapt_each("sliding_window_view", patches)),
    )
    for name, ours in table.items()
    if hasattr(where, name)
}

# NumPy's module -> a function of a package above this one that finds dovetail's equivalent.
MODULE_RESOLVERS: dict[str, Callable[[Function], Function | None]] = {}
_HOMES = {"numpy.linalg": "dovetail.linalg"}  # the package that adds a resolver as it is imported


def _extra_function(function: object) -> Function | None:
    """Return a function of `extra_functions`, which is loaded at its first use, or None."""
    extra: Function | None = import_module(".extra_functions", __package__).EXTRA_FUNCTIONS.get(
        function
    )
    return extra


def array_function(
    x: Tensor,
    function: Function,
    types: Sequence[type],
    args: tuple[object, ...],
    keywords: dict[str, object],
) -> object:
    """Call dovetail's function for a function of NumPy that got a tensor.

    Raises: DTypeError for functions and parameters that dovetail lacks; else as the function.
    """
    if types != (Tensor,) and not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    if function in LIKE_FUNCTIONS:
        return call_with_signature(
            full_name(function), LIKE_FUNCTIONS[function], args, {"device": x.device, **keywords}
        )
    ours = find_adapted(function)
    if ours is None:
        same = namesake(function)
        if same is None:
            raise not_supported_error(full_name(function))
        return call_namesake(x, function, same, args, keywords)
    options = drop_default_keywords(function, ours, keywords)
    return call_with_signature(full_name(function), ours, args, options)


@lru_cache(512)
def find_adapted(function: Function) -> Function | None:
    """Return dovetail's function with NumPy's parameters; None if a namesake has other ones."""
    ours = FUNCTIONS.get(function)
    if ours is None and function.__module__ in _HOMES:
        import_module(_HOMES[function.__module__])  # adds its resolver at its first import
        ours = MODULE_RESOLVERS[function.__module__](function)
    if ours is None and namesake(function) is None:
        ours = _extra_function(function)
    return ours


def find_direct(function: Function, count: int, keywords: Sequence[str]) -> Function | None:
    """Return dovetail's function for calls of this form if it takes NumPy's arguments as they are.

    count: the number of positional arguments.
    keywords: the names of the others.
    """
    adapted = find_adapted(function)
    ours = REDUCTIONS.get(function) or (namesake(function) if adapted is None else None)
    if ours is not None and has_same_parameters(function, ours, count, keywords):
        return ours
    if adapted is not None:
        try:
            signature_of(adapted).bind(*[None] * count, **dict.fromkeys(keywords))
        except TypeError:
            return None
    return adapted
