"""Operands of the differential suite: shapes, values and memory layouts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias
from zlib import crc32

import dovetail as dt
import numpy as np
from dtype_values import FLOATS, INTEGERS, Host, host, rounded, tensor, values

COMPLEX = [dt.complex64, dt.complex128]
DTYPES = [dt.bool, *INTEGERS, *FLOATS, *COMPLEX]
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class Material(NamedTuple):
    """A name, the shape of each operand, and the kind of values; those of `u` are in 0..1."""

    name: str
    shapes: Shapes
    values: str


def _alike(names: str, *cases: tuple[str, tuple[int, ...], str]) -> list[Material]:
    """Give all operands in `names` the same shape."""
    return [Material(name, dict.fromkeys(names, shape), kind) for name, shape, kind in cases]


KINDS = ["ties", "nan", "inf", "extremes", "subnormal", "zeros"]


def _kinds(shapes: Shapes) -> list[Material]:
    """Return a material for each kind of values; its name is that of the kind."""
    return [Material(kind, shapes, kind) for kind in ["ordinary", *KINDS]]


FAMILIES: dict[str, list[Material]] = {
    "any": _alike(
        "x", ("scalar", (), "ordinary"), ("empty", (2, 0), "ordinary"), ("one", (1,), "ordinary"),
        ("special", (0,), "special"), ("ordinary", (2, 3, 4), "ordinary"),
    ),
    "pair": [
        *_alike("xy", ("scalar", (), "ordinary"), ("empty", (2, 0), "ordinary"),
                ("one", (1,), "ordinary"), ("special", (0,), "special"),
                ("ordinary", (2, 3, 4), "ordinary"), ("ties", (3, 4), "ties")),
        Material("broadcast", {"x": (3, 1), "y": (1, 4)}, "ordinary"),
        Material("one scalar", {"x": (3, 4), "y": ()}, "ordinary"),
    ],
    "reduce": [
        *_alike("x", ("scalar", (), "ordinary"), ("empty", (0,), "ordinary"),
                ("no rows", (0, 3), "ordinary"), ("one", (1, 1), "ordinary")),
        *_kinds({"x": (3, 5)}),
        *_alike("x", ("cube", (2, 3, 4), "ordinary")),
    ],
    "vector": [
        *_alike("x", ("empty", (0,), "ordinary"), ("one", (1,), "ordinary")),
        *_kinds({"x": (7,)}),
    ],
    "vectors": [
        *_alike("xy", ("empty", (0,), "ordinary"), ("one", (1,), "ordinary")),
        *_kinds({"x": (7,), "y": (7,)}),
    ],
    "matrix": [
        *_alike("x", ("empty", (0, 4), "ordinary"), ("one", (1, 1), "ordinary")),
        *_kinds({"x": (3, 4)}),
    ],
    "square": [
        *_alike("x", ("empty", (0, 0), "ordinary"), ("one", (1, 1), "ordinary"),
                ("ordinary", (4, 4), "ordinary"), ("ties", (3, 3), "ties"),
                ("zeros", (3, 3), "zeros"), ("nan", (3, 3), "nan"),
                ("batch", (2, 3, 3), "ordinary"), ("no batch", (0, 3, 3), "ordinary")),
    ],
}  # fmt: skip
FAMILIES["sums"] = [*FAMILIES["reduce"], *_alike("x", ("long", (70_000,), "ones"))]


def materials(shapes: str | Shapes) -> list[Material]:
    """Return the materials of a family, or those of operands with fixed shapes."""
    return FAMILIES[shapes] if isinstance(shapes, str) else _kinds(shapes)


# --- values


def generator(*seed: object) -> np.random.Generator:
    return np.random.default_rng(crc32(repr(seed).encode()))


def fill(
    kind: str, d: dt.DType, shape: tuple[int, ...], rng: np.random.Generator, unit: bool = False
) -> Host | None:
    """Return values of a kind, or probabilities; None if the dtype has no such values."""
    n = math.prod(shape)
    if d.kind == "c":
        part = dt.float32 if d is dt.complex64 else dt.float64
        parts = [fill(kind, part, shape, rng) for _ in range(2)]
        return None if parts[0] is None else _complex(*parts, d)
    a = _FILL[kind](d, n, rng)
    if unit and a is not None:
        a = rng.random(n)
        a[: n // 4] = np.round(a[: n // 4])
    return None if a is None else rounded(a, d).reshape(shape).astype(host(d))


def _complex(real: Any, imaginary: Any, d: dt.DType) -> Host:
    found = np.empty(np.shape(real), d.__numpy_dtype__)
    found.real, found.imag = real, imaginary
    return found


def _ordinary(d: dt.DType, n: int, rng: np.random.Generator) -> Any:
    if d is dt.bool:
        return rng.random(n) < 0.5
    return (
        rng.integers(0 if d.kind == "u" else -9, 10, n) if d.kind in "iu" else rng.normal(0, 2, n)
    )


def _ties(d: dt.DType, n: int, rng: np.random.Generator) -> Any:
    """Return few different values; those of floats lie half between integers too."""
    if d is dt.bool:
        return np.ones(n, bool)
    found = rng.integers(0 if d.kind == "u" else -2, 3, n)
    return found if d.kind in "iu" else np.where(rng.random(n) < 0.5, found, found + 0.5)


def _among(choose: Callable[[dt.DType], list[float]], floats_only: bool = True) -> Any:
    """Put the chosen values among ordinary ones, each at least once if there is space."""

    def filled(d: dt.DType, n: int, rng: np.random.Generator) -> Any:
        if d is dt.bool or (floats_only and d.kind != "f"):
            return None
        a, chosen = (
            np.asarray(_ordinary(d, n, rng), host(d) if d.kind == "f" else object),
            choose(d),
        )
        places = rng.permutation(n)[: max(len(chosen), 1)]
        for place, value in zip(places, chosen, strict=False):
            a[place] = value
        return a

    return filled


def _extremes(d: dt.DType) -> list[float]:
    if d.kind in "iu":
        return [d.max, d.min, d.max - 1, d.min + 1]
    top = float(dt.finfo(d).max)
    return [top, -top, top / 2, float(dt.finfo(d).smallest_normal)]


def _subnormal(d: dt.DType) -> list[float]:
    tiny, eps = float(dt.finfo(d).smallest_normal), float(dt.finfo(d).eps)
    return [tiny * eps, -3 * tiny * eps, tiny * (1 - eps), tiny]


_FILL: dict[str, Callable[[dt.DType, int, np.random.Generator], Any]] = {
    "ordinary": _ordinary, "ties": _ties, "nan": _among(lambda d: [math.nan]),
    "inf": _among(lambda d: [math.inf, -math.inf]),
    "extremes": _among(_extremes, floats_only=False), "subnormal": _among(_subnormal),
    "zeros": lambda d, n, rng: None if d.kind != "f" else rng.choice([0.0, -0.0, 1.0], n),
    "ones": lambda d, n, rng: np.ones(n) if d.kind == "f" else None,
}  # fmt: skip


def _special(d: dt.DType, count: int) -> list[Host]:
    """Return all special values of a dtype, in pairs each with each."""
    if d.kind == "c":
        part = values(dt.float32 if d is dt.complex64 else dt.float64, few=True)
        few = part[np.isfinite(part) & (np.abs(part) < 1e15) & (np.abs(part) > 1e-15)][::3]
        found = (few[:, None] + 1j * few).ravel().astype(d.__numpy_dtype__)
    else:
        found = values(d, few=count > 1)
    return [found] if count == 1 else [np.repeat(found, found.size), np.tile(found, found.size)]


def arrays(material: Material, d: dt.DType, seed: str) -> dict[str, Host] | None:
    """Return the operands as arrays; None if the dtype has no values of this kind."""
    if material.values == "special":
        return dict(zip(material.shapes, _special(d, len(material.shapes)), strict=True))
    rng = generator(seed, material.name, d.name)
    found = {n: fill(material.values, d, s, rng, n == "u") for n, s in material.shapes.items()}
    return None if any(a is None for a in found.values()) else found  # type: ignore[return-value]


# --- layouts


def plain(a: Host, d: dt.DType) -> dt.Tensor:
    return tensor(a, d).reshape(a.shape)


def tensors(operands: Mapping[str, Host], d: dt.DType) -> dict[str, dt.Tensor]:
    """Return the operands as evaluated tensors, row by row in memory."""
    found = {name: plain(a, d) for name, a in operands.items()}
    dt.evaluate(*found.values())
    return found


def _offset(a: Host, d: dt.DType) -> dt.Tensor:
    larger = np.ones([n + 3 for n in a.shape], a.dtype)
    inner = tuple(slice(2, 2 + n) for n in a.shape)
    larger[inner] = a
    return plain(larger, d)[inner]


LAYOUTS: dict[str, Callable[[Host, dt.DType], dt.Tensor]] = {
    "negative strides": lambda a, d: plain(a[(slice(None, None, -1),) * a.ndim], d)[
        (slice(None, None, -1),) * a.ndim
    ],
    "transposed": lambda a, d: plain(a.T, d).permute_dims(tuple(range(a.ndim))[::-1]),
    "offset": _offset,
}


def repeated(operands: Mapping[str, Host]) -> dict[str, Host]:
    """Return the operands with the first element of each last axis in place of all others."""
    return {
        n: np.ascontiguousarray(np.broadcast_to(a[..., :1], a.shape)) for n, a in operands.items()
    }


def zero_strides(operands: Mapping[str, Host], d: dt.DType) -> dict[str, dt.Tensor]:
    return {n: dt.broadcast_to(plain(a[..., :1], d), a.shape) for n, a in operands.items()}


def laid_out(operands: Mapping[str, Host], d: dt.DType, layout: str) -> dict[str, dt.Tensor]:
    """Return the operands as views that have the same values in another memory layout."""
    found = {n: LAYOUTS[layout](a, d) for n, a in operands.items()}
    dt.evaluate(*found.values())
    return found


def pending(operands: Mapping[str, dt.Tensor]) -> Iterator[tuple[str, dt.Tensor]]:
    """Yield operands that are not computed yet and have the same bits."""
    for name, x in operands.items():
        yield name, dt.where(dt.ones((), dtype=dt.bool), x, x)
