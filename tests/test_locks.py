"""The library's lock: one thread at a time, reentrant, free after a fork."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import dovetail as dt
import pytest
from dovetail.forks import registered_locks
from dovetail.locks import Lock
from places import ROOT

DISTRIBUTIONS = {
    "dovetail",
    "dovetail_cpu_llvm",
    "dovetail_opencl",
    "dovetail_cuda",
    "dovetail_vulkan",
    "dovetail_webgpu",
}


@contextmanager
def held_elsewhere(turn: Lock) -> Iterator[tuple[threading.Event, int]]:
    """Hold the lock in another thread until the event is set; yield the event and the thread's
    name.
    """
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


def test_lock_is_free_unless_another_thread_has_it() -> None:
    turn = Lock()
    with turn:
        assert turn._is_free()
    with held_elsewhere(turn):
        assert not turn._is_free()
    assert turn._is_free()


def test_call_holds_the_lock_and_releases_it_after_an_error() -> None:
    turn, seen = Lock(), []
    other = threading.Thread(target=lambda: seen.append(turn._is_free()))

    def work(number: int) -> int:
        other.start()
        other.join()
        return 6 // number

    assert turn._call(work, 2) == 3 and seen == [False]
    with pytest.raises(ZeroDivisionError):
        turn._call(lambda number: 6 // number, 0)
    thread = threading.Thread(target=lambda: seen.append(turn._is_free()))
    thread.start()
    thread.join()
    assert seen == [False, True]


def test_one_thread_at_a_time_holds_the_lock() -> None:
    turn, inside, most, rounds = Lock(), [0], [0], [0]

    def work() -> None:
        for k in range(300):
            with turn:
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                rounds[0] += 1
                if k % 10 == 0:
                    threading.Event().wait(0.0001)  # other threads run here
                turn.held(lambda: None, ())
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert (most, rounds, inside) == ([1], [1200], [0])


def test_reentrant_lock_is_released_as_often_as_acquired() -> None:
    turn, entered = Lock(), threading.Event()
    with turn:
        with turn:
            assert turn.held(lambda a, b: a + b, (1, 2)) == 3
        other = threading.Thread(target=lambda: turn.held(entered.set, ()))
        other.start()
        assert not entered.wait(0.05)  # it is not released yet
    assert entered.wait(10)
    other.join()


def test_exception_inside_releases_the_lock() -> None:
    turn = Lock()

    def fail() -> None:
        raise ValueError("inside")

    for _ in range(3):
        with pytest.raises(ValueError, match="inside"):
            turn.held(fail, ())
    done = threading.Event()
    threading.Thread(target=lambda: turn.held(done.set, ())).start()
    assert done.wait(10)


@pytest.fixture
def sigint_enabled() -> Iterator[None]:
    """Enable Ctrl-C, which a shell ignores for a process that it starts with `&`."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("sigint_enabled")
@pytest.mark.parametrize("taken_in_by", ["who waits", "who is inside"])
def test_ctrl_c_interrupts_a_waiting_thread(taken_in_by: str) -> None:
    if taken_in_by == "who is inside" and issubclass(Lock, type(threading.RLock())):
        pytest.skip("without a compiler Python's lock waits: its `with` blocks leave in C")
    turn = Lock()
    with held_elsewhere(turn) as (leave, inside):
        rescue = threading.Timer(30, leave.set)  # on systems without it
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


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
quiet = pytest.mark.filterwarnings("ignore:.*fork.*")  # Python's, and JAX's if it was imported


def exit_status_of_child(work: Callable[[], object]) -> int:
    """Do `work` in a child of fork(). Return 0 if it ends within 10 s without an error."""
    child = os.fork()
    if child == 0:
        worker = threading.Thread(target=work, daemon=True)
        worker.start()
        worker.join(10)
        os._exit(int(worker.is_alive()))
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def take_and_release(lock: Lock) -> None:
    with lock:
        pass


@forks
@quiet
def test_lock_of_the_forking_thread_is_released_once_in_the_child() -> None:
    turn = Lock()
    turn.acquire()
    waiting = threading.Thread(target=lambda: turn.held(lambda: None, ()))
    waiting.start()
    threading.Event().wait(0.05)
    child = os.fork()
    if child == 0:
        turn.release()
        other = threading.Thread(target=take_and_release, args=(turn,), daemon=True)
        other.start()
        other.join(10)
        os._exit(7 + other.is_alive())
    turn.release()
    waiting.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


