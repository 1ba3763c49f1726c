"""An index out of range raises even if only the gradient is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail import func
from dovetail.nn import functional as F
from installed import INSTALLED

DEVICES = ("reference", "cpu", "opencl", "opencl:1")
Program = Callable[[Any, Any], Any]


def put(x: Any, i: Any, value: Any) -> Any:
    y = x * 1.0
    y[i] = value
    return y


def others(x: Any) -> Any:
    return dt.asarray([1.0, 2.0, 3.0], device=x.device)


# Of a vector of 3 elements and an index: one for each function that reads or writes at indices.
PROGRAMS: dict[str, Program] = {
    "x[i]": lambda x, i: x[i],
    "x[0, i]": lambda x, i: x.reshape(1, 3)[0, i],
    "x[i, i]": lambda x, i: (x.reshape(3, 1) * x)[i, i],
    "x[i] of one axis more": lambda x, i: x.reshape(3, 1)[i],
    "x[i] floor": lambda x, i: dt.floor(x[i]),
    "floor x[i]": lambda x, i: dt.floor(x)[i],
    "take": lambda x, i: dt.take(x, i),
    "take_along_axis": lambda x, i: dt.take_along_axis(x, i),
    "take_along_axis of rows": lambda x, i: dt.take_along_axis(
        x.reshape(1, 3), i.reshape(1, -1), axis=1
    ),
    "log_softmax": lambda x, i: dt.take_along_axis(
        dt.log_softmax(x.reshape(1, 3)), i[:1].reshape(1, 1), axis=1
    ),
    "index_add to": lambda x, i: dt.index_add(x, 0, i, others(x)[:1]),
    "index_add of": lambda x, i: dt.index_add(others(x), 0, i, x[:1]),
    "scatter to": lambda x, i: dt.scatter(x, 0, i, others(x)[:1]),
    "scatter of": lambda x, i: dt.scatter(others(x), 0, i, x[:1]),
    "setitem to": lambda x, i: put(x, i, 5.0),
    "setitem of": lambda x, i: put(others(x), i, x[:1]),
    "one_hot": lambda x, i: x * F.one_hot(i, 3).sum(0),
    "one_hot added": lambda x, i: x + F.one_hot(i, 3).sum(0),
    "index elsewhere": lambda x, i: x + others(x)[i],
    "index elsewhere, flat": lambda x, i: dt.floor(x) + others(x)[i],
    "embedding": lambda x, i: F.embedding(i, x.reshape(3, 1)),
    "embedding sparse": lambda x, i: F.embedding(i, x.reshape(3, 1), sparse=True),
    "embedding_bag": lambda x, i: F.embedding_bag(i.reshape(1, 1), x.reshape(3, 1)),
    "nll_loss": lambda x, i: F.nll_loss(x.reshape(1, 3), i),
    "cross_entropy": lambda x, i: F.cross_entropy(x.reshape(1, 3), i),
    "multi_margin_loss": lambda x, i: F.multi_margin_loss(x.reshape(1, 3), i),
    "checkpoint": lambda x, i: dt.autograd.checkpoint(lambda t: t[i], x),
    "vmap": lambda x, i: dt.vmap(lambda k: x[k.reshape(1)])(i),
}  # fmt: skip


@pytest.fixture(params=DEVICES)
def device_name(request: pytest.FixtureRequest) -> str:
    name = request.param
    if name != "reference" and name.partition(":")[0] not in INSTALLED:
        pytest.skip(f"the backend for {name} is not installed")
    if name not in [str(d) for d in dt.devices()]:
        pytest.skip(f"{name} is not here")
    return str(name)


def operands(device_name: str, index: int) -> tuple[Any, Any]:
    x = dt.asarray(np.array([1.0, 2.0, 3.0], np.float32), device=device_name).requires_grad_()
    return x, dt.asarray([index], device=device_name)


def expect_error(device_name: str, work: Callable[[], Any]) -> None:
    with pytest.raises(
        dt.OutOfRangeError,
        match=r"7 is out of range for axis . of size 3|from 0 to 2 for 3 classes, got 7",
    ):
        work()
    while True:  # errors that were not reported yet are raised by the next synchronization
        try:
            dt.synchronize(device_name)
            return
        except dt.OutOfRangeError:
            continue


@pytest.mark.parametrize("program", PROGRAMS)
def test_grad_raises_if_an_index_is_out_of_range(device_name: str, program: str) -> None:
    x, i = operands(device_name, 7)
    expect_error(device_name, lambda: dt.grad(PROGRAMS[program](x, i).sum(), x).tolist())


@pytest.mark.parametrize("program", PROGRAMS)
def test_backward_raises_if_an_index_is_out_of_range(device_name: str, program: str) -> None:
    x, i = operands(device_name, 7)

    def work() -> None:
        PROGRAMS[program](x, i).sum().backward()
        x.grad.tolist()

    expect_error(device_name, work)


@pytest.mark.parametrize("program", PROGRAMS)
def test_grad_returns_gradients_if_the_index_is_in_range(device_name: str, program: str) -> None:
    x, i = operands(device_name, 2)
    f = PROGRAMS[program]
    want = dt.grad(f(x, [2] if program == "x[i]" else i).sum(), x)
    y = f(x, i).sum()
    dt.evaluate(y)
    assert dt.grad(y, x).tolist() == want.tolist()


@pytest.mark.parametrize(
    "transform",
    [
        lambda x, i: func.grad(lambda t: t[i].sum())(x),
        lambda x, i: func.grad(lambda t: dt.take_along_axis(t, i).sum())(x),
        lambda x, i: func.jvp(lambda t: t[i], (x,), (x,))[1],
        lambda x, i: func.vjp(lambda t: t[i], x)[1](dt.ones(1, device=x.device))[0],
        lambda x, i: func.jacrev(lambda t: t[i])(x),
        lambda x, i: func.hessian(lambda t: (t[i] ** 3).sum())(x),
        lambda x, i: dt.vmap(func.grad(lambda t, k: t[k.reshape(1)].sum()), (None, 0))(x, i),
        lambda x, i: dt.vmap(func.grad(lambda t: t[i].sum()))(x.reshape(1, 3)),
        lambda x, i: dt.jit(func.grad(lambda t, k: t[k].sum()))(x, i),
    ],
    ids=["grad", "grad along", "jvp", "vjp", "jacrev", "hessian", "vmap of index", "vmap", "jit"],
)
def test_transforms_raise_if_an_index_is_out_of_range(device_name: str, transform: Program) -> None:
    x, i = operands(device_name, 7)
    expect_error(device_name, lambda: transform(x.detach(), i).tolist())
