"""Time calls of `dovetail.numpy` against those of `dt`: `python bench/numpy_calls.py`.

Each call gets ndarrays of 10 float64, or tensors over the same memory. No result is read. The times
are the least of some runs of 1000 calls by the process's clock, both libraries in turn.
`--json FILE` stores them; `--compare FILE` prints those of an earlier run, too. docs/measurements
has the results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import process_time
from timeit import Timer
from typing import Any

import dovetail as dt
import dovetail.numpy as np

RUNS, CALLS = 15, 1000
# A call of NumPy's names, and the equal one of `dt`; x, y are vectors, m is a matrix.
CASES = """
np.mean(x) | dt.mean(x)
np.mean(m, axis=0) | dt.mean(m, axis=0)
np.mean(m, 0) | dt.mean(m, 0)
np.sum(x) | dt.sum(x)
np.sum(m, axis=1) | dt.sum(m, axis=1)
np.sum(m, axis=1, keepdims=True) | dt.sum(m, axis=1, keepdims=True)
np.prod(x) | dt.prod(x)
np.max(x) | dt.max(x)
np.max(m, axis=0) | dt.max(m, axis=0)
np.min(x) | dt.min(x)
np.argmax(x) | dt.argmax(x)
np.argmin(m, axis=1) | dt.argmin(m, axis=1)
np.any(b) | dt.any(b)
np.all(b, axis=0) | dt.all(b, axis=0)
np.std(x) | dt.std(x)
np.var(m, axis=0) | dt.var(m, axis=0)
np.median(x) | dt.median(x)
np.cumsum(x) | dt.cumulative_sum(x)
np.cumsum(m, axis=1) | dt.cumulative_sum(m, axis=1)
np.diff(x) | dt.diff(x)
np.sort(x) | dt.sort(x)
np.argsort(m, axis=0) | dt.argsort(m, axis=0)
np.maximum(x, y) | dt.maximum(x, y)
np.add(x, y) | dt.add(x, y)
np.multiply(x, 2.0) | dt.multiply(x, 2.0)
np.exp(x) | dt.exp(x)
np.sqrt(x) | dt.sqrt(x)
np.abs(x) | dt.abs(x)
np.power(x, 2) | dt.pow(x, 2)
np.isnan(x) | dt.isnan(x)
np.where(b, x, y) | dt.where(b, x, y)
np.where(b, x, 0.0) | dt.where(b, x, 0.0)
np.clip(x, 0.0, 1.0) | dt.clip(x, 0.0, 1.0)
np.dot(x, y) | dt.vecdot(x, y)
np.dot(s, x) | dt.matmul(s, x)
np.matmul(s, s) | dt.matmul(s, s)
np.outer(x, y) | dt.outer(x, y)
np.linalg.norm(x) | dt.linalg.vector_norm(x)
np.concatenate([x, y]) | dt.concat([x, y])
np.concatenate([m, m], axis=1) | dt.concat([m, m], axis=1)
np.stack([x, y]) | dt.stack([x, y])
np.vstack([x, y]) | dt.vstack([x, y])
np.reshape(x, (2, 5)) | dt.reshape(x, (2, 5))
np.transpose(m) | dt.permute_dims(m, (1, 0))
np.expand_dims(x, axis=0) | dt.expand_dims(x, axis=0)
np.broadcast_to(x, (3, 10)) | dt.broadcast_to(x, (3, 10))
np.roll(x, 1) | dt.roll(x, 1)
np.flip(x) | dt.flip(x)
np.tile(x, 2) | dt.tile(x, 2)
np.repeat(x, 2) | dt.repeat(x, 2)
np.take(x, k) | dt.take(x, k)
np.zeros(10) | dt.zeros(10, dtype=dt.float64)
np.arange(10) | dt.arange(10)
np.linspace(0.0, 1.0, 10) | dt.linspace(0.0, 1.0, 10, dtype=dt.float64)
np.zeros_like(x) | dt.zeros_like(x)
np.array(l) | dt.asarray(l, dtype=dt.float64)
np.asarray(x) | dt.asarray(x)
x.sum() | d_x.sum()
x.mean(axis=0) | d_x.mean(axis=0)
x.reshape(2, 5) | d_x.reshape((2, 5))
"""


def operands() -> dict[str, Any]:
    """Return the names of the cases as ndarrays, and as tensors with the prefix `d_`."""
    values = {
        "x": np.linspace(0.1, 1.0, 10),
        "y": np.linspace(1.0, 0.1, 10),
        "m": np.linspace(0.0, 1.0, 10).reshape(2, 5),
        "s": np.eye(10),
        "b": np.arange(10) > 4,
        "k": np.asarray([1, 3, 5]),
    }
    dt.evaluate(*values.values())
    plain = {f"d_{name}": dt.asarray(value.numpy()) for name, value in values.items()}
    return {**values, **plain, "np": np, "dt": dt, "l": [0.5] * 10}


def measure() -> dict[str, tuple[float, float]]:
    """Return the microseconds of each call, in NumPy's names and in `dt`."""
    names = operands()
    rows = [[part.strip() for part in line.split("|")] for line in CASES.split("\n") if line]
    plain = {**names, **{n: names[f"d_{n}"] for n in names if f"d_{n}" in names}}
    timers = {
        ours: (Timer(ours, "pass", process_time, names), Timer(theirs, "pass", process_time, plain))
        for ours, theirs in rows
    }
    best: dict[str, list[float]] = {call: [1e9, 1e9] for call in timers}
    for _ in range(RUNS):
        for call, pair in timers.items():
            for i, timer in enumerate(pair):
                best[call][i] = min(best[call][i], timer.timeit(CALLS) / CALLS * 1e6)
    return {call: (pair[0], pair[1]) for call, pair in best.items()}


def main(arguments: list[str]) -> int:
    """Print the table; write it to a file, or compare it with one."""
    results = measure()
    if "--json" in arguments:
        Path(arguments[arguments.index("--json") + 1]).write_text(json.dumps(results))
    before: dict[str, list[float]] = {}
    if "--compare" in arguments:
        before = json.loads(Path(arguments[arguments.index("--compare") + 1]).read_text())
    print("| call | `dt`, us | before, us | now, us | above `dt`, us |\n|---|---:|---:|---:|---:|")
    for call, (ours, plain) in results.items():
        old = f"{before[call][0]:.2f}" if call in before else ""
        print(f"| `{call}` | {plain:.2f} | {old} | {ours:.2f} | {ours - plain:.2f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
