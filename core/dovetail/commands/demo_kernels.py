"""`dovetail demo kernels`: draw pictures with four custom kernels, on every usable device.

The kernels compute the Mandelbrot set, heat that spreads over a plate with a halo, a histogram with
integer atomics, and attention with a row at each point. Every device must give the same bits: the
demo prints a digest of each picture, and fails if two differ. The slow reference interpreter takes
part with `--full`.
"""

# mypy: disable-error-code="attr-defined, arg-type, assignment, index, operator, valid-type, misc"
# since kernels are texts in a language of their own

from __future__ import annotations

import hashlib
import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
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
    DemoSeconds,
    add_full,
    report_missing_modules,
    select_devices,
)

Array = np.ndarray


@dataclass(frozen=True)
class PictureSize:
    """The amount of work of the demo; the slow interpreter gets the small one."""

    side: int = 384  # of the Mandelbrot set and the plate
    rounds: int = 200  # of the Mandelbrot set
    steps: int = 600  # of the plate
    numbers: int = 1_000_000  # counted
    rows: int = 192  # of the attention


LARGE, SMALL = PictureSize(), PictureSize(side=48, rounds=40, steps=40, numbers=20_000, rows=32)
SECONDS = DemoSeconds(cpu=3, other=12, reference=4)


# --- the kernels ----------------------------------------------------------------------------------


@dt.kernel
def mandelbrot(
    out: dt.Out, rounds: int, left: dt.float32, low: dt.float32, size: dt.float32
) -> None:
    """Store in `out` the number of rounds until each point leaves the disc of radius 2."""
    for i, j in dt.grid(*out.shape):
        x = left + j * size / out.shape[1]
        y = low + i * size / out.shape[0]
        re = im = dt.float32(0.0)
        escaped = rounds
        for k in range(rounds):
            re, im = re * re - im * im + x, 2.0 * re * im + y
            if re * re + im * im > 4.0:
                escaped = k
                break
        out[i, j] = escaped


@dt.kernel
def spread(after: dt.Out, before: dt.In, rate: float) -> None:
    """Store in `after` one step of the heat equation from `before`; the halo keeps its values."""
    rows, columns = before.shape
    for i, j in dt.grid((1, rows - 1), (1, columns - 1)):
        around = before[i - 1, j] + before[i + 1, j] + before[i, j - 1] + before[i, j + 1]
        after[i, j] = before[i, j] + rate * (around - 4 * before[i, j])


@dt.kernel
def count(counts: dt.InOut, x: dt.In, y: dt.In, low: float, width: float) -> None:
    """Add to `counts` the number of points in each square of a plane; others do not count."""
    for k in dt.grid(len(x)):
        i, j = math.floor((y[k] - low) / width), math.floor((x[k] - low) / width)
        if 0 <= i < counts.shape[0] and 0 <= j < counts.shape[1]:
            dt.atomic_add(counts, (i, j), 1)


@dt.kernel
def attend(weights: dt.InOut, q: dt.In, k: dt.In, scale: float) -> None:
    """Store in `weights` the softmax of each row of q k^T times `scale`."""
    n, size = k.shape
    for i in dt.grid(len(q)):
        for j in range(n):
            weights[i, j] = scale * sum(q[i, d] * k[j, d] for d in range(size))
        top = max(weights[i, j] for j in range(n))
        total = sum(dt.exp(weights[i, j] - top) for j in range(n))
        for j in range(n):
            weights[i, j] = dt.exp(weights[i, j] - top) / total


# --- the pictures ---------------------------------------------------------------------------------


def _draw_mandelbrot(device: str, size: PictureSize) -> Array:
    """Return the rounds of each point of the Mandelbrot set's square, as a host array."""
    out = dt.zeros((size.side, size.side), dtype=dt.int32, device=device)
    mandelbrot(out, size.rounds, -2.1, -1.4, 2.8)
    return out.numpy()


def _heat_plate(device: str, size: PictureSize) -> Array:
    """Return the temperatures of a heated plate after `size.steps` steps, as a host array."""
    plate = dt.zeros((size.side, size.side), device=device)
    middle, part = size.side // 2, size.side // 6
    plate[0] = 100.0
    plate[middle - part : middle + part, middle - part : middle + part] = 80.0
    other = plate.copy()
    for _ in range(size.steps):
        spread(other, plate, 0.2)
        plate, other = other, plate
    return plate.numpy()


def _count_points(device: str, size: PictureSize) -> Array:
    """Return the number of random points in each square of a plane, as a host array."""
    x, y = dt.random.default_rng(0).normal((2, size.numbers), device=device)
    bins = min(size.side, 96)
    counts = dt.zeros((bins, bins), dtype=dt.int32, device=device)
    count(counts, x, y * 0.5 + x * x * 0.5 - 0.5, -3.0, 6.0 / bins)
    return counts.numpy()


