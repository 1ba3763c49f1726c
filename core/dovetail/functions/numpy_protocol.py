"""NumPy's functions on tensors: `np.exp(x)`, `array * x`, `np.stack([x, array])` run dovetail's.

Results are tensors on the tensor's device, and carry gradients. What dovetail lacks is a TypeError
that names the way: `np.asarray(x)`. What is not an array's business but a look at its values
(`np.save`, `np.array2string`) sees the values on the host.

Source: NEP 13 (`__array_ufunc__`) and NEP 18 (`__array_function__`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from inspect import Signature, signature
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError
from ..tensor.operands import ARRAYS, beside, brought, decides
from ..tensor.tensor import Tensor
from ..tensor.writes import write_out
from . import (
    creation,
    cumulative,
    datatypes,
    elementwise,
    indexing,
    linalg,
    manipulation,
    masks,
    sets,
    sorting,
    statistics,
)
from . import einsum as contraction

Function = Callable[..., Any]


def _lacking(name: str, why: str = "dovetail has no such function") -> DTypeError:
    return DTypeError(f"np.{name}: {why}; for NumPy's, on the host, give it np.asarray(x)")


@lru_cache(512)
def _signature(function: Function) -> Signature:
    return signature(function)


def _called(name: str, ours: Function, args: Sequence[Any], given: dict[str, Any]) -> Any:
    """What ours gives for NumPy's arguments. Raises: DTypeError for those that it does not take."""
    try:
        bound = _signature(ours).bind(*args, **given)
    except TypeError as error:
        raise _lacking(name, f"dovetail's has other parameters ({error})") from None
    return ours(*bound.args, **bound.kwargs)


def _each(names: str, module: Any, adapt: Function = lambda ours: ours) -> dict[str, Function]:
    """A module's functions of these names, adapted."""
    return {n: adapt(getattr(module, n)) for n in names.split()}


# --- ufuncs --------------------------------------------------------------------------------------

_SAME_NAME = """
abs add subtract multiply divide floor_divide remainder negative positive sign square sqrt cbrt
reciprocal hypot copysign nextafter exp exp2 expm1 log log2 log10 log1p logaddexp sin cos tan sinh
cosh tanh floor ceil trunc maximum minimum equal not_equal less less_equal greater greater_equal
logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor isnan isinf
isfinite signbit
"""
_OTHER_NAME = {
    "power": "pow", "rint": "round", "invert": "bitwise_invert", "arctan2": "atan2",
    "left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift", "arcsin": "asin",
    "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
}  # fmt: skip
_SCIPYS = {"erf": elementwise.erf, "erfc": elementwise.erfc, "expit": elementwise.sigmoid}


def _divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    return elementwise.floor_divide(x1, x2), elementwise.remainder(x1, x2)


UFUNCS: dict[Any, Function] = {
    **{getattr(np, name): f for name, f in _each(_SAME_NAME, elementwise).items()},
    **{getattr(np, name): getattr(elementwise, ours) for name, ours in _OTHER_NAME.items()},
    np.divmod: _divmod,
    np.matmul: linalg.matmul,
    np.vecdot: linalg.vecdot,
}
_REDUCTIONS: dict[Any, Function] = {
    np.add: statistics.sum, np.multiply: statistics.prod, np.maximum: statistics.max,
    np.minimum: statistics.min, np.logical_and: statistics.all, np.logical_or: statistics.any,
}  # fmt: skip
_ACCUMULATIONS: dict[Any, Function] = {
    np.add: cumulative.cumulative_sum, np.multiply: cumulative.cumulative_prod,
}  # fmt: skip


def array_ufunc(x: Tensor, ufunc: Any, method: str, *inputs: Any, **given: Any) -> Any:
    """dovetail's function for a ufunc of NumPy, of which some operand or `out=` is a tensor.

    Raises: DTypeError for ufuncs, methods and parameters that dovetail lacks; else as the function.
    """
    outs = given.pop("out", ())
    if any(decides(v) for v in (*inputs, *outs)):
        return NotImplemented
    name = ufunc.__name__ if method == "__call__" else f"{ufunc.__name__}.{method}"
    for out in outs:
        if out is not None and not isinstance(out, Tensor):
            raise DTypeError(
                f"np.{name}: out= is a NumPy array, and an operand a tensor; give out= a tensor, "
                "or the operand as np.asarray(x)"
            )
    ours = _ufunc(ufunc, method)
    if ours is None:
        raise _lacking(name)
    if not any(isinstance(v, Tensor) for v in inputs):
        inputs = tuple([beside(name, v, outs) if isinstance(v, ARRAYS) else v for v in inputs])
    made = _called(name, ours, inputs, given)
    if not outs:
        return made
    results = made if isinstance(made, tuple) else (made,)
    found = tuple(
        r if out is None else write_out(name, out, r) for r, out in zip(results, outs, strict=True)
    )
    return found if len(found) > 1 else found[0]


