"""Common functions under NumPy's names, against NumPy; bad input."""

# Some tests pass wrong types.
# mypy: disable-error-code="arg-type, no-untyped-call"
from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.autograd import gradcheck

INF, NAN = np.inf, np.nan
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 1.5, -2.5, INF, -INF, NAN, 1e-310, 3e38, -7.0, 5e-324])
FLOATS = ["f2", "f4", "f8"]
INTS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]


def assert_same(found: Any, want: Any, rtol: float = 0.0) -> None:
    assert isinstance(found, dt.Tensor)
    want = np.asarray(want)
    assert (found.shape, found.dtype.name) == (want.shape, want.dtype.name)
    np.testing.assert_allclose(found.numpy(), want, rtol=rtol, atol=rtol)


def pairs(dtype: str) -> tuple[Any, Any]:
    """Return every pair of special numbers."""
    with np.errstate(over="ignore"):
        a = SPECIAL.astype(dtype)
    return a[:, None], a


def some(dtype: str, n: int) -> Any:
    """Return numbers over the whole range of a dtype."""
    rng = np.random.default_rng(n)
    d = np.dtype(dtype)
    found = np.frombuffer(rng.bytes(n * d.itemsize), d)
    return np.where(np.isfinite(found), found, d.type(1)) if d.kind == "f" else found


# --- binary functions


