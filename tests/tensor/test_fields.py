"""Tensors over one memory: who is among them, however they end; memory kept for the next ones."""

from __future__ import annotations

import gc
import itertools
import weakref

import dovetail as dt
import pytest
from dovetail.tensor import c_fields
from dovetail.tensor.c_fields import Aliases


def compiled() -> bool:
    return not c_fields.__file__.endswith(".py")


def group_of(x: dt.Tensor) -> Aliases:
    group = x._aliases
    assert group is not None
    return group


def are(group: Aliases, *tensors: dt.Tensor) -> bool:
    return {id(t) for t in group.live()} == {id(t) for t in tensors}


def test_tensors_over_one_memory_are_those_that_are_there() -> None:
    x = dt.zeros(10)
    dt.evaluate(x)
    assert x._aliases is None
    a, b, c = x[1:], x[2:], x[3:]
    group = group_of(x)
    assert are(group, x, a, b, c)
    del b
    assert are(group, x, a, c)
    d = a[1:]
    del x
    assert are(group, a, c, d)
    del a, c, d
    assert group.live() == []


def test_one_that_takes_other_memory_leaves() -> None:
    x = dt.zeros(10)
    y, z = x[1:], x[2:]
    group = group_of(x)
    y.set_(dt.ones(4))
    assert y._aliases is None and are(group, x, z)
    again = y[1:]
    assert are(group_of(y), y, again) and are(group, x, z)


def test_the_others_are_there_while_one_ends() -> None:
    """Who is told of the end of one, by a weak reference, does not meet it again."""
    x = dt.zeros(10)
    y, z = x[1:], x[2:]
    seen: list[bool] = []
    group = group_of(x)
    watch = weakref.ref(y, lambda r: seen.append(are(group, x, z)))
    del y
    assert seen == [True] and watch() is None


def test_tensors_in_rings_end_as_the_collector_wants() -> None:
    class Ring:
        pass

    x = dt.zeros(10)
    for _ in range(50):
        ring = Ring()
        ring.itself, ring.view = ring, x[1:]  # type: ignore[attr-defined]
    del ring
    gc.collect()
    assert are(group_of(x), x)


def test_a_write_reaches_the_gradients_of_the_others() -> None:
    x, w = dt.zeros(4), dt.ones(2).requires_grad_()
    y = x[1:3]
    y += w * 3
    x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3, 3]


def test_they_end_in_any_order() -> None:
    for order in itertools.permutations(range(4)):
        x = dt.zeros(4)
        there: dict[int, dt.Tensor] = {0: x, 1: x[1:], 2: x[2:], 3: x[3:]}
        group = group_of(x)
        del x
        for i in order:
            del there[i]
            assert are(group, *there.values())


@pytest.mark.skipif(not compiled(), reason="as Python, the interpreter's allocator is asked")
def test_memory_of_ended_tensors_is_kept_for_new_ones() -> None:
    x = dt.zeros(10)
    dt.evaluate(x)
    for _ in range(100):
        x[1:]
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(500):
            x[1:-1]
        assert gc.get_count()[0] - before < 50  # each would be two objects more for the collector
        held = [x[i % 5 :] for i in range(500)]  # more than are kept
        assert sum(h.shape[0] for h in held) == sum(10 - i % 5 for i in range(500))
        del held
    finally:
        gc.enable()
