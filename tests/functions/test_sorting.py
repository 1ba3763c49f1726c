"""Sorting against NumPy's stable sort, on every installed device."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.device_class import opened
from dovetail.functions.sorting.stable_sort import order_of
from dovetail.ops import sort as radix
from support.numpy_sorts import numpy_sorts
from support.planning import forget_shape_classes

DEVICES = ["reference", "cpu"]
DTYPES = ["f2", "f4", "f8", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"]
SHORT, LONG = 40, 306  # by rank, by passes
Array = Any


@pytest.fixture(autouse=True)
def _one_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fix the length of rows that are sorted by rank; it would depend on the device."""
    forget_shape_classes(monkeypatch)
    monkeypatch.setattr(radix, "RANK_COMPARISONS_MAX", 0)


def values(dtype: str, shape: Any, seed: int = 0) -> Array:
    """Return values of the whole range, with ties; floats with NaNs of both signs, infinities
    and zeros.
    """
    rng = np.random.default_rng(seed)
    if dtype[0] == "f":
        a = (rng.standard_normal(shape) * 3).astype(dtype)
        for k, special in enumerate((-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0)):
            a.reshape(-1)[k::19] = special
        return a
    if dtype == "?":
        return rng.integers(0, 2, shape).astype(bool)
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    a.reshape(-1)[::3] = 5
    return a


def order(a: Array, axis: int, descending: bool) -> Array:
    """Return the stable order; NaN is last in both directions."""
    if not descending:
        return np.argsort(a, axis=axis, kind="stable")
    if a.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # signalling NaNs
            return np.lexsort((-a.astype("f8"), np.isnan(a)), axis=axis)
    return np.argsort(~a, axis=axis, kind="stable")


def same_bits(x: dt.Tensor, want: Array) -> None:
    got = x.numpy()
    assert got.dtype == want.dtype and got.shape == want.shape
    assert np.ascontiguousarray(got).tobytes() == np.ascontiguousarray(want).tobytes()


def check(a: Array, axis: int, descending: bool, device: str) -> None:
    x, want = dt.asarray(a, device=device), order(a, axis, descending)
    same_bits(dt.argsort(x, axis=axis, descending=descending), want)
    same_bits(dt.sort(x, axis=axis, descending=descending), np.take_along_axis(a, want, axis=axis))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sort_of_every_dtype_equals_numpy(dtype: str, descending: bool) -> None:
    for shape, axis in (((1,), 0), ((SHORT,), 0), ((2, LONG), -1), ((LONG, 3), 0), ((0, 3), 0)):
        check(values(dtype, shape), axis, descending, "cpu")
    check(values(dtype, (LONG,)), 0, descending, "reference")


@pytest.mark.parametrize("device", DEVICES)
def test_sort_along_any_axis_of_any_view(device: str) -> None:
    a = values("f4", (3, 5, 4))
    for axis in (0, 1, 2, -2):
        check(a, axis, False, device)
    x = dt.asarray(values("i4", (40, 30)), device=device)
    b = x.numpy().T[::-1, 3::2]
    same_bits(dt.sort(x.T.flip(axis=0)[:, 3::2], axis=0), np.sort(b, axis=0))
    same_bits(dt.argsort(x.T.flip(axis=0)[:, 3::2] * 2 - 1), np.argsort(b * 2 - 1, kind="stable"))


@pytest.mark.parametrize("n", [1024, 5121, 70_000])
@pytest.mark.parametrize("dtype", ["f4", "i8"])
def test_sort_of_several_blocks_equals_numpy(n: int, dtype: str) -> None:
    check(values(dtype, (n,)), 0, False, "cpu")
    check(values(dtype, (2, n)), 1, True, "cpu")


