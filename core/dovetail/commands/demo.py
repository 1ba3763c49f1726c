"""`dovetail demo`: cluster the 1,797 handwritten digits of scikit-learn on every usable device.

It computes principal components by subspace iteration, then k-means from several seeds, in plain
tensor operations. Every device must give the same bits: the demo prints a digest of the results of
each device, and fails if two differ. The slow reference interpreter takes part with `--full`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser
from ..engine.evaluate import counters
from ..install_source import install_command
from ..plugins.plugin_state import PluginState
from ..plugins.registry import records
from ..tensor.tensor import Tensor

CLUSTERS = 10
COMPONENTS = 16
# demos of their own: name -> (module, one line of help)
DEMO_PARTS = {
    "kernels": ("dovetail.commands.demo_kernels", "draw pictures with custom kernels"),
    "language": ("dovetail.commands.demo_language", "train a small transformer to write"),
    "parallel": ("dovetail.commands.demo_parallel", "train in several processes with equal bits"),
    "scale": ("dovetail.commands.demo_scale", "process data larger than memory with Dask workers"),
    "text": ("dovetail.commands.demo_text", "search the source of a library with sparse tensors"),
    "train": ("dovetail.commands.demo_train", "train a network to read digits"),
}
REFERENCE_DEVICE = "reference"  # the interpreter: right, but slow, so it gets a part of the digits
REFERENCE_DIGITS_MAX = 500
Array = np.ndarray


@dataclass(frozen=True)
class DemoSeconds:
    """The seconds of a demo on each kind of device: two cores, kernels not cached.

    Rough figures of an AMD EPYC, December 2026, with software drivers: PoCL's and Intel's OpenCL,
    and for `first` Mesa's Vulkan. A GPU takes less.
    """

    cpu: int
    other: int
    reference: int
    has_full: bool = True  # an option `--full`
    first: int | None = None  # on another device if it is the first, which does more work

    def announce(self, devices: Sequence[str], console: Console) -> None:
        """Print the devices and the expected time on them, and mention `--full` and `--help`."""
        kinds = {"cpu": self.cpu, REFERENCE_DEVICE: self.reference}
        others = [self.other] * len(devices)
        if self.first is not None:
            others[0] = self.first
        seconds = sum(
            kinds.get(d.partition(":")[0], n) for d, n in zip(devices, others, strict=True)
        )
        text = f"about {seconds} s" if seconds < 120 else f"about {seconds / 60:.0f} minutes"
        text += ", less on a GPU, or when kernels are cached. "
        text += "--full does more work; " if self.has_full else ""
        console.print(
            f"Devices: {', '.join(devices)}; {text}--help lists the options.", highlight=False
        )


@dataclass(frozen=True)
class DemoSize:
    """The amount of work of the demo."""

    iterations: int = 24  # of subspace iteration
    seeds: int = 8  # of k-means
    steps: int = 60  # of Lloyd's algorithm at most


SIZE, SECONDS = DemoSize(), DemoSeconds(cpu=3, other=15, reference=25)


@dataclass
class Stage:
    """The time and the kernels of one part of the work."""

    name: str
    seconds: float = 0.0
    compiled: int = 0  # kernels
    loaded: int = 0  # kernels that were on disk
    launches: int = 0


@dataclass
class DigitsOutcome:
    """The results of one device, in host memory."""

    device: str
    count: int  # digits
    stages: list[Stage] = field(default_factory=list)
    components: Array = field(default_factory=lambda: np.empty(0))
    projected: Array = field(default_factory=lambda: np.empty(0))
    centroids: Array = field(default_factory=lambda: np.empty(0))
    pictures: Array = field(default_factory=lambda: np.empty(0))
    assignment: Array = field(default_factory=lambda: np.empty(0))
    purity: float = 0.0
    explained_variance: float = 0.0  # share of the variance that the components have

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the bytes of components, centroids and assignment."""
        hasher = hashlib.sha256()
        for array in (self.components, self.centroids, self.assignment):
            hasher.update(np.ascontiguousarray(array).tobytes())
        return hasher.hexdigest()


# --- the work -------------------------------------------------------------------------------------


def standardise(pixels: Tensor) -> Tensor:
    """Subtract the mean of each pixel, and divide all pixels by one standard deviation."""
    centred = pixels - dt.mean(pixels, axis=0)
    return centred / dt.sqrt(dt.mean(centred * centred))


def orthonormal(rows: Tensor) -> Tensor:
    """Return an orthonormal basis of the rows' span, by modified Gram-Schmidt."""
    count = rows.shape[0]
    number = dt.reshape(dt.arange(count, device=rows.device), (count, 1))
    for i in range(count):
        unit = rows[i] / dt.sqrt(dt.sum(rows[i] * rows[i]))
        along = dt.sum(rows * unit, axis=1, keepdims=True)
        reduced = dt.where(number > i, rows - along * unit, rows)
        rows = dt.where(number == i, unit, reduced)
        dt.evaluate(rows)  # so that every round runs the same kernels
    return rows


