"""A function mapped over items by several threads."""

from __future__ import annotations

import gc
import threading

import pytest
from dovetail.backend.thread_map import map_in_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_results_and_exceptions_come_in_the_order_of_the_items(threads: int) -> None:
    def invert(x: int) -> float:
        return 12 / x

    one, failed, three = map_in_threads(invert, [1, 0, 3], threads)
    assert (one, three) == (12.0, 4.0)
    assert isinstance(failed, ZeroDivisionError)
    assert map_in_threads(invert, [], threads) == []


def test_as_many_threads_as_allowed_work_at_the_same_time() -> None:
    before = threading.active_count()
    together = threading.Barrier(3, timeout=60)
    used = map_in_threads(lambda _: (together.wait(), threading.get_ident())[1], range(6), 3)
    assert len({*used}) == 3 and threading.get_ident() in used
    assert threading.active_count() == before


def test_first_runs_on_the_calling_thread_while_others_work() -> None:
    together, callers = threading.Barrier(2, timeout=60), list[int]()

    def first() -> None:
        callers.append(threading.get_ident())
        together.wait()

    [other] = map_in_threads(lambda _: (together.wait(), threading.get_ident())[1], [0], 2, first)
    assert callers == [threading.get_ident()] != [other]


def test_interrupt_leaves_no_thread_and_takes_no_further_item() -> None:
    begun, taken, before = threading.Event(), list[int](), threading.active_count()

    def work(k: int) -> None:
        taken.append(k)
        begun.set()

    def first() -> None:
        begun.wait(60)
        raise KeyboardInterrupt

    def slow(k: int) -> None:
        work(k)
        threading.Event().wait(0.2)

    with pytest.raises(KeyboardInterrupt):
        map_in_threads(slow, range(50), 2, first)
    assert threading.active_count() == before and len(taken) < 50 and gc.isenabled()


def test_garbage_collector_is_paused_while_other_threads_work() -> None:
    assert map_in_threads(lambda _: gc.isenabled(), range(4), 2) == [False] * 4
    assert map_in_threads(lambda _: gc.isenabled(), range(4), 1) == [True] * 4
    gc.disable()
    try:
        map_in_threads(lambda _: None, range(4), 2)
        assert not gc.isenabled()
    finally:
        gc.enable()
