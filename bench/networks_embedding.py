"""Tables of rows beside PyTorch, for `networks.py`: a look-up, its sparse gradient, a step.

The step is `dt.optim.Adagrad`'s, and one that is written by hand: rows that are read several times
are added up in a table of zeros, read back for each look-up, and cleared again, so that nothing is
sorted and nothing read by the host. The captured ones are the same functions under `dt.jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

Make = Callable[["np.ndarray[Any, Any]"], tuple[Any, Callable[[Any], Any]]]

ROWS, WIDTH, LOOKUPS = 100_000, 64, 4096
RATE, EPS = 0.01, 1e-10
TURN = 0.02  # seconds: 20 steps, one after the other


def _given() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    return rng.standard_normal((ROWS, WIDTH)).astype("f4"), rng.integers(0, ROWS, LOOKUPS)


def _ours(weights: np.ndarray[Any, Any]) -> tuple[Any, Callable[[Any], Any]]:
    """A table, and a step of it."""
    table = dt.nn.Embedding.from_pretrained(dt.asarray(weights), freeze=False, sparse=True)
    return table, _step(table, dt.optim.Adagrad(table.parameters(), lr=RATE, eps=EPS))


def _step(table: Any, optimiser: Any) -> Callable[[Any], Any]:
    def step(at: Any) -> Any:
        loss = table(at).sum()
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()  # in the end: a call that leaves a sparse gradient is not captured
        return loss.detach()

    return step


def _by_hand(weights: np.ndarray[Any, Any]) -> tuple[Any, Callable[[Any], Any]]:
    """The same, with the optimiser's part by hand."""
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
    return table, _step(table, torch.optim.Adagrad(table.parameters(), lr=RATE, eps=EPS))


def _steps(make: Make, captured: bool) -> Mapping[str, Work]:
    torch = peer("torch")
    weights, at = _given()
    ours, theirs = make(weights), _theirs(weights)
    mine, step = dt.asarray(at), dt.jit(ours[1]) if captured else ours[1]
    other = torch.from_numpy(at)
    return {
        OURS: lambda: dt.evaluate(step(mine)),
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


def _agree(make: Make) -> None:
    """Raises ArithmeticError where a step of ours leaves another table than PyTorch's."""
    weights, at = _given()
    at[:9] = at[0]  # some rows several times
    torch = peer("torch")
    ours, theirs = make(weights), _theirs(weights)
    for _ in range(3):
        ours[1](dt.asarray(at))
        theirs[1](torch.from_numpy(at))
    if not np.allclose(ours[0].weight.detach().numpy(), theirs[0].weight.detach().numpy()):
        raise ArithmeticError("a step of ours is another one than torch's")


def rows() -> list[Row]:
    """All of them."""
    said = f"{ROWS:,} x {WIDTH}, {LOOKUPS} look-ups"

    def row(name: str, make: Make, captured: bool = False) -> Row:
        name = f"embedding {said}, sparse gradient, {name}{', captured' * captured}"
        works, check = (lambda: _steps(make, captured)), (lambda _: _agree(make))
        return Row(name, works, {"torch": 2.0}, check, turn=TURN)

    return [
        Row(f"embedding {said}", _lookup, {}),
        *(row("Adagrad", _ours, captured) for captured in (False, True)),
        *(row("Adagrad by hand", _by_hand, captured) for captured in (False, True)),
    ]
