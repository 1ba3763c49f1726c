"""What `bench/sweep.py` measures: the public functions and the forms of indexing, one row each.

A row's work is one function of a namespace and operands, for dovetail and NumPy; PyTorch has one of
its own where names differ. Operands are asked for by name: the names of the parameters.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from comparison_cases import Array, Foreign, K, M

ROWS: dict[str, Row] = {}


@dataclass(frozen=True)
class Row:
    """One line of the sweep, for each size, dtype and arrangement.

    `compute(xp, *operands)` for dovetail and NumPy, `torch` for PyTorch. `kinds`: "f", "i" or both.
    `arranged`: whether `x` also comes transposed and sliced. `most`: the largest size.
    """

    name: str
    compute: Callable[..., Foreign]
    torch: Callable[..., Foreign]
    kinds: str = "f"
    arranged: bool = False
    most: int = 16 * M
    numpy: Callable[..., Foreign] | None = None  # where NumPy's name is not the standard's

    @property
    def operands(self) -> tuple[str, ...]:
        """The names of what it takes, after the namespace."""
        return tuple(inspect.signature(self.compute).parameters)[1:]


def _row(
    name: str, compute: Callable[..., Foreign], torch: Callable[..., Foreign] | None = None,
    kinds: str = "f", arranged: bool = False, most: int = 16 * M,
    numpy: Callable[..., Foreign] | None = None,
) -> None:  # fmt: skip
    ROWS[name] = Row(name, compute, torch or compute, kinds, arranged, most, numpy)


# --- operands -------------------------------------------------------------------------------------


def _side(n: int) -> int:
    """The side of a square of about n elements."""
    return 1 << (n.bit_length() - 1) // 2


def _drawn(seed: int, n: int, kind: str, low: float, high: float) -> Array:
    rng = np.random.default_rng(seed)
    if kind[0] == "i":
        return rng.integers(1, 1000, n, dtype=kind)
    return rng.uniform(low, high, n).astype(kind)


def _positions(n: int) -> Array:
    return np.random.default_rng(5).integers(0, n, n)


def _complex(n: int, kind: str) -> Array:
    """Of the same precision as `kind`."""
    return _drawn(22, n, kind, 0.1, 0.9) + np.array(1j, f"c{2 * np.dtype(kind).itemsize}") * _drawn(
        23, n, kind, 0.1, 0.9
    )


# name of a parameter -> (n, dtype) -> an array
OPERANDS: dict[str, Callable[[int, str], Array]] = {
    "x": lambda n, kind: _drawn(1, n, kind, 0.1, 0.9),
    "y": lambda n, kind: _drawn(2, n, kind, 0.1, 0.9),
    "wide": lambda n, kind: _drawn(3, n, kind, -8, 8),
    "above": lambda n, kind: _drawn(4, n, kind, 1.1, 9),
    "shifts": lambda n, kind: np.random.default_rng(6).integers(0, 8, n, dtype=kind),
    "mask": lambda n, kind: np.random.default_rng(7).random(n) < 0.5,
    "other": lambda n, kind: np.random.default_rng(8).random(n) < 0.5,
    "ordered": lambda n, kind: np.sort(_drawn(9, n, kind, 0.1, 0.9)),
    "places": lambda n, kind: _positions(n),
    "z": _complex,
    "order": lambda n, kind: np.random.default_rng(10).permutation(n),
    "few": lambda n, kind: np.random.default_rng(11).integers(0, 100, n).astype(kind),
    "square": lambda n, kind: _drawn(12, _side(n) ** 2, kind, 0.1, 0.9).reshape(_side(n), -1),
    "second": lambda n, kind: _drawn(13, _side(n) ** 2, kind, 0.1, 0.9).reshape(_side(n), -1),
    "near": lambda n, kind: _drawn(21, n, kind, 1 - 2e-3, 1 + 2e-3),
    "near_square": lambda n, kind: OPERANDS["near"](_side(n) ** 2, kind).reshape(_side(n), -1),
    "near_narrow": lambda n, kind: OPERANDS["near"](n, kind).reshape(-1, 32),
    "narrow": lambda n, kind: _drawn(14, n, kind, 0.1, 0.9).reshape(-1, 32),
    "rows": lambda n, kind: np.random.default_rng(20).permutation(_side(n)),
    "row": lambda n, kind: _drawn(15, _side(n), kind, 0.1, 0.9),
    "column": lambda n, kind: _drawn(16, _side(n), kind, 0.1, 0.9),
    "across": lambda n, kind: np.random.default_rng(17).integers(0, _side(n), (_side(n), _side(n))),
    # written in place
    "target": lambda n, kind: _drawn(18, n, kind, 0.1, 0.9),
    "plane": lambda n, kind: _drawn(19, _side(n) ** 2, kind, 0.1, 0.9).reshape(_side(n), -1),
}


# --- elementwise ----------------------------------------------------------------------------------

_FOR_TORCH = {"bitwise_invert": "bitwise_not", "equal": "eq"}


def _unary(names: str, operand: str, kinds: str) -> None:
    for name in names.split():
        text = f"lambda xp, {operand}: xp.{{}}({operand})"
        ours, theirs = eval(text.format(name)), eval(text.format(_FOR_TORCH.get(name, name)))
        _row(name, ours, theirs, kinds, arranged=True)


def _binary(names: str, kinds: str, operands: str = "x, y") -> None:
    for name in names.split():
        text = f"lambda xp, {operands}: xp.{{}}({operands})"
        ours, theirs = eval(text.format(name)), eval(text.format(_FOR_TORCH.get(name, name)))
        _row(name, ours, theirs, kinds, arranged=operands[0] == "x")


_unary("acos asin atanh", "x", "f")
_unary("acosh log log1p log2 log10 sqrt reciprocal", "above", "f")
_unary("asinh atan cos sin tan cosh sinh tanh exp expm1", "wide", "f")
_unary("ceil floor round trunc signbit isfinite isinf isnan", "wide", "f")
_unary("abs negative positive sign square", "x", "fi")
_unary("bitwise_invert", "x", "i")
_unary("logical_not", "mask", "f")
_binary("add subtract multiply maximum minimum", "fi")
_binary("equal not_equal less less_equal greater greater_equal", "fi")
_binary("divide atan2 copysign hypot logaddexp nextafter", "f")
_binary("pow", "f", "above, y")
_binary("floor_divide remainder", "fi")
_binary("bitwise_and bitwise_or bitwise_xor", "i")
_binary("bitwise_left_shift bitwise_right_shift", "i", "x, shifts")
_binary("logical_and logical_or logical_xor", "f", "mask, other")
_row("clip", lambda xp, x: xp.clip(x, 0.25, 0.75), arranged=True)
_row("where", lambda xp, mask, x, y: xp.where(mask, x, y), kinds="fi")
_row("astype float64", lambda xp, x: xp.astype(x, xp.float64), lambda t, x: x.to(t.float64), "i")
_row("x * 2 + 1", lambda xp, x: x * 2 + 1, kinds="fi", arranged=True)
_row("copy", lambda xp, x: xp.copy(x), lambda t, x: t.clone(x), "fi", arranged=True,
     numpy=lambda xp, x: np.array(x, order="C"))  # fmt: skip
_row("copy of square.T", lambda xp, square: xp.copy(square.T),
     lambda t, square: square.T.contiguous(),
     numpy=lambda xp, square: square.T.copy("C"))  # fmt: skip

_row("real(z) + 1", lambda xp, z: xp.real(z) + 1)
_row("imag(z) + 1", lambda xp, z: xp.imag(z) + 1)
_row("conj(z)", lambda xp, z: xp.conj(z), lambda t, z: t.conj(z).resolve_conj())
for _name in ("abs", "exp"):
    _row(f"{_name}(z)", eval(f"lambda xp, z: xp.{_name}(z)"))
_row("z * z + z", lambda xp, z: z * z + z)


# --- creation -------------------------------------------------------------------------------------


def _size(x: Foreign) -> int:
    return int(x.shape[0])


for _name in ("zeros", "ones", "empty"):
    _row(_name, eval(f"lambda xp, x: xp.{_name}(_size(x), dtype=xp.float32)", {"_size": _size}))
    _row(f"{_name}_like", eval(f"lambda xp, x: xp.{_name}_like(x)"), kinds="fi")
_row("full", lambda xp, x: xp.full((_size(x),), 2.5, dtype=xp.float32))
_row("full_like", lambda xp, x: xp.full_like(x, 2), kinds="fi")
_row("arange", lambda xp, x: xp.arange(_size(x)))
_row("linspace", lambda xp, x: xp.linspace(0, 1, _size(x)), kinds="f")
_row("eye", lambda xp, row: xp.eye(_size(row)))
_row("tril", lambda xp, square: xp.tril(square))
_row("triu", lambda xp, square: xp.triu(square))
_row("meshgrid", lambda xp, row, column: xp.meshgrid(row, column)[0] + 1,
     lambda t, row, column: t.meshgrid(row, column, indexing="xy")[0] + 1)  # fmt: skip


# --- arrangement ----------------------------------------------------------------------------------

_row("broadcast_to + 1", lambda xp, row, square: xp.broadcast_to(row, square.shape) + 1)
_row("concat", lambda xp, x, y: xp.concat([x, y]), kinds="fi")
_row("concat(axis=1)", lambda xp, square, second: xp.concat([square, second], axis=1))
_row("stack", lambda xp, x, y: xp.stack([x, y]))
_row("stack(axis=1)", lambda xp, x, y: xp.stack([x, y], axis=1))
_row("flip", lambda xp, x: xp.copy(xp.flip(x)), lambda t, x: t.flip(x, (0,)))
_row("flip(axis=1)", lambda xp, square: xp.copy(xp.flip(square, axis=1)),
     lambda t, square: t.flip(square, (1,)))  # fmt: skip
_row("roll", lambda xp, x: xp.roll(x, 7), kinds="fi")
_row("roll(axis=0)", lambda xp, square: xp.roll(square, 1, axis=0),
     lambda t, square: t.roll(square, 1, 0))  # fmt: skip
_row("roll(axis=1)", lambda xp, square: xp.roll(square, 1, axis=1),
     lambda t, square: t.roll(square, 1, 1))  # fmt: skip
_row("x + roll(x)", lambda xp, x: x + xp.roll(x, 1))
_row("repeat", lambda xp, x: xp.repeat(x, 3), lambda t, x: t.repeat_interleave(x, 3), "fi")
_row("tile", lambda xp, x: xp.tile(x, (3,)), kinds="fi")
_row("tile of square", lambda xp, square: xp.tile(square, (2, 2)))
_row("reshape of square.T", lambda xp, square: xp.reshape(square.T, (-1,)))
_row("diff", lambda xp, x: xp.diff(x), kinds="fi")
for _name, _ours, _theirs in (
    ("permute_dims", "permute_dims(square, (1, 0))", "permute(square, (1, 0))"),
    ("matrix_transpose", "matrix_transpose(square)", "transpose(square, 0, 1)"),
    ("moveaxis", "moveaxis(square, 0, 1)", "moveaxis(square, 0, 1)"),
    ("expand_dims", "expand_dims(square, axis=0)", "unsqueeze(square, 0)"),
    ("squeeze", "squeeze(square[None], axis=0)", "squeeze(square[None], 0)"),
    ("reshape", "reshape(square, (-1,))", "reshape(square, (-1,))"),
    ("broadcast_to", "broadcast_to(square, (2, *square.shape))",
     "broadcast_to(square, (2, *square.shape))"),
    ("broadcast_arrays", "broadcast_arrays(square, square[0])[1]",
     "broadcast_tensors(square, square[0])[1]"),
    ("unstack", "unstack(square)[0]", "unbind(square)[0]"),
):  # fmt: skip
    _row(_name, eval(f"lambda xp, square: xp.{_ours}"), eval(f"lambda xp, square: xp.{_theirs}"),
         most=K)  # fmt: skip


# --- reductions and scans -------------------------------------------------------------------------

for _name in ("sum", "prod", "max", "min", "mean", "var", "std", "all", "any", "count_nonzero"):
    _torch = {"max": "amax", "min": "amin"}.get(_name, _name)
    _more = ", correction=0" if _name in ("var", "std") else ""
    _kinds = "fi" if _name in ("sum", "max", "min", "prod", "count_nonzero") else "f"
    _near = "near" if _name == "prod" else ""  # products of others would be denormal
    _of = _near or "x"
    _row(_name, eval(f"lambda xp, {_of}: xp.{_name}({_of}{_more})"),
         eval(f"lambda xp, {_of}: xp.{_torch}({_of}{_more})"), _kinds, arranged=True)  # fmt: skip
    for _label, _of, _axis in (
        ("(axis=0)", "square", 0), ("(axis=1)", "square", 1),
        ("(axis=0) of (n/32, 32)", "narrow", 0), ("(axis=1) of (n/32, 32)", "narrow", 1),
    ):  # fmt: skip
        _of = f"{_near}_{_of}" if _near else _of
        _row(_name + _label, eval(f"lambda xp, {_of}: xp.{_name}({_of}, axis={_axis}{_more})"),
             eval(f"lambda xp, {_of}: xp.{_torch}({_of}, dim={_axis}{_more})"))  # fmt: skip
for _name in ("argmax", "argmin"):
    _row(_name, eval(f"lambda xp, x: xp.{_name}(x)"), kinds="fi")
    for _axis in (0, 1):
        _row(f"{_name}(axis={_axis})", eval(f"lambda xp, square: xp.{_name}(square, axis={_axis})"))
_row("cumulative_sum", lambda xp, x: xp.cumulative_sum(x), lambda t, x: t.cumsum(x, 0), "fi")
_row("cumulative_prod", lambda xp, x: xp.cumulative_prod(x),
     lambda t, x: t.cumprod(x, 0), most=64)  # fmt: skip
_row("softmax", lambda xp, square: xp.softmax(square, axis=1),
     lambda t, square: t.softmax(square, 1),
     numpy=lambda xp, square: _softmax(square))  # fmt: skip
_row("x.sum() of x * y", lambda xp, x, y: xp.sum(x * y))


def _softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True))
    e /= e.sum(1, keepdims=True)
    return np.asarray(e)


# --- sorting, searching, sets ---------------------------------------------------------------------

_row("sort", lambda xp, x: xp.sort(x), lambda t, x: t.sort(x).values, "fi")
_row("sort(axis=1)", lambda xp, square: xp.sort(square), lambda t, square: t.sort(square).values)
_row("argsort", lambda xp, order: xp.argsort(order, stable=True))
_row("searchsorted", lambda xp, ordered, y: xp.searchsorted(ordered, y))
_row("nonzero", lambda xp, mask: xp.nonzero(mask)[0],
     lambda t, mask: t.nonzero(mask, as_tuple=True)[0])  # fmt: skip
_row("unique_values", lambda xp, few: xp.sort(xp.unique_values(few)), lambda t, few: t.unique(few),
     "fi")  # fmt: skip
_row("unique_counts", lambda xp, few: xp.unique_counts(few)[1],
     lambda t, few: t.unique(few, return_counts=True)[1], "fi")  # fmt: skip
_row("unique_inverse", lambda xp, few: xp.unique_inverse(few)[1],
     lambda t, few: t.unique(few, return_inverse=True)[1], "i")  # fmt: skip
_row("unique_all", lambda xp, few: xp.unique_all(few)[3],
     lambda t, few: t.unique(few, return_counts=True)[1], "i", most=M)  # fmt: skip
_row("isin", lambda xp, few, row: xp.isin(few, row), kinds="i", most=M)
_row("random.permutation", lambda xp, x: _permuted(xp, x), lambda t, x: t.randperm(len(x)) * 0)
_row("random.normal", lambda xp, x: _normal(xp, x), lambda t, x: t.randn(len(x))[:0])
_row("random.random", lambda xp, x: _random(xp, x), lambda t, x: t.rand(len(x))[:0])

_RNG = np.random.default_rng(1)


def _permuted(xp: Foreign, x: Foreign) -> Foreign:
    """Times 0, so that it can be compared."""
    n = _size(x)
    return (_RNG if xp is np else xp.random).permutation(n) * 0


def _normal(xp: Foreign, x: Foreign) -> Foreign:
    n = _size(x)
    if xp is np:
        return _RNG.standard_normal(n, dtype="f4")[:0]
    made = xp.random.normal((n,))
    xp.evaluate(made)
    return made[:0]


def _random(xp: Foreign, x: Foreign) -> Foreign:
    n = _size(x)
    if xp is np:
        return _RNG.random(n, dtype="f4")[:0]
    made = xp.random.uniform((n,))
    xp.evaluate(made)
    return made[:0]


# --- products -------------------------------------------------------------------------------------

_row("matmul", lambda xp, square, second: square @ second, most=M)
_row("matmul int", lambda xp, square, second: square @ second, kinds="i", most=64 * K)
_row("matrix @ vector", lambda xp, square, row: square @ row)
_row("vector @ matrix", lambda xp, square, row: row @ square)
_row("x @ y", lambda xp, x, y: x @ y)
_row("vecdot", lambda xp, square, second: xp.vecdot(square, second),
     lambda t, square, second: t.linalg.vecdot(square, second))  # fmt: skip
_row("tensordot", lambda xp, square, second: xp.tensordot(square, second, axes=1),
     lambda t, square, second: t.tensordot(square, second, dims=1), most=M)  # fmt: skip
_row("outer product", lambda xp, row, column: row[:, None] * column)


# --- indexing -------------------------------------------------------------------------------------

_row("x[i]", lambda xp, x: x[7], kinds="fi", most=K)
_row("x[a:b]", lambda xp, x: x[3:-3], kinds="fi", most=K)
_row("float(x[i])", lambda xp, x: float(x[7]), kinds="fi", most=64 * K)
_row("x.item()", lambda xp, x: x[:1].reshape(()).item(), kinds="fi", most=64 * K)
_row("x[a:b] + 1", lambda xp, x: x[3:-3] + 1, kinds="fi")
_row("x[::2] + 1", lambda xp, x: x[::2] + 1)
_row("square[:, 0] + 1", lambda xp, square: square[:, 0] + 1)
_row("x[mask]", lambda xp, x, mask: x[mask], kinds="fi")
_row("x[idx]", lambda xp, x, places: x[places], kinds="fi")
_row("square[idx]", lambda xp, square, rows: square[rows])
_row("take", lambda xp, x, places: xp.take(x, places, axis=0),
     lambda t, x, places: t.take(x, places), "fi")  # fmt: skip
_row("take_along_axis", lambda xp, square, across: xp.take_along_axis(square, across, axis=1),
     lambda t, square, across: t.take_along_dim(square, across, 1))  # fmt: skip


def _written(name: str, write: Callable[..., None], kinds: str = "f", most: int = 16 * M) -> None:
    """A statement that writes its second parameter, which is evaluated."""
    names = list(inspect.signature(write).parameters)
    text = f"lambda {', '.join(names)}: (write({', '.join(names)}), {names[1]})[1]"
    _row(name, eval(text, {"write": write}), kinds=kinds, most=most)


def _set(key: object, value: Callable[..., Foreign]) -> Callable[..., None]:
    def write(xp: Foreign, target: Foreign, y: Foreign) -> None:
        target[key] = value(y)

    return write


_written("x[i] = 1", _set(7, lambda y: 1), "fi", most=64 * K)
_written("x[a:b] = y", _set(slice(3, -3), lambda y: y[3:-3]), "fi")
_written("x[10:] = y[10:]", _set(slice(10, None), lambda y: y[10:]), "fi")
_written("x[:] = 0", _set(slice(None), lambda y: 0), "fi")
_written("x[::2] = y[::2]", _set(slice(None, None, 2), lambda y: y[::2]))


def _put(xp: Foreign, target: Foreign, order: Foreign, y: Foreign) -> None:
    target[order] = y


def _masked(xp: Foreign, target: Foreign, mask: Foreign) -> None:
    target[mask] = 0


def _added(xp: Foreign, target: Foreign, y: Foreign) -> None:
    target += y
    target -= y


def _stencil(xp: Foreign, plane: Foreign, square: Foreign) -> None:
    plane[1:-1, 1:-1] = square[1:-1, 1:-1] + 0.1 * (
        plane[:-2, 1:-1] + plane[2:, 1:-1] + plane[1:-1, :-2] + plane[1:-1, 2:]
    )


_written("x[idx] = y", _put, "fi")
_written("x[mask] = 0", _masked, "fi")
_written("x += y; x -= y", _added, "f")
_written("u[1:-1, 1:-1] = c + ...u...", _stencil, "f")