def components(x: Tensor, start: Tensor, iterations: int, tick: Callable[[], None]) -> Tensor:
    """Return the leading principal directions, as rows; call `tick` after each iteration."""
    covariance = (x.T @ x) / x.shape[0]
    basis = orthonormal(start)
    for _ in range(iterations):
        basis = orthonormal(basis @ covariance)
        tick()
    return basis


def distances(points: Tensor, centroids: Tensor) -> Tensor:
    """Return squared distances, (points, centroids), in one kernel without temporaries."""
    difference = dt.expand_dims(points, axis=1) - dt.expand_dims(centroids, axis=0)
    return dt.sum(difference * difference, axis=2)


def members(assignment: Tensor) -> Tensor:
    """Return a one-hot row of each point's cluster, as float32."""
    clusters = dt.arange(CLUSTERS, dtype=assignment.dtype, device=assignment.device)
    return dt.astype(dt.expand_dims(assignment, axis=1) == clusters, dt.float32)


def means(values: Tensor, member: Tensor, otherwise: Tensor) -> Tensor:
    """Return the mean of each cluster's rows; for an empty cluster, the row of `otherwise`."""
    counts = dt.expand_dims(dt.sum(member, axis=0), axis=1)
    return dt.where(counts > 0, (member.T @ values) / dt.maximum(counts, 1.0), otherwise)


def kmeans(points: Tensor, centroids: Tensor, steps: int) -> tuple[Tensor, Tensor, float]:
    """Return (centroids, assignment, sum of squared distances) by Lloyd's algorithm."""
    for _ in range(steps):
        assignment = dt.argmin(distances(points, centroids), axis=1)
        moved = means(points, members(assignment), centroids)
        if bool(dt.all(moved == centroids)):
            break
        centroids = moved
    squared_distances = distances(points, centroids)
    return (
        centroids,
        dt.argmin(squared_distances, axis=1),
        float(dt.sum(dt.min(squared_distances, axis=1))),
    )


def purity(assignment: Tensor, labels: Tensor) -> float:
    """Return the share of digits that are of their cluster's most frequent kind."""
    counts = members(assignment).T @ members(labels)
    return float(dt.sum(dt.max(counts, axis=1))) / assignment.shape[0]


def sort_digits(
    device: str, pixels: Array, labels: Array, size: DemoSize, tick: Callable[[], None]
) -> DigitsOutcome:
    """Standardise, project and cluster the digits on one device, and record each stage."""
    out = DigitsOutcome(device, len(pixels))
    with dt.vendor_products(False):
        with record_stage(out, "standardise"):
            x = standardise(dt.asarray(pixels, device=device))
            dt.evaluate(x)
        tick()
        with record_stage(out, "components"):
            start = dt.random.default_rng(1).normal((COMPONENTS, pixels.shape[1]), device=device)
            basis = components(x, start, size.iterations, tick)
            points = x @ basis.T
            variance_share = dt.sum(points * points) / dt.sum(x * x)
            dt.evaluate(points, variance_share)
        with record_stage(out, "k-means"):
            best = _best_of_seeds(points, size, tick)
        with record_stage(out, "purity"):
            centroids, assignment, _ = best
            kinds = dt.asarray(labels, device=device)
            out.purity, out.explained_variance = purity(assignment, kinds), float(variance_share)
            blank = dt.zeros((CLUSTERS, pixels.shape[1]), device=device)
            pictures = means(dt.asarray(pixels, device=device), members(assignment), blank)
            out.pictures = pictures.numpy()
        out.components, out.projected = basis.numpy(), points.numpy()
        out.centroids, out.assignment = centroids.numpy(), assignment.numpy()
        tick()
    return out


def _best_of_seeds(
    points: Tensor, size: DemoSize, tick: Callable[[], None]
) -> tuple[Tensor, Tensor, float]:
    """Run k-means from each seed; return the result with the least sum of squared distances."""
    results = []
    for seed in range(size.seeds):
        order = dt.random.default_rng(seed).permutation(points.shape[0], device=points.device)
        results.append(kmeans(points, dt.take(points, order[:CLUSTERS], axis=0), size.steps))
        tick()
    return min(results, key=lambda result: result[2])