def _ufunc(ufunc: Any, method: str) -> Function | None:
    if method == "__call__":
        return UFUNCS.get(ufunc) or _SCIPYS.get(ufunc.__name__)
    if method == "reduce" and ufunc in _REDUCTIONS:
        return _reduced(_REDUCTIONS[ufunc])
    if method == "accumulate" and ufunc in _ACCUMULATIONS:
        return _accumulated(_ACCUMULATIONS[ufunc])
    if method == "outer" and ufunc in UFUNCS:
        return _outer(UFUNCS[ufunc])
    return None


@lru_cache
def _reduced(ours: Function) -> Function:
    def reduce(array: Any, axis: Any = 0, *, keepdims: bool = False, **dtype: Any) -> Tensor:
        return _called(ours.__name__, ours, (array,), {"axis": axis, "keepdims": keepdims, **dtype})  # type: ignore[no-any-return]

    return reduce


@lru_cache
def _accumulated(ours: Function) -> Function:
    def accumulate(array: Any, axis: int = 0, dtype: Any = None) -> Tensor:
        return ours(array, axis=axis, dtype=dtype)  # type: ignore[no-any-return]

    return accumulate


@lru_cache
def _outer(ours: Function) -> Function:
    def outer(a: Any, b: Any) -> Any:
        a, b = brought(ours.__name__, a, b)
        return ours(manipulation.reshape(a, (*a.shape, *(1,) * b.ndim)), b)

    return outer


# --- functions, with NumPy's parameters ----------------------------------------------------------


def _sums(ours: Function) -> Function:
    def f(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False
    ) -> Tensor:
        return ours(a, axis=axis, dtype=dtype, out=out, keepdims=keepdims)  # type: ignore[no-any-return]

    return f


def _extremes(ours: Function) -> Function:
    def f(a: Any, axis: Any = None, out: Any = None, keepdims: bool = False) -> Tensor:
        return ours(a, axis=axis, out=out, keepdims=keepdims)  # type: ignore[no-any-return]

    return f


def _moments(ours: Function) -> Function:
    def f(
        a: Any, axis: Any = None, dtype: Any = None, out: Any = None, ddof: float = 0,
        keepdims: bool = False, *, correction: float | None = None,
    ) -> Tensor:  # fmt: skip
        n = ddof if correction is None else correction
        x = datatypes.cast(a, None if dtype is None else datatypes.real_dtype("std", dtype))
        return ours(x, axis=axis, correction=n, keepdims=keepdims, out=out)  # type: ignore[no-any-return]

    return f