@pytest.mark.parametrize("low, high", [(0, 0), (-3, 250), (-(2**40), 7), (2**62, 2**62 + 9)])
def test_narrow_range_needs_fewer_passes(low: int, high: int) -> None:
    a = np.random.default_rng(1).integers(low, high, 1 << 16, endpoint=True)
    x = dt.asarray(a, device="cpu")
    for descending in (False, True):
        check(a, 0, descending, "cpu")
    launches = len(dt.explain(dt.sort(x, descending=True)).launches)
    assert launches == 3 * max(
        1, -(-int(a.max() - a.min()).bit_length() // radix.LONG_ROW_DIGIT_BITS_MAX)
    )


def test_keys_of_known_width_need_no_host_read() -> None:
    a = np.random.default_rng(2).integers(0, 1 << 20, 100_000)
    order_ = order_of(dt.asarray(a, device="reference") + 0, 20)
    assert len(dt.explain(order_).launches) == 1 + 3 * 2, "it is pending, with the addition"
    same_bits(order_, np.argsort(a, kind="stable"))


@pytest.mark.parametrize("device", DEVICES)
def test_sort_of_bfloat16_equals_numpy(device: str) -> None:
    a = np.random.default_rng(3).integers(-4, 4, (LONG,)) / 4
    x = dt.asarray(a, dtype=dt.bfloat16, device=device)
    assert dt.sort(x).astype(dt.float64).tolist() == np.sort(a).tolist()
    assert dt.argsort(x, descending=True).tolist() == order(a, 0, True).tolist()


@pytest.mark.parametrize("dtype, bits", [("f4", "u4"), ("f8", "u8")])
def test_sort_of_random_float_bits_equals_numpy(dtype: str, bits: str) -> None:
    """With denormals and every kind of NaN."""
    a = np.random.default_rng(4).integers(0, np.iinfo(bits).max, 3000, bits, endpoint=True)
    a[:500] >>= 8 * a.itemsize - 12  # close to 0
    for descending in (False, True):
        check(a.view(dtype), 0, descending, "cpu")


@pytest.mark.parametrize("device", DEVICES)
def test_topk_equals_numpy(device: str) -> None:
    x = dt.asarray([[1.0, 5.0, 5.0, float("nan")], [2.0, -1.0, 0.0, 3.0]], device=device)
    found, at = dt.topk(x, 2)
    assert found.tolist() == [[5.0, 5.0], [3.0, 2.0]] and at.tolist() == [[1, 2], [3, 0]]
    assert x.topk(1, axis=0, largest=False).values.tolist() == [[1.0, -1.0, 0.0, 3.0]]
    assert dt.topk(x, 0).values.shape == (2, 0)


@pytest.mark.parametrize("kind", ["numbers", "equal ones", "some NaN", "hardly a number", "ints"])
def test_topk_of_many_is_the_start_of_the_order(device: str, kind: str) -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(2, 9001)).astype(np.float32)
    if kind == "equal ones":
        x = np.round(x)  # some five values: the first of the equal ones count
    elif kind == "some NaN":
        x[rng.random(x.shape) < 0.3], x[rng.random(x.shape) < 0.01] = np.nan, np.inf
    elif kind == "hardly a number":
        x[rng.random(x.shape) < 0.9995], x[:, -1] = np.nan, -np.inf
    elif kind == "ints":
        x = rng.integers(-9, 9, x.shape)
    t = dt.asarray(x, device=device)
    for k, largest in ((1, True), (7, False), (7, True)):
        found = dt.topk(t, k, largest=largest)
        order = dt.argsort(t, descending=largest)[:, :k].numpy()
        assert found.indices.numpy().tolist() == order.tolist()
        values = np.take_along_axis(x, order, 1)
        np.testing.assert_array_equal(found.values.numpy(), values)
    down = dt.topk(t.T, 7, axis=0).indices
    assert down.numpy().T.tolist() == order.tolist()


