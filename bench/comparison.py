"""Measure dovetail beside NumPy, PyTorch, JAX and numexpr, in one process and on the same data.

Each case is run by every contestant that is installed, in rounds that alternate between them, so
that a machine that slows down slows all of them. A time is the median of the rounds; a ratio is one
of medians. Every result is compared with NumPy's before anything is timed. A measured plain copy
tells what the memory can do.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
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
PAUSE = 10e-3  # seconds before a contestant's turn: the last one's threads may still be spinning
SAMPLE = 10e-3  # seconds that one sample takes at least: short cases are repeated within it


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
    return (
        8
        * n
        / min(
            statistics.median(_samples(f, rounds))
            for f in (copy, lambda: np.copyto(target, source))
        )
    )


def _samples(work: Work, rounds: int) -> list[float]:
    return [_sample(work, 1) for _ in range(rounds)]


def _sample(work: Work, repeats: int) -> float:
    begun = time.perf_counter()
    for _ in range(repeats):
        work()
    return (time.perf_counter() - begun) / repeats


def measure(case: Case, peers: Sequence[str] = PEERS, rounds: int = 7) -> Result:
    """The medians of one case, all contestants taking turns in each round."""
    result = Result(case.name, case.targets, nbytes=case.nbytes)
    works = _entrants(case, peers, result)
    repeats = {name: _repeats(work) for name, work in works.items()}
    samples: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    gc.collect()
    gc.disable()
    try:
        for round_ in range(rounds):
            for name in order[round_ % len(order) :] + order[: round_ % len(order)]:
                time.sleep(PAUSE)
                _sample(works[name], WARM)
                samples[name].append(_sample(works[name], repeats[name]))
    finally:
        gc.enable()
    result.seconds = {name: statistics.median(s) for name, s in samples.items()}
    return result


def _entrants(case: Case, peers: Sequence[str], result: Result) -> dict[str, Work]:
    """Who takes part: installed, able to, and right."""
    arrays = case.inputs()
    truth = case.contestants["numpy" if "numpy" in case.contestants else "scipy"](*arrays)()
    works: dict[str, Work] = {}
    for name, make in case.contestants.items():
        if name != "dovetail" and name not in peers:
            continue
        if not installed(name):
            result.missing[name] = "not installed"
            continue
        try:
            work = make(*arrays)
            _check(case, name, work(), truth)
        except Exception as error:
            if name == "dovetail":
                raise
            result.missing[name] = (str(error).strip() or type(error).__name__).splitlines()[0][:80]
        else:
            works[name] = work
    return works


def _check(case: Case, name: str, got: Any, truth: Any) -> None:
    """Raises ArithmeticError unless a result agrees with NumPy's."""
    found = np.asarray(got)
    if found.shape != np.shape(truth) or found.dtype != np.asarray(truth).dtype:
        raise ArithmeticError(f"{name} gave {found.dtype}{list(found.shape)} for {case.name}")
    if not np.allclose(found, truth, rtol=case.tolerance, atol=case.tolerance):
        raise ArithmeticError(f"{name} computed {case.name} wrongly")


def _repeats(work: Work) -> int:
    """How often a sample does the work: for SAMPLE seconds. Warms up as well."""
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

- Every contestant has {threads} threads and the same data: int64 in `unique` and in the cases that
  name it, else float32. The contestants take turns in each round.
- A time is the median of the rounds. A ratio is a ratio of medians.
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
    found = {"Python": platform.python_version()}
    for name in ("dovetail", "numpy", "torch", "jax", "numexpr"):
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
    each = track(cases, "measuring", transient=True, disable=not sys.stdout.isatty())
    results = [measure(c, peers, rounds) for c in each]
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
