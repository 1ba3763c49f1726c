"""Arithmetic of small arrays that the host computes at once has the bits of the kernels."""

from __future__ import annotations

import gc
import operator
import random
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest
from dovetail.engine.events import counters
from dovetail.tensor import host_arithmetic

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le,
    operator.eq, operator.ne, operator.gt, operator.ge,
]  # fmt: skip
UPDATES = [operator.iadd, operator.isub, operator.imul, operator.itruediv]
FLOATS = [0.0, -0.0, 1.5, -2.25, 5e-324, 1e308, numpy.inf, -numpy.inf, 1 / 3, 3.0]
INTEGERS = [0, 1, -1, 2**63 - 1, -(2**63), 7]
NUMBERS = [2, -3, 0.5, numpy.float64(0.1), numpy.int64(3)]
is_compiled = host_arithmetic.__file__.endswith((".so", ".pyd"))


def bits(x: Any) -> tuple[Any, ...]:
    """Return the dtype, the shape and the bits of a result."""
    x = numpy.asarray(x)
    return x.dtype, x.shape, x.tobytes()


def by_kernel(function: Any, *operands: Any) -> Any:
    """Return a function's result by kernels: a profile must see them."""
    with dt.profile():
        result = function(*operands)
        if isinstance(result, dt.Tensor):
            dt.evaluate(result)
    return result


def random_operands(draw: random.Random) -> tuple[Any, Any]:
    """Return an array, transposed or not, and one that broadcasts to it, or a number."""
    shape = tuple(draw.randint(1, 4) for _ in range(draw.randint(0, 4)))
    values = FLOATS if draw.random() < 0.6 else INTEGERS
    dtype = float if values is FLOATS else int

    def array(sizes: tuple[int, ...]) -> Any:
        """Return an array of random values."""
        count = int(numpy.prod(sizes))
        return np.array([draw.choice(values) for _ in range(count)], dtype=dtype).reshape(sizes)

    other = array(tuple(draw.choice([1, n]) for n in shape)[draw.randint(0, len(shape)) :])
    x = array(shape[::-1]).T if draw.random() < 0.5 else array(shape)
    return x, draw.choice([other, other, *NUMBERS])


@pytest.mark.parametrize("seed", range(12))
def test_operators_have_the_bits_of_kernels(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        x, y = random_operands(draw)
        for function in OPERATORS:
            assert bits(function(x, y)) == bits(by_kernel(function, x, y)), (function, x, y)
            assert bits(function(y, x)) == bits(by_kernel(function, y, x)), (function, y, x)


@pytest.mark.parametrize("seed", range(12))
def test_updates_have_the_bits_of_kernels_and_are_seen_by_views(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        x, y = random_operands(draw)
        if not x.ndim or (x.dtype is dt.int64 and isinstance(y, float)):
            continue
        for function in UPDATES if x.dtype is dt.float64 else UPDATES[:3]:
            whole, expected = np.zeros((2, *x.shape), dtype=x.dtype), x.copy()
            whole[1] = x
            function(whole[1], y)
            assert bits(whole[1]) == bits(by_kernel(function, expected, y))


@pytest.mark.parametrize("k", [1, 2, 7, 40, 255, 256])
def test_products_have_the_bits_of_kernels(k: int) -> None:
    rng = numpy.random.default_rng(k)
    a, b = np.array(rng.normal(size=(2, k))), np.array(rng.normal(size=(k, 2)))
    turned = np.array(numpy.asarray(a).T.copy()).T
    for x, y in ((a[0], b[:, 1]), (a, b[:, 0]), (a[1], b), (a, b), (turned, b)):
        assert bits(x @ y) == bits(by_kernel(operator.matmul, x, y))


@pytest.mark.skipif(not is_compiled, reason="in pure Python kernels compute everything")
def test_small_operands_take_no_launch_and_others_do() -> None:
    def work() -> Any:
        """Return results of small arrays."""
        x, y = np.ones(5) + 1, np.ones(5)
        x += 2 * y
        return ((x @ y) / (x - y)[1:]).tolist(), (x > y).tolist()

    gc.collect()  # after errors of indices that a test kept, nothing is done at once
    work()  # its writes find the nodes that were recorded before
    before = counters.launches + counters.calls
    assert work() == ([20 / 3] * 4, [True] * 5)
    assert counters.launches + counters.calls == before
    large = np.ones(1000)
    launches = counters.launches
    dt.evaluate(large + large)
    assert counters.launches == launches + 1


def test_gradient_and_capture_record_the_op() -> None:
    x = np.arange(3) * 1.0
    x.requires_grad = True
    (x * x).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]
    assert dt.jit(lambda v: v * 2 + v)(np.arange(3) * 1.0).tolist() == [0, 3, 6]
