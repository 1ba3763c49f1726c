"""The log of weak references to pending nodes: a dead reference at its end is used once more."""

from __future__ import annotations

from typing import Any
from weakref import ref

import dovetail as dt
from dovetail.graph import weak_refs
from dovetail.graph.weak_refs import append_weakly
from dovetail.locks import Lock

IS_COMPILED = not weak_refs.__file__.endswith(".py")


class Node:
    """A node, as far as the log knows."""


def appended(log: list[Any], first: int, lock: Lock) -> bool:
    """Return True if another node gets a reference of its own."""
    count, node = len(log), Node()
    append_weakly(log, node, first, lock)
    assert log[-1]() is node and ref(node) is log[-1]
    return len(log) > count


def test_dead_reference_at_the_end_of_the_log_is_reused() -> None:
    log: list[Any] = []
    assert appended(log, 0, Lock())
    assert log[-1]() is None
    assert appended(log, 0, Lock()) is not IS_COMPILED
    assert log[-1]() is None and len({hash(ref(n)) for n in [Node(), Node()]}) == 2


def test_reference_is_kept_that_is_alive_registered_shared_or_in_a_log_that_is_replaced() -> None:
    lock = Lock()
    alive = Node()
    assert appended([ref(alive)], 0, lock)
    log: list[Any] = []
    assert appended(log, 0, lock)
    assert appended(log, 1, lock)  # the first reference is registered
    shared = log[-1]
    assert appended(log, 0, lock) and shared() is None
    with lock:
        assert appended(log, 0, lock)
    calls: list[Any] = []
    log = [ref(Node(), calls.append)]
    assert appended(log, 0, lock)


def test_reader_after_dropped_statements_sees_the_memory_before_a_write() -> None:
    x = dt.asarray([1.0, 2.0], device="reference")
    for _ in range(5):
        dt.evaluate(x + 1)  # computed and dropped
        x + 2  # dropped
        reader = x * 10
        assert reader.sum().tolist() == 30.0
        last = x * 3
        x[0] = 5.0
        assert last.tolist() == [3.0, 6.0] and reader.tolist() == [10.0, 20.0]
        del reader, last
        later = x - 1
        x[0] = 1.0
        assert later.tolist() == [4.0, 1.0]
