"""The weights of `dovetail demo parallel` in every way to run it: one digest for each network.

`python bench/parallel_digests.py` trains both networks by 1 to 32 processes, with one and two
threads each, on OpenCL, stopped on 8 and resumed on 2, and after a worker was killed. It prints a
row for each run as it ends, and fails if the digests of a network differ.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import dovetail as dt
from dovetail.commands.demo_parallel import TASKS, Outcome, train_by_name

WORKERS = (1, 2, 4, 8, 16, 32)
KILLED_AFTER_SECONDS = 1.0  # after the saved steps


def train_and_die(name: str, steps: int, path: Path) -> Outcome:
    """Train half of the steps and save them; then train on, until worker 1 is killed."""
    train_by_name(name, steps // 2, None, path)
    if dt.parallel.current().rank == 1:
        kill = threading.Timer(KILLED_AFTER_SECONDS, os.kill, (os.getpid(), signal.SIGKILL))
        kill.start()
    return train_by_name(name, 100 * steps, None, path)


def stop_and_resume(name: str, steps: int) -> list[Outcome]:
    """Train half of the steps on 8 workers, and the others on 2."""
    path = Path(tempfile.mkdtemp()) / "run.safetensors"
    dt.parallel.run(train_by_name, (name, steps // 2, None, path), workers=8)
    return dt.parallel.run(train_by_name, (name, steps, None, path), workers=2)


def kill_and_resume(name: str, steps: int) -> list[Outcome]:
    """Train on 8 workers until one is killed, and from the last checkpoint on 7."""
    path = Path(tempfile.mkdtemp()) / "run.safetensors"
    try:
        dt.parallel.run(train_and_die, (name, steps, path), workers=8)
    except dt.parallel.WorkerError as error:
        print(f"    {error}", flush=True)
    else:
        raise AssertionError("no worker was killed")
    return dt.parallel.run(train_by_name, (name, steps, None, path), workers=7)


def cases(
    workers: Sequence[int], devices: Sequence[str]
) -> dict[str, Callable[[str, int], list[Outcome]]]:
    """Return the ways to train, by name: functions of the network and the number of steps."""

    def plain(
        w: int, threads: int | None = None, device: str | None = None
    ) -> Callable[[str, int], list[Outcome]]:
        """Return a function that trains on `w` workers."""
        return lambda name, steps: dt.parallel.run(
            train_by_name, (name, steps, device), workers=w, threads=threads
        )

    table = {f"{w} workers": plain(w) for w in workers}
    table |= {f"2 workers, {n} threads each": plain(2, n) for n in (1, 2)}
    table |= {f"2 workers on {device}": plain(2, device=device) for device in devices}
    table["8 workers, then 2"] = stop_and_resume
    table["8 workers, one is killed, then 7"] = kill_and_resume
    return table


def main() -> int:
    """Train in all ways; return 1 if digests differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--networks", nargs="+", default=[*TASKS], choices=[*TASKS])
    options.add_argument("--workers", nargs="*", type=int, default=WORKERS)
    options.add_argument("--devices", nargs="*", default=["opencl"])
    options.add_argument("--only", default="", help="only the ways whose name contains this text")
    asked = options.parse_args()
    digests: dict[str, set[str]] = {name: set() for name in asked.networks}
    for way, train in cases(asked.workers, asked.devices).items():
        for name in asked.networks if asked.only in way else ():
            started = time.perf_counter()
            outcomes = train(name, asked.steps)
            digests[name] |= {out.digest for out in outcomes}
            first = outcomes[0]
            print(
                f"{name:8} {way:33} {len(first.losses)} steps  loss {first.losses[-1]:.4f}  "
                f"{sorted({out.digest[:16] for out in outcomes})}  "
                f"{time.perf_counter() - started:.0f} s",
                flush=True,
            )
    return int(any(len(each) > 1 for each in digests.values()))


if __name__ == "__main__":
    sys.exit(main())
