"""Reductions and writes at indices: definitions, PyTorch, gradients, captures and batches."""

from __future__ import annotations

import itertools
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck
from dovetail.ops import scatter as scatters
from support.planning import forget_shape_classes

REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
NP_UFUNC = {
    "sum": np.add,
    "mean": np.add,
    "prod": np.multiply,
    "amax": np.maximum,
    "amin": np.minimum,
}
rng = np.random.default_rng(3)


def reduced(x: Any, index: Any, source: Any, reduce: str, include_self: bool) -> Any:
    """Return the definition along axis 0, one value after the other."""
    out, seen = x.copy(), np.full(len(x), int(include_self))
    for i, value in zip(index, source, strict=True):
        out[i] = NP_UFUNC[reduce](out[i], value) if seen[i] else value
        seen[i] += 1
    if reduce == "mean":
        count = np.maximum(seen, 1).reshape(-1, *(1,) * (x.ndim - 1))
        out = out // count if x.dtype.kind in "iu" else (out / count).astype(x.dtype)
    return out


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("d", ["float32", "float64", "int32", "uint8", "complex64"])
def test_index_reduce_equals_its_definition(
    device: dt.Device, d: str, reduce: str, include_self: bool
) -> None:
    if d == "complex64" and reduce in ("amax", "amin"):
        pytest.skip("complex numbers have no order")
    for rows, values in ((1, 0), (1, 5), (5, 5), (40, 1000)):
        x, source = ((rng.random((n, 3)) * 9).astype(d) for n in (rows, values))
        index = rng.integers(-rows, rows, values)
        want = reduced(x, index, source, reduce, include_self)
        ours = dt.asarray(x)
        got = dt.index_reduce(ours, 0, index, source, reduce, include_self=include_self)
        assert got.dtype is ours.dtype
        np.testing.assert_array_equal(got.numpy(), want)
        along = ours.T.index_reduce(-1, index, source.T, reduce, include_self=include_self)
        np.testing.assert_array_equal(along.numpy(), want.T)
        wide = np.broadcast_to((index % rows)[:, None], source.shape)
        got = dt.scatter_reduce(ours, 0, wide, source, reduce, include_self=include_self)
        np.testing.assert_array_equal(got.numpy(), want)
        assert ours.index_reduce_(0, index, source, reduce, include_self=include_self) is ours
        np.testing.assert_array_equal(ours.numpy(), want)


