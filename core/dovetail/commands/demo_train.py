"""`dovetail demo train`: train a convolutional network to read the digits of scikit-learn.

It trains on the first device, and for two epochs on each of the others. A fifth of the digits is
held out. With `--full` every device trains to the end, and the slow reference interpreter for one
epoch.

The network uses `dt.nn`; a training step (forward, backward, Adam) is captured by `dt.jit`.
Everything runs under `dt.vendor_products(False)`, so all devices must compute the same bits: the
demo prints a digest of the weights after every epoch, and fails if two differ. On the first device
the run is then interrupted half way and resumed from its checkpoint with new objects; the bits must
stay the same.
"""

from __future__ import annotations

import hashlib
import importlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser, positive_int
from ..tensor.tensor import Tensor
from .demo import (
    INK,
    PAPER,
    REFERENCE_DEVICE,
    Array,
    DemoSeconds,
    add_full,
    load_digits,
    report_missing_modules,
    select_devices,
)

nn, F = dt.nn, dt.nn.functional

CHANNELS, HIDDEN, BATCH, EPOCHS, SEED = 16, 64, 64, 15, 0
REFERENCE_EPOCHS_MAX = 1  # epochs on the interpreter, which is right, but slow
COMPARED_EPOCHS = 2  # epochs on further devices, unless `--full`
SECONDS, FULL_SECONDS = DemoSeconds(25, 30, 300, first=120), DemoSeconds(25, 80, 300, first=120)
LEARNING_RATE_MAX = 4e-3  # the highest
ACCURACY_MIN = 0.985  # accuracy on digits that were not learnt from


# --- the network ----------------------------------------------------------------------------------


class DigitModel(nn.Module):
    """A network that scores each picture of 8 x 8 as each digit."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, CHANNELS, 3, padding=1)
        self.conv2 = nn.Conv2d(CHANNELS, 2 * CHANNELS, 3, padding=1)
        self.norm1, self.norm2 = nn.BatchNorm2d(CHANNELS), nn.BatchNorm2d(2 * CHANNELS)
        self.pool, self.dropout = nn.MaxPool2d(2), nn.Dropout(0.25)
        self.hidden = nn.Linear(2 * CHANNELS * 4 * 4, HIDDEN)
        self.scores = nn.Linear(HIDDEN, 10)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the scores of the ten digits for each picture."""
        x = F.relu(self.norm1(self.conv1(pictures)))
        x = self.dropout(self.pool(F.relu(self.norm2(self.conv2(x)))))
        scores: Tensor = self.scores(F.relu(self.hidden(x.flatten(1))))
        return scores


class TrainingRun:
    """A training run on one device: the network, its optimizer, and its progress."""

    def __init__(self, device: str, epochs: int) -> None:
        dt.random.manual_seed(SEED)
        self.device, self.epoch = device, 0
        x, y, test_x, test_y = (dt.asarray(a, device=device) for a in split())
        self.test_data = test_x, test_y
        self.generator = dt.random.default_rng(SEED)
        self.loader = dt.data.DataLoader(
            dt.data.TensorDataset(x, y),
            BATCH,
            shuffle=True,
            drop_last=True,
            generator=self.generator,
        )
        self.model = DigitModel().to(device)
        self.optimizer = dt.optim.Adam(self.model.parameters(), lr=LEARNING_RATE_MAX)
        steps = epochs * len(self.loader)
        self.scheduler = dt.optim.lr_scheduler.OneCycleLR(
            self.optimizer, LEARNING_RATE_MAX, total_steps=steps + 1
        )
        self.step = dt.jit(self._step)
        self.predict = dt.jit(lambda pictures: dt.argmax(self.model(pictures), axis=1))

    def _step(self, pictures: Tensor, labels: Tensor) -> Tensor:
        """Train on one batch, and return its loss."""
        loss = F.cross_entropy(self.model(pictures), labels)
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def learn(self) -> float:
        """Train for one epoch and count it; return the mean loss of its batches."""
        self.model.train()
        losses = []
        for pictures, labels in self.loader:
            losses.append(self.step(pictures, labels))
            self.scheduler.step()
        self.epoch += 1
        return float(np.mean([loss.item() for loss in losses]))

    def accuracy(self) -> float:
        """Switch to evaluation; return the share of held-out pictures classified correctly."""
        self.model.eval()
        pictures, labels = self.test_data
        with dt.no_grad():
            return float(dt.mean(self.predict(pictures) == labels))

    def digest(self) -> str:
        """Return the SHA-256 of the model's state."""
        hasher = hashlib.sha256()
        for x in self.model.state_dict().values():
            hasher.update(np.ascontiguousarray(x.numpy()).tobytes())
        return hasher.hexdigest()


