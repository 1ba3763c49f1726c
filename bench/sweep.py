"""Every public function and form of indexing beside NumPy and PyTorch: `python bench/sweep.py`.

The rows are in `sweep_rows.py`. Each is measured at several sizes, for each dtype and arrangement
that it takes; contestants take turns in every round, and have two threads each. A ratio is the
median, over the rounds, of a peer's time by ours: above 1 dovetail is faster. Work is recorded,
evaluated and its result dropped each time; results are compared with NumPy's before. The table
begins with the row that is furthest behind the faster peer.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import REDRAW, aligned, markdown, put
from comparison import respawned, seconds_text, setting
from comparison_cases import THREADS, Array, Foreign, K, M, Work, count_text, limit_threads, peer
from sweep_causes import EXPLAINED, cause_of
from sweep_rows import OPERANDS, ROWS, Row

SIZES = {"64": 64, "1K": K, "64K": 64 * K, "1M": M, "16M": 16 * M}
DTYPES = ("float32", "float64", "int64")
ARRANGEMENTS = ("contiguous", "transposed", "sliced")
PEERS = ("numpy", "torch")
FROM = "measure nothing: take what --json wrote; of a line in several files, the last"
PROCESSOR_TIME = "of one thread: on a machine others use too"
PAUSE = 20e-3  # seconds before a turn: threads of the last contestant may still be spinning ...
AFTER_BLAS = 150e-3  # ... and those of a BLAS do for a tenth of a second
PRODUCTS = ("@", "matmul", "outer product", "tensordot", "vecdot")  # in the names of such rows
PATIENCE = 1.0  # seconds: who takes longer for one time is timed twice, and that in no other round
LARGE = 64 * K  # elements from which a row that is behind has its profile
SHOWN = 3  # launches of a profile that the page has
ENOUGH = 0.9  # of the faster peer's speed: what lies below is listed on the page
TOLERANCE = {"float32": 2e-3, "float64": 1e-6, "int64": 0.0}
SHAKY = ("matmul", "tensordot", "prod", "cumulative")  # compared in relation to the largest element


@dataclass
class Found:
    """One line of the table: medians of seconds, and of ratios to ours by peer.

    `profile` holds the launches of a large row that is behind: what, seconds, and bytes a second.
    """

    row: str
    size: int
    dtype: str
    arrangement: str
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    profile: list[tuple[str, float, float]] = field(default_factory=list)

    @property
    def worst(self) -> float:
        """The ratio to the faster peer."""
        return min(self.ratios.values(), default=math.inf)

    @property
    def cause(self) -> str:
        """Why it is behind, in a word that `sweep_causes` explains."""
        return cause_of(self.row, self.size, self.dtype, self.arrangement)

    @property
    def title(self) -> str:
        """What was done to what."""
        return f"{self.row}, {self.dtype}, {self.arrangement}, {count_text(self.size)}"


# --- contestants ----------------------------------------------------------------------------------


def _arranged(a: Array, arrangement: str, n: int) -> Array:
    """`a` as it lies otherwise: a transposed matrix, or every second element of a longer one."""
    if arrangement == "transposed":
        side = 1 << (n.bit_length() - 1) // 2
        return np.ascontiguousarray(a.reshape(side, -1)).T
    if arrangement == "sliced":
        longer = np.zeros(2 * a.size, a.dtype)
        longer[::2] = a
        return longer[::2]
    return a


def _works(row: Row, n: int, dtype: str, arrangement: str, peers: Sequence[str]) -> dict[str, Work]:
    """What each contestant does, on operands of its own."""
    given = {name: OPERANDS[name](n, dtype) for name in row.operands}
    contestants = {"dovetail": (dt, row.compute), "numpy": (np, row.numpy or row.compute)}
    if "torch" in peers:
        contestants["torch"] = (peer("torch"), row.torch)
    brought: Mapping[str, Callable[[Array], Foreign]] = {
        "dovetail": dt.asarray,
        "numpy": lambda a: a,
        "torch": lambda a: peer("torch").from_numpy(a),
    }
    found: dict[str, Work] = {}
    for name, (namespace, compute) in contestants.items():
        arrays = [_arranged(a.copy(), arrangement, n) for a in given.values()]
        work = partial(compute, namespace, *map(brought[name], arrays))
        found[name] = partial(_evaluated, work) if name == "dovetail" else work
    return found


def _evaluated(work: Work) -> Foreign:
    result = work()
    if isinstance(result, dt.Tensor):
        dt.evaluate(result)
    return result


def _agrees(row: Row, got: Foreign, truth: Foreign, dtype: str) -> bool:
    a, b = np.asarray(got), np.asarray(truth)
    if row.name.startswith("empty"):
        return a.shape == b.shape
    if a.shape != b.shape:
        return False
    if a.dtype.kind not in "fc" or b.dtype.kind not in "fc":
        return bool((a == b).all())
    rough = np.abs(b[np.isfinite(b)]).max(initial=0) if row.name.startswith(SHAKY) else 1.0
    within = max(TOLERANCE[dtype], 2e-6)
    return bool(np.allclose(a, b, rtol=within, atol=within * rough, equal_nan=True))


# --- measuring ------------------------------------------------------------------------------------


def measure(row: Row, n: int, dtype: str, arrangement: str, asked: argparse.Namespace) -> Found:
    """One line: checked, then timed in rounds of `asked.sample` seconds for each contestant."""
    found = Found(row.name, n, dtype, arrangement)
    works = _checked(row, found, _works(row, n, dtype, arrangement, asked.peers))
    clock = time.process_time if asked.processor_time else time.perf_counter
    first = {name: timed(work, 1, clock) for name, work in works.items()}
    order = [name for name in works if first[name] < PATIENCE]
    repeats = {name: repeats_of(works[name], asked.sample) for name in order}
    times: dict[str, list[float]] = {name: [] for name in order}
    pause = AFTER_BLAS if any(word in row.name for word in PRODUCTS) else PAUSE
    gc.collect()
    gc.disable()
    try:
        for name in works.keys() - order:
            times[name] = [min(first[name], timed(works[name], 1, clock))] * asked.rounds
        for turn in range(asked.rounds):
            begin = turn % max(1, len(order))  # all may be too slow for turns
            for name in order[begin:] + order[:begin]:
                time.sleep(pause)
                timed(works[name], 1 if repeats[name] < 3 else 3)
                times[name].append(timed(works[name], repeats[name], clock))
    finally:
        gc.enable()
    typical = min if asked.least else statistics.median
    found.seconds = {name: typical(t) for name, t in times.items()}
    for name in list(works)[1:]:
        pairs = zip(times[name], times["dovetail"], strict=True)
        found.ratios[name] = statistics.median(theirs / ours for theirs, ours in pairs)
        if asked.least:
            found.ratios[name] = found.seconds[name] / found.seconds["dovetail"]
    if n >= LARGE and found.worst < ENOUGH:
        found.profile = profiled(works["dovetail"], max(3, min(60, repeats["dovetail"])))
    return found


def profiled(work: Work, repeats: int) -> list[tuple[str, float, float]]:
    """The launches of one time, the longest first: medians, of events that are waited for."""
    with dt.profile() as taken:
        for _ in range(repeats):
            work()
    events: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for event in taken.events:
        kind, _, name = event["name"].partition(" ")
        if kind in ("launch", "call"):
            key = name, event["details"].get("bytes", 0)
            events.setdefault(key, []).append(event)
    lines = []
    for (name, nbytes), some in events.items():
        once = statistics.median(e["ended"] - e["begun"] for e in some) / 1e9
        count = round(len(some) / repeats)
        title = name if count == 1 else f"{count} x {name}"
        lines.append((title, once * count, nbytes / once))
    return sorted(lines, key=lambda line: -line[1])


def _checked(row: Row, found: Found, works: dict[str, Work]) -> dict[str, Work]:
    """Those who gave NumPy's result. Raises: ArithmeticError where dovetail did not."""
    truth = np.copy(np.asarray(works["numpy"]()))
    for name in [name for name in works if name != "numpy"]:
        try:
            fine = _agrees(row, works[name](), truth, found.dtype)
            reason = "" if fine else "gives something else"
        except (TypeError, RuntimeError, AttributeError, NotImplementedError) as error:
            if name == "dovetail":
                raise
            reason = str(error).splitlines()[0][:80]
        if reason and name == "dovetail":
            raise ArithmeticError(f"dovetail computed {found.title} wrongly")
        if reason:
            found.missing[name] = reason
            del works[name]
    return works


