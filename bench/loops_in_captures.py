"""What `hmc.py` and `kalman.py` share: processes for the contestants, times, and a comparison.

Machines are busy, so each time is the least of some: of runs of a process for the first call, of
calls within a process for a replay.
"""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

FIRST_CALLS, REPLAYS = 3, 20
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Case:
    """Something to compute. `ours`, `theirs`: of the library, the function that is timed."""

    name: str
    inputs: Callable[[], list[np.ndarray]]
    ours: Callable[[Any], Callable[..., Any]]
    theirs: Callable[[Any], Callable[..., Any]]


def _dovetail(case: Case) -> tuple[Callable[[], Any], Callable[[Any], list[np.ndarray]]]:
    dt = importlib.import_module("dovetail")
    f, args = case.ours(dt), [dt.asarray(a) for a in case.inputs()]

    def call() -> Any:
        found = f(*args)
        dt.evaluate(*_leaves(found))
        return found

    return call, lambda found: [np.asarray(x) for x in _leaves(found)]


def _jax(case: Case) -> tuple[Callable[[], Any], Callable[[Any], list[np.ndarray]]]:
    jax = importlib.import_module("jax")
    jax.config.update("jax_enable_x64", True)
    f, args = case.theirs(jax), [jax.numpy.asarray(a) for a in case.inputs()]
    return (
        lambda: jax.block_until_ready(f(*args)),
        lambda found: [np.asarray(x) for x in _leaves(found)],
    )


def _leaves(found: Any) -> list[Any]:
    return [*found] if isinstance(found, tuple) else [found]


def _contestant(case: Case, name: str, out: Path) -> None:
    """Time a contestant in this process, and write times and values."""
    call, values = {"dovetail": _dovetail, "jax": _jax}[name](case)
    times, found = list[float](), None
    for _ in range(1 + REPLAYS):
        begun = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - begun)
    np.savez(out, *values(found), times=np.array(times))


def _in_process(case: Case, name: str, out: Path) -> tuple[float, float, list[np.ndarray]]:
    """Return the seconds of the first call and of the fastest other one, and the values."""
    command = [sys.executable, sys.argv[0], name, str(out)]
    subprocess.run(command, check=True, env={**os.environ, "DOVETAIL_DEFAULT_DEVICE": "cpu"})
    with np.load(out) as found:
        times = found["times"]
        return times[0], times[1:].min(), [found[k] for k in found if k != "times"]


def main(case: Case) -> None:
    """Run the contestants and print their times, or be one. Raises: ArithmeticError."""
    if len(sys.argv) == 3:
        _contestant(case, sys.argv[1], Path(sys.argv[2]))
        return
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "values.npz"
        rows = {
            name: [_in_process(case, name, out) for _ in range(runs)]
            for name, runs in (("dovetail", 1 + FIRST_CALLS), ("jax", 2))
        }
    for mine, other in zip(rows["dovetail"][0][2], rows["jax"][0][2], strict=True):
        if not np.allclose(mine, other, rtol=TOLERANCE, atol=TOLERANCE):
            raise ArithmeticError(f"{case.name}: values differ by {abs(mine - other).max()}")
    for name, runs in rows.items():
        first, replay = min(run[0] for run in runs[1:]), min(run[1] for run in runs)
        print(f"{case.name} {name}: first call {first:.3f} s, then {replay * 1e3:.2f} ms")
