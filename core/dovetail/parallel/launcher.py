"""The start of a group: `init` in a process of a launcher, and `run`, which starts workers."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from multiprocessing import connection, get_context, parent_process
from multiprocessing.reduction import ForkingPickler
from time import monotonic
from typing import Any

import dovetail as dt
from dovetail.extend import arguments

from ..data.source_check import main_names
from ..data.workers import WorkerFailure
from .communicator import describe_error
from .dask_workers import run_on_dask
from .group import TIMEOUT_SECONDS, ProcessGroup, check_timeout
from .membership import init, of_thread
from .rendezvous import UNIX_PREFIX
from .thread_transport import Hub
from .worker_failures import choose_cause, raise_cause

__all__ = ["run"]

EXIT_POLL_SECONDS = 0.5  # between looks whether the processes still run
GRACE_SECONDS = 10.0  # for workers to end: all of them, or the others after one has failed
TERMINATE_SECONDS = 2.0  # from SIGTERM to SIGKILL
SOCKET_PATH_BYTES_MAX = 90  # of the folder; the system's limit of a path is 104 or 108
_SIGNALS = {s.value: s for s in signal.Signals}  # the real-time ones have no names
MAIN_GUARD_HINT = (
    'a script must call dt.parallel.run below `if __name__ == "__main__":`, because each worker '
    "imports the script"
)


def run(
    function: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    workers: int,
    transport: str = "sockets",
    timeout: float = TIMEOUT_SECONDS,
    threads: int | None = None,
    start_method: str = "spawn",
    client: Any = None,
) -> list[Any]:
    """Call a function in each of several workers, and return their results by rank.

    A worker is a process, which ends at the latest with this one. In it,
    `dt.parallel.current()` is the group of all workers. If one raises an error or is killed, the
    others get WorkerError, and this function raises its error.

    - `function`: a function that can be pickled: one of a module, or of a script below whose
      definitions `if __name__ == "__main__":` stands.
    - `args`, `kwargs`: its arguments, the same for all workers; they are pickled, too.
    - `workers`: the number of workers, at least 1.
    - `transport`: "sockets", or "threads" for workers that are threads of this process, for tests.
    - `timeout`: the longest time in seconds that a worker waits for another one; see
      `ProcessGroup`.
    - `threads`: the threads of the device cpu in each worker; None divides the cores among them.
      Threads of this process share its setting.
    - `start_method`: "spawn" or "forkserver", of Python's `multiprocessing`.
    - `client`: a `distributed.Client` of Dask; workers are then tasks, each on another Dask worker,
      and `transport`, `threads` and `start_method` have no meaning.

    Raises: the error of a worker, with its traceback; WorkerError if one is killed or its error
    cannot be pickled; ArgumentError, ArgumentTypeError.
    See also: `init`, for workers that another program starts.

    >>> import dovetail as dt
    >>> def total(x):
    ...     return dt.parallel.current().all_reduce(dt.asarray(x)).item()
    >>> dt.parallel.run(total, [2.5], workers=2, transport="threads")
    [5.0, 5.0]
    """
    arguments.function("parallel.run", function)
    count = arguments.integer("parallel.run", workers, "workers", 1)
    arguments.choice("parallel.run", transport, "transport", ("sockets", "threads"))
    arguments.choice("parallel.run", start_method, "start_method", ("spawn", "forkserver"))
    if not isinstance(args, Sequence):
        raise arguments.refused("parallel.run", "args", "a list or tuple of arguments", args)
    if not isinstance(kwargs or {}, Mapping):
        raise arguments.refused("parallel.run", "kwargs", "a dict of arguments by name", kwargs)
    check_timeout("parallel.run", timeout)
    if threads is not None:
        threads = arguments.integer("parallel.run", threads, "threads", 1)
    call = partial(function, *args, **(kwargs or {}))
    if client is not None:
        return run_on_dask(client, call, count, timeout)
    if transport == "threads":
        return _run_threads(call, count, timeout)
    if not _can_import_main() and (names := main_names((function, args, kwargs))):
        raise dt.ArgumentError(
            f"parallel.run: {' and '.join(names)} is defined in this session, which workers cannot "
            'import; define it in a module, or pass transport="threads"'
        )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        work = ForkingPickler.dumps(call)
    except Exception as error:
        raise dt.ArgumentTypeError(
            "parallel.run: function, args and kwargs must be objects that pickle can send to "
            f"workers: {error}; define functions in a module, at its top level"
        ) from error
    environ = {
        "WORLD_SIZE": str(count),
        "DOVETAIL_NUM_THREADS": str(threads or max(1, (cores or 1) // count)),
    }
    with _rendezvous() as address:
        task = (bytes(work), timeout, transport)
        processes = _Workers(start_method, count, {**environ, **address}, task)
        try:
            return processes.results()
        finally:
            processes.end()


def _can_import_main() -> bool:
    """Return True if a new process can import the module `__main__` of this one."""
    main: Any = sys.modules["__main__"]
    if getattr(getattr(main, "__spec__", None), "name", None) is not None:
        return True
    return os.path.exists(getattr(main, "__file__", None) or "")


@contextlib.contextmanager
def _rendezvous() -> Iterator[dict[str, str]]:
    """Yield variables with the address where the workers meet, and remove its folder at the end."""
    folder = tempfile.mkdtemp(prefix="dovetail-")
    try:
        if hasattr(socket, "AF_UNIX") and len(os.fsencode(folder)) <= SOCKET_PATH_BYTES_MAX:
            yield {"MASTER_ADDR": f"unix:{folder}", "MASTER_PORT": "0"}
        else:
            os.rmdir(folder)  # it would stay if this process was killed
            with socket.create_server(("127.0.0.1", 0)) as probe:
                port = probe.getsockname()[1]
            yield {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# --- threads


def _run_threads(call: Callable[[], Any], count: int, timeout: float) -> list[Any]:
    """Call the function in threads of this process; return the results by rank."""
    hub = Hub(count)
    groups = [ProcessGroup(hub.transport(r), timeout) for r in range(count)]
    results: list[Any] = [None] * count
    errors: list[tuple[int, BaseException]] = []

    def work(rank: int) -> None:
        """Call the function as one rank."""
        of_thread.group = groups[rank]
        try:
            results[rank] = call()
        except BaseException as error:
            errors.append((rank, error))
            groups[rank].abort(describe_error(rank, error))
        finally:
            groups[rank].close()

    threads = [threading.Thread(target=work, args=(r,), daemon=True) for r in range(count)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException as interrupt:  # Ctrl-C
        for r, group in enumerate(groups):
            group.abort(f"parallel.run: {describe_error(r, interrupt)}")
        raise
    if errors:
        rank, error, _ = choose_cause([(r, e, e) for r, e in errors])
        error.add_note(f"parallel.run: raised by rank {rank} of {count}")
        raise error
    return results


# --- processes


class _Workers:
    """The processes of a run, seen from the one that started them."""

    def __init__(
        self, method: str, count: int, environ: dict[str, str], work: tuple[bytes, float, str]
    ) -> None:
        context: Any = get_context(method)
        self.processes: list[Any] = []
        self.pipes: dict[Any, int] = {}
        for rank in range(count):
            ours, theirs = context.Pipe(duplex=False)
            mine = {**environ, "RANK": str(rank), "LOCAL_RANK": str(rank)}
            process = context.Process(target=run_worker, args=(mine, work, theirs))
            process.start()
            theirs.close()
            self.processes.append(process)
            self.pipes[ours] = rank

    def results(self) -> list[Any]:
        """Return the results by rank, or raise the error of a worker."""
        results: dict[int, Any] = {}
        failures: list[tuple[int, WorkerFailure]] = []
        end: float | None = None
        while self.pipes and (end is None or monotonic() < end):
            ended = [p for p, r in self.pipes.items() if not self.processes[r].is_alive()]
            limit = 0.0 if ended else EXIT_POLL_SECONDS
            for pipe in connection.wait([*self.pipes], limit) or ended:
                rank = self.pipes.pop(pipe)
                answer = self._read(rank, pipe)
                if isinstance(answer, WorkerFailure):
                    failures.append((rank, answer))
                    end = end or monotonic() + GRACE_SECONDS
                else:
                    (results[rank],) = answer
        if failures:
            raise_cause(failures, len(self.processes))
        end = monotonic() + GRACE_SECONDS
        for process in self.processes:  # exit handlers run, and buffered output is written
            process.join(max(0.0, end - monotonic()))
        return [results[r] for r in range(len(self.processes))]

    def _read(self, rank: int, pipe: Any) -> Any:
        """Return the result of a worker in a tuple, or its failure."""
        try:
            if not pipe.poll():  # its process has ended, but one that it has forked has the pipe
                raise EOFError
            return pickle.loads(pipe.recv_bytes())
        except (EOFError, OSError):
            return WorkerFailure(None, self._describe_exit(rank))
        except Exception as error:
            reason = f"its result cannot be unpickled: {type(error).__name__}: {error}"
            return WorkerFailure(None, reason)

    def _describe_exit(self, rank: int) -> str:
        """Return how a worker ended that has sent no result."""
        process = self.processes[rank]
        process.join(GRACE_SECONDS)
        code = process.exitcode
        if code is not None and code < 0:
            name = getattr(_SIGNALS.get(-code), "name", -code)
            return f"its process {process.pid} was killed by signal {name}"
        hint = f"; its output is above; {MAIN_GUARD_HINT}" if code == 1 else ""
        return f"its process {process.pid} ended with exit status {code}{hint}"

    def end(self) -> None:
        """End all processes that still run."""
        for process in self.processes:
            if process.is_alive():
                process.terminate()
        end = monotonic() + TERMINATE_SECONDS
        for process in self.processes:
            process.join(max(0.0, end - monotonic()))
            if process.is_alive():
                process.kill()
                process.join()
        for pipe in self.pipes:
            pipe.close()


def run_worker(environ: dict[str, str], work: tuple[bytes, float, str], pipe: Any) -> None:
    """Call the function of a run in this process, which is one of its workers; send the result.

    The interpreter then ends as usual, so that the user's exit handlers run.
    """
    os.environ.update(environ)
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    pickled, timeout, transport = work
    rank, group = int(environ["RANK"]), None
    try:
        group = init(transport, timeout)
        _remove_folder(environ["MASTER_ADDR"])
        answer = _pickle_result(pickle.loads(pickled)())
    except BaseException as error:
        if group is not None:
            group.abort(describe_error(rank, error))
        failure = WorkerFailure.from_error(error)
        if isinstance(error, SystemExit):  # would end the parent, too
            failure = WorkerFailure(None, f"it ended by sys.exit({error.code!r})")
        answer = ForkingPickler.dumps(failure)
    if group is not None:
        group.close()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):  # closed, or None
            stream.flush()
    with contextlib.suppress(OSError):  # the parent has ended
        pipe.send_bytes(answer)
    pipe.close()


def _remove_folder(address: str) -> None:
    """Remove the folder of the rendezvous if it is empty, also if the first process was killed."""
    if address.startswith(UNIX_PREFIX):
        with contextlib.suppress(OSError):
            os.rmdir(address.removeprefix(UNIX_PREFIX))


def _pickle_result(result: Any) -> Any:
    """Return a result in a tuple, pickled. Raises: ArgumentTypeError."""
    try:
        return ForkingPickler.dumps((result,))
    except Exception as error:
        raise dt.ArgumentTypeError(
            f"parallel.run: the result of function must be an object that pickle can send: {error}"
        ) from error


def _exit_with_parent() -> None:
    """End this process at once when the one that started it has ended."""
    parent = parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
