"""Optimisers beside PyTorch's, for the table of networks: many tensors, and sparse rows.

Each contestant has parameters and gradients of its own; steps are without a backward. Adam's 16 MB
are in the cache where steps follow each other, and come from memory where contestants take turns
after each: both are measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

TENSORS, SIZE = 100, 10_000
ROWS, WIDTH, LOOKED_UP = 100_000, 64, 4096
TURN = 0.05  # seconds: 20 steps of PyTorch's


def _values(seed: int) -> list[np.ndarray]:
    draw = np.random.default_rng(seed)
    return [draw.standard_normal(SIZE).astype("f4") for _ in range(TENSORS)]


def _ours() -> Any:
    params = [dt.asarray(a).requires_grad_() for a in _values(0)]
    for p, g in zip(params, _values(1), strict=True):
        p.grad = dt.asarray(g)
    return dt.optim.Adam(params)


def _theirs(**options: Any) -> Any:
    torch: Any = peer("torch")
    params = [torch.tensor(a, requires_grad=True) for a in _values(0)]
    for p, g in zip(params, _values(1), strict=True):
        p.grad = torch.tensor(g)
    return torch.optim.Adam(params, **options)


def _steps() -> Mapping[str, Work]:
    return {
        OURS: _ours().step,
        "torch foreach": _theirs(foreach=True).step,
        "torch fused": _theirs(fused=True).step,
    }


def _captured_steps() -> Mapping[str, Work]:
    optimizer = _ours()
    step = dt.jit(lambda: optimizer.step())
    for _ in range(3):
        step()
    return {OURS: step, "torch foreach": _theirs(foreach=True).step}


def _sparse_steps() -> Mapping[str, Work]:
    torch: Any = peer("torch")
    draw = np.random.default_rng(0)
    begin = draw.standard_normal((ROWS, WIDTH)).astype("f4")
    at, g = draw.integers(0, ROWS, (1, LOOKED_UP)), draw.standard_normal((LOOKED_UP, WIDTH))
    x, y = dt.asarray(begin).requires_grad_(), torch.tensor(begin, requires_grad=True)
    mine, theirs = dt.optim.Adagrad([x]), torch.optim.Adagrad([y])
    places, values = dt.asarray(at), dt.asarray(g.astype("f4"))
    other = torch.tensor(at), torch.tensor(g.astype("f4"))

    def ours() -> None:
        x.grad = dt.sparse_coo_tensor(places, values, (ROWS, WIDTH))
        mine.step()

    def peers() -> None:
        y.grad = torch.sparse_coo_tensor(*other, (ROWS, WIDTH), check_invariants=False)
        theirs.step()

    return {OURS: ours, "torch": peers}


def rows() -> list[Row]:
    """All of them."""
    return [
        Row("Adam step, 100 tensors of 10 K", _steps, {"torch foreach": 2.0}),
        Row("the same, step after step", _steps, {"torch foreach": 2.0}, turn=TURN),
        Row(
            "the same, step after step, captured",
            _captured_steps,
            {"torch foreach": 5.0},
            turn=TURN,
        ),
        Row("the same, in turns, captured", _captured_steps, {}),
        Row("Adagrad step, 4096 of 100,000 x 64 rows", _sparse_steps, {"torch": 2.0}),
    ]