def _running(ours: Function) -> Function:
    def f(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        x = manipulation.ravel(a) if axis is None else a
        return ours(x, axis=axis or 0, dtype=dtype, out=out)  # type: ignore[no-any-return]

    return f


def _in_order(ours: Function) -> Function:
    def f(a: Any, axis: int | None = -1, kind: Any = None, *, stable: bool | None = None) -> Tensor:
        return ours(manipulation.ravel(a) if axis is None else a, axis=-1 if axis is None else axis)  # type: ignore[no-any-return]

    return f


def _filled_like(ours: Function) -> Function:
    def f(a: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
        return ours(a, dtype=dtype, device=device)  # type: ignore[no-any-return]

    return f


def _triangle(ours: Function) -> Function:
    return lambda m, k=0: ours(m, k=k)


def _close(ours: Function) -> Function:
    def f(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
        return ours(a, b, rtol=rtol, atol=atol, equal_nan=equal_nan)

    return f


def _where(condition: Any, *choices: Any) -> Any:
    return elementwise.where(condition, *choices) if choices else masks.nonzero(condition)


def _clip(
    a: Any, a_min: Any = None, a_max: Any = None, out: Any = None, *, min: Any = None,
    max: Any = None,
) -> Tensor:  # fmt: skip
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    return elementwise.clip(a, low, high, out=out)


def _transpose(a: Any, axes: Any = None) -> Tensor:
    return manipulation.transpose(a) if axes is None else manipulation.permute_dims(a, tuple(axes))


def _concatenate(arrays: Any, axis: int | None = 0, out: Any = None) -> Tensor:
    made = manipulation.concat(arrays, axis=axis)
    return made if out is None else write_out("concatenate", out, made)


def _stack(arrays: Any, axis: int = 0, out: Any = None) -> Tensor:
    made = manipulation.stack(arrays, axis=axis)
    return made if out is None else write_out("stack", out, made)


def _at_least(dims: int) -> Function:
    def one(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return (np.atleast_1d, np.atleast_2d)[dims - 1](x)
        return manipulation.reshape(x, ((1,) * (dims - x.ndim) + x.shape)) if x.ndim < dims else x

    def f(*arys: Any) -> Any:
        return one(arys[0]) if len(arys) == 1 else tuple(map(one, arys))

    return f


def _vstack(tup: Any) -> Tensor:
    return manipulation.concat([_at_least(2)(x) for x in tup])


def _hstack(tup: Any) -> Tensor:
    parts = [_at_least(1)(x) for x in tup]
    return manipulation.concat(parts, axis=0 if parts[0].ndim == 1 else 1)


def _broadcast_arrays(*args: Any) -> tuple[Any, ...]:
    """What is no tensor stays on the host, whatever it holds."""
    given = [x if isinstance(x, Tensor) else np.asarray(x) for x in args]
    shape = manipulation.broadcast_shapes(*(x.shape for x in given))
    return tuple(
        manipulation.broadcast_to(x, shape) if isinstance(x, Tensor) else np.broadcast_to(x, shape)
        for x in given
    )


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
    n = ary.shape[axis]
    if isinstance(indices_or_sections, int):
        if n % indices_or_sections:
            raise ArgumentError(
                f"split: {n} does not divide into {indices_or_sections} equal parts"
            )
        size = n // indices_or_sections
        return list(manipulation.split(ary, [size] * indices_or_sections, axis=axis))
    first = manipulation.moveaxis(ary, axis, 0)
    cuts = [*indices_or_sections, n]
    parts = [first[a:b] for a, b in zip([0, *cuts], cuts, strict=False)]
    return [manipulation.moveaxis(p, 0, axis) for p in parts]


def _take(a: Any, indices: Any, axis: int | None = None) -> Tensor:
    x = manipulation.ravel(a) if axis is None else a
    return indexing.take(x, indices, axis=axis or 0)


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    return cumulative.diff(a, axis=axis, n=n, prepend=prepend, append=append)


def _dot(a: Any, b: Any, out: Any = None) -> Tensor:
    arrays = (Tensor, *ARRAYS)
    a, b = brought("dot", a, b) if isinstance(a, arrays) and isinstance(b, arrays) else (a, b)
    if not np.ndim(a) or not np.ndim(b):
        made = elementwise.multiply(a, b)
    elif b.ndim <= 2:
        made = linalg.matmul(a, b)
    else:
        made = linalg.tensordot(a, b, axes=((-1,), (-2,)))
    return made if out is None else write_out("dot", out, made)


def _outer_product(a: Any, b: Any) -> Tensor:
    return linalg.outer(*map(manipulation.ravel, brought("outer", a, b)))


def _einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Tensor:
    return contraction.einsum(subscripts, *operands)


_OURS: dict[str, Function] = {
    **_each("sum prod mean", statistics, _sums),
    **_each("max min any all argmax argmin", statistics, _extremes),
    **_each("std var", statistics, _moments),
    **_each("isclose allclose", elementwise, _close),
    **_each("sort argsort", sorting, _in_order),
    **_each("tril triu", creation, _triangle),
    **_each("zeros_like ones_like empty_like", creation, _filled_like),
    **_each("unique_all unique_counts unique_inverse unique_values", sets),
    **_each("cumulative_sum cumulative_prod", cumulative),
    **_each("unstack", manipulation),
    "atleast_1d": _at_least(1),
    "atleast_2d": _at_least(2),
    "broadcast_arrays": _broadcast_arrays,
    "vstack": _vstack,
    "hstack": _hstack,
    "amax": _extremes(statistics.max),
    "amin": _extremes(statistics.min),
    "cumsum": _running(cumulative.cumulative_sum),
    "cumprod": _running(cumulative.cumulative_prod),
    "diff": _diff,
    "count_nonzero": lambda a, axis=None, *, keepdims=False: statistics.count_nonzero(
        a, axis=axis, keepdims=keepdims
    ),
    "where": _where,
    "clip": _clip,
    "round": lambda a, decimals=0, out=None: elementwise.round(a, decimals=decimals, out=out),
    "around": lambda a, decimals=0, out=None: elementwise.round(a, decimals=decimals, out=out),
    "array_equal": lambda a1, a2: elementwise.array_equal(a1, a2),
    "astype": lambda x, dtype, /, *, copy=True, device=None: datatypes.astype(
        x, dtype, copy=copy, device=device
    ),
    "reshape": lambda a, /, shape, *, copy=None: manipulation.reshape(a, shape, copy=copy),
    "transpose": _transpose,
    "matrix_transpose": lambda x, /: linalg.matrix_transpose(x),
    "swapaxes": lambda a, axis1, axis2: manipulation.swapaxes(a, axis1, axis2),
    "moveaxis": lambda a, source, destination: manipulation.moveaxis(a, source, destination),
    "expand_dims": lambda a, axis: manipulation.expand_dims(a, axis),
    "squeeze": lambda a, axis=None: manipulation.squeeze(a, axis),
    "flip": lambda m, axis=None: manipulation.flip(m, axis),
    "ravel": lambda a: manipulation.ravel(a),
    "copy": lambda a: manipulation.copy(a),
    "broadcast_to": lambda array, shape: manipulation.broadcast_to(array, shape),
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "roll": lambda a, shift, axis=None: manipulation.roll(a, shift, axis=axis),
    "repeat": lambda a, repeats, axis=None: manipulation.repeat(a, repeats, axis=axis),
    "tile": lambda A, reps: manipulation.tile(A, reps),
    "diagonal": lambda a, offset=0, axis1=0, axis2=1: manipulation.diagonal(
        a, offset, axis1, axis2
    ),
    "full_like": lambda a, fill_value, dtype=None, *, device=None: creation.full_like(
        a, fill_value, dtype=dtype, device=device
    ),
    "meshgrid": lambda *xi, indexing="xy": creation.meshgrid(*xi, indexing=indexing),
    "take": _take,
    "take_along_axis": lambda arr, indices, axis=-1: indexing.take_along_axis(
        arr, indices, axis=axis
    ),
    "nonzero": lambda a: masks.nonzero(a),
    "argwhere": lambda a: masks.argwhere(a),
    "searchsorted": lambda a, v, side="left", sorter=None: indexing.searchsorted(
        a, v, side=side, sorter=sorter
    ),
    "isin": lambda element, test_elements, assume_unique=False, invert=False: sets.isin(
        element, test_elements, invert=invert
    ),
    "dot": _dot,
    "outer": _outer_product,
    "tensordot": lambda a, b, axes=2: linalg.tensordot(a, b, axes=axes),
    "einsum": _einsum,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": lambda a, axis=None: a.size if axis is None else a.shape[axis],
}
_OUR_LINALG = _each("outer diagonal matmul tensordot vecdot matrix_transpose", linalg)
# What looks at values and gives no array of them.
_LOOKING = """
save savez savez_compressed savetxt array2string array_repr array_str iscomplexobj isrealobj
result_type can_cast common_type min_scalar_type may_share_memory shares_memory copyto
"""


def _looking(function: Function) -> Function:
    def f(*args: Any, **given: Any) -> Any:
        return function(*map(_on_host, args), **{k: _on_host(v) for k, v in given.items()})

    return f


def _on_host(x: Any) -> Any:
    return x.numpy() if isinstance(x, Tensor) else x


FUNCTIONS: dict[Any, Function] = {  # of this NumPy, which may lack some
    getattr(where, name): ours
    for where, table in (
        (np, _OURS | _each(_LOOKING, np, _looking)),
        (np.linalg, _OUR_LINALG),
    )
    for name, ours in table.items()
    if hasattr(where, name)
}


def array_function(
    x: Tensor, function: Any, types: Sequence[type], args: Sequence[Any], given: dict[str, Any]
) -> Any:
    """dovetail's function for one of NumPy's that was given a tensor.

    Raises: DTypeError for functions and parameters that dovetail lacks; else as the function.
    """
    if not all(issubclass(t, (Tensor, np.ndarray)) for t in types):
        return NotImplemented
    module = function.__module__.removeprefix("numpy").lstrip(".")
    name = f"{module}.{function.__name__}" if module else function.__name__
    if function not in FUNCTIONS:
        raise _lacking(name)
    return _called(name, FUNCTIONS[function], args, given)