def timed(work: Work, repeats: int, clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the seconds of one time."""
    begun = clock()
    for _ in range(repeats):
        work()
    return (clock() - begun) / repeats


def repeats_of(work: Work, sample: float) -> int:
    """How many times take so many seconds."""
    once = min(timed(work, 1) for _ in range(3))
    return max(1, min(10_000, int(sample / max(once, 1e-7))))


def lines(asked: argparse.Namespace) -> Iterator[tuple[Row, int, str, str]]:
    """What is measured: every row that was asked for, in every form that it has."""
    for row in ROWS.values():
        if asked.only and not any(text in row.name for text in asked.only):
            continue
        for size in asked.sizes:
            n = SIZES[size]
            for dtype in asked.dtypes:
                if n > row.most or dtype[0] not in row.kinds:
                    continue
                for arrangement in asked.arrangements if row.arranged else ("contiguous",):
                    if arrangement in asked.arrangements:
                        yield row, n, dtype, arrangement


# --- showing --------------------------------------------------------------------------------------


def table(found: Sequence[Found], peers: Sequence[str]) -> list[list[str]]:
    """Headings and rows, the worst first."""
    heads = ["row", "dtype", "operands", "size", "dovetail", *peers, *(f"x {p}" for p in peers)]
    made = [[*heads, "cause", "launches"]]
    for f in sorted(found, key=lambda f: f.worst):
        times = [seconds_text(f.seconds[p]) if p in f.seconds else "" for p in ("dovetail", *peers)]
        ratios = [f"{f.ratios[p]:.2f}" if p in f.ratios else "" for p in peers]
        words = (f.cause, launches(f))
        size = count_text(f.size)
        made.append([f.row, f.dtype, f.arrangement, size, *times, *ratios, *words])
    return made


def launches(f: Found) -> str:
    """The profile of a row, in words."""
    texts = []
    for name, seconds, speed in f.profile[:SHOWN]:
        moved = f" at {speed / 1e9:.3g} GB/s" if speed else ""
        texts.append(f"{name} {seconds_text(seconds)}{moved}")
    more = len(f.profile) - SHOWN
    return ", ".join([*texts, *([f"and {more} more"] if more > 0 else [])])


def means(found: Sequence[Found], peers: Sequence[str]) -> list[list[str]]:
    """Geometric means by dtype, arrangement and size, and how many rows are behind."""
    heads = ["dtype", "operands", "size", *(f"x {p}, geometric mean" for p in peers), "rows"]
    made = [[*heads, f"below {ENOUGH}", "least"]]
    kinds = dict.fromkeys((f.dtype, f.arrangement) for f in found)
    for kind in sorted(kinds, key=lambda k: (DTYPES.index(k[0]), ARRANGEMENTS.index(k[1]))):
        for n in sorted({f.size for f in found if (f.dtype, f.arrangement) == kind}):
            here = [f for f in found if (f.dtype, f.arrangement, f.size) == (*kind, n)]
            logs = [[math.log(f.ratios[p]) for f in here if p in f.ratios] for p in peers]
            texts = [f"{math.exp(statistics.fmean(x)):.2f}" if x else "" for x in logs]
            behind, least = sum(f.worst < ENOUGH for f in here), min(f.worst for f in here)
            made.append([*kind, count_text(n), *texts, str(len(here)), str(behind), f"{least:.2f}"])
    return made


def legend(found: Sequence[Found]) -> list[str]:
    """What the causes of these rows mean, and how many rows each has."""
    words = [f.cause for f in found if f.cause]
    return [f"- **{w}** ({words.count(w)}): {EXPLAINED[w]}" for w in sorted(set(words))]


def section(
    found: Sequence[Found], peers: Sequence[str], least: bool = False, processor_time: bool = False
) -> list[str]:
    """Return the sweep's part of the page: the means, and large rows behind the faster peer.

    Of small rows only the means are given: the cost of a call decides all of them.
    """
    behind = [f for f in found if f.worst < ENOUGH]
    large = [f for f in behind if f.size >= LARGE]
    ratio = "of the least times" if least else "the median over all rounds"
    threads = (
        "- Times are processor times of one thread: a peer's idle threads do not disturb them."
        if processor_time
        else f"- Each contestant has {THREADS} threads; the contestants take turns."
    )
    versions = ", ".join(f"{k} {v}" for k, v in setting().items())
    return [
        "## The sweep", "",
        "Every public function and form of indexing: `python bench/sweep.py --write`.",
        f"{versions}.",
        "",
        threads,
        f"- A ratio is a peer's time divided by dovetail's: {ratio}, with recording and",
        "  evaluation. Above 1 dovetail is faster.",
        "- The launches are those of a profile, which waits for each launch: small ones take about",
        "  4 us more in it.",
        "",
        *markdown(means(found, peers)), "",
        f"{len(behind)} of {len(found)} rows reach less than {ENOUGH} times the faster peer's "
        "speed. Their causes:", "",
        *legend(behind), "",
        f"Those of {count_text(LARGE)} elements and more, slowest first:", "",
        *markdown(table(large, peers)),
    ]  # fmt: skip


def parsed(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """The options. `--quick` is float32, contiguous, 64 K and 1 M elements, few rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=[], help="only rows whose name contains one")
    parser.add_argument("--sizes", nargs="*", choices=SIZES)
    parser.add_argument("--dtypes", nargs="*", choices=DTYPES)
    parser.add_argument("--arrangements", nargs="*", choices=ARRANGEMENTS)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--sample", type=float, default=0.0, help="milliseconds of a turn")
    parser.add_argument("--least", action="store_true", help="minima: on a machine others use too")
    parser.add_argument("--processor-time", action="store_true", help=PROCESSOR_TIME)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path, help="write the figures here")
    parser.add_argument("--from", type=Path, nargs="*", default=[], dest="files", help=FROM)
    parser.add_argument("--write", action="store_true", help="write the section of the page")
    asked = parser.parse_args(arguments)
    asked.sizes = asked.sizes or (["64K", "1M"] if asked.quick else list(SIZES))
    asked.dtypes = asked.dtypes or list(("float32",) if asked.quick else DTYPES)
    asked.arrangements = asked.arrangements or list(
        ARRANGEMENTS[:1] if asked.quick else ARRANGEMENTS
    )
    asked.rounds = asked.rounds or (3 if asked.quick else 7)
    asked.sample = (asked.sample or (2.0 if asked.quick else 8.0)) / 1e3
    asked.peers = list(dict.fromkeys(["numpy", *asked.peers]))  # who says what is right
    return asked


