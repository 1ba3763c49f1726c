"""Containers of the user's, registered with optree, as docs/jit-in-detail.md describes them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import dovetail as dt
import optree
import pytest

EVERYWHERE = vars(optree.registry)["__GLOBAL_NAMESPACE"]


class Pair:
    """Two tensors, and a name that is no leaf."""

    def __init__(self, a: Any, b: Any, name: str = "") -> None:
        self.a, self.b, self.name = a, b, name

    def values(self) -> list[Any]:
        return [self.a.tolist(), self.b.tolist(), self.name]


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    optree.register_pytree_node(
        Pair,
        lambda pair: ((pair.a, pair.b), pair.name),
        lambda name, leaves: Pair(*leaves, name),
        namespace=EVERYWHERE,
    )
    yield
    optree.unregister_pytree_node(Pair, namespace=EVERYWHERE)


def pair(x: float, y: float, name: str = "") -> Pair:
    return Pair(dt.asarray([float(x)]), dt.asarray([float(y)]), name)


def test_registered_container_is_an_argument_and_a_result_and_its_metadata_is_static() -> None:
    swap = dt.jit(lambda p: Pair(p.b * 2, p.a, p.name + "!"))
    assert swap(pair(1, 2)).values() == [[4.0], [1.0], "!"]
    assert swap(pair(3, 4)).values() == [[8.0], [3.0], "!"]
    assert swap.captures == 1
    assert swap(pair(3, 4, "n")).values() == [[8.0], [3.0], "n!"]
    assert swap.captures == 2


def test_registered_container_is_carried_by_loops_branches_vmap_and_grad() -> None:
    p = pair(1, 2)
    last, rows = dt.scan(lambda c, x: (Pair(c.a + x, c.b), c.a), p, dt.ones((2, 1)))
    assert last.values() == [[3.0], [2.0], ""] and rows.tolist() == [[1.0], [2.0]]
    assert dt.fori_loop(0, 3, lambda i, c: Pair(c.b, c.a), p).values() == [[2.0], [1.0], ""]
    loop = dt.while_loop(lambda c: (c.a < 4).all(), lambda c: Pair(c.a + 1, c.b), p)
    assert loop.values() == [[4.0], [2.0], ""]
    swap, keep = (lambda c: Pair(c.b, c.a)), (lambda c: Pair(c.a, c.b))
    assert dt.cond(dt.asarray(True), swap, keep, p).values() == [[2.0], [1.0], ""]
    assert dt.vmap(keep, in_axes=(Pair(0, None),))(p).values() == [[1.0], [[2.0]], ""]
    assert dt.func.grad(lambda c: (c.a * c.b).sum())(p).values() == [[2.0], [1.0], ""]


def test_registered_container_cannot_be_saved(tmp_path: Any) -> None:
    f = dt.jit(lambda p: p.a + p.b)
    f(pair(1, 2))
    with pytest.raises(dt.CaptureError, match="got Pair"):
        dt.save_function(f, os.fspath(tmp_path / "f"))


def test_argument_of_an_unregistered_class_is_static_and_its_tensors_are_read_again() -> None:
    class Plain:
        def __init__(self, a: dt.Tensor) -> None:
            self.a = a

    f, x = dt.jit(lambda p: p.a * 2), Plain(dt.asarray([1.0]))
    assert f(x).tolist() == [2.0]
    x.a = dt.asarray([3.0])
    assert f(x).tolist() == [6.0] and f.captures == 1
    assert f(Plain(dt.asarray([5.0]))).tolist() == [10.0] and f.captures == 2


class Holder:
    def __init__(self, value: object) -> None:
        self.value = value


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value


HOLDERS: dict[str, Callable[[dt.Tensor], object]] = {
    "attribute": Holder,
    "list": lambda x: Holder([x]),
    "nested": lambda x: Holder({"a": (Holder(x),)}),
    "slot": Slotted,
    "closure": lambda x: lambda: x,
    "partial": lambda x: partial(max, x),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_result_that_leads_to_new_tensors_is_refused(name: str) -> None:
    f = dt.jit(lambda x: (x, HOLDERS[name](x * 2)))
    with pytest.raises(dt.CaptureError, match="that leads to a new tensor"):
        f(dt.ones(2))


def test_result_of_an_unregistered_class_with_old_tensors_is_returned_again() -> None:
    held = Holder(dt.ones(2))
    f = dt.jit(lambda x: (x * 2, held))
    for _ in range(2):
        assert f(dt.ones(2))[1] is held
