"""Worker processes of a loader, and the transport of batches from them.

Each worker has its own pipe. No lock is shared, so a worker that is killed blocks no other process.
The elements of a batch are in shared memory, which the worker reuses for later batches. Their
offsets and the structure of the batch are sent through the pipe.
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

from .collate import collate_on_host, default_collate, gather_rows
from .datasets import is_iterable

__all__ = ["get_worker_info"]

ALIGNMENT_BYTES = 64
PIPE_BYTES_MAX = 1 << 14  # smaller batches are sent through the pipe, without shared memory


class WorkerError(dt.DovetailError, RuntimeError):
    """A worker process died, timed out, or raised an error that the loader cannot raise itself.

    The loader cannot raise an error that cannot be pickled, or StopIteration, which would end the
    loop.
    """


class EndOfData(Exception):
    """An iterable data set has no more items."""


def _stop_iteration_error(error: StopIteration, dataset: Any) -> WorkerError:
    """Return a WorkerError caused by a StopIteration that the user's code raised."""
    worker_error = WorkerError(
        f"data.DataLoader: {type(dataset).__name__} raised StopIteration while making a batch, "
        "which would end the loop early; raise another error, or pass a default to next()"
    )
    worker_error.__cause__ = error
    return worker_error


class WorkerInfo(NamedTuple):
    """The identity of a worker process: `id` of `num_workers`, its `seed` and its `dataset`."""

    id: int
    num_workers: int
    seed: int
    dataset: Any


