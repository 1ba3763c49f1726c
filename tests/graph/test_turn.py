"""The lock that evaluation takes: one thread inside at a time, which may come in again."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from dovetail.graph.turn import Turn


@contextmanager
def held_elsewhere(turn: Turn) -> Iterator[tuple[threading.Event, int]]:
    """Another thread is inside until the event is set; the event and the thread's name."""
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with turn:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=stay)
    thread.start()
    inside.wait()
    try:
        assert thread.ident is not None
        yield leave, thread.ident
    finally:
        leave.set()
        thread.join()


def test_one_thread_is_inside_at_a_time() -> None:
    turn, inside, most, rounds = Turn(), [0], [0], [0]

    def work() -> None:
        for k in range(300):
            with turn:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                rounds[0] += 1
                if k % 10 == 0:
                    threading.Event().wait(0.0001)  # others run here
                turn.held(lambda: None, ())
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (most, rounds, inside) == ([1], [1200], [0])


def test_who_comes_in_again_leaves_as_often() -> None:
    turn, entered = Turn(), threading.Event()
    with turn:
        with turn:
            assert turn.held(lambda a, b: a + b, (1, 2)) == 3
        other = threading.Thread(target=lambda: turn.held(entered.set, ()))
        other.start()
        assert not entered.wait(0.05)  # it is not left yet
    assert entered.wait(10)
    other.join()


def test_an_error_inside_leaves() -> None:
    turn = Turn()

    def fail() -> None:
        raise ValueError("inside")

    for _ in range(3):
        with pytest.raises(ValueError, match="inside"):
            turn.held(fail, ())
    done = threading.Event()
    threading.Thread(target=lambda: turn.held(done.set, ())).start()
    assert done.wait(10)


@pytest.fixture
def heard() -> Iterator[None]:
    """Ctrl-C is, also where a shell has started this with `&`, by which it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("taken_in_by", ["who waits", "who is inside"])
def test_ctrl_c_reaches_who_waits(taken_in_by: str) -> None:
    turn = Turn()
    with held_elsewhere(turn) as (leave, inside):
        rescue = threading.Timer(30, leave.set)  # where it does not
        rescue.start()
        to = threading.get_ident() if taken_in_by == "who waits" else inside
        with pytest.raises(KeyboardInterrupt):
            threading.Timer(0.05, signal.pthread_kill, (to, signal.SIGINT)).start()
            with turn:
                pass
        rescue.cancel()
        assert not leave.is_set()
    with turn:
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")  # JAX's, where a test has imported it
def test_a_child_has_it_for_itself_though_others_waited() -> None:
    turn = Turn()
    turn.acquire()
    waiting = threading.Thread(target=lambda: turn.held(lambda: None, ()))
    waiting.start()
    threading.Event().wait(0.05)
    child = os.fork()
    if child == 0:
        turn.release_in_child()
        with turn:
            os._exit(7)
    turn.release()
    waiting.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
