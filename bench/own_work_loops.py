"""Kernels of loops and raw kernels beside others: `python bench/own_work_loops.py`.

Contestants take turns, with two threads each. Times are the least of all rounds, and a ratio is
another's time by ours: above 1 dovetail is faster.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from dovetail.commands.bench import seconds_text
from dovetail.commands.bench_cases import THREADS
from sweep import timed

PAUSE = 2e-3  # seconds before a turn: the last contestant's threads may still be spinning
SAMPLE = 1e-3  # seconds that one timing takes, at least
OURS = "dovetail"
SIDE, FEW = 2048, 1024

Work = Callable[[], Any]


@dataclass
class Row:
    """Something to compute. `make`: by contestant what is timed, first "dovetail"'s.

    `asked`: how many times as fast as another contestant, or with the key "us" how many
    microseconds at most.
    """

    name: str
    make: Callable[[], Mapping[str, Work]]
    asked: Mapping[str, float]
    check: Callable[[Mapping[str, Work]], None] | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def ratio(self, other: str) -> float:
        """The time of another contestant by ours."""
        return self.seconds[other] / self.seconds[OURS]

    def met(self) -> bool:
        """Whether all that is asked for is there."""
        return all(
            self.seconds[OURS] <= least * 1e-6 if name == "us" else self.ratio(name) >= least
            for name, least in self.asked.items()
        )


@dt.kernel
def five_point(out: dt.Out, u: dt.In, c: float):
    """The inner points of a plane."""
    n, m = u.shape
    for i, j in dt.grid((1, n - 1), (1, m - 1)):
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + c * (around - 4 * u[i, j])


SCALE = """void scale(float *out, const float *x, int64_t n, float a) {
  for (int64_t i = 0; i < n; i++) out[i] = a * x[i];
}"""
scale = dt.raw_kernel(SCALE, "cpu", "scale(out: w float32, x: r float32, n: int64, a: float32)")


def _numbas() -> Any:
    """The same text, given to Numba."""
    numba = importlib.import_module("numba")
    numba.set_num_threads(THREADS)

    def plain(out: Any, u: Any, c: Any) -> None:
        n, m = u.shape
        for i in numba.prange(1, n - 1):
            for j in range(1, m - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                out[i, j] = u[i, j] + c * (around - 4 * u[i, j])

    return numba.njit(parallel=True)(plain)


def _stencil(dtype: str) -> Row:
    def make() -> dict[str, Work]:
        a = np.random.default_rng(0).random((SIDE, SIDE)).astype(dtype)
        x, out = dt.asarray(a.copy()), dt.zeros((SIDE, SIDE), dtype=dtype)
        five_point(out, x, 0.1)
        mine = out.numpy().copy()
        out = dt.zeros((SIDE, SIDE), dtype=dtype)  # which nobody else looks at
        works: dict[str, Work] = {OURS: lambda: five_point(out, x, 0.1)}
        if importlib.util.find_spec("numba") is not None:
            theirs, c, other = _numbas(), np.dtype(dtype).type(0.1), np.zeros_like(a)
            theirs(other, a, c)
            if not np.allclose(mine, other, rtol=1e-5):
                raise ArithmeticError("the stencils differ")
            works["numba"] = lambda: theirs(other, a, c)
        return works

    return Row(f"@dt.kernel five-point stencil {SIDE} x {SIDE} {dtype}", make, {"numba": 1.0})


def _raw() -> dict[str, Work]:
    x, out = dt.ones(FEW), dt.zeros(FEW)
    scale(out, x, FEW, 2.0)
    return {OURS: lambda: scale(out, x, FEW, 2.0)}


def rows() -> list[Row]:
    """Those of this file."""
    return [
        _stencil("float32"), _stencil("float64"),
        Row("dt.raw_kernel, a launch in C of 1 K elements", _raw, {"us": 3.0}),
    ]  # fmt: skip


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's seconds."""
    works = row.make()
    order, row.seconds = list(works), dict.fromkeys(works, float("inf"))
    once = max(min(timed(work, 1) for _ in range(3)) for work in works.values())
    repeats = max(1, min(1000, int(SAMPLE / max(once, 1e-7))))
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(works[name], 1)
            row.seconds[name] = min(row.seconds[name], timed(works[name], repeats))


def table(done: Sequence[Row]) -> list[list[str]]:
    """Headings and rows."""
    made = [["work", "dovetail", "numba", "ratio", "asked", "met"]]
    for row in done:
        theirs = "numba" in row.seconds
        other = seconds_text(row.seconds["numba"]) if theirs else ""
        ratio = f"{row.ratio('numba'):.2f}" if theirs else ""
        asked = ", ".join(
            f"at most {n:g} us" if k == "us" else f"{n:g} x {k}" for k, n in row.asked.items()
        )
        met = "" if row.asked.keys() - {"us", *row.seconds} else "yes" if row.met() else "no"
        made.append([row.name, seconds_text(row.seconds[OURS]), other, ratio, asked, met])
    return made


def main() -> int:
    """Measures and prints; 0."""
    return measured("own work of loops", __doc__ or "", rows, measure, table, rounds=60)


if __name__ == "__main__":
    sys.exit(main())
