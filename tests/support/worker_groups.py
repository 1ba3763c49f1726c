"""Groups of workers that are threads of the test's process, over each transport."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from itertools import combinations
from threading import Thread
from typing import Any

import dovetail as dt
from dovetail.extend import Transport
from dovetail.parallel.sockets import SocketTransport
from dovetail.parallel.thread_transport import Hub

KINDS = ["threads", "sockets"]


def connect(kind: str, size: int) -> list[Any]:
    """Return the connected transports of all ranks."""
    if kind == "threads":
        hub = Hub(size)
        return [hub.transport(r) for r in range(size)]
    ends: list[dict[int, socket.socket]] = [{} for _ in range(size)]
    for a, b in combinations(range(size), 2):
        ends[a][b], ends[b][a] = socket.socketpair()
    return [SocketTransport(r, size, ends[r]) for r in range(size)]


def kill(transport: Transport) -> None:
    """End a transport as the death of its process does: without a word."""
    if isinstance(transport, SocketTransport):
        transport.release(ConnectionError("killed"))
    else:
        transport.close()


def run_groups(
    kind: str, size: int, work: Callable[[dt.parallel.ProcessGroup], Any], timeout: float = 60.0
) -> list[Any]:
    """Call `work` with the group of each rank, in threads; return results or errors by rank."""
    groups = [dt.parallel.ProcessGroup(t, timeout) for t in connect(kind, size)]
    results: list[Any] = [None] * size

    def call(rank: int) -> None:
        try:
            results[rank] = work(groups[rank])
        except Exception as error:
            results[rank] = error

    threads = [Thread(target=call, args=(r,), daemon=True) for r in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout + 60)
    assert not any(t.is_alive() for t in threads), "a rank hangs"
    for group in groups:
        group.close()
    return results


def run_all(kind: str, size: int, work: Callable[[dt.parallel.ProcessGroup], Any]) -> list[Any]:
    """Return the results by rank; raise the first error."""
    results = run_groups(kind, size, work)
    for result in results:
        if isinstance(result, Exception):
            raise result
    return results


def errors_of(results: Sequence[Any]) -> list[tuple[int | None, str]]:
    """Return the rank that each WorkerError names, and its text. Others raise."""
    for r in results:
        assert isinstance(r, dt.parallel.WorkerError), r
    return [(r.rank, str(r)) for r in results]
