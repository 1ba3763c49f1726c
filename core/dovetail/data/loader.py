"""The loader: batches of a data set, built in this process or by worker processes."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import time
import warnings
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from ..nn.constructor_errors import Explained
from .collate import default_collate, to_device
from .datasets import Generator, is_iterable
from .progress import Track
from .samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .source_check import MAIN_GUARD_HINT, explain_unimportable, main_names
from .workers import (
    BatchMessage,
    EndOfData,
    Fetcher,
    FetchOptions,
    Inbox,
    WorkerError,
    WorkerFailure,
    WorkerOptions,
    run_worker,
)

__all__ = ["DataLoader", "WorkerError"]

SEED_END = 1 << 62
EXIT_SECONDS_MAX = 0.5  # time for workers to exit by themselves before they are terminated


class _WorkerTraceback(Exception):
    """The traceback of a worker, as the cause of the error that the loader raises."""

    def __init__(self, text: str) -> None:
        super().__init__(f"\n\n{text}")


class DataLoader(Explained):
    """An iterable over the batches of a data set: `for x, y in loader`.

    - `dataset`: a `Dataset`, or any object with `__getitem__` and `__len__` such as a list or a
      tensor; or an `IterableDataset`, or another object with `__iter__` and no length. Data sets of
      PyTorch are accepted.
    - `batch_size`: the number of items in a batch; None yields single items.
    - `shuffle`: True uses a random order, which is new in each epoch.
    - `sampler`: an iterable of indices that replaces the order.
    - `batch_sampler`: an iterable of lists of indices, which replaces `batch_size`, `shuffle`,
      `sampler` and `drop_last`.
    - `num_workers`: the number of processes that build batches ahead of time; 0 builds them in this
      process. It does not change the order.
    - `collate_fn`: a function that turns a list of items into a batch. Default: `default_collate`;
      None if `batch_size` is None.
    - `pin_memory`: put tensors in page-locked memory; without a device that locks pages it warns
      and has no effect.
    - `drop_last`: skip a last batch that is shorter.
    - `timeout`: the longest wait for a batch of a worker, in seconds; 0 waits without end.
    - `worker_init_fn`: a function that is called first in each worker, with the worker's number.
    - `multiprocessing_context`: a `multiprocessing` context, or "spawn" (the default) or
      "forkserver"; "fork" is not allowed.
    - `generator`: the random generator of the order and of the workers' seeds; None is the global
      one.
    - `prefetch_factor`: the number of batches that each worker builds ahead. Default: 2.
    - `persistent_workers`: keep the workers for the next epoch, which saves their start and the
      pickling of the data set.
    - `pin_memory_device`: the device whose page-locked memory `pin_memory` uses. Default: `device`.
    - `in_order`: yield batches in order; False yields them as workers finish them.
    - `device`: the device of the batches' tensors; None leaves them where the data set has them.
      The next batch is copied while the current one is used.
    - `progress`: True, or the text before the bar, shows a progress bar on a terminal, as `Track`
      does.

    Workers are spawned processes. They receive the data set, without samplers, as a pickle. A
    script therefore has its work below `if __name__ == "__main__":`. Classes and functions that are
    sent must be defined above that line or in a module; a notebook must define them in a module.
    Cost: a worker starts a Python process, which imports the modules of the data set; small data is
    faster with `num_workers` 0.
    Raises: ArgumentError; during iteration the errors of the data set, with the traceback of the
    worker, or WorkerError.
    See also: `default_collate`, `TensorDataset`, `get_worker_info`, `RandomSampler`.

    >>> import dovetail as dt
    >>> rows = dt.data.TensorDataset(dt.arange(5))
    >>> [x.tolist() for (x,) in dt.data.DataLoader(rows, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], object] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        device: Any = None,
        progress: bool | str = False,
    ) -> None:
        if not isinstance(progress, (bool, str)):
            raise dt.ArgumentTypeError(
                f"data.DataLoader: progress must be True, False or a str, got {progress!r:.80}"
            )
        self.progress = progress
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self._can_pin: bool | None = None if pin_memory else False  # None: not determined yet
        self.worker_init_fn, self.generator, self.in_order = worker_init_fn, generator, in_order
        self.persistent_workers = persistent_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.device = None if device is None else dt.device(device)
        self.multiprocessing_context = _process_context(multiprocessing_context, num_workers)
        self._check_workers(prefetch_factor)
        self._is_iterable = is_iterable(dataset)
        self._check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.batch_size: int | None = batch_size
        self.drop_last, self.sampler, self.batch_sampler = drop_last, sampler, batch_sampler
        self._choose_samplers(bool(shuffle))
        self.collate_fn = collate_fn
        if collate_fn is None and (self.batch_sampler is not None or self.batch_size is not None):
            self.collate_fn = default_collate
        self._workers: _WorkerPool | None = None

    # --- checks of arguments
    def _check_workers(self, prefetch_factor: int | None) -> None:
        """Store num_workers as an int; raise ArgumentError for worker options that do not fit."""
        self.num_workers = arguments.integer("data.DataLoader", self.num_workers, "num_workers", 0)
        if self.timeout < 0:
            raise dt.ArgumentError(
                f"data.DataLoader: timeout must not be negative, got {self.timeout}"
            )
        if not self.num_workers and (prefetch_factor is not None or self.persistent_workers):
            raise dt.ArgumentError(
                "data.DataLoader: prefetch_factor and persistent_workers need worker processes; "
                "pass num_workers"
            )
        if prefetch_factor is not None:
            arguments.integer("data.DataLoader", prefetch_factor, "prefetch_factor", 1)

    def _check_sampling(
        self,
        batch_size: int | None,
        shuffle: bool | None,
        sampler: Any,
        batch_sampler: Any,
        drop_last: bool,
    ) -> None:
        """Raise ArgumentError for sampling options that exclude each other or are out of range."""
        name = "data.DataLoader"
        if self._is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise dt.ArgumentError(
                f"{name}: shuffle, sampler and batch_sampler are not allowed with an "
                "IterableDataset, which defines the order itself"
            )
        if sampler is not None and shuffle:
            raise dt.ArgumentError(f"{name}: only one of shuffle and sampler must be given")
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise dt.ArgumentError(
                f"{name}: batch_sampler replaces batch_size, shuffle, sampler and drop_last; do "
                "not pass them"
            )
        if not self.in_order and hasattr(batch_sampler, "share_batches"):
            raise dt.ArgumentError(
                f"{name}: in_order must be True with a DealtSampler, which counts the batches"
            )
        if batch_size is None and drop_last:
            raise dt.ArgumentError(f"{name}: drop_last=True needs batches; pass batch_size")
        if batch_size is not None:
            arguments.integer(name, batch_size, "batch_size", 1)

    def _choose_samplers(self, shuffle: bool) -> None:
        """Create missing samplers, none for an iterable; clear batch_size for a batch_sampler."""
        if self.batch_sampler is not None:
            self.batch_size = None
        if self._is_iterable:
            return
        if self.sampler is None:
            self.sampler = (
                RandomSampler(self.dataset, generator=self.generator)
                if shuffle
                else SequentialSampler(self.dataset)
            )
        if self.batch_size is not None and self.batch_sampler is None:
            self.batch_sampler = BatchSampler(self.sampler, self.batch_size, self.drop_last)

    def __repr__(self) -> str:
        return (
            f"DataLoader({self.dataset!r}, batch_size={self.batch_size}, "
            f"num_workers={self.num_workers})"
        )

    def __len__(self) -> int:
        if self._is_iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._index_sampler)  # type: ignore[arg-type]  # len() raises TypeError

    @property
    def _index_sampler(self) -> Iterable[Any]:
        """Return the sampler of batches, or of items if there are no batches."""
        sampler = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert sampler is not None
        return sampler

    # --- iteration
    def __iter__(self) -> Iterator[Any]:
        if self._can_pin is None:
            self._can_pin = _can_pin_memory(self.pin_memory_device or self.device)
            if not self._can_pin:
                warnings.warn(
                    "data.DataLoader: pin_memory=True has no effect, because no device here has "
                    "pinned host memory; batches stay in pageable memory",
                    dt.DovetailWarning,
                    stacklevel=2,
                )
        dealt: Any = self.batch_sampler if hasattr(self.batch_sampler, "share_batches") else None
        batches: Iterator[Any]
        if dealt is not None:  # a `dt.parallel.DealtSampler`
            batches = dealt.share_batches(self._epoch(dealt.worker_seed()))
        else:
            rng: Any = dt.random if self.generator is None else self.generator
            # drawn for any number of workers: later numbers of the generator do not depend on it
            batches = self._epoch(int(rng.integers(0, SEED_END, (), dtype=dt.int64).item()))
        if not self.progress:
            return batches
        text = self.progress if isinstance(self.progress, str) else ""
        return iter(Track(batches, text, _count_batches(self)))

    def _epoch(self, seed: int) -> Iterator[Any]:
        """Return an iterator over one epoch; start or reuse workers and seed their generators."""
        if self.num_workers == 0:
            batches = (self._to_device(batch) for batch in self._build_batches())
            return batches if self.device is None else _prefetch(batches)
        if not self.persistent_workers:
            return _WorkerBatches(self, _WorkerPool(self), seed, True)
        is_first = self._workers is None or not self._workers.alive
        if self._workers is None or is_first:
            self._workers = _WorkerPool(self)
        return _WorkerBatches(self, self._workers, seed, is_first)

    def _fetch_options(self) -> FetchOptions:
        """Return the options that a fetcher needs to build batches."""
        batched = self.batch_size is not None or self.batch_sampler is not None
        size = 1 if self.batch_size is None else self.batch_size
        return FetchOptions(self.dataset, self.collate_fn, batched, self.drop_last, size)

    def _indices(self) -> Iterator[Any]:
        """Yield the indices of each batch; None without end for an iterable data set."""
        if not self._is_iterable:
            yield from self._index_sampler
        while self._is_iterable:
            yield None

    def _build_batches(self) -> Iterator[Any]:
        """Yield the batches of an epoch, built in this process, not moved to the device."""
        fetcher = Fetcher(self._fetch_options(), False)
        for indices in self._indices():
            try:
                batch = fetcher.batch(indices)
            except EndOfData:
                return
            yield batch

    def _to_device(self, batch: Any) -> Any:
        """Return a batch with its tensors pinned if possible, then on `device` if it is set."""
        if not self._can_pin:
            return to_device(batch, self.device)
        pin = partial(dt.pin_memory, device=self.pin_memory_device or self.device)
        pinned = to_device(batch, None, pin)
        return pinned if self.device is None else to_device(pinned, self.device)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_workers": None}


