"""Repeated calls take the fast paths of `known_calls`, with the results of the first call."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import dovetail as dt
import pytest
from dovetail.functions import known_calls
from dovetail.functions.known_calls import concat_key, exprs_if_strided
from dovetail.ops.table import SUM

X = [3.0, -1.0, 2.0, 5.0, 0.5, 7.0]
Statement = Callable[[dt.Tensor, dt.Tensor], Any]


def put(x: dt.Tensor, key: Any, value: Any) -> dt.Tensor:
    y = x.copy()
    y[key] = value
    return y


STATEMENTS: dict[str, Statement] = {
    "index tensor": lambda x, p: x[p],
    "index tensor of rows": lambda x, p: x.reshape(3, 2)[p[:1]],
    "mask": lambda x, p: x[x > 1.0],
    "mask of a matrix": lambda x, p: x.reshape(2, 3)[x.reshape(2, 3) > 1.0],
    "empty mask": lambda x, p: x[x > 100.0],
    "take": lambda x, p: dt.take(x.reshape(3, 2), p[:1], axis=1),
    "put a tensor": lambda x, p: put(x, p, x[:2] * 2.0),
    "put a number": lambda x, p: put(x, p, 4.0),
    "put under a mask": lambda x, p: put(x, x < 1.0, 0),
    "product with a vector": lambda x, p: x.reshape(2, 3) @ x[:3],
    "product with a transposed matrix": lambda x, p: x.reshape(3, 2) @ x.reshape(3, 2).T,
    "sum": lambda x, p: x.reshape(2, 3).sum(axis=1, keepdims=True),
    "argmax": lambda x, p: dt.argmax(x),
    "concat": lambda x, p: dt.concat([x, x[:2]]),
    "stack": lambda x, p: dt.stack([x, x], axis=1),
    "stack of many": lambda x, p: dt.stack([x[i] for i in range(6)]),
    "roll": lambda x, p: dt.roll(x, 2),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_repeated_calls_equal_the_first(name: str) -> None:
    x, p = dt.asarray(X, device="reference"), dt.asarray([1, 0], device="reference")
    first, *others = (STATEMENTS[name](x, p).tolist() for _ in range(3))
    assert others == [first, first]


@pytest.mark.parametrize("name", STATEMENTS)
def test_gradients_of_repeated_calls_equal_the_first(name: str) -> None:
    x, p = (
        dt.asarray(X, device="reference").requires_grad_(),
        dt.asarray([1, 0], device="reference"),
    )
    gradients = []
    for _ in range(3):
        result = STATEMENTS[name](x, p)
        if result.dtype is not dt.int64:
            (result * result).sum().backward()
            gradients.append(x.grad.tolist())
            x.grad = None
    assert all(g == gradients[0] for g in gradients)


def test_repeated_calls_are_known() -> None:
    x, p = dt.asarray(X, device="reference"), dt.asarray([1, 0], device="reference")
    m = x.reshape(3, 2)
    for _ in range(2):
        x[p], m @ m.T, m.sum(axis=0), dt.concat([x, x])
        put(x, p, 1.0)
    exprs = exprs_if_strided([x, x])
    assert known_calls.read_cached(x, p) is not None
    assert known_calls.multiply_cached(m, m.T) is not None
    assert known_calls.reduce_cached(SUM, m, 0, False, None) is not None
    assert known_calls.concat_cached(concat_key("concat", 0, exprs), exprs) is not None
    assert known_calls.write_cached(x, p, 2.0) and x.tolist()[:2] == [2.0, 2.0]


def test_unknown_calls_are_left_to_the_general_path() -> None:
    x, y = dt.ones(3, device="reference"), dt.zeros((2, 7), device="reference")
    assert known_calls.read_cached(y, dt.asarray([0], device="reference")) is None
    assert known_calls.read_cached(x, [0, 1]) is None and known_calls.read_cached(x, 0) is None
    assert known_calls.multiply_cached(x, 3) is None
    assert known_calls.reduce_cached(SUM, x, (0,), False, None) is None
    assert not known_calls.write_cached(x, [0, 1], 1.0)
    taped = (x.requires_grad_() * 1.0).copy()
    assert not known_calls.write_cached(taped, dt.asarray([0], device="reference"), 1.0)


@pytest.mark.skipif(
    dt.__config__["hot_path"] != "compiled", reason="dovetail was installed without a C compiler"
)
def test_compiled_slices_call_no_python_function() -> None:
    """The interpreter calls a Python `__getitem__` in place of the compiled slot."""
    x, calls = dt.asarray(X, device="reference"), []

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name != "note":
            calls.append(frame.f_code.co_name)

    def slices() -> None:
        for _ in range(50):  # until the interpreter has specialised the instruction
            x[1:-1], x[2]

    slices()
    sys.setprofile(note)
    slices()
    sys.setprofile(None)
    assert calls == ["slices"]