# --- the work -------------------------------------------------------------------------------------


@dataclass
class TrainingOutcome:
    """The training results of one device."""

    device: str
    losses: list[float] = field(default_factory=list)  # means over epochs
    accuracies: list[float] = field(default_factory=list)  # after epochs, on what was held out
    digests: list[str] = field(default_factory=list)  # of the weights, after epochs
    seconds: float = 0.0
    resumed: str = ""  # the digest of a run that went on from a checkpoint


def split() -> tuple[Array, Array, Array, Array]:
    """Return pictures (n, 1, 8, 8) and labels to train on, then every fifth ones, held out."""
    pixels, labels = load_digits()
    pictures, held_out = pixels.reshape(-1, 1, 8, 8), np.arange(len(pixels)) % 5 == 4
    return pictures[~held_out], labels[~held_out], pictures[held_out], labels[held_out]


def learn(device: str, epochs: int, total_epochs: int, tick: Callable[[], None]) -> TrainingOutcome:
    """Train for `epochs` of a `total_epochs` run on one device; call `tick` after each."""
    out, started = TrainingOutcome(device), time.perf_counter()
    with dt.vendor_products(False):
        run = TrainingRun(device, total_epochs)
        for _ in range(epochs):
            out.losses.append(run.learn())
            out.accuracies.append(run.accuracy())
            out.digests.append(run.digest())
            tick()
    out.seconds = time.perf_counter() - started
    return out