@pytest.mark.parametrize("name", ["fmax", "fmin"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_fmax_and_fmin_ignore_nan(device: dt.Device, name: str, dtype: str) -> None:
    ours, theirs = getattr(dt, name), getattr(np, name)
    a, b = pairs(dtype)
    assert_same(ours(dt.asarray(a), dt.asarray(b)), theirs(a, b))
    assert_same(ours(dt.asarray(a), b), theirs(a, b))
    for v in (0.5, NAN, INF, 2):
        assert_same(ours(dt.asarray(b), v), theirs(b, v))
        assert_same(ours(v, dt.asarray(b)), theirs(v, b))
    assert_same(ours(dt.zeros((0, 3), dtype=dtype), 1.0), np.zeros((0, 3), dtype))


@pytest.mark.parametrize("name", ["fmax", "fmin"])
def test_fmax_and_fmin_of_other_dtypes_equal_maximum_and_minimum(
    device: dt.Device, name: str
) -> None:
    ours, theirs = getattr(dt, name), getattr(np, name)
    for dtype in (*INTS, "?"):
        a, b = some("u1", 20).astype(dtype), some("u1", 21).astype(dtype)[:20]
        assert_same(ours(dt.asarray(a), dt.asarray(b)), theirs(a, b))
    assert ours(dt.asarray([1, 2]), [1.5, NAN]).dtype is dt.float32
    assert ours(dt.asarray([1, 2]), NAN).tolist() == [1, 2]


@pytest.mark.parametrize("dtype", FLOATS)
def test_fmod_is_exact_with_the_sign_of_the_dividend(device: dt.Device, dtype: str) -> None:
    a, b = some(dtype, 4000), some(dtype, 4001)[:4000]
    near = np.linspace(-9, 9, 4000).astype(dtype)
    with np.errstate(all="ignore"):
        for x, y in ((a, b), (a, near), (near, b), (near, near[::-1]), pairs(dtype)):
            found, want = dt.fmod(dt.asarray(x), dt.asarray(y)), np.fmod(x, y)
            assert_same(found, want)
            number = ~np.isnan(want)
            assert (np.signbit(found.numpy()) == np.signbit(want))[number].all()
        assert_same(dt.fmod(dt.asarray(near), 0.25), np.fmod(near, np.array(0.25, dtype)))
        assert_same(dt.fmod(7, dt.asarray(near)), np.fmod(np.array(7, dtype), near))


@pytest.mark.parametrize("dtype", INTS)
def test_fmod_of_integers_equals_numpy(device: dt.Device, dtype: str) -> None:
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max, 0, 1, 2, 3, limits.max // 2], dtype)
    for a, b in ((some(dtype, 300), some(dtype, 301)[:300]), (ends[:, None], ends)):
        if limits.min:
            a = np.concatenate([a, -a])
            b = np.concatenate([b, b]) if b.shape == (300,) else b
        with np.errstate(all="ignore"):
            assert_same(dt.fmod(dt.asarray(a), dt.asarray(b)), np.fmod(a, b))


@pytest.mark.parametrize(("dtype", "rtol"), [("f2", 1e-3), ("f4", 3e-7), ("f8", 1e-15)])
def test_logaddexp2_equals_numpy(device: dt.Device, dtype: str, rtol: float) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.normal(size=300) * 30).astype(dtype), (rng.normal(size=300) * 30).astype(dtype)
    with np.errstate(all="ignore"):
        for a, b in ((x, y), (x, x), (x, x + np.array(1, dtype)), pairs(dtype)):
            assert_same(dt.logaddexp2(dt.asarray(a), dt.asarray(b)), np.logaddexp2(a, b), rtol)
    assert dt.logaddexp2(dt.asarray([3]), True).tolist() == pytest.approx([np.log2(10.0)])
    assert dt.logaddexp2(dt.asarray([3]), 3).dtype is dt.float32


def test_binary_functions_have_gradients() -> None:
    a, b = (
        dt.asarray(v, dtype=dt.float64, device="reference").requires_grad_()
        for v in ([1.5, -2.5, 7.25, -7.25], [2.0, 1.0, -3.0, 2.0])
    )
    for f in (dt.fmax, dt.fmin, dt.fmod, dt.logaddexp2):
        assert gradcheck(f, (a, b))
        assert gradcheck(lambda x, f=f: f(x, 1.75), (a,))
    assert slopes(dt.fmax, [NAN, 1.0], [2.0, NAN]) == ([0, 1], [1, 0])
    assert slopes(dt.fmin, [NAN, 1.0], [2.0, NAN]) == ([0, 1], [1, 0])
    assert slopes(dt.fmod, [0.0, -1.0], [2.0, 2.0]) == ([1, 1], [0, 0])
    found = slopes(dt.logaddexp2, [-INF, INF, 3.0, -INF], [-INF, INF, 3.0, 1.0])
    assert found == ([0.5, 0.5, 0.5, 0], [0.5, 0.5, 0.5, 1])


def slopes(f: Any, *given: Any) -> tuple[Any, ...]:
    """Return the gradients of a sum for each operand."""
    found = [dt.asarray(v, device="reference").requires_grad_() for v in given]
    dt.sum(f(*found)).backward()
    return tuple(v.grad.tolist() for v in found)


@pytest.mark.parametrize("name", ["fmax", "fmin", "fmod", "logaddexp2"])
def test_binary_functions_name_wrong_arguments(name: str) -> None:
    f, x = getattr(dt, name), dt.ones((2, 3), device="reference")
    for given, error in (
        ((x, x[0, :2]), dt.ShapeError), ((x, 1j), dt.DTypeError),
        ((x, "a"), dt.DTypeError), ((x, dt.ones(3, device="cpu")), dt.DeviceError),
        ((dt.ones(2, dtype=dt.uint8, device="reference"), 300), dt.ValueOverflowError),
    ):  # fmt: skip
        if (name, error) != ("logaddexp2", dt.ValueOverflowError):
            with pytest.raises(error, match=name):
                f(*given)


# --- unary functions


@pytest.mark.parametrize("name", ["isneginf", "isposinf", "isreal", "iscomplex"])
def test_predicates_equal_numpy(device: dt.Device, name: str) -> None:
    ours, theirs = getattr(dt, name), getattr(np, name)
    for a in (SPECIAL, SPECIAL.astype("f4"), np.arange(-2, 3), np.array([True]), np.array(INF),
              np.zeros((0, 2), "f2"), SPECIAL[:12].reshape(3, 4).T):  # fmt: skip
        assert_same(ours(dt.asarray(a)), theirs(a))
    z = np.array([1 + 2j, 3, complex(0, NAN), complex(NAN, 0), complex(1, -0.0), complex(0, INF)])
    if name in ("isreal", "iscomplex"):
        for dtype in ("c8", "c16"):
            assert_same(ours(dt.asarray(z.astype(dtype))), theirs(z))
    else:
        with pytest.raises(
            dt.DTypeError, match=f"{name}: expected real numbers, got complex128; use dt.real"
        ):
            ours(dt.asarray(z))
    with pytest.raises(dt.DTypeError, match=name):
        ours([1.0])


@pytest.mark.parametrize("dtype", INTS)
def test_bitwise_count_equals_numpy(device: dt.Device, dtype: str) -> None:
    limits = np.iinfo(dtype)
    ends = np.array([limits.min, limits.max, 0, 1, limits.max - 1], dtype)
    for a in (ends, some(dtype, 500).reshape(5, 100), np.zeros((2, 0), dtype), ends[1]):
        assert_same(dt.bitwise_count(dt.asarray(a)), np.bitwise_count(a))


def test_bitwise_count_of_non_integers_raises() -> None:
    x = dt.asarray([True, False], device="reference")
    assert_same(dt.bitwise_count(x), np.array([1, 0], "u1"))
    with pytest.raises(
        dt.DTypeError, match="bitwise_count: expected integers or bool, got float32"
    ):
        dt.bitwise_count(dt.ones(2, device="reference"))


# --- angles


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_unwrap_of_angles_equals_numpy(device: dt.Device, axis: int) -> None:
    a = np.random.default_rng(3).normal(size=(4, 5, 3)) * 9
    x = dt.asarray(a)
    assert_same(dt.unwrap(x, axis=axis), np.unwrap(a, axis=axis), 1e-13)
    assert_same(dt.unwrap(x, 5.0, axis), np.unwrap(a, 5.0, axis), 1e-13)
    assert_same(dt.unwrap(x, 1.0, axis, period=7), np.unwrap(a, 1.0, axis, period=7), 1e-13)
    f = dt.unwrap(dt.asarray(a.astype("f4")), axis=axis)
    assert_same(f, np.unwrap(a.astype("f4"), axis=axis).astype("f4"), 1e-4)


@pytest.mark.parametrize("period", [1, 2, 3, 4, 7, 360])
@pytest.mark.parametrize("dtype", ["i2", "i4", "i8", "f8"])
def test_unwrap_with_a_period_equals_numpy(device: dt.Device, period: int, dtype: str) -> None:
    a = np.random.default_rng(4).integers(-900, 900, 60).astype(dtype)
    for discont in (None, 2.5, 1e9):
        found = dt.unwrap(dt.asarray(a), discont, period=period)
        assert_same(found, np.unwrap(a, discont, period=period).astype(dtype))
    halves = np.cumsum([0, period / 2, -period / 2, period, -period, period / 2])
    assert_same(dt.unwrap(dt.asarray(halves), period=period), np.unwrap(halves, period=period))


def test_unwrap_of_short_rows_and_its_gradient() -> None:
    with dt.device("reference"):
        for shape in ((0,), (1,), (2, 0), (0, 3), (3, 1)):
            assert_same(dt.unwrap(dt.zeros(shape, dtype="float64")), np.unwrap(np.zeros(shape)))
        assert dt.unwrap(dt.asarray([0, 9])).dtype is dt.float32
        x = dt.asarray([0.5, 9.0, -4.0, 20.0, 21.0], dtype=dt.float64).requires_grad_()
        assert gradcheck(dt.unwrap, (x,))
        for given, error, words in (
            ({"period": 0}, dt.ArgumentError, "unwrap: period must be positive and finite, got 0"),
            ({"period": NAN}, dt.ArgumentError, "unwrap: period"),
            ({"period": "a"}, dt.ArgumentTypeError, "unwrap: period"),
            ({"discont": "a"}, dt.ArgumentTypeError, "unwrap: discont"),
            ({"axis": 1}, dt.AxisError, "unwrap: "),
        ):  # fmt: skip
            with pytest.raises(error, match=words):
                dt.unwrap(x, **given)
        for bad in (dt.asarray([1j]), dt.asarray([True])):
            with pytest.raises(dt.DTypeError, match="unwrap: expected"):
                dt.unwrap(bad)
        with pytest.raises(dt.DTypeError, match=r"unwrap: expected .* got uint8"):
            dt.unwrap(dt.asarray([1], dtype=dt.uint8), period=4)
        with pytest.raises(dt.AxisError, match="unwrap"):
            dt.unwrap(dt.asarray(1.0))


# --- of two tensors


def test_array_equiv_equals_numpy(device: dt.Device) -> None:
    cases: list[Any] = [
        ([1, 2], [1, 2]), ([1, 2], [1, 3]), ([1, 2], [[1, 2], [1, 2]]), ([1, 2], [[1, 2, 3]]),
        ([1, 2], [1.0, 2.0]), ([NAN], [NAN]), ([], [1]), ([], []), ([[1], [1]], [1, 1, 1]),
    ]  # fmt: skip
    for a, b in cases:
        assert dt.array_equiv(dt.asarray(a), b) is np.array_equiv(a, b)
        assert dt.array_equiv(a, dt.asarray(b)) is np.array_equiv(a, b)
    with pytest.raises(dt.DTypeError, match="array_equiv"):
        dt.array_equiv(dt.asarray([1]), "a")


@pytest.mark.parametrize("dtype", ["i4", "i8", "f4", "f8", "c8", "c16"])
def test_matvec_and_vecmat_equal_numpy(device: dt.Device, dtype: str) -> None:
    rng = np.random.default_rng(5)

    def of(*shape: int) -> Any:
        found = rng.integers(-4, 5, shape).astype(dtype)
        return found + found * 1j if np.dtype(dtype).kind == "c" else found

    shapes: list[Any] = [((3, 4), (4,)), ((2, 3, 4), (4,)), ((3, 4), (5, 4)),
                         ((2, 1, 3, 4), (5, 4)), ((0, 4), (4,)),
                         ((3, 0), (2, 0)), ((1, 1), (1,))]  # fmt: skip
    for matrices, vectors in shapes:
        a, v = of(*matrices), of(*vectors).astype(dtype)
        a = a.astype(dtype)
        assert_same(dt.matvec(dt.asarray(a), dt.asarray(v)), np.matvec(a, v))
        assert_same(dt.matvec(a, dt.asarray(v)), np.matvec(a, v))
        t = np.swapaxes(a, -1, -2)
        assert_same(dt.vecmat(dt.asarray(v), dt.asarray(t)), np.vecmat(v, t))
        assert_same(dt.vecmat(dt.asarray(v), t), np.vecmat(v, t))


def test_matvec_and_vecmat_have_gradients_and_errors() -> None:
    with dt.device("reference"):
        rng = np.random.default_rng(6)
        a, v, z = (
            dt.asarray(rng.normal(size=s) + 1j * rng.normal(size=s)).requires_grad_()
            for s in ((2, 3, 4), (2, 4), (2, 3))
        )
        assert gradcheck(dt.matvec, (a, v)) and gradcheck(dt.vecmat, (z, a))
        x, y = dt.ones((2, 3)), dt.ones(3)
        for f, bad in ((dt.matvec, [(x, x.T), (y, y), (x, dt.ones(()))]),
                       (dt.vecmat, [(x, x), (y, y), (dt.ones(()), x)])):  # fmt: skip
            for given in bad:
                with pytest.raises(dt.ShapeError, match=f"{f.__name__}: .*do not fit"):
                    f(*given)
            with pytest.raises(dt.ShapeError, match=f.__name__):
                f(dt.ones((2, 3, 3)), dt.ones((4, 3, 3)))
            with pytest.raises(dt.DTypeError, match=f.__name__):
                f(x, 3)


# --- orders


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_lexsort_equals_numpy(device: dt.Device, axis: int) -> None:
    rng = np.random.default_rng(7)
    keys = [rng.integers(0, 3, (6, 8)), rng.choice([1.0, 2.0, NAN], (6, 8)).astype("f4"),
            rng.integers(-2, 2, (6, 8)).astype("f8"), rng.integers(0, 2, (6, 8)) > 0]  # fmt: skip
    for n in (1, 2, 3, 4):
        given = [dt.asarray(k) for k in keys[:n]]
        assert_same(dt.lexsort(given, axis=axis), np.lexsort(keys[:n], axis=axis))
        assert_same(dt.lexsort((*given[:1], *keys[1:n]), axis), np.lexsort(keys[:n], axis=axis))
    table = rng.integers(0, 3, (3, 9))
    assert_same(dt.lexsort(dt.asarray(table)), np.lexsort(table))
    assert_same(dt.lexsort([dt.zeros((2, 0))] * 2), np.lexsort([np.zeros((2, 0))] * 2))


def test_lexsort_names_wrong_arguments() -> None:
    x = dt.zeros(3, device="reference")
    for given, error, words in (
        ([], dt.ArgumentError, "lexsort: expected at least one key"),
        (5, dt.ArgumentTypeError, "lexsort: keys must be a list"),
        ([x, x[:2]], dt.ShapeError, r"lexsort: keys must .*got \(3,\) and \(2,\)"),
        ([x[0]], dt.ShapeError, "lexsort"),
        ([x * 1j], dt.DTypeError, "lexsort"), ([x, "abc"], dt.DTypeError, "lexsort"),
    ):  # fmt: skip
        with pytest.raises(error, match=words):
            dt.lexsort(given)
    with pytest.raises(dt.AxisError, match="lexsort"):
        dt.lexsort([x], axis=1)


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("kth", [0, 3, -1, [1, -2]])
def test_partition_and_argpartition_satisfy_their_contract(
    device: dt.Device, axis: Any, kth: Any
) -> None:
    a = np.random.default_rng(8).integers(0, 9, (5, 7)).astype("f4")
    a[2, 3] = NAN
    x, d = dt.asarray(a), -1 if axis is None else axis
    found, order = dt.partition(x, kth, axis), dt.argpartition(x, kth, axis=axis)
    assert order.dtype is dt.int64 and found.dtype is dt.float32
    want = np.partition(a, kth, axis)
    assert found.shape == order.shape == want.shape
    flat = a.ravel() if axis is None else a
    np.testing.assert_array_equal(np.take_along_axis(flat, order.numpy(), d), found.numpy())
    np.testing.assert_array_equal(np.take(found.numpy(), kth, d), np.take(want, kth, d))
    np.testing.assert_array_equal(found.numpy(), np.sort(flat, d))


def test_partition_has_gradients_and_errors() -> None:
    with dt.device("reference"):
        x = dt.asarray([3.0, 1.0, 2.0], dtype=dt.float64).requires_grad_()
        assert gradcheck(lambda v: dt.partition(v, 1), (x,))
        assert dt.partition(dt.zeros((2, 0)), 0).shape == (2, 0)
        for f in (dt.partition, dt.argpartition):
            for kth, axis, error, words in (
                (3, -1, dt.ArgumentError, "kth must be between -3 and 2"),
                ([0, -4], -1, dt.ArgumentError, "kth must .*got -4"), (0, 1, dt.AxisError, "axis"),
                (1.5, -1, dt.ArgumentTypeError, "kth"),
            ):  # fmt: skip
                with pytest.raises(error, match=f"{f.__name__}: .*{words}"):
                    f(x, kth, axis)
            with pytest.raises(dt.AxisError, match=f.__name__):
                f(x[0], 0)
            with pytest.raises(dt.DTypeError, match=f.__name__):
                f(x * 1j, 0)
