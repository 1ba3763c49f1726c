"""Workers that are tasks on the workers of a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import uuid4

import dovetail as dt
from dovetail.extend import arguments, find_transport

from ..data.workers import WorkerFailure
from .communicator import describe_error
from .dask import import_distributed
from .group import ProcessGroup
from .membership import TRANSPORTS, of_thread
from .worker_errors import WorkerError
from .worker_failures import raise_cause

POLL_SECONDS = 0.5  # between looks whether the Dask workers still live
GRACE_SECONDS = 10.0  # for the other ranks to end, after one has failed


def run_on_dask(client: Any, call: Callable[[], Any], count: int, timeout: float) -> list[Any]:
    """Call a function in a task on each of several Dask workers; return the results by rank.

    Raises: the error of a rank; WorkerError if its Dask worker is killed; ArgumentError for more
    ranks than Dask workers, ArgumentTypeError, PluginError.
    """
    distributed = import_distributed()
    if not isinstance(client, distributed.Client):
        raise arguments.refused("parallel.run", "client", "a distributed.Client", client)
    if client.asynchronous:
        raise dt.ArgumentError(
            "parallel.run: client must not be asynchronous; pass distributed.Client(address)"
        )
    addresses = [*client.nthreads()][:count]
    if len(addresses) < count:
        raise dt.ArgumentError(
            f"parallel.run: workers must be at most the number of Dask workers, {len(addresses)}, "
            f"got {count}; for several on one machine pass n_workers to distributed.LocalCluster"
        )
    name = f"dovetail-{uuid4().hex}"
    futures = {}
    for rank, address in enumerate(addresses):
        variables = {"RANK": str(rank), "WORLD_SIZE": str(count), "DASK_VARIABLE": name}
        task, key = (variables, timeout, call), f"{name}-{rank}"
        future = client.submit(run_rank, *task, workers=[address], key=key, pure=False)
        futures[future] = rank
    try:
        return _results(client, futures, addresses)
    finally:
        client.cancel([*futures])
        distributed.Variable(name, client).delete()


def run_rank(
    variables: Mapping[str, str], timeout: float, call: Callable[[], Any]
) -> tuple[Any] | WorkerFailure:
    """Call the function in this task; return its result in a tuple, or its failure."""
    rank, group = int(variables["RANK"]), None
    try:
        try:
            transport = find_transport("dask", TRANSPORTS).open(variables, timeout)
        except (TimeoutError, ConnectionError) as error:
            at_fault = getattr(error, "rank", None)
            raise WorkerError(f"parallel.run: {error}", at_fault) from error
        of_thread.group = group = ProcessGroup(transport, timeout)
        return (call(),)
    except BaseException as error:
        if group is not None:
            group.abort(describe_error(rank, error))
        return WorkerFailure.from_error(error)
    finally:
        of_thread.group = None
        if group is not None:
            group.close()


def _results(client: Any, futures: Mapping[Any, int], addresses: Sequence[str]) -> list[Any]:
    """Return the results by rank, or raise the error of a rank."""
    distributed = import_distributed()
    pending, results = dict(futures), {}
    failures: list[tuple[int, WorkerFailure]] = []
    end: float | None = None
    while pending and (end is None or monotonic() < end):
        with suppress(TimeoutError):
            distributed.wait([*pending], timeout=POLL_SECONDS, return_when="FIRST_COMPLETED")
        living = client.nthreads()
        for future, rank in [*pending.items()]:
            if future.done():
                answer = _answer(future)
            elif addresses[rank] not in living:
                text = f"its Dask worker {addresses[rank]} is gone; it was killed, or it crashed"
                answer = WorkerFailure(None, text)
            else:
                continue
            del pending[future]
            if isinstance(answer, WorkerFailure):
                failures.append((rank, answer))
                end = end or monotonic() + GRACE_SECONDS
            else:
                (results[rank],) = answer
    if failures:
        raise_cause(failures, len(futures))
    return [results[r] for r in range(len(futures))]


def _answer(future: Any) -> tuple[Any] | WorkerFailure:
    """Return what `run_rank` has returned, or Dask's own error as a failure."""
    try:
        answer: tuple[Any] | WorkerFailure = future.result()
    except Exception as error:  # a function or a result that cannot be unpickled
        return WorkerFailure.from_error(error)
    return answer
