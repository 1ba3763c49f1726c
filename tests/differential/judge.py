"""Compare the results of a row with its oracle, and with those of other paths."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any
from zlib import crc32

import dovetail as dt
import numpy as np
from dtype_values import HALVES, Host, back, rounded, spacing

from differential import oracles
from differential.inputs import (
    LAYOUTS,
    Material,
    arrays,
    laid_out,
    materials,
    pending,
    repeated,
    tensors,
    zero_strides,
)
from differential.table import Row

REAL_OF = {dt.complex64: dt.float32, dt.complex128: dt.float64}
CPU_PART = 3
"""One material in so many also runs on the device cpu, which has to compile its kernels."""
ORACLE_ERRORS = (
    ValueError, IndexError, TypeError, ZeroDivisionError, OverflowError, RuntimeError,
    np.linalg.LinAlgError,
)  # fmt: skip


@functools.cache
def _code(text: str) -> Any:
    return compile(text, text, "eval")


def run(text: str, names: Mapping[str, Any], operands: Mapping[str, Any]) -> Any:
    """Evaluate an expression of the operands."""
    return eval(_code(text), {**names, **operands})


def flat(result: Any) -> list[Any]:
    """Return the leaves of tuples and lists."""
    if isinstance(result, (tuple, list)):
        return [leaf for part in result for leaf in flat(part)]
    return [result]


# --- the oracle


def oracle(row: Row, d: dt.DType, text: str, operands: Mapping[str, Host]) -> list[Any]:
    """Return what an expression gives of the operands' exact values."""
    wide = {n: a.astype("f8") if a.dtype.kind == "f" else a.copy() for n, a in operands.items()}
    wide = {n: a.astype("c16") if a.dtype.kind == "c" else a for n, a in wide.items()}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if not row.uses_torch:
            top = float(dt.finfo(d).max) if d.kind == "f" else 0.0
            return [np.asarray(r) for r in flat(run(text, oracles.NUMPY, {**wide, "top": top}))]
        given = {n: oracles.torch().from_numpy(a) for n, a in wide.items()}
        return [np.asarray(r) for r in flat(run(text, oracles.torch_names(), given))]


def expected_results(row: Row, d: dt.DType, text: str, operands: Mapping[str, Host]) -> list[Any]:
    """Return the oracle's results; integers with a float result become float32 before."""
    found = oracle(row, d, text, operands)
    if (
        row.gives != "float64"
        and any(a.dtype.kind in "biu" for a in operands.values())
        and any(r.dtype.kind in "fc" for r in found)
    ):
        return oracle(row, d, text, {n: a.astype("f4") for n, a in operands.items()})
    return found


def expected_dtype(row: Row, want: Host, d: dt.DType) -> dt.DType:
    """Return the dtype that dovetail's promotion gives."""
    if row.gives:
        return dt.dtypes.dtype(row.gives)
    kind = want.dtype.kind
    if kind in "biu":
        return dt.dtypes.dtype(want.dtype)
    d = d if d.kind in "fc" else dt.float32
    real = REAL_OF.get(d, d)
    if kind == "f":
        return real
    return dt.complex128 if real is dt.float64 else dt.complex64


# --- comparison


def differences(row: Row, got: dt.Tensor, want: Host, d: dt.DType, scale: Any) -> str:
    """Return how a result differs from what is expected; an empty string if it does not."""
    expected = expected_dtype(row, want, d)
    if got.dtype is not expected or got.shape != want.shape:
        return f"gives {got.dtype.name}{[*got.shape]}, right: {expected.name}{[*want.shape]}"
    found = back(got)
    if expected.kind in "fc":
        compare = near_complex if expected.kind == "c" else near_real
        near = np.asarray(compare(row, found, want, expected, scale))
    else:
        near = np.asarray(found == want)
    wrong = np.flatnonzero(~near)
    shown = [(found.flat[i].item(), want.flat[i].item()) for i in wrong[:3]]
    where = [int(i) for i in wrong[:3]]
    return f"{wrong.size} of {want.size} at {where}: (found, right) {shown}" if wrong.size else ""


