"""Kernels of one's own, transforms and sparse solvers: `python bench/own_work.py`.

Contestants take turns, with two threads each, and results are freed each time. Times are the least
of all rounds, and a ratio is another's time by ours: above 1 dovetail's new way is faster. Rows of
other files beside this one, own_work_*.py, are measured with it.
"""

from __future__ import annotations

import gc
import importlib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from dovetail.commands.bench import seconds_text
from dovetail.commands.bench_cases import THREADS, peer
from sweep import timed

PAUSE = 2e-3  # seconds before a turn: the last contestant's threads may still be spinning
SAMPLE = 1e-3  # seconds that one timing takes, at least: turns are short, since machines are busy
OURS = "dovetail"
M = 1_000_000

Work = Callable[[], Any]


@dataclass
class Row:
    """Something to compute. `make`: by contestant what is timed, first "dovetail"'s.

    `asked`: how many times as fast as another contestant, or with the key "us" how many
    microseconds at most. `check`: raises where what `make` gave computes something else.
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


# --- elementwise functions of one's own -----------------------------------------------------------


@dt.elementwise
def silu(x: Any) -> Any:
    """x times its sigmoid."""
    return x * dt.sigmoid(x)


@dt.elementwise
def tanh(x: Any) -> Any:
    """One row."""
    return dt.tanh(x)


@dt.elementwise
def bell(x: Any, y: Any) -> Any:
    """Two operands."""
    return dt.exp(-x * x) * y + dt.sin(y)


BUILT_IN: dict[str, tuple[Any, Callable[..., Any], int]] = {
    "tanh": (tanh, dt.tanh, 1),
    "x * sigmoid(x)": (silu, lambda x: x * dt.sigmoid(x), 1),
    "exp(-x * x) * y + sin(y)": (bell, lambda x, y: dt.exp(-x * x) * y + dt.sin(y), 2),
}


def _forward(f: Callable[..., Any], args: Sequence[Any]) -> Work:
    return lambda: dt.evaluate(f(*args))


def _gradient(f: Callable[..., Any], args: Sequence[Any]) -> Work:
    def work() -> None:
        y = f(*args)
        dt.evaluate(y.detach(), *dt.grad(y.sum(), [*args]))

    return work


def _beside_built_in(name: str, n: int, way: Callable[..., Work]) -> Row:
    own, plain, arity = BUILT_IN[name]

    def make() -> dict[str, Work]:
        rng = np.random.default_rng(0)
        args = [dt.asarray(rng.normal(size=n).astype("float32")) for _ in range(arity)]
        if way is _gradient:
            args = [x.requires_grad_() for x in args]
        wanted = np.asarray(plain(*args).detach())
        if not np.array_equal(np.asarray(own(*args).detach()), wanted):
            raise ArithmeticError(f"{name}: not the bits of the same functions on tensors")
        return {OURS: way(own, args), "built-in": way(plain, args)}

    size = f"{n // M} M" if n >= M else f"{n // 1000} K"
    what = "forward" if way is _forward else "forward and gradient"
    return Row(f"@dt.elementwise {name}, {size}, {what}", make, {"built-in": 1.0})


def rows() -> list[Row]:
    """Those of this file, and of those beside it."""
    made = [
        _beside_built_in(name, n, way)
        for name in BUILT_IN for n in (1000, M) for way in (_forward, _gradient)
    ]  # fmt: skip
    return [*made, *_others()]


def _others() -> Iterator[Row]:
    for path in sorted(Path(__file__).parent.glob("own_work_*.py")):
        yield from importlib.import_module(path.stem).rows()


# --- measuring ------------------------------------------------------------------------------------


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's seconds."""
    peer("torch").set_num_threads(THREADS)
    works = row.make()
    if row.check is not None:
        row.check(works)
    order, row.seconds = list(works), dict.fromkeys(works, float("inf"))
    once = max(min(timed(work, 1) for _ in range(3)) for work in works.values())
    repeats = max(1, min(1000, int(SAMPLE / max(once, 1e-7))))
    gc.collect()
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(works[name], 1)
            row.seconds[name] = min(row.seconds[name], timed(works[name], repeats))


def table(done: Sequence[Row]) -> list[list[str]]:
    """Headings and rows."""
    made = [["work", "dovetail", "beside", "ratio", "asked", "met"]]
    for row in done:
        others = [c for c in row.seconds if c != OURS]
        beside = ", ".join(f"{c} {seconds_text(row.seconds[c])}" for c in others)
        ratios = ", ".join(f"{row.ratio(c):.2f}" for c in others)
        asked = ", ".join(
            f"at most {least:g} us" if name == "us" else f"{least:g} x {name}"
            for name, least in row.asked.items()
        )
        absent = {*row.asked} - {"us"} - {*row.seconds}  # peers that are not installed
        met = "not known" if absent else "yes" if row.met() else "no"
        made.append([row.name, seconds_text(row.seconds[OURS]), beside, ratios, asked, met])
    return made


def main() -> int:
    """Measures and prints; 0."""
    return measured("own work", __doc__ or "", rows, measure, table, rounds=150)


if __name__ == "__main__":
    sys.exit(main())
