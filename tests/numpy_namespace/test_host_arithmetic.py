"""Arithmetic of small arrays that the host computes at once has the bits of the kernels."""

from __future__ import annotations

import gc
import operator
import random
from functools import partial
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest
from dovetail.engine.events import counters
from dovetail.tensor import host_arithmetic
from dovetail.tensor.host_reductions import OPS as HOST_REDUCTIONS

OPERATORS = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.lt, operator.le,
    operator.eq, operator.ne, operator.gt, operator.ge, np.maximum, np.minimum, operator.floordiv,
    operator.mod,
]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor]
UNARY = [
    operator.neg, abs, np.sqrt, np.square, np.floor, np.ceil, np.rint, np.trunc, np.negative,
    np.absolute,
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
        dt.evaluate(
            *[
                x
                for x in (result if isinstance(result, tuple) else (result,))
                if isinstance(x, dt.Tensor)
            ]
        )
    return result


def random_array(draw: random.Random, sizes: tuple[int, ...], values: list[Any]) -> Any:
    """Return an array of random values."""
    dtype = {bool: bool, int: int}.get(type(values[0]), float)
    count = int(numpy.prod(sizes))
    return np.array([draw.choice(values) for _ in range(count)], dtype=dtype).reshape(sizes)


def random_shape(draw: random.Random) -> tuple[int, ...]:
    """Return a shape of up to four axes, or a longer vector."""
    if draw.random() < 0.3:
        return (draw.choice([33, 64, 200, 700]),)
    return tuple(draw.randint(1, 4) for _ in range(draw.randint(0, 4)))


def random_operands(draw: random.Random, kinds: list[list[Any]] | None = None) -> tuple[Any, Any]:
    """Return an array, transposed or not, and one that broadcasts to it, or a number."""
    shape, lists = random_shape(draw), kinds or [FLOATS, FLOATS, INTEGERS]
    values = draw.choice(lists)
    others = draw.choice(lists)
    sizes = tuple(draw.choice([1, n]) for n in shape)[draw.randint(0, len(shape)) :]
    turned = random_array(draw, shape[::-1], values).T
    x = turned if draw.random() < 0.5 else random_array(draw, shape, values)
    other = random_array(draw, sizes, others)
    return x, draw.choice([other, other, *(NUMBERS if kinds is None else [])])


def equal_bits(function: Any, *operands: Any) -> bool:
    """Return True if a function raises the same, or has the same bits, at once and by kernels."""
    try:
        expected = by_kernel(function, *operands)
    except (TypeError, ValueError) as error:
        with pytest.raises(type(error)):
            function(*operands)
        return True
    result = function(*operands)
    if isinstance(expected, tuple):
        return [*map(bits, result)] == [*map(bits, expected)]
    return bits(result) == bits(expected)


@pytest.mark.parametrize("seed", range(12))
def test_operators_have_the_bits_of_kernels(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        x, y = random_operands(draw)
        for function in OPERATORS:
            assert equal_bits(function, x, y), (function, x, y)
            assert equal_bits(function, y, x), (function, y, x)
        for function in UNARY:
            assert equal_bits(function, x), (function, x)


@pytest.mark.parametrize("seed", range(12))
def test_bitwise_operators_have_the_bits_of_kernels(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        x, y = random_operands(draw, [[True, False], INTEGERS])
        for function in (*BITWISE, operator.lt, operator.eq):
            assert equal_bits(function, x, y), (function, x, y)
        assert equal_bits(operator.invert, x), x


@pytest.mark.parametrize("seed", range(12))
def test_reductions_have_the_bits_of_kernels(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(6):
        shape = random_shape(draw)
        values = draw.choice(
            [FLOATS, [0.1, -0.7, 1e16, 3.3, -0.0], [-0.0, 0.0], INTEGERS, [False, True]]
        )
        x = random_array(draw, shape, values)
        x = x[::-1].T if shape and draw.random() < 0.5 else x
        axis = draw.choice([None, *range(-x.ndim, x.ndim)])
        options = draw.choice([{}, {"keepdims": True}])
        for name in HOST_REDUCTIONS:
            function = partial(getattr(np, name), axis=axis, **options)
            assert equal_bits(function, x), (name, axis, x)
            if hasattr(x, name):
                assert equal_bits(operator.methodcaller(name, axis, **options), x), (name, axis, x)


def add_at(x: Any) -> Any:
    """Return sums of elements at repeated indices."""
    total = np.ones(7) if x.dtype.kind == "f" else np.ones(7, dtype=int)
    np.add.at(total, np.arange(x.size) % 7 - 2, x)
    np.add.at(total, [1, 1], 2)
    return total


SMALL_FUNCTIONS: list[Any] = [
    np.median, partial(np.percentile, q=30), lambda x: np.percentile(x, 77.7),
    lambda x: np.quantile(x, 0.125), lambda x: np.quantile(x, 1), np.linalg.norm,
    lambda x: np.outer(x, x[::-1]), lambda x: np.append(x, 2), lambda x: np.append(x, 0.5),
    lambda x: np.append(x, x), lambda x: np.delete(x, -1), lambda x: np.delete(x, [0]),
    np.diag, lambda x: np.diag(x, 2), lambda x: np.diag(x, -1), np.unique,
    lambda x: np.unique(x, return_counts=True, return_inverse=True), np.bincount,
    lambda x: np.bincount(x, minlength=40), lambda x: np.bincount(x, x * 0.7), add_at,
    np.nonzero, np.flatnonzero, np.where, np.argwhere,
    lambda x: np.where(x > 0, x, 0), lambda x: np.where(x > 0, 1, 2), lambda x: np.where(x, 0.5, x),
    lambda x: np.where(x[:, None] > 0, x, x[:, None]), lambda x: np.clip(x, -1, 1),
    lambda x: np.clip(x, x[::-1], 0.5), lambda x: x @ x, lambda x: np.dot(x, x[::-1]),
    lambda x: np.linalg.qr(x[:4, None] * x[:3]), lambda x: np.linalg.svd(x[:3, None] - x[:4]),
    lambda x: np.linalg.eigh(np.outer(x[:3], x[:3])),
]  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_small_functions_have_the_bits_of_kernels(seed: int) -> None:
    draw = random.Random(seed)
    lists: list[list[Any]] = [
        FLOATS[:3] + FLOATS[8:],
        FLOATS,
        [3, 1, 0, 2, 9],
        [True, False],
        [-1, 4],
    ]
    for values in [*lists, [draw.gauss(0, 1) for _ in range(50)]]:
        x = random_array(draw, (draw.choice([1, 2, 5, 8, 33, 100]),), values)
        for function in SMALL_FUNCTIONS:
            assert equal_bits(function, x), (SMALL_FUNCTIONS.index(function), x)


def test_ranges_and_zeros_are_numpys() -> None:
    for ends in ((5,), (0,), (-3,), (2, 9), (9, 2), (9, 2, -2), (9, 2, -7), (0, 7, 3), (2, 3, 5)):
        assert bits(np.arange(*ends)) == bits(numpy.arange(*ends))
    for shape in (3, 0, (), (2, 0), [2, 3], numpy.int64(2), (numpy.int64(1), 2)):
        assert bits(np.zeros(shape)) == bits(numpy.zeros(shape))
    for wrong in (-1, (2, -1), 2.5):
        with pytest.raises((ValueError, TypeError)):
            np.zeros(wrong)


@pytest.mark.parametrize("seed", range(12))
def test_updates_have_the_bits_of_kernels_and_are_seen_by_views(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(4):
        x, y = random_operands(draw)
        if not x.ndim or (
            x.dtype is dt.int64 and getattr(y, "dtype", type(y)) in (float, dt.float64)
        ):
            continue
        for function in UPDATES if x.dtype is dt.float64 else [*UPDATES[:3], operator.ior]:
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
        assert (x.sum(), np.max(x), np.dot(x, y), np.maximum(x, 9)[0]) == (20, 4, 20, 9)
        return ((x @ y) / (x - y)[1:]).tolist(), (x > y).tolist()

    gc.collect()  # after errors of indices that a test kept, nothing is done at once
    work()  # its writes find the nodes that were recorded before
    before = counters.launches + counters.calls
    assert work() == ([20 / 3] * 4, [True] * 5)
    assert counters.launches + counters.calls == before
    large = np.ones(2000)
    launches = counters.launches
    dt.evaluate(large + large)
    assert counters.launches == launches + 1


def test_gradient_and_capture_record_the_op() -> None:
    x = np.arange(3) * 1.0
    x.requires_grad = True
    (x * x).sum().backward()
    assert x.grad.tolist() == [0, 2, 4]
    assert dt.jit(lambda v: v * 2 + v)(np.arange(3) * 1.0).tolist() == [0, 3, 6]
