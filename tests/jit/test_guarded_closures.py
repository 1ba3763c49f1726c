"""Rule 3 of captures: paths to tensors, and numbers that the code names, are guarded."""

from __future__ import annotations

from collections import deque
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import pytest

GLOBAL_SCALE = 2.0


def ones() -> dt.Tensor:
    return dt.ones(2)


def test_class_attribute_is_read_again(device: dt.Device) -> None:
    class Model:
        w = dt.asarray([1.0, 2.0])

        def __call__(self, x: dt.Tensor) -> dt.Tensor:
            return x * self.w

    model = Model()
    f = dt.jit(lambda x: model(x))
    f(ones())
    Model.w = dt.asarray([5.0, 6.0])
    assert f(ones()).tolist() == [5.0, 6.0]
    model.w = dt.asarray([7.0, 8.0])
    assert f(ones()).tolist() == [7.0, 8.0]


def test_globals_of_a_method_that_the_function_calls_are_read_again(device: dt.Device) -> None:
    table = SimpleNamespace(w=dt.asarray([1.0, 2.0]))

    class Model(dt.nn.Module):
        def forward(self, x: dt.Tensor) -> dt.Tensor:
            return x * table.w

    model = Model()
    f = dt.jit(lambda x: model(x))
    f(ones())
    table.w = dt.asarray([5.0, 6.0])
    assert f(ones()).tolist() == [5.0, 6.0]


@pytest.mark.parametrize("kind", [list, deque])
def test_item_of_a_sequence_is_read_again(device: dt.Device, kind: Any) -> None:
    held = kind([dt.asarray([1.0, 2.0])])
    f = dt.jit(lambda x: x * held[0])
    f(ones())
    held[0] = dt.asarray([5.0, 6.0])
    assert f(ones()).tolist() == [5.0, 6.0]
    assert f.captures == 1


@pytest.mark.parametrize("kind", [list, deque])
@pytest.mark.parametrize("before", [0, 1])
def test_sequence_that_grows_is_captured_again(device: dt.Device, kind: Any, before: int) -> None:
    held = kind([dt.asarray([1.0, 2.0])] * before)
    f = dt.jit(lambda x: sum((w * x for w in held), x))
    f(ones())
    held.append(dt.asarray([5.0, 6.0]))
    assert f(ones()).tolist() == [6.0 + before, 7.0 + 2 * before]
    held.pop()
    assert f(ones()).tolist() == [1.0 + before, 1.0 + 2 * before]


def test_last_item_of_a_list_that_grows_is_the_new_one(device: dt.Device) -> None:
    model = SimpleNamespace(layers=[dt.asarray([1.0, 2.0])])
    f = dt.jit(lambda x: x * model.layers[-1])
    f(ones())
    model.layers.append(dt.asarray([5.0, 6.0]))
    assert f(ones()).tolist() == [5.0, 6.0]


def test_dict_that_gets_another_key_is_captured_again(device: dt.Device) -> None:
    held = {"a": dt.asarray([1.0, 2.0])}
    f = dt.jit(lambda x: sum((w * x for w in held.values()), x))
    f(ones())
    held["b"] = dt.asarray([5.0, 6.0])
    assert f(ones()).tolist() == [7.0, 9.0]


def test_replaced_layer_of_a_network_is_read_again(device: dt.Device) -> None:
    net = dt.nn.Sequential(dt.nn.Linear(2, 2), dt.nn.Tanh())
    f = dt.jit(lambda x: net(x))
    f(ones())
    net[1] = dt.nn.Linear(2, 2)
    assert f(ones()).tolist() == net(ones()).tolist()
    net.append(dt.nn.Linear(2, 3))
    assert f(ones()).tolist() == net(ones()).tolist()


def test_replaced_helper_is_captured_again(device: dt.Device) -> None:
    w = dt.asarray([1.0, 2.0])
    held = SimpleNamespace(helper=lambda x: x * w)
    f = dt.jit(lambda x: held.helper(x))
    f(ones())
    held.helper = lambda x: x - w
    assert f(ones()).tolist() == [0.0, -1.0]


@pytest.mark.parametrize("values", [(2.0, 3.0), (0.0, -0.0), (1, True), (None, 1), ("a", "b")])
def test_number_that_the_code_names_is_static(device: dt.Device, values: tuple[Any, Any]) -> None:
    def meaning(x: dt.Tensor, v: Any) -> dt.Tensor:
        return x * {"2.0": 2, "3.0": 3, "0.0": 4, "-0.0": 5, "1": 6, "True": 7}.get(repr(v), 8)

    first, second = values
    model, cell = SimpleNamespace(k=first), first
    by_attribute = dt.jit(lambda x: meaning(x, model.k))
    by_cell = dt.jit(lambda x: meaning(x, cell))
    for f in (by_attribute, by_cell):
        f(ones())
    model.k = cell = second
    want = meaning(ones(), second).tolist()
    assert by_attribute(ones()).tolist() == by_cell(ones()).tolist() == want


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.bool_])
def test_numpy_number_that_the_code_names_is_static(device: dt.Device, kind: Any) -> None:
    model, cell = SimpleNamespace(k=kind(0)), kind(0)
    f = dt.jit(lambda x: x * int(model.k) + int(cell))
    assert f(ones()).tolist() == [0.0, 0.0]
    model.k = kind(1)
    assert f(ones()).tolist() == [1.0, 1.0]
    cell = kind(1)
    assert f(ones()).tolist() == [2.0, 2.0]


