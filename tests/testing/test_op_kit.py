"""`dovetail test-op` passes correct ops, and catches each broken one."""

from __future__ import annotations

from pathlib import Path

import broken_ops
import dovetail as dt
import pytest
from dovetail.commands.cli import main
from dovetail.testing.own_ops import CHECKS, load_op_subject, run_checks

OTHERS = ("another_on_the_cpu", "gradient_by_device")  # ops that are wrong only on another device


def devices(name: str = "") -> list[str]:
    if name in OTHERS:
        pytest.importorskip("dovetail_cpu_llvm")
        return ["cpu"]
    return ["reference"]


@pytest.mark.parametrize("name", ["honest", "honest_numbers"])
def test_honest_op_passes(name: str) -> None:
    found = {d.type for d in dt.devices()} & {"cpu", "opencl"}
    judge = load_op_subject(getattr(broken_ops, name), name, sorted(found))
    outcomes = list(run_checks(judge))
    assert [o.name for o in outcomes] == [*CHECKS]
    assert [(o.name, o.message) for o in outcomes if o.state != "passed"] == []
    assert all(o.comparisons for o in outcomes if o.name != "shapes") and judge.comparisons > 40


@pytest.mark.parametrize("name", broken_ops.BROKEN)
def test_broken_op_is_caught(name: str) -> None:
    judge = load_op_subject(getattr(broken_ops, name), name, devices(name))
    outcomes = {o.name: o for o in run_checks(judge)}
    assert outcomes[broken_ops.BROKEN[name]].state == "failed"
    assert outcomes[broken_ops.BROKEN[name]].message


@pytest.mark.parametrize("bad_operands", [1, 2])
def test_elementwise_op_that_is_wrong_without_axes_is_caught(bad_operands: int) -> None:
    op = dt.elementwise(lambda x, y: x * y + 1.0)
    judge = load_op_subject(op, "op", ["reference"])
    judge.op = lambda *xs: op(*xs) + float(sum(x.ndim == 0 for x in xs) == bad_operands)
    (outcome,) = run_checks(judge, "shapes")
    assert outcome.state == "failed" and "example 0" in outcome.message


def test_op_without_a_gradient_is_reported_as_such() -> None:
    op = dt.elementwise(lambda x: x > 1)
    outcomes = {o.name: o for o in run_checks(load_op_subject(op, "op", ["reference"]))}
    assert outcomes["gradient"].state == "none"
    assert outcomes["gradient"].message == "its results are no floats"
    assert {o.state for o in outcomes.values()} == {"none", "passed"}
    op = dt.custom_op("op", lambda x: dt.nextafter(x, 9.0), examples=broken_ops.ONE)
    outcomes = {o.name: o for o in run_checks(load_op_subject(op, "op", ["reference"]))}
    assert outcomes["gradient"].state == "none"
    assert "nextafter has no gradient" in outcomes["gradient"].message


def test_examples_by_name_and_from_functions() -> None:
    def examples() -> list[object]:
        return [(dt.linspace(1.0, 2.0, 3, device="reference"), {"n": 3})]

    power = dt.elementwise(examples=examples)(lambda x, *, n: x**n)
    assert {o.state for o in run_checks(load_op_subject(power, "power", ["reference"]))} == {
        "passed"
    }


def test_test_op_command_reports_each_op(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine_of_test_op.py").write_text(
        "import dovetail as dt\n\n"
        "@dt.elementwise\ndef good(x):\n    return x * x\n\n"
        "bare = dt.custom_op('bare', lambda x: x)\n"
        "bad = dt.custom_op('bad', lambda x: x * x, gradient=lambda g, x: g * x,\n"
        "                   examples=[[[1.5, 2.5]]])\n"
    )

    def said(name: str, *more: str) -> tuple[int, str]:
        status = main(["test-op", name, "--device", "reference", *more])
        out = capsys.readouterr()
        return status, out.out + out.err

    status, text = said("mine_of_test_op:good")
    assert status == 0 and "mine_of_test_op:good passes: " in text
    status, text = said("mine_of_test_op:good", "-k", "gradient")
    assert status == 0 and "values" not in text
    assert said("mine_of_test_op:good", "-k", "nowhere")[0] == 1
    status, text = said("mine_of_test_op:bad")
    assert status == 1 and "mine_of_test_op:bad is not as an op should be: gradient" in text
    assert "differences give" in text
    for name, says in (
        ("mine_of_test_op:bare", "has no examples; give it some"),
        ("mine_of_test_op:absent", "no attribute 'absent'"),
        ("no_such_module_here:op", "cannot be imported"),
        ("mine_of_test_op", "named as module:name"),
        ("mine_of_test_op:__name__", "nothing to be called"),
    ):
        status, text = said(name)
        assert status == 2 and says in text
