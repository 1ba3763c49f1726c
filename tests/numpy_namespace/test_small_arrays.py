"""Small arrays that the host, or one launch, computes at once."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy as host
import pytest
from dovetail.engine.events import counters
from dovetail.tensor import host_index

is_compiled = host_index.__file__.endswith((".so", ".pyd"))


def test_steps_that_copy_and_then_write_are_hits() -> None:
    p = np.linspace(0.0, 1.0, 50)
    for step in range(6):
        if step == 3:
            before = counters.evaluations - counters.graph_hits
        previous = p.copy()
        p[1:-1] = 0.5 * (previous[2:] + previous[:-2])
    assert counters.evaluations - counters.graph_hits == before


def test_copy_in_a_captured_function_stays_pending() -> None:
    def double_copy(x: np.ndarray) -> np.ndarray:
        y = x.copy()
        y[0] = 7.0
        return x + y

    x = np.arange(3.0)
    for _ in range(3):
        host.testing.assert_array_equal(dt.jit(double_copy)(x), [7.0, 2.0, 4.0])


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "u4", "i8", "?"])
def test_sort_in_place_has_the_bits_of_a_sort_by_kernels(dtype: str) -> None:
    rng = host.random.default_rng(1)
    values = rng.integers(0, 2, 6).astype(dtype)
    if dtype[0] == "f":
        bits = host.iinfo(dtype.replace("f", "u"))
        nans = host.array([bits.max, bits.max - 1, bits.max >> 1], bits.dtype).view(dtype)
        values = host.concatenate([values, -values, nans, [host.inf, -host.inf]], dtype=dtype)
    for shape in [(1,), (30,), (4, 5), (3, 2, 4)]:
        a = values[rng.integers(0, values.size, shape)]
        for axis in range(-1, len(shape)):
            x = np.array(a)
            alias = x.ravel()
            x.sort(axis)
            wanted = dt.sort(dt.asarray(a, device="reference"), axis=axis)
            assert x.numpy().tobytes() == wanted.numpy().tobytes() == alias.numpy().tobytes()


def test_sort_in_place_is_seen_by_pending_readers_gradients_and_captures() -> None:
    x = np.array([3.0, 1.0, 2.0])
    doubled = x * 2
    x.sort()
    assert doubled.tolist() == [6.0, 2.0, 4.0]
    assert x.tolist() == [1.0, 2.0, 3.0]

    def ordered(y: np.ndarray) -> np.ndarray:
        z = y.copy()
        z.sort()
        return z

    f = dt.jit(ordered)
    for values in ([2.0, 1.0], [5.0, 4.0], [8.0, 7.0]):
        assert f(np.array(values)).tolist() == sorted(values)
    y = np.array([2.0, 1.0]).requires_grad_()
    ordered(y)[0].backward()
    assert y.grad.tolist() == [0.0, 1.0]


REDUCTIONS = [
    lambda m, x: x.sum(), lambda m, x: m.argmax(x), lambda m, x: x.max(), lambda m, x: x.any(),
    lambda m, x: m.median(x), lambda m, x: m.percentile(x, 30), lambda m, x: x.std(ddof=1),
    lambda m, x: m.dot(x[0], x[1]), lambda m, x: m.linalg.norm(x), lambda m, x: m.trace(x),
    lambda m, x: m.sum(x, dtype=int), lambda m, x: m.linalg.det(x[:, :2]), lambda m, x: m.ptp(x),
    lambda m, x: m.searchsorted(x[0], 0.5), lambda m, x: m.count_nonzero(x), lambda m, x: x.all(),
    lambda m, x: m.mean(x.astype("f4")), lambda m, x: x.sum(axis=0), lambda m, x: m.average(x),
    lambda m, x: x.sum(keepdims=True), lambda m, x: m.sum(m.array(2.0)), lambda m, x: m.nansum(x),
]  # fmt: skip


@pytest.mark.parametrize("call", REDUCTIONS)
def test_reduction_to_one_number_is_numpys_scalar(call: Callable[..., Any]) -> None:
    values = [[0.25, 0.5, 2.0], [1.0, -3.0, 4.0]]
    wanted = call(host, host.array(values))
    result = call(np, np.array(values))
    host.testing.assert_allclose(host.asarray(result), wanted, rtol=1e-6)
    if isinstance(wanted, host.ndarray):
        assert type(result) is np.ndarray
    else:
        assert isinstance(result, host.generic)
        assert result.dtype == host.asarray(wanted).dtype


def test_reduction_stays_an_array_in_captures_with_gradients_and_as_out() -> None:
    kinds = set()

    def total(x: np.ndarray) -> np.ndarray:
        s = x.sum()
        kinds.add(type(s))
        return s * 2

    assert dt.jit(total)(np.arange(4.0)).item() == 12.0
    x = np.arange(3.0).requires_grad_()
    total(x * x).backward()
    assert kinds == {np.ndarray}
    assert x.grad.tolist() == [0.0, 4.0, 8.0]
    out = np.array(0.0)
    assert np.sum(x.detach(), out=out) is out
    assert np.sum(np.arange(3.0), None, None, out) is out
    assert out.item() == 3.0


def test_position_from_a_reduction_is_an_index() -> None:
    x = np.array([[1.0, 5.0], [7.0, 2.0]])
    row = x[np.argmax(x[:, 0])]
    row[0] = 9.0
    assert x[1, 0] == 9.0  # a view, as in NumPy


@pytest.mark.skipif(not is_compiled, reason="in pure Python kernels do this work")
def test_created_arrays_of_few_elements_are_in_memory_and_larger_ones_pending() -> None:
    x = np.arange(4.0)
    for few in (np.zeros(3), np.ones((2, 2), int), np.full(3, 2.0), np.zeros_like(x), x.copy()):
        assert few._expr.op is None
    assert np.full_like(x, 7)._expr.op is None
    assert np.zeros(1 << 20)._expr.op is not None

    def steps(y: np.ndarray) -> np.ndarray:
        z = np.zeros_like(y)
        assert z._expr.op is not None  # a captured function computes it at replay
        z[1:] += y[:-1]
        return z

    assert dt.jit(steps)(x).tolist() == [0.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i4", "i8", "u8", "f2", "f4", "f8", "c8"])
def test_where_and_clip_promote_numbers_as_numpy(dtype: str) -> None:
    values = host.array([0, 1, 3]).astype(dtype)
    for other in (0, 1, 100, 0.5, True, 1 + 2j, host.float32(2), host.int64(5), values, [1, 2, 3]):
        for m_first in (True, False):
            theirs = (values, other) if m_first else (other, values)
            ours = tuple([np.array(x) if x is values else x for x in theirs])
            wanted = host.where(values > 0, *theirs)
            result = np.where(np.array(values > 0), *ours)
            assert result.dtype == wanted.dtype
            assert result.numpy().tobytes() == wanted.tobytes()
    for low, high in ((0, 1), (0.5, 2), (None, 2), (1, None)):
        if dtype not in ("?", "c8"):
            wanted = host.clip(values, low, high)
            result = np.clip(np.array(values), low, high)
            assert result.dtype == wanted.dtype
            assert result.numpy().tobytes() == wanted.tobytes()


def test_int64_scalar_beside_int64_array_is_as_in_numpy() -> None:
    x, y = np.array([7, -7, 0]), host.array([7, -7, 0])
    for s in (host.int64(2), host.int64(-3), host.int64(2**62)):
        for call in (
            lambda a, s: a + s, lambda a, s: s - a, lambda a, s: a * s, lambda a, s: a / s,
            lambda a, s: s / (a + 1), lambda a, s: a // s, lambda a, s: a % s, lambda a, s: a == s,
            lambda a, s: s == a, lambda a, s: s < a, lambda a, s: s >= a, lambda a, s: a != s,
            lambda a, s: s * a, lambda a, s: s + a, lambda a, s: s > a, lambda a, s: s <= a,
        ):  # fmt: skip
            result, wanted = call(x, s), call(y, s)
            assert (type(result), result.dtype) == (np.ndarray, wanted.dtype)
            assert result.numpy().tobytes() == wanted.tobytes()


def test_sort_in_place_refuses_an_axis_as_for_many_elements() -> None:
    for size in (4, 1000):
        with pytest.raises(dt.AxisError, match="sort: axis 2"):
            np.arange(float(size)).sort(2)


def test_fill_of_an_empty_view_writes_nothing() -> None:
    x = np.arange(6.0)
    x.tolist()
    end = x[6:]
    end[...] = 7
    x[3:3].fill(-1)
    b = np.arange(12).reshape(3, 4)
    no_columns = b[:, 2:2]
    no_columns[1] = 7
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    assert b.tolist() == host.arange(12).reshape(3, 4).tolist()
    with pytest.raises((TypeError, ValueError)):
        end[...] = "seven"


def test_array_without_dimensions_is_written_in_place() -> None:
    z = np.array(5.0)
    t = z
    t += 1
    acc = np.zeros(3)
    one = acc[1, ...]
    one += 5
    assert (float(z), acc.tolist()) == (6.0, [0, 5, 0])
    with pytest.raises(dt.ShapeError):
        z += np.array([1.0, 2.0])


def test_ravel_copies_elements_that_are_not_contiguous() -> None:
    for ravel in (np.ravel, np.ndarray.ravel):
        a = np.arange(8)
        ravel(a[::2])[0] = 9
        ravel(a[::-1])[0] = 9
        assert a.tolist() == [*range(8)]
        ravel(a)[0] = 9
        assert a.tolist() == [9, *range(1, 8)]


@pytest.mark.parametrize(
    "values",
    [
        [1.5, 2],
        (3, host.int64(4)),
        [[host.float64(1.0), 2.0], (3.0, 4)],
        [2**53 + 1, 0.5],
        [2**70, 1.0],
        [2**63, 1.0],
        [-(2**63), 1],
        [2**63],
        [2**1100, 1.0],
        [[1, 2], [3]],
        [[1, 2], 3],
        [[], []],
        [True, 1.0],
        [host.float32(1.5), 2.0],
        [host.int32(1), 2],
        [[[1.0]], [[2.0]]],
        [math.nan, -0.0, math.inf],
    ],
)
@pytest.mark.parametrize("options", [{}, {"dtype": float}, {"dtype": "float32"}, {"ndmin": 2}])
def test_array_of_numbers_is_that_of_numpy(values: Any, options: dict[str, Any]) -> None:
    try:
        expected = host.array(values, **options)
    except (ValueError, OverflowError, TypeError) as error:
        with pytest.raises(type(error)):
            np.array(values, **options)
        return
    result = np.array(values, **options)
    assert result.dtype == expected.dtype
    host.testing.assert_array_equal(host.asarray(result), expected)
    assert host.asarray(result).tobytes() == expected.tobytes()


def test_array_of_numbers_in_a_captured_function_is_equal_in_each_replay() -> None:
    f = dt.jit(lambda x: x + np.array([1.0, 2.0]))
    for k in range(3):
        assert f(np.array([k, 1.0])).tolist() == [k + 1.0, 3.0]


def count_calls(function: Callable[[], Any]) -> int:
    """Return how many Python functions a repeated call of a function runs."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    for _ in range(5):
        function()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.skipif(not is_compiled, reason="in pure Python these calls run Python functions")
