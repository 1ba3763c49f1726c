"""A function mapped over items by several threads."""

from __future__ import annotations

import gc
import signal
import sys
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


def test_run_first_runs_on_the_calling_thread_while_others_work() -> None:
    together, callers = threading.Barrier(2, timeout=60), list[int]()

    def first() -> None:
        callers.append(threading.get_ident())
        together.wait()

    [other] = map_in_threads(
        lambda _: (together.wait(), threading.get_ident())[1], [0], 2, run_first=first
    )
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
        map_in_threads(slow, range(50), 2, run_first=first)
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


@pytest.mark.parametrize("interrupts", [1, 3])
def test_interrupt_of_the_join_waits_for_all_threads(interrupts: int) -> None:
    ended, main, helpers = list[int](), threading.get_ident(), list[threading.Thread]()

    def work(k: int) -> None:
        if threading.get_ident() == main:
            started.wait()
            return
        helpers.append(threading.current_thread())
        started.wait()
        for _ in range(interrupts):
            threading.Event().wait(0.1)
            signal.pthread_kill(main, signal.SIGINT)  # while it joins
        threading.Event().wait(0.3)
        ended.append(k)

    started = threading.Barrier(3, timeout=60)
    with pytest.raises(KeyboardInterrupt):
        map_in_threads(work, range(3), 3)
    assert len(ended) == 2 and gc.isenabled()
    for helper in helpers:  # its last call has ended; the thread itself ends a moment later
        helper.join(60)
        assert not helper.is_alive()


def test_error_of_run_first_waits_for_all_threads() -> None:
    begun, ended = threading.Event(), list[int]()

    def work(k: int) -> None:
        begun.set()
        threading.Event().wait(0.2)
        ended.append(k)

    def fail() -> None:
        begun.wait(60)
        raise ValueError("no routine")

    with pytest.raises(ValueError, match="no routine"):
        map_in_threads(work, [0], 2, run_first=fail)
    assert ended == [0] and gc.isenabled()


def test_second_call_at_the_same_time_has_no_threads_and_leaves_the_collector_paused() -> None:
    inner, paused, main = dict[int, set[int]](), list[bool](), threading.get_ident()

    def work(k: int) -> None:
        together.wait()
        if threading.get_ident() != main:
            idents = map_in_threads(lambda _: threading.get_ident(), range(8), 4)
            inner[threading.get_ident()] = {*idents}
        together.wait()
        paused.append(not gc.isenabled())

    together = threading.Barrier(3, timeout=60)
    map_in_threads(work, range(3), 3)
    assert len(inner) == 2 and all(used == {ident} for ident, used in inner.items())
    assert paused == [True] * 3 and gc.isenabled()
    together = threading.Barrier(2, timeout=60)
    assert map_in_threads(lambda _: together.wait() < 2, range(2), 2) == [True] * 2


def test_no_thread_is_started_while_the_interpreter_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "is_finalizing", lambda: True)
    assert (
        map_in_threads(lambda _: threading.get_ident(), range(4), 3) == [threading.get_ident()] * 4
    )


def test_system_without_further_threads_leaves_the_work_to_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert (
        map_in_threads(lambda _: threading.get_ident(), range(4), 3) == [threading.get_ident()] * 4
    )
    assert gc.isenabled()
