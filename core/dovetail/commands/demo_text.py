"""`dovetail demo text WORDS`: search the source of Python's standard library.

It ranks the modules with sparse tensors.

Every word of every module becomes one (module, word, 1) triple; coalescing counts them. TF-IDF and
a product with the query give the best modules; a second tensor holds the imports and gives
PageRank. SciPy does the same for comparison, and all devices must give the same bits.

Source of the weights: Singhal et al., "Pivoted document length normalization", 1996.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import re
import sysconfig
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import track
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser
from ..tensor.tensor import Tensor
from .demo import (
    INK,
    PAPER,
    REFERENCE_DEVICE,
    Array,
    DemoSeconds,
    add_full,
    report_missing_modules,
    select_devices,
)

QUERY = "parse command line arguments"
TABLE_MODULES_MAX = 8  # modules in a table
DAMPING, STEPS = 0.85, 50  # PageRank's: Page et al. (1999)
SLOPE = 0.2  # of a module's length in its score: the whole length would hide long modules
TOLERANCE = 1e-5  # relative to the largest value, float32 against SciPy's float64
REFERENCE_MODULES_MAX = 40  # modules for the interpreter, which is right, but slow: 10 s for all
DIGEST_DIGITS = 12  # of a digest that is shown
SECONDS = DemoSeconds(cpu=8, other=8, reference=10)  # of which 5 read the library
_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")  # parseHTTPHeader: parse, http, header


# --- the library ----------------------------------------------------------------------------------


@dataclass
class Library:
    """Modules, words, and two sets of raw pairs: (module, word), (imported, importing)."""

    modules: list[str]
    words: list[str]
    uses: Array  # int64 (2, occurrences)
    imports: Array  # int64 (2, import statements)

    def first(self, n: int) -> Library:
        """Return the first `n` modules, with their words and the imports among these."""
        uses = self.uses[:, self.uses[0] < n]
        imports = self.imports[:, (self.imports < n).all(axis=0)]
        return Library(self.modules[:n], self.words, uses, imports)


@cache
def library() -> Library:
    """Read the standard library of the running Python, without tests; cached."""
    by_name = dict(sorted(sources()))
    modules, words = {name: i for i, name in enumerate(by_name)}, dict[str, int]()
    uses: list[tuple[int, int]] = []
    imports: list[tuple[int, int]] = []
    for name, source in by_name.items():
        for word in _WORD.findall(source.text):
            uses.append((modules[name], words.setdefault(_stem(word), len(words))))
        imports += ((modules[other], modules[name]) for other in _imports_of(source, name, modules))
    return Library(list(modules), list(words), _pair_array(uses), _pair_array(imports))


def _stem(word: str) -> str:
    """Return a word in lower case, without a plural's s."""
    word = word.lower()
    return word[:-1] if word.endswith("s") and not word.endswith("ss") else word


def _pair_array(pairs: Sequence[tuple[int, int]]) -> Array:
    """Return pairs as an int64 array of shape (2, pairs)."""
    return np.array(pairs, np.int64).reshape(-1, 2).T.copy()


class ModuleSource(NamedTuple):
    """A module's text, and whether it is a package's."""

    text: str
    package: bool


def sources(root: Path | None = None) -> Iterator[tuple[str, ModuleSource]]:
    """Yield the name and source of each module below a folder, without tests.

    `root`: the running Python's library unless given.
    """
    root = root or Path(sysconfig.get_path("stdlib"))
    left_out = {"test", "tests", "idle_test", "site-packages", "dist-packages", "lib2to3"}
    for path in root.rglob("*.py"):
        path_parts = path.relative_to(root).with_suffix("").parts
        if left_out.isdisjoint(path_parts) and all(p.isidentifier() for p in path_parts):
            package = path_parts[-1] == "__init__"
            text = path.read_text(encoding="utf-8", errors="replace")
            yield ".".join(path_parts[:-1] if package else path_parts), ModuleSource(text, package)


