"""Numbers that the host computes at once equal those of the deferred path."""

from __future__ import annotations

import gc
import math
import operator
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import DType
from dovetail.engine.events import counters
from dovetail.functions.graph_cache import CachedFunction

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
              operator.mod]  # fmt: skip
COMPARISONS = [operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge]
UNARY: list[Callable[[Any], Any]] = [operator.neg, abs, dt.square, dt.sqrt, lambda x: x**2]
DTYPES = [dt.bool_, dt.int32, dt.int64, dt.uint8, dt.float16, dt.float32, dt.float64]
VALUES: dict[str, list[Any]] = {
    "b": [True, False],
    "i": [0, 1, -1, 7, -13, 2**24 + 1, -(2**31), 2**31 - 1],
    "u": [0, 1, 7, 255],
    "f": [0.0, -0.0, 1.0, 0.1, -3.7, 1e-40, 3e38, math.inf, -math.inf, math.nan, 2.0**24 + 1],
}
NUMBERS: list[Any] = [True, 0, 3, -7, 2**40, 0.1, -0.0, 1e-45, 1e39, math.inf, math.nan]


def values_of(dtype: DType) -> list[Any]:
    extra = [2**53 + 1, -(2**63), 2**63 - 1] if dtype is dt.int64 else []
    return VALUES[dtype.kind] + extra


def bits(x: dt.Tensor) -> Any:
    """Return dtype and bytes; NaNs are one value, since their bits differ between machines."""
    a = x.numpy()
    return str(a.dtype), [None if v != v else v.tobytes() for v in a.reshape(-1)]


def outcome(compute: Callable[[], dt.Tensor]) -> Any:
    """Return the bits of a result, or the error that is raised."""
    try:
        return bits(compute())
    except dt.DovetailError as error:
        return type(error), str(error)


def assert_equals_deferred(compute: Callable[[], dt.Tensor]) -> None:
    at_once = outcome(compute)
    with dt.profile():
        deferred = outcome(compute)
    assert at_once == deferred


@pytest.mark.parametrize(
    ("left", "right"),
    [(a, b) for a in DTYPES for b in DTYPES if a is b or dt.uint8 not in (a, b)],
    ids=lambda d: d.name,
)
def test_op_of_two_elements_equals_the_deferred_op_on_vectors(left: DType, right: DType) -> None:
    a, b = values_of(left), values_of(right)
    pairs = [(p, q) for p in a for q in b]
    x = dt.asarray(np.array([p for p, _ in pairs]), device="cpu").astype(left)
    y = dt.asarray(np.array([q for _, q in pairs]), device="cpu").astype(right)
    dt.evaluate(x, y)
    vectors = {}
    for op in (*ARITHMETIC, *COMPARISONS, operator.and_, operator.or_, operator.xor):
        with suppress(dt.DTypeError):
            vectors[op] = op(x, y)
    dt.evaluate(*vectors.values())
    for op, vector in vectors.items():
        name, wanted = bits(vector)
        for i, want in enumerate(wanted):
            assert bits(op(x[i], y[i])) == (name, [want]), (op, pairs[i])


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_op_of_an_element_and_a_number_equals_the_deferred_op(dtype: DType, number: Any) -> None:
    x = dt.asarray(np.array(values_of(dtype)), device="cpu").astype(dtype)
    dt.evaluate(x)
    for op in (operator.add, operator.sub, operator.truediv, operator.lt, operator.eq):
        for i in (0, 1, -1):
            assert_equals_deferred(lambda op=op, i=i: op(x[i], number))  # type: ignore[misc]
            assert_equals_deferred(lambda op=op, i=i: op(number, x[i]))  # type: ignore[misc]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize("op", UNARY, ids=["neg", "abs", "square", "sqrt", "power"])
def test_op_of_one_element_equals_the_deferred_op(dtype: DType, op: Callable[[Any], Any]) -> None:
    x = dt.asarray(np.array(values_of(dtype)), device="cpu").astype(dtype)
    dt.evaluate(x)
    for i in range(x.size):
        assert_equals_deferred(lambda i=i: op(x[i]))  # type: ignore[misc]


