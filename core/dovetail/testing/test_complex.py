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
from ..functions.products.matrix_products import matmul, vecdot, vendor_products
from ..functions.reductions.cumulative import cumulative_prod, cumulative_sum
from ..functions.reductions.statistics import sum as sum_
from ..functions.shape.copies import concat
from ..ops import table as ops
from ..ops.table import Op
from ..tensor import primitives
from ..tensor import tensor as T
from .cases import COLUMNS, LAYOUTS, ROWS, Arrangement, dense, flipped, rows, spaced, transposed
from .kit import AgreementCase, Kit
from .test_scalar_ops import param_id
from .values import Array, finite_values, host_dtype

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
FEW_PART_VALUES = (0.0, 1.5, 1e-44, 3e38, float("inf"))


def grid(d: DType, values: tuple[float, ...] = PARTS) -> Array:
    """Return every pair of real and imaginary part from `values`, of both signs, and NaN."""
    some = np.array([*values, *(-p for p in values), np.nan], host_dtype(d.part))
    pairs = np.array(list(itertools.product(some, some)), host_dtype(d.part))
    return pairs.reshape(-1).view(host_dtype(d))


def mostly_ordinary_values(d: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Return ordinary complex numbers, a tenth of them replaced by special ones."""
    rng = np.random.default_rng(seed)
    x: Array = finite_values(d.part, (*shape, 2), seed).view(host_dtype(d))[..., 0]
    return np.where(rng.random(shape) < 0.1, rng.choice(grid(d), shape), x)


def ordinary_values(d: DType, shape: tuple[int, ...], seed: int) -> Array:
    """Return ordinary numbers alone."""
    values: Array = finite_values(d.part, (*shape, 2), seed).view(host_dtype(d))[..., 0]
    return values


def accepts_complex(op: Op, d: DType) -> bool:
    """Return True if an elementwise row takes complex operands."""
    try:
        op.dtypes(op.name, (bool_, d, d) if op is ops.WHERE else (d,) * op.arity, None)
    except (TypeError, AttributeError):  # `astype` is told what comes out
        return False
    return True


MAPS = [(op.name, d) for op in rows("map") for d in COMPLEX if accepts_complex(op, d)]
UNARY = [(n, d) for n, d in MAPS if ops.TABLE[n].arity == 1]
BINARY = [(n, d) for n, d in MAPS if ops.TABLE[n].arity == 2]


@pytest.mark.parametrize(("name", "d"), UNARY, ids=param_id)
def test_special_values(kit: Kit, name: str, d: DType) -> None:
    """Check a unary row on special complex numbers and on ordinary ones."""
    values = np.concatenate([grid(d), mostly_ordinary_values(d, (5000,), 1)])
    kit.check_agreement(
        lambda on: primitives.apply(ops.TABLE[name], [dense(values, d, on)]), f"{name} {d.name}"
    )


@pytest.mark.parametrize(("name", "d"), BINARY, ids=param_id)
def test_pairs_of_special_values(kit: Kit, name: str, d: DType) -> None:
    """Check a binary row on every pair of special complex numbers."""
    every = grid(d, FEW_PART_VALUES)
    x, y = np.repeat(every, every.size), np.tile(every, every.size)
    op = ops.TABLE[name]
    kit.check_agreement(
        lambda on: primitives.apply(op, [dense(x, d, on), dense(y, d, on)]), f"{name} {d.name}"
    )


@pytest.mark.parametrize(("name", "d"), BINARY, ids=param_id)
def test_beside_real_numbers(kit: Kit, name: str, d: DType) -> None:
    """Check a binary row of a complex tensor with a number or real tensor, in both orders."""
    op, z = ops.TABLE[name], mostly_ordinary_values(d, (ROWS, COLUMNS), 1)
    x = np.ascontiguousarray(mostly_ordinary_values(d, (ROWS, COLUMNS), 2).real)
    cases: list[AgreementCase] = []
    for other in (3, -0.5, 2.5 - 1j, x):
        for position in (0, 1):

            def make(on: Device, other: Any = other, position: int = position) -> T.Tensor:
                """Apply the op to `z` and `other` on `on`; position 1 swaps them."""
                beside = dense(other, d.part, on) if isinstance(other, np.ndarray) else other
                args = [dense(z, d, on), beside]
                return primitives.apply(op, args[:: 1 - 2 * position])

            cases.append((make, f"{name} of {d.name}"))
    kit.check_agreements(cases)


@pytest.mark.parametrize("d", COMPLEX, ids=param_id)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(kit: Kit, layout: str, d: DType) -> None:
    """Check five rows with complex operands in a memory layout."""
    values = [mostly_ordinary_values(d, (ROWS, COLUMNS), seed) for seed in range(3)]
    cases: list[AgreementCase] = []
    for op in (ops.COPY, ops.MULTIPLY, ops.EQUAL, ops.ABS, ops.IMAG):

        def make(on: Device, op: Op = op) -> T.Tensor:
            """Apply the op to operands in the layout, on `on`."""
            placed = [p(v, d, on) for p, v in zip(LAYOUTS[layout], values, strict=True)]
            return primitives.apply(op, placed[: op.arity])

        cases.append((make, f"{op.name} of {d.name}, {layout}"))
    kit.check_agreements(cases)


CASTS = [(a, b) for b in COMPLEX for a in (bool_, int64, float32, *COMPLEX)]


@pytest.mark.parametrize(("source", "target"), CASTS, ids=param_id)
def test_casts(kit: Kit, source: DType, target: DType) -> None:
    """Check a cast to a complex dtype."""
    values = (
        mostly_ordinary_values(source, (301,), 1)
        if source.kind == "c"
        else finite_values(source, (301,), 1)
    )
    kit.check_agreement(
        lambda on: primitives.apply(ops.ASTYPE, (dense(values, source, on),), target), "astype"
    )


# --- of more than one element ---------------------------------------------------------------------

REDUCTION_NAMES = ("sum", "prod", "mean", "any", "all", "count_nonzero")
SHAPES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((5,), (0,)),
    ((4097,), (0,)),
    ((70_001,), (0,)),
    ((9, 300), (1,)),
    ((300, 40), (0,)),
    ((4, 5, 33), (0, 2)),
    ((0, 3), (0,)),
)


@pytest.mark.parametrize("d", COMPLEX, ids=param_id)
@pytest.mark.parametrize("name", REDUCTION_NAMES)
def test_reductions(kit: Kit, name: str, d: DType) -> None:
    """Check a reduction of complex numbers over axes of several shapes, dense and flipped."""
    cases: list[AgreementCase] = []
    for shape, axes in SHAPES:
        values = ordinary_values(d, shape, 1)
        if name == "prod":  # of sizes about 1
            values = np.exp(1j * values.real).astype(host_dtype(d))
        for place in (dense, flipped):

            def make(
                on: Device,
                v: Array = values,
                place: Arrangement = place,
                axes: tuple[int, ...] = axes,
            ) -> T.Tensor:
                """Reduce the values over the axes on `on`."""
                return primitives.reduce(ops.TABLE[name], place(v, d, on), axes, False)

            cases.append((make, f"{name} of {d.name}{list(shape)} over {axes}"))
    kit.check_agreements(cases)


MultiElementFunction = Callable[[T.Tensor, T.Tensor, Device], T.Tensor]


def duplicate_indices(n: int, on: Device) -> T.Tensor:
    """Return indices with duplicates."""
    return dense(np.array([3, 0, 3, 5, 1], np.int64) % n, int64, on)


MULTI_ELEMENT_FUNCTIONS: dict[str, MultiElementFunction] = {
    "cumulative sum": lambda x, y, on: cumulative_sum(x, axis=1),
    "cumulative product": lambda x, y, on: cumulative_prod(x, axis=0, include_initial=True),
    "matrix product": lambda x, y, on: matmul(x, y.mT),
    "vector products": lambda x, y, on: vecdot(x, y),
    "concatenation": lambda x, y, on: concat([x[:, 3:], y], axis=1),
    "where": lambda x, y, on: primitives.apply(ops.WHERE, (x == y, x, y * 2j)),
    "taken": lambda x, y, on: take(x, duplicate_indices(x.shape[0], on), axis=0),
    "masked": lambda x, y, on: getitem(x, x == x),
    "added": lambda x, y, on: index_add(x, 0, duplicate_indices(x.shape[0], on), y[:5]),
    "diagonal": lambda x, y, on: constructors.tril(x) + constructors.eye(*x.shape, device=on) * 1j,
    "a chain": lambda x, y, on: ((x * y + y) * x - y) / (x + 2j),
    "row sums beside": lambda x, y, on: x - sum_(x, axis=1, keepdims=True) * y,
}


@pytest.mark.parametrize("d", COMPLEX, ids=param_id)
@pytest.mark.parametrize("name", MULTI_ELEMENT_FUNCTIONS)
def test_several_elements(kit: Kit, name: str, d: DType) -> None:
    """Check functions that read several elements, such as products and cumulative sums."""
    x, y = (ordinary_values(d, (ROWS, COLUMNS), seed) for seed in (1, 2))
    cases: list[AgreementCase] = []
    for place in (dense, transposed, spaced):

        def make(on: Device, place: Arrangement = place) -> T.Tensor:
            """Call the function on two tensors arranged by `place` on `on`."""
            with vendor_products(False):
                return MULTI_ELEMENT_FUNCTIONS[name](place(x, d, on), place(y, d, on), on)

        cases.append((make, f"{name} of {d.name}, {place.__name__}"))
    kit.check_agreements(cases)


def test_complex_scalars_fill(kit: Kit) -> None:
    """Check `full` with a complex number."""
    kit.check_agreement(lambda on: constructors.full((5, 33), 1.5 - 2j, device=on), "full_complex")


# --- gradients ------------------------------------------------------------------------------------


def has_gradient(op: Op, d: DType) -> bool:
    """Return True if gradients flow through a row of complex operands."""
    return bool(op.gradient) and op.dtypes(op.name, (d,) * op.arity, None)[1].kind in "fc"


GRADIENT_CASES = [(n, d) for n, d in (*UNARY, *BINARY) if has_gradient(ops.TABLE[n], d)]


@pytest.mark.parametrize(("name", "d"), GRADIENT_CASES, ids=param_id)
def test_gradients(kit: Kit, name: str, d: DType) -> None:
    """Check the gradient of a row of complex operands by each operand."""
    op = ops.TABLE[name]
    values = [ordinary_values(d, (ROWS, COLUMNS), seed) for seed in range(op.arity)]
    for k in range(op.arity):

        def make(on: Device, k: int = k) -> T.Tensor:
            """Return the gradient of the row by operand `k` on `on`, for a gradient of ones."""
            xs = [dense(v, d, on) for v in values]
            x: Any = xs[k]
            x.requires_grad_()
            grads = primitives.apply(op, xs)
            gradient: T.Tensor = grad(grads, x, constructors.ones_like(grads))
            return gradient

        kit.check_agreement(make, f"the gradient of {name} of {d.name} by operand {k}")
