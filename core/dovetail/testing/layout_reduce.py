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
from .cases import accepts_dtype, rows
from .layout import BASIC_SAMPLES, VARIED_SAMPLES, LayoutKit, Sample
from .test_scalar_ops import param_id
from .values import Array

DTYPES = (bool_, float32, int64, int32)
SUMS = [(op.name, d) for op in rows("reduce") for d in DTYPES if accepts_dtype(op, d)]
ARG_REDUCTIONS = ("argmax", "argmin")
Axes = int | tuple[int, ...] | None
AXES: dict[int, tuple[Axes, ...]] = {
    0: (None,),
    1: (None, 0),
    2: (None, 0, -1, (0, 1)),
    3: (None, 0, 1, (0, 2), (1, 2)),
}


def values(name: str, s: Sample, d: DType) -> Array:
    """Return a sample's numbers for a reduction; those of `prod` have exact products."""
    return s.small_factors(d) if name == "prod" else s.array(d)


def make_reduction(name: str, axes: Axes, keepdims: bool) -> Callable[[Any], Any]:
    """Return a function that reduces its tensor by the reduction of this name."""
    return lambda x: getattr(statistics, name)(x, axis=axes, keepdims=keepdims)


@pytest.mark.parametrize("keepdims", (False, True), ids=("dropped", "kept"))
@pytest.mark.parametrize(("name", "d"), SUMS, ids=param_id)
def test_reductions(kit: LayoutKit, name: str, d: DType, keepdims: bool) -> None:
    """Check a reduction over each choice of axes."""
    for s in kit.samples(VARIED_SAMPLES, d):
        for axes in AXES[len(s.shape)]:
            if name in ARG_REDUCTIONS and isinstance(axes, tuple):
                continue
            kit.check_rule(
                "reduce",
                name,
                make_reduction(name, axes, keepdims),
                [(values(name, s, d), d, True)],
                f"{name} over {axes} of {s}",
            )


def test_rows_of_the_table_are_functions(kit: LayoutKit) -> None:
    """Check that each reduction of the op table is a function of its name."""
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


@pytest.mark.parametrize("d", (float32, float64, int64), ids=param_id)
@pytest.mark.parametrize("how", OPERANDS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_matmul(kit: LayoutKit, name: str, how: str, d: DType) -> None:
    """Check products of matrices and vectors, of which one or both are in the layout."""
    for mask in ("scattered", "diagonal", "upper"):
        operands = []
        for k, (shape, ours) in enumerate(zip(PRODUCTS[name], OPERANDS[how], strict=True)):
            s = Sample(mask if ours and len(shape) > 1 else "scattered", shape)
            if not ours or kit.subject.accepts(s, d, kit.device):
                operands.append((s.array(d, k), d, ours))
        if len(operands) == 2:
            kit.check_rule(
                "matmul", "matmul", matmul, operands, f"product of {name}, {how}, {mask}"
            )
    kit.comparisons += 1  # a layout may hold none of these shapes


@pytest.mark.parametrize("f", (softmax, log_softmax), ids=lambda f: f.__name__)
@pytest.mark.parametrize("axis", (0, -1))
def test_softmax(kit: LayoutKit, f: Callable[..., Any], axis: int) -> None:
    """Check `softmax` or `log_softmax`; samples with zeros only if the layout has no such rule."""
    for s in kit.samples(BASIC_SAMPLES):
        if s.mask == "full" or f.__name__ not in kit.put(s.array(float32), float32)[0].rules:
            kit.check_rule(
                f.__name__,
                f.__name__,
                lambda x: f(x, axis=axis),
                [(s.array(float32), float32, True)],
                f"{f.__name__} of {s}",
            )
    kit.comparisons += 1
