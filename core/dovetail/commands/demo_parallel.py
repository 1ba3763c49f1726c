"""`dovetail demo parallel`: train two networks in several processes, with the bits of one process.

A small convolutional network (batch normalisation, dropout) learns the digits of scikit-learn, and
a small transformer (dropout, Adam, gradients of limited norm) the letters of a text. Each is
trained by one process, and by `--workers` processes. The demo prints a digest of the weights for
each, and fails if two differ. A picture has the curves of the losses, and the timeline of a step:
when each process computes, adds, exchanges messages and updates the weights.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser, positive_int
from ..tensor.tensor import Tensor
from .demo import INK, PAPER, Array, DemoSeconds, load_digits, report_missing_modules

if TYPE_CHECKING:
    from ..parallel.step_timeline import Span

nn, F = dt.nn, dt.nn.functional

GROUPS = 32  # groups of examples, and so the greatest number of workers
BATCH, STEPS, SEED, WORKERS = 128, 20, 0, 2
SECONDS = DemoSeconds(cpu=20, other=90, reference=3600, has_full=False)
CONTEXT, WIDTH, HEADS, LETTERS = 32, 64, 4, 128
LEARNING_RATE, GRADIENT_NORM_MAX = 2e-3, 1.0
RECORDED_STEPS_MAX = 9  # steps whose spans are recorded; the one of median time is drawn


class ConvNet(nn.Module):
    """A network that scores each picture of 8 x 8 as each digit."""

    def __init__(self, channels: int = 16) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, channels, 3, padding=1)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(channels), nn.BatchNorm2d(channels)
        self.pool, self.dropout = nn.MaxPool2d(2), nn.Dropout(0.25)
        self.scores = nn.Linear(16 * channels, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the scores of the ten digits for each picture."""
        x = F.relu(self.norm1(self.conv1(pictures)))
        x = self.dropout(self.pool(F.relu(self.norm2(self.conv2(x)))))
        scores: Tensor = self.scores(x.flatten(1))
        return scores


class Transformer(nn.Module):
    """A network that scores every letter as the next one, after each letter of a text."""

    def __init__(self, width: int = WIDTH) -> None:
        super().__init__()
        self.letters, self.positions = nn.Embedding(LETTERS, width), nn.Embedding(CONTEXT, width)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, HEADS, 4 * width, 0.1, F.gelu, batch_first=True), 2
        )
        self.scores = nn.Linear(width, LETTERS)

    def forward(self, text: Tensor) -> Tensor:
        """Return the scores of every next letter at each position of the texts."""
        n = text.shape[1]
        later = dt.triu(dt.ones((n, n), dtype=dt.bool, device=text.device), 1)
        x = self.letters(text) + self.positions.weight[:n]
        scores: Tensor = self.scores(self.layers(x, later))
        return scores


