"""Functions of PyTorch that order, count or search, and options of indexing that JAX has."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest

rng = np.random.default_rng(8)
SHAPES = [
    ((0,), 0),
    ((1,), 0),
    ((5,), -1),
    ((1000,), 0),
    ((3, 40), 1),
    ((40, 3), 0),
    ((2, 5, 3), -2),
    ((), 0),
]
DTYPES = ["float32", "float64", "float16", "int64", "uint8", "int32", "bool"]


def sample(shape: Any, d: str) -> Any:
    """Return values with many ties, and of floats with NaNs, infinities and both zeros."""
    draw = np.random.default_rng([8, len(shape), *shape, DTYPES.index(d)])
    a = draw.integers(0, 6, shape).astype(d)
    if a.dtype.kind == "f":
        odd = draw.random(shape)
        a = np.where(odd < 0.03, np.nan, np.where(odd < 0.1, -0.0, np.where(odd < 0.2, -np.inf, a)))
    return np.asarray(a.astype(d))


def running_extreme(a: Any, worse: Any) -> tuple[Any, Any]:
    """Return the definition of a running extreme along the last axis."""
    values, indices = a.copy(), np.zeros(a.shape, np.int64)
    for row in np.ndindex(a.shape[:-1]):
        best = 0
        for k in range(a.shape[-1]):
            x, y = a[row][k], a[row][best]
            if x != x or (y == y and not worse(x, y)):
                best = k
            values[row][k], indices[row][k] = a[row][best], best
    return values, indices


@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_cummax_and_cummin_equal_their_definition(
    device: dt.Device, shape: Any, dim: int, d: str
) -> None:
    a = sample(shape, d)
    last = np.moveaxis(np.atleast_1d(a), dim, -1)
    for function, worse in ((dt.cummax, np.less), (dt.cummin, np.greater)):
        values, indices = function(dt.asarray(a), dim)
        assert values.dtype.name == d and indices.dtype is dt.int64
        want = [np.moveaxis(w, -1, dim).reshape(shape) for w in running_extreme(last, worse)]
        np.testing.assert_array_equal(values.numpy(), want[0])
        np.testing.assert_array_equal(np.signbit(values.numpy()), np.signbit(want[0]))
        np.testing.assert_array_equal(indices.numpy(), want[1])


@pytest.mark.parametrize("d", ["float32", "int64"])
def test_cummax_of_long_rows_equals_numpy(device: dt.Device, d: str) -> None:
    a = rng.integers(-(10**6), 10**6, 70_000).astype(d)
    a[1000] = 10**7
    if d == "float32":
        a[60_000] = np.nan
    for function, ufunc in ((dt.cummax, np.maximum), (dt.cummin, np.minimum)):
        values, indices = function(dt.asarray(a), 0)
        np.testing.assert_array_equal(values.numpy(), ufunc.accumulate(a))
        np.testing.assert_array_equal(values.numpy(), a[indices.numpy()])


@pytest.mark.parametrize("d", DTYPES)
@pytest.mark.parametrize("shape, dim", SHAPES)
def test_order_functions_equal_pytorch(shape: Any, dim: int, d: str) -> None:
    torch = pytest.importorskip("torch")
    a = sample(shape, d)
    x, t = (
        dt.asarray(a),
        torch.from_numpy(a.copy()) if shape else torch.tensor(a.item(), dtype=getattr(torch, d)),
    )
    for name in ("cummax", "cummin"):
        got, want = getattr(x, name)(dim=dim), getattr(t, name)(dim=dim)
        for ours, theirs in zip(got, want, strict=True):
            np.testing.assert_array_equal(ours.numpy(), theirs.numpy())
    if not a.size:
        return
    for keepdim in (False, True):
        k = 1 + (t.shape[dim] if t.ndim else 1) // 2
        k = min(k, t.shape[dim] if t.ndim else 1)
        if d != "bool":
            got, want = dt.kthvalue(x, k, dim, keepdim), torch.kthvalue(t, k, dim, keepdim)
            np.testing.assert_array_equal(got.values.numpy(), want.values.numpy())
            assert got.indices.shape == tuple(want.indices.shape)
        # PyTorch's mode sorts NaN first, so it gets none.
        numbers = np.where(a != a, np.asarray(7, a.dtype), a)
        known = torch.from_numpy(numbers) if shape else t
        got, want = dt.mode(dt.asarray(numbers), dim, keepdim), torch.mode(known, dim, keepdim)
        if shape:
            np.testing.assert_array_equal(got.values.numpy(), want.values.numpy())
        assert got.values.shape == got.indices.shape == tuple(want.values.shape)


def test_mode_and_kthvalue_of_known_values() -> None:
    x = dt.asarray([[2, 1, 1, 2, 3], [5, 5, 4, 4, 4]])
    values, indices = x.mode()
    assert values.tolist() == [1, 4] and indices.tolist() == [2, 4]
    values, indices = x.mode(dim=0, keepdim=True)
    assert values.tolist() == [[2, 1, 1, 2, 3]] and indices.tolist() == [[0, 0, 0, 0, 0]]
    assert dt.mode(dt.asarray([dt.nan, dt.nan, 1.0])).values.item() == 1
    values, indices = x.kthvalue(4, dim=1)
    assert values.tolist() == [2, 5] and indices.tolist() == [3, 0]
    assert np.isnan(dt.kthvalue(dt.asarray([dt.nan, 1.0]), 2).values.item())
    with pytest.raises(dt.ArgumentError, match=r"kthvalue: k must be between 1 and 5 .*, got 0"):
        x.kthvalue(0)
    with pytest.raises(dt.ShapeError, match="mode: expected at least one element"):
        dt.zeros((2, 0)).mode()
    assert dt.zeros((0, 2)).mode().values.shape == (0,)


def test_gradients_flow_to_the_indices() -> None:
    for f, want in (
        (lambda x: dt.cummax(x, 0).values, [1, 0, 3]),
        (lambda x: dt.cummin(x, 0).values, [4, 0, 0]),
        (lambda x: dt.kthvalue(x, 2).values, [0, 0, 0]),
        (lambda x: dt.mode(x).values, [1, 0, 0]),
    ):
        x = dt.asarray([1.0, 2.0, 2.0, 1.5]).requires_grad_()
        f(x).sum().backward()
        assert x.grad is not None
        if f(x).shape:
            expected = np.zeros(4)
            np.add.at(expected, (dt.cummax if want[0] == 1 else dt.cummin)(x, 0).indices.numpy(), 1)
            assert x.grad.tolist() == expected.tolist()
        else:
            assert x.grad.sum().item() == 1 and x[x.grad > 0].item() == f(x).item()


def test_order_functions_work_in_jit_and_vmap() -> None:
    x = dt.asarray(rng.integers(0, 4, (3, 300)))
    for f in (lambda v: dt.cummax(v, 0), lambda v: dt.mode(v), lambda v: dt.kthvalue(v, 5)):
        want = [[part.tolist() for part in f(row)] for row in x]
        captured = dt.jit(f)
        assert [[part.tolist() for part in captured(row)] for row in x] == want
        values, indices = dt.vmap(f)(x)
        assert [[a.tolist(), b.tolist()] for a, b in zip(values, indices, strict=True)] == want


@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("shape", [(1, 1), (5, 2), (1000, 2)])
def test_unique_consecutive_equals_pytorch(shape: Any, dim: int | None) -> None:
    torch = pytest.importorskip("torch")
    a = rng.integers(0, 2, shape).astype("f4")
    got = dt.unique_consecutive(dt.asarray(a), True, True, dim)
    want = torch.unique_consecutive(
        torch.from_numpy(a), return_inverse=True, return_counts=True, dim=dim
    )
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


def test_unique_consecutive_of_known_values() -> None:
    x = dt.asarray([1.0, 1.0, 2.0, dt.nan, dt.nan, 1.0])
    values, counts = x.unique_consecutive(return_counts=True)
    assert counts.tolist() == [2, 1, 1, 1, 1] and values[:2].tolist() == [1, 2]
    values, inverse = dt.asarray([[1, 1], [1, 1], [2, 1]]).unique_consecutive(
        return_inverse=True, dim=0
    )
    assert values.tolist() == [[1, 1], [2, 1]] and inverse.tolist() == [0, 0, 1]


def test_bucketize_and_searchsorted_take_pytorchs_side() -> None:
    edges, x = dt.asarray([1, 3, 5]), dt.asarray([[0, 1], [3, 9]])
    assert dt.bucketize(x, edges).tolist() == [[0, 0], [1, 3]]
    got = dt.bucketize(x, boundaries=edges, right=True, out_int32=True)
    assert got.tolist() == [[0, 1], [2, 3]] and got.dtype is dt.int32
    assert dt.searchsorted(edges, x, right=True).tolist() == [[0, 1], [2, 3]]
    assert dt.searchsorted(edges, x, right=False).tolist() == [[0, 0], [1, 3]]


@pytest.mark.parametrize("ends", [(0, 0), (-2, 3), (2, 2)])
def test_histc_equals_pytorch(ends: tuple[float, float]) -> None:
    torch = pytest.importorskip("torch")
    for a in (rng.integers(-4, 5, 200) * 0.25, np.array([2.0, 2.0]), np.array([])):
        got = dt.histc(dt.asarray(a), 10, *ends)
        want = torch.histc(torch.from_numpy(a), 10, *ends)
        assert got.dtype is dt.float64
        np.testing.assert_array_equal(got.numpy(), want.numpy())


def test_renorm_limits_the_norms_of_slices() -> None:
    x = dt.asarray([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(
        x.renorm(2, 0, 1.0).numpy(), [[0.6, 0.8], [0.3, 0.4], [0, 0]], rtol=1e-6
    )
    np.testing.assert_allclose(dt.renorm(x, 1, 1, 3.3).numpy()[:, 0], [3, 0.3, 0], rtol=1e-6)
    y = x.copy()
    assert y.renorm_(2, 0, 1.0) is y and y[0, 0].item() == np.float32(0.6)
    torch = pytest.importorskip("torch")
    a = rng.standard_normal((4, 3, 2))
    for p in (1, 2, 3.5, np.inf):
        ours, theirs = dt.asarray(a).requires_grad_(), torch.tensor(a, requires_grad=True)
        got, want = dt.renorm(ours, p, -2, 1.5), torch.renorm(theirs, p, -2, 1.5)
        np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=1e-12)
        (got**2).sum().backward()
        (want**2).sum().backward()
        assert ours.grad is not None
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), rtol=1e-6, atol=1e-9)


# --- options of indexing


@pytest.mark.parametrize("mode", ["wrap", "clip"])
def test_take_treats_indices_out_of_range_as_numpy(device: dt.Device, mode: str) -> None:
    a, at = rng.random((4, 5)), rng.integers(-20, 20, (2, 3))
    for index in (at, dt.asarray(at), at.tolist()):
        for axis in (0, 1, -1):
            got = dt.take(dt.asarray(a), index, axis=axis, mode=mode)
            np.testing.assert_array_equal(got.numpy(), np.take(a, at, axis=axis, mode=mode))
    with pytest.raises(dt.ArgumentError, match="take: mode must be"):
        dt.take(dt.asarray(a), [0], axis=0, mode="fill")
    with pytest.raises(dt.OutOfRangeError, match="take"):
        dt.take(dt.asarray(a), [9], axis=0, mode="raise")
    np.testing.assert_array_equal(np.take(dt.asarray(a), at, mode=mode), np.take(a, at, mode=mode))


def test_take_along_axis_none_flattens() -> None:
    x = dt.asarray([[1, 2], [3, 4]])
    assert dt.take_along_axis(x, [3, -4, 0], axis=None).tolist() == [4, 1, 1]
    with pytest.raises(dt.ShapeError, match="take_along_axis"):
        dt.take_along_axis(x, [[3]], axis=None)


def test_bincount_of_a_length_reads_nothing(device: dt.Device) -> None:
    a, w = rng.integers(-2, 9, 500), rng.random(500)
    kept = (a >= 0) & (a < 6)
    for d in ("int64", "int8", "uint8"):
        x = dt.asarray(a.astype(d))
        assert dt.bincount(x, length=6).tolist() == np.bincount(a[kept], minlength=6).tolist()
        got = dt.bincount(x, dt.asarray(w), length=6)
        np.testing.assert_array_equal(got.numpy(), np.bincount(a[kept], w[kept], minlength=6))
    x = dt.asarray(a)
    assert (
        dt.jit(lambda v: dt.bincount(v, length=6))(x).tolist() == dt.bincount(x, length=6).tolist()
    )
    assert dt.vmap(lambda v: dt.bincount(v, length=2))(dt.asarray([[0, 1], [1, 5]])).tolist() == [
        [1, 1],
        [0, 1],
    ]
    assert dt.bincount(x, length=0).shape == (0,)
    assert dt.bincount(dt.zeros(0, dtype=dt.int64), length=2).tolist() == [0, 0]
    with pytest.raises(dt.ArgumentError, match="bincount: length"):
        dt.bincount(x, length=-1)


def test_nonzero_of_a_size_is_padded_or_cut(device: dt.Device) -> None:
    x = dt.asarray([[0, 3], [4, 0], [0, 5]])

    def rows(parts: Any) -> Any:
        return [part.tolist() for part in parts]

    assert rows(dt.nonzero(x, size=2)) == [[0, 1], [1, 0]]
    assert rows(dt.nonzero(x, size=4, fill_value=-1)) == [[0, 1, 2, -1], [1, 0, 1, -1]]
    assert rows(dt.jit(lambda v: dt.nonzero(v, size=3))(x)) == [[0, 1, 2], [1, 0, 1]]
    assert rows(dt.nonzero(dt.zeros((0, 2)), size=1)) == [[0], [0]]
    assert rows(dt.nonzero(dt.zeros(3), size=0)) == [[]]
    big = (rng.random(5000) < 0.3).astype("f4")
    assert rows(dt.nonzero(dt.asarray(big), size=100)) == [np.flatnonzero(big)[:100].tolist()]
