"""Collections of garbage while a function is captured: fewer, and afterwards as before."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import dovetail as dt
import pytest


@pytest.fixture(autouse=True)
def restored_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


def thresholds_in_trace(thresholds: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the thresholds that a captured function sees."""
    seen = list[tuple[int, int, int]]()

    def f(x: dt.Tensor) -> dt.Tensor:
        seen.append(gc.get_threshold())
        return x + 1

    gc.set_threshold(*thresholds)
    dt.jit(f)(dt.ones(2))
    return seen[0]


def test_trace_collects_rarely_and_restores_the_thresholds() -> None:
    assert thresholds_in_trace((300, 7, 9)) == (10_000, 7, 9)
    assert gc.get_threshold() == (300, 7, 9)


@pytest.mark.parametrize("thresholds", [(0, 7, 9), (200_000, 7, 9)])
def test_trace_leaves_rare_and_no_collections_alone(thresholds: tuple[int, int, int]) -> None:
    assert thresholds_in_trace(thresholds) == thresholds
    assert gc.get_threshold() == thresholds


def test_error_in_a_trace_restores_the_thresholds() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        raise ValueError("no")

    gc.set_threshold(300, 7, 9)
    with pytest.raises(ValueError, match="no"):
        dt.jit(f)(dt.ones(2))
    assert gc.get_threshold() == (300, 7, 9)


def test_thresholds_that_the_function_sets_stay() -> None:
    def f(x: dt.Tensor) -> dt.Tensor:
        gc.set_threshold(400, 5, 5)
        return x + 1

    dt.jit(f)(dt.ones(2))
    assert gc.get_threshold() == (400, 5, 5)