def test_textbook_statements_on_elements_have_these_values_without_a_launch() -> None:
    gc.collect()
    x = dt.asarray([3.0, 4.0, 0.5], dtype=dt.float64, device="cpu")
    k = dt.asarray([7, -7, 3], device="cpu")
    dt.evaluate(x, k)
    before = counters.launches
    norm = dt.sqrt(x[0] * x[0] + x[1] ** 2)
    x[2] = x[0] * 0.5 + 2.0 / norm - abs(-x[1])
    k[2] = max(k[0] % 4, k[1] // 2) + 1
    assert (float(norm), float(x[2]), int(k[2])) == (5.0, -2.1, 4)
    assert bool(x[0] < x[1]) and (k[0] != 3) and int(k[0] & 3) == 3
    assert not bool(k[0] == k[1])
    assert counters.launches == before


def test_result_is_a_number_of_its_own() -> None:
    x = dt.asarray([1.0, 2.0], device="cpu")
    dt.evaluate(x)
    y = x[0] + 1.0
    z = y * 3.0
    x[0] = 9.0
    y += 5.0
    assert (y.item(), z.item(), x.tolist()) == (7.0, 6.0, [9.0, 2.0])
    assert (x * z).tolist() == [54.0, 12.0] and z.reshape(1).tolist() == [6.0]
    z[...] = 1.0
    assert z.tolist() == 1.0 and z.dtype is dt.float32 and z.device == x.device


def test_pending_operand_and_vector_stay_deferred() -> None:
    x = dt.ones(3, device="cpu")
    s = x.sum()  # pending
    assert len(dt.explain(s * 2.0 + x).launches) >= 1
    dt.evaluate(x)
    assert len(dt.explain(x * 2.0 + 1.0).launches) == 1
    assert len(dt.explain(x[0] * 2.0).launches) == 1  # a constant that no memory holds yet


def test_gradient_flows_through_ops_of_elements() -> None:
    w = dt.asarray([2.0, 3.0], device="cpu").requires_grad_()
    (w[0] * w[1] - w[0]).backward()
    assert w.grad is not None and w.grad.tolist() == [2.0, 2.0]


def test_captured_function_computes_elements_anew() -> None:
    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        return x[0] * x[1] + 1.0

    for start in (1.0, 2.0, 3.0):
        x = dt.full(2, start, device="cpu")
        dt.evaluate(x)
        assert f(x).item() == start * start + 1.0


def test_constant_is_an_argument_of_captured_and_batched_functions() -> None:
    x = dt.asarray([2.0, 3.0], device="cpu")
    dt.evaluate(x)
    f = dt.jit(lambda v, s: v * s)
    assert [f(x, x[i] + 1.0).tolist() for i in (0, 1)] == [[6.0, 9.0], [8.0, 12.0]]
    scale = x[0] * 5.0
    assert dt.vmap(lambda v: v * scale)(x).tolist() == [20.0, 30.0]
    assert dt.vmap(lambda v: v[0] * v[1])(dt.asarray([[2.0, 3.0], [4.0, 5.0]])).tolist() == [6, 20]


def test_anomaly_checker_and_eager_mode_see_ops_of_elements() -> None:
    x = dt.asarray([1.0, 0.0], device="cpu")
    dt.evaluate(x)
    with dt.debug_nans(inf=True), pytest.raises(dt.AnomalyError, match="divide"):
        x[0] / x[1]
    with dt.eager():
        assert len(dt.explain(x[0] + 1.0).launches) == 0


def test_array_over_the_memory_changes_operands_but_no_results() -> None:
    x = dt.asarray([1.0, 2.0], device="cpu")
    shown = x.numpy()
    y = x[0] * 3.0
    shown[0] = 7.0
    assert (y.item(), (x[0] * 3.0).item()) == (3.0, 21.0)


# --- rows filled with a number --------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda d: d.name)
@pytest.mark.parametrize(
    "key",
    [
        1,
        slice(None),
        slice(1, None),
        (slice(None), 2),
        (0, slice(None, None, -2)),
        (slice(None), slice(1, 3)),
        ...,
    ],
    ids=repr,
)
@pytest.mark.parametrize("number", [0, 1, -3, 2.5, 2**40], ids=repr)
def test_part_filled_with_a_number_equals_the_deferred_write(
    dtype: DType, key: Any, number: Any
) -> None:
    def compute() -> dt.Tensor:
        x = dt.ones((3, 5), dtype=dtype, device="cpu")
        dt.evaluate(x)
        x[key] = number
        return x

    assert_equals_deferred(compute)


def test_fill_launches_nothing_and_pending_readers_keep_their_values() -> None:
    gc.collect()
    x = dt.ones((3, 4), device="cpu")
    dt.evaluate(x)
    y = x * 2.0
    x[1] = 5.0
    x[0] = 0.0  # forgets which nodes died
    before = counters.launches
    x[:, 1] = 7.0
    x[2, 1:3] = -1.0
    assert counters.launches == before
    assert y.tolist() == [[2.0] * 4] * 3
    assert x.tolist() == [[0.0, 7.0, 0.0, 0.0], [5.0, 7.0, 5.0, 5.0], [1.0, -1.0, -1.0, 1.0]]


def test_fill_of_a_broadcast_view_or_a_saved_value_raises() -> None:
    x = dt.ones(3, device="cpu")
    dt.evaluate(x)
    with pytest.raises(dt.ReadOnlyError):
        dt.broadcast_to(x[:1], (4,))[1:] = 2.0
    w = dt.ones(3, device="cpu").requires_grad_()
    loss = (w * x).sum()
    x[1:] = 5.0
    with pytest.raises(dt.GradientError, match="setitem"):
        loss.backward()


def test_number_computed_at_once_is_no_part_of_a_cached_function() -> None:
    """The second call stores a template, which must not hold the numbers of that call."""
    cached = CachedFunction(lambda a, b: a * b + 1)
    for value in (1.0, 2.0, 3.0, 4.0):
        a, b = dt.asarray(value), dt.asarray(10 * value)
        assert cached.call((a, b), {}).item() == 10 * value**2 + 1