_worker_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Return the identity of this worker process, or None in any other process.

    >>> import dovetail as dt
    >>> dt.data.get_worker_info() is None
    True
    """
    return _worker_info


class FetchOptions(NamedTuple):
    """The options that a worker, or the loader itself, needs to build batches."""

    dataset: Any
    collate: Callable[[Any], Any] | None
    batched: bool
    drop_last: bool
    batch_size: int


class Fetcher:
    """A builder of batches: by indices, or from the next items of an iterable data set."""

    def __init__(self, options: FetchOptions, on_host: bool) -> None:
        """Start an epoch.

        `on_host`: build batches on the host, to be sent to another process.
        """
        self.options, self.on_host = options, on_host
        self.items: Iterator[Any] | None = None
        if is_iterable(options.dataset):
            self.items = iter(options.dataset)

    def batch(self, indices: Any) -> Any:
        """Return the batch of `indices`, or of the next items. Raises: EndOfData; WorkerError.

        An iterable data set has no indices. WorkerError is for a StopIteration of the data set.
        """
        try:
            return self._batch(indices)
        except StopIteration as error:
            raise _stop_iteration_error(error, self.options.dataset) from error

    def _batch(self, indices: Any) -> Any:
        """Return the batch of `indices`, or of the next items; default collation gives HostArrays.

        Raises: EndOfData if an iterable has no more items.
        """
        options = self.options
        dataset = options.dataset
        if self.items is not None:
            data = self._next_items()
        elif not options.batched:
            data = dataset[indices]
        else:
            if options.collate is default_collate:
                batch = gather_rows(dataset, [*indices], self.on_host)
                if batch is not None:
                    return batch
            get_items = getattr(dataset, "__getitems__", None)
            data = [dataset[i] for i in indices] if get_items is None else get_items([*indices])
        if options.collate is default_collate:
            return collate_on_host(data)
        return data if options.collate is None else options.collate(data)

    def _next_items(self) -> Any:
        """Return the next items as a list, or one item if not batched.

        Raises: EndOfData if there are none, or too few for a whole batch with `drop_last`.
        """
        assert self.items is not None
        if not self.options.batched:
            for item in self.items:
                return item
            raise EndOfData
        data = []
        for item in self.items:
            data.append(item)
            if len(data) == self.options.batch_size:
                break
        if not data or (self.options.drop_last and len(data) < self.options.batch_size):
            raise EndOfData
        return data


# --- transport of batches -------------------------------------------------------------------------


class BatchMessage(NamedTuple):
    """A batch as it is sent: a pickle, and its buffers or their spans in shared memory."""

    pickled: bytes
    segment: str
    spans: tuple[tuple[int, int], ...]
    inline_buffers: tuple[bytes, ...]


class Outbox:
    """The worker's side of the transport: shared memory with a segment for each batch in flight."""

    def __init__(self) -> None:
        self.memory: dict[int, SharedMemory] = {}  # by slot
        self._segments_created = 0
        self._lock = Lock()  # close() must not miss a segment that _allocate is creating

    def put(self, slot: int, batch: Any) -> BatchMessage:
        """Pickle a batch; write large buffers over the slot's last ones; return the message."""
        buffers: list[pickle.PickleBuffer] = []
        pickled = pickle.dumps(batch, 5, buffer_callback=buffers.append)
        raws = [b.raw() for b in buffers]
        total = sum(r.nbytes for r in raws)
        if total <= PIPE_BYTES_MAX:
            return BatchMessage(pickled, "", (), tuple(bytes(r) for r in raws))
        spans, end = [], 0
        for r in raws:
            spans.append((end, r.nbytes))
            end += -(-r.nbytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        memory = self._allocate(slot, end)
        assert memory.buf is not None
        for (begin, n), r in zip(spans, raws, strict=True):
            memory.buf[begin : begin + n] = r
        return BatchMessage(pickled, memory.name, tuple(spans), ())

    def _allocate(self, slot: int, size: int) -> SharedMemory:
        """Return the segment of a slot; create it, or replace one that is too small.

        A new one is at least twice as large, because the loader maps replaced segments until the
        workers end: there must be few of them.
        """
        with self._lock:
            memory = self.memory.get(slot)
            if memory is None or memory.size < size:
                if memory is not None:
                    del self.memory[slot]
                    size = max(size, 2 * memory.size)
                    memory.close()
                    memory.unlink()
                memory = self.memory[slot] = self._create(size)
            return memory

    def _create(self, size: int) -> SharedMemory:
        """Create and return a shared memory segment, under a name that is not in use."""
        while True:
            self._segments_created += 1
            name = f"dovetail_{os.getppid()}_{os.getpid()}_{self._segments_created}"
            with contextlib.suppress(FileExistsError):  # left by a killed process with equal ids
                return SharedMemory(name, create=True, size=size)

    def close(self) -> None:
        """Free all segments and keep the lock for good, just before the process ends."""
        self._lock.acquire()  # never released, so that no segment is created any more
        for m in self.memory.values():
            with contextlib.suppress(BufferError):  # another thread is writing a batch
                m.close()
            _unlink(m)


class Inbox:
    """The loader's side of the transport: the workers' segments of shared memory, by name."""

    def __init__(self) -> None:
        self.memory: dict[str, SharedMemory] = {}

    def decode(self, message: BatchMessage, copy: bool) -> Any:
        """Return a message's batch: copies, or read-only views until the segment is reused.

        `copy`: copy the arrays; those of a message without a segment are always copies. A segment
        is opened once.
        """
        if not message.segment:
            return pickle.loads(message.pickled, buffers=[*map(bytearray, message.inline_buffers)])
        memory = self.memory.get(message.segment)
        if memory is None:
            memory = self.memory[message.segment] = SharedMemory(message.segment)
        assert memory.buf is not None
        views = [memory.buf[begin : begin + n] for begin, n in message.spans]
        buffers = [bytearray(v) if copy else v.toreadonly() for v in views]
        return pickle.loads(message.pickled, buffers=buffers)

    def close(self) -> None:
        """Free the segments that messages have named; one with a view in use stays mapped."""
        for m in self.memory.values():
            with contextlib.suppress(BufferError):  # the user still holds a view of a batch
                m.close()
            _unlink(m)
        self.memory.clear()


def _unlink(memory: SharedMemory) -> None:
    """Remove the name of a segment, unless the other process has removed it."""
    with contextlib.suppress(FileNotFoundError):
        memory.unlink()


class WorkerFailure(NamedTuple):
    """An error of a worker, or None if it cannot be pickled, and its traceback as text."""

    error: BaseException | None
    text: str

    @classmethod
    def from_error(cls, error: BaseException) -> WorkerFailure:
        """Return an error, or None if it cannot be pickled, with its traceback as text."""
        text = "".join(traceback.format_exception(error))
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            return cls(None, text)
        return cls(error, text)


# --- the worker -----------------------------------------------------------------------------------


class WorkerOptions(NamedTuple):
    """The options with which a worker process is started."""

    id: int
    num_workers: int
    device: str
    fetch: FetchOptions
    worker_init_fn: Callable[[int], object] | None


def run_worker(options: WorkerOptions, tasks: Connection, results: Connection) -> None:
    """Build and send requested batches until the loader closes its pipes, then exit the process.

    The exit is without cleanup of the interpreter, as forked processes do. A thread
    reads the requests, so that the loader's `send` never blocks.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the loader handles Ctrl-C and ends its workers
    outbox = Outbox()
    queue: SimpleQueue[Any] = SimpleQueue()
    Thread(target=_queue_requests, args=(tasks, queue, outbox), daemon=True).start()
    try:
        _answer_requests(options, outbox, queue, results)
    except (BrokenPipeError, ConnectionResetError):
        _exit_process(outbox, 0)
    except BaseException:
        traceback.print_exc()
        _exit_process(outbox, 1)


def _queue_requests(tasks: Connection, queue: SimpleQueue[Any], outbox: Outbox) -> None:
    """Queue the loader's requests; exit the process when the loader closes the pipe."""
    try:
        while True:
            queue.put(tasks.recv())
    except (EOFError, OSError):
        _exit_process(outbox, 0)


def _exit_process(outbox: Outbox, code: int) -> None:
    """Free the shared memory, flush the streams, and end the process at once."""
    outbox.close()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError, ValueError):  # the reader may be gone
            stream.flush()
    os._exit(code)


