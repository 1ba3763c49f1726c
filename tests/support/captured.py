"""Captured functions next to the plain ones: devices and comparisons."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Iterator
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from installed import INSTALLED

Pair = namedtuple("Pair", "first second")


@pytest.fixture(params=["reference", "cpu", "opencl"])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    if request.param != "reference" and request.param not in INSTALLED:
        pytest.skip(f"there is no {request.param} here")
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)


def bits(value: Any) -> Any:
    """Return the values for a comparison bit for bit."""
    if isinstance(value, dt.Tensor):
        return value.dtype.name, value.shape, value.numpy().tobytes()
    if isinstance(value, dict):
        return {k: bits(v) for k, v in value.items()}
    return type(value)(*map(bits, value)) if isinstance(value, Pair) else (
        type(value)(map(bits, value)) if isinstance(value, list | tuple) else value)  # fmt: skip


def same(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], calls: int = 3) -> Any:
    """Call a function and its capture in the same way, and return the captured function.

    Each gets arguments of its own; results and arguments must be equal after each call.
    """
    captured = dt.jit(function)
    mine, theirs = make(), make()
    for _ in range(calls):
        assert bits(captured(*theirs)) == bits(function(*mine))
        assert bits([x for x in theirs if isinstance(x, dt.Tensor)]) == bits(
            [x for x in mine if isinstance(x, dt.Tensor)]
        )
    return captured


def vector(n: int = 8, dtype: Any = None, seed: int = 0) -> dt.Tensor:
    values = np.random.default_rng(seed).normal(size=n)
    return dt.asarray(values, dtype=dt.float32 if dtype is None else dtype)
