"""Measure dovetail beside NumPy, PyTorch, JAX and numexpr, each in its own process.

Libraries in one process disturb each other: their idle threads spin, and take a core from the
library that is timed next. Every contestant that is installed gets the same data, and they take
turns, so that a machine that slows down slows all of them. A time is the best of all calls. Every
result is compared with NumPy's before anything is timed. A measured plain copy tells what the
memory can do.
"""

from __future__ import annotations

import gc
import json
import math
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

import dovetail as dt
import numpy as np
from allocator_costs import FEW, MANY, cached_us, growth
from comparison_cases import (
    PEERS,
    THREADS,
    Case,
    M,
    Target,
    Work,
    chain_of_seven,
    installed,
    limit_threads,
)
from dovetail.engine.evaluate import counters
from dovetail.memory.units import format_bytes
from rich.console import Console
from rich.progress import track
from rich.table import Table

WIDTH = 190  # columns of the table
WARM = 3  # untimed calls at the start of a turn: threads wake, caches fill
PAUSE = 0.2  # seconds before a contestant's turn: OpenMP's threads spin for so long
TURN = 0.1  # seconds of a turn, unless one sample takes longer
SAMPLE = 50e-6  # seconds that one sample takes at least: short cases are repeated within it
BOUND = {"OMP_PROC_BIND": "true", "OMP_PLACES": "threads"}  # OpenMP's threads may share a core

_processes = multiprocessing.get_context("fork")  # cases are functions, which cannot be sent


@dataclass
class Result:
    """What was measured: seconds by contestant, and why some are missing."""

    name: str
    targets: tuple[Target, ...]
    seconds: dict[str, float] = field(default_factory=dict)
    nbytes: int = 0
    missing: dict[str, str] = field(default_factory=dict)
    value: float | None = None  # of a figure on its own
    note: str = ""

    def ratio(self, target: Target, copy_rate: float) -> float | None:
        """The figure that a target bounds; None where its counterpart was not measured."""
        if not target.of:
            return self.value
        mine = self.seconds.get("dovetail")
        if mine is None:
            return None
        if target.of == "copy":
            return mine / (self.nbytes / copy_rate)
        others = [self.seconds.get(name) for name in target.of.split("|")]
        known = [other for other in others if other is not None]
        return min(known) / mine if len(known) == len(others) else None

    def met(self, copy_rate: float) -> bool | None:
        """Whether all targets are met; None where one could not be measured."""
        found = [self._meets(t, self.ratio(t, copy_rate)) for t in self.targets]
        return False if False in found else None if None in found or not found else True

    def _meets(self, target: Target, ratio: float | None) -> bool | None:
        if ratio is None:
            return None
        at_most = not target.of or target.of == "copy"
        return ratio <= target.bound if at_most else ratio >= target.bound


# --- measuring ------------------------------------------------------------------------------------


def copy_rate(n: int = 16 * M, rounds: int = 9) -> float:
    """Bytes a second, read plus written, of a plain copy into memory that was touched before."""
    source, target = np.ones(n, "f4"), np.zeros(n, "f4")
    cuts = [n * i // THREADS for i in range(THREADS + 1)]
    parts = [(target[a:b], source[a:b]) for a, b in pairwise(cuts)]

    def copy() -> None:
        threads = [threading.Thread(target=np.copyto, args=part) for part in parts[1:]]
        for thread in threads:
            thread.start()
        np.copyto(*parts[0])
        for thread in threads:
            thread.join()

    copy()
    return 8 * n / min(min(_samples(f, rounds)) for f in (copy, lambda: np.copyto(target, source)))


def _samples(work: Work, rounds: int) -> list[float]:
    return [_sample(work, 1) for _ in range(rounds)]


def _sample(work: Work, repeats: int) -> float:
    begun = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - begun) / repeats


def ask_process(function: Callable[[], bool]) -> bool:
    """Return a function's result in another process, so that this one loads nothing for it."""
    with _processes.Pool(1) as pool:
        return pool.apply(function)