def near_real(row: Row, found: Host, want: Host, d: dt.DType, scale: Any) -> Any:
    """Compare with the row's tolerance in the dtype of computation, and 1 unit of a half."""
    right, got = rounded(want, d).astype("f8"), found.astype("f8")
    wide = dt.float32 if d in HALVES else d
    with np.errstate(all="ignore"):
        size = finite(np.abs(want))
        allowed = row.ulps * spacing(np.maximum(size, finite(scale)), wide)
        if d in HALVES:
            allowed = allowed + spacing(size, d)
        near = np.abs(got - np.where(np.isfinite(right), right, want)) <= allowed
        overflows = np.abs(want) + allowed > float(dt.finfo(d).max)
        near |= np.isinf(got) & (np.sign(got) == np.sign(want)) & overflows
        same = (got == right) | (np.isnan(got) & np.isnan(right))
    if row.zeros:
        signs = np.signbit(got) == np.signbit(right)
        same, near = same & ((got != 0) | signs), near & ((got != 0) | (right != 0))
    return same | (near & ~np.isnan(got) & ~np.isnan(right))


def finite(a: Any) -> Any:
    """Return the array with 0 for infinities and NaNs."""
    return np.where(np.isfinite(a), a, 0.0)


def near_complex(row: Row, found: Host, want: Host, d: dt.DType, scale: Any) -> Any:
    """Compare complex results: the error is relative to the absolute value; infinities and NaNs
    are equal.
    """
    part = REAL_OF[d]
    with np.errstate(all="ignore"):
        right = want.astype(found.dtype)
        allowed = row.ulps * spacing(np.maximum(finite(np.abs(want)), finite(scale)), part)
        near = np.abs(found.astype("c16") - want) <= allowed
        same = (found == right) | (np.isnan(found) & np.isnan(right))
        same |= ~np.isfinite(found) & ~np.isfinite(right)
    return same | near


def same_object(x: Any, y: Any) -> bool:
    """Return True if two numbers or arrays are equal or NaN."""
    a, b = np.asarray(x), np.asarray(y)
    return a.shape == b.shape and bool(np.all((a == b) | ((a != a) & (b != b))))


def same_bits(a: list[Any], b: list[Any]) -> bool:
    """Return True if two results are equal bit for bit; all NaNs are equal."""
    if len(a) != len(b):
        return False
    for x, y in zip(a, b, strict=True):
        if not isinstance(x, dt.Tensor):
            if not same_object(x, y):
                return False
            continue
        if (x.dtype, x.shape) != (y.dtype, y.shape):
            return False
        p, q = back(x), back(y)
        if p.dtype.kind == "c":
            p, q = (np.stack([c.real, c.imag]) for c in (p, q))
        if p.dtype.kind == "f":
            p, q = (np.where(np.isnan(c), np.nan, c) for c in (p, q))
        if p.tobytes() != q.tobytes():
            return False
    return True


# --- a row


