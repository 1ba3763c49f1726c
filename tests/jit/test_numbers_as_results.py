"""Numbers that captured functions of NumPy's namespace return: those of a plain call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import dovetail.numpy as np
import numpy
import pytest

FUNCTIONS: list[tuple[str, Callable[[Any], Any]]] = [
    ("sum", lambda x: x.sum()),
    ("max of ints", lambda x: x.astype(int).max()),
    ("bool", lambda x: (x > 1).any()),
    ("element", lambda x: x[1, 2]),
    ("norm", lambda x: np.linalg.norm(x) * 2),
    ("float32", lambda x: np.dot(x[0].astype(np.float32), x[1].astype(np.float32))),
    ("complex", lambda x: (x * 1j).sum()),
    ("containers", lambda x: {"mean": x.mean(), "parts": [x.min(), (x, np.argmax(x))]}),
    ("array of no dimensions", lambda x: np.asarray(x.sum())),
    ("NaN", lambda x: (x * np.inf).sum()),
]


def describe(value: Any) -> Any:
    """Return the types and the bits of a nested result."""
    if isinstance(value, dict):
        return {k: describe(v) for k, v in value.items()}
    if isinstance(value, tuple | list):
        return type(value), [*map(describe, value)]
    bits = numpy.asarray(value)
    return type(value), bits.dtype, bits.shape, bits.tobytes()


@pytest.mark.parametrize("f", [pytest.param(f, id=name) for name, f in FUNCTIONS])
@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_returned_numbers_have_types_and_bits_of_a_plain_call(f: Any, device: str) -> None:
    if device == "cpu":
        pytest.importorskip("dovetail_cpu_llvm")
    captured = dt.jit(f, fullgraph=True)
    for seed in range(3):
        x = np.random.default_rng(seed).normal(size=(3, 4)).to(device)
        assert describe(captured(x)) == describe(f(x))
    assert captured.captures == 1


def test_number_that_is_returned_twice_is_one_object() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        return total, total, x.sum()

    captured = dt.jit(f, fullgraph=True)
    for _ in range(2):
        a, b, c = captured(np.arange(3.0))
        assert a is b and c is not a and type(a) is numpy.float64


def test_number_after_a_read_ends_the_trace_is_plain() -> None:
    def f(x: Any) -> Any:
        total = x.sum()
        return (total if float(x.max()) > 1 else -total), total

    captured = dt.jit(f)
    with pytest.warns(dt.DovetailWarning):
        results = [captured(np.arange(3.0)) for _ in range(2)]
    assert [[*map(type, r)] for r in results] == [[numpy.float64] * 2] * 2


def test_number_with_a_gradient_stays_an_array() -> None:
    def f(x: Any) -> Any:
        return (x * x).sum()

    captured = dt.jit(f)
    for _ in range(2):
        x = np.arange(3.0)
        x.requires_grad = True
        loss = captured(x)
        assert type(loss) is type(f(x)) is np.ndarray
        loss.backward()
        assert x.grad.tolist() == [0, 2, 4]


def test_argument_that_is_a_number_is_returned_itself() -> None:
    numbers: list[Any] = []

    def make(x: Any) -> Any:
        numbers.append(x.sum())
        return numbers[0] + 1

    make_captured = dt.jit(make)
    assert type(make_captured(np.arange(3.0))) is numpy.float64
    assert float(numbers[0]) == 3


def test_nested_captures_return_numbers_once() -> None:
    inner = dt.jit(lambda x: x.sum())
    outer = dt.jit(lambda x: inner(x) * x, fullgraph=True)
    for _ in range(2):
        assert outer(np.arange(3.0)).tolist() == [0, 3, 6]