def _imports_of(source: ModuleSource, name: str, modules: dict[str, int]) -> Iterator[str]:
    """Yield the known modules that a module's import statements name, as often as they do."""
    inside = [*name.split("."), ""] if source.package else name.split(".")
    for statement in ast.walk(ast.parse(source.text)):
        if isinstance(statement, ast.Import):
            imported_names = [alias.name for alias in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            above = inside[: -statement.level] if statement.level else []
            base = ".".join([*above, statement.module or ""]).strip(".")
            imported_names = [f"{base}.{alias.name}".strip(".") for alias in statement.names]
        else:
            continue
        for full in imported_names:
            other = next((m for m in (full, full.rpartition(".")[0]) if m in modules), None)
            if other is not None and other != name:
                yield other


# --- the work -------------------------------------------------------------------------------------


@dataclass
class SearchOutcome:
    """The results of one device."""

    device: str
    modules: list[str]
    stored: int  # pairs of module and word, once each
    scores: Array  # of each module, for the query
    ranks: Array  # of each module
    seconds: dict[str, float]

    @property
    def digest(self) -> str:
        """Return a digest of all scores and ranks."""
        return hashlib.sha256(self.scores.tobytes() + self.ranks.tobytes()).hexdigest()


def count_pairs(pairs: Array, shape: tuple[int, int], device: str) -> Any:
    """Return how often each column of `pairs`, of shape (2, n), occurs, as a sparse matrix."""
    ones = dt.ones(pairs.shape[1], dtype=dt.float32, device=device)
    return dt.sparse_coo_tensor(dt.asarray(pairs, device=device), ones, shape).coalesce()


def tf_idf(counts: Any) -> Any:
    """Return log(1 + count) log(modules / modules with the word), by each row's pivoted length."""
    present = dt.sparse_coo_tensor(counts.indices(), dt.ones_like(counts.values()), counts.shape)
    spread = dt.sum(present, axis=0).to_dense()
    weights = dt.log1p(counts) * dt.log(counts.shape[0] / dt.maximum(spread, 1.0))
    lengths = dt.sqrt(dt.sum(weights * weights, axis=1).to_dense())
    pivoted = (1 - SLOPE) * dt.mean(lengths) + SLOPE * lengths
    return weights * (1 / dt.maximum(pivoted, 1e-12)).reshape(-1, 1)


def page_rank(links: Any) -> Tensor:
    """Return the PageRank of each module; `links` counts imports as (imported, importing)."""
    n = links.shape[0]
    leaving = dt.sum(links, axis=0).to_dense()
    flow = links * (1 / dt.maximum(leaving, 1.0))
    stuck = (leaving == 0).astype(dt.float32)
    ranks = dt.full((n,), 1 / n, dtype=dt.float32, device=links.device)
    for _ in range(STEPS):
        ranks = DAMPING * (flow @ ranks + dt.sum(stuck * ranks) / n) + (1 - DAMPING) / n
    return ranks


def search(device: str, lib: Library, query: Sequence[str]) -> SearchOutcome:
    """Compute scores and ranks on one device, with the seconds of each step."""
    seconds, started = dict[str, float](), time.perf_counter()
    shape = (len(lib.modules), len(lib.words))

    def lap(name: str) -> None:
        """Wait for the device, and record the seconds since the last lap under `name`."""
        nonlocal started
        dt.synchronize(device)
        now = time.perf_counter()
        seconds[name], started = now - started, now

    counts = count_pairs(lib.uses, shape, device)
    lap("coalesce")
    weights = tf_idf(counts)
    query_tensor = dt.asarray(query_vector(lib, query), device=device)
    scores = (weights @ query_tensor).numpy()
    lap("search")
    ranks = page_rank(count_pairs(lib.imports, (shape[0],) * 2, device)).numpy()
    lap("rank")
    return SearchOutcome(device, lib.modules, counts.nnz, scores, ranks, seconds)


def query_vector(lib: Library, query: Sequence[str]) -> Array:
    """Return the query as a unit vector over the words. Raises: ValueError if it has none."""
    word_numbers = {w: i for i, w in enumerate(lib.words)}
    stems = [_stem(w) for part in query for w in _WORD.findall(part)]
    vector = np.zeros(len(word_numbers), np.float32)
    for word in stems:
        if word in word_numbers:
            vector[word_numbers[word]] += 1
    if not vector.any():
        raise ValueError(f"none of {' '.join(query)!r} occurs in the standard library")
    return vector / np.float32(np.sqrt((vector * vector).sum()))


# --- comparison with SciPy ------------------------------------------------------------------------


def scipy_results(lib: Library, query: Sequence[str]) -> tuple[Array, Array]:
    """Return scores and ranks as SciPy computes them, in float64."""
    sparse: Any = importlib.import_module("scipy.sparse")
    n = len(lib.modules)

    def counts(pairs: Array, columns: int) -> Any:
        """Return how often each pair occurs, as a sparse matrix of SciPy."""
        return sparse.coo_array((np.ones(pairs.shape[1]), tuple(pairs)), (n, columns)).tocsr()

    uses = counts(lib.uses, len(lib.words))
    spread = np.maximum((uses > 0).sum(axis=0), 1)
    weights = uses.log1p().multiply(np.log(n / spread)).tocsr()
    lengths = np.sqrt(weights.multiply(weights).sum(axis=1))
    pivoted = (1 - SLOPE) * lengths.mean() + SLOPE * lengths
    scores = (weights @ query_vector(lib, query)) / np.maximum(pivoted, 1e-12)
    links = counts(lib.imports, n)
    leaving = links.sum(axis=0)
    flow, ranks = links / np.maximum(leaving, 1), np.full(n, 1 / n)
    for _ in range(STEPS):
        ranks = DAMPING * (flow @ ranks + ranks[leaving == 0].sum() / n) + (1 - DAMPING) / n
    return scores, ranks


def distance(out: SearchOutcome, lib: Library, query: Sequence[str]) -> float:
    """Return the largest difference from SciPy, relative to the largest value."""
    pairs = zip((out.scores, out.ranks), scipy_results(lib, query), strict=True)
    # if no module has any of the words, all scores are 0
    return max(float(np.abs(mine - his).max() / (his.max() or 1.0)) for mine, his in pairs)


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Search and save a picture; return 0 if devices and SciPy agree, 1 if not, 2 without SciPy."""
    console = Console(soft_wrap=True)
    options = parser()
    asked = options.parse_args(arguments)
    if report_missing_modules(options, ("scipy", "matplotlib")):
        return 2
    devices = select_devices(asked.device, asked.full)
    SECONDS.announce(devices, console)
    try:
        return run(asked.words or QUERY.split(), devices, asked.out, console)
    except ValueError as error:
        return options.print_error(str(error))


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo text", description=__doc__)
    options.add_argument("words", nargs="*", help=f"search for these words (default: {QUERY})")
    options.add_devices("all but the interpreter")
    options.add_picture(Path("text.png"))
    add_full(options, "search some modules with the slow reference interpreter as well")
    return options


def run(query: Sequence[str], devices: Sequence[str], picture: Path, console: Console) -> int:
    """Search on every device, print and draw the results; return 1 if they differ, else 0."""
    begun = time.perf_counter()
    with console.status("reading the standard library"):
        lib = library()
    console.print(
        f"{len(lib.modules)} modules, {len(lib.words):,} different words, {lib.uses.shape[1]:,} "
        f"occurrences, {lib.imports.shape[1]:,} imports read in {time.perf_counter() - begun:.1f} s"
    )
    silent = not console.is_terminal
    each = track(devices, "searching", console=console, transient=True, disable=silent)
    outcomes = [
        search(d, lib.first(REFERENCE_MODULES_MAX) if d == REFERENCE_DEVICE else lib, query)
        for d in each
    ]
    if REFERENCE_DEVICE in devices[1:]:  # a partner for the comparison of bits
        outcomes.append(search(devices[0], lib.first(REFERENCE_MODULES_MAX), query))
    console.print(matches_table(outcomes[0], query))
    wrong, table = [], results_table()
    for out in outcomes:
        part = lib.first(len(out.modules))
        off = distance(out, part, query)
        took = " + ".join(f"{s * 1e3:.0f}" for s in out.seconds.values())
        counts = (str(len(out.modules)), f"{out.stored:,}")
        table.add_row(out.device, *counts, took, f"{off:.0e}", out.digest[:DIGEST_DIGITS])
        if not off < TOLERANCE:
            wrong.append(
                f"{out.device} differs from SciPy by {off:.1e}; the tolerance is {TOLERANCE:.0e}"
            )
    console.print(table)
    wrong += disagreements(outcomes)
    draw(outcomes[0], query, picture)
    console.print(f"Picture: {picture}")
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def disagreements(outcomes: Sequence[SearchOutcome]) -> list[str]:
    """Return a line for each device whose bits differ from the first's for the same modules."""
    first: dict[int, SearchOutcome] = {}
    lines = []
    for out in outcomes:
        other = first.setdefault(len(out.modules), out)
        if out.digest != other.digest:
            lines.append(f"{out.device} and {other.device} give different bits")
    return lines


def best(values: Array, names: Sequence[str]) -> list[tuple[str, float]]:
    """Return the TABLE_MODULES_MAX names with the largest values, largest first."""
    return [
        (names[i], float(values[i])) for i in np.argsort(-values, kind="stable")[:TABLE_MODULES_MAX]
    ]


def matches_table(out: SearchOutcome, query: Sequence[str]) -> Table:
    """Return a table of the best modules for the query, beside the most imported ones."""
    table = Table(title=f"standard library: {' '.join(query)!r}")
    for column in ("module", "score", "imported", "PageRank"):
        table.add_column(column, justify="left" if column in ("module", "imported") else "right")
    pairs = zip(best(out.scores, out.modules), best(out.ranks, out.modules), strict=True)
    for (module, score), (imported, rank) in pairs:
        table.add_row(module, f"{score:.3f}", imported, f"{rank:.4f}")
    return table


def results_table() -> Table:
    """Return a table with the headings of the results, and still without rows."""
    table = Table(
        title="Results; ms to coalesce + search + rank, with compilation on the first use",
        box=SIMPLE_HEAD,
    )
    for column in ("device", "modules", "stored", "ms", "off SciPy", "digest"):
        left = column in ("device", "digest")
        whole = DIGEST_DIGITS if column == "digest" else None  # users compare it
        table.add_column(column, justify="left" if left else "right", no_wrap=True, min_width=whole)
    return table


# --- the picture ----------------------------------------------------------------------------------


def draw(out: SearchOutcome, query: Sequence[str], path: Path) -> None:
    """Draw the best modules for the query, and the most imported ones; save the picture."""
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    figure = figures.Figure(figsize=(12, 4.6), facecolor=PAPER, layout="constrained")
    panels = (
        (f"best for {' '.join(query)!r} (TF-IDF)", out.scores, "#c1553b"),
        ("most imported modules (PageRank of imports)", out.ranks, "#2a6f97"),
    )
    for axes, (title, values, color) in zip(figure.subplots(1, 2), panels, strict=True):
        names, heights = zip(*reversed(best(values, out.modules)), strict=True)
        axes.barh(names, heights, color=color, height=0.68)
        axes.set_facecolor(PAPER)
        axes.set_title(title, color=INK, fontsize=11, fontweight="bold", loc="left")
        axes.tick_params(colors=INK, labelsize=9, length=0)
        axes.xaxis.set_major_locator(importlib.import_module("matplotlib.ticker").MaxNLocator(4))
        for side in ("top", "right", "bottom", "left"):
            axes.spines[side].set_visible(False)
    figure.suptitle(
        f"{len(out.modules)} modules of Python's standard library as {out.stored:,} stored counts, "
        f"on {out.device}",
        color=INK,
        fontsize=13,
        fontweight="bold",
    )
    figure.savefig(path, dpi=120)
