"""`pad` and `unique` with its options against NumPy; gradients; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call, call-overload"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]


def assert_same(found: Any, want: Any) -> None:
    if isinstance(want, tuple):
        assert len(found) == len(want)
        for f, w in zip(found, want, strict=True):
            assert_same(f, w)
        return
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("mode", MODES)
def test_pad_modes_equal_numpy(device: dt.Device, mode: Any) -> None:
    a = np.arange(6).reshape(2, 3)
    for width in (1, 0, (2, 1), ((0, 2), (3, 0)), ((7, 5), (4, 9)), [[1], [2]]):
        assert_same(dt.pad(dt.asarray(a), width, mode), np.pad(a, width, mode))
    one = np.array([7.5], "f4")
    assert_same(dt.pad(dt.asarray(one), 3, mode), np.pad(one, 3, mode))
    x = dt.asarray(a * 1.0).requires_grad_()
    assert device.type != "reference" or gradcheck(lambda t: dt.pad(t, (3, 1), mode) ** 2, x)


def test_constant_padding_equals_numpy(device: dt.Device) -> None:
    a = np.ones((2, 2), bool)
    assert_same(dt.pad(dt.asarray(a), 1), np.pad(a, 1))
    assert_same(
        dt.pad(dt.asarray(a * 1.0), 1, constant_values=7), np.pad(a * 1.0, 1, constant_values=7)
    )


OPTIONS: list[dict[str, Any]] = [
    {}, {"return_index": True}, {"return_inverse": True}, {"return_counts": True},
    {"return_index": True, "return_inverse": True, "return_counts": True}, {"equal_nan": False},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_unique_equals_numpy(device: dt.Device, options: dict[str, Any]) -> None:
    rng = np.random.default_rng(3)
    holes = rng.integers(0, 4, 30) / 2
    holes[::5] = np.nan
    for a in (rng.integers(0, 5, (4, 5)), holes, rng.random(9) < 0.5, np.zeros(0), np.ones(1)):
        assert_same(
            dt.unique(dt.asarray(a, dtype=str(a.dtype)), **options), np.unique(a, **options)
        )
    rows = rng.integers(0, 2, (9, 3, 2))
    for axis in (0, 1, -1):
        assert_same(
            dt.unique(dt.asarray(rows), axis=axis, **options), np.unique(rows, axis=axis, **options)
        )


def test_wrong_padding_raises() -> None:
    x = dt.ones((2, 3), device="reference")
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: dt.pad(x, -1), dt.ArgumentError, "pad: widths must not be negative"),
        (lambda: dt.pad(x, (1, 2, 3)), dt.ShapeError, "pad: pad_width"),
        (lambda: dt.pad(x, "a"), dt.ArgumentTypeError, "pad: pad_width"),
        (lambda: dt.pad(x, 1, "other"), dt.ArgumentError, "pad: mode"),
        (lambda: dt.pad(x[:0], 1, "edge"), dt.ShapeError, "pad: axis 0 must not be empty"),
        (lambda: dt.unique(x, axis=2), dt.AxisError, "unique"),
        (lambda: dt.unique([1]), dt.DTypeError, "unique"),
        (lambda: dt.unique(x, "yes"), dt.ArgumentTypeError, "unique: return_index"),
    ]
    for call, error, says in calls:
        with pytest.raises(error, match=says):
            call()


PADDINGS: list[dict[str, Any]] = [
    {"mode": "linear_ramp"},
    {"mode": "linear_ramp", "end_values": ((5, -4), (1, 2))},
    {"mode": "mean"}, {"mode": "median"}, {"mode": "maximum"}, {"mode": "minimum"},
    {"mode": "mean", "stat_length": 2}, {"mode": "median", "stat_length": ((1, 3), (2, 9))},
    {"mode": "maximum", "stat_length": (2, 1)}, {"mode": "minimum", "stat_length": ((1, 2),)},
    {"mode": "reflect", "reflect_type": "odd"}, {"mode": "symmetric", "reflect_type": "odd"},
]  # fmt: skip


@pytest.mark.parametrize("options", PADDINGS, ids=str)
def test_computed_padding_equals_numpy(device: dt.Device, options: dict[str, Any]) -> None:
    for dtype in ("i2", "f4", "f8", "u1") if device.type == "reference" else ("f4",):
        a = np.random.default_rng(4).integers(0, 50, (3, 4)).astype(dtype)
        if a.dtype.kind == "f":
            a[0, 1] += 0.25
        for widths in (((1, 0), (0, 3)), ((7, 11), (9, 4)), {-1: (2, 1)}):
            found = dt.pad(dt.asarray(a, device=device), widths, **options)
            want = np.pad(a, widths, **options)
            if "end_values" in options and dtype == "u1":
                continue  # NumPy casts negative ends by the C compiler
            assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
            np.testing.assert_allclose(found.numpy(), want, rtol=2e-5, atol=2e-4)


def test_computed_padding_by_definition(device: dt.Device) -> None:
    x = dt.asarray([1, 2, 4], device=device)
    assert dt.pad(x, (2, 3), "linear_ramp", end_values=(5, -4)).tolist() == [
        5,
        3,
        1,
        2,
        4,
        1,
        -2,
        -4,
    ]
    assert dt.pad(x, 2, "reflect", reflect_type="odd").tolist() == [-2, 0, 1, 2, 4, 6, 7]
    assert dt.pad(x, 2, "symmetric", reflect_type="odd").tolist() == [0, 1, 1, 2, 4, 4, 6]
    assert dt.pad(x, (1, 2), "maximum", stat_length=2).tolist() == [2, 1, 2, 4, 4, 4]
    assert dt.pad(x, 1, "mean").tolist() == [2, 1, 2, 4, 2]
    assert dt.pad(x, 1, "median").tolist() == [2, 1, 2, 4, 2]
    assert dt.pad(dt.zeros((0, 2), device=device), 1, "empty").shape == (2, 4)
    y = dt.asarray([1.0, dt.inf, 2.0], device=device)
    assert dt.pad(y, 1, "reflect", reflect_type="odd").tolist() == [-dt.inf, 1, dt.inf, 2, -dt.inf]


@pytest.mark.parametrize("options", PADDINGS, ids=str)
def test_computed_padding_has_a_gradient(options: dict[str, Any]) -> None:
    x = dt.asarray([[1.0, 2.5, -1.0], [0.5, 3.0, 2.0]], dtype=dt.float64, requires_grad=True)
    assert gradcheck(lambda t: dt.pad(t, ((1, 2), (3, 1)), **options), x)


def test_wrong_padding_options_raise() -> None:
    x = dt.asarray([1, 2])
    with pytest.raises(dt.ArgumentError, match="end_values must be left out with mode='mean'"):
        dt.pad(x, 1, "mean", end_values=1)
    with pytest.raises(dt.ArgumentError, match="stat_length must be left out"):
        dt.pad(x, 1, "linear_ramp", stat_length=1)
    with pytest.raises(dt.ArgumentError, match="pad: stat_length"):
        dt.pad(x, 1, "mean", stat_length=0)
    with pytest.raises(dt.ArgumentError, match="reflect_type"):
        dt.pad(x, 1, "reflect", reflect_type="both")
    with pytest.raises(dt.AxisError, match="pad"):
        dt.pad(x, {1: 2})
    with pytest.raises(dt.ShapeError, match="must not be empty"):
        dt.pad(x[:0], 1, "mean")
