"""Transforms of functions beside torch.func: `python bench/own_work_transforms.py`.

Per-example gradients of small networks, batch 256: `vmap(grad(loss))` of one example's loss. Each
contestant has its own `vmap` and `grad`, two threads, and takes its turn in every round; ours is
run as it is, and captured by `dt.jit`. Times are the least of all rounds; a ratio is torch's time
by ours, and above 1 dovetail is faster.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from dovetail.commands.bench import seconds_text
from dovetail.commands.bench_cases import THREADS, peer
from sweep import timed

PAUSE = 2e-3  # seconds before a turn: the last contestant's threads may still be spinning
BATCH = 256
OURS = ("dovetail", "captured")

Array = np.ndarray


@dataclass
class Row:
    """A loss of one example: of a module, of parameters, of what is given of it."""

    name: str
    parameters: Sequence[Array]
    example: Sequence[Array]
    loss: Callable[..., Any]
    least: float = 1.0
    seconds: dict[str, float] = field(default_factory=dict)

    def ratio(self, name: str) -> float:
        """Torch's time by ours."""
        return self.seconds["torch"] / self.seconds[name]


# --- rows -----------------------------------------------------------------------------------------


def _normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype("f4")


def _layers(*sizes: int) -> list[Array]:
    found: list[Array] = []
    for i, (n, m) in enumerate(pairwise(sizes)):
        found += [_normal(n, m, seed=i) / np.float32(np.sqrt(n)), _normal(m, seed=i)]
    return found


def _cross_entropy(xp: Any, params: Sequence[Any], x: Any, y: Any) -> Any:
    for k in range(0, len(params) - 2, 2):
        x = xp.tanh(x @ params[k] + params[k + 1])
    scores = x @ params[-2] + params[-1]
    return -(y * (scores - xp.logsumexp(scores, 0))).sum()


def _network(*sizes: int) -> Row:
    labels = np.random.default_rng(1).integers(0, sizes[-1], BATCH)
    given = [_normal(BATCH, sizes[0], seed=9), np.eye(sizes[-1], dtype="f4")[labels]]
    name = f"vmap(grad(f)), {'-'.join(map(str, sizes))}, batch {BATCH}"
    return Row(name, _layers(*sizes), given, _cross_entropy)


def _convolved(xp: Any, params: Sequence[Any], x: Any, y: Any) -> Any:
    windows = x.reshape(16, 8) @ params[0]  # a strided convolution along the example
    return ((xp.tanh(windows).reshape(-1) @ params[1] - y) ** 2).sum()


def rows() -> list[Row]:
    """All of them."""
    signal = [_normal(BATCH, 128, seed=3), _normal(BATCH, 4, seed=4)]
    return [
        _network(64, 10),
        _network(32, 64, 10),
        _network(784, 128, 10),
        Row(f"vmap(grad(f)), windows, batch {BATCH}", [_normal(8, 16), _normal(256, 4)], signal,
            _convolved),
    ]  # fmt: skip


# --- measuring ------------------------------------------------------------------------------------


def works(row: Row) -> dict[str, Callable[[], Any]]:
    """By contestant what is timed."""
    torch = peer("torch")
    torch.set_num_threads(THREADS)
    mine = dt.vmap(dt.func.grad(lambda *a: row.loss(dt, *a)), in_axes=(None, 0, 0))
    theirs = torch.func.vmap(
        torch.func.grad(lambda *a: row.loss(torch, *a)), in_dims=(None, 0, 0)
    )  # fmt: skip
    ours = [dt.asarray(a) for a in row.parameters], *map(dt.asarray, row.example)
    given = [torch.from_numpy(a) for a in row.parameters], *map(torch.from_numpy, row.example)
    captured = dt.jit(mine)

    def run(function: Callable[..., Any]) -> Any:
        found = function(*ours)
        dt.evaluate(*found)
        return found

    return {
        "dovetail": lambda: run(mine),
        "captured": lambda: run(captured),
        "torch": lambda: theirs(*given),
    }


def check(row: Row, contestants: dict[str, Callable[[], Any]]) -> None:
    """Raises ArithmeticError where ours are not torch's."""
    want = contestants["torch"]()
    for name in OURS:
        for a, b in zip(contestants[name](), want, strict=True):
            if not np.allclose(np.asarray(a), np.asarray(b), rtol=1e-3, atol=1e-5):
                raise ArithmeticError(f"{name} computed {row.name} wrongly")


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's seconds."""
    contestants = works(row)
    check(row, contestants)
    order, row.seconds = list(contestants), dict.fromkeys(contestants, float("inf"))
    gc.collect()
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(contestants[name], 1)
            row.seconds[name] = min(
                row.seconds[name], *(timed(contestants[name], 1) for _ in range(3))
            )


# --- showing --------------------------------------------------------------------------------------


def table(done: Sequence[Row]) -> list[list[str]]:
    """Headings and rows."""
    made = [["work", *OURS, "torch.func", "x torch.func", "captured x", "asked", "met"]]
    for row in done:
        times = [seconds_text(row.seconds[c]) for c in (*OURS, "torch")]
        ratios = [f"{row.ratio(c):.2f}" for c in OURS]
        met = "yes" if row.ratio("dovetail") >= row.least else "no"
        made.append([row.name, *times, *ratios, f"{row.least:g}", met])
    return made


def main() -> int:
    """Measures and prints; 0."""
    return measured("transforms", __doc__ or "", rows, measure, table, rounds=9)


if __name__ == "__main__":
    sys.exit(main())
