"""Tables of rows beside PyTorch, for `networks.py`: a look-up, its sparse gradient, a step.

The step is Adagrad's, written by hand: rows that are read several times are added up in a table of
zeros, read back for each look-up, and cleared again, so that nothing is sorted and nothing read by
the host. The captured one is the same function under `dt.jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.commands.bench_cases import peer
from turns import OURS, Row, Work

ROWS, WIDTH, LOOKUPS = 100_000, 64, 4096
RATE, EPS = 0.01, 1e-10


def _given() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS, WIDTH)).astype("f4"), rng.integers(0, ROWS, LOOKUPS)


def _ours(weights: np.ndarray[Any, Any]) -> tuple[Any, Callable[[Any], Any]]:
    """A table, and a step of it."""
    table = dt.nn.Embedding.from_pretrained(dt.asarray(weights), freeze=False, sparse=True)
    squares = dt.zeros((ROWS, WIDTH))
    sums = dt.zeros((ROWS, WIDTH))

    def step(at: Any) -> Any:
        loss = table(at).sum()
        loss.backward()
        with dt.no_grad():
            g = table.weight.grad
            rows, values = g.indices()[0], g.values()
            sums.index_add_(0, rows, values)
            whole = dt.take(sums, rows, axis=0)
            after = dt.take(squares, rows, axis=0) + whole * whole
            squares[rows] = after
            moved = dt.take(table.weight, rows, axis=0) - RATE * whole / (dt.sqrt(after) + EPS)
            table.weight[rows] = moved
            sums[rows] = 0.0
        table.weight.grad = None
        return loss.detach()

    return table, step


def _theirs(weights: np.ndarray[Any, Any]) -> tuple[Any, Callable[[Any], Any]]:
    torch = peer("torch")
    table = torch.nn.Embedding.from_pretrained(
        torch.from_numpy(weights.copy()), freeze=False, sparse=True
    )
    optimiser = torch.optim.Adagrad(table.parameters(), lr=RATE, eps=EPS)

    def step(at: Any) -> Any:
        optimiser.zero_grad()
        loss = table(at).sum()
        loss.backward()
        optimiser.step()
        return loss.detach()

    return table, step


def _step() -> dict[str, Work]:
    torch = peer("torch")
    weights, at = _given()
    ours, captured, theirs = _ours(weights), _ours(weights), _theirs(weights)
    mine, jitted = dt.asarray(at), dt.jit(captured[1])
    other = torch.from_numpy(at)
    return {
        OURS: lambda: dt.evaluate(ours[1](mine)),
        "captured": lambda: dt.evaluate(jitted(mine)),
        "torch": lambda: theirs[1](other),
    }


def _lookup() -> dict[str, Work]:
    torch = peer("torch")
    weights, at = _given()
    mine, table = dt.asarray(at), dt.asarray(weights)
    theirs, other = torch.from_numpy(weights), torch.from_numpy(at)
    return {
        OURS: lambda: dt.evaluate(dt.nn.functional.embedding(mine, table)),
        "torch": lambda: torch.nn.functional.embedding(other, theirs),
    }


def _agree(works: Mapping[str, Work]) -> None:
    """Raises ArithmeticError where a step of ours leaves another table than PyTorch's."""
    weights, at = _given()
    at[:9] = at[0]  # some rows several times
    torch = peer("torch")
    ours, theirs = _ours(weights), _theirs(weights)
    for _ in range(3):
        ours[1](dt.asarray(at))
        theirs[1](torch.from_numpy(at))
    if not np.allclose(ours[0].weight.detach().numpy(), theirs[0].weight.detach().numpy()):
        raise ArithmeticError("a step of ours is another one than torch's")


def rows() -> list[Row]:
    """All of them."""
    said = f"{ROWS:,} x {WIDTH}, {LOOKUPS} look-ups"
    return [
        Row(f"embedding {said}", _lookup, {}),
        Row(f"embedding {said}, sparse gradient, Adagrad", _step, {"torch": 2.0}, _agree),
    ]