@contextmanager
def record_stage(out: DigitsOutcome, name: str) -> Iterator[None]:
    """Append the time and the kernel counts of the context's work to `out.stages`."""
    before = counters.compiles, counters.disk_hits, counters.launches
    started = time.perf_counter()
    yield
    dt.synchronize(out.device)
    took = time.perf_counter() - started
    after = counters.compiles, counters.disk_hits, counters.launches
    out.stages.append(Stage(name, took, *(b - a for a, b in zip(before, after, strict=True))))


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo or a part; return 0 if all devices agree, 1 if not, 2 if it cannot run."""
    console = Console(soft_wrap=True)
    if arguments and arguments[0] in DEMO_PARTS:
        return int(importlib.import_module(DEMO_PARTS[arguments[0]][0]).main(arguments[1:]))
    options = parser()
    if arguments and not arguments[0].startswith("-"):
        options.error(f"unknown part {arguments[0]!r}; expected one of {', '.join(DEMO_PARTS)}")
    asked = options.parse_args(arguments)
    if report_missing_modules(options, ("sklearn", "matplotlib")):
        return 2
    devices = select_devices(asked.device, asked.full)
    SECONDS.announce(devices, console)
    return run_demo(devices, asked.out, SIZE, console)


def report_missing_modules(
    options: CommandParser, modules: Sequence[str], extra: str = "demo"
) -> bool:
    """Print an error if a module is not installed; return True if so."""
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        options.print_error(
            f"{' and '.join(missing)} must be installed: "
            f"{install_command(f'dovetail-tensor[{extra}]')}"
        )
    return bool(missing)


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo", description=__doc__)
    options.epilog = "\n".join(
        ["parts:", *(f"  {name:10} {help}" for name, (_, help) in DEMO_PARTS.items())]
    )
    options.add_devices("all but the interpreter")
    options.add_picture(Path("digits.png"))
    add_full(options, "compare with the slow reference interpreter as well")
    return options


def add_full(options: CommandParser, effect: str) -> None:
    """Add `--full` to a demo's options; `effect` is its help."""
    options.add_argument("--full", action="store_true", help=effect)


def select_devices(asked: Sequence[str] | None, full: bool) -> list[str]:
    """Return the devices asked for, else all; the interpreter only if `full`, or alone."""
    if asked:
        return list(asked)
    devices = available()
    return [d for d in devices if full or d != REFERENCE_DEVICE] or devices


def available() -> list[str]:
    """Return the name of every usable device, the interpreter last."""
    names = [
        d.type if d.index == 0 else f"{d.type}:{d.index}"
        for r in records()
        if r.state in (PluginState.AVAILABLE, PluginState.OPEN)
        for d in r.devices
    ]
    return sorted(names, key=lambda name: (name == REFERENCE_DEVICE, name))


def run_demo(devices: Sequence[str], picture: Path, size: DemoSize, console: Console) -> int:
    """Run on every device, print and draw the results; return 1 if digests differ, else 0."""
    pixels, labels = load_digits()
    jobs = plan_jobs(devices, len(pixels))
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), console=console
    ) as progress:
        outcomes = [_run_job(job, pixels, labels, size, progress) for job in jobs]
    for text in (stages_table(outcomes), digests_table(outcomes)):
        console.print(text)
    if REFERENCE_DEVICE in devices:
        console.print(
            f"The reference interpreter is slow: it used the first {REFERENCE_DIGITS_MAX} digits. "
            "The other devices computed these as well."
        )
    elif len(devices) > 1 and len({out.digest for out in outcomes}) == 1:
        console.print(f"{len(devices)} devices gave the same bits.")
    draw(outcomes[0], labels, picture)
    console.print(f"Picture: {picture}")
    wrong = disagreements(outcomes)
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def plan_jobs(devices: Sequence[str], count: int) -> list[tuple[str, int]]:
    """Return (device, number of digits) for each job.

    The interpreter takes a part; the others then take it as well.
    """
    whole = [(d, count) for d in devices if d != REFERENCE_DEVICE]
    part = (
        [(d, min(REFERENCE_DIGITS_MAX, count)) for d in devices]
        if REFERENCE_DEVICE in devices
        else []
    )
    return whole + part


def _run_job(
    job: tuple[str, int], pixels: Array, labels: Array, size: DemoSize, progress: Progress
) -> DigitsOutcome:
    """Cluster a job's share of the digits on its device, with a task in the progress display."""
    device, count = job
    total = 2 + size.iterations + size.seeds
    task = progress.add_task(f"{count} digits on {device}", total=total)
    return sort_digits(device, pixels[:count], labels[:count], size, lambda: progress.advance(task))


def load_digits() -> tuple[Array, Array]:
    """Return (pixels in 0..1, one row per digit; labels 0..9).

    Source: UCI, Optical Recognition of Handwritten Digits.
    """
    digits: Any = importlib.import_module("sklearn.datasets").load_digits()
    return (digits.data / 16).astype("f4"), digits.target.astype("i8")


