"""Two threads beside one on a machine that is busy with other work: `python bench/busy.py`.

As many processes as there are cores compute without a pause. One thread and two take turns, and a
ratio is the median of the time with two threads by that with one in the same round: 1.1 or less is
promised. NumPy's BLAS has one thread: two of its own wait for each other on such a machine.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # read when NumPy is imported

import dovetail as dt
import dovetail.nn.functional as F
import numpy as np
from benchmarks_page import aligned
from comparison import seconds_text
from dovetail import nn
from sweep import Work, repeats_of, timed

PROMISED = 1.1
TURN = 0.1  # seconds: several turns of the system's, which takes cores away for some ms
# Ends by itself where whoever began it has been killed.
OTHER_WORK = "import os, sys\nwhile os.getppid() == int(sys.argv[1]): sum(range(10_000))"


def training() -> Work:
    """A step of training a small network, captured."""
    dt.random.manual_seed(0)
    draw = np.random.default_rng(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = dt.optim.Adam(model.parameters())
    x = dt.asarray(draw.normal(size=(256, 64)).astype("f4"))
    y = dt.asarray(draw.integers(0, 10, 256))

    @dt.jit
    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return lambda: dt.evaluate(step(x, y))


def chain() -> Work:
    """A chain of elementwise functions of 1 M elements."""
    x = dt.asarray(np.random.default_rng(0).random(1_000_000, "f4"))
    return lambda: dt.evaluate(dt.sin(x) * 2 + dt.sqrt(x) - x * x)


WORKS: Mapping[str, Callable[[], Work]] = {"training step": training, "chain of 1 M": chain}


@contextmanager
def busy(processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Other processes that compute for as long as this lasts."""
    command = [sys.executable, "-c", OTHER_WORK, str(os.getpid())]
    others = [subprocess.Popen(command) for _ in range(processes)]
    try:
        yield others
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(work: Work, rounds: int, turn: float = TURN) -> dict[int, list[float]]:
    """Seconds of each round by number of threads, 1 and 2. The cpu has as many as before then."""
    before = dt.get_num_threads("cpu")
    repeats, times = repeats_of(work, turn), dict[int, list[float]]({1: [], 2: []})
    try:
        for i in range(rounds):
            for threads in (1, 2) if i % 2 else (2, 1):
                dt.set_num_threads(threads, "cpu")
                timed(work, 1)
                times[threads].append(timed(work, repeats))
    finally:
        dt.set_num_threads(before, "cpu")
    return times


def ratio(times: Mapping[int, list[float]]) -> float:
    """The time of two threads by that of one."""
    return statistics.median(two / one for one, two in zip(times[1], times[2], strict=True))


def main() -> int:
    """0 if what was asked for is there."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--processes", type=int, default=cores, help="which do the other work")
    parser.add_argument("--most", type=float, default=PROMISED, help="the largest ratio")
    asked = parser.parse_args()
    rows, met = [["work", "one thread", "two", "ratio", "asked", "met"]], True
    with busy(asked.processes):
        for name, make in WORKS.items():
            times = measure(make(), asked.rounds)
            found = ratio(times)
            met &= found <= asked.most
            texts = [seconds_text(statistics.median(times[threads])) for threads in (1, 2)]
            verdict = "yes" if found <= asked.most else "no"
            rows.append([name, *texts, f"{found:.2f}", f"at most {asked.most:g}", verdict])
    print(aligned(rows))
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