def _count_batches(loader: DataLoader) -> int | None:
    """Return the number of batches, or None if the sampler or data set has no length."""
    try:
        return len(loader)
    except TypeError:
        return None


def _can_pin_memory(device: Any) -> bool:
    """Return True if a device can lock pages; None asks for any device.

    The check pins a small tensor, which selects the device in the same way as later calls do.
    Raises: DeviceError for a device that cannot be used.
    """
    if device is not None:
        dt.empty(1, device=device)
    try:
        dt.zeros(1, device="reference").pin_memory(device)
    except dt.DeviceError:
        return False
    return True


def _process_context(context: Any, workers: int) -> Any:
    """Return a `multiprocessing` context, "spawn" by default; raise ArgumentError for "fork".

    `context`: a context, the name of a start method, or None. `workers`: the number of workers.
    ArgumentError is also for an unknown name, and for a context without workers.
    """
    if context is not None and not workers:
        raise dt.ArgumentError(
            "data.DataLoader: multiprocessing_context needs worker processes; pass num_workers"
        )
    by_name = context is None or isinstance(context, str)
    method = context if by_name else context.get_start_method()
    if method == "fork":
        raise dt.ArgumentError(
            "data.DataLoader: multiprocessing_context must not be 'fork', because the copy of a "
            "process with threads can deadlock; use 'spawn' or 'forkserver'"
        )
    if not by_name:
        return context
    try:
        return multiprocessing.get_context(context or "spawn")
    except ValueError as error:
        raise dt.ArgumentError(f"data.DataLoader: multiprocessing_context: {error}") from None


