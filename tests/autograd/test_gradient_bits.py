"""First and second derivatives have the reference's bits on every installed device.

The conformance kit compares gradients of ops; this module compares the programs of
`gradient_cases`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from gradient_cases import CASES

OTHERS = [str(d) for d in dt.devices() if str(d) != "reference"] or ["reference"]
SOME = (
    "tanh", "pow", "hypot", "softmax", "logsumexp", "prod with zeros 1", "max", "cumulative_prod",
    "reshape of a transpose", "points apart", "take_along_axis", "(2, 1, 3, 4) @ (3, 4, 2)",
    "rows written", "index_add", "as_strided windows",
)  # fmt: skip


def derivatives(
    f: Callable[..., Any], arrays: Any, dtype: dt.DType, device: str, fused: bool
) -> list[bytes]:
    """Return the bytes of first derivatives, and of the derivatives of the sum of their squares."""
    before = dt.default_device()
    dt.set_default_device(device)
    try:
        with dt.vendor_products(False):
            xs = [dt.asarray(a, dtype=dtype).requires_grad_() for a in arrays]
            dt.evaluate(*xs)
            if fused:
                return _derivatives(f, xs)
            with dt.eager():
                return _derivatives(f, xs)
    finally:
        dt.set_default_device(before)


def _derivatives(f: Callable[..., Any], xs: list[Any]) -> list[bytes]:
    out = f(*xs)
    first = dt.grad((out * out).sum(), xs, create_graph=True)
    total: Any = None
    for g in first:
        part = (g * g).sum()
        total = part if total is None else total + part
    second = dt.grad(total, xs, allow_unused=True) if total.requires_grad else ()
    return [np.ascontiguousarray(g.numpy()).tobytes() for g in (*first, *second) if g is not None]


def check(name: str, device: str) -> None:
    _, f, arrays, _ = CASES[name]
    for dtype in (dt.float32, dt.float64):
        want = derivatives(f, arrays, dtype, "reference", fused=False)
        assert len(want) >= len(arrays)
        assert derivatives(f, arrays, dtype, device, fused=True) == want, (name, dtype)


FEW = ("tanh", "softmax", "take_along_axis")  # a device that compiles slowly takes 1 s for each
QUICK = [(n, d) for d in OTHERS if d in ("cpu", "opencl") for n in (SOME if d == "cpu" else FEW)]
REST = [(n, d) for d in OTHERS for n in CASES if (n, d) not in QUICK]


@pytest.mark.parametrize(("name", "device"), QUICK)
def test_gradients_of_some_programs_have_the_bits_of_the_reference(name: str, device: str) -> None:
    check(name, device)


@pytest.mark.exhaustive
@pytest.mark.parametrize(("name", "device"), REST)
def test_gradients_of_all_programs_have_the_bits_of_the_reference(name: str, device: str) -> None:
    check(name, device)
