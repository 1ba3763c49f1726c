"""Attention beside PyTorch's: 8 heads of 512 x 64, a batch of 8, causal.

Rows for bench/networks.py; the way back alone is what both ways take less the way there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

SHAPE = (8, 8, 512, 64)
attend = dt.nn.functional.scaled_dot_product_attention


def _by_hand(q: Any, k: Any, v: Any) -> Any:
    """What PyTorch does without its own function for it."""
    torch = peer("torch")
    scores = q @ k.mT / SHAPE[-1] ** 0.5
    past = torch.ones(SHAPE[2], SHAPE[2], dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~past, -torch.inf), -1) @ v


def _there(captured: bool) -> Callable[[], dict[str, Work]]:
    def make() -> dict[str, Work]:
        torch = peer("torch")
        arrays = [np.random.default_rng(i).normal(size=SHAPE).astype("f") for i in range(3)]
        ours, theirs = [dt.asarray(a) for a in arrays], [torch.tensor(a) for a in arrays]

        def plain(*x: dt.Tensor) -> dt.Tensor:
            return attend(*x, is_causal=True)

        f = dt.jit(plain) if captured else plain
        g = torch.nn.functional.scaled_dot_product_attention
        return {
            OURS: lambda: dt.evaluate(f(*ours)),
            "torch": lambda: g(*theirs, is_causal=True),
            "torch by hand": lambda: _by_hand(*theirs),
        }

    return make


def _there_and_back(captured: bool) -> Callable[[], dict[str, Work]]:
    def make() -> dict[str, Work]:
        torch = peer("torch")
        arrays = [np.random.default_rng(i).normal(size=SHAPE).astype("f") for i in range(4)]
        *ours, weights = [dt.asarray(a) for a in arrays]
        ours = [x.requires_grad_() for x in ours]
        *theirs, their_weights = [torch.tensor(a) for a in arrays]
        theirs = [x.requires_grad_() for x in theirs]

        def plain(*x: dt.Tensor) -> Any:
            return dt.grad(attend(*x, is_causal=True), x, weights)

        f = dt.jit(plain) if captured else plain
        g = torch.nn.functional.scaled_dot_product_attention
        return {
            OURS: lambda: dt.evaluate(*f(*ours)),
            "torch": lambda: torch.autograd.grad(g(*theirs, is_causal=True), theirs, their_weights),
        }

    return make


def rows() -> list[Row]:
    """Eager and captured."""
    made = []
    for captured in (False, True):
        how = ", captured" if captured else ""
        made += [
            Row(f"attention, causal, forward{how}", _there(captured), {"torch": 1.5}),
            Row(f"attention, causal, both ways{how}", _there_and_back(captured), {"torch": 1.0}),
        ]
    return made
