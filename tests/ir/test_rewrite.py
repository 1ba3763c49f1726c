"""The cloner: a copied kernel has the same text, except where a rule changes it."""

from __future__ import annotations

import pytest
from dovetail.dtypes import float32, float64
from dovetail.ir.analysis import grid_index, values
from dovetail.ir.language import Buffer, Value, cast, walk
from dovetail.ir.parser import parse_kernel
from dovetail.ir.rewrite import PointCloner, rewrite_kernel
from dovetail.ir.verify import verify
from places import GOLDEN

KERNELS = sorted(GOLDEN.glob("*.txt"))


@pytest.mark.parametrize("name", [p.stem for p in KERNELS])
def test_copy_has_the_same_text_and_shares_no_statement(name: str) -> None:
    kernel = parse_kernel((GOLDEN / f"{name}.txt").read_text())
    copy = rewrite_kernel(kernel, lambda v, args: None)
    verify(copy)
    assert str(copy) == str(kernel)
    assert not {id(s) for s in walk(copy.body)} & {id(s) for s in walk(kernel.body)}


def test_operands_of_a_rule_are_placed_before_it_once() -> None:
    kernel = parse_kernel("""kernel roots(x: r f32, out: w f32; n; ) grid(n) {
  v0: f32 = load x[i0]
  v1: f32 = sqrt v0
  v2: f32 = add v1, v1
  store out[i0] = v2
}""")

    def rule(v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "sqrt":
            return None
        return cast(Value("sqrt", float64, (cast(args[0], float64),)), float32)

    changed = rewrite_kernel(kernel, rule)
    verify(changed)
    assert [v.op for v in values(changed.body)] == ["load", "cast", "sqrt", "cast", "add"]


@pytest.mark.parametrize("name", ["softmax_row", "gather", "cumulative_sum"])
def test_buffers_are_replaced_at_every_use(name: str) -> None:
    text = (GOLDEN / f"{name}.txt").read_text().strip()
    kernel = parse_kernel(text)
    others = {b: Buffer(f"new_{b.name}", b.dtype, b.access) for b in kernel.buffers}
    changed = rewrite_kernel(kernel, lambda v, args: None, others)
    verify(changed)
    for b in kernel.buffers:
        text = text.replace(f" {b.name}[", f" new_{b.name}[")
        text = text.replace(f"({b.name}:", f"(new_{b.name}:").replace(
            f" {b.name}:", f" new_{b.name}:"
        )
    assert str(changed) == text


def test_point_cloner_replaces_the_index_of_one_axis() -> None:
    kernel = parse_kernel((GOLDEN / "strided_copy.txt").read_text())
    axis = len(kernel.grid) - 1
    here = grid_index(axis)
    point = PointCloner(axis, here * 5, None)
    copy = kernel.with_body(point.block(kernel.body))
    verify(copy)
    assert str(copy).count(f"mul i{axis}, i64(5)") == 1
    assert str(copy).count(f"i{axis}") == 1, "the old index is used too"
    assert axis > 0 and point.operand(first := grid_index(0)) is first
