"""Rule 2 of captures: the alias pattern of tensors is part of the key."""

from __future__ import annotations

from contextvars import ContextVar
from types import SimpleNamespace

import dovetail as dt
import numpy as np


def test_argument_that_was_the_closure_tensor_at_capture_may_be_another(device: dt.Device) -> None:
    x, other = dt.asarray([[1.0, 2.0], [3.0, 4.0]]), dt.asarray([[2.0, 0.0], [0.0, 2.0]])
    product = dt.jit(lambda a: (a[:, None, :] * x).sum(axis=-1))
    product(x)
    assert product(other).tolist() == [[2.0, 6.0], [4.0, 8.0]]


def test_argument_that_is_a_view_of_the_closure_at_capture_may_be_another(
    device: dt.Device,
) -> None:
    x = dt.asarray([1.0, 2.0])
    f = dt.jit(lambda a: a * 2 + x)
    f(x[:])
    assert f(dt.asarray([5.0, 5.0])).tolist() == [11.0, 12.0]


def test_write_to_the_closure_leaves_another_argument_alone(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])

    def write(a: dt.Tensor) -> dt.Tensor:
        x[...] = x + 1
        return a * 1

    f = dt.jit(write)
    assert f(x).tolist() == [2.0, 3.0]
    assert f(dt.asarray([5.0, 5.0])).tolist() == [5.0, 5.0]
    assert x.tolist() == [3.0, 4.0]


def test_two_names_of_one_closure_tensor_may_become_two_tensors(device: dt.Device) -> None:
    online = dt.asarray([1.0, 2.0])
    net = {"online": online, "target": online}
    f = dt.jit(lambda x: x * net["online"] + net["target"])
    assert f(dt.ones(2)).tolist() == [2.0, 4.0]
    net["target"] = dt.asarray([10.0, 20.0])
    assert f(dt.ones(2)).tolist() == [11.0, 22.0]
    net["target"] = online
    assert f(dt.ones(2)).tolist() == [2.0, 4.0]
    assert f.captures == 2


def test_two_names_of_one_container_may_become_two_containers(device: dt.Device) -> None:
    online = SimpleNamespace(w=dt.asarray([1.0, 2.0]))
    net = SimpleNamespace(online=online, target=online)
    f = dt.jit(lambda x: x * net.online.w + net.target.w)
    f(dt.ones(2))
    net.target = SimpleNamespace(w=dt.asarray([10.0, 20.0]))
    assert f(dt.ones(2)).tolist() == [11.0, 22.0]


def test_gradient_goes_only_to_the_closure_if_the_argument_is_another(
    device: dt.Device,
) -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    f = dt.jit(lambda a: dt.grad((a * x).sum(), x))
    assert f(x).tolist() == [2.0, 4.0]
    assert f(dt.asarray([5.0, 6.0]).requires_grad_()).tolist() == [5.0, 6.0]


def test_two_parameters_may_become_one(device: dt.Device) -> None:
    p, q = (dt.asarray([v]).requires_grad_() for v in (2.0, 3.0))
    model = SimpleNamespace(p=p, q=q)

    def step() -> None:
        (model.p * model.q).sum().backward()

    f = dt.jit(step)
    f()
    model.q, p.grad = p, None
    f()
    assert p.grad is not None and p.grad.tolist() == [4.0]


def test_arguments_that_are_written_may_be_one_tensor_at_a_later_call(device: dt.Device) -> None:
    def write(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        before = y * 1
        x += 1
        return before + y

    f = dt.jit(write)
    assert f(dt.asarray([1.0]), dt.asarray([3.0])).tolist() == [6.0]
    both = dt.asarray([1.0])
    assert f(both, both).tolist() == [3.0]


def test_arguments_over_the_same_foreign_memory_have_another_key(device: dt.Device) -> None:
    def write(x: dt.Tensor, y: dt.Tensor) -> dt.Tensor:
        before = y * 1
        x += 1
        return before + y

    f = dt.jit(write)
    f(dt.zeros(2), dt.zeros(2))
    memory = np.zeros(2, "f4")
    x, y = (dt.from_dlpack(memory, device=device) for _ in range(2))
    assert f(x, y).tolist() == write(*(dt.zeros(2),) * 2).tolist()
    assert memory.tolist() == [1.0, 1.0]


def test_constant_that_has_another_name_at_capture_may_lose_it(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    model, source = SimpleNamespace(w=x), ContextVar("source", default=x)
    f = dt.jit(lambda a: a + model.w * 10 + dt.constant(source.get()))
    assert f(dt.zeros(2)).tolist() == [11.0, 22.0]
    model.w = dt.asarray([5.0, 6.0])
    assert f(dt.zeros(2)).tolist() == [51.0, 62.0]


def test_argument_that_was_a_constant_at_capture_may_be_another(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0])
    source = ContextVar("source", default=x)
    f = dt.jit(lambda a: a * 10 + dt.constant(source.get()))
    assert f(x).tolist() == [11.0, 22.0]
    assert f(dt.zeros(2)).tolist() == [1.0, 2.0]
    x += 1
    assert f(x).tolist() == [22.0, 33.0]