def test_frequent_calls_run_few_python_functions() -> None:
    x, v, s = np.ones((50, 80)), np.ones(4000), host.float64(2.0)
    assert count_calls(lambda: np.array([[s, s], [s, 1]])) <= 5
    assert count_calls(lambda: np.clip(x, -1, 1, out=x)) <= 24
    assert count_calls(lambda: np.clip(x, -1, 1)) <= 12
    assert count_calls(lambda: v.dot(v)) <= 12
    assert count_calls(lambda: np.exp(v)) <= 4


@pytest.mark.parametrize("bounds", [(-1, 1.5), (0.25, math.nan), (1, -1)])
def test_clip_into_itself_is_that_of_numpy(bounds: tuple[float, float]) -> None:
    values = host.linspace(-3, 3, 4000).reshape(50, 80)
    x = np.array(values)
    assert np.clip(x, *bounds, out=x) is x
    host.testing.assert_array_equal(host.asarray(x), host.clip(values, *bounds))


def test_clip_into_out_lets_gradients_flow() -> None:
    x = np.array([-2.0, 0.5, 2.0])
    x.requires_grad = True
    y = np.zeros(3)
    np.clip(x * 1.0, -1, 1, out=y)
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("n", [1, 5, 600, 6000])
def test_dot_of_vectors_is_a_number_of_numpy(n: int) -> None:
    a, b = host.linspace(0, 1, n), host.linspace(1, 3, n)
    result = np.array(a).dot(np.array(b))
    assert type(result) is host.float64
    assert result == pytest.approx(a.dot(b), rel=1e-14)
    assert type(np.dot(np.arange(n), np.arange(n))) is host.int64
    with pytest.raises(ValueError):
        np.dot(np.array(a), np.zeros(n + 1))


@pytest.mark.parametrize("name", ["exp", "abs", "sqrt", "isnan", "sign", "conj"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "complex128", "bool"])
def test_repeated_ufunc_of_one_array_has_the_dtype_of_numpy(name: str, dtype: str) -> None:
    for shape in [(3,), (40, 50), ()]:
        values = host.ones(shape, dtype)
        try:
            expected = getattr(host, name)(values)
        except TypeError:
            with pytest.raises(TypeError):
                getattr(np, name)(np.array(values))
            continue
        for _ in range(3):
            result = getattr(np, name)(np.array(values))
            assert type(result) is (np.ndarray if shape else type(expected))
            assert result.dtype == expected.dtype
            host.testing.assert_allclose(host.asarray(result), expected, rtol=1e-6)
