"""The IR is verified after every stage; the fixture `verified_kernels` enables that in all
tests.
"""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail import dtypes
from dovetail.engine import evaluate as run
from dovetail.fusion.plan import PlannedLaunch
from dovetail.ir import builder
from dovetail.ir.builder import Kernel
from dovetail.ir.language import Value, const
from dovetail.ir.legalize import legalize
from dovetail.ir.target import Capabilities
from dovetail.ir.unroll_jam import unroll_jam
from dovetail.ops import table as ops
from dovetail.tensor.primitives import apply
from dovetail.testing import verified

MAKER = "dovetail.ir.builder"


def test_planned_and_legalized_kernels_are_verified() -> None:
    x = dt.ones(3, dtype=dt.float16, device="reference")
    y = dt.exp(x) * 31 - dt.nextafter(x, 17)
    planned = verified.counts[MAKER]
    with dt.vendor_products(False):
        ((_, plan),) = run.plan_pending([y._expr])
    assert verified.counts[MAKER] > planned
    for step in plan.steps:
        assert isinstance(step, PlannedLaunch)
        before = verified.counts[MAKER]
        legal = legalize(step.kernel, Capabilities())
        assert legal is not step.kernel and verified.counts[MAKER] > before


def test_planned_kernel_that_breaks_a_rule_raises() -> None:
    def broken(x: Value) -> Value:
        return Value("add", x.dtype, (x, const(1, dtypes.int32)))

    row = ops.Op("broken", "map", ops.same("f"), broken, arity=1)
    with pytest.raises(dt.InternalError, match="add must have arguments of one dtype"):
        dt.evaluate(apply(row, (dt.ones(3, device="reference"),)))


@pytest.mark.parametrize("stage", ["legalize", "unroll_jam"])
def test_pass_that_breaks_a_rule_raises(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass loses the last parameter of the kernel that it builds."""
    kernel = _product(dt.float16 if stage == "legalize" else dt.float32)
    make = builder.Kernel

    def forgetful(name: str, buffers: tuple[object, ...], *rest: object) -> Kernel:
        return make(name, buffers[:-1], *rest)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(builder, "Kernel", forgetful)
    with pytest.raises(dt.InternalError, match="a buffer must be declared"):
        legalize(kernel, Capabilities()) if stage == "legalize" else unroll_jam(kernel, 4)


def _product(dtype: dt.DType) -> Kernel:
    """Return the kernel of a matrix product."""
    x = dt.ones((9, 9), dtype=dtype, device="reference")
    with dt.vendor_products(False):
        y = x @ x
    ((_, plan),) = run.plan_pending([y._expr])
    step = plan.steps[-1]
    assert isinstance(step, PlannedLaunch)
    return step.kernel
