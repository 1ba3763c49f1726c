"""The cost of guards for subnormals: ordinary data on a CPU that flushes, with and without guards.

    python bench/guarded_floats.py [PART_OF_A_NAME]

Both devices are those of tests/support/flushing_cpu.py. The one without guards does not declare
that it flushes, so it computes with the same machine code otherwise. Times are the processor time
of a statement, the least of many runs, in turn.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from flushing_cpu import FlushingCpu, LyingFlushingCpu  # type: ignore[import-not-found]
from partial_devices import installed  # type: ignore[import-not-found]

ROUNDS = 9
LARGE_ELEMENTS = 1 << 20  # statements on more elements are timed one by one

_rng = np.random.default_rng(0)
LARGE = _rng.standard_normal(1 << 23).astype("f4")
MATRIX = _rng.standard_normal((2048, 2048)).astype("f4")
SMALL = _rng.standard_normal(1 << 14).astype("f4")
POSITIVE = np.abs(SMALL) + np.float32(0.1)
SQUARE = _rng.standard_normal((256, 256)).astype("f4")


def products(x: dt.Tensor) -> dt.Tensor:
    """Return x to the power 17, by 16 products."""
    y = x
    for _ in range(16):
        y = y * x
    return y


def polynomial(x: dt.Tensor) -> dt.Tensor:
    """Return a polynomial of degree 17 by Horner's rule."""
    y = x
    for k in range(16):
        y = y * x + (0.5 + k)
    return y


def sums(x: dt.Tensor) -> dt.Tensor:
    """Return 16 steps of a sum, a product and a difference."""
    y = x
    for _ in range(16):
        y = (y + x) - y * 0.5
    return y


CASES: dict[str, tuple[Any, Callable[[dt.Tensor], dt.Tensor]]] = {
    "memory: x * 2 + 1, 8 M": (LARGE, lambda x: x * 2 + 1),
    "memory: x * x, 8 M": (LARGE, lambda x: x * x),
    "memory: x * y + x, 8 M": (LARGE, lambda x: x * x[::-1] + x),
    "memory: relu(x * 1.5 + 0.25), 8 M": (LARGE, lambda x: dt.maximum(x * 1.5 + 0.25, 0)),
    "memory: sum, 8 M": (LARGE, dt.sum),
    "memory: sums of rows, 2048 x 2048": (MATRIX, lambda x: dt.sum(x, axis=1)),
    "memory: sums of columns, 2048 x 2048": (MATRIX, lambda x: dt.sum(x, axis=0)),
    "memory: max of rows, 2048 x 2048": (MATRIX, lambda x: dt.max(x, axis=1)),
    "memory: x + x.T, 2048 x 2048": (MATRIX, lambda x: x + x.T),
    "rows: softmax, 2048 x 2048": (MATRIX, lambda x: dt.softmax(x, axis=1)),
    "rows: cumulative sum, 2048 x 2048": (MATRIX, lambda x: dt.cumulative_sum(x, axis=1)),
    "product: 256 x 256": (SQUARE, lambda x: x @ x),
    "arithmetic: x * 2 + 1, 16 K": (SMALL, lambda x: x * 2 + 1),
    "arithmetic: 16 products, 16 K": (POSITIVE, products),
    "arithmetic: polynomial, 16 K": (SMALL, polynomial),
    "arithmetic: sums, 16 K": (SMALL, sums),
    "arithmetic: exp, 16 K": (SMALL, dt.exp),
    "arithmetic: log, 16 K": (POSITIVE, dt.log),
    "arithmetic: sin, 16 K": (SMALL, dt.sin),
    "analysis: tanh, 16 K": (SMALL, dt.tanh),
    "analysis: erf, 16 K": (SMALL, dt.erf),
    "analysis: sqrt(x) / x, 16 K": (POSITIVE, lambda x: dt.sqrt(x) / x),
    "analysis: float16 x * x + 1, 16 K": (
        SMALL.astype("f2"), lambda x: dt.astype(dt.astype(x, dt.float32) ** 2 + 1, dt.float16),
    ),
}  # fmt: skip


def processor_time(function: Callable[[dt.Tensor], dt.Tensor], x: dt.Tensor, count: int) -> float:
    """Return the seconds of one of `count` evaluations in a row."""
    start = time.process_time()
    for _ in range(count):
        dt.evaluate(function(x))
    return (time.process_time() - start) / count


def main() -> None:
    """Print the time of each case without and with guards, and their ratio."""
    part = sys.argv[1] if len(sys.argv) > 1 else ""
    with installed(LyingFlushingCpu, FlushingCpu) as devices:
        for name, (data, function) in CASES.items():
            if part not in name:
                continue
            operands = [dt.asarray(data, device=device) for device in devices]
            count = 1 if data.size > LARGE_ELEMENTS else 50
            least = [float("inf")] * 2
            for _ in range(ROUNDS):
                for k, x in enumerate(operands):
                    least[k] = min(least[k], processor_time(function, x, count))
            plain, guarded = (1e6 * seconds for seconds in least)
            print(f"{name:40} {plain:9.1f} us {guarded:9.1f} us {guarded / plain:6.2f}", flush=True)


if __name__ == "__main__":
    main()