@pytest.mark.parametrize("reduce", ["prod", "amax", "amin"])
def test_values_sorted_by_ranges_have_the_same_bits(
    device: dt.Device, reduce: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_shape_classes(monkeypatch)
    monkeypatch.setattr(scatters, "RANGE_UNITS_MIN", 1)
    monkeypatch.setattr(scatters, "RANGE_VALUES_MIN", 1)
    n = scatters.COLUMN_VALUES_MIN + 77
    for rows in (5, 70_000):
        x, source = (rng.standard_normal(k).astype("f4") for k in (rows, n))
        index = rng.integers(0, rows, n)
        with dt.profile() as ran:
            got = dt.index_reduce(dt.asarray(x), 0, index, source, reduce)
            dt.evaluate(got)
        assert any(e["name"] == "launch scatter_ranges" for e in ran.events)
        np.testing.assert_array_equal(got.numpy(), reduced(x, index, source, reduce, True))


def test_index_reduce_of_known_values() -> None:
    x, i, y = dt.asarray([1.0, 2.0, 3.0]), [0, 0, 2], [4.0, 6.0, -1.0]
    known = {"sum": [11, 2, 2], "prod": [24, 2, -3], "amax": [6, 2, 3], "amin": [1, 2, -1]}
    for reduce, want in known.items():
        assert x.index_reduce(0, i, y, reduce).tolist() == want
    assert x.index_reduce(0, i, y, "mean").tolist() == [np.float32(11) / np.float32(3), 2, 1]
    assert x.index_reduce(0, i, y, "mean", include_self=False).tolist() == [5, 2, -1]
    bools = dt.asarray([True, False, True])
    assert bools.index_reduce(0, [0, 1], [False, True], "amin").tolist() == [False, False, True]
    assert bools.index_reduce(0, [0, 1], [False, True], "sum").tolist() == [True, True, True]
    small = dt.full((1,), -128, dtype=dt.int8)
    assert small.index_reduce(0, [0], [-128], "amax", include_self=False).tolist() == [-128]


def test_nan_wins_and_empty_operands_work() -> None:
    x = dt.asarray([1.0, np.nan])
    for reduce in REDUCTIONS:
        assert np.isnan(x.index_reduce(0, [0, 0], [np.nan, 5.0], reduce).numpy()).all()
    assert dt.zeros((0, 3)).index_reduce(0, [], dt.zeros((0, 3)), "amax").shape == (0, 3)
    assert dt.zeros((2, 0)).scatter_reduce(
        0, dt.zeros((2, 0), dtype=dt.int64), 1.0, "prod"
    ).shape == (2, 0)


def test_halves_are_rounded_once() -> None:
    for d in (dt.float16, dt.bfloat16):
        x, ones = dt.zeros(2, dtype=d), dt.ones(3000, dtype=d)
        total = dt.asarray(3000.0).astype(d).item()
        assert x.index_reduce(0, [1] * 3000, ones, "sum").tolist() == [0, total]
        mean = x.index_reduce(0, [1] * 3000, ones, "mean", include_self=False)
        assert mean.dtype is d and mean.tolist() == [0, 1]
        assert (
            x.index_reduce(0, [1] * 3, [0.1, 0.3, 0.2], "amax")[1].item()
            == dt.asarray(0.3).astype(d).item()
        )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape", [(4, 3), (2, 3), (4, 2), (0, 3)])
def test_scatter_reduce_and_its_gradient_equal_pytorch(
    shape: tuple[int, int], reduce: str, include_self: bool
) -> None:
    torch = pytest.importorskip("torch")
    for dim in (0, 1):
        x, src = (rng.integers(-2, 3, s).astype("f8") for s in ((5, 3), shape))  # ties and zeros
        index = rng.integers(0, 2, shape)
        ours = [dt.asarray(a).requires_grad_() for a in (x, src)]
        theirs = [torch.tensor(a, requires_grad=True) for a in (x, src)]
        got = dt.scatter_reduce(ours[0], dim, index, ours[1], reduce, include_self=include_self)
        want = theirs[0].scatter_reduce(
            dim, torch.tensor(index), theirs[1], reduce, include_self=include_self
        )
        np.testing.assert_array_equal(got.numpy(), want.detach().numpy())
        weights = rng.standard_normal(x.shape)
        (got * weights).sum().backward()
        (want * torch.tensor(weights)).sum().backward()
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            if k and not include_self and reduce in ("amax", "amin"):
                continue  # PyTorch counts an element of x that it leaves out as a tie
            assert a.grad is not None
            np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_first_and_second_gradients_equal_finite_differences(
    reduce: str, include_self: bool
) -> None:
    x, y = (dt.asarray(rng.random(n)).requires_grad_() for n in ((4, 2), (5, 2)))

    def f(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
        return dt.index_reduce(a, 0, [0, 2, 0, 3, 2], b, reduce, include_self=include_self)

    assert gradcheck(f, (x, y))
    assert dt.autograd.gradgradcheck(f, (x, y))


def test_gradient_of_products_with_zeros_and_of_ties() -> None:
    x = dt.asarray([2.0, 0.0, 0.0]).requires_grad_()
    y = dt.asarray([0.0, 5.0, 3.0, 4.0]).requires_grad_()
    dt.index_reduce(x, 0, [0, 0, 1, 2], y, "prod").sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0.0, 3.0, 4.0]
    assert y.grad is not None and y.grad.tolist() == [10.0, 0.0, 0.0, 0.0]
    x = dt.asarray([7.0, 1.0]).requires_grad_()
    y = dt.asarray([7.0, 7.0, 0.0]).requires_grad_()
    dt.index_reduce(x, 0, [0, 0, 1], y, "amax").sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1 / 3, 1], rtol=1e-6)  # type: ignore[union-attr]
    np.testing.assert_allclose(y.grad.tolist(), [1 / 3, 1 / 3, 0], rtol=1e-6)  # type: ignore[union-attr]


