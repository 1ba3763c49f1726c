"""`dovetail demo train`: a network of two layers learns to read handwritten digits.

They are scikit-learn's; it learns on every device at hand.

The network, its loss and Adam are written here on top of gradients. Everything runs under
`dt.reproducible()`, so all devices must arrive at the same bits: each has a digest of its weights
after every epoch, and the demo fails where two differ.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import dovetail as dt

from ..tensor.tensor import Tensor
from .demo import INK, PAPER, REFERENCE, Array, available, lacks, load_digits

HIDDEN, BATCH, EPOCHS, SEED = 96, 64, 30, 0
FEW = 10  # epochs on the interpreter, which is right, but slow: enough to reach the target
RATE, FIRST, SECOND, TINY = 1e-2, 0.9, 0.999, 1e-8  # Adam's
TARGET = 0.96  # accuracy on digits that were not learnt from


# --- the network ----------------------------------------------------------------------------------


def weights(device: str) -> list[Tensor]:
    """Two layers' weights and biases, random by a fixed seed."""
    draw = dt.random.default_rng(SEED)
    sizes = (64, HIDDEN, 10)
    made = []
    for n, m in pairwise(sizes):
        made.append(draw.normal((n, m), std=(2 / n) ** 0.5, device=device))
        made.append(dt.zeros((m,), device=device))
    dt.evaluate(*made)
    return [w.requires_grad_() for w in made]


def scores(w: Sequence[Tensor], pixels: Tensor) -> Tensor:
    """How much each picture looks like each digit."""
    hidden = dt.relu(pixels @ w[0] + w[1])
    return hidden @ w[2] + w[3]


def loss(w: Sequence[Tensor], pixels: Tensor, labels: Tensor) -> Tensor:
    """The mean cross entropy."""
    picked = dt.take_along_axis(dt.log_softmax(scores(w, pixels)), labels.reshape(-1, 1), axis=1)
    return -dt.mean(picked)


def accuracy(w: Sequence[Tensor], pixels: Tensor, labels: Tensor) -> float:
    """The share of pictures whose highest score is the right one."""
    with dt.no_grad():
        right = dt.argmax(scores(w, pixels), axis=1) == labels
    return float(dt.mean(right).item())


class Adam:
    """Steps against the gradient, each weight at its own pace. Source: Kingma and Ba (2015)."""

    def __init__(self, w: Sequence[Tensor]) -> None:
        self.weights, self.steps = w, 0
        self.moments = [(dt.zeros_like(t), dt.zeros_like(t)) for t in w]

    def step(self) -> None:
        """One step; the gradients are gone afterwards."""
        self.steps += 1
        rate, spread = RATE / (1 - FIRST**self.steps), (1 - SECOND**self.steps) ** -0.5
        with dt.no_grad():
            for i, (t, (m, v)) in enumerate(zip(self.weights, self.moments, strict=True)):
                g = t.grad
                assert g is not None
                m = m * FIRST + g * (1 - FIRST)
                v = v * SECOND + g * g * (1 - SECOND)
                t -= m * rate / (dt.sqrt(v) * spread + TINY)
                t.grad, self.moments[i] = None, (m, v)


# --- the work -------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """What one device learnt."""

    device: str
    losses: list[float] = field(default_factory=list)  # means over epochs
    accuracies: list[float] = field(default_factory=list)  # after epochs, on the test digits
    digests: list[str] = field(default_factory=list)  # of the weights, after epochs
    seconds: float = 0.0
    steps: int = 0


def split() -> tuple[Array, Array, Array, Array]:
    """Pixels and labels to learn from, then those to test with: every fourth digit."""
    pixels, labels = load_digits()
    test = np.arange(len(pixels)) % 4 == 3
    return pixels[~test], labels[~test], pixels[test], labels[test]


def learn(device: str, epochs: int, tick: Callable[[], None]) -> Outcome:
    """Trains on one device; `tick` is called after every epoch."""
    x, y, test_x, test_y = (dt.asarray(a, device=device) for a in split())
    out, begun = Outcome(device), time.perf_counter()
    with dt.reproducible():
        w = weights(device)
        adam = Adam(w)
        shuffle = dt.random.default_rng(SEED + 1)
        for _ in range(epochs):
            order = shuffle.permutation(x.shape[0], device=device)
            out.losses.append(_epoch(w, adam, x, y, order))
            out.accuracies.append(accuracy(w, test_x, test_y))
            out.digests.append(_digest(w))
            tick()
    out.seconds, out.steps = time.perf_counter() - begun, adam.steps
    return out


