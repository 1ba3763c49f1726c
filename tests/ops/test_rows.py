"""The op table: common fields, half-precision computation, and user ops."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from dovetail import dtypes
from dovetail.autograd import gradcheck
from dovetail.autograd.tape import rules_of
from dovetail.dtypes import DType, bool_, float16, float32, float64, int8, int64
from dovetail.errors import InternalError
from dovetail.extend import KernelSite, Launches
from dovetail.ir.language import Value
from dovetail.ops import kernel_ops
from dovetail.ops.arithmetic import convert
from dovetail.ops.table import ADD, ARGMAX, MATMUL, MEAN, SUM, TABLE, WRITTEN

PAGE = Path(__file__).parents[2] / "docs" / "adding-an-op.md"


@pytest.fixture
def float8(monkeypatch: pytest.MonkeyPatch) -> DType:
    """Return a float of one byte, such as a plugin may register."""
    made = DType("float8_e4m3", "f8", "f", 1, in_numpy=False)
    monkeypatch.setitem(dtypes._PROMOTIONS, (made, float32), float32)
    monkeypatch.setitem(dtypes.FORMATS, made, dtypes.FloatFormat(4, 448.0, 2.0**-6, 2.0**-9, False))
    return made


# --- fields --------------------------------------------------------------------------------------


def test_ops_are_frozen() -> None:
    for op in (*TABLE.values(), WRITTEN):
        with pytest.raises(dataclasses.FrozenInstanceError):
            op.cost = 3  # type: ignore[misc]  # that is the test


def test_missing_field_of_an_op_raises() -> None:
    with pytest.raises(InternalError):
        SUM.build(None)  # type: ignore[arg-type]  # it is not looked at


def test_gradient_rule_is_in_the_op_or_in_the_rule_table() -> None:
    assert len(ADD.gradient) == len(rules_of(ADD)) == 2
    assert SUM.gradient == () and len(rules_of(SUM)) == 1
    assert rules_of(TABLE["equal"]) == ()


# --- reduced precision ---------------------------------------------------------------------------


def test_floats_narrower_than_float32_are_computed_in_float32(float8: DType) -> None:
    assert {d.compute for d in (float8, float16, dt.bfloat16)} == {float32}
    assert all(d.compute is d for d in (float32, float64, int8, int64, bool_))


def test_dtype_rules_accept_a_float_of_one_byte(float8: DType) -> None:
    for op in (SUM, MEAN):
        assert op.dtypes(op.name, [float8], None) == ((float32,), float8)
    assert ARGMAX.dtypes("argmax", [float8], None) == ((float32,), int64)
    assert ADD.dtypes("add", [float8, float32], None) == ((float32, float32), float32)
    assert MATMUL.dtypes("matmul", [float8, float8], None) == ((float8, float8), float8)


def casts(v: Value) -> list[DType]:
    """Return the dtypes that `v` is cast to, in order."""
    return [*casts(v.args[0]), v.dtype] if v.op == "cast" else []


def test_conversions_of_a_float_of_one_byte_go_through_float32(
    float8: DType,
) -> None:
    x, i = Value("param", float8, ()), Value("param", int64, ())
    assert casts(convert(i, float8)) == [float32, float8]
    truth = convert(x, bool_)
    assert truth.op == "ne" and casts(truth.args[0]) == [float32]
    stack, seen = [convert(x, int64)], list[DType]()
    while stack:
        v = stack.pop()
        if v.op in ("lt", "le"):
            seen += [a.dtype for a in v.args]
        stack += v.args
    assert set(seen) == {float32}, "compared with the bounds of int64 in float32"


def test_matrix_product_accumulates_in_the_compute_dtype(float8: DType) -> None:
    class Site:
        casts = (float8, float8)
        stored: Value

        def rank(self, operand: int) -> int:
            return 2

        def axis(self, operand: int, axis: int) -> Value:
            return Value("index", int64, (), axis)

        def size(self, operand: int, axis: int) -> Value:
            return Value("param", int64, (), "n")

        def extent(self, operand: int, axis: int) -> int:
            return 3

        def read(self, operand: int, *at: Value) -> Value:
            return Value("param", float32, (), operand)

        def store(self, value: Value, *at: Value) -> None:
            self.stored = value

    site: Any = Site()
    kernel_ops.build_product(site)
    assert site.stored.dtype is float32


# --- user ops ------------------------------------------------------------------------------------


def test_kernel_op_of_the_page_works_and_has_a_gradient() -> None:
    (code,) = re.findall(r"```python\n(from dovetail.extend.*?)```", PAGE.read_text(), re.DOTALL)
    x = dt.asarray([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], dtype=dt.float64, device="reference")
    names: dict[str, Any] = {"x": x}
    exec(code, names)
    assert names["total"].tolist() == [6.0, 15.0]

    def total(x: dt.Tensor) -> Any:
        made = names["make_node"](names["ROW_SUM"], (x,), x.shape[:1], x.dtype)
        return made * made

    assert gradcheck(total, x.requires_grad_())


def test_page_documents_every_member_of_a_kernel_site() -> None:
    said = set(re.findall(r"\w+", PAGE.read_text()))
    members = {n for n in vars(KernelSite) if not n.startswith("_")}
    assert members > {"read", "store"} and members - said == set()
    assert {n for n in vars(Launches) if not n.startswith("_")} > {"temporary", "launch"}
