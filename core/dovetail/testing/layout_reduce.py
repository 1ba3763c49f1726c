"""Layouts, level 3: reductions, products of matrices, softmax.

Values are small whole numbers, so that no order of summation changes a bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..dtypes import DType, bool_, float32, float64, int32, int64
from ..functions.elementwise.op_functions import log_softmax, softmax
from ..functions.products.matrix_products import matmul
from ..functions.reductions import statistics
from ..ops import table as ops
from .cases import rows, takes
from .layout import FEW, SOME, LayoutKit, Sample
from .test_scalar_ops import named
from .values import Array

DTYPES = (bool_, float32, int64, int32)
SUMS = [(op.name, d) for op in rows("reduce") for d in DTYPES if takes(op, d)]
PLACES = ("argmax", "argmin")
Axes = int | tuple[int, ...] | None
AXES: dict[int, tuple[Axes, ...]] = {
    0: (None,),
    1: (None, 0),
    2: (None, 0, -1, (0, 1)),
    3: (None, 0, 1, (0, 2), (1, 2)),
}


def values(name: str, s: Sample, d: DType) -> Array:
    return s.signs(d) if name == "prod" else s.array(d)


def make_reduction(name: str, axes: Axes, keepdims: bool) -> Callable[[Any], Any]:
    return lambda x: getattr(statistics, name)(x, axis=axes, keepdims=keepdims)


@pytest.mark.parametrize("keepdims", (False, True), ids=("dropped", "kept"))
@pytest.mark.parametrize(("name", "d"), SUMS, ids=named)
def test_reductions(kit: LayoutKit, name: str, d: DType, keepdims: bool) -> None:
    for s in kit.samples(SOME, d):
        for axes in AXES[len(s.shape)]:
            if name in PLACES and isinstance(axes, tuple):
                continue
            kit.agrees(
                "reduce",
                name,
                make_reduction(name, axes, keepdims),
                [(values(name, s, d), d, True)],
                f"{name} over {axes} of {s}",
            )


def test_rows_of_the_table_are_functions(kit: LayoutKit) -> None:
    """The rows that reduce are reached by their own names."""
    assert all(callable(getattr(statistics, op.name)) for op in rows("reduce"))
    assert ops.SUM in rows("reduce")
    kit.comparisons += 1


PRODUCTS: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "matrices": ((4, 7), (7, 3)),
    "squares": ((6, 6), (6, 6)),
    "matrix and vector": ((4, 7), (7,)),
    "vector and matrix": ((4,), (4, 7)),
    "vectors": ((5,), (5,)),
    "a batch": ((3, 4, 5), (5, 2)),
    "nothing": ((4, 0), (0, 3)),
}
OPERANDS = {
    "layout and layout": (True, True),
    "layout and strided": (True, False),
    "strided and layout": (False, True),
}


@pytest.mark.parametrize("d", (float32, float64, int64), ids=named)
@pytest.mark.parametrize("how", OPERANDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_matmul(kit: LayoutKit, name: str, how: str, d: DType) -> None:
    for mask in ("scattered", "diagonal", "upper"):
        operands = []
        for k, (shape, ours) in enumerate(zip(PRODUCTS[name], OPERANDS[how], strict=True)):
            s = Sample(mask if ours and len(shape) > 1 else "scattered", shape)
            if not ours or kit.subject.takes(s, d, kit.device):
                operands.append((s.array(d, k), d, ours))
        if len(operands) == 2:
            kit.agrees("matmul", "matmul", matmul, operands, f"product of {name}, {how}, {mask}")
    kit.comparisons += 1  # a layout may hold none of these shapes


@pytest.mark.parametrize("f", (softmax, log_softmax), ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", (0, -1))
def test_softmax(kit: LayoutKit, f: Callable[..., Any], axis: int) -> None:
    """Of what has no zeros: elsewhere a layout may take what it does not store for absent."""
    for s in kit.samples(FEW):
        if s.mask == "full" or f.__name__ not in kit.put(s.array(float32), float32)[0].rules:
            kit.agrees(
                f.__name__,
                f.__name__,
                lambda x: f(x, axis=axis),
                [(s.array(float32), float32, True)],
                f"{f.__name__} of {s}",
            )
    kit.comparisons += 1