def test_reductions_work_in_jit_and_vmap() -> None:
    x, y = dt.asarray([1.0, 2.0]), dt.asarray([[3.0, 4.0, 0.5], [5.0, 6.0, 0.5]])
    index = dt.asarray([[0, 1, 1], [1, 1, 0]])
    for reduce, include in itertools.product(REDUCTIONS, (True, False)):

        def f(i: dt.Tensor, v: dt.Tensor, r: str = reduce, k: bool = include) -> dt.Tensor:
            return dt.index_reduce(x, 0, i, v, r, include_self=k)

        want = [f(i, v).tolist() for i, v in zip(index, y, strict=True)]
        assert dt.vmap(f)(index, y).tolist() == want
        captured = dt.jit(f)
        assert [captured(i, v).tolist() for i, v in zip(index, y, strict=True)] == want


def test_index_copy_fill_and_scatter_add_write_slices() -> None:
    x = dt.zeros((3, 2))
    assert x.index_copy(0, [2, 0, 2], [[1, 1], [2, 2], [3, 4]]).tolist() == [[2, 2], [0, 0], [3, 4]]
    assert x.index_fill(1, [-1], 7).tolist() == [[0, 7]] * 3
    assert x.scatter_add(0, [[0, 1], [0, 2]], [[1, 2], [3, 4]]).tolist() == [[4, 0], [0, 2], [0, 4]]
    assert x.tolist() == [[0, 0]] * 3
    assert x.index_copy_(0, [1], [[5, 6]]) is x and x.index_fill_(0, [0], 8) is x
    assert x.tolist() == [[8, 8], [5, 6], [0, 0]]
    with pytest.raises(
        dt.ShapeError, match=r"index_fill: value must be a number, got shape \(2,\)"
    ):
        x.index_fill(0, [0], dt.zeros(2))
    y = dt.ones((2, 2)).requires_grad_()
    dt.zeros((3, 2)).index_copy(0, [1, 1], y).sum().backward()
    assert y.grad is not None and y.grad.tolist() == [[0, 0], [1, 1]]


@pytest.mark.parametrize("shape", [(0,), (1,), (5,), (40, 25), ()])
def test_masked_scatter_equals_its_definition(device: dt.Device, shape: tuple[int, ...]) -> None:
    x, mask = rng.random(shape), rng.random(shape) < 0.5
    source = rng.random(max(x.size, 1) + 3)
    want = x.copy()
    want[mask] = source[: mask.sum()]
    ours = dt.asarray(x)
    got = ours.masked_scatter(dt.asarray(mask), dt.asarray(source))
    np.testing.assert_array_equal(got.numpy(), want)
    with pytest.raises(dt.OutOfRangeError, match="masked_scatter"):
        dt.zeros(2).masked_scatter([True, True], [1.0]).numpy()
    assert dt.zeros(2).masked_scatter([False, False], dt.zeros(0)).tolist() == [0, 0]
    with pytest.raises(dt.DTypeError, match="masked_scatter"):
        dt.zeros(2, dtype=dt.int32).masked_scatter([True, False], [1.5])


# --- segments


