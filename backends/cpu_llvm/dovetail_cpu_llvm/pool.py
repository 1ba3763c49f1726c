"""The thread pool that shares launches: Python daemon threads that run the worker of `pool.c`."""

from __future__ import annotations

import ctypes
import os
import threading

from dovetail.extend import ArgumentError, Lock, whole_setting

from .native import native

THREADS_MAX = 1024  # as in pool.c


def encode_weight(operations: float, share_when_distant: bool) -> int:
    """Return the code of a launch's cost that pool.c reads: even, plus 1 if shared when distant.

    share_when_distant: True if the launch is shared even while cores are far from each other.
    """
    return max(2, int(min(operations, 1 << 62))) & ~1 | share_when_distant


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Pool:
    """The state that launches share, and its worker threads, which start when first needed."""

    def __init__(self, threads: int | None = None) -> None:
        self._memory = (ctypes.c_int64 * 0)()
        self.state = 0  # its address
        self._lock = Lock()
        self._started = 0
        self._threads = 1
        if native:
            self._memory = (ctypes.c_int64 * ((native.size + native.alignment) // 8))()
            self.state = -(-ctypes.addressof(self._memory) // native.alignment) * native.alignment
            native.init(self.state, 0)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._after_fork)
        threads = threads or whole_setting("DOVETAIL_NUM_THREADS", 0, 0, THREADS_MAX)
        self._resize(threads or available_cores())

    @property
    def num_threads(self) -> int:
        """Return the number of threads that share large work, the launching thread included."""
        return self._threads

    def set_num_threads(self, n: int) -> None:
        """Set the number of threads; start missing ones.

        Raises: ArgumentError unless it is 1 to THREADS_MAX.
        """
        self._resize(n)
        self.start()  # launches that are bound already do not start threads

    def _resize(self, n: int) -> None:
        """Set the number of threads; start none. Raises: ArgumentError unless 1..THREADS_MAX."""
        if not 1 <= n <= THREADS_MAX:
            raise ArgumentError(f"set_num_threads: num must be from 1 to {THREADS_MAX:,}, got {n}")
        self._threads = n
        if native:
            native.resize(self.state, n - 1)

    def start(self) -> None:
        """Start the worker threads that are still missing; do nothing without compiled module."""
        if native is None or self._started >= self._threads - 1:
            return
        with self._lock:
            while self._started < self._threads - 1:
                name = f"dovetail-cpu-{self._started + 1}"
                args = (self._started,)
                threading.Thread(target=self._run_worker, args=args, name=name, daemon=True).start()
                self._started += 1

    def _run_worker(self, worker: int) -> None:
        """Run the worker loop of pool.c; the bound method keeps the pool's state alive."""
        native.work(self.state, worker)  # of a bound method: the state lives as long as the thread

    def _after_fork(self) -> None:
        """Initialize the pool of a forked child, which has none of the parent's threads."""
        self._started = 0
        native.init(self.state, self._threads - 1)
