"""Groups of tensors over one memory, and the reuse of freed tensor objects."""

from __future__ import annotations

import gc
import itertools
import weakref

import dovetail as dt
import pytest
from dovetail.tensor import c_fields
from dovetail.tensor.c_fields import AliasGroup


def compiled() -> bool:
    return not c_fields.__file__.endswith(".py")


def group_of(x: dt.Tensor) -> AliasGroup:
    group = x._aliases
    assert group is not None
    return group


def are(group: AliasGroup, *tensors: dt.Tensor) -> bool:
    return {id(t) for t in group.live_tensors()} == {id(t) for t in tensors}


def test_alias_group_contains_the_live_tensors() -> None:
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
    assert group.live_tensors() == []


def test_tensor_that_takes_other_memory_leaves_its_group() -> None:
    x = dt.zeros(10)
    y, z = x[1:], x[2:]
    group = group_of(x)
    y.set_(dt.ones(4))
    assert y._aliases is None and are(group, x, z)
    again = y[1:]
    assert are(group_of(y), y, again) and are(group, x, z)


def test_group_excludes_a_tensor_during_its_finalization() -> None:
    """A callback of a weak reference to it does not find it in the group."""
    x = dt.zeros(10)
    y, z = x[1:], x[2:]
    seen: list[bool] = []
    group = group_of(x)
    watch = weakref.ref(y, lambda r: seen.append(are(group, x, z)))
    del y
    assert seen == [True] and watch() is None


def test_tensors_in_cycles_leave_their_group_on_collection() -> None:
    class Ring:
        pass

    x = dt.zeros(10)
    for _ in range(50):
        ring = Ring()
        ring.itself, ring.view = ring, x[1:]  # type: ignore[attr-defined]
    del ring
    gc.collect()
    assert are(group_of(x), x)


def test_write_reaches_the_gradients_of_aliases() -> None:
    x, w = dt.zeros(4), dt.ones(2).requires_grad_()
    y = x[1:3]
    y += w * 3
    x.sum().backward()
    assert w.grad is not None and w.grad.tolist() == [3, 3]


def test_aliases_may_be_freed_in_any_order() -> None:
    for order in itertools.permutations(range(4)):
        x = dt.zeros(4)
        there: dict[int, dt.Tensor] = {0: x, 1: x[1:], 2: x[2:], 3: x[3:]}
        group = group_of(x)
        del x
        for i in order:
            del there[i]
            assert are(group, *there.values())


@pytest.mark.skipif(not compiled(), reason="as Python, the interpreter's allocator is asked")
def test_memory_of_freed_tensors_is_reused() -> None:
    x = dt.zeros(10)
    dt.evaluate(x)
    for _ in range(100):
        x[1:]
    gc.disable()
    try:
        before = gc.get_count()[0]
        for _ in range(500):
            x[1:-1]
        assert gc.get_count()[0] - before < 50  # each would be two more objects for the collector
        held = [x[i % 5 :] for i in range(500)]  # more than the free list holds
        assert sum(h.shape[0] for h in held) == sum(10 - i % 5 for i in range(500))
        del held
    finally:
        gc.enable()
