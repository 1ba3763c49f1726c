"""The group that this process, or this thread, belongs to."""

from __future__ import annotations

import atexit
import os
import sys
import threading

from dovetail.extend import Request, Transport, arguments, find_transport

from .communicator import describe_error
from .group import TIMEOUT_SECONDS, ProcessGroup, check_timeout
from .worker_errors import WorkerError

__all__ = ["current", "init"]

TRANSPORTS = {name: f"{__package__}.{name}" for name in ("sockets", "mpi", "dask")}


class LoneTransport(Transport):
    """The transport of a group of one process, which has no other rank."""

    rank, size = 0, 1

    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Raise ConnectionError; overrides `Transport.send`."""
        raise ConnectionError(f"there is no rank {to}")

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Raise ConnectionError; overrides `Transport.receive`."""
        raise ConnectionError(f"there is no rank {source}")

    def close(self) -> None:
        """Do nothing; overrides `Transport.close`."""


class _Groups(threading.local):
    """The group of this thread, if the thread is a worker of its own."""

    group: ProcessGroup | None = None


of_thread = _Groups()
_of_process: list[ProcessGroup] = []
_lone = ProcessGroup(LoneTransport())


def current() -> ProcessGroup:
    """Return the group of this worker; a group of one, unless `init` or `run` has made another.

    >>> import dovetail as dt
    >>> dt.parallel.current().size
    1
    """
    if of_thread.group is not None:
        return of_thread.group
    return _of_process[-1] if _of_process else _lone


def init(transport: str = "sockets", timeout: float = TIMEOUT_SECONDS) -> ProcessGroup:
    """Connect this process with the other workers, and return the group of all.

    The variables RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say which worker this is and where
    rank 0 waits for the others, as with torchrun. `dt.parallel.run` and
    `python -m dovetail.parallel` set them. Without WORLD_SIZE the group is one of a single process.
    A second call returns the same group. At the end of the process the group is closed.

    - `transport`: the name of the transport: "sockets", "mpi" (which reads no variables), or that
      of a plugin.
    - `timeout`: the longest time in seconds that a call waits for another worker; see
      `ProcessGroup`.

    Raises: WorkerError if a worker is missing; ArgumentError for missing or wrong variables;
    PluginError for an unknown transport.
    See also: `run`, which starts the workers, too.

    >>> import dovetail as dt
    >>> dt.parallel.init()
    <ProcessGroup: rank 0 of 1>
    """
    name = arguments.instance("parallel.init", transport, "transport", str)
    limit = check_timeout("parallel.init", timeout)
    if of_thread.group is not None:
        return of_thread.group
    if _of_process:
        return _of_process[-1]
    info = find_transport(name, TRANSPORTS)
    if name == "sockets" and not os.environ.get("WORLD_SIZE"):
        return _lone
    try:
        opened = info.open(os.environ, limit)
    except (TimeoutError, ConnectionError) as error:
        raise WorkerError(f"parallel.init: {error}", getattr(error, "rank", None)) from error
    group = ProcessGroup(opened, limit)
    _of_process.append(group)
    atexit.register(_close_at_exit, group)
    return group


def _close_at_exit(group: ProcessGroup) -> None:
    """Leave the group; if an error ends the process, tell the other ranks about it."""
    error = getattr(sys, "last_value", None)
    if error is not None:
        group.abort(describe_error(group.rank, error))
    group.close()