def loss_of_digits(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    """Return the sum of the cross entropies of pictures, and their number."""
    pictures, labels = batch
    return F.cross_entropy(model(pictures), labels, reduction="sum"), len(labels)


def loss_of_letters(model: nn.Module, batch: Any) -> tuple[Tensor, int]:
    """Return the sum of the cross entropies of letters, and their number."""
    (text,) = batch
    scores, following = model(text[:, :-1]), text[:, 1:].reshape(-1)
    total = F.cross_entropy(scores.reshape((-1, LETTERS)), following, reduction="sum")
    return total, following.size


class Task(NamedTuple):
    """A network, its loss and the data from which it learns."""

    network: Callable[[], nn.Module]
    loss: Callable[[Any, Any], tuple[Tensor, int]]
    data: Callable[[], tuple[Array, ...]]


class Outcome(NamedTuple):
    """The result of a worker.

    - `digest`: the SHA-256 of the weights.
    - `losses`: one of each step.
    - `timelines`: the spans of the last steps, one list for each.
    """

    digest: str
    losses: list[float]
    seconds: float
    timelines: list[list[Span]]


def read_digits() -> tuple[Array, ...]:
    """Return pictures (n, 1, 8, 8) and labels."""
    pixels, labels = load_digits()
    return pixels.reshape(-1, 1, 8, 8), labels


def read_letters() -> tuple[Array, ...]:
    """Return stretches of the source of a module of Python, as numbers of ASCII letters."""
    source = Path(argparse.__file__).read_bytes()
    text = np.frombuffer(source, np.uint8).astype("i4") % LETTERS
    n = len(text) // (CONTEXT + 1)
    return (text[: n * (CONTEXT + 1)].reshape(n, CONTEXT + 1),)


TASKS = {
    "digits": Task(ConvNet, loss_of_digits, read_digits),
    "letters": Task(Transformer, loss_of_letters, read_letters),
}


def train(
    task: Task,
    steps: int,
    groups: int = GROUPS,
    batch: int = BATCH,
    device: str | None = None,
    path: Path | None = None,
) -> Outcome:
    """Train in each worker of the current group, and return the worker's outcome.

    `steps`: the total, with those of an earlier run. `path`: a checkpoint, from which the training
    resumes if it exists, and in which it is saved at the end.
    """
    device = device or str(dt.default_device())
    workers = dt.parallel.current()
    rows = dt.data.TensorDataset(*[dt.asarray(x, device=device) for x in task.data()])
    model = task.network().to(device)
    workers.barrier()  # workers that are threads share the random generator
    optimizer = dt.optim.Adam(model.parameters(), lr=LEARNING_RATE)
    generator = dt.random.default_rng(SEED)
    sampler = dt.parallel.DealtSampler(rows, batch, groups=groups, seed=SEED)
    states: dict[str, Any] = {
        "model": model,
        "optimizer": optimizer,
        "generator": generator,
        "sampler": sampler,
    }
    losses: list[float] = []
    if path is not None and path.exists():
        losses += dt.checkpoint.load(path, **states, random=False)["losses"]
    step: Any = dt.parallel.value_and_grad(task.loss, groups=groups, jit=True, generator=generator)
    timelines: deque[list[Span]] = deque(maxlen=RECORDED_STEPS_MAX)
    started = time.perf_counter()
    while len(losses) < steps:
        for share in dt.data.DataLoader(rows, batch_sampler=sampler):
            if len(losses) >= steps - RECORDED_STEPS_MAX:
                step.timeline.spans = []
                timelines.append(step.timeline.spans)
            loss, _ = step(model, share)
            with step.timeline.record("update"):
                nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
                optimizer.step()
                losses.append(loss.item())
            if len(losses) == steps:
                break
    seconds = time.perf_counter() - started
    if path is not None:
        dt.checkpoint.save(path, **states, losses=losses, random=False, group=workers)
    return Outcome(hash_weights(model), losses, seconds, [*timelines])


def hash_weights(model: nn.Module) -> str:
    """Return the SHA-256 of a model's parameters and buffers."""
    hasher = hashlib.sha256()
    for x in model.state_dict().values():
        hasher.update(np.ascontiguousarray(x.numpy()).tobytes())
    return hasher.hexdigest()


def train_by_name(
    name: str, steps: int, device: str | None = None, path: Path | None = None
) -> Outcome:
    """Train the network of a task in this worker; products have the bits of all devices."""
    dt.random.manual_seed(SEED)
    with dt.vendor_products(False):
        return train(TASKS[name], steps, device=device, path=path)


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if all workers have the same weights, 1 if not."""
    options = parser()
    asked = options.parse_args(arguments)
    if asked.workers > GROUPS:
        options.error(f"--workers must be at most {GROUPS}, got {asked.workers}")
    if report_missing_modules(options, ("sklearn", "matplotlib")):
        return 2
    console = Console(soft_wrap=True)
    SECONDS.announce([asked.device], console)
    table = Table(title=f"{asked.steps} steps, batches of {BATCH} examples in {GROUPS} groups")
    for column in ("network", "workers", "seconds", "loss", "weights"):
        table.add_column(column, justify="left" if column in ("network", "weights") else "right")
    is_equal = True
    runs: dict[str, dict[int, list[Outcome]]] = {name: {} for name in TASKS}
    for name in TASKS:
        digests = set()
        for workers in dict.fromkeys((1, asked.workers)):
            outcomes = dt.parallel.run(
                train_by_name, (name, asked.steps, asked.device), workers=workers
            )
            runs[name][workers] = outcomes
            digests |= {out.digest for out in outcomes}
            first = outcomes[0]
            numbers = (f"{first.seconds:.1f}", f"{first.losses[-1]:.4f}")
            table.add_row(name, str(workers), *numbers, first.digest[:12])
        is_equal &= len(digests) == 1
    console.print(table)
    for name, by_workers in runs.items():
        step = find_median_step(by_workers[asked.workers])
        console.print(f"{name}: {describe_step(step)}: {describe_parts(step)}")
    draw(runs, asked.out)
    console.print(f"Picture: {asked.out}")
    if not is_equal:
        console.print("[red]Workers have computed different weights.[/]")
    return 0 if is_equal else 1


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo parallel", description=__doc__)
    options.add_picture(Path("parallel.png"))
    options.add_device(str(dt.default_device()))
    options.add_argument(
        "--workers",
        type=positive_int,
        default=WORKERS,
        help=f"train in this many processes, at most {GROUPS} (default: %(default)s)",
    )
    options.add_argument(
        "--steps",
        type=positive_int,
        default=STEPS,
        help="train for this many steps (default: %(default)s)",
    )
    return options


# --- the picture ----------------------------------------------------------------------------------

PARTS = {  # of a step: the kinds of its spans, and a colour
    "compute groups": (("compute",), "#2a6f97"),
    "add gradients": (("add",), "#7fb069"),
    "send and wait": (("send", "receive"), "#e9a23b"),
    "update weights": (("update",), "#a2406b"),
}
CURVES = (("#a9c1cf", 5.0), ("#c1553b", 1.4))  # colour and width: of one worker, of all
INCHES_WIDTH, INCHES_CURVES, INCHES_ROW, INCHES_TEXT = 12.0, 2.6, 0.24, 3.0


def find_median_step(outcomes: Sequence[Outcome]) -> list[list[Span]]:
    """Return the spans of each worker in the recorded step whose time is the median."""
    steps = [[*spans] for spans in zip(*[out.timelines for out in outcomes], strict=True)]
    return sorted(steps, key=step_milliseconds)[len(steps) // 2]


def step_milliseconds(step: Sequence[Sequence[Span]]) -> float:
    """Return the milliseconds from the first span of all workers to the end of the last one."""
    spans = [s for worker in step for s in worker]
    return (max(s.end_ns for s in spans) - min(s.begin_ns for s in spans)) / 1e6


def describe_step(step: Sequence[Sequence[Span]]) -> str:
    """Return the time of a step, and the number and bytes of all messages in it."""
    sizes = [n for worker in step for s in worker if s.kind == "send" for n in s.sizes]
    time, megabytes = step_milliseconds(step), sum(sizes) / 1e6
    return f"a step of {time:.1f} ms, {len(sizes)} messages, {megabytes:.2f} MB"


def describe_parts(step: Sequence[Sequence[Span]]) -> str:
    """Return the share of each part in the time of a step, as the mean of all workers."""
    spans, total = [s for worker in step for s in worker], 1e6 * step_milliseconds(step) * len(step)
    return ", ".join(
        f"{name} {sum(s.end_ns - s.begin_ns for s in spans if s.kind in kinds) / total:.0%}"
        for name, (kinds, _) in PARTS.items()
    )


def draw(runs: Mapping[str, Mapping[int, Sequence[Outcome]]], path: Path) -> None:
    """Draw the losses of each network by step, and below the timeline of a step.

    - `runs`: by network and number of workers, the outcome of each worker.
    - `path`: the file of the picture, whose ending says its format.
    """
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    workers = max(max(by_workers) for by_workers in runs.values())
    heights = (INCHES_CURVES, 0.5 + INCHES_ROW * workers)
    size = (INCHES_WIDTH, INCHES_TEXT + sum(heights))
    figure = figures.Figure(figsize=size, facecolor=PAPER, layout="constrained")
    above, below = figure.subplots(2, len(runs), height_ratios=heights)
    for (name, by_workers), losses, timeline in zip(runs.items(), above, below, strict=True):
        step = find_median_step(by_workers[workers])
        _draw_losses(losses, by_workers)
        _draw_step(timeline, step)
        titles = (f"{name}: loss (cross entropy)", f"{name}: {describe_step(step)}")
        for axes, title in zip((losses, timeline), titles, strict=True):
            axes.set_title(title, color=INK, fontsize=11, fontweight="bold")
            axes.set_facecolor(PAPER)
            axes.tick_params(which="both", colors=INK, labelsize=8)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    figure.legend(
        *below[0].get_legend_handles_labels(),
        loc="outside lower center",
        ncols=len(PARTS),
        frameon=False,
        labelcolor=INK,
    )
    title = (
        f"Two networks, trained by 1 and by {workers} processes" if workers > 1 else "Two networks"
    )
    figure.suptitle(title, color=INK, fontsize=13, fontweight="bold")
    figure.savefig(path, dpi=120)


def _draw_losses(axes: Any, by_workers: Mapping[int, Sequence[Outcome]]) -> None:
    """Draw the loss of each step, by one worker and by all."""
    for (workers, outcomes), (color, width) in zip(by_workers.items(), CURVES, strict=False):
        losses = outcomes[0].losses
        label = f"{workers} worker{'s' if workers > 1 else ''}, weights {outcomes[0].digest[:12]}"
        axes.plot(range(1, len(losses) + 1), losses, color=color, linewidth=width, label=label)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step", color=INK)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(frameon=False, labelcolor=INK)


def _draw_step(axes: Any, step: Sequence[Sequence[Span]]) -> None:
    """Draw the spans of a step, one row for each worker."""
    first = min(s.begin_ns for worker in step for s in worker)
    for name, (kinds, color) in PARTS.items():
        for rank, worker in enumerate(step):
            spans = [s for s in worker if s.kind in kinds]
            bars = [((s.begin_ns - first) / 1e6, (s.end_ns - s.begin_ns) / 1e6) for s in spans]
            edge = PAPER if kinds == ("compute",) else color
            label = "" if rank else name
            axes.broken_barh(
                bars, (rank - 0.4, 0.8), color=color, edgecolor=edge, linewidth=0.4, label=label
            )
    axes.set_ylim(len(step) - 0.5, -0.5)
    axes.set_yticks(range(len(step)), [f"worker {r}" for r in range(len(step))])
    axes.set_xlabel("time in ms", color=INK)
