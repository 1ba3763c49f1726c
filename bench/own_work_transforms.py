"""Transforms of functions beside torch.func, for `own_work.py`.

Per-example gradients of small networks, batch 256: `vmap(grad(loss))` of one example's loss. Each
contestant has its own `vmap` and `grad`; ours is run as it is, and captured by `dt.jit`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

BATCH = 256

Array = np.ndarray


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
    return _row("-".join(map(str, sizes)), _layers(*sizes), given, _cross_entropy)


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
        _row("windows", [_normal(8, 16), _normal(256, 4)], signal, _convolved),
    ]  # fmt: skip


def _row(
    name: str, parameters: Sequence[Array], example: Sequence[Array], loss: Callable[..., Any]
) -> Row:
    """A loss of one example: of a module, of parameters, of what is given of it."""

    def make() -> dict[str, Work]:
        torch = peer("torch")
        mine = dt.vmap(dt.func.grad(lambda *a: loss(dt, *a)), in_axes=(None, 0, 0))
        theirs = torch.func.vmap(
            torch.func.grad(lambda *a: loss(torch, *a)), in_dims=(None, 0, 0)
        )  # fmt: skip
        ours = [dt.asarray(a) for a in parameters], *map(dt.asarray, example)
        given = [torch.from_numpy(a) for a in parameters], *map(torch.from_numpy, example)
        captured = dt.jit(mine)

        def run(function: Callable[..., Any]) -> Any:
            found = function(*ours)
            dt.evaluate(*found)
            return found

        return {
            OURS: lambda: run(mine),
            "captured": lambda: run(captured),
            "torch": lambda: theirs(*given),
        }

    return Row(f"vmap(grad(f)), {name}, batch {BATCH}", make, {"torch": 1.0}, _agree)


def _agree(works: Mapping[str, Work]) -> None:
    """Raises ArithmeticError where ours are not torch's."""
    want = works["torch"]()
    for name in (OURS, "captured"):
        for a, b in zip(works[name](), want, strict=True):
            wanted = np.asarray(b)  # some elements are small sums of large terms
            if not np.allclose(np.asarray(a), wanted, 1e-3, 1e-6 * np.abs(wanted).max()):
                raise ArithmeticError(f"{name} computed something else than torch.func")