def results(row: Row, operands: Mapping[str, dt.Tensor]) -> list[Any]:
    """Return the computed results of a row's call."""
    with dt.vendor_products(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = flat(run(row.call, oracles.DOVETAIL, operands))
        dt.evaluate(*(f for f in found if isinstance(f, dt.Tensor)))
    return found


def outcome(call: Callable[[], Any]) -> tuple[Any, Exception | None]:
    try:
        return call(), None
    except (dt.DovetailError, *ORACLE_ERRORS) as error:
        return None, error


def problems(row: Row, d: dt.DType) -> list[str]:
    """Return what is wrong with a row for operands of a dtype."""
    found = []
    for material in materials(row.shapes):
        if material.name == "long" and d not in HALVES:
            continue
        operands = arrays(material, d, row.call)
        if operands is not None:
            said = judged(row, d, material, operands)
            found += [f"{row.call} of {d.name}, {material.name}: {s}" for s in said]
        if not row.takes(d):
            break
    return found


def judged(row: Row, d: dt.DType, material: Material, operands: Mapping[str, Host]) -> list[str]:
    got, error = outcome(lambda: results(row, tensors(operands, d)))
    if error is not None and not isinstance(error, dt.DovetailError):
        return [f"foreign {type(error).__name__}: {error}"]
    if not row.takes(d):
        return []
    compare_path = not row.exception(d, material.name)
    if compare_path:
        want, refused = outcome(lambda: expected_results(row, d, row.expected, operands))
        if error is not None and (refused is not None or is_axis_of_a_number(error, operands)):
            return []
        if error is not None:
            return [f"{type(error).__name__}: {error}; right: {str(want)[:120]}"]
        if refused is not None and all(a.size for a in operands.values()):
            return [f"gives {str(got)[:120]}, the oracle {type(refused).__name__}: {refused}"]
        found = compared_results(row, d, operands, got, want) if refused is None else []
        if found:
            return found
    elif error is not None:
        return []
    return paths(row, d, material, operands, got)


def is_axis_of_a_number(error: Exception, operands: Mapping[str, Host]) -> bool:
    """Return True for the axes 0 and -1 of a scalar.

    NumPy takes them; dovetail and the Array API do not.
    """
    return isinstance(error, (dt.AxisError, dt.ShapeError)) and any(
        not a.ndim for a in operands.values()
    )


def compared_results(
    row: Row, d: dt.DType, operands: Mapping[str, Host], got: list[Any], want: list[Any]
) -> list[str]:
    if len(got) != len(want):
        return [f"gives {len(got)} results, right: {len(want)}"]
    scales = [0.0] * len(want)
    if row.scale:
        finite = {
            n: np.asarray(np.nan_to_num(a, nan=0, posinf=0, neginf=0)) for n, a in operands.items()
        }
        scales = expected_results(row, d, row.scale, finite)
        scales = scales * (len(want) // len(scales))
    found = []
    for number, (g, w, scale) in enumerate(zip(got, want, scales, strict=True)):
        if isinstance(g, dt.Tensor):
            said = differences(row, g, w, d, scale)
        else:
            said = "" if same_object(g, w) else f"gives {g!r}, right: {w!r}"
        if said:
            found.append(said if len(got) == 1 else f"result {number} {said}")
    return found


def paths(
    row: Row, d: dt.DType, material: Material, operands: Mapping[str, Host], got: list[Any]
) -> list[str]:
    """Return ways to compute the result that give other bits.

    Each material takes one of the ways, so that the materials of a row take all of them.
    """
    number = crc32(f"{row.call} {d.name} {material.name}".encode())
    ways: dict[str, Callable[[], Any]] = {
        "pending operands": lambda: results(row, dict(pending(tensors(operands, d)))),
        "dt.eager()": lambda: eager(row, tensors(operands, d)),
    }
    if row.layouts and any(a.ndim for a in operands.values()):
        for layout in LAYOUTS:
            ways[layout] = functools.partial(in_layout, row, operands, d, layout)
    way = [*ways][number % len(ways)]
    found = compare_path(way, ways[way], got)
    if material.values in ("special", "ordinary") and number // 8 % CPU_PART == 0:
        found += compare_path(f"cpu, {way}", functools.partial(on_cpu, ways[way]), got)
    if (
        number // 64 % 3 == 0
        and all(a.ndim and a.shape[-1] for a in operands.values())
        and row.layouts
        and not row.writes
    ):
        plain = outcome(lambda: results(row, tensors(repeated(operands), d)))
        found += compare_path(
            "zero strides", lambda: results(row, zero_strides(operands, d)), *plain
        )
    return found


def compare_path(
    way: str, call: Callable[[], Any], got: Any, expected: Exception | None = None
) -> list[str]:
    other, error = outcome(call)
    if type(error) is not type(expected):
        return [f"{way}: {type(error).__name__}: {error}, not {expected!r}"]
    if error is None and not same_bits(got, other):
        return [f"{way}: {str(other)[:150]} instead of {str(got)[:150]}"]
    return []


def eager(row: Row, operands: Mapping[str, dt.Tensor]) -> list[Any]:
    with dt.eager():
        return results(row, operands)


def in_layout(row: Row, operands: Mapping[str, Host], d: dt.DType, layout: str) -> list[Any]:
    return results(row, laid_out(operands, d, layout))


def on_cpu(call: Callable[[], Any]) -> Any:
    before = dt.default_device()
    dt.set_default_device("cpu")
    try:
        return call()
    finally:
        dt.set_default_device(before)
