"""Layouts, level 2: every elementwise row, with strided operands and Python numbers."""

from __future__ import annotations

from typing import Any

import pytest

from ..dtypes import ALL, COMPLEX, DType, bool_, float16, float32, float64, int32, int64, uint8
from ..ops import table as ops
from ..tensor.primitives import apply
from .cases import accepts_dtype, operands, rows
from .layout import BASIC_SAMPLES, VARIED_SAMPLES, LayoutKit, Sample
from .test_scalar_ops import param_id

MAIN_DTYPES = (bool_, float32, int64)
ALL_DTYPE_OPS = ("add", "multiply", "negative", "abs", "sqrt")  # tried on all dtypes
DTYPES = tuple(d for d in ALL if d not in COMPLEX)
MAPS = [
    (op.name, d)
    for op in rows("map")
    if op is not ops.ASTYPE
    for d in (DTYPES if op.name in ALL_DTYPE_OPS else MAIN_DTYPES)
    if accepts_dtype(op, d)
]
PAIRS = [(n, d) for n, d in MAPS if ops.TABLE[n].arity == 2]
SINGLE = [(n, d) for n, d in MAPS if d.kind == "f" and ops.TABLE[n].arity == 1]
SHAPES = (((4, 7), (1, 7)), ((4, 7), (7,)), ((1, 6), (6, 1)), ((3, 4, 5), (4, 1)), ((5,), ()))


def apply_row(name: str) -> Any:
    """Return a function that applies a row of the op table to its arguments."""
    return lambda *args: apply(ops.TABLE[name], args)


def make_operands(name: str, d: DType, s: Sample, joint: bool = False) -> list[Any]:
    """Return (array, dtype, True) per operand; with `joint`, all have the same nonzero pattern."""
    op = ops.TABLE[name]
    return [
        (s.array(e, seed, 0 if joint else None), e, True) for seed, e in enumerate(operands(op, d))
    ]


@pytest.mark.parametrize(("name", "d"), MAPS, ids=param_id)
def test_of_layouts(kit: LayoutKit, name: str, d: DType) -> None:
    """Check an elementwise row whose operands are all in the layout."""
    often = name in ALL_DTYPE_OPS
    kit.is_reference_checked = not often  # the interpreter takes a second to merge positions
    for s in kit.samples(VARIED_SAMPLES, d) if often else kit.samples(BASIC_SAMPLES, d)[:2]:
        for joint in (False, True) if often and ops.TABLE[name].arity > 1 else (False,):
            what = f"{name} of {d.name}, {s}, entries at {'the same' if joint else 'other'} places"
            kit.check_rule("apply", name, apply_row(name), make_operands(name, d, s, joint), what)


@pytest.mark.parametrize(("name", "d"), SINGLE, ids=param_id)
def test_special_values(kit: LayoutKit, name: str, d: DType) -> None:
    """Check a unary row on NaN, infinities and other special values."""
    for s in kit.samples(BASIC_SAMPLES, d):
        kit.check_rule(
            "apply", name, apply_row(name), [(s.special(d), d, True)], f"{name} of specials"
        )


@pytest.mark.parametrize("first", (True, False), ids=("layout first", "strided first"))
@pytest.mark.parametrize(("name", "d"), PAIRS, ids=param_id)
def test_with_strided(kit: LayoutKit, name: str, d: DType, first: bool) -> None:
    """Check a binary row of a tensor in the layout and a strided one without zeros."""
    kit.is_reference_checked = name not in ALL_DTYPE_OPS
    for s in kit.samples(BASIC_SAMPLES, d):
        full = Sample("full", s.shape).array(d, 5)
        pair = [(s.array(d), d, True), (full, d, False)]
        kit.check_rule(
            "apply",
            name,
            apply_row(name),
            pair if first else pair[::-1],
            f"{name} of {d.name}, {s}, and a strided one",
        )


@pytest.mark.parametrize("number", (2, 0))
@pytest.mark.parametrize("first", (True, False), ids=("layout first", "number first"))
@pytest.mark.parametrize(("name", "d"), [p for p in PAIRS if p[1] is float32], ids=param_id)
def test_with_numbers(kit: LayoutKit, name: str, d: DType, first: bool, number: int) -> None:
    """Check a binary row of a tensor in the layout and a Python number, in both orders."""
    f = apply_row(name)
    for s in kit.samples(BASIC_SAMPLES, d):
        kit.check_rule(
            "apply",
            name,
            lambda x: f(x, number) if first else f(number, x),
            [(s.array(d), d, True)],
            f"{name} of {s} and {number}",
        )


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", ("add", "multiply", "maximum"))
def test_broadcast(kit: LayoutKit, name: str, shapes: Any) -> None:
    """Check a row of operands with different shapes, if the layout holds both."""
    for d in (float32, int64):
        samples = [Sample("scattered", s) for s in shapes]
        tried = [kit.subject.accepts(s, d, kit.device) for s in samples]
        if not all(tried):
            kit.comparisons += 1
            continue
        arrays = [(s.array(d, k), d, True) for k, s in enumerate(samples)]
        kit.check_rule("apply", name, apply_row(name), arrays, f"{name} of {shapes}")
        kit.check_rule("apply", name, apply_row(name), arrays[::-1], f"{name} of {shapes[::-1]}")


@pytest.mark.parametrize(
    "dtypes",
    ((float32, float64), (int32, int64), (bool_, int32), (uint8, int32), (float16, int32)),
    ids=str,
)
@pytest.mark.parametrize("name", ("add", "multiply"))
def test_promotion(kit: LayoutKit, name: str, dtypes: tuple[DType, DType]) -> None:
    """Check a binary row of operands of two dtypes in the layout, if the device has both."""
    if not all(map(kit.has_dtype, dtypes)):
        kit.comparisons += 1
        return
    for s in kit.samples():
        pair = [(s.array(d, k), d, True) for k, d in enumerate(dtypes)]
        kit.check_rule("apply", name, apply_row(name), pair, f"{name} of {dtypes}")