class Contestant:
    """A process in which one library does cases."""

    def __init__(self, name: str, cases: Sequence[Case]) -> None:
        pipe = self._connection, other = _processes.Pipe()
        self._process = _processes.Process(target=_answer, args=(name, cases, *pipe))
        self._process.start()
        other.close()

    def prepare(self, number: int) -> str | ArithmeticError:
        """Prepare a case; return "", or the reason why the library cannot do it."""
        self._connection.send(number)
        answer: str | ArithmeticError = self._connection.recv()
        return answer

    def take_turn(self) -> float:
        """Return the least seconds of a call in one turn at the case."""
        self._connection.send(None)
        seconds: float = self._connection.recv()
        return seconds

    def end(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join()


def _answer(name: str, cases: Sequence[Case], inherited: Any, connection: Any) -> None:
    """Prepare the case of each number that is received, and take a turn at it for each None."""
    inherited.close()  # else this process would not see the other one's end
    if name != "dovetail":
        os.environ.update(BOUND)
    work: Work = list
    gc.disable()
    with suppress(EOFError):
        while True:
            number = connection.recv()
            if number is None:
                connection.send(_best(work))
                continue
            try:
                work = _prepare(cases[number], name)
                connection.send("")
            except ArithmeticError as error:
                connection.send(error)
            except Exception as error:
                connection.send(f"{str(error).strip() or type(error).__name__}".splitlines()[0])


def _prepare(case: Case, name: str) -> Work:
    """Return the work of a contestant. Raises: ArithmeticError if its result is wrong."""
    arrays = case.inputs()
    truth = case.contestants["numpy" if "numpy" in case.contestants else "scipy"](*arrays)()
    work = case.contestants[name](*arrays)
    _check(case, name, work(), truth)
    return work


def _best(work: Work) -> float:
    """Return the least seconds of a call in one turn."""
    repeats, _ = _repeats(work), _sample(work, WARM)
    end, best = time.perf_counter() + TURN, _sample(work, repeats)
    while time.perf_counter() < end:
        best = min(best, _sample(work, repeats))
    return best


def measure(cases: Sequence[Case], peers: Sequence[str], rounds: int) -> Iterator[Result]:
    """Yield the best times of each case; in each round all contestants take turns."""
    names = dict.fromkeys(name for case in cases for name in case.contestants)
    chosen = [name for name in names if name == "dovetail" or name in peers]
    contestants = {name: Contestant(name, cases) for name in chosen if installed(name)}
    try:
        for number, case in enumerate(cases):
            yield _measure_case(case, number, chosen, contestants, rounds)
    finally:
        for contestant in reversed(contestants.values()):  # later ones inherit the earlier's pipes
            contestant.end()


def _measure_case(
    case: Case, number: int, chosen: Sequence[str], contestants: Mapping[str, Contestant],
    rounds: int,
) -> Result:  # fmt: skip
    """Return the best times of one case, and why contestants are missing."""
    result = Result(case.name, case.targets, nbytes=case.nbytes)
    order: list[str] = []
    for name in (name for name in chosen if name in case.contestants):
        reason = contestants[name].prepare(number) if name in contestants else "not installed"
        if reason and name == "dovetail":
            raise reason if isinstance(reason, ArithmeticError) else RuntimeError(reason)
        if reason:
            result.missing[name] = str(reason)[:80]
        else:
            order.append(name)
    for turn in range(rounds):
        begin = turn % len(order)
        for name in order[begin:] + order[:begin]:
            time.sleep(PAUSE)
            seconds = contestants[name].take_turn()
            result.seconds[name] = min(seconds, result.seconds.get(name, math.inf))
    return result


def _check(case: Case, name: str, got: Any, truth: Any) -> None:
    """Raises ArithmeticError unless a result agrees with NumPy's."""
    found = np.asarray(got)
    if found.shape != np.shape(truth) or found.dtype != np.asarray(truth).dtype:
        raise ArithmeticError(f"{name} gave {found.dtype}{list(found.shape)} for {case.name}")
    if not np.allclose(found, truth, rtol=case.tolerance, atol=case.tolerance):
        raise ArithmeticError(f"{name} computed {case.name} wrongly")


def _repeats(work: Work) -> int:
    """Return how often a sample does the work: for SAMPLE seconds. Warms up as well."""
    once = min(_sample(work, 1) for _ in range(3))
    return max(1, min(10_000, int(SAMPLE / max(once, 1e-7))))


# --- what happens once: shapes, first use, import -------------------------------------------------


def new_shapes(count: int = 200) -> Result:
    """How many kernels are compiled for shapes not seen before, through an expression that was."""

    def work(rows: int, columns: int) -> None:
        x, y = dt.ones((rows, columns)), dt.ones((rows, columns))
        dt.evaluate(chain_of_seven(dt, x, y).sum(axis=1))

    work(37, 41)
    before = counters.compiles + counters.disk_hits
    for i in range(count):
        work(38 + i % 20, 42 + i // 20)
    made = counters.compiles + counters.disk_hits - before
    return Result(f"kernels compiled for {count} new shapes", (Target("", 0),), value=made)


_FIRST_USE = """
import json, time, numpy, dovetail as dt
from dovetail.engine.evaluate import counters
x, y = (dt.asarray(numpy.ones(1000, "f4")) for _ in range(2))
dt.evaluate(x + y)
begun = time.perf_counter()
dt.evaluate(dt.tanh(x * 2 + y) * x - y / (1 + x * x))
print(json.dumps([time.perf_counter() - begun, counters.compiles, counters.disk_hits]))
"""

_IMPORT = "import time; t = time.perf_counter(); import {}; print(time.perf_counter() - t)"


def _python(code: str, environment: Mapping[str, str]) -> str:
    """What a fresh Python prints, which may keep byte code as an installed package has it."""
    everything = {**os.environ, **environment}
    everything.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env=everything, capture_output=True, text=True, check=True)
    return done.stdout


def first_use(rounds: int = 5) -> list[Result]:
    """The first evaluation of seven ops, in fresh processes: compiled, then from the disk cache."""
    seconds: dict[str, list[float]] = {"compiled": [], "from disk": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            for kind, wanted in (("compiled", (2, 0)), ("from disk", (0, 2))):
                took, *counts = json.loads(_python(_FIRST_USE, {"DOVETAIL_CACHE_DIR": folder}))
                seconds[kind].append(took)
                if tuple(counts) != wanted:
                    raise ArithmeticError(f"{kind}: {counts} compiles and disk hits, not {wanted}")
    limits = {"compiled": 60.0, "from disk": 4.0}
    return [
        Result(
            f"first use of a chain of 7, {kind}", (Target("", limits[kind], "ms"),),
            value=statistics.median(times) * 1e3,
        )
        for kind, times in seconds.items()
    ]  # fmt: skip


def import_time(rounds: int = 15) -> Result:
    """What `import dovetail` costs beyond `import numpy`, in fresh processes."""
    times: dict[str, list[float]] = {"numpy": [], "dovetail": []}
    with tempfile.TemporaryDirectory() as folder:
        for round_ in range(rounds + 1):  # the first one writes the byte code
            for name, found in times.items():
                took = float(_python(_IMPORT.format(name), {"PYTHONPYCACHEPREFIX": folder}))
                if round_:
                    found.append(took)
    more = statistics.median(times["dovetail"]) - statistics.median(times["numpy"])
    return Result("import dovetail, beyond numpy", (Target("", 40.0, "ms"),), value=more * 1e3)


def memory() -> list[Result]:
    """The allocator's figures."""
    return [
        Result("allocate + free from the cache", (Target("", 1.5, "us"),), value=cached_us()),
        Result(
            f"a step of a trace of {MANY} blocks, beside one of {FEW}",
            (Target("", 3.0, "x"),),
            value=growth(),
        ),
    ]


# --- showing --------------------------------------------------------------------------------------


@dataclass
class Report:
    """All results, the measured limit, and what they were measured with."""

    results: list[Result]
    copy_rate: float
    setting: dict[str, str]

    def table(self) -> Table:
        """For the terminal."""
        headings, rows = self.cells()
        made = Table(title=f"plain copy: {self.copy_rate / 1e9:.1f} GB/s")
        for i, heading in enumerate(headings):
            made.add_column(heading, justify="right" if i else "left", no_wrap=True)
        for row in rows:
            color = {"yes": "green", "no": "red"}.get(row[-1], "yellow")
            made.add_row(*row[:-1], f"[{color}]{row[-1]}[/]")
        return made

    def cells(self) -> tuple[list[str], list[list[str]]]:
        """Headings and rows."""
        names = [n for n in ("dovetail", *PEERS) if any(n in r.seconds for r in self.results)]
        headings = ["case", *names, "of copy", "target", "ratio", "met"]
        return headings, [self._row(r, names) for r in self.results]

    def _row(self, r: Result, names: Sequence[str]) -> list[str]:
        times = [seconds_text(r.seconds[n]) if n in r.seconds else "" for n in names]
        mine, met = r.seconds.get("dovetail"), r.met(self.copy_rate)
        share = f"{r.nbytes / mine / self.copy_rate:.0%}" if mine and r.nbytes else ""
        ratios = [(t, r.ratio(t, self.copy_rate)) for t in r.targets]
        return [
            r.name,
            *times,
            share,
            ", ".join(map(str, r.targets)),
            ", ".join("?" if x is None else f"{x:.3g} {t.unit}".strip() for t, x in ratios),
            "" if not r.targets else "?" if met is None else "yes" if met else "no",
        ]

    def markdown(self) -> str:
        """As a page of `docs`."""
        headings, rows = self.cells()
        lines = [f"| {' | '.join(headings)} |", f"|---{'|---:' * (len(headings) - 1)}|"]
        escaped = ([cell.replace("|", r"\|") for cell in row] for row in rows)
        lines += [f"| {' | '.join(row)} |" for row in escaped]
        setting = ", ".join(f"{k} {v}" for k, v in self.setting.items())
        rate = f"{self.copy_rate / 1e9:.1f} GB/s"
        missing = sorted(
            {f"{k}: {v} ({r.name})" for r in self.results for k, v in r.missing.items()}
        )
        left_out = ["", "Left out:", "", *(f"- {line}" for line in missing)] if missing else []
        return PAGE.format(
            setting=setting, rate=rate, table="\n".join(lines), rest="\n".join(left_out)
        )

    def json(self) -> str:
        """Everything, for machines."""
        return json.dumps(asdict(self), indent=1)


PAGE = (
    """# Benchmarks

This page compares the speed of dovetail with other libraries. [Performance](performance.md) says
how to make a program faster.

    python bench/run.py --few

measures some of the cases on your computer. `python bench/run.py --write` measures all and writes
this page, with good and bad figures.

Measured with {setting}.

- Every contestant has {threads} threads, a process of its own, and the same data: int64 in `unique`
  and in the cases that name it, else float32. The contestants take turns in each round.
- A time is the best of all calls. A ratio is a ratio of best times.
- dovetail's time includes recording and planning of the ops, each time. Results are freed each
  time, as in a user's program.
- JAX runs under `jax.jit`; its time ends when the result is computed.
- "of copy" compares with a plain copy of as many bytes, at {{rate}}.
- No figure is from a GPU. [GPU runs](gpu-runs/nvidia-h200-2026-11-26.md) has those.

{{table}}
{{rest}}
""".replace("{threads}", str(THREADS))
    .replace("{{", "{")
    .replace("}}", "}")
)


def seconds_text(seconds: float) -> str:
    """0.0123 -> "12.3 ms"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds * 1e9:.3g} ns"


def setting() -> dict[str, str]:
    """Versions and the kind of machine."""
    found = {"Python": platform.python_version(), "dovetail": dt.__version__}
    for name in ("numpy", "torch", "jax", "numexpr"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | {"CPU": f"{platform.machine()}, {os.cpu_count()} cores"}


def measure_all(
    cases: Sequence[Case], peers: Sequence[str], rounds: int, once: bool = True
) -> Report:
    """Everything measured, with a progress bar."""
    rate = copy_rate()
    each = track(
        measure(cases, peers, rounds), "measuring", len(cases), transient=True,
        disable=not sys.stdout.isatty(),
    )  # fmt: skip
    results = list(each)
    if once:
        results += [new_shapes(), *first_use(), import_time(), *memory()]
    return Report(results, rate, setting())


def respawned(command: Sequence[str]) -> int | None:
    """The exit status of this Python, run again with bounded threads; None if they are already.

    A BLAS reads its bound when it is loaded, which is when NumPy is: too early for this process.
    """
    if os.environ.get("DOVETAIL_BENCH"):
        return None
    limit_threads()
    return subprocess.call([sys.executable, *command], env={**os.environ, "DOVETAIL_BENCH": "1"})


def show(report: Report) -> None:
    """Prints the table in full, and why contestants are missing."""
    console = Console()
    console.width = max(console.width, WIDTH)
    console.print(report.table())
    for result in report.results:
        for name, reason in result.missing.items():
            console.print(f"{result.name}: {name}: {reason}", markup=False)
    rate = format_bytes(report.copy_rate)
    console.print(f"{rate} a second is what a plain copy moves here.", highlight=False)