def _epoch(w: Sequence[Tensor], adam: Adam, x: Tensor, y: Tensor, order: Tensor) -> float:
    """One pass over all digits; the mean loss."""
    total = []
    for start in range(0, x.shape[0] - BATCH + 1, BATCH):
        rows = order[start : start + BATCH]
        error = loss(w, dt.take(x, rows, axis=0), dt.take(y, rows, axis=0))
        error.backward()
        adam.step()
        total.append(error.detach())
    return float(np.mean([t.item() for t in total]))


def _digest(w: Sequence[Tensor]) -> str:
    hash_ = hashlib.sha256()
    for t in w:
        hash_.update(np.ascontiguousarray(t.numpy()).tobytes())
    return hash_.hexdigest()


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """0 if every device learnt and all agree to the last bit, 1 if not, 2 if it cannot run."""
    console = Console(soft_wrap=True)
    asked = _parser().parse_args(arguments)
    if lacks(("sklearn", "matplotlib"), console):
        return 2
    return train(asked.device or available(), asked.out, asked.epochs, console)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="dovetail demo train",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", action="append", help="may be given again; default: all")
    parser.add_argument("--out", type=Path, default=Path("train.png"), help="picture (%(default)s)")
    parser.add_argument("--epochs", type=int, default=EPOCHS, help="passes (%(default)s)")
    return parser


def train(devices: Sequence[str], picture: Path, epochs: int, console: Console) -> int:
    """Trains on every device, shows what came out, and compares digests."""
    outcomes = []
    with Progress(
        TextColumn("{task.description}"), BarColumn(),
        TextColumn("{task.completed}/{task.total} epochs"), TimeElapsedColumn(), console=console,
    ) as progress:  # fmt: skip
        for device in devices:
            count = min(epochs, FEW) if device == REFERENCE else epochs
            task = progress.add_task(f"training on {device}", total=count)
            outcomes.append(learn(device, count, partial(progress.advance, task)))
    console.print(table(outcomes))
    draw(outcomes[0], picture)
    console.print(f"Picture: {picture}")
    wrong = complaints(outcomes)
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def complaints(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each device that learnt too little, or other bits than the first one."""
    lines = []
    for out in outcomes:
        common = min(len(out.digests), len(outcomes[0].digests))
        if out.digests[:common] != outcomes[0].digests[:common]:
            lines.append(f"{out.device} and {outcomes[0].device} arrived at different weights")
        if len(out.digests) >= FEW and out.accuracies[-1] < TARGET:
            lines.append(f"{out.device} reached {out.accuracies[-1]:.1%}, not {TARGET:.0%}")
    return lines


def table(outcomes: Sequence[Outcome]) -> Table:
    """What every device took, learnt and arrived at."""
    found = Table(title="handwritten digits, two layers, Adam")
    columns = ("device", "epochs", "seconds", "steps/s", "loss", "accuracy", "weights")
    for column in columns:
        left = column in ("device", "weights")
        found.add_column(column, justify="left" if left else "right", no_wrap=left)
    for out in outcomes:
        speed = f"{out.steps / out.seconds:.0f}"
        learnt = (f"{out.losses[-1]:.4f}", f"{out.accuracies[-1]:.2%}", out.digests[-1][:12])
        took = (str(len(out.losses)), f"{out.seconds:.2f}", speed)
        found.add_row(out.device, *took, *learnt)
    return found


def draw(out: Outcome, path: Path) -> None:
    """Writes a picture of loss and test accuracy."""
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
    right.axhline(100 * TARGET, color=INK, linewidth=1, linestyle=":")
    for axes, name in ((left, "loss (cross entropy)"), (right, "accuracy on unseen digits, %")):
        axes.set_facecolor(PAPER)
        axes.set_title(name, color=INK, fontsize=11, fontweight="bold")
        axes.set_xlabel("epoch", color=INK)
        axes.tick_params(colors=INK, labelsize=8)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.suptitle(
        f"A network of two layers learns to read on {out.device}: {out.accuracies[-1]:.1%} "
        f"after {len(out.losses)} epochs", color=INK, fontsize=13, fontweight="bold",
    )  # fmt: skip
    figure.savefig(path, dpi=120)
