"""Functions of the package einops on tensors, against the same calls on NumPy arrays."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest

einops = pytest.importorskip("einops", reason="einops is not installed (pip install einops)")

A = np.arange(48, dtype=np.float32).reshape(2, 6, 4)
CALLS: dict[str, Callable[[Any], Any]] = {
    "transpose": lambda a: einops.rearrange(a, "b h w -> w b h"),
    "split": lambda a: einops.rearrange(a, "b (h p) w -> b h (w p)", p=2),
    "list": lambda a: einops.rearrange([a, a + 1], "n b h w -> b n (h w)"),
    "mean": lambda a: einops.reduce(a, "b (h p) w -> b h w", "mean", p=3),
    "max": lambda a: einops.reduce(a, "b h w -> h", "max"),
    "prod": lambda a: einops.reduce(a % 3 + 1, "b h w -> b w", "prod"),
    "repeat": lambda a: einops.repeat(a, "b h w -> b (h k) w n", k=2, n=3),
    "pack": lambda a: einops.pack([a, a[:, 0]], "b * w")[0],
    "unpack": lambda a: einops.unpack(a, [(2,), (2, 2)], "b * w")[1],
    "einsum": lambda a: einops.einsum(a, a, "b h w, b k w -> b h k"),
}


@pytest.mark.parametrize("call", CALLS)
def test_einops_equals_numpy(device: dt.Device, call: str) -> None:
    expected, found = CALLS[call](A), CALLS[call](dt.asarray(A))
    assert isinstance(found, dt.Tensor) and found.device == device
    assert np.array_equal(found.numpy(), expected)


def test_gradient_flows_through_einops() -> None:
    x = dt.asarray(A).requires_grad_()
    (einops.rearrange(x, "b h w -> (b w) h")[0] ** 2).sum().backward()
    expected = np.zeros_like(A)
    expected[0, :, 0] = 2 * A[0, :, 0]
    assert x.grad is not None and np.array_equal(x.grad.numpy(), expected)


@pytest.mark.parametrize("first", ["dovetail", "einops"])
def test_einops_works_in_either_order_of_imports(first: str) -> None:
    second = "einops" if first == "dovetail" else "dovetail"
    program = (
        f"import sys, {first}\n"
        "assert ('einops' in sys.modules) != ('dovetail' in sys.modules)\n"
        f"import {second}, dovetail, einops\n"
        "x = dovetail.ones((2, 3), device='reference')\n"
        "print(einops.rearrange(x, 'a b -> b a').shape)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert run.stdout == "(3, 2)\n", run.stderr
