"""Captures take turns: a capture that waits for another thread's capture does not wait for ever."""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import dovetail as dt
import pytest
from dovetail.capture import tracer
from dovetail.locks import Lock


@pytest.fixture
def short_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracer, "CAPTURE_WAIT_SECONDS", 0.3)


def call_from_a_capture(inner: Any) -> tuple[Any, list[str]]:
    """Return what a captured function gets from `inner` in another thread, and the warnings."""
    with ThreadPoolExecutor(1) as pool, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")

        @dt.jit
        def outer(x: dt.Tensor) -> dt.Tensor:
            seen.append(pool.submit(inner).result(timeout=30))
            return x + 1

        seen: list[Any] = []
        assert outer(dt.ones(2)).tolist() == [2.0, 2.0]
    return seen[0], [str(w.message) for w in caught]


@pytest.mark.usefixtures("short_wait")
def test_function_that_waits_for_a_capture_too_long_runs_uncaptured() -> None:
    inner = dt.jit(lambda x: x * 3)
    result, texts = call_from_a_capture(lambda: inner(dt.asarray([1.0, 2.0])).tolist())
    assert result == [3.0, 6.0]
    assert any("captures take turns" in text and "uncaptured" in text for text in texts)
    assert inner(dt.asarray([2.0])).tolist() == [6.0]
    assert inner.captures == 1


@pytest.mark.usefixtures("short_wait")
def test_full_graph_and_loops_that_wait_too_long_raise() -> None:
    inner = dt.jit(lambda x: x * 3, fullgraph=True)

    def call(function: Any) -> str:
        with pytest.raises(dt.CaptureError) as caught:
            function()
        return str(caught.value)

    x = dt.asarray([1.0])
    loop = lambda: dt.fori_loop(0, 3, lambda i, c: c + 1, x)  # noqa: E731
    for function in (lambda: inner(x), loop):
        text, _ = call_from_a_capture(lambda function=function: call(function))
        assert "must not wait for another thread" in text
    assert loop().tolist() == [4.0]


def test_lock_hold_within_a_time_is_reentrant_and_raises_in_time() -> None:
    lock, inside, leave = Lock(), threading.Event(), threading.Event()
    with lock:
        assert lock.hold_within(0.1, TimeoutError, lambda a: a + 1, (2,)) == 3

    def stay() -> None:
        inside.set()
        leave.wait(10)

    thread = threading.Thread(target=lambda: lock.held(stay, ()))
    thread.start()
    inside.wait()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            lock.hold_within(0.1, TimeoutError, int, ())
    leave.set()
    thread.join()
    assert lock.hold_within(0.1, TimeoutError, int, ()) == 0
    assert lock._is_free()
    with pytest.raises(ZeroDivisionError):
        lock.hold_within(0.1, TimeoutError, lambda: 1 // 0, ())
    assert lock._is_free()
