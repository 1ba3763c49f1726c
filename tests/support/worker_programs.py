"""Functions that tests run in worker processes, which import them from here."""

from __future__ import annotations

import os
import signal
import sys
import threading
from pathlib import Path
from time import sleep
from typing import Any

import dovetail as dt
import numpy as np


def describe(scale: float, offset: float = 0.0) -> tuple[Any, ...]:
    """Return what a worker sees of its group, and a sum over all ranks."""
    group = dt.parallel.current()
    assert dt.parallel.init() is group
    x = dt.full((300_000,), scale * group.rank + offset)
    total = group.all_reduce(x)
    assert (total == total[0]).all()
    variables = {k: os.environ[k] for k in ("RANK", "LOCAL_RANK", "WORLD_SIZE")}
    return (
        group.rank,
        group.size,
        total[0].item(),
        variables,
        dt.get_num_threads("cpu"),
        os.getpid(),
    )


class UnpicklableError(Exception):
    """An error that has a lock."""

    def __init__(self) -> None:
        super().__init__(threading.Lock())


def fail(kind: str, folder: str) -> None:
    """End rank 1 in a way; write the error of the other ranks to a file each."""
    group = dt.parallel.current()
    group.barrier()
    if group.rank == 1:
        if kind == "raise":
            raise KeyError("weights")
        if kind == "unpicklable":
            raise UnpicklableError
        if kind == "exit":
            sys.exit(3)
        if kind == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
    try:
        group.all_reduce(dt.ones(3))
    except dt.parallel.WorkerError as error:
        Path(folder, str(group.rank)).write_text(f"{error.rank} {error}")
        raise


def reduce_until_killed(n: int, folder: str) -> None:
    """Run collectives without end; write the process id, then the error, to a file."""
    group = dt.parallel.current()
    x = np.ones(n)
    Path(folder, f"pid{group.rank}").write_text(str(os.getpid()))
    group.barrier()
    try:
        while True:
            group.all_reduce(x)
            group.broadcast(x, group.size - 1)
            group.all_gather(x)
            request = group.send(x, (group.rank + 1) % group.size)
            group.receive(x, (group.rank - 1) % group.size).wait()
            request.wait()
    except dt.parallel.WorkerError as error:
        Path(folder, f"error{group.rank}").write_text(f"{error.rank} {error}")
        raise


def wait_for_ever(folder: str) -> None:
    """Write the process id to a file, and sleep."""
    Path(folder, f"pid{dt.parallel.current().rank}").write_text(str(os.getpid()))
    sleep(600)


def fork_and_be_killed(others: str) -> None:
    """Kill rank 1, which has forked a process that goes on; the other rank waits or returns."""
    group = dt.parallel.current()
    group.barrier()
    if group.rank == 1:
        if os.fork() == 0:
            sleep(30)
            os._exit(0)
        os.kill(os.getpid(), signal.SIGKILL)
    if others == "wait":
        group.barrier()


def be_killed(others: str) -> None:
    """Kill rank 1, while the other ranks wait for it or return; or no rank."""
    group = dt.parallel.current()
    group.barrier()
    if group.rank == 1 and others != "nobody":
        os.kill(os.getpid(), signal.SIGKILL)
    if others == "wait":
        group.barrier()


def end_by_signal(number: int) -> None:
    """End rank 1 by a signal."""
    group = dt.parallel.current()
    group.barrier()
    if group.rank == 1:
        os.kill(os.getpid(), number)
    group.barrier()


def return_lock() -> Any:
    """Return an object that cannot be pickled."""
    return threading.Lock()


def train_small_net(folder: str, steps: int) -> bytes:
    """Train a net from the latest checkpoint of a folder; return the bytes of its weights."""
    group = dt.parallel.current()
    generator = dt.random.default_rng(1)
    net = dt.nn.Sequential(dt.nn.Linear(3, 4), dt.nn.Tanh(), dt.nn.Dropout(0.2), dt.nn.Linear(4, 1))
    for k, p in enumerate(net.parameters()):
        p.detach().copy_(dt.random.default_rng(k).normal(p.shape))
    optimizer = dt.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    states = {"model": net, "optimizer": optimizer, "generator": generator}
    done = 0
    if any(Path(folder).glob("run-*.safetensors")):
        done = dt.checkpoint.load(folder, **states)["step"]
    x = dt.random.default_rng(0).normal((24, 3))

    def loss(net: Any, rows: Any) -> Any:
        return ((net(rows) - rows.sum(axis=1, keepdims=True)) ** 2).sum(), len(rows)

    step = dt.parallel.value_and_grad(loss, groups=4, generator=generator)
    for k in range(done, steps):
        step(net, x)
        optimizer.step()
        path = Path(folder, "run-{step:03}")
        dt.checkpoint.save(path, group=group, step=k + 1, keep=2, **states)
    return b"".join(p.numpy().tobytes() for p in net.parameters())
