"""Data sets that the tests of the loader send to worker processes."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import numpy as np


def hear_signals() -> None:
    """Enable SIGINT as in a terminal; `nohup` or a script's `&` passes ignored signals on."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if hasattr(signal, "SIGHUP"):  # Windows has none
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


class Pictures(dt.data.Dataset[Any]):
    """Items so large that batches go through shared memory."""

    def __init__(self, count: int = 20) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        return np.full((48, 48), index, np.float32), index


class Slow(Pictures):
    """A data set whose batches are finished in another order than requested."""

    def __getitem__(self, index: int) -> Any:
        time.sleep(0.02 * (index % 3))
        return super().__getitem__(index)


class Raising(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            raise LookupError("number five is not there")
        return super().__getitem__(index)


class Unsendable(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__("cannot be sent")


class RaisingUnsendable(Pictures):
    def __getitem__(self, index: int) -> Any:
        raise Unsendable(1, 2)


class Killed(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(index)


class Exiting(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            os._exit(7)
        return super().__getitem__(index)


class Hanging(Pictures):
    def __getitem__(self, index: int) -> Any:
        if index == 5:
            time.sleep(1000)
        return super().__getitem__(index)


class Drawing(Pictures):
    """A data set of random numbers of the worker that makes an item."""

    def __getitem__(self, index: int) -> Any:
        return float(dt.random.rand(()).item()), float(np.random.rand())


class Upwards(dt.data.IterableDataset[int]):
    """Yield 0..count-1; each worker yields its part."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        info = dt.data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


def begin(worker: int) -> None:
    os.environ["WORKER"] = str(worker)


class Told(Pictures):
    def __getitem__(self, index: int) -> Any:
        return os.environ["WORKER"]


def failing(worker: int) -> None:
    raise OSError("no such file")


def texts(items: list[Any]) -> Any:
    """Return a batch that holds arrays in a container of its own."""
    return {"arrays": [x for x, _ in items], "tensor": dt.asarray([i for _, i in items])}


class Stopping(Pictures):
    """A data set whose item number five calls next() on an exhausted iterator."""

    def __getitem__(self, index: int) -> Any:
        return next(iter([])) if index == 5 else super().__getitem__(index)


class StoppingAtOnce(dt.data.IterableDataset[int]):
    def __iter__(self) -> Iterator[int]:
        return next(iter([]))


def raise_stop_iteration(items: list[Any]) -> Any:
    return next(iter([]))


class Talking(Pictures):
    """A data set that prints to an output without a reader."""

    def __getitem__(self, index: int) -> Any:
        print("item", index)  # kept in a buffer
        return super().__getitem__(index)