def test_global_number_is_static(device: dt.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    f = dt.jit(lambda x: x * GLOBAL_SCALE)
    f(ones())
    monkeypatch.setitem(globals(), "GLOBAL_SCALE", 3.0)
    assert f(ones()).tolist() == [3.0, 3.0]
    monkeypatch.setitem(globals(), "GLOBAL_SCALE", 2.0)
    assert f(ones()).tolist() == [2.0, 2.0]
    assert f.captures == 2


def test_number_that_the_code_does_not_name_causes_no_capture(device: dt.Device) -> None:
    trainer = SimpleNamespace(w=dt.asarray([1.0, 2.0]), epoch=0)
    f = dt.jit(lambda x: x * trainer.w)
    for trainer.epoch in range(3):
        f(ones())
    assert f.captures == 1


def test_counter_of_calls_causes_no_capture(device: dt.Device) -> None:
    calls = 0

    @dt.jit
    def f(x: dt.Tensor) -> dt.Tensor:
        nonlocal calls
        calls += 1
        return x + 1

    for _ in range(3):
        f(ones())
    assert f.captures == calls == 1


def test_numpy_array_is_read_again(device: dt.Device) -> None:
    held = np.array([1.0, 2.0], "f4")
    scale, target = dt.jit(lambda x: x * held), dt.zeros(2)

    @dt.jit
    def write(x: dt.Tensor) -> dt.Tensor:
        x[...] = held
        return x * 1

    scale(ones()), write(target)
    held[:] = 5.0
    assert scale(ones()).tolist() == write(target).tolist() == [5.0, 5.0]
    held = np.array([7.0, 8.0], "f4")
    assert scale(ones()).tolist() == write(target).tolist() == [7.0, 8.0]


def test_argument_object_is_read_instead_of_an_equal_one_of_the_capture(device: dt.Device) -> None:
    class Named:
        def __init__(self, w: dt.Tensor) -> None:
            self.w = w

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Named)

        def __hash__(self) -> int:
            return 1

    f = dt.jit(lambda x, named: x * named.w)
    f(ones(), Named(dt.asarray([1.0, 2.0])))
    assert f(ones(), Named(dt.asarray([5.0, 6.0]))).tolist() == [5.0, 6.0]


def test_large_closure_is_searched_once(device: dt.Device) -> None:
    """Names that are found late must not restart a long search."""
    many = [SimpleNamespace(i=str(i)) for i in range(6000)]
    late = SimpleNamespace(scale=dt.asarray([1.0, 2.0]), step=lambda x: x * late.scale)
    f = dt.jit(lambda x: late.step(x) + len(many))
    assert f(ones()).tolist() == [6001.0, 6002.0]
    late.scale = dt.asarray([3.0, 4.0])
    assert f(ones()).tolist() == [6003.0, 6004.0]
    assert f.captures == 1


def test_tensor_at_the_end_of_a_long_chain_is_read_again(device: dt.Device) -> None:
    first = last = SimpleNamespace()
    for _ in range(3000):
        last.next = SimpleNamespace()
        last = last.next
    last.w = dt.asarray([1.0, 2.0])

    def end_of(node: SimpleNamespace) -> dt.Tensor:
        while hasattr(node, "next"):
            node = node.next
        return node.w

    f = dt.jit(lambda x: x * end_of(first))
    f(ones())
    last.w = dt.asarray([3.0, 4.0])
    assert f(ones()).tolist() == [3.0, 4.0]


def test_array_computed_by_numpy_from_the_closure_is_compared(device: dt.Device) -> None:
    a = np.asarray([1.0, 2.0], dtype=np.float32)
    f = dt.jit(lambda x: x * dt.asarray(a[::-1] * 2))
    assert f(ones()).tolist() == f(ones()).tolist() == [4.0, 2.0]
    a[0] = 5.0
    assert f(ones()).tolist() == [4.0, 10.0]
    assert f.captures == 2


class Memory:
    """A user's container, whose length Python reads by a method."""

    def __init__(self) -> None:
        self.items: list[dt.Tensor] = []

    def __len__(self) -> int:
        return len(self.items)


class Learner:
    def __init__(self, memory: Memory) -> None:
        self.weight, self.memory = dt.ones(3), memory

    def double(self) -> dt.Tensor:
        self.weight *= 2
        return self.weight

    def count(self) -> dt.Tensor:
        return self.weight * len(self.memory)

    def count_again(self) -> dt.Tensor:
        return self.weight * len(vars(self)["memory"])


def test_object_that_the_code_does_not_name_may_change(device: dt.Device) -> None:
    learner = Learner(Memory())
    double = dt.jit(learner.double)
    for n in range(4):
        assert double().tolist() == [2.0 ** (n + 1)] * 3
        learner.memory.items.append(dt.ones(n))
    assert double.captures == 1


@pytest.mark.parametrize("name", ["count", "count_again"])
def test_object_that_the_code_names_is_compared(device: dt.Device, name: str) -> None:
    learner = Learner(Memory())
    count = dt.jit(getattr(learner, name))
    for n in range(3):
        assert count().tolist() == [float(n)] * 3
        learner.memory.items.append(dt.ones(1))
    assert count.captures == 3


def test_object_is_compared_also_by_a_longer_path_that_the_code_names(device: dt.Device) -> None:
    memory = Memory()
    learner = Learner(memory)
    holder = SimpleNamespace(chest=SimpleNamespace(inner=SimpleNamespace(learner=learner)))
    learner.holder = holder  # type: ignore[attr-defined]  # an unnamed way to the memory is shorter

    class Reader:
        def __init__(self) -> None:
            self.unnamed, self.way = memory, holder

        def read(self) -> dt.Tensor:
            return dt.ones(1) * len(self.way.chest.inner.learner.memory)

    read = dt.jit(Reader().read)
    for n in range(3):
        assert read().tolist() == [float(n)]
        memory.items.append(dt.ones(1))
    assert read.captures == 3