def disagreements(outcomes: Sequence[DigitsOutcome]) -> list[str]:
    """Return a line for each device whose bits differ from the first of as many digits."""
    first: dict[int, DigitsOutcome] = {}
    lines = []
    for out in outcomes:
        other = first.setdefault(out.count, out)
        if out.digest != other.digest:
            lines.append(f"{out.device} and {other.device} differ on {out.count} digits")
    return lines


def stages_table(outcomes: Sequence[DigitsOutcome]) -> Table:
    """Return a table of seconds and kernel counts by device and stage."""
    table = Table("device", "digits", "stage", title="Seconds and kernels")
    for heading in ("seconds", "compiled", "from disk", "launches"):
        table.add_column(heading, justify="right")
    for out in outcomes:
        for i, s in enumerate(out.stages):
            head = (out.device, str(out.count)) if i == 0 else ("", "")
            numbers = (f"{s.seconds:.3f}", str(s.compiled), str(s.loaded), str(s.launches))
            table.add_row(*head, s.name, *numbers, end_section=i == len(out.stages) - 1)
    return table


def digests_table(outcomes: Sequence[DigitsOutcome]) -> Table:
    """Return a table of purity, variance and digest by device."""
    table = Table("device", "digits", "purity", "variance kept", "digest", title="Results")
    for out in outcomes:
        table.add_row(
            out.device,
            str(out.count),
            f"{out.purity:.3f}",
            f"{out.explained_variance:.1%}",
            out.digest[:16],
        )
    return table


# --- the picture ----------------------------------------------------------------------------------

INK, PAPER = "#1b2a41", "#faf9f6"


def draw(out: DigitsOutcome, labels: Array, path: Path) -> None:
    """Draw the points along two components and the mean digit of each cluster; save the picture."""
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    colors = importlib.import_module("matplotlib").colormaps["tab10"]
    figure = figures.Figure(figsize=(13, 5), facecolor=PAPER, layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=(0.62, 1))
    for part in (left, right):
        part.set_facecolor(PAPER)
    _draw_points(left.subplots(), out, colors)
    _draw_means(right, out, labels[: out.count], colors)
    figure.suptitle(
        f"{out.count} handwritten digits, clustered without labels on {out.device}: "
        f"purity {out.purity:.2f}",
        color=INK,
        fontsize=14,
        fontweight="bold",
    )
    figure.savefig(path, dpi=120)


def _draw_points(axes: Any, out: DigitsOutcome, colors: Any) -> None:
    """Draw the projected digits, coloured by cluster, and the numbered centroids."""
    axes.scatter(
        out.projected[:, 0],
        out.projected[:, 1],
        c=colors(out.assignment),
        s=11,
        alpha=0.75,
        linewidths=0,
    )
    for k, (x, y) in enumerate(out.centroids[:, :2]):
        axes.scatter(x, y, s=190, color=colors(k), edgecolors=PAPER, linewidths=1.8, zorder=3)
        axes.annotate(str(k), (x, y), color="white", ha="center", va="center", fontsize=9, zorder=4)
    axes.set_facecolor(PAPER)
    axes.set_xlabel("first component", color=INK)
    axes.set_ylabel("second component", color=INK)
    axes.tick_params(colors=INK, labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _draw_means(part: Any, out: DigitsOutcome, labels: Array, colors: Any) -> None:
    """Draw the mean digit of each cluster, with its most frequent kind and share."""
    ramps: Any = importlib.import_module("matplotlib.colors").LinearSegmentedColormap
    panels = list(part.subplots(2, 5).flat)
    for axes in panels:
        axes.axis("off")
    for axes, (kind, k, share) in zip(panels, sorted(_cluster_kinds(out, labels)), strict=False):
        ramp = ramps.from_list("ramp", [PAPER, colors(k), INK])
        picture = out.pictures[k].reshape(8, 8)
        axes.imshow(picture, cmap=ramp, interpolation="bicubic", vmin=0, vmax=1)
        title = f"cluster {k}\n{share:.0%} are a {kind}"
        axes.set_title(title, color=colors(k), fontsize=10, fontweight="bold")
    part.supxlabel(
        f"{COMPONENTS} components keep {out.explained_variance:.1%} of the variance; "
        f"digest of all results: {out.digest[:16]}",
        color=INK,
        fontsize=10,
    )


def _cluster_kinds(out: DigitsOutcome, labels: Array) -> Iterator[tuple[int, int, float]]:
    """Yield (most frequent digit, cluster, its share) of each cluster."""
    for k in range(CLUSTERS):
        counts = np.bincount(labels[out.assignment == k], minlength=10)
        yield int(counts.argmax()), k, counts.max() / max(counts.sum(), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