def _answer_requests(
    options: WorkerOptions, outbox: Outbox, queue: SimpleQueue[Any], results: Connection
) -> None:
    """Answer queued requests without end: start an epoch, or send a batch of it, or its failure."""
    dt.set_default_device(options.device)
    fetcher: Fetcher | None = None
    failure: WorkerFailure | None = None
    while True:
        task = queue.get()
        if task[0] == "epoch":
            fetcher, failure = None, None
            try:
                fetcher = _start_epoch(options, task[1], task[2])
            except StopIteration as error:
                failure = WorkerFailure.from_error(
                    _stop_iteration_error(error, options.fetch.dataset)
                )
            except Exception as error:
                failure = WorkerFailure.from_error(error)
            continue
        _, number, slot, indices = task
        if failure is None:
            results.send((number, _build_batch(fetcher, outbox, slot, indices)))
        else:
            results.send((number, failure))


def _start_epoch(options: WorkerOptions, seed: int, is_first: bool) -> Fetcher:
    """Seed generators, set the worker's info, call the init function if first; return a fetcher."""
    global _worker_info
    worker_seed = seed + options.id
    random.seed(worker_seed)
    np.random.seed(worker_seed % (1 << 32))
    dt.random.manual_seed(worker_seed)
    _worker_info = WorkerInfo(options.id, options.num_workers, worker_seed, options.fetch.dataset)
    if options.worker_init_fn is not None and is_first:
        options.worker_init_fn(options.id)
    return Fetcher(options.fetch, True)


def _build_batch(
    fetcher: Fetcher | None, outbox: Outbox, slot: int, indices: Any
) -> BatchMessage | WorkerFailure | None:
    """Build a batch, a large one in `slot`; return its message, a failure, or None at the end."""
    assert fetcher is not None
    try:
        return outbox.put(slot, fetcher.batch(indices))
    except EndOfData:
        return None
    except Exception as error:
        return WorkerFailure.from_error(error)