@forks
@quiet
def test_fork_waits_for_another_thread_to_release_a_lock() -> None:
    lock, first, second = Lock(), [0], [0]
    inside = threading.Event()

    def change() -> None:
        with lock:
            first[0] += 1
            inside.set()
            threading.Event().wait(0.2)
            second[0] += 1

    thread = threading.Thread(target=change)
    thread.start()
    inside.wait()

    def look() -> None:
        with lock:
            assert first == second == [1]

    assert exit_status_of_child(look) == 0
    thread.join()
    take_and_release(lock)


@forks
@quiet
def test_lock_of_user_code_is_free_in_the_child_without_waiting() -> None:
    lock = Lock(waited=False)
    with held_elsewhere(lock):
        assert exit_status_of_child(lambda: take_and_release(lock)) == 0
        assert not lock.acquire(blocking=False), "in the parent another thread still has it"
    take_and_release(lock)


@forks
@quiet
def test_fork_takes_locks_that_threads_take_in_opposite_orders() -> None:
    a, b, stop = Lock(), Lock(), threading.Event()

    def both(outer: Lock, inner: Lock) -> None:
        while not stop.is_set():
            with outer:
                if inner.acquire(blocking=False):
                    inner.release()

    threads = [threading.Thread(target=both, args=pair) for pair in ((a, b), (b, a))]
    for t in threads:
        t.start()
    statuses = [exit_status_of_child(lambda: both_free(a, b)) for _ in range(10)]
    stop.set()
    for t in threads:
        t.join()
    assert statuses == [0] * 10


def both_free(a: Lock, b: Lock) -> None:
    with a, b:
        pass


def test_acquire_without_blocking_returns_whether_it_succeeded() -> None:
    lock = Lock()
    assert lock.acquire(blocking=False) and lock.acquire(blocking=False)
    lock.release()
    lock.release()
    with held_elsewhere(lock):
        assert not lock.acquire(blocking=False)
    assert lock.acquire()
    lock.release()


# --- only locks of the library

# A `with` of one of these in a child of fork() would wait for a thread that does not exist there.
UNSAFE = {"Lock", "RLock", "Condition", "Semaphore", "BoundedSemaphore", "Barrier"}
LOCKS = ROOT / "core/dovetail/locks.py"
OWN = {LOCKS}  # creates them; and modules that run in processes of their own:
OWN |= {*(ROOT / "core/dovetail/commands/template").rglob("*.py")}
OWN |= {*(ROOT / "core/dovetail/testing").rglob("*.py")}
# In a child of fork() none of the threads exists that send messages to each other.
OWN |= {ROOT / "core/dovetail/parallel/thread_transport.py"}
SOURCES = sorted(
    path
    for folder in ("core", "backends")
    for path in (ROOT / folder).rglob("*.py*")
    if path.suffix in (".py", ".pyx") and "build" not in path.relative_to(ROOT).parts
)


def foreign_locks(path: Path) -> list[str]:
    """Return Python's own locks that a module creates or imports."""
    text = re.sub(r"^ *>>> .*$", "", path.read_text("utf-8"), flags=re.M)
    made = re.findall(
        rf"threading\.({'|'.join(UNSAFE)})\b|(?<![\w.])_thread\.|multiprocessing\.Lock", text
    )
    imported = re.findall(r"^from (?:_?thread(?:ing)?) import (.*)$", text, re.M)
    return made + [n for names in imported for n in re.findall(r"\w+", names) if n in UNSAFE]


def test_modules_create_only_locks_of_the_library() -> None:
    found = {str(path): foreign_locks(path) for path in SOURCES if path not in OWN}
    assert not {name: locks for name, locks in found.items() if locks}, "use dovetail.extend.Lock"
    assert len(found) > 300 and {*foreign_locks(LOCKS)} == {"RLock"}


def test_locks_of_loaded_modules_are_registered() -> None:
    for device in dt.devices():
        dt.ones(2, device=device).sum().item()
    known = {id(lock) for lock in registered_locks()}
    kinds = (type(threading.Lock()), type(threading.RLock()), Lock, threading.Condition)
    modules = [m for name, m in sys.modules.items() if name.partition(".")[0] in DISTRIBUTIONS]
    found = [
        f"{module.__name__}.{name}"
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, kinds) and id(value) not in known
    ]
    assert not found and len(known) > 10
