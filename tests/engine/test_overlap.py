"""Writes that read their own target at other places: a temporary value, then a copy."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.engine.events import counters
from dovetail.fusion import passes

N = 50


@pytest.fixture
def u(device: dt.Device) -> dt.Tensor:
    return dt.asarray(np.arange(N, dtype="f4"), device=device)


def _smooth(u: dt.Tensor | np.ndarray) -> None:
    u[1:-1] = (u[:-2] + u[2:]) * 0.5 + u[1:-1]


def test_in_place_stencil_equals_numpy(u: dt.Tensor) -> None:
    expected = np.arange(N, dtype="f4")
    for _ in range(3):
        _smooth(u)
        _smooth(expected)
    np.testing.assert_array_equal(u.numpy(), expected)


def test_overlap_is_planned_once(u: dt.Tensor, monkeypatch: pytest.MonkeyPatch) -> None:
    _smooth(u)
    monkeypatch.setattr(passes, "plan", None)  # from now on everything is cached
    plans = counters.plans
    _smooth(u)
    assert counters.plans == plans


def test_overlapping_write_stores_no_intermediates(u: dt.Tensor) -> None:
    """The first launch reads three slices of `u` and writes one result."""
    with dt.profile() as p:
        _smooth(u)
    moved = [e["details"]["bytes"] for e in p.events if e["name"].startswith("launch")]
    assert moved == [4 * 4 * (N - 2), 2 * 4 * (N - 2)]


@pytest.mark.parametrize("captures", [False, True])
def test_update_by_few_of_its_elements_copies_nothing(
    device: dt.Device, captures: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = dt.asarray(np.arange(5000, dtype="f4"), device=device)
    i = dt.asarray([7, 4000, 3], device=device)

    def update(x: dt.Tensor, i: dt.Tensor) -> None:
        x[i] = x[i + 1] * 2

    f = dt.jit(update) if captures else update
    f(x, i)
    with dt.profile() as p:
        f(x, i)
    expected = np.arange(5000, dtype="f4")
    for _ in range(2):
        expected[[7, 4000, 3]] = expected[[8, 4001, 4]] * 2
    np.testing.assert_array_equal(x.numpy(), expected)
    assert not [e for e in p.events if e["name"] == "launch copy"]


def test_value_of_an_overlapping_write_is_unchanged(u: dt.Tensor) -> None:
    value = u[:-1] * 2
    u[1:] = value
    u[1:] = u[:-1]
    np.testing.assert_array_equal(value.numpy(), np.arange(N - 1, dtype="f4") * 2)
    expected = np.concatenate([[0, 0], np.arange(N - 2, dtype="f4") * 2])
    np.testing.assert_array_equal(u.numpy(), expected)


def test_captured_overlapping_write_is_replayed(u: dt.Tensor) -> None:
    expected = np.arange(N, dtype="f4")
    smooth = dt.jit(_smooth)
    for _ in range(4):
        smooth(u)
        _smooth(expected)
    np.testing.assert_array_equal(u.numpy(), expected)


def test_overlapping_write_gets_no_guard(u: dt.Tensor) -> None:
    """A guard would find a plan without launches and leave the memory unchanged."""
    order = np.roll(np.arange(N), 7)
    expected, at = np.arange(N, dtype="f4"), dt.asarray(order, device=u.device)
    for _ in range(5):
        u[:] = dt.take(u, at)
        expected = expected[order]
    np.testing.assert_array_equal(u.numpy(), expected)
