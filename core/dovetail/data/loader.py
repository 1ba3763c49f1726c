"""The loader: batches of a data set, made here or by worker processes, in one order."""

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

from ..nn.constructor_errors import Explained
from .collate import default_collate, on_device
from .datasets import Generator, IterableDataset
from .origins import HINT, not_found_by, of_main
from .progress import Track
from .samplers import BatchSampler, RandomSampler, Sampler, SequentialSampler
from .workers import Failed, Fetch, Fetcher, Inbox, Job, NoMore, Sent, WorkerError, work

__all__ = ["DataLoader", "WorkerError"]

SEEDS = 1 << 62
PATIENCE = 0.5  # seconds that workers have to end by themselves, before they are ended


class _FromWorker(Exception):
    """The traceback of a worker, as the cause of what is raised here."""

    def __init__(self, text: str) -> None:
        super().__init__(f"\n\n{text}")


class DataLoader(Explained):
    """Iterates over batches of a data set: `for x, y in loader`.

    `batch_size`: items of a batch; None gives items as they are. `shuffle`: in an order of chance.
    `sampler`, `batch_sampler`: give indices of items, or lists of them. `num_workers`: processes
    that make batches ahead of time, `prefetch_factor` each (2); the order is the same for any
    number. `collate_fn`: what makes a batch of a list of items. `drop_last`: leaves a last, shorter
    one out. `device`: where tensors of batches are to be; the next batch goes there while this one
    is worked on. `pin_memory`: tensors in page-locked memory, where a device locks pages; elsewhere
    it warns, and they are as they are. `timeout`: seconds that a batch may take.
    `worker_init_fn(id)` is called first in each worker. `generator`: of random numbers.
    `persistent_workers`: they stay for the next epoch. `in_order`: whether batches of workers come
    in order, or as they are made. `progress`: whether a loop over it shows a bar on a terminal, as
    `Track` does, or the text before the bar.

    Workers are new processes (spawned), to which the data set, samplers aside, is sent as a pickle:
    so a script has its work below `if __name__ == "__main__":`, and what is sent is defined above
    it, or in a module, as what a notebook defines must be.
    Raises: ArgumentError; while it is iterated over what the data set raises, with the traceback of
    the worker, or WorkerError.

    >>> import dovetail as dt
    >>> rows = dt.data.TensorDataset(dt.arange(5, device="reference"))
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
                f"data.DataLoader: progress is True, False or a text, not {progress!r:.80}"
            )
        self.progress = progress
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.pin_memory, self.pin_memory_device = pin_memory, pin_memory_device
        self._locks: bool | None = None if pin_memory else False  # None: nobody has looked yet
        self.worker_init_fn, self.generator, self.in_order = worker_init_fn, generator, in_order
        self.persistent_workers = persistent_workers
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        self.device = None if device is None else dt.device(device)
        self.multiprocessing_context = _context(multiprocessing_context, num_workers)
        self._check_workers(prefetch_factor)
        self._is_iterable = isinstance(dataset, IterableDataset)
        self._check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        self.batch_size: int | None = batch_size
        self.drop_last, self.sampler, self.batch_sampler = drop_last, sampler, batch_sampler
        self._choose_samplers(bool(shuffle))
        self.collate_fn = collate_fn
        if collate_fn is None and (self.batch_sampler is not None or self.batch_size is not None):
            self.collate_fn = default_collate
        self._workers: _Workers | None = None

    # --- what it was given
    def _check_workers(self, prefetch_factor: int | None) -> None:
        if not isinstance(self.num_workers, int) or self.num_workers < 0:
            raise dt.ArgumentError(
                f"data.DataLoader: num_workers is {self.num_workers!r}; it is an int of 0 or more"
            )
        if self.timeout < 0:
            raise dt.ArgumentError(f"data.DataLoader: timeout is {self.timeout}; it is 0 or more")
        if not self.num_workers and (prefetch_factor is not None or self.persistent_workers):
            raise dt.ArgumentError(
                "data.DataLoader: prefetch_factor and persistent_workers are for worker processes; "
                "give num_workers"
            )
        if prefetch_factor is not None and prefetch_factor < 1:
            raise dt.ArgumentError(
                f"data.DataLoader: prefetch_factor is {prefetch_factor}; it is 1 or more"
            )

    def _check_sampling(
        self, batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any,
        drop_last: bool,
    ) -> None:  # fmt: skip
        name = "data.DataLoader"
        if self._is_iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise dt.ArgumentError(
                f"{name}: shuffle, sampler and batch_sampler are for items by number; an "
                "IterableDataset says the order itself"
            )
        if sampler is not None and shuffle:
            raise dt.ArgumentError(f"{name}: give shuffle or sampler, not both")
        if batch_sampler is not None and (
            batch_size != 1 or shuffle or sampler is not None or drop_last
        ):
            raise dt.ArgumentError(
                f"{name}: batch_sampler says all that batch_size, shuffle, sampler and drop_last "
                "say; leave them out"
            )
        if batch_size is None and drop_last:
            raise dt.ArgumentError(f"{name}: drop_last is for batches; give batch_size")
        if batch_size is not None and (not isinstance(batch_size, int) or batch_size < 1):
            raise dt.ArgumentError(
                f"{name}: batch_size is {batch_size!r}; it is an int of 1 or more, or None"
            )

    def _choose_samplers(self, shuffle: bool) -> None:
        if self.batch_sampler is not None:
            self.batch_size = None
        if self._is_iterable:
            return
        if self.sampler is None:
            self.sampler = (
                RandomSampler(self.dataset, generator=self.generator) if shuffle
                else SequentialSampler(self.dataset)
            )  # fmt: skip
        if self.batch_size is not None and self.batch_sampler is None:
            self.batch_sampler = BatchSampler(self.sampler, self.batch_size, self.drop_last)

    def __len__(self) -> int:
        if self._is_iterable:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self._index_sampler)  # type: ignore[arg-type]  # what has none says so

    @property
    def _index_sampler(self) -> Iterable[Any]:
        found = self.sampler if self.batch_sampler is None else self.batch_sampler
        assert found is not None
        return found

    # --- iteration
    def __iter__(self) -> Iterator[Any]:
        if self._locks is None:
            self._locks = _locks_pages(self.pin_memory_device or self.device)
            if not self._locks:
                warnings.warn(
                    "data.DataLoader: pin_memory is True, and no device here locks pages of the "
                    "host's memory; batches stay in ordinary memory",
                    dt.DovetailWarning,
                    stacklevel=2,
                )
        drawn: Any = dt.random if self.generator is None else self.generator
        seed = int(drawn.integers(0, SEEDS, (), dtype=dt.int64).item())  # whoever needs it
        batches = self._epoch(seed)
        if not self.progress:
            return batches
        text = self.progress if isinstance(self.progress, str) else ""
        return iter(Track(batches, text, _length(self)))

    def _epoch(self, seed: int) -> Iterator[Any]:
        if self.num_workers == 0:
            return _ahead(map(self._finished, self._here()), self.device is not None)
        if not self.persistent_workers:
            return _Batches(self, _Workers(self), seed, True)
        is_first = self._workers is None or not self._workers.alive
        if self._workers is None or is_first:
            self._workers = _Workers(self)
        return _Batches(self, self._workers, seed, is_first)

    def _fetch(self) -> Fetch:
        batched = self.batch_size is not None or self.batch_sampler is not None
        size = 1 if self.batch_size is None else self.batch_size
        return Fetch(self.dataset, self.collate_fn, batched, self.drop_last, size)

    def _indices(self) -> Iterator[Any]:
        """What each batch is asked for with."""
        if not self._is_iterable:
            yield from self._index_sampler
        while self._is_iterable:
            yield None

    def _here(self) -> Iterator[Any]:
        """The batches, made in this process."""
        fetcher = Fetcher(self._fetch(), False)
        for indices in self._indices():
            try:
                batch = fetcher.batch(indices)
            except NoMore:
                return
            yield batch

    def _finished(self, batch: Any) -> Any:
        """A batch where it is wanted."""
        if not self._locks:
            return on_device(batch, self.device)
        lock = partial(dt.pin_memory, device=self.pin_memory_device or self.device)
        pinned = on_device(batch, None, lock)
        return pinned if self.device is None else on_device(pinned, self.device)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_workers": None}


def _length(loader: DataLoader) -> int | None:
    """How many batches there are, where somebody knows."""
    try:
        return len(loader)
    except TypeError:
        return None


def _locks_pages(device: Any) -> bool:
    """Whether a device, or any if it is None, locks pages. Raises: DeviceError if it is not there.

    It is asked to: there may be many, and the first that does is the one that will be taken.
    """
    if device is not None:
        dt.empty(1, device=device)
    try:
        dt.zeros(1, device="reference").pin_memory(device)
    except dt.DeviceError:
        return False
    return True


def _context(given: Any, workers: int) -> Any:
    """How processes are started. Raises: ArgumentError."""
    if given is not None and not workers:
        raise dt.ArgumentError(
            "data.DataLoader: multiprocessing_context is for worker processes; give num_workers"
        )
    method = given if given is None or isinstance(given, str) else given.get_start_method()
    if method == "fork":
        raise dt.ArgumentError(
            "data.DataLoader: multiprocessing_context is 'fork': a copy of a process with threads "
            "may wait for ever; use 'spawn' or 'forkserver'"
        )
    if given is None or isinstance(given, str):
        try:
            return multiprocessing.get_context(given or "spawn")
        except ValueError as error:
            raise dt.ArgumentError(f"data.DataLoader: multiprocessing_context: {error}") from None
    return given


def _ahead(batches: Iterator[Any], ahead: bool) -> Iterator[Any]:
    """The batches; with `ahead` the next one is on its way to the device while one is used."""
    if not ahead:
        yield from batches
        return
    waiting: deque[Any] = deque()
    for batch in batches:
        waiting.append(batch)
        if len(waiting) > 1:
            yield waiting.popleft()
    yield from waiting


# --- worker processes -----------------------------------------------------------------------------


class _Workers:
    """The processes of a loader, and pipes to them; they end with this object."""

    def __init__(self, loader: DataLoader) -> None:
        self.count, self.places = loader.num_workers, loader.prefetch_factor or 1
        self.inbox, self.alive = Inbox(), True
        self.answered: set[int] = set()  # workers that have sent something
        self.processes: list[Any] = []
        self.tasks: list[Connection] = []
        self.results: list[Connection] = []
        self._end = weakref.finalize(
            self, _ended, self.processes, self.tasks, self.results, self.inbox
        )
        why = not_found_by(partial(self._job, 0, loader))
        if why:
            raise dt.ArgumentError(f"data.DataLoader: {why}")
        try:
            for i in range(self.count):
                self._start(i, loader)
        except BaseException:
            self.close()
            raise

    def _job(self, i: int, loader: DataLoader) -> Job:
        device = "reference" if dt.default_device().type == "reference" else "cpu"
        return Job(i, self.count, device, loader._fetch(), loader.worker_init_fn)

    def _start(self, i: int, loader: DataLoader) -> None:
        context, job = loader.multiprocessing_context, self._job(i, loader)
        inner, tasks = context.Pipe(duplex=False)
        results, outer = context.Pipe(duplex=False)
        self.tasks.append(tasks)
        self.results.append(results)
        process = context.Process(
            target=work, args=(job, inner, outer), daemon=True, name=f"dovetail-loader-{i}"
        )
        try:
            process.start()
        except (
            AttributeError, TypeError, ValueError, ImportError, pickle.PicklingError
        ) as error:  # fmt: skip
            raise dt.ArgumentError(
                f"data.DataLoader: the data set cannot be sent to a worker process: {error}; "
                "classes and functions (collate_fn, worker_init_fn) are to be defined in a module, "
                "or give num_workers=0"
            ) from error
        finally:
            inner.close()
            outer.close()
        self.processes.append(process)

    def close(self) -> None:
        """Ends the processes."""
        self.alive = False
        self._end()


def _ended(
    processes: list[Any], tasks: list[Connection], results: list[Connection], inbox: Inbox
) -> None:
    """Has processes end: by themselves, or else."""
    for pipe in (*tasks, *results):
        pipe.close()
    until = time.monotonic() + PATIENCE
    for process in processes:
        process.join(max(0.0, until - time.monotonic()))
    for process in processes:
        if process.is_alive():
            process.terminate()
    for process in processes:
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
    inbox.close()


class _Batches:
    """One epoch: batches as workers make them."""

    def __init__(self, loader: DataLoader, workers: _Workers, seed: int, is_first: bool) -> None:
        self.loader, self.workers = loader, workers
        self.indices = loader._indices()
        self.copies = loader.collate_fn is not default_collate
        self.asked = self.given = 0  # batches that were asked for, that were given
        self.made: dict[int, Any] = {}  # those that came too early
        self.owner: dict[int, tuple[int, int]] = {}  # of each on its way, worker and place there
        self.turns = deque(range(workers.count))  # whose turn it is; who has no more is not there
        self.free: list[list[int]] = [[] for _ in range(workers.count)]  # places in memory
        self.places = [0] * workers.count
        self.ready: deque[Any] = deque()  # on their way to the device
        self.ended = False
        try:
            for pipe in workers.tasks:
                pipe.send(("epoch", seed, is_first))
            for _ in range(workers.count * workers.places):
                self._ask()
        except OSError:
            self._dead(self._exited())
        except BaseException:
            self._close()
            raise

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            ahead = 1 if self.loader.device is not None else 0
            while not self.ended and len(self.ready) <= ahead:
                batch = self._taken()
                if batch is not None:
                    self.ready.append(batch)
            if self.ready:
                return self.ready.popleft()
        except BaseException:
            self._close()
            raise
        if not self.loader.persistent_workers:
            self._close()
        raise StopIteration

    def _ask(self) -> None:
        """Asks for the next batch, if there is one."""
        if not self.turns:
            return
        try:
            indices = next(self.indices)
        except StopIteration:
            self.turns.clear()
            return
        k = self.turns[0]
        self.turns.rotate(-1)
        if not self.free[k]:
            self.free[k].append(self.places[k])
            self.places[k] += 1
        place = self.free[k].pop()
        self.owner[self.asked] = k, place
        number, self.asked = self.asked, self.asked + 1
        try:
            self.workers.tasks[k].send(("batch", number, place, indices))
        except OSError:
            self._dead([k])

    def _taken(self) -> Any:
        """The next batch; None where there is none, or it was an end."""
        number = self.given if self.loader.in_order else next(iter(self.made), None)
        while number is None or number not in self.made:
            if not self.owner:
                self.ended = True
                return None
            came = self._receive()
            if not self.loader.in_order:
                number = came
        batch = self.made.pop(number)
        self.given += 1
        if isinstance(batch, Failed):
            self._raise(batch, number)
        return batch

    def _receive(self) -> int:
        """Waits for a batch of any worker, and asks for another one; its number."""
        limit = self.loader.timeout or None
        waited = {k for k, _ in self.owner.values()}
        pipes: dict[Any, int] = {self.workers.results[k]: k for k in waited}
        sentinels: dict[Any, int] = {self.workers.processes[k].sentinel: k for k in waited}
        found = wait([*pipes, *sentinels], limit)
        if not found:
            raise WorkerError(
                f"data.DataLoader: no batch for {limit:g} seconds (timeout=); workers "
                f"{sorted(waited)} are at work on batches {sorted(self.owner)}"
            )
        ready = [x for x in found if x in pipes]
        if not ready:
            self._dead([sentinels[x] for x in found])
        k = pipes[ready[0]]
        try:
            number, sent = self.workers.results[k].recv()
        except (EOFError, ConnectionResetError):
            self._dead([k])
        self.workers.answered.add(k)
        _, place = self.owner.pop(number)
        if sent is None:  # of an iterable data set: it has no more
            if k in self.turns:
                self.turns.remove(k)
            self.made[number] = None
        elif isinstance(sent, Sent):
            batch = self.workers.inbox.taken(sent, self.copies)
            self.made[number] = self.loader._finished(batch)
            del batch
        else:
            self.made[number] = sent
        self.free[k].append(place)
        self._ask()
        return int(number)

    def _raise(self, failed: Failed, number: int) -> None:
        note = f"data.DataLoader: raised in a worker process, while it made batch {number}"
        if failed.error is None:
            raise WorkerError(f"{note}:\n{failed.text}")
        failed.error.add_note(note)
        raise failed.error from _FromWorker(failed.text)

    def _exited(self) -> list[int]:
        return [k for k, p in enumerate(self.workers.processes) if not p.is_alive()]

    def _dead(self, which: list[int]) -> Any:
        """Raises: WorkerError, for workers that are gone."""
        said, hint = [], ""
        for k in which:
            process = self.workers.processes[k]
            process.join(PATIENCE)
            said.append(f"worker {k} (process {process.pid}) {_how(process.exitcode)}")
            if process.exitcode == 1 and k not in self.workers.answered:
                hint = self._not_begun(k)
        self._close()
        raise WorkerError(
            f"data.DataLoader: {', '.join(said) or 'a worker has gone'}, while batches "
            f"{sorted(self.owner)} were being made; what it printed is above{hint}"
        )

    def _not_begun(self, k: int) -> str:
        """What is most often wrong where a worker ends before it has sent anything."""
        names = of_main(self.workers._job(k, self.loader))
        of = f"it was sent {' and '.join(names)} of `__main__`: " if names else ""
        return f". If it could not begin: {of}{HINT}"

    def _close(self) -> None:
        self.ended = True
        self.workers.close()

    def __del__(self) -> None:
        workers = getattr(self, "workers", None)
        if workers is not None and not self.ended:
            workers.close()


def _how(code: int | None) -> str:
    """How a process has ended, for people."""
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
