"""Small statements beside NumPy and PyTorch: `python bench/small_work.py`.

Each round records and evaluates the statement, and drops its result. The contestants take turns,
with two threads each. "jit" is the time per statement of a captured function that contains the
statement 50 times. A ratio is the median, over the rounds, of a peer's time divided by dovetail's:
above 1 dovetail is faster.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from comparison import seconds_text
from comparison_cases import Array, Foreign, peer
from sweep import repeats_of, timed

REPEATED = 50  # statements in one call of a captured function
PAUSE = 2e-3  # seconds before a turn: the last contestant's threads may still be spinning
SAMPLE = 5e-3  # seconds of a turn

Work = Callable[[], Any]
Statement = Callable[..., Any]  # of a namespace and arrays
Asked = Mapping[str, float]  # "numpy", "torch", "jit/numpy", "jit/torch": the least ratio


@dataclass
class Row:
    """One statement, what it works on, and what is asked of it.

    `theirs`: PyTorch's, where it is another. `once`: captured by itself, not 50 times.
    """

    name: str
    statement: Statement
    operands: Sequence[Array]
    asked: Asked
    theirs: Statement | None = None
    once: bool = False
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)


# --- statements -----------------------------------------------------------------------------------


def _random(*shape: int, dtype: str = "float32") -> Array:
    return np.random.default_rng(len(shape)).random(shape).astype(dtype)


def _put(xp: Foreign, a: Foreign) -> None:
    a[5] = 1.0


def _put_many(xp: Foreign, a: Foreign, places: Foreign, values: Foreign) -> None:
    a[places] = values


def _add_to(xp: Foreign, a: Foreign, b: Foreign) -> None:
    a += b


def _stencil(xp: Foreign, a: Foreign, b: Foreign) -> None:
    b[1:-1] = 0.33333 * (a[:-2] + a[1:-1] + a[2:])


def _relax(xp: Foreign, u: Foreign) -> None:
    u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])


def _softmax(xp: Foreign, m: Foreign) -> Foreign:
    if xp is not np:
        return xp.softmax(m, -1)
    e = np.exp(m - m.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _train(xp: Foreign, x: Foreign, t: Foreign, *weights: Foreign) -> Foreign:
    """A step of gradient descent of a network of two layers; gives the loss."""
    w1, b1, w2, b2 = weights
    for w in weights:
        w.requires_grad_(True)
    loss = ((xp.relu(x @ w1 + b1) @ w2 + b2 - t) ** 2).mean()
    loss.backward()
    with xp.no_grad():
        for w in weights:
            w -= 0.01 * w.grad
            w.grad = None
    return loss


def _network(batch: int) -> list[Array]:
    return [_random(batch, 64), _random(batch, 10), _random(64, 128) - 0.5, _random(128),
            _random(128, 10) - 0.5, _random(10)]  # fmt: skip


def _network_row(batch: int, asked: Asked) -> Row:
    name = f"training step, 64-128-10, batch {batch}"
    return Row(name, _train, _network(batch), {"torch": asked["torch"], "jit/torch": asked["jit"]},
               once=True)  # fmt: skip


def rows() -> list[Row]:
    """All of them, with operands of 1 K elements unless the name says otherwise."""
    x, y = _random(1000), _random(1000)
    wide = _random(3200, dtype="float64")
    places = np.random.default_rng(1).integers(0, 1000, 200)
    matrix, eager = _random(32, 32), {"torch": 1.0}
    return [
        Row("x + y", lambda xp, x, y: x + y, [x, y], {"numpy": 0.45, "torch": 1}),
        Row("chain of 7", lambda xp, x, y: ((x * y + x) * 2.0 - y) * x + 1.0 - y, [x, y],
            {"numpy": 1, "torch": 3}),
        Row("x += y", _add_to, [x, y], {}),
        Row("a[1:-1]", lambda xp, a: a[1:-1], [x], {"numpy": 0.5, "torch": 2}),
        Row("float(a[i])", lambda xp, a: float(a[5]), [x], eager),
        Row("a[i] = 1.0", _put, [x], eager),
        Row("stencil, 3200 float64", _stencil, [wide, wide], {"numpy": 1, "jit/numpy": 3}),
        Row("stencil in place, 150 x 150", _relax, [_random(150, 150)],
            {"numpy": 1.5, "jit/numpy": 4}),
        Row("concat", lambda xp, x, y: xp.concat([x, y]), [x, y], eager),
        Row("x[places]", lambda xp, x, p: x[p], [x, places], eager),
        Row("x[mask]", lambda xp, x, m: x[m], [x, x > 0.5], eager),
        Row("x[places] = y", _put_many, [x, places, y[:200]], eager),
        Row("matrix @ vector", lambda xp, m, v: m @ v, [matrix, matrix[0]], eager),
        Row("matrix @ matrix, 32 x 32", lambda xp, m: m @ m, [matrix], eager),
        Row("softmax, 32 x 32", _softmax, [matrix], eager),
        Row("sort", lambda xp, x: xp.sort(x), [x], eager, lambda xp, x: xp.sort(x)[0]),
        _network_row(8, {"torch": 1, "jit": 3}),
        _network_row(256, {"torch": 1.2, "jit": 2}),
    ]  # fmt: skip


# --- measuring ------------------------------------------------------------------------------------


def _works(row: Row) -> dict[str, tuple[Work, list[Foreign]]]:
    """What each contestant does, and its own operands; all have the same bytes."""
    torch = peer("torch")

    def operands(put: Callable[[Array], Foreign]) -> list[Foreign]:
        return [put(a.copy()) for a in row.operands]

    ours, captured = operands(dt.asarray), operands(dt.asarray)
    arrays, tensors = operands(np.asarray), operands(torch.from_numpy)

    def record() -> Foreign:
        result = row.statement(dt, *ours)
        if isinstance(result, dt.Tensor):
            dt.evaluate(result)
        return result

    def repeated(*given: dt.Tensor) -> Foreign:
        for _ in range(1 if row.once else REPEATED):
            result = row.statement(dt, *given)
        return result

    found: dict[str, tuple[Work, list[Foreign]]] = {"dovetail": (record, ours)}
    if any(name.startswith("jit/") for name in row.asked):
        replay = dt.jit(repeated)
        found["jit"] = (lambda: replay(*captured)), captured
    if row.statement is not _train:
        found["numpy"] = (lambda: row.statement(np, *arrays)), arrays
    found["torch"] = (lambda: (row.theirs or row.statement)(torch, *tensors)), tensors
    return found


def check(row: Row) -> None:
    """Raises ArithmeticError where dovetail gives or writes something else than its peers."""
    works = _works(row)
    seen: dict[str, list[Array]] = {}
    for name, (work, operands) in works.items():
        for _ in range(1 if name == "jit" or row.once else REPEATED):
            result = work()
        everything = [*operands, *([] if result is None else [result])]
        seen[name] = [np.asarray(a.detach() if hasattr(a, "detach") else a) for a in everything]
    truth = seen.pop("numpy" if "numpy" in seen else "torch")
    for name in seen.keys() & {"dovetail", "jit"}:
        for found, wanted in zip(seen[name], truth, strict=True):
            if found.shape != wanted.shape or not np.allclose(found, wanted, rtol=1e-3):
                raise ArithmeticError(f"{name} of dovetail computed {row.name} wrongly")


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's seconds and ratios."""
    check(row)
    works = {name: work for name, (work, _) in _works(row).items()}
    each = {name: 1 if name != "jit" or row.once else REPEATED for name in works}
    repeats = {name: repeats_of(work, SAMPLE) for name, work in works.items()}
    times: dict[str, list[float]] = {name: [] for name in works}
    order = list(works)
    gc.collect()
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(works[name], 2)
            times[name].append(timed(works[name], repeats[name]) / each[name])
    row.seconds = {name: statistics.median(t) for name, t in times.items()}
    for name in ("numpy", "torch"):
        for ours in ("dovetail", "jit"):
            if name in times and ours in times:
                pairs = zip(times[name], times[ours], strict=True)
                key = name if ours == "dovetail" else f"jit/{name}"
                row.ratios[key] = statistics.median(theirs / mine for theirs, mine in pairs)


# --- showing --------------------------------------------------------------------------------------


def table(done: Sequence[Row]) -> list[list[str]]:
    """Headings and rows."""
    contestants, ratios = (
        ("dovetail", "jit", "numpy", "torch"),
        ("numpy", "torch", "jit/numpy", "jit/torch"),
    )
    made = [["statement", *contestants, *(f"x {r}" for r in ratios), "asked", "met"]]
    for row in done:
        times = [seconds_text(row.seconds[c]) if c in row.seconds else "" for c in contestants]
        found = [f"{row.ratios[r]:.2f}" if r in row.ratios else "" for r in ratios]
        asked = ", ".join(f"{least:g} x {name}" for name, least in row.asked.items())
        met = all(row.ratios[name] >= least for name, least in row.asked.items())
        made.append([row.name, *times, *found, asked, ("yes" if met else "no") if asked else ""])
    return made


def main() -> int:
    """Measures and prints; 0."""
    return measured("small work", __doc__ or "", rows, measure, table, rounds=21)


if __name__ == "__main__":
    sys.exit(main())
