"""Captures of several threads at once."""

from __future__ import annotations

import threading

import dovetail as dt
import numpy as np


def test_capture_records_its_work_while_another_thread_starts_a_capture() -> None:
    recorded, started = threading.Event(), threading.Event()

    def slow(x: dt.Tensor) -> dt.Tensor:
        y = x + 1.0
        if not recorded.is_set():
            recorded.set()
            started.wait(0.2)
        return y

    def capture_another() -> None:
        recorded.wait(10)
        dt.jit(lambda x: x * 2.0)(dt.ones(3))
        started.set()

    thread = threading.Thread(target=capture_another)
    thread.start()
    f = dt.jit(slow)
    values = [f(dt.asarray(np.full(3, k, np.float32))).tolist() for k in range(3)]
    thread.join()
    assert values == [[k + 1.0] * 3 for k in range(3)]
