"""Cumulative sums and products and differences against NumPy, on every installed device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from dovetail import dtypes
from dovetail.device_class import device
from dovetail.errors import ArgumentError, AxisError, DTypeError, ShapeError
from dovetail.functions.reductions.cumulative import (
    cumulative_logsumexp,
    cumulative_prod,
    cumulative_sum,
    diff,
)
from dovetail.insight.explain import explain
from dovetail.ops import scan as scans
from dovetail.tensor import host, primitives, tensor
from support.planning import forget_shape_classes

DEVICES = ["reference", "cpu"]
rng = np.random.default_rng(11)


def on(name: str, a: Any) -> tensor.Tensor:
    a = np.asarray(a)
    return host.from_host(a, dtypes.dtype(a.dtype), device(name))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i1", "u2", "i8", "?"])
@pytest.mark.parametrize(
    "shape, axis",
    [((50,), None), ((3, 40), 1), ((40, 3), 0), ((2, 5, 3), -2), ((0, 3), 0), ((3, 0), 1)],
)
def test_cumulative_sum_and_prod_equal_numpy(name: str, dtype: str, shape: Any, axis: Any) -> None:
    a = (rng.standard_normal(shape) * 3).astype(dtype)
    for ours, theirs in (
        (cumulative_sum, np.cumulative_sum),
        (cumulative_prod, np.cumulative_prod),
    ):
        for initial in (False, True):
            want = theirs(a, axis=axis, include_initial=initial)
            got = ours(on(name, a), axis=axis, include_initial=initial)
            assert got.dtype is dtypes.dtype(want.dtype)
            np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i4"])
def test_cumulative_logsumexp_equals_numpy(name: str, dtype: str) -> None:
    a = (rng.standard_normal((3, 40)) * 30).astype(dtype)
    if dtype != "i4":
        a[0, :3], a[1, 5], a[2, 7] = -np.inf, 1e4, np.nan  # their exponentials overflow
    wide = a.astype("f4") if dtype == "i4" else a.astype("f4" if dtype == "f2" else dtype)
    with np.errstate(invalid="ignore"):
        want = np.logaddexp.accumulate(wide, axis=1)
    got = cumulative_logsumexp(on(name, a), axis=1)
    assert got.dtype.name == {"f2": "float16", "f8": "float64"}.get(dtype, "float32")
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-3 if dtype == "f2" else 1e-6)
    first = cumulative_logsumexp(on(name, a), axis=-1, include_initial=True)
    assert first.shape == (3, 41) and (first.numpy()[:, 0] == -np.inf).all()


def test_gradient_of_cumulative_logsumexp_of_minus_infinity_is_zero() -> None:
    x = on("reference", np.array([-np.inf, -np.inf, 0.0, 1.0])).requires_grad_()
    cumulative_logsumexp(x)[2:].sum().backward()
    e = np.e / (1 + np.e)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy(), [0, 0, 2 - e, e], rtol=1e-12)


@pytest.mark.parametrize("name", DEVICES)
def test_cumulative_sums_of_halves_accumulate_in_float32(name: str) -> None:
    a = rng.standard_normal((2, 256)).astype(np.float16)
    want = np.cumsum(a.astype(np.float32), 1).astype(np.float16)
    np.testing.assert_array_equal(cumulative_sum(on(name, a), axis=1).numpy(), want)


@pytest.mark.parametrize("name", DEVICES)
def test_operands_may_be_pending_or_strided(name: str) -> None:
    a = rng.integers(0, 9, (6, 7))
    x = primitives.view(on(name, a) * 2, ("permute", (1, 0)))
    np.testing.assert_array_equal((cumulative_sum(x, axis=0) + 1).numpy(), (a.T * 2).cumsum(0) + 1)
    out = on(name, np.zeros((6, 7), np.int64))
    cumulative_sum(on(name, a), axis=1, out=primitives.view(out, ("permute", (0, 1))))
    np.testing.assert_array_equal(out.numpy(), a.cumsum(1))
    cumulative_sum(out, axis=1, out=out)
    np.testing.assert_array_equal(out.numpy(), a.cumsum(1).cumsum(1))


@pytest.mark.parametrize("name", DEVICES)
def test_dtype_argument_selects_the_result_dtype(name: str) -> None:
    a = rng.integers(-9, 9, 30).astype(np.int8)
    got = cumulative_sum(on(name, a), dtype=dtypes.int8)
    np.testing.assert_array_equal(got.numpy(), a.cumsum(dtype=np.int8))
    got = cumulative_sum(on(name, a), dtype=np.float64)
    np.testing.assert_array_equal(got.numpy(), a.cumsum(dtype=np.float64))


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("n", [0, 1, 3, 9])
def test_diff_equals_numpy(name: str, n: int) -> None:
    a = rng.integers(-50, 50, (4, 6)).astype(np.int16)
    for axis in (0, 1):
        np.testing.assert_array_equal(
            diff(on(name, a), n=n, axis=axis).numpy(), np.diff(a, n, axis)
        )
    got = diff(on(name, a), n=n, prepend=on(name, a[:, :1]), append=on(name, a[:, :2]))
    np.testing.assert_array_equal(got.numpy(), np.diff(a, n, prepend=a[:, :1], append=a[:, :2]))
    np.testing.assert_array_equal(diff(on(name, a > 0), n=n).numpy(), np.diff(a > 0, n))


def test_cumulative_errors() -> None:
    x = on("reference", np.ones((2, 2)))
    with pytest.raises(ArgumentError, match="axis"):
        cumulative_sum(x)
    with pytest.raises(AxisError):
        cumulative_sum(x, axis=2)
    with pytest.raises(ShapeError):
        cumulative_prod(on("reference", 1.0))
    with pytest.raises(DTypeError):
        cumulative_sum(x, axis=0, dtype=dtypes.bool_)
    with pytest.raises(ArgumentError):
        diff(x, n=-1)


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("rule", [cumulative_sum, cumulative_prod])
def test_long_integer_scans_in_blocks_equal_numpy(
    name: str, rule: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits as sequential sums, including overflow."""
    forget_shape_classes(monkeypatch)
    monkeypatch.setattr(scans, "SPLIT_ROW_ELEMENTS_MIN", 1)
    n = 4 * scans.BLOCK_ELEMENTS + 7
    for shape, axis in (((n,), 0), ((2, n), 1), ((n, 2), 0)):
        a = rng.integers(-(2**62), 2**62, shape) | 1
        x = on(name, a)
        for initial in (False, True):
            made = rule(x, axis=axis, include_initial=initial)
            assert len(explain(made).launches) == 3
            want = getattr(np, rule.__name__)(a, axis=axis, include_initial=initial)
            np.testing.assert_array_equal(made.numpy(), want)
    a = rng.integers(0, 2, n).astype(bool)
    np.testing.assert_array_equal(cumulative_sum(on(name, a)).numpy(), a.cumsum())


