"""What runs in the worker processes of a loader, and how batches come from there.

Each worker has a pipe of its own: no lock is shared, so one that is killed holds up nobody. The
elements of a batch lie in shared memory that the worker keeps and uses again; where in it, and what
is made of them, comes through the pipe.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import random
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt
from dovetail.extend import Lock

from .collate import collated, default_collate, rows
from .datasets import IterableDataset

__all__ = ["get_worker_info"]

ALIGNED = 64
SMALL = 1 << 14  # bytes that go through the pipe rather than through shared memory


class WorkerError(dt.DovetailError, RuntimeError):
    """A worker process of a loader has died, takes too long, or raised what cannot be raised here.

    That is what cannot be sent, and StopIteration, which would end the loop.
    """


class NoMore(Exception):
    """A data set that is iterable has no more items."""


def _stopped(error: StopIteration, dataset: Any) -> WorkerError:
    """A StopIteration of the user's code, as Python makes a RuntimeError of a generator's."""
    found = WorkerError(
        f"data.DataLoader: StopIteration was raised while a batch of {type(dataset).__name__} was "
        "made; it would end the loop as if there were no more items: raise another error, or give "
        "next() a default"
    )
    found.__cause__ = error
    return found


class WorkerInfo(NamedTuple):
    """Which worker this process is: `id` of `num_workers`, with its `seed` and its `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker of a loader this process is; None where it is none.

    >>> import dovetail as dt
    >>> dt.data.get_worker_info() is None
    True
    """
    return _info


class Fetch(NamedTuple):
    """How batches are made: what a worker, or the loader itself, needs to know."""

    dataset: Any
    collate: Callable[[Any], Any] | None
    batched: bool
    drop_last: bool
    batch_size: int


class Fetcher:
    """Makes batches of a data set: by indices, or of one that is iterable the next ones."""

    def __init__(self, fetch: Fetch, on_host: bool) -> None:
        """`on_host`: whether batches are to be sent, and so made on the host."""
        self.fetch, self.on_host = fetch, on_host
        self.items: Iterator[Any] | None = None
        if isinstance(fetch.dataset, IterableDataset):
            self.items = iter(fetch.dataset)

    def batch(self, indices: Any) -> Any:
        """The batch, on the host. Raises: NoMore; WorkerError for a StopIteration."""
        try:
            return self._batch(indices)
        except StopIteration as error:
            raise _stopped(error, self.fetch.dataset) from error

    def _batch(self, indices: Any) -> Any:
        f = self.fetch
        if self.items is not None:
            data = self._next(f)
        elif not f.batched:
            data = f.dataset[indices]
        else:
            if f.collate is default_collate:
                found = rows(f.dataset, [*indices], self.on_host)
                if found is not None:
                    return found
            several = getattr(f.dataset, "__getitems__", None)
            data = [f.dataset[i] for i in indices] if several is None else several([*indices])
        if f.collate is default_collate:
            return collated(data)
        return data if f.collate is None else f.collate(data)

    def _next(self, f: Fetch) -> Any:
        assert self.items is not None
        if not f.batched:
            for item in self.items:
                return item
            raise NoMore
        data = []
        for item in self.items:
            data.append(item)
            if len(data) == f.batch_size:
                break
        if not data or (f.drop_last and len(data) < f.batch_size):
            raise NoMore
        return data


# --- what is sent ---------------------------------------------------------------------------------


class Sent(NamedTuple):
    """A batch on its way: a pickle, and where its buffers are in shared memory, or they."""

    pickled: bytes
    memory: str
    spans: tuple[tuple[int, int], ...]
    small: tuple[bytes, ...]


class Outbox:
    """Shared memory that a worker puts batches into, one place for each that is on its way."""

    def __init__(self) -> None:
        self.memory: dict[int, SharedMemory] = {}
        self._made = 0
        self._lock = Lock()  # or what is being made would be nobody's when the process ends

    def put(self, place: int, batch: Any) -> Sent:
        """Writes a batch; what is to be sent of it."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(batch, 5, buffer_callback=buffers.append)
        raws = [b.raw() for b in buffers]
        total = sum(r.nbytes for r in raws)
        if total <= SMALL:
            return Sent(pickled, "", (), tuple(bytes(r) for r in raws))
        spans, at = [], 0
        for r in raws:
            spans.append((at, r.nbytes))
            at += -(-r.nbytes // ALIGNED) * ALIGNED
        memory = self._room(place, at)
        assert memory.buf is not None
        for (begin, n), r in zip(spans, raws, strict=True):
            memory.buf[begin : begin + n] = r
        return Sent(pickled, memory.name, tuple(spans), ())

    def _room(self, place: int, size: int) -> SharedMemory:
        with self._lock:
            found = self.memory.get(place)
            if found is None or found.size < size:
                if found is not None:
                    found.close()
                    found.unlink()
                found = self.memory[place] = self._new(size)
            return found

    def _new(self, size: int) -> SharedMemory:
        while True:
            self._made += 1
            name = f"dovetail_{os.getppid()}_{os.getpid()}_{self._made}"
            with contextlib.suppress(FileExistsError):  # of a process that was killed long ago
                return SharedMemory(name, create=True, size=size)

    def close(self) -> None:
        """Gives it back."""
        self._lock.acquire()  # for good: nothing more is made
        for m in self.memory.values():
            with contextlib.suppress(BufferError):  # a batch is being written
                m.close()
            _unlinked(m)


class Inbox:
    """The same memory as the loader sees it."""

    def __init__(self) -> None:
        self.memory: dict[str, SharedMemory] = {}

    def taken(self, sent: Sent, copies: bool) -> Any:
        """A batch; unless it `copies`, its arrays are over memory that is used again."""
        if not sent.memory:
            return pickle.loads(sent.pickled, buffers=[*map(bytearray, sent.small)])
        memory = self.memory.get(sent.memory)
        if memory is None:
            memory = self.memory[sent.memory] = SharedMemory(sent.memory)
        assert memory.buf is not None
        views = [memory.buf[at : at + n] for at, n in sent.spans]
        found = [bytearray(v) if copies else v.toreadonly() for v in views]
        return pickle.loads(sent.pickled, buffers=found)

    def close(self) -> None:
        """Lets go of it, and of what workers that are gone have left."""
        for m in self.memory.values():
            with contextlib.suppress(BufferError):  # somebody still looks at a batch
                m.close()
            _unlinked(m)
        self.memory.clear()


def _unlinked(memory: SharedMemory) -> None:
    """Takes the name away, if the other side has not."""
    with contextlib.suppress(FileNotFoundError):
        memory.unlink()


class Failed(NamedTuple):
    """What a worker raised: itself, where it can be sent, and its traceback."""

    error: BaseException | None
    text: str

    @classmethod
    def of(cls, error: BaseException) -> Failed:
        """Of what is being handled."""
        text = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return cls(None, text)
        return cls(error, text)


# --- the worker -----------------------------------------------------------------------------------


class Job(NamedTuple):
    """What a worker is started with."""

    id: int
    workers: int
    device: str
    fetch: Fetch
    begin: Callable[[int], object] | None


def work(job: Job, tasks: Connection, results: Connection) -> None:
    """The worker's life: epochs, and batches in each, until the loader goes away.

    The process then ends at once, as forked ones do: there is nothing in it to be taken apart. A
    thread takes in what is asked for, so that the loader never waits to ask.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the loader's, who ends the workers
    outbox = Outbox()
    queue: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_listen, args=(tasks, queue, outbox), daemon=True).start()
    try:
        _serve(job, outbox, queue, results)
    except (BrokenPipeError, ConnectionResetError):
        _end(outbox, 0)
    except BaseException:
        traceback.print_exc()
        _end(outbox, 1)


def _listen(tasks: Connection, queue: SimpleQueue[Any], outbox: Outbox) -> None:
    """Takes in tasks; where the loader has gone, whatever is being done has no use any more."""
    try:
        while True:
            queue.put(tasks.recv())
    except (EOFError, OSError):
        _end(outbox, 0)


def _end(outbox: Outbox, code: int) -> None:
    outbox.close()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # nobody reads it any more
            stream.flush()
    os._exit(code)


def _serve(job: Job, outbox: Outbox, queue: SimpleQueue[Any], results: Connection) -> None:
    dt.set_default_device(job.device)
    fetcher: Fetcher | None = None
    failed: Failed | None = None
    while True:
        task = queue.get()
        if task[0] == "epoch":
            fetcher, failed = None, None
            try:
                fetcher = _begun(job, task[1], task[2])
            except StopIteration as error:
                failed = Failed.of(_stopped(error, job.fetch.dataset))
            except Exception as error:
                failed = Failed.of(error)
            continue
        _, number, place, indices = task
        if failed is None:
            results.send((number, _made(fetcher, outbox, place, indices)))
        else:
            results.send((number, failed))


def _begun(job: Job, seed: int, is_first: bool) -> Fetcher:
    """What makes the batches of an epoch, in a process with its own random numbers."""
    global _info
    own = seed + job.id
    random.seed(own)
    np.random.seed(own % (1 << 32))
    dt.random.manual_seed(own)
    _info = WorkerInfo(job.id, job.workers, own, job.fetch.dataset)
    if job.begin is not None and is_first:
        job.begin(job.id)
    return Fetcher(job.fetch, True)


def _made(
    fetcher: Fetcher | None, outbox: Outbox, place: int, indices: Any
) -> Sent | Failed | None:
    """A batch, what it failed with, or None where there is none left."""
    assert fetcher is not None
    try:
        return outbox.put(place, fetcher.batch(indices))
    except NoMore:
        return None
    except Exception as error:
        return Failed.of(error)
