"""Layer norm beside PyTorch's: 8192 rows of 1024 float32.

Rows for bench/networks.py; the way back alone is what both ways take less the way there.
"""

from __future__ import annotations

from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work

ROWS, SIZE = 8192, 1024


def _given() -> tuple[list[dt.Tensor], list[Any], list[Any]]:
    """Input, weight and bias of both, that require gradients, and what flows back."""
    torch = peer("torch")
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=s).astype("f") for s in ((ROWS, SIZE), SIZE, SIZE, (ROWS, SIZE))]
    ours = [dt.asarray(a).requires_grad_() for a in arrays[:3]]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays[:3]]
    return ours, theirs, [dt.asarray(arrays[3]), torch.tensor(arrays[3])]


def _check(works: Any) -> None:
    """Both compute the same."""
    found, wanted = (works[name]() for name in (OURS, "torch"))
    for a, b in zip(found, wanted, strict=True):
        if not np.allclose(np.asarray(a), b.detach().numpy(), rtol=1e-3, atol=1e-3):
            raise ArithmeticError("layer norm: not what PyTorch gives")


def _there() -> dict[str, Work]:
    (x, w, b), theirs, _ = _given()
    torch = peer("torch")

    def ours() -> list[dt.Tensor]:
        with dt.no_grad():
            y = dt.nn.functional.layer_norm(x, (SIZE,), w, b)
            dt.evaluate(y)
        return [y]

    def of_torch() -> list[Any]:
        with torch.no_grad():
            return [torch.nn.functional.layer_norm(theirs[0], (SIZE,), *theirs[1:])]

    return {OURS: ours, "torch": of_torch}


def _there_and_back() -> dict[str, Work]:
    (x, w, b), theirs, (g, its) = _given()
    torch = peer("torch")

    def ours() -> Any:
        y = dt.nn.functional.layer_norm(x, (SIZE,), w, b)
        found = dt.grad(y, [x, w, b], g)
        dt.evaluate(y.detach(), *found)
        return found

    def of_torch() -> Any:
        y = torch.nn.functional.layer_norm(theirs[0], (SIZE,), *theirs[1:])
        return torch.autograd.grad(y, theirs, its)

    return {OURS: ours, "torch": of_torch}


def rows() -> list[Row]:
    """There, and there and back."""
    size = f"{ROWS} x {SIZE}"
    return [
        Row(f"layer norm {size}, forward", _there, {"torch": 2.0}, _check),
        Row(f"layer norm {size}, both ways", _there_and_back, {"torch": 1.5}, _check),
    ]
