"""The thread pool that shares launches: Python daemon threads that run the worker of `pool.c`.

The pool is compiled where dovetail-cpu-llvm is built, if there is a C compiler. Without one, and
with DOVETAIL_PURE=1, each launch runs on the thread that launches; results have the same bits.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
from contextlib import suppress
from typing import Any

from dovetail.extend import ArgumentError, Lock, whole_setting

THREADS_MAX = 1024  # as in pool.c

# `share`, which launches call: (state, function, arguments, tiles, weight).
SHARE = "declare void @share(ptr, ptr, ptr, i64, i64)\n"
ALONE = """
define internal void @share(ptr %state, ptr %function, ptr %arguments, i64 %tiles, i64 %weight) {
  call void %function(ptr %arguments, i64 0, i64 %tiles)
  ret void
}
"""

NOT_COMPILED = (
    "not compiled: each kernel runs on one thread; to have threads, install a C compiler and then "
    "dovetail-cpu-llvm anew, without DOVETAIL_PURE=1"
)


def compiled_pool() -> Any:
    """Return the module of `pool.c`; None where it was not compiled, or is not wanted."""
    if os.environ.get("DOVETAIL_PURE", "").strip().lower() not in ("1", "true", "yes", "on"):
        with suppress(ImportError):
            return importlib.import_module(f"{__package__}._pool")
    return None


_pool = compiled_pool()
IS_COMPILED = _pool is not None
IR = SHARE if IS_COMPILED else ALONE
SYMBOLS: dict[str, int] = {"share": _pool.share} if IS_COMPILED else {}


def weight(operations: float, anywhere: bool) -> int:
    """Return what `share` is told of a launch.

    anywhere: True if the launch is shared even while cores are far from each other.
    """
    return max(2, int(min(operations, 1 << 62))) & ~1 | anywhere


def cores() -> int:
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
        if IS_COMPILED:
            self._memory = (ctypes.c_int64 * ((_pool.size + _pool.alignment) // 8))()
            self.state = -(-ctypes.addressof(self._memory) // _pool.alignment) * _pool.alignment
            _pool.init(self.state, 0)
            if hasattr(os, "register_at_fork"):
                os.register_at_fork(after_in_child=self._after_fork)
        threads = threads or whole_setting("DOVETAIL_NUM_THREADS", 0, 0, THREADS_MAX)
        self._resize(threads or cores())

    @property
    def num_threads(self) -> int:
        """How many threads share large work, the launching thread included."""
        return self._threads

    def set_num_threads(self, n: int) -> None:
        """Set how many threads share large work. Raises: ArgumentError."""
        self._resize(n)
        self.start()  # launches that are bound already do not start threads

    def _resize(self, n: int) -> None:
        if not 1 <= n <= THREADS_MAX:
            raise ArgumentError(
                f"set_num_threads({n}): there is at least the thread that launches, and no more "
                f"than {THREADS_MAX:,} are started; give a number between"
            )
        self._threads = n
        if IS_COMPILED:
            _pool.resize(self.state, n - 1)

    def start(self) -> None:
        """Start the worker threads that are still missing."""
        if not IS_COMPILED or self._started >= self._threads - 1:
            return
        with self._lock:
            while self._started < self._threads - 1:
                name = f"dovetail-cpu-{self._started + 1}"
                args = (self._started,)
                threading.Thread(target=self._work, args=args, name=name, daemon=True).start()
                self._started += 1

    def _work(self, worker: int) -> None:
        _pool.work(self.state, worker)  # of a bound method: the state lives as long as the thread

    def rest(self) -> None:
        """Have idle workers sleep at once: the threads of another library need the cores."""
        if IS_COMPILED:
            _pool.rest(self.state)

    def _after_fork(self) -> None:
        """Initialize the pool of a forked child, which has none of the parent's threads."""
        self._started = 0
        _pool.init(self.state, self._threads - 1)
