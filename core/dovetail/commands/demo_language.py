"""`dovetail demo language`: train a small transformer to write docstrings, letter by letter.

It reads those of Python's own standard library. The step (the network, its gradients, AdamW) is
captured by `dt.jit`, and everything runs under `dt.vendor_products(False)`: the digest of the
weights is the same on every device. With `--full` it trains four times as long.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

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
    available,
    report_missing_modules,
)
from .demo_text import sources

nn, F = dt.nn, dt.nn.functional

CONTEXT, WIDTH, HEADS, LAYERS = 64, 128, 4, 3
BATCH, STEPS, FULL_STEPS, SEED = 16, 400, 1600, 0
REFERENCE_STEPS_MAX = 1  # steps on the interpreter, which is right, but slow
LEARNING_RATE_MAX, GRADIENT_NORM_MAX = 3e-3, 1.0  # the highest rate; the longest gradient
VALIDATION_INTERVAL_STEPS = 50  # steps between two evaluations of the held-out loss
SECONDS, FULL_SECONDS = DemoSeconds(50, 100, 60), DemoSeconds(180, 300, 60)
SAMPLE_LETTERS, TEMPERATURE = 600, 0.7  # letters of the sample; below 1 likely ones are preferred


# --- the text -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Corpus:
    """A text as numbers of its letters: most of it to learn from, every tenth part held out."""

    letters: str
    training_text: Array
    held_out: Array

    def text(self, numbers: Sequence[int]) -> str:
        """Return the letters of these numbers."""
        return "".join(self.letters[i] for i in numbers)


@cache
def corpus() -> Corpus:
    """Read the ASCII docstrings of Python's standard library, every tenth one held out; cached."""
    texts = [text for _, source in sorted(sources()) for text in _docstrings(source.text)]
    letters = "".join(sorted({*"".join(texts)}))
    number = {letter: i for i, letter in enumerate(letters)}
    split_texts: tuple[list[str], list[str]] = ([], [])
    for i, text in enumerate(texts):
        split_texts[i % 10 == 9].append(text)
    learnt, held_out = (np.array([number[c] for c in "".join(k)], "i4") for k in split_texts)
    return Corpus(letters, learnt, held_out)


def _docstrings(source: str) -> Iterator[str]:
    """Yield the printable ASCII docstrings of a source's parts, with an empty line each."""
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        text = ast.get_docstring(node) if isinstance(node, kinds) else None
        if text and text.isascii() and text.replace("\n", " ").isprintable():
            yield text + "\n\n"


def draw_batch(text: Array, random: np.random.Generator) -> tuple[Array, Array]:
    """Draw BATCH random stretches of CONTEXT letters, and the same ones shifted by one letter."""
    starts = random.integers(0, len(text) - CONTEXT, BATCH)
    rows = text[starts[:, None] + np.arange(CONTEXT + 1)]
    return rows[:, :-1], rows[:, 1:]


# --- the network ----------------------------------------------------------------------------------


class TransformerBlock(nn.Module):
    """Attention to earlier letters, then a network for each letter; both are added to the input."""

    def __init__(self) -> None:
        super().__init__()
        self.attention_norm, self.mlp_norm = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv_projection, self.output_projection = (
            nn.Linear(WIDTH, 3 * WIDTH),
            nn.Linear(WIDTH, WIDTH),
        )
        self.mlp_expansion, self.mlp_contraction = (
            nn.Linear(WIDTH, 4 * WIDTH),
            nn.Linear(4 * WIDTH, WIDTH),
        )

    def forward(self, x: Tensor) -> Tensor:
        """Return the activations after attention and the network of each letter."""
        n, length, _ = x.shape
        projections = self.qkv_projection(self.attention_norm(x)).reshape(
            (n, length, 3, HEADS, WIDTH // HEADS)
        )
        query, key, value = dt.unstack(dt.permute_dims(projections, (2, 0, 3, 1, 4)))
        attended = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.output_projection(
            dt.permute_dims(attended, (0, 2, 1, 3)).reshape((n, length, WIDTH))
        )
        inner: Tensor = self.mlp_contraction(F.gelu(self.mlp_expansion(self.mlp_norm(x))))
        return x + inner


class LetterModel(nn.Module):
    """A network that scores every letter as the next one, after each letter of a text."""

    def __init__(self, letters: int) -> None:
        super().__init__()
        self.letter_embedding, self.position_embedding = (
            nn.Embedding(letters, WIDTH),
            nn.Embedding(CONTEXT, WIDTH),
        )
        self.blocks = nn.Sequential(*(TransformerBlock() for _ in range(LAYERS)))
        self.norm, self.scores = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, letters)
        for table in (self.letter_embedding, self.position_embedding):
            nn.init.normal_(table.weight, std=0.02)

    def forward(self, text: Tensor) -> Tensor:
        """Return the scores of every next letter at each position of the texts."""
        x = self.letter_embedding(text) + self.position_embedding.weight[: text.shape[1]]
        scores: Tensor = self.scores(self.norm(self.blocks(x)))
        return scores


