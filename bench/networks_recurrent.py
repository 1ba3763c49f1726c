"""An LSTM beside PyTorch's: 128 features and states, 64 steps, a batch of 32.

Rows for bench/networks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

STEPS, BATCH, SIZE = 64, 32, 128


def _models(kind: str) -> tuple[Any, Any, dt.Tensor, Any]:
    """The same layer of both, and the same input."""
    torch = peer("torch")
    theirs, ours = getattr(torch.nn, kind)(SIZE, SIZE), getattr(dt.nn, kind)(SIZE, SIZE)
    ours.load_state_dict({k: dt.asarray(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(STEPS, BATCH, SIZE)).astype("f")
    return ours, theirs, dt.asarray(x), torch.tensor(x)


def _there(kind: str, captured: bool) -> Callable[[], dict[str, Work]]:
    def make() -> dict[str, Work]:
        ours, theirs, x, its = _models(kind)
        torch = peer("torch")

        def plain(x: dt.Tensor) -> Any:
            with dt.no_grad():
                return ours(x)[0]

        def of_torch() -> None:
            with torch.no_grad():
                theirs(its)

        f = dt.jit(plain) if captured else plain
        return {OURS: lambda: dt.evaluate(f(x)), "torch": of_torch}

    return make


def _there_and_back(kind: str, captured: bool) -> Callable[[], dict[str, Work]]:
    def make() -> dict[str, Work]:
        ours, theirs, x, its = _models(kind)
        torch = peer("torch")

        def plain(x: dt.Tensor) -> Any:
            return dt.grad(ours(x)[0].sum(), [*ours.parameters()])

        f = dt.jit(plain) if captured else plain
        return {
            OURS: lambda: dt.evaluate(*f(x)),
            "torch": lambda: torch.autograd.grad(theirs(its)[0].sum(), [*theirs.parameters()]),
        }

    return make


def rows() -> list[Row]:
    """Eager and captured; asked for is the LSTM, captured."""
    made = []
    for kind in ("LSTM", "GRU"):
        for captured in (False, True):
            how = ", captured" if captured else ""
            asked = {"torch": 1.0} if captured and kind == "LSTM" else {}
            made += [
                Row(f"{kind} {SIZE}, {STEPS} steps, forward{how}", _there(kind, captured), {}),
                Row(
                    f"{kind} {SIZE}, {STEPS} steps, both ways{how}",
                    _there_and_back(kind, captured), asked,
                ),
            ]  # fmt: skip
    return made