def _compute_attention(device: str, size: PictureSize) -> Array:
    """Return the attention weights between two swings at different speeds, as a host array."""
    at = dt.linspace(0.0, 2 * math.pi, size.rows, device=device)
    q, k = _encode(3 * dt.sin(2 * at)), _encode(3 * dt.cos(3 * at))
    weights = dt.zeros((size.rows, size.rows), device=device)
    attend(weights, q, k, 1.0)
    return weights.numpy()


def _encode(positions: Tensor) -> Tensor:
    """Return the sines and cosines of positions at four frequencies, as rows."""
    frequencies = dt.arange(1, 5, dtype=dt.float32, device=positions.device)
    angle = dt.expand_dims(positions, axis=1) * frequencies
    return dt.concat([dt.sin(angle), dt.cos(angle)], axis=1)


PICTURES: dict[str, Callable[[str, PictureSize], Array]] = {
    "Mandelbrot": _draw_mandelbrot,
    "heat": _heat_plate,
    "histogram": _count_points,
    "attention": _compute_attention,
}


@dataclass
class PicturesOutcome:
    """The pictures of one device."""

    device: str
    size: PictureSize
    pictures: dict[str, Array] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def digest(self, name: str) -> str:
        """Return the SHA-256 of a picture's bytes."""
        return hashlib.sha256(np.ascontiguousarray(self.pictures[name]).tobytes()).hexdigest()


def draw_pictures(device: str, size: PictureSize) -> PicturesOutcome:
    """Compute all pictures on one device, with the seconds that each takes."""
    out = PicturesOutcome(device, size)
    for name, work in PICTURES.items():
        begun = time.perf_counter()
        out.pictures[name] = work(device, size)
        out.seconds[name] = time.perf_counter() - begun
    return out


def disagreements(outcomes: Sequence[PicturesOutcome]) -> list[str]:
    """Return a line for each picture whose bits differ from the first device's of its size."""
    first: dict[PictureSize, PicturesOutcome] = {}
    return [
        f"{out.device} and {other.device} differ: {name}"
        for out in outcomes
        for other in (first.setdefault(out.size, out),)
        for name in PICTURES
        if out.digest(name) != other.digest(name)
    ]


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if all devices agree to the last bit, 1 if not, 2 if it cannot run."""
    console = Console(soft_wrap=True)
    options = parser()
    asked = options.parse_args(arguments)
    if report_missing_modules(options, ("matplotlib",)):
        return 2
    devices = select_devices(asked.device, asked.full)
    SECONDS.announce(devices, console)
    return run(devices, asked.out, console)


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo kernels", description=__doc__)
    options.add_devices("all but the interpreter")
    options.add_picture(Path("kernels.png"))
    add_full(options, "draw small pictures with the slow reference interpreter as well")
    return options


def run(devices: Sequence[str], picture: Path, console: Console) -> int:
    """Draw on all devices, print digests, save one picture; return 1 if digests differ, else 0."""
    large = [(d, LARGE) for d in devices if d != REFERENCE_DEVICE]
    small = [(d, SMALL) for d in devices] if REFERENCE_DEVICE in devices else []
    silent = not console.is_terminal
    jobs = track(large + small, "drawing", console=console, transient=True, disable=silent)
    outcomes = [draw_pictures(device, size) for device, size in jobs]
    console.print(digests_table(outcomes))
    if large and small:
        console.print(
            "The reference interpreter is slow: it drew small pictures. The other devices drew "
            "these as well."
        )
    draw(outcomes[0], picture)
    console.print(f"Picture: {picture}")
    wrong = disagreements(outcomes)
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def digests_table(outcomes: Sequence[PicturesOutcome]) -> Table:
    """Return a table of seconds and digest by device and picture."""
    table = Table("device", "picture", "size", title="Pictures")
    table.add_column("seconds", justify="right")
    table.add_column("digest")
    for out in outcomes:
        for k, (name, image) in enumerate(out.pictures.items()):
            size = " x ".join(map(str, image.shape))
            row = (name, size, f"{out.seconds[name]:.3f}", out.digest(name)[:16])
            table.add_row("" if k else out.device, *row, end_section=k == len(out.pictures) - 1)
    return table


COLORS = {
    "Mandelbrot": "twilight_shifted",
    "heat": "inferno",
    "histogram": "viridis",
    "attention": "cividis",
}


def draw(out: PicturesOutcome, path: Path) -> None:
    """Draw the four pictures, side by side, and save them in one file."""
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    figure = figures.Figure(figsize=(13, 4), facecolor=PAPER, layout="constrained")
    for axes, (name, image) in zip(figure.subplots(1, 4), out.pictures.items(), strict=True):
        axes.imshow(np.sqrt(image), cmap=COLORS[name], interpolation="nearest")
        axes.set_title(f"{name}\n{out.digest(name)[:16]}", color=INK, fontsize=10)
        axes.axis("off")
    figure.suptitle(
        f"Custom kernels on {out.device}, with their digests",
        color=INK,
        fontsize=14,
        fontweight="bold",
    )
    figure.savefig(path, dpi=120)
