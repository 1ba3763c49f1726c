"""Rows that are timed in turns, and their table: what `own_work.py` and those beside it share.

Contestants have two threads each, take turns, and results are freed each time. Times are medians
of all rounds, and a ratio is the median of another's time by ours in the same round: above 1
dovetail is faster.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from comparison import seconds_text
from comparison_cases import THREADS, peer
from sweep import PAUSE, timed

SAMPLE = 1e-3  # seconds: turns are short, since machines are busy
OURS = "dovetail"

Work = Callable[[], Any]


@dataclass
class Row:
    """Something to compute. `make`: by contestant what is timed, first "dovetail"'s.

    `asked`: how many times as fast as another contestant, or with the key "us" how many
    microseconds at most. `check`: raises where what `make` gave computes something else. `turn`:
    seconds that one timing takes, at least: more for work that goes over the same memory again and
    again, which another's turn has taken out of the cache.
    """

    name: str
    make: Callable[[], Mapping[str, Work]]
    asked: Mapping[str, float]
    check: Callable[[Mapping[str, Work]], None] | None = None
    turn: float = SAMPLE
    rounds: dict[str, list[float]] = field(default_factory=dict)

    @property
    def seconds(self) -> dict[str, float]:
        """What each contestant typically takes."""
        return {name: statistics.median(times) for name, times in self.rounds.items()}

    def ratio(self, other: str) -> float:
        """The time of another contestant by ours."""
        pairs = zip(self.rounds[other], self.rounds[OURS], strict=True)
        return statistics.median(theirs / ours for theirs, ours in pairs)

    def met(self) -> bool:
        """Whether all that is asked for is there."""
        return all(
            self.seconds[OURS] <= least * 1e-6 if name == "us" else self.ratio(name) >= least
            for name, least in self.asked.items()
        )


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's rounds."""
    peer("torch").set_num_threads(THREADS)
    works = row.make()
    if row.check is not None:
        row.check(works)
    order, row.rounds = list(works), {name: [] for name in works}
    once = max(min(timed(work, 1) for _ in range(3)) for work in works.values())
    repeats = max(1, min(1000, int(row.turn / max(once, 1e-7))))
    gc.collect()
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(works[name], 1)
            row.rounds[name].append(timed(works[name], repeats))


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