@pytest.mark.parametrize("n", [0, 1, 5, 1000])
@pytest.mark.parametrize("d", ["float32", "int32"])
def test_segment_functions_equal_their_definition(device: dt.Device, d: str, n: int) -> None:
    data, ids = (rng.random((n, 2)) * 2).astype(d), rng.integers(-1, 8, n)
    ours = dt.asarray(data)
    starts = {"sum": 0, "prod": 1}
    ends = np.finfo("f4") if d == "float32" else np.iinfo("i4")
    infinite = d == "float32"
    starts |= {"max": -np.inf if infinite else ends.min, "min": np.inf if infinite else ends.max}
    rules = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
    for name, start in starts.items():
        want = np.full((7, 2), start, d)
        for i, row in zip(ids, data, strict=True):
            if 0 <= i < 7:
                want[i] = rules[name](want[i], row)
        got = getattr(dt, f"segment_{name}")(ours, ids, 7)
        assert got.dtype is ours.dtype
        np.testing.assert_array_equal(got.numpy(), want)
    total, count = dt.segment_sum(ours, ids, 7), dt.segment_sum(dt.ones(n), ids, 7)
    mean = dt.segment_mean(ours, ids, 7)
    want = total.astype(dt.float32) / dt.maximum(count, 1.0)[:, None]
    np.testing.assert_allclose(mean.numpy(), want.numpy(), rtol=1e-6)


def test_segment_functions_equal_jax() -> None:
    jax = pytest.importorskip("jax")
    data, ids = rng.integers(-9, 9, (50, 3)).astype("f4"), rng.integers(-2, 12, 50)
    for name in ("sum", "prod", "max", "min"):
        want = getattr(jax.ops, f"segment_{name}")(data, ids, num_segments=9)
        got = getattr(dt, f"segment_{name}")(data=dt.asarray(data), segment_ids=ids, num_segments=9)
        np.testing.assert_array_equal(got.numpy(), np.asarray(want))


def test_segments_need_their_number_in_jit_only() -> None:
    data, ids = dt.asarray([1.0, 2.0, 3.0]), dt.asarray([0, 2, 0])
    assert dt.segment_sum(data, ids).tolist() == [4, 0, 2]
    assert dt.segment_sum(dt.zeros(0), dt.zeros(0, dtype=dt.int64)).shape == (0,)
    assert dt.segment_sum(data, ids, indices_are_sorted=False).tolist() == [4, 0, 2]
    assert dt.jit(lambda i: dt.segment_max(data, i, 4))(ids).tolist() == [3, -np.inf, 2, -np.inf]
    with pytest.raises(dt.CaptureError, match=r"segment_sum: num_segments= must be given"):
        dt.jit(lambda i: dt.segment_sum(data, i), fullgraph=True)(ids)
    x = dt.asarray([1.0, 5.0, 5.0]).requires_grad_()
    dt.segment_max(x, [0, 0, 0], 1).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [0, 0.5, 0.5]


def test_wrong_arguments_are_named() -> None:
    x = dt.zeros(3)
    with pytest.raises(dt.ArgumentError, match=r"index_reduce: reduce must be .*, got 'max'"):
        x.index_reduce(0, [0], [1.0], "max")
    with pytest.raises(dt.OutOfRangeError, match="index_reduce"):
        x.index_reduce(0, dt.asarray([3]), [1.0], "amax").numpy()
    with pytest.raises(dt.OutOfRangeError, match="scatter_reduce"):
        x.scatter_reduce(0, [3], [1.0], "amax")
    with pytest.raises(dt.ShapeError, match="index_reduce: index must be a vector"):
        x.index_reduce(0, [[0]], [1.0], "amax")
    with pytest.raises(dt.DTypeError, match="index_reduce"):
        dt.zeros(3, dtype=dt.complex64).index_reduce(0, [0], [1.0], "amax")
    with pytest.raises(dt.DTypeError, match="scatter_reduce"):
        dt.zeros(3, dtype=dt.bool).scatter_reduce(0, [0], True, "mean")
    with pytest.raises(dt.ShapeError, match="segment_sum: segment_ids must be integers of shape"):
        dt.segment_sum(x, [0, 1], 2)
    with pytest.raises(dt.ArgumentError, match="segment_sum: num_segments"):
        dt.segment_sum(x, [0, 1, 1], -1)