def in_blocks(a: Any) -> Any:
    """Return the cumulative sum of one row as docs/numerics.md defines it: element i is (g + b)
    + e.
    """
    a = a.astype(np.float32) if a.dtype == np.float16 else a
    found, zero = np.empty_like(a), a.dtype.type(0)
    groups = blocks = zero
    for at in range(0, len(a), 256):
        if at % (256 * 256) == 0:
            groups, blocks = groups + blocks, zero
        inside = np.cumsum(a[at : at + 256])
        found[at : at + 256] = (groups + blocks) + inside
        blocks = blocks + inside[-1]
    return found


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("d", ["f2", "f4", "f8", "c8"])
@pytest.mark.parametrize("plan", ["chosen", "launches", "chains"])
def test_long_float_scans_in_blocks_have_the_documented_bits(
    name: str, d: str, plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bits with one launch and with several, with one block per point and with four."""
    forget_shape_classes(monkeypatch)
    monkeypatch.setattr(scans, "SPLIT_ROW_ELEMENTS_MIN", 1 << 30 if plan == "chosen" else 1)
    monkeypatch.setattr(scans, "POINTS_PER_UNIT_MIN", 0 if plan == "chains" else 1 << 30)
    long = 5 * scans.BLOCK_ELEMENTS**2 // 2 + 9 if plan != "chosen" or name == "cpu" else 700
    odd = {"chosen": 0, "launches": 1, "chains": 2}[plan]  # a shape is planned once
    shapes = [
        ((257 + odd,), 0),
        ((2, 1025 + odd), 1),
        ((1300 + odd, 3), 0),
        ((1, 1030 + odd, 2), 1),
    ]
    shapes.append(((long + odd,), 0))
    for shape, axis in shapes:
        a = rng.standard_normal(shape).astype(d)
        want = np.apply_along_axis(in_blocks, axis, a).astype(d)
        made = cumulative_sum(on(name, a), axis=axis)
        several = 1 if plan == "chosen" or shape[axis] < 1024 else 5 if shape[0] > long else 3
        assert len(explain(made).launches) == several
        np.testing.assert_array_equal(made.numpy(), want)
        first = cumulative_sum(on(name, a), axis=axis, include_initial=True).numpy()
        zero = np.zeros_like(np.take(want, [0], axis))
        np.testing.assert_array_equal(first, np.concatenate([zero, want], axis))


def test_errors_of_long_sums_grow_with_the_number_of_blocks() -> None:
    a = rng.random(1 << 20).astype(np.float32)
    want = np.cumsum(a, dtype=np.float64)
    ours = np.abs(cumulative_sum(on("cpu", a)).numpy() - want).max()
    assert ours * 20 < np.abs(np.cumsum(a) - want).max()


@pytest.mark.parametrize("name", DEVICES)
@pytest.mark.parametrize("given", [0, 2.5, True, np.float32(3), np.asarray(4), "tensor"])
def test_diff_prepend_and_append_may_be_scalars(name: str, given: Any) -> None:
    a = np.arange(6).reshape(2, 3) ** 2
    x = on(name, a)
    one, theirs = (on(name, 7), 7) if isinstance(given, str) else (given, given)
    for axis in (0, 1):
        want = np.diff(a, axis=axis, prepend=theirs, append=theirs)
        got = diff(x, axis=axis, prepend=one, append=one)
        assert got.dtype.kind == want.dtype.kind
        np.testing.assert_array_equal(got.numpy(), want)
        np.testing.assert_array_equal(np.diff(x, 1, axis, one).numpy(), np.diff(a, 1, axis, theirs))
