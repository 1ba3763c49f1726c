"""The kernels in examples/ run on every device, with the same bits."""

from __future__ import annotations

import hashlib
import runpy
from functools import cache
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from places import ROOT

SIZES: dict[str, dict[str, int]] = {
    "stencil_kernel": {"size": 24, "steps": 30},
    "histogram_kernel": {"size": 3000, "bins": 20},
    "attention_kernel": {"rows": 20, "size": 8},
}


@cache
def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def results(name: str, device: str) -> list[np.ndarray]:
    made = example(name)["main"](**SIZES[name], device=device)
    return [x.numpy() for x in (made if isinstance(made, tuple) else (made,))]


def digest(arrays: list[np.ndarray]) -> str:
    return hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()


@pytest.mark.parametrize("name", SIZES)
def test_example_kernels_have_the_same_bits_on_every_device(device: dt.Device, name: str) -> None:
    assert digest(results(name, str(device))) == digest(results(name, "reference"))


def test_stencil_equals_numpy() -> None:
    (plate,) = results("stencil_kernel", "reference")
    want = np.zeros((24, 24))
    want[0] = 100
    for _ in range(30):
        around = want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:]
        want[1:-1, 1:-1] += 0.2 * (around - 4 * want[1:-1, 1:-1])
    np.testing.assert_allclose(plate, want, rtol=1e-4)


def test_histogram_equals_numpy() -> None:
    (counts,) = results("histogram_kernel", "reference")
    x = dt.random.default_rng(0).normal((3000,), device="reference").numpy()
    np.testing.assert_array_equal(counts, np.histogram(x, 20, (-4, 4))[0])


def test_attention_equals_numpy() -> None:
    out, weights = results("attention_kernel", "reference")
    angle = np.linspace(0, 6, 20)[:, None] * np.linspace(0.5, 4, 4)
    q = np.concatenate([np.sin(angle), np.cos(angle)], 1)
    scores = np.exp(2 * q @ q.T)
    want = scores / scores.sum(1, keepdims=True)
    np.testing.assert_allclose(weights, want, rtol=1e-4)
    np.testing.assert_allclose(out, want @ q, atol=1e-4)
