"""Your own kernels, transforms and sparse solvers: `python bench/own_work.py`.

The rows are in `bench/own_work*.py`. The contestants take turns, with two threads each, and
results are freed each time. A time is the median of all rounds. A ratio is the median, over the
rounds, of another contestant's time divided by dovetail's: above 1 dovetail is faster.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from turns import OURS, Row, Work, measure, table

M = 1_000_000


# --- elementwise functions of one's own -----------------------------------------------------------


@dt.elementwise
def silu(x: Any) -> Any:
    """x times its sigmoid."""
    return x * dt.sigmoid(x)


@dt.elementwise
def tanh(x: Any) -> Any:
    """One row."""
    return dt.tanh(x)


@dt.elementwise
def bell(x: Any, y: Any) -> Any:
    """Two operands."""
    return dt.exp(-x * x) * y + dt.sin(y)


BUILT_IN: dict[str, tuple[Any, Callable[..., Any], int]] = {
    "tanh": (tanh, dt.tanh, 1),
    "x * sigmoid(x)": (silu, lambda x: x * dt.sigmoid(x), 1),
    "exp(-x * x) * y + sin(y)": (bell, lambda x, y: dt.exp(-x * x) * y + dt.sin(y), 2),
}


def _forward(f: Callable[..., Any], args: Sequence[Any]) -> Work:
    return lambda: dt.evaluate(f(*args))


def _gradient(f: Callable[..., Any], args: Sequence[Any]) -> Work:
    def work() -> None:
        y = f(*args)
        dt.evaluate(y.detach(), *dt.grad(y.sum(), [*args]))

    return work


def _beside_built_in(name: str, n: int, way: Callable[..., Work]) -> Row:
    own, plain, arity = BUILT_IN[name]

    def make() -> dict[str, Work]:
        rng = np.random.default_rng(0)
        args = [dt.asarray(rng.normal(size=n).astype("float32")) for _ in range(arity)]
        if way is _gradient:
            args = [x.requires_grad_() for x in args]
        wanted = np.asarray(plain(*args).detach())
        if not np.array_equal(np.asarray(own(*args).detach()), wanted):
            raise ArithmeticError(f"{name}: not the bits of the same functions on tensors")
        return {OURS: way(own, args), "built-in": way(plain, args)}

    size = f"{n // M} M" if n >= M else f"{n // 1000} K"
    what = "forward" if way is _forward else "forward and gradient"
    return Row(f"@dt.elementwise {name}, {size}, {what}", make, {"built-in": 1.0})


def rows() -> list[Row]:
    """Those of this file, and of those beside it."""
    made = [
        _beside_built_in(name, n, way)
        for name in BUILT_IN for n in (1000, M) for way in (_forward, _gradient)
    ]  # fmt: skip
    return [*made, *_others()]


def _others() -> Iterator[Row]:
    for path in sorted(Path(__file__).parent.glob("own_work_*.py")):
        yield from importlib.import_module(path.stem).rows()


def main() -> int:
    """Measures and prints; 0."""
    return measured("own work", __doc__ or "", rows, measure, table, rounds=150)


if __name__ == "__main__":
    sys.exit(main())