# --- the work -------------------------------------------------------------------------------------


@dataclass
class LetterModelOutcome:
    """The training results of one device."""

    device: str
    losses: list[float] = field(default_factory=list)  # after each step; nats a letter
    held_out: list[tuple[int, float]] = field(default_factory=list)  # (step, loss)
    digest: str = ""  # of the weights
    seconds: float = 0.0
    sample: str = ""


def learn(device: str, steps: int, tick: Callable[[float], None]) -> LetterModelOutcome:
    """Train on one device and write a sample text; call `tick` with the loss of every step."""
    text, out, started = corpus(), LetterModelOutcome(device), time.perf_counter()
    with dt.vendor_products(False):
        dt.random.manual_seed(SEED)
        model = LetterModel(len(text.letters)).to(device)
        optimizer = dt.optim.AdamW(model.parameters(), lr=LEARNING_RATE_MAX, betas=(0.9, 0.99))
        rates = dt.optim.lr_scheduler.OneCycleLR(
            optimizer, LEARNING_RATE_MAX, max(steps, 2), pct_start=0.1
        )

        @dt.jit
        def step(letters: Tensor, following: Tensor) -> Tensor:
            """Train on one batch, and return its loss."""
            loss = _compute_loss(model, letters, following)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_NORM_MAX)
            optimizer.step()
            optimizer.zero_grad()
            return loss.detach()

        look = dt.jit(lambda letters, following: _compute_loss(model, letters, following))
        random = np.random.default_rng(SEED)
        for i in range(steps):
            batch = (
                dt.asarray(part, device=device) for part in draw_batch(text.training_text, random)
            )
            out.losses.append(float(step(*batch)))
            if i + 1 < steps:
                rates.step()
            if i % VALIDATION_INTERVAL_STEPS == VALIDATION_INTERVAL_STEPS - 1 or i == steps - 1:
                out.held_out.append((i + 1, _validation_loss(look, device)))
            tick(out.losses[-1])
        out.digest = _hash_weights(model)
        out.sample = write_text(model, device) if device != REFERENCE_DEVICE else ""
    out.seconds = time.perf_counter() - started
    return out


def _compute_loss(model: LetterModel, letters: Tensor, following: Tensor) -> Tensor:
    """Return the mean cross entropy of the predicted next letters."""
    scores = model(letters)
    return F.cross_entropy(scores.reshape((-1, scores.shape[-1])), following.reshape((-1,)))


def _validation_loss(loss_function: Callable[[Tensor, Tensor], Tensor], device: str) -> float:
    """Return the mean loss of a few held-out batches, the same at each call."""
    random = np.random.default_rng(SEED + 1)
    losses = []
    with dt.no_grad():
        for _ in range(4 if device != REFERENCE_DEVICE else 1):
            batch = (
                dt.asarray(part, device=device) for part in draw_batch(corpus().held_out, random)
            )
            losses.append(float(loss_function(*batch)))
    return float(np.mean(losses))


def _hash_weights(model: LetterModel) -> str:
    """Return the SHA-256 of the weights."""
    hasher = hashlib.sha256()
    for x in model.state_dict().values():
        hasher.update(np.ascontiguousarray(x.numpy()).tobytes())
    return hasher.hexdigest()


def write_text(model: LetterModel, device: str) -> str:
    """Return SAMPLE_LETTERS letters, each drawn by the network's scores of the text before it."""
    text, random = corpus(), dt.random.default_rng(SEED)

    @dt.jit
    def following(window: Tensor, noise: Tensor) -> Tensor:
        """Draw the number of the letter after a window, by uniform noise."""
        likely = F.log_softmax(model(window)[0, -1] / TEMPERATURE, dim=-1)
        return dt.argmax(likely - dt.log(-dt.log(noise)))  # Gumbel's noise: drawn by probability

    numbers = text.held_out[:CONTEXT].tolist()
    with dt.no_grad():
        for _ in range(SAMPLE_LETTERS):
            window = dt.asarray([numbers[-CONTEXT:]], dtype=dt.int32, device=device)
            noise = random.uniform((len(text.letters),), low=1e-7, device=device)
            numbers.append(int(following(window, noise)))
    return text.text(numbers[CONTEXT:])


