"""Level 11: complex numbers, which kernels hold as pairs of floats: the rows that take them, at
special values and in layouts; reductions, products, indices; and gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ..autograd import grad
from ..device_class import Device
from ..dtypes import COMPLEX, DType, bool_, float32, int64
from ..functions.creation import constructors
from ..functions.indexing.index_reads import getitem, take
from ..functions.indexing.index_writes import index_add
from ..functions.products.matrix_products import matmul, reproducible, vecdot
from ..functions.reductions.cumulative import cumulative_prod, cumulative_sum
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import concat
from ..ops import table as ops
from ..ops.table import Op
from ..tensor import primitives
from ..tensor import tensor as T
from .cases import COLUMNS, LAYOUTS, ROWS, Place, dense, flipped, rows, spaced, transposed
from .kit import Case, Kit
from .test_scalar_ops import named
from .values import Array, finite, host_dtype

PARTS = (
    0.0,
    1.0,
    0.5,
    2.0,
    3.7,
    30.0,
    88.8,
    120.0,
    1e-3,
    1e30,
    1e-30,
    1.0 + 2.0**-20,
    float("inf"),
)
FEW = (0.0, 1.5, 1e-44, 3e38, float("inf"))


def grid(d: DType, values: tuple[float, ...] = PARTS) -> Array:
    """Return every real part with every imaginary one, of both signs, NaN among them."""
    some = np.array([*values, *(-p for p in values), np.nan], host_dtype(d.part))
    pairs = np.array(list(itertools.product(some, some)), host_dtype(d.part))
    return pairs.reshape(-1).view(host_dtype(d))


def usual(d: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Return ordinary numbers, a few special ones among them."""
    rng = np.random.default_rng(seed)
    x: Array = finite(d.part, (*shape, 2), seed).view(host_dtype(d))[..., 0]
    return np.where(rng.random(shape) < 0.1, rng.choice(grid(d), shape), x)


