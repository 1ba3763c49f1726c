"""Fork repeatedly while four threads compute; a program, run by `test_forks.py`.

Usage: python forking.py FORKS. A child that does not end within `LIMIT` seconds prints the stacks
of its threads and fails. The exit status is 0 if every child computed the right values.
"""

from __future__ import annotations

import faulthandler
import itertools
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

import dovetail as dt
import numpy as np

LIMIT = 20.0  # seconds for one child
THREADS = 4
_numbers = itertools.count(os.getpid())


def size(limit: int) -> int:
    """Return a size that rarely repeats: a new shape takes other code paths than a cached one."""
    return 1 + next(_numbers) * 7919 % limit


def elementwise() -> None:
    n = size(4000)
    x = dt.arange(n, dtype="float32", device="cpu")
    assert dt.tanh(x * 0 + 1).shape == (n,)
    assert float((x * 2 + 1).sum()) == n * n


def nonzero() -> None:
    n = size(1000)
    x = dt.asarray(np.arange(3 * n) % 3, device="cpu")
    assert dt.nonzero(x)[0].shape == (2 * n,)


def sort() -> None:
    x = dt.asarray(np.arange(7 + size(4000))[::-1].copy(), device="cpu")
    assert dt.sort(x)[:3].tolist() == [0, 1, 2]
    assert dt.unique_values(x % 7).shape == (7,)


def large_sort() -> None:
    x = dt.asarray(np.arange(1 << 20, dtype="f4")[::-1].copy(), device="cpu")
    assert float(dt.sort(x)[5]) == 5


def indexing() -> None:
    n = size(50) + 3
    x = dt.asarray(np.arange(40 * n, dtype="f4").reshape(40, n), device="cpu")
    rows = dt.asarray(np.array([3, 1, 2]), device="cpu")
    assert x[rows, 1:3].tolist()[0] == [3 * n + 1, 3 * n + 2]
    x[0, :] = 0
    assert x[x > 40 * n - 10].shape == (9,)


def sparse() -> None:
    n = size(40)
    x = dt.asarray(np.eye(n, dtype="f4"), device="cpu")
    assert float((dt.sparse.to_sparse(x) @ x).sum()) == n


def allocation() -> None:
    kept = [dt.zeros(size(1 << 14) * k, device="cpu") for k in range(1, 20)]
    assert all(float(x.sum()) == 0 for x in kept)


def compilation() -> None:
    """Run a kernel that no process has compiled before."""
    x = dt.ones(10, device="cpu")
    for bit in f"{next(_numbers) * 7919 % (1 << 14):b}":
        x = x + 0.5 if bit == "1" else dt.maximum(x, 0.25) * 0.5
    assert x.numpy().shape == (10,)


def product() -> None:
    n = size(150)
    x = dt.ones((n, n), device="cpu")
    assert float((x @ x)[n - 1, 0]) == n


def decomposition() -> None:
    n = size(40)
    assert dt.linalg.svdvals(dt.eye(n, device="cpu")).tolist() == [1] * n


def printing() -> None:
    assert "1." in str(dt.arange(size(2000) + 10, dtype="float32", device="cpu"))


def drawing() -> None:
    n = size(100)
    assert dt.random.uniform(n, device="cpu").shape == (n,)
    assert dt.random.Generator(1).normal(n, device="cpu").shape == (n,)


def gradient() -> None:
    x = dt.ones(size(100), device="cpu", requires_grad=True)
    (x * x).sum().backward()
    assert float(x.grad[0]) == 2


_doubled = dt.jit(lambda x: x * 2 + 1)


def replay() -> None:
    assert float(_doubled(dt.ones(size(20), device="cpu"))[0]) == 3


def exporting() -> None:
    n = size(50)
    assert np.from_dlpack(dt.ones(n, device="cpu")).sum() == n


def profiling() -> None:
    n = size(50)
    with dt.profile():
        assert float(dt.ones(n, device="cpu").sum()) == n


@dt.kernel
def _half(out: dt.Out, x: dt.In) -> None:
    for i in dt.grid(x.size):
        out[i] = x[i] / 2


def own_kernel() -> None:
    n = size(50)
    y = dt.empty(n, device="cpu")
    _half(y, dt.ones(n, device="cpu"))
    assert float(y.sum()) == n / 2


WORK: list[Callable[[], None]] = [
    elementwise, nonzero, sort, large_sort, indexing, sparse, allocation, compilation, product,
    decomposition, printing, drawing, gradient, replay, exporting, profiling, own_kernel,
]  # fmt: skip


def compute(first: int, stop: threading.Event) -> None:
    """Do all kinds of work in a loop until the event is set."""
    for work in itertools.cycle(WORK[first:] + WORK[:first]):
        if stop.is_set():
            return
        work()


def child() -> None:
    """Do all kinds of work once in this process, and end it."""
    faulthandler.dump_traceback_later(LIMIT, exit=True)
    try:
        for work in WORK:
            work()
    except BaseException:
        traceback.print_exc()
        os._exit(2)
    os._exit(0)


def main(forks: int) -> int:
    for work in WORK:
        work()
    sys.setswitchinterval(2e-5)  # threads are switched inside of short critical sections too
    stop = threading.Event()
    threads = [threading.Thread(target=compute, args=(3 * k, stop)) for k in range(THREADS)]
    for thread in threads:
        thread.start()
    bad = 0
    for k in range(forks):
        time.sleep(0.001 * (k * 37 % 50))
        pid = os.fork()
        if pid == 0:
            child()
        _, status = os.waitpid(pid, 0)
        if status:
            print(f"child {k} ended with {os.waitstatus_to_exitcode(status)}", file=sys.stderr)
            bad += 1
    alive = all(thread.is_alive() for thread in threads)
    stop.set()
    for thread in threads:
        thread.join(LIMIT)
    alive &= not any(thread.is_alive() for thread in threads)
    print(f"{bad} of {forks} children failed; the parent's threads {'work' if alive else 'do not'}")
    return int(bad > 0 or not alive)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