# --- the command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str]) -> int:
    """Run the demo; return 0 if it learnt and all devices agree, 1 if not, 2 if it cannot run."""
    console = Console(soft_wrap=True)
    options = parser()
    asked = options.parse_args(arguments)
    if report_missing_modules(options, ("matplotlib",)):
        return 2
    devices = asked.device or available()[:1]
    (FULL_SECONDS if asked.full else SECONDS).announce(devices, console)
    steps = asked.steps or (FULL_STEPS if asked.full else STEPS)
    return write(devices, asked.out, steps, console)


def parser() -> CommandParser:
    """Build the argument parser of this command."""
    options = CommandParser(prog="dovetail demo language", description=__doc__)
    options.add_devices("the first")
    options.add_picture(Path("language.png"))
    options.add_argument(
        "--steps",
        type=positive_int,
        help=f"train for this many steps (default: {STEPS}, with --full {FULL_STEPS})",
    )
    add_full(options, f"train for {FULL_STEPS} steps")
    return options


def write(devices: Sequence[str], picture: Path, steps: int, console: Console) -> int:
    """Train on every device, print and draw the results; return 1 for a complaint, else 0."""
    text = corpus()
    console.print(
        f"{len(text.training_text) / 1e6:.1f} million letters of docstrings to train on, "
        f"{len(text.letters)} distinct letters"
    )
    outcomes = []
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total} steps, loss {task.fields[loss]:.2f}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        for device in devices:
            count = min(steps, REFERENCE_STEPS_MAX) if device == REFERENCE_DEVICE else steps
            task = progress.add_task(f"training on {device}", total=count, loss=math.nan)

            def tick(loss: float, task: Any = task) -> None:
                """Advance the progress display by one step with its loss."""
                progress.update(task, advance=1, loss=loss)

            outcomes.append(learn(device, count, tick))
    for out in outcomes:
        console.print(_format_outcome(out))
    first = outcomes[0]
    if first.sample:
        console.print(f"\n[bold]Generated text:[/]\n\n{escape(first.sample)}\n")
    draw(first, picture)
    console.print(f"Picture: {picture}")
    wrong = complaints(outcomes)
    for line in wrong:
        console.print(f"[red]{line}[/]")
    return 1 if wrong else 0


def _format_outcome(out: LetterModelOutcome) -> str:
    """Return one line with a device's steps, time, held-out loss and digest."""
    bits = out.held_out[-1][1] / math.log(2)
    return (
        f"{out.device}: {len(out.losses)} steps in {out.seconds:.1f} s; {bits:.2f} bits per letter "
        f"on held-out text; weights {out.digest[:16]}"
    )


def complaints(outcomes: Sequence[LetterModelOutcome]) -> list[str]:
    """Return a line for each device that learnt too little, or has other losses than the first."""
    lines = []
    for out in outcomes:
        common = min(len(out.losses), len(outcomes[0].losses))
        if out.losses[:common] != outcomes[0].losses[:common]:
            lines.append(f"{out.device} and {outcomes[0].device} computed different weights")
        if (
            len(out.losses) >= VALIDATION_INTERVAL_STEPS
            and not out.held_out[-1][1] < out.losses[0] * 0.8
        ):
            lines.append(
                f"{out.device} did not learn: {out.held_out[-1][1]:.2f} nats per held-out letter"
            )
    return lines


def draw(out: LetterModelOutcome, path: Path) -> None:
    """Draw the losses of batches and held-out text, in bits per letter, and save the picture."""
    figures: Any = importlib.import_module("matplotlib.figure")
    importlib.import_module("matplotlib.backends.backend_agg")
    figure = figures.Figure(figsize=(9, 4.6), facecolor=PAPER, layout="constrained")
    axes = figure.subplots()
    bit = math.log(2)
    steps = range(1, len(out.losses) + 1)
    axes.plot(
        steps,
        [x / bit for x in out.losses],
        color="#2a6f97",
        linewidth=1,
        alpha=0.5,
        label="a batch",
    )
    axes.plot(
        [n for n, _ in out.held_out],
        [x / bit for _, x in out.held_out],
        color="#c1553b",
        linewidth=2.2,
        marker="o",
        markersize=4,
        label="held-out text",
    )
    axes.set_facecolor(PAPER)
    axes.set_xlabel("step", color=INK)
    axes.set_ylabel("bits per letter", color=INK)
    axes.tick_params(colors=INK, labelsize=8)
    axes.legend(frameon=False, labelcolor=INK)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.suptitle(
        f"A transformer of {LAYERS} layers learns docstrings on {out.device}",
        color=INK,
        fontsize=13,
        fontweight="bold",
    )
    figure.savefig(path, dpi=120)