def _prefetch(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the batches of an iterator, each after the next one has been taken from it."""
    prefetched: deque[Any] = deque()
    for batch in batches:
        prefetched.append(batch)
        if len(prefetched) > 1:
            yield prefetched.popleft()
    yield from prefetched


# --- worker processes -----------------------------------------------------------------------------


class _WorkerPool:
    """The worker processes of a loader and the pipes to them; they end with this object."""

    def __init__(self, loader: DataLoader) -> None:
        self.count, self.prefetch = loader.num_workers, loader.prefetch_factor or 1
        self.inbox, self.alive = Inbox(), True
        self.responded: set[int] = set()  # workers that have sent a result
        self.processes: list[Any] = []
        self.tasks: list[Connection] = []
        self.results: list[Connection] = []
        self._finalizer = weakref.finalize(
            self, _end_processes, self.processes, self.tasks, self.results, self.inbox
        )
        problem = explain_unimportable(partial(self._options, 0, loader))
        if problem:
            raise dt.ArgumentError(f"data.DataLoader: {problem}")
        try:
            for i in range(self.count):
                self._start(i, loader)
        except BaseException:
            self.close()
            raise

    def _options(self, i: int, loader: DataLoader) -> WorkerOptions:
        """Return the start options of worker `i`, whose default device is the CPU or reference."""
        device = "reference" if dt.default_device().type == "reference" else "cpu"
        fetch = loader._fetch_options()
        return WorkerOptions(i, self.count, device, fetch, loader.worker_init_fn)

    def _start(self, i: int, loader: DataLoader) -> None:
        """Start worker `i` and store its pipes. Raises: ArgumentError if it cannot be pickled."""
        context, options = loader.multiprocessing_context, self._options(i, loader)
        inner, tasks = context.Pipe(duplex=False)
        results, outer = context.Pipe(duplex=False)
        self.tasks.append(tasks)
        self.results.append(results)
        process = context.Process(
            target=run_worker,
            args=(options, inner, outer),
            daemon=True,
            name=f"dovetail-loader-{i}",
        )
        try:
            process.start()
        except (AttributeError, TypeError, ValueError, ImportError, pickle.PicklingError) as error:
            raise dt.ArgumentError(
                f"data.DataLoader: the data set cannot be sent to a worker process: {error}; "
                "define its classes and functions (collate_fn, worker_init_fn) in a module, or "
                "pass num_workers=0"
            ) from error
        finally:
            inner.close()
            outer.close()
        self.processes.append(process)

    def close(self) -> None:
        """End the worker processes, free their shared memory, and set `alive` to False."""
        self.alive = False
        self._finalizer()


def _end_processes(
    processes: list[Any], tasks: list[Connection], results: list[Connection], inbox: Inbox
) -> None:
    """Close the pipes, wait, terminate, then kill processes that remain; close the inbox."""
    for pipe in (*tasks, *results):
        pipe.close()
    deadline = time.monotonic() + EXIT_SECONDS_MAX
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(EXIT_SECONDS_MAX)
        if process.is_alive():
            process.kill()
            process.join()
    inbox.close()


class _WorkerBatches:
    """An iterator over one epoch of batches that workers build."""

    def __init__(self, loader: DataLoader, workers: _WorkerPool, seed: int, is_first: bool) -> None:
        self.loader, self.workers = loader, workers
        self.indices = loader._indices()
        self.copy = loader.collate_fn is not default_collate
        self.requested = self.yielded = 0  # numbers of batches
        self.received: dict[int, Any] = {}  # batches that were not yielded yet, by number
        self.assignments: dict[int, tuple[int, int]] = {}  # worker and memory slot of each request
        self.request_order = deque(
            range(workers.count)
        )  # workers with more data; the first is next
        self.free_slots: list[list[int]] = [[] for _ in range(workers.count)]  # unused memory slots
        self.slot_counts = [0] * workers.count  # numbers of memory slots
        self.prefetched: deque[Any] = deque()  # batches that are being copied to the device
        self.ended = False
        try:
            for pipe in workers.tasks:
                pipe.send(("epoch", seed, is_first))
            for _ in range(workers.count * workers.prefetch):
                self._request()
        except OSError:
            self._raise_exited(self._exited_workers())
        except BaseException:
            self._close()
            raise

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            ahead = 1 if self.loader.device is not None else 0
            while not self.ended and len(self.prefetched) <= ahead:
                batch = self._next_batch()
                if batch is not None:
                    self.prefetched.append(batch)
            if self.prefetched:
                return self.prefetched.popleft()
        except BaseException:
            self._close()
            raise
        if not self.loader.persistent_workers:
            self._close()
        raise StopIteration

    def _request(self) -> None:
        """Request the next batch from the next worker in turn; do nothing after the last one."""
        if not self.request_order:
            return
        try:
            indices = next(self.indices)
        except StopIteration:
            self.request_order.clear()
            return
        k = self.request_order[0]
        self.request_order.rotate(-1)
        if not self.free_slots[k]:
            self.free_slots[k].append(self.slot_counts[k])
            self.slot_counts[k] += 1
        slot = self.free_slots[k].pop()
        self.assignments[self.requested] = k, slot
        number, self.requested = self.requested, self.requested + 1
        try:
            self.workers.tasks[k].send(("batch", number, slot, indices))
        except OSError:
            self._raise_exited([k])

    def _next_batch(self) -> Any:
        """Wait for the next batch; return it, or None at an end of data; raise a worker's error.

        None is also returned at the end of the epoch, where `ended` is set.
        """
        number = self.yielded if self.loader.in_order else next(iter(self.received), None)
        while number is None or number not in self.received:
            if not self.assignments:
                self.ended = True
                return None
            received = self._receive()
            if not self.loader.in_order:
                number = received
        batch = self.received.pop(number)
        self.yielded += 1
        if isinstance(batch, WorkerFailure):
            self._raise_failure(batch, number)
        return batch

    def _receive(self) -> int:
        """Store a worker's result, ask the next worker for a batch; return the result's number.

        A batch is moved to the device. The end of data and a worker's error are stored, too.
        Raises: WorkerError after `timeout`, and if a worker has exited.
        """
        limit = self.loader.timeout or None
        busy = {k for k, _ in self.assignments.values()}
        pipes: dict[Any, int] = {self.workers.results[k]: k for k in busy}
        sentinels: dict[Any, int] = {self.workers.processes[k].sentinel: k for k in busy}
        signalled = wait([*pipes, *sentinels], limit)
        if not signalled:
            raise WorkerError(
                f"data.DataLoader: no batch arrived within timeout={limit:g} seconds; workers "
                f"{sorted(busy)} are still making batches {sorted(self.assignments)}"
            )
        ready = [x for x in signalled if x in pipes]
        if not ready:
            self._raise_exited([sentinels[x] for x in signalled])
        k = pipes[ready[0]]
        try:
            number, result = self.workers.results[k].recv()
        except (EOFError, ConnectionResetError):
            self._raise_exited([k])
        self.workers.responded.add(k)
        _, slot = self.assignments.pop(number)
        if result is None:  # an iterable data set has no more items
            if k in self.request_order:
                self.request_order.remove(k)
            self.received[number] = None
        elif isinstance(result, BatchMessage):
            batch = self.workers.inbox.decode(result, self.copy)
            self.received[number] = self.loader._to_device(batch)
            del batch  # shared memory cannot be closed while views of it exist
        else:
            self.received[number] = result
        self.free_slots[k].append(slot)
        self._request()
        return int(number)

    def _raise_failure(self, failure: WorkerFailure, number: int) -> None:
        """Raise a worker's error, or WorkerError if it could not be sent, always."""
        note = f"data.DataLoader: raised in a worker process while making batch {number}"
        if failure.error is None:
            raise WorkerError(f"{note}:\n{failure.text}")
        failure.error.add_note(note)
        raise failure.error from _WorkerTraceback(failure.text)

    def _exited_workers(self) -> list[int]:
        """Return the numbers of workers whose process has ended."""
        return [k for k, p in enumerate(self.workers.processes) if not p.is_alive()]

    def _raise_exited(self, workers: list[int]) -> Any:
        """End all workers and raise WorkerError with how these exited, always."""
        causes, hint = [], ""
        for k in workers:
            process = self.workers.processes[k]
            process.join(EXIT_SECONDS_MAX)
            causes.append(f"worker {k} (process {process.pid}) {_describe_exit(process.exitcode)}")
            if process.exitcode == 1 and k not in self.workers.responded:
                hint = self._startup_hint(k)
        self._close()
        raise WorkerError(
            f"data.DataLoader: {', '.join(causes) or 'a worker exited'} while making batches "
            f"{sorted(self.assignments)}; its output is above{hint}"
        )

    def _startup_hint(self, k: int) -> str:
        """Return the likely reason, as text, why worker `k` exited before its first result."""
        names = main_names(self.workers._options(k, self.loader))
        sent = f"it was sent {' and '.join(names)} of `__main__`: " if names else ""
        return f"; if it could not start: {sent}{MAIN_GUARD_HINT}"

    def _close(self) -> None:
        """Mark the epoch as ended and end all workers."""
        self.ended = True
        self.workers.close()

    def __del__(self) -> None:
        workers = getattr(self, "workers", None)
        if workers is not None and not self.ended:
            workers.close()


def _describe_exit(code: int | None) -> str:
    """Return a text that describes the exit code of a process."""
    if code is None:
        return "does not answer"
    if code >= 0:
        return f"has ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = str(-code)
    memory = "; out of memory?" if name == "SIGKILL" else ""
    return f"was killed by the signal {name}{memory}"