def measured(asked: argparse.Namespace) -> list[Found]:
    """What was asked for, measured."""
    found: list[Found] = []
    for row, n, dtype, arrangement in lines(asked):
        found.append(measure(row, n, dtype, arrangement, asked))
        print(f"\r{len(found)} {found[-1].title:60.60}", end="", file=sys.stderr, flush=True)
        if asked.json:  # each time: whoever is stopped keeps what was measured
            asked.json.write_text(json.dumps([asdict(f) for f in found], indent=1))
    print(file=sys.stderr)
    return found


def kept(files: Sequence[Path]) -> dict[str, Found]:
    """What was measured before, by title."""
    read = [Found(**fields) for file in files for fields in json.loads(file.read_text())]
    return {f.title: f for f in read}


def main() -> int:
    """Measures and prints; 0."""
    asked = parsed()
    if asked.processor_time:
        limit_threads(1)
    status = None if asked.files else respawned(sys.argv)
    if status is not None:
        return status
    found = [*kept(asked.files).values()] if asked.files else measured(asked)
    print(aligned(table(found, asked.peers)))
    print(aligned(means(found, asked.peers)))
    for f in found:
        for name, reason in f.missing.items():
            print(f"{f.title}: {name}: {reason}")
        if f.worst < ENOUGH and not f.cause:
            print(f"{f.title}: {f.worst:.2f} of the faster peer, and nobody knows why")
    if asked.write:
        put("sweep", section(found, asked.peers, asked.least, asked.processor_time))
        print(REDRAW)
    return 0


if __name__ == "__main__":
    sys.exit(main())