def plain(d: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Return ordinary numbers alone."""
    values: Array = finite(d.part, (*shape, 2), seed).view(host_dtype(d))[..., 0]
    return values


def takes(op: Op, d: DType) -> bool:
    """Return True if an elementwise row takes complex operands."""
    try:
        op.dtypes(op.name, (bool_, d, d) if op is ops.WHERE else (d,) * op.arity, None)
    except (TypeError, AttributeError):  # `astype` is told what comes out
        return False
    return True


MAPS = [(op.name, d) for op in rows("map") for d in COMPLEX if takes(op, d)]
UNARY = [(n, d) for n, d in MAPS if ops.TABLE[n].arity == 1]
BINARY = [(n, d) for n, d in MAPS if ops.TABLE[n].arity == 2]


@pytest.mark.parametrize(("name", "d"), UNARY, ids=named)
def test_special_values(kit: Kit, name: str, d: DType) -> None:
    values = np.concatenate([grid(d), usual(d, (5000,), 1)])
    kit.agree(
        lambda on: primitives.apply(ops.TABLE[name], [dense(values, d, on)]), f"{name} {d.name}"
    )


@pytest.mark.parametrize(("name", "d"), BINARY, ids=named)
def test_pairs_of_special_values(kit: Kit, name: str, d: DType) -> None:
    every = grid(d, FEW)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    op = ops.TABLE[name]
    kit.agree(
        lambda on: primitives.apply(op, [dense(x, d, on), dense(y, d, on)]), f"{name} {d.name}"
    )


@pytest.mark.parametrize(("name", "d"), BINARY, ids=named)
def test_beside_real_numbers(kit: Kit, name: str, d: DType) -> None:
    op, z = ops.TABLE[name], usual(d, (ROWS, COLUMNS), 1)
    x = np.ascontiguousarray(usual(d, (ROWS, COLUMNS), 2).real)
    cases: list[Case] = []
    for other in (3, -0.5, 2.5 - 1j, x):
        for position in (0, 1):

            def make(on: Device, other: Any = other, position: int = position) -> T.Tensor:
                beside = dense(other, d.part, on) if isinstance(other, np.ndarray) else other
                args = [dense(z, d, on), beside]
                return primitives.apply(op, args[:: 1 - 2 * position])

            cases.append((make, f"{name} of {d.name}"))
    kit.agree_all(cases)


@pytest.mark.parametrize("d", COMPLEX, ids=named)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(kit: Kit, layout: str, d: DType) -> None:
    values = [usual(d, (ROWS, COLUMNS), seed) for seed in range(3)]
    cases: list[Case] = []
    for op in (ops.COPY, ops.MULTIPLY, ops.EQUAL, ops.ABS, ops.IMAG):

        def make(on: Device, op: Op = op) -> T.Tensor:
            placed = [p(v, d, on) for p, v in zip(LAYOUTS[layout], values, strict=True)]
            return primitives.apply(op, placed[: op.arity])

        cases.append((make, f"{op.name} of {d.name}, {layout}"))
    kit.agree_all(cases)


CASTS = [(a, b) for b in COMPLEX for a in (bool_, int64, float32, *COMPLEX)]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=named)
def test_casts(kit: Kit, source: DType, target: DType) -> None:
    values = usual(source, (301,), 1) if source.kind == "c" else finite(source, (301,), 1)
    kit.agree(
        lambda on: primitives.apply(ops.ASTYPE, (dense(values, source, on),), target), "astype"
    )


# --- of more than one element ---------------------------------------------------------------------

REDUCED = ("sum", "prod", "mean", "any", "all", "count_nonzero")
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5,), (0,)),
    ((4097,), (0,)),
    ((70_001,), (0,)),
    ((9, 300), (1,)),
    ((300, 40), (0,)),
    ((4, 5, 33), (0, 2)),
    ((0, 3), (0,)),
)


@pytest.mark.parametrize("d", COMPLEX, ids=named)
@pytest.mark.parametrize("name", REDUCED)
def test_reductions(kit: Kit, name: str, d: DType) -> None:
    cases: list[Case] = []
    for shape, axes in SHAPES:
        values = plain(d, shape, 1)
        if name == "prod":  # of sizes about 1
            values = np.exp(1j * values.real).astype(host_dtype(d))
        for place in (dense, flipped):

            def make(
                on: Device, v: Array = values, place: Place = place, axes: tuple[int, ...] = axes
            ) -> T.Tensor:
                return primitives.reduce(ops.TABLE[name], place(v, d, on), axes, False)

            cases.append((make, f"{name} of {d.name}{list(shape)} over {axes}"))
    kit.agree_all(cases)


Several = Callable[[T.Tensor, T.Tensor, Device], T.Tensor]


def places(n: int, on: Device) -> T.Tensor:
    """Return indices with duplicates."""
    return dense(np.array([3, 0, 3, 5, 1], np.int64) % n, int64, on)


SEVERAL: dict[str, Several] = {
    "cumulative sum": lambda x, y, on: cumulative_sum(x, axis=1),
    "cumulative product": lambda x, y, on: cumulative_prod(x, axis=0, include_initial=True),
    "matrix product": lambda x, y, on: matmul(x, y.mT),
    "vector products": lambda x, y, on: vecdot(x, y),
    "concatenation": lambda x, y, on: concat([x[:, 3:], y], axis=1),
    "where": lambda x, y, on: primitives.apply(ops.WHERE, (x == y, x, y * 2j)),
    "taken": lambda x, y, on: take(x, places(x.shape[0], on), axis=0),
    "masked": lambda x, y, on: getitem(x, x == x),
    "added": lambda x, y, on: index_add(x, 0, places(x.shape[0], on), y[:5]),
    "diagonal": lambda x, y, on: constructors.tril(x) + constructors.eye(*x.shape, device=on) * 1j,
    "a chain": lambda x, y, on: ((x * y + y) * x - y) / (x + 2j),
    "row sums beside": lambda x, y, on: x - sum_(x, axis=1, keepdims=True) * y,
}


@pytest.mark.parametrize("d", COMPLEX, ids=named)
@pytest.mark.parametrize("name", SEVERAL)
def test_several_elements(kit: Kit, name: str, d: DType) -> None:
    x, y = (plain(d, (ROWS, COLUMNS), seed) for seed in (1, 2))
    cases: list[Case] = []
    for place in (dense, transposed, spaced):

        def make(on: Device, place: Place = place) -> T.Tensor:
            with reproducible():
                return SEVERAL[name](place(x, d, on), place(y, d, on), on)

        cases.append((make, f"{name} of {d.name}, {place.__name__}"))
    kit.agree_all(cases)


def test_complex_scalars_fill(kit: Kit) -> None:
    kit.agree(lambda on: constructors.full((5, 33), 1.5 - 2j, device=on), "full_complex")


# --- gradients ------------------------------------------------------------------------------------


def has_gradient(op: Op, d: DType) -> bool:
    """Return True if gradients flow through a row of complex operands."""
    return bool(op.gradient) and op.dtypes(op.name, (d,) * op.arity, None)[1].kind in "fc"


DIFFERENTIATED = [(n, d) for n, d in (*UNARY, *BINARY) if has_gradient(ops.TABLE[n], d)]


@pytest.mark.parametrize(("name", "d"), DIFFERENTIATED, ids=named)
def test_gradients(kit: Kit, name: str, d: DType) -> None:
    op = ops.TABLE[name]
    values = [plain(d, (ROWS, COLUMNS), seed) for seed in range(op.arity)]
    for k in range(op.arity):

        def make(on: Device, k: int = k) -> T.Tensor:
            xs = [dense(v, d, on) for v in values]
            x: Any = xs[k]
            x.requires_grad_()
            grads = primitives.apply(op, xs)
            gradient: T.Tensor = grad(grads, x, constructors.ones_like(grads))
            return gradient

        kit.agree(make, f"the gradient of {name} of {d.name} by operand {k}")