def test_sort_methods_and_composition() -> None:
    x = dt.asarray([3.0, 1.0, 2.0], device="cpu")
    assert (x.sort() * 2).sum().item() == 12.0 and x.argsort(descending=True).tolist() == [0, 2, 1]
    x[:] = dt.sort(x)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_gradient_of_sort_goes_to_the_original_position() -> None:
    x = dt.asarray([3.0, 1.0, 2.0], device="cpu")
    x.requires_grad = True
    (dt.sort(x) * dt.asarray([1.0, 10.0, 100.0], device="cpu")).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_vendor_routine_replaces_the_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its order is ascending: descending sorts are ascending ones of the complements."""
    calls: list[Any] = []

    def routine(backend: Any, inputs: Any, output: Any, stream: Any) -> None:
        calls.append((inputs[0][2], output[4]))

    where = opened(dt.device("cpu"))
    library_calls = {("sort", dt.int16): routine, ("argsort", dt.int16): routine}
    monkeypatch.setattr(where, "library_calls", library_calls)
    x = dt.asarray(values("i2", (321, 3)), device="cpu")
    dt.evaluate(dt.sort(x, axis=0), dt.argsort(x, axis=0))
    assert calls == [((3, 321), dt.int16), ((3, 321), dt.int64)]
    y = dt.asarray(values("i2", (320,)), device="cpu")
    dt.evaluate(dt.sort(y, descending=True), dt.argsort(y, descending=True))
    assert calls[2:] == [((320,), dt.int16), ((320,), dt.int64)]


@pytest.mark.parametrize("rule", [dt.sort, dt.argsort])
def test_wrong_arguments_of_sorting_raise(rule: Any) -> None:
    x = dt.asarray([3.0, 1.0])
    with pytest.raises(dt.AxisError, match="axis 1 is out of range"):
        rule(x, axis=1)
    with pytest.raises(dt.ShapeError, match="at least 1 dimension"):
        rule(dt.asarray(3.0))
    with pytest.raises(dt.DTypeError, match="expected a tensor, got list"):
        rule([3, 1])
    with pytest.raises(dt.UnsupportedError, match="elements, got 4294967296"):
        rule(dt.broadcast_to(x[:1], (1 << 32,)))
    with pytest.raises(dt.ArgumentError, match="k must be at most 2"):
        dt.topk(x, 3)


def test_one_plan_serves_all_ranges_of_one_width() -> None:
    """The subtracted minimum is a scalar of the launch, also in cached graphs."""
    r = np.random.default_rng(5)
    for n in (100, 20_000):
        for low in (0, 7, -(2**40), 2**50, 7):
            a = r.integers(low, low + 1000, n)
            x = dt.asarray(a, device="cpu")
            same_bits(dt.argsort(x), np.argsort(a, kind="stable"))
            same_bits(dt.sort(x), np.sort(a))


@pytest.mark.usefixtures("routines")
@pytest.mark.parametrize("d", ["i8", "i4"])
def test_routine_sorts_keys_without_duplicates(d: str) -> None:
    """The last pass would write with a stride of a power of two."""
    r = np.random.default_rng(3)
    for a, routine in ((r.permutation(1 << 16), True), (r.integers(0, 1 << 16, 1 << 16), False)):
        for low in (0, -7):
            x = dt.asarray(a.astype(d) + np.dtype(d).type(low), device="cpu")
            result = dt.argsort(x)
            origins = {step.origin for step in dt.explain(result).launches}
            assert ("library call" in origins) == routine
            same_bits(result, np.argsort(a, kind="stable"))


def test_argsort_has_no_gradient() -> None:
    x = dt.asarray([3.0, 1.0, 2.0], device="cpu")
    x.requires_grad = True
    assert not dt.argsort(x).requires_grad and not dt.topk(x, 2).indices.requires_grad
    assert dt.topk(x, 2).values.requires_grad


@pytest.fixture
def routines() -> Iterator[None]:
    with numpy_sorts():
        yield


@pytest.mark.usefixtures("routines")
def test_routine_replaces_passes_for_long_rows() -> None:
    def calls(x: dt.Tensor) -> list[str]:
        return [step.name for step in dt.explain(x).launches if step.origin == "library call"]

    for d in (dt.float32, dt.int64):
        x = dt.asarray(values("f4", (4, 1000)), dtype=d, device="cpu")
        for op in (dt.sort, dt.argsort):
            assert len(calls(op(x))) == len(calls(op(x, descending=True))) == 1
            assert not calls(op(x[:, :8]))


@pytest.mark.usefixtures("routines")
@pytest.mark.parametrize(("d", "bits", "routine", "for_order"), [
    ("i8", 20, False, False), ("i8", 31, True, False), ("i8", 40, True, True),
    ("i4", 20, True, False), ("f4", 0, True, False), ("f8", 0, True, True),
])  # fmt: skip
def test_passes_replace_the_routine_for_many_keys_of_few_bits(
    d: str, bits: int, routine: bool, for_order: bool
) -> None:
    """Both have the same order."""
    r = np.random.default_rng(3)
    whole = r.integers(0, 1 << bits, 1 << 16) if bits else r.standard_normal(1 << 16)
    for n, few in ((1 << 16, False), (1 << 12, True)):
        a = whole[:n].astype(d)
        x = dt.asarray(a, device="cpu")
        for op, expected, call in (
            (dt.sort, np.sort(a), routine), (dt.argsort, np.argsort(a, kind="stable"), for_order),
        ):  # fmt: skip
            result = op(x)
            origins = {step.origin for step in dt.explain(result).launches}
            assert ("library call" in origins) == (few or call)
            same_bits(result, expected)


@pytest.mark.usefixtures("routines")
@pytest.mark.parametrize("dtype", ["i4", "u4", "f4", "i8", "u8", "f8"])
def test_positions_next_to_wide_keys(dtype: str) -> None:
    """The lowest bits of 64-bit keys with large differences are cut off, and compared later."""
    rng = np.random.default_rng(4)
    wide = np.dtype(dtype).itemsize == 8
    close = rng.integers(0, 5, (3, 40_000)) + ((1 << 62) if wide else (1 << 20))
    if dtype[0] == "f":
        close = (close - close.min()).astype(f"i{dtype[1]}").view(dtype)
    a = close.astype(dtype)
    a[:, 17], a[:, 4_000] = 0, -1 if dtype[0] == "i" else 1e30 if dtype[0] == "f" else 1
    for some in (a[0], a, a[:, ::-3], a[:, :1000].copy().T):
        for axis in range(some.ndim):
            check(some, axis, False, "cpu")


@pytest.mark.usefixtures("routines")
@pytest.mark.parametrize("ties", [0, 1, 700])
def test_few_keys_that_use_all_bits(ties: int) -> None:
    """Positions replace their lowest bits, in which some of them differ."""
    a = np.random.default_rng(4).integers(0, (1 << 64) - 1, (2, 1000), dtype="u8", endpoint=True)
    a[:, 0], a[:, 1] = 0, (1 << 64) - 1
    a[:, 100 : 100 + ties] = (a[0, 50] >> 10 << 10) + (a[:, 100 : 100 + ties] & 3)
    for some in (a[0], a, a[:, ::-1]):
        check(some, some.ndim - 1, False, "cpu")


def test_saved_functions_sort(tmp_path: Path) -> None:
    a = values("f4", (2, 100))
    x = dt.asarray(a, device="cpu")
    f = dt.jit(lambda x: (dt.sort(x), dt.argsort(x)))
    f(x)
    dt.save_function(f, tmp_path / "sorting")
    found = dt.load_function(tmp_path / "sorting", device="cpu")(x)
    want = order(a, -1, False)
    same_bits(found[0], np.take_along_axis(a, want, axis=-1))
    same_bits(found[1], want)
