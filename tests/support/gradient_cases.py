"""Programs for gradient tests: for every op, programs that use it, or the reason why it has no
gradient.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from zlib import crc32

import dovetail as dt
import numpy as np
from dovetail.functions.products.convolutions import convolved, transposed, weight_gradient
from dovetail.graph.expr import node
from dovetail.ops import table as ops
from dovetail.ops.convolution import Geometry
from dovetail.ops.histogram import BitRange
from dovetail.ops.sort import SortAttrs
from dovetail.tensor.primitives import apply
from dovetail.tensor.tensor import create_tensor

Array = np.ndarray[Any, Any]


def uniform(*shape: int, low: float = -2.0, high: float = 2.0) -> Array:
    """Return uniform samples, seeded by the shape and the bounds."""
    seed = crc32(repr((shape, low, high)).encode())
    return np.random.default_rng(seed).uniform(low, high, shape)


class Case(NamedTuple):
    """A differentiable program, the point, and the op that it tests."""

    row: str
    function: Callable[..., Any]
    arrays: tuple[Array, ...]
    eps: float = 1e-6  # step of the finite differences


# --- elementwise ops -----------------------------------------------------------------------------

DOMAINS: dict[str, tuple[float, float]] = {
    "sqrt": (0.2, 3), "rsqrt": (0.2, 3), "log": (0.2, 3), "log2": (0.2, 3), "log10": (0.2, 3),
    "log1p": (-0.8, 2), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9),
    "acosh": (1.1, 3), "tan": (-1.2, 1.2), "cbrt": (0.2, 3), "reciprocal": (0.3, 3),
    "divide": (0.3, 3), "pow": (0.3, 3), "hypot": (0.2, 2), "remainder": (0.6, 0.9),
    "floor_divide": (0.6, 0.9), "python_floor_divide": (0.6, 0.9),
    "erfinv": (-0.9, 0.9), "ndtri": (0.1, 0.9), "logit": (0.1, 0.9),
    "lgamma": (0.2, 4), "gamma": (0.2, 3), "digamma": (0.2, 4), "xlogy": (0.3, 3), "beta": (0.3, 3),
    "zeta": (1.5, 4), "sinc": (0.1, 0.9), "ldexp": (1.1, 1.8), "frexp_mantissa": (1.1, 1.8),
}  # fmt: skip


def elementwise_cases() -> dict[str, Case]:
    """Return cases of each differentiable op of one or two operands, also with a Python number
    as one.
    """
    found: dict[str, Case] = {}
    for name, op in ops.TABLE.items():
        if op.kind != "map" or op.arity > 2 or not op.gradient or name == "astype":
            continue
        low, high = DOMAINS.get(name, (-2.0, 2.0))
        x, y = uniform(4, 3, low=low, high=high), uniform(3, low=low, high=high) + 0.013
        if op.arity == 1:
            found[name] = Case(name, lambda t, op=op: apply(op, (t,)), (y,))
            continue
        if None in op.gradient:  # no gradient for the first
            found[name] = Case(name, lambda t, op=op: apply(op, (2.5, t)), (y,))
            continue
        found[name] = Case(name, lambda s, t, op=op: apply(op, (s, t)), (x, y))
        found[name + " number"] = Case(name, lambda t, op=op: apply(op, (t, 0.7)), (x,))
        found["number " + name] = Case(name, lambda t, op=op: apply(op, (0.7, t)), (y,))
    return found


# --- other ops -----------------------------------------------------------------------------------

CUBE = (uniform(2, 3, 4) + 0.01,)
MASK = np.array([[True, False, True], [False, True, False], [True, True, False]])
ZEROS = [np.array([[1.5, -2.0, 0.5, 3.0], [0.5, 0.7, -1.1, 0.9]]) for _ in range(4)]
for _array, _where in zip(ZEROS, ((), (1,), (1, 3), (0, 1, 2, 3)), strict=True):
    _array[0, list(_where)] = 0.0


def _set(key: Any) -> Callable[..., Any]:
    def f(x: Any, v: Any) -> Any:
        h = x * 1.0
        h[key] = v
        return h * x

    return f


def _rows_written(x: Any, y: Any) -> Any:
    buffer = dt.zeros((4, 3), dtype=dt.float64)
    buffer[0] = x
    for i in range(1, 4):
        buffer[i] = (buffer[i - 1] + 0.0) * y + i
    buffer[1:3, 1] = 5.0
    buffer[:, 2] *= 3.0
    buffer[0, :2] += x[1:]
    return buffer


def _scattered(x: Any, v: Any) -> Any:
    return dt.scatter(x, 0, dt.asarray([[0, 1, 2], [3, 1, 0]]), v[:2])


def _recurrence(lag: int, axis: int) -> Callable[..., Any]:
    def f(x: Any, b: Any) -> Any:
        made = node(ops.RECURRENCE, (x._expr, b._expr), b._expr.spec, (axis, lag))
        return create_tensor(made)

    return f


_CUBE: dict[str, dict[str, Callable[[Any], Any]]] = {
    "sum": {
        "sum": lambda x: x.sum(axis=1),
        "sum of all": lambda x: x.sum(),
        "sum with dims": lambda x: x.sum(axis=(0, 2), keepdims=True),
        "softmax": lambda x: x.softmax(axis=-1),
        "log_softmax": lambda x: x.log_softmax(axis=0),
        "logsumexp": lambda x: x.logsumexp(axis=1),
        "logsumexp of two": lambda x: x.logsumexp(axis=(0, 2), keepdims=True),
        "var": lambda x: x.var(axis=1, correction=1),
        "std": lambda x: x.std(axis=2),
    },
    "mean": {
        "mean": lambda x: x.mean(axis=(0, 1)),
        "mean with dims": lambda x: x.mean(axis=-2, keepdims=True),
    },
    "prod": {
        "prod": lambda x: x.prod(axis=1),
        "prod of all": lambda x: x[0].prod(),
        "prod of two": lambda x: x.prod(axis=(0, 2)),
        "prod with dims": lambda x: x.prod(axis=(0, 1), keepdims=True),
    },
    "max": {
        "max": lambda x: x.max(axis=2),
        "max of all": lambda x: x.max(),
        "max with dims": lambda x: x.max(axis=(0, 1), keepdims=True),
    },
    "min": {"min": lambda x: x.min(axis=0, keepdims=True), "min of two": lambda x: x.min((1, 2))},
    "cumulative_sum": {
        "cumulative_sum": lambda x: dt.cumulative_sum(x, axis=1),
        "cumulative_sum after 0": lambda x: dt.cumulative_sum(x, axis=2, include_initial=True),
    },
    "cumulative_logsumexp": {
        "cumulative_logsumexp": lambda x: dt.cumulative_logsumexp(x, axis=1),
        "cumulative_logsumexp after 0": lambda x: dt.cumulative_logsumexp(
            x, axis=0, include_initial=True
        )[1:],
    },
    "cumulative_prod": {
        "cumulative_prod": lambda x: dt.cumulative_prod(x, axis=0),
        "cumulative_prod after 1": lambda x: dt.cumulative_prod(x, axis=1, include_initial=True),
    },
    "view": {
        "permute": lambda x: x.permute_dims((2, 0, 1)) * 2.0,
        "transpose": lambda x: x.mT.exp(),
        "expand": lambda x: x[:, :1].expand(2, 3, 4) * x,
        "reshape": lambda x: x.reshape(4, 6) ** 2,
        "reshape of a transpose": lambda x: x.mT.reshape(24) * 3.0,
        "slice": lambda x: x[1:, ::2, 1:3].exp(),
        "slice backwards": lambda x: x[::-1, ::-2, 3:0:-1] * 2.0,
        "integers": lambda x: x[1, :, 2],
        "new axes": lambda x: x[:, None, 0, ..., None],
        "flip": lambda x: dt.flip(x, axis=1) * x,
        "nothing": lambda x: x[:0].sum() + x.sum(),
        "split": lambda x: x.split(2, axis=2)[0] * x.split(2, axis=2)[1],
        "unstack": lambda x: x.unstack(axis=1)[1] * x.unstack(axis=1)[2],
        "diff": lambda x: dt.diff(x, axis=2),
        "moveaxis": lambda x: dt.moveaxis(x, 0, -1) * 2.0,
        "squeeze": lambda x: dt.squeeze(x[:, :1], axis=1) * 3.0,
    },
    "gather": {
        "take": lambda x: dt.take(x, [0, 2, 2, 1], axis=1),
        "take one": lambda x: dt.take(x, [2], axis=1) * x,
        "take of a tensor": lambda x: dt.take(x, dt.asarray([-1, 0, -1]), axis=2),
        "rows": lambda x: x[[1, 0, 1]] ** 2,
        "points": lambda x: x[[0, 1, 1], [2, 2, 0]],
        "points apart": lambda x: x[[0, 1], :, [3, 3]],
        "grid": lambda x: x[:, [[0], [2]], [1, 1, 0]],
        "mask": lambda x: x[x > 0],
        "mask of rows": lambda x: x[dt.asarray([False, True])],
        "take_along_axis of one": lambda x: dt.take_along_axis(
            x, dt.argmax(x, axis=2, keepdims=True), axis=2
        ),
        "take_along_axis": lambda x: dt.take_along_axis(
            x, dt.asarray([[[0, -1, 0, 2]], [[1, 1, 0, 2]]]), axis=1
        ),
        "take_along_axis of several": lambda x: dt.take_along_axis(
            x, dt.asarray([[[0, 3, 0], [1, 1, 1], [2, 0, -1]]]), axis=2
        ),
        "sort": lambda x: dt.sort(x, axis=1, descending=True),
        "topk": lambda x: dt.topk(x, 2, axis=2).values,
        "repeat each": lambda x: dt.repeat(x, [1, 0, 3], axis=1),
        "sort upwards": lambda x: dt.sort(x, axis=0) * x,
    },
    "concat": {
        "concat": lambda x: dt.concat([x, x * 2.0, x[:1]], axis=0),
        "stack": lambda x: dt.stack([x[0], x[1].exp()], axis=1),
        "roll": lambda x: dt.roll(x, 2, axis=1) * x,
    },
    "as_strided": {
        "as_strided": lambda x: (x * 1.0).as_strided((5, 3), (4, 1), 2),
        "as_strided windows": lambda x: (x * 1.0).as_strided((5, 3), (2, 1), 1) ** 2,
    },
    "where": {
        "where": lambda x: dt.where(x > 0, x * 3.0, x * x),
        "tril": lambda x: dt.tril(x),
        "triu": lambda x: dt.triu(x, k=1),
    },
    "copy": {
        "tile": lambda x: dt.tile(x, (2, 1, 1)),
        "repeat": lambda x: dt.repeat(x, 2, axis=1),
    },
    "pow": {"powers": lambda x: x**3 + x**1 + x**0 + x**2},
}  # fmt: skip


def _product(a: Any, b: Any) -> Any:
    """Return a matmul with vectors as matrices; that of two vectors would be a sum otherwise."""
    with dt.vendor_products(False):
        return dt.matmul(a, b)


def _matrices() -> dict[str, Case]:
    shapes = (((3, 4), (4, 2)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4, 2)),
              ((2, 1, 3, 4), (3, 4, 2)), ((4,), (2, 4, 3)), ((2, 3, 4), (4,)))  # fmt: skip
    found = {f"{a} @ {b}": Case("matmul", _product, (uniform(*a), uniform(*b))) for a, b in shapes}
    for a, b in (((4,), (4,)), ((4,), (4, 2)), ((3, 4), (4,)), ((2, 3, 4), (4,))):
        found[f"{a} @ {b}, vendor products"] = Case("matmul", dt.matmul, (uniform(*a), uniform(*b)))
    pair = (uniform(3, 4), uniform(4, 3))
    found["tensordot"] = Case("matmul", lambda a, b: dt.tensordot(a, b, axes=1), pair)
    found["einsum"] = Case("matmul", lambda a, b: dt.einsum("ij,kj->ik", a, b.T), pair)
    found["einsum of one"] = Case("sum", lambda a: dt.einsum("iji->j", a), (uniform(3, 2, 3),))
    found["vecdot"] = Case("matmul", lambda a, b: dt.vecdot(a, b.T), pair)
    found["outer"] = Case("multiply", lambda a, b: dt.outer(a[0], b[0]), pair)
    return found


def _convolutions() -> dict[str, Case]:
    x, w, b, y = uniform(2, 4, 3, 5), uniform(6, 2, 2, 2), uniform(6), uniform(2, 6, 2, 3)
    for_each = Geometry((2, 2), (1, 1), (1, 2), 2)
    return {
        "convolution": Case(
            "convolution", lambda x, w, b: convolved(x, w, b, (2, 3), for_each), (x, w, b)
        ),
        "convolution, to x": Case(
            "convolution_input", lambda y, w: transposed(y, w, (3, 5), for_each), (y, w)
        ),
        "convolution, to w": Case(
            "convolution_weight", lambda x, y: weight_gradient(x, y, (2, 2), for_each), (x, y)
        ),
    }


def _reduced(reduce: str) -> Any:
    return lambda a, b: dt.index_reduce(a, 0, [0, 3, 0, 1, 3], b, reduce)


def _several() -> dict[str, Case]:
    three = (uniform(6), uniform(6, low=-1, high=-0.2), uniform(6, low=0.2, high=1))
    square, into = uniform(3, 3), (uniform(4, 3), uniform(5, 3))
    keys = {"rows": [0, 2], "a row twice": [1, 1, 0], "columns": (slice(None), [1, 2])}
    masks = {"mask": (1,), "mask and values": (5,)}
    found = {
        "clip": Case("clip", lambda a, b, c: apply(ops.CLIP, (a, b, c)), three),
        "clip by numbers": Case("clip", lambda a: dt.clip(a, -1, 1), three[:1]),
        "clip from above": Case("minimum", lambda a: dt.clip(a, max=0.3), three[:1]),
        "where of two": Case("where", lambda a, b: dt.where(a > 0, a * b, b), three[:2]),
        "astype": Case("astype", lambda x: x.astype(dt.float32).astype(dt.float64) * 2.0,
                       (np.array([0.5, -1.25, 3.0]),), 2.0**-7),
        "index_add": Case("scatter", lambda a, b: dt.index_add(a, 0, [0, 3, 0, 1, 3], b), into),
        **{f"index_reduce {r}": Case("scatter_reduce", _reduced(r), into)
           for r in ("prod", "amax", "amin")},
        "scatter": Case("scatter", _scattered, into),
        "rows written": Case("written", _rows_written, (uniform(3), uniform(3) + 1.0)),
        **{f"set {n}": Case("multiply", _set(k), (square, uniform(*square[k].shape)))
           for n, k in keys.items()},
        **{f"set {n}": Case("multiply", _set(MASK), (square, uniform(*s)))
           for n, s in masks.items()},
        **{f"prod with zeros {i}": Case("prod", lambda x: x.prod(axis=1), (z,))
           for i, z in enumerate(ZEROS)},
        **{f"prod down with zeros {i}": Case("prod", lambda x: x.prod(axis=0), (z,))
           for i, z in enumerate(ZEROS)},
        **{f"cumulative_prod with zeros {i}": Case(
            "cumulative_prod", lambda x: dt.cumulative_prod(x, axis=1), (z,))
           for i, z in enumerate(ZEROS)},
    }  # fmt: skip
    for lag in (0, 1):
        pair = (uniform(2, 5), uniform(2, 5) + 0.1)
        found[f"recurrence, lag {lag}"] = Case("recurrence", _recurrence(lag, 1), pair)
        found[f"recurrence down, lag {lag}"] = Case("recurrence", _recurrence(lag, 0), pair)
    return found


CASES: dict[str, Case] = {
    **elementwise_cases(),
    **{name: Case(row, f, CUBE) for row, found in _CUBE.items() for name, f in found.items()},
    **_matrices(),
    **_convolutions(),
    **_several(),
}

# Ops from floats to floats without a gradient.
NOT_DIFFERENTIABLE = {
    "nextafter": "it jumps from float to float",
    "sort": "where a gradient is wanted, sorting is a gather in the order of argsort",
    "cumulative_max": "cummax gathers at the indices of a scan without a gradient",
    "cumulative_min": "cummin gathers at the indices of a scan without a gradient",
    "select": "where a gradient is wanted, what is sought is sorted",
}


def reason(name: str) -> str | None:
    """Return why an op has no gradient, or None if it must have one."""
    op = ops.TABLE[name]
    if name in NOT_DIFFERENTIABLE:
        return NOT_DIFFERENTIABLE[name]
    if op.kind == "generate":
        return "it takes no tensor"
    return None if gives_floats(name) else "its results are no floats, or its operands are none"


# attributes for calls of an op's dtype rule, if not None
ATTRIBUTES: dict[str, Any] = {
    "astype": dt.float32, "cumulative_sum": (0, False, None), "cumulative_prod": (0, False, None),
    "cumulative_logsumexp": (0, False, None), "cumulative_max": (0, False, None),
    "cumulative_min": (0, False, None),
    "searchsorted": "left", "recurrence": (0, 0), "sort": SortAttrs(False, 0, 32),
    "select": BitRange(0, 32),
}  # fmt: skip


def gives_floats(name: str) -> bool:
    """Return True if an op computes floats from floats."""
    op = ops.TABLE[name]
    operands: list[Any] = [dt.float32] * max(op.arity, 1)
    if name == "where":
        operands[0] = dt.bool
    try:
        return bool(op.dtypes(name, operands, ATTRIBUTES.get(name))[1].kind == "f")
    except dt.DTypeError:
        return False
