"""`dovetail demo parallel`: train two networks in several processes, with the bits of one process.

A small convolutional network (batch normalisation, dropout) learns the digits of scikit-learn, and
a small transformer (dropout, Adam, gradients of limited norm) the letters of a text. Each is
trained by one process, and by `--workers` processes. The demo prints a digest of the weights for
each, and fails if two differ.
"""

from __future__ import annotations

import argparse
import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import dovetail as dt

from ..command_line import CommandParser, positive_int
from ..tensor.tensor import Tensor
from .demo import Array, load_digits, report_missing_modules

nn, F = dt.nn, dt.nn.functional

GROUPS = 32  # groups of examples, and so the greatest number of workers
BATCH, STEPS, SEED, WORKERS = 128, 20, 0, 2
CONTEXT, WIDTH, HEADS, LETTERS = 32, 64, 4, 128
LEARNING_RATE, GRADIENT_NORM_MAX = 2e-3, 1.0


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
    """The result of a worker. `digest`: the SHA-256 of the weights; `losses`: one of each step."""

    digest: str
    losses: list[float]
    seconds: float


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
    step = dt.parallel.value_and_grad(task.loss, groups=groups, jit=True, generator=generator)
    started = time.perf_counter()
    while len(losses) < steps:
        for share in dt.data.DataLoader(rows, batch_sampler=sampler):
            loss, _ = step(model, share)
            nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
            optimizer.step()
            losses.append(loss.item())
            if len(losses) == steps:
                break
    seconds = time.perf_counter() - started
    if path is not None:
        dt.checkpoint.save(path, **states, losses=losses, random=False, group=workers)
    return Outcome(hash_weights(model), losses, seconds)


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
    if report_missing_modules(options, ("sklearn",)):
        return 2
    console = Console(soft_wrap=True)
    table = Table(title=f"{asked.steps} steps, batches of {BATCH} examples in {GROUPS} groups")
    for column in ("network", "workers", "seconds", "loss", "weights"):
        table.add_column(column, justify="left" if column in ("network", "weights") else "right")
    is_equal = True
    for name in TASKS:
        digests = set()
        for workers in dict.fromkeys((1, asked.workers)):
            outcomes = dt.parallel.run(train_by_name, (name, asked.steps), workers=workers)
            digests |= {out.digest for out in outcomes}
            first = outcomes[0]
            numbers = (f"{first.seconds:.1f}", f"{first.losses[-1]:.4f}")
            table.add_row(name, str(workers), *numbers, first.digest[:12])
        is_equal &= len(digests) == 1
    console.print(table)
    if not is_equal:
        console.print("[red]Workers have computed different weights.[/]")
    return 0 if is_equal else 1


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo parallel", description=__doc__)
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
