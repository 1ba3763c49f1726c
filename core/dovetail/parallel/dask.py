"""The transport between workers of a Dask cluster: its scheduler tells where rank 0 listens.

Messages go over sockets, from one Dask worker to another, not by way of the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any

import dovetail as dt
from dovetail.extend import PluginError, Transport, TransportInfo, hookimpl, install_command

from .rendezvous import LateError, meet
from .sockets import SocketTransport

VARIABLES = ("RANK", "WORLD_SIZE", "DASK_VARIABLE")


def import_distributed() -> Any:
    """Return the module `distributed`. Raises: PluginError if it is not installed."""
    try:
        import distributed
    except ImportError as error:
        raise PluginError(
            f'parallel.run: the transport "dask" needs distributed: {error}; '
            f"{install_command('distributed')}"
        ) from error
    return distributed


def open_dask(environ: Mapping[str, str], timeout: float) -> Transport:
    """Connect this task of a Dask worker with the tasks of the other ranks.

    `environ`: RANK, WORLD_SIZE, and DASK_VARIABLE, the name of a `distributed.Variable`, in which
    rank 0 stores where it listens.

    Raises: TimeoutError, ConnectionError; ArgumentError for missing variables, and outside of
    tasks; PluginError.
    """
    distributed = import_distributed()
    if any(not environ.get(name) for name in VARIABLES):
        raise dt.ArgumentError(
            'parallel.init: the transport "dask" connects tasks of dt.parallel.run(..., '
            "client=client); call that, with a distributed.Client"
        )
    rank, size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
    worker = distributed.get_worker()
    end = monotonic() + timeout
    with distributed.worker_client(separate_thread=False) as client:
        variable = distributed.Variable(environ["DASK_VARIABLE"], client)
        if rank == 0:
            host, port = worker.ip, 0
        else:
            try:
                host, port = variable.get(timeout=timeout)
            except TimeoutError:
                text = f"rank 0 did not start within {timeout:g} seconds; is its Dask worker busy?"
                raise LateError(text, 0) from None
        left = max(0.0, end - monotonic())
        sockets = meet(rank, size, host, port, left, lambda p: variable.set([host, p]))
    return SocketTransport(rank, size, sockets)


@hookimpl
def dovetail_transport_info() -> TransportInfo:
    """Return the description of the transport between Dask workers."""
    return TransportInfo("dask", open_dask)
