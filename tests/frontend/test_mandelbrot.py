"""`examples/mandelbrot_kernel.py`: one kernel, and the same picture everywhere."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "mandelbrot_kernel.py"


@pytest.fixture(scope="module")
def example() -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLE))


def expected_picture(width: int, height: int, steps: int) -> np.ndarray:
    """Return the picture computed with NumPy on the same axes."""
    x = dt.linspace(-2.1, 0.7, width, device="reference").numpy()
    y = dt.linspace(-1.2, 1.2, height, device="reference").numpy()[:, None]
    re = im = np.zeros((height, width), np.float32)
    times = np.zeros((height, width), np.int32)
    for _ in range(steps):
        inside = re * re + im * im < 4
        re, im = (
            np.where(inside, re * re - im * im + x, np.float32(2)),
            np.where(inside, 2 * re * im + y, np.float32(2)),
        )
        times += inside
    return times


def test_picture_equals_numpy(example: dict[str, Any], device: dt.Device) -> None:
    found = example["picture"](40, 30, 50)
    assert np.array_equal(found.numpy(), expected_picture(40, 30, 50))
    again = example["picture"](40, 30, 50)
    assert len(dt.explain(again).launches) == 1


def test_picture_has_the_same_bits_on_every_device(example: dict[str, Any]) -> None:
    digests = {str(d): example["digest"](example["picture"](33, 21, 30, d)) for d in dt.devices()}
    assert len({*digests.values()}) == 1, digests


def test_main_draws_characters(example: dict[str, Any], device: dt.Device) -> None:
    text = example["main"](40, 15, 30)
    assert len(text.splitlines()) == 15 and {*text} > {" ", "@"}
