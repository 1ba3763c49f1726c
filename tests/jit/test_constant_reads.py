"""A captured function may read what it computes from constants alone."""

from __future__ import annotations

from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy as host
import pytest

warns_of_read = pytest.warns(dt.errors.DovetailWarning, match="without a capture")


def test_mask_of_constants_selects_in_a_capture() -> None:
    @dt.jit
    def upper_half(y: Any, n: int) -> Any:
        x = np.linspace(0, 1, n)
        return y[x > 0.5] * 2, int(np.argmax(x)), float(x[1])

    for k in range(3):
        y = host.arange(8.0) + k
        selected, last, second = upper_half(np.asarray(y), 8)
        host.testing.assert_array_equal(selected, y[4:] * 2)
        assert (last, second) == (7, host.linspace(0, 1, 8)[1])
    assert upper_half.captures == 1


def test_branch_on_a_constant_is_captured() -> None:
    @dt.jit
    def f(y: Any) -> Any:
        kernel = dt.asarray([1.0, 2.0, 1.0])
        return y / kernel.sum() if kernel.sum() > 1 else y

    for y in ([4.0, 8.0], [8.0, 4.0]):
        assert f(dt.asarray(y)).tolist() == [v / 4 for v in y]
    assert f.captures == 1


READS_OF_VARYING_VALUES = {
    "argument": lambda x, rate: x.sum(),
    "closure": lambda x, rate: CLOSURE.sum(),
    "value of an argument in constant memory": lambda x, rate: dt.zeros(2).add_(x[:2]).sum(),
    "float argument": lambda x, rate: (dt.ones(2) * rate).sum(),
    "random numbers": lambda x, rate: dt.random.uniform((2,)).sum(),
    "dt.constant": lambda x, rate: dt.constant(CLOSURE).sum(),
    "product": lambda x, rate: (dt.ones((2, 3)) @ x[:, None]).sum(),
    "host routine": lambda x, rate: dt.linalg.svdvals(x[:, None] * dt.ones(3)).sum(),
}
CLOSURE = dt.ones(3)


@pytest.mark.parametrize("name", READS_OF_VARYING_VALUES)
def test_read_of_a_value_that_may_vary_is_refused(name: str) -> None:
    read = READS_OF_VARYING_VALUES[name]
    f = dt.jit(lambda x, rate: x * float(read(x, rate)))
    with warns_of_read:
        f(dt.asarray([1.0, 2.0, 3.0]), 2.0)
    assert f.captures == 0


def test_array_over_memory_is_refused() -> None:
    f = dt.jit(lambda x: x + dt.ones(3).numpy()[0])
    with warns_of_read:
        assert f(dt.zeros(2)).tolist() == [1.0, 1.0]


def test_constant_of_a_loop_body_is_refused() -> None:
    @dt.jit
    def f(x: Any) -> Any:
        return dt.fori_loop(0, 3, lambda i, y: y + float(dt.ones(2).sum()), x)

    with pytest.raises(dt.errors.CaptureError, match="the host reads"):
        f(dt.zeros(2))


@pytest.mark.parametrize(
    "compare",
    [np.allclose, np.array_equal, np.array_equiv, dt.allclose, dt.array_equal, dt.array_equiv],
)
def test_comparison_is_a_tensor_in_a_capture(compare: Any) -> None:
    f = dt.jit(lambda x, y: (x + y, compare(x, y)))
    x = np.asarray([1.0, 2.0])
    for step in (0, 1):
        result = f(x, x + step)[1]
        assert bool(result) is (step == 0) and result.dtype == dt.bool
    assert f.captures == 1
    assert isinstance(dt.allclose(x, x), bool)


def test_branch_on_a_comparison_names_the_line() -> None:
    f = dt.jit(lambda x: x if float(x.sum()) == 0 else -x)
    with warns_of_read:
        assert f(dt.asarray([1.0])).tolist() == [-1.0]


def test_numpy_function_of_a_float_argument_sees_each_value() -> None:
    f = dt.jit(lambda x, rate: x * host.sqrt(rate))
    for root in (2.0, 3.0, 2.0):
        assert f(dt.asarray([3.0]), root**2).tolist() == [3.0 * root]


def test_index_may_be_a_range() -> None:
    x = np.arange(12.0).reshape(3, 4)
    assert x[range(2), range(1, 3)].tolist() == [1.0, 6.0]
    x[range(0), 0] = 5
    x[range(2)] = 0
    assert x.sum() == 38