def run_resumed(device: str, epochs: int, tick: Callable[[], None]) -> str:
    """Return the digest of a run that stopped half way, and continued from its checkpoint."""
    with tempfile.TemporaryDirectory() as folder, dt.vendor_products(False):
        run = TrainingRun(device, epochs)
        for _ in range(epochs // 2):
            run.learn()
            tick()
        path = dt.checkpoint.save(Path(folder) / "half", **_states(run), step=run.epoch)
        run = TrainingRun(device, epochs)
        run.epoch = dt.checkpoint.load(path, **_states(run))["step"]
        while run.epoch < epochs:
            run.learn()
            tick()
        return run.digest()


def _states(run: TrainingRun) -> dict[str, Any]:
    """Return the objects that a checkpoint saves and loads, by name."""
    return {
        "model": run.model,
        "optimizer": run.optimizer,
        "scheduler": run.scheduler,
        "generator": run.generator,
    }


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if every device learnt and all agree, 1 if not, 2 if it cannot run."""
    console = Console(soft_wrap=True)
    options = parser()
    asked = options.parse_args(arguments)
    if report_missing_modules(options, ("sklearn", "matplotlib")):
        return 2
    devices = select_devices(asked.device, asked.full)
    (FULL_SECONDS if asked.full else SECONDS).announce(devices, console)
    return train(devices, asked.out, asked.epochs, asked.full, console)


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo train", description=__doc__)
    options.add_devices("all but the interpreter")
    options.add_picture(Path("train.png"))
    options.add_argument(
        "--epochs",
        type=positive_int,
        default=EPOCHS,
        help="train for this many epochs (default: %(default)s)",
    )
    add_full(options, "train to the end on every device; one epoch on the interpreter")
    return options


def _count_epochs(device: str, is_first: bool, epochs: int, full: bool) -> int:
    """Return the epochs of a device: all on the first; later ones only compare their bits."""
    if device == REFERENCE_DEVICE:
        return min(epochs, REFERENCE_EPOCHS_MAX)
    return epochs if is_first or full else min(epochs, COMPARED_EPOCHS)


def train(devices: Sequence[str], picture: Path, epochs: int, full: bool, console: Console) -> int:
    """Train on every device, print and draw the results; return 1 for a complaint, else 0."""
    outcomes = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} epochs"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        for i, device in enumerate(devices):
            count = _count_epochs(device, i == 0, epochs, full)
            task = progress.add_task(f"training on {device}", total=count)
            outcomes.append(learn(device, count, epochs, partial(progress.advance, task)))
        first = outcomes[0]
        if first.device != REFERENCE_DEVICE:
            task = progress.add_task(f"again on {first.device}, interrupted", total=epochs)
            first.resumed = run_resumed(first.device, epochs, partial(progress.advance, task))
    console.print(table(outcomes))
    if first.resumed == first.digests[-1]:
        console.print(f"Interrupted after {epochs // 2} epochs and resumed: the same bits.")
    draw(first, picture)
    console.print(f"Picture: {picture}")
    wrong = complaints(outcomes)
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def complaints(outcomes: Sequence[TrainingOutcome]) -> list[str]:
    """Return a line for each device that learnt too little, or has other bits than the first."""
    lines = []
    for out in outcomes:
        common = min(len(out.digests), len(outcomes[0].digests))
        if out.digests[:common] != outcomes[0].digests[:common]:
            lines.append(f"{out.device} and {outcomes[0].device} computed different weights")
        if len(out.digests) >= EPOCHS and out.accuracies[-1] < ACCURACY_MIN:
            lines.append(
                f"{out.device} reached {out.accuracies[-1]:.1%}; expected {ACCURACY_MIN:.1%}"
            )
        if out.resumed and out.resumed != out.digests[-1]:
            lines.append(
                f"{out.device} computed different weights after resuming from its checkpoint"
            )
    return lines


def table(outcomes: Sequence[TrainingOutcome]) -> Table:
    """Return a table of time, loss, accuracy and digest of every device."""
    rows = Table(title="Handwritten digits; two convolutions, two linear layers, Adam")
    columns = ("device", "epochs", "seconds", "loss", "accuracy", "weights")
    for column in columns:
        left = column in ("device", "weights")
        rows.add_column(column, justify="left" if left else "right", no_wrap=left)
    for out in outcomes:
        learnt = (f"{out.losses[-1]:.4f}", f"{out.accuracies[-1]:.2%}", out.digests[-1][:12])
        rows.add_row(out.device, str(len(out.losses)), f"{out.seconds:.2f}", *learnt)
    return rows


def draw(out: TrainingOutcome, path: Path) -> None:
    """Draw training loss and held-out accuracy by epoch, and save the picture."""
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    figure = figures.Figure(figsize=(10, 4.2), facecolor=PAPER, layout="constrained")
    left, right = figure.subplots(1, 2)
    epochs = range(1, len(out.losses) + 1)
    left.semilogy(epochs, out.losses, color="#c1553b", linewidth=2.2, marker="o", markersize=4)
    right.plot(
        epochs,
        [100 * a for a in out.accuracies],
        color="#2a6f97",
        linewidth=2.2,
        marker="o",
        markersize=4,
    )
    expected = f"{ACCURACY_MIN:.1%}, expected after {EPOCHS} epochs"
    right.axhline(100 * ACCURACY_MIN, color=INK, linewidth=1, linestyle=":", label=expected)
    right.legend(frameon=False, labelcolor=INK, loc="lower right")
    for axes, name in ((left, "loss (cross entropy)"), (right, "accuracy on unseen digits, %")):
        axes.set_facecolor(PAPER)
        axes.set_title(name, color=INK, fontsize=11, fontweight="bold")
        axes.set_xlabel("epoch", color=INK)
        axes.tick_params(colors=INK, labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(
        f"A convolutional network learns to read on {out.device}: {out.accuracies[-1]:.1%} "
        f"after {len(out.losses)} epochs",
        color=INK,
        fontsize=13,
        fontweight="bold",
    )
    figure.savefig(path, dpi=120)
