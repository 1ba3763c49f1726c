"""Complex numbers, transforms, matrices, counts and ranks: `python bench/numeric_surface.py`.

Each row is computed as in a user's program, and results are freed each time. The contestants take
turns, with two threads each; SciPy's transforms have two workers. A time is the least of all
rounds. A ratio is a peer's time divided by dovetail's: above 1 dovetail is faster.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dovetail as dt
import numpy as np
from benchmarks_page import measured
from comparison import seconds_text
from comparison_cases import THREADS, Array, Foreign, peer
from sweep import timed

PAUSE = 2e-3  # seconds before a turn: the last contestant's threads may still be spinning
PEERS = ("numpy", "scipy", "torch")
M = 1_000_000

Work = Callable[[], Any]
Asked = Mapping[str, float]  # a peer, or several as "scipy|torch" (the fastest): the least ratio


@dataclass
class Row:
    """Something to compute. `works`: by contestant, of its module and arrays."""

    name: str
    operands: Sequence[Array]
    works: Mapping[str, Callable[..., Foreign]]
    asked: Asked
    seconds: dict[str, float] = field(default_factory=dict)

    def ratio(self, peers: str) -> float:
        """The time of the fastest of these by ours."""
        return min(self.seconds[p] for p in peers.split("|")) / self.seconds["dovetail"]


# --- rows -----------------------------------------------------------------------------------------


def _normal(*shape: int, dtype: str = "float32") -> Array:
    rng = np.random.default_rng(len(shape))
    found = rng.standard_normal(shape)
    if dtype[0] == "c":
        found = found + 1j * rng.standard_normal(shape)
    return found.astype(dtype)


def _all(work: Callable[..., Foreign], *names: str) -> dict[str, Callable[..., Foreign]]:
    return dict.fromkeys(("dovetail", *(names or ("numpy", "torch"))), work)


def _transform(name: str, f: str, *shape: int, least: float = 1.0) -> Row:
    def work(xp: Foreign, a: Foreign) -> Foreign:
        more = {"workers": THREADS} if xp.__name__ == "scipy" else {}
        return getattr(xp.fft, f)(a, **more)

    x = _normal(*shape, dtype="complex64")
    return Row(name, [x], _all(work, "scipy", "torch"), {"scipy|torch": least})


def _matrix(f: str, operands: Sequence[Array], asked: Asked) -> Row:
    shape, dtype = operands[0].shape, operands[0].dtype
    name = f"{f}, {' x '.join(map(str, shape))} {dtype}"
    return Row(name, operands, _all(lambda xp, *a: getattr(xp.linalg, f)(*a)), asked)


def _matrices() -> list[Row]:
    one, lapack = _normal(1000, 1000, dtype="float64"), {"numpy": 0.95}
    even, right = one @ one.T + 1000 * np.eye(1000), _normal(1000, dtype="float64")
    many = _normal(100_000, 4, 4)
    positive = many @ many.transpose(0, 2, 1) + 4 * np.eye(4, dtype="float32")
    rows, small = [_matrix("solve", [one, right], lapack)], {"numpy": 10.0, "torch": 2.0}
    rows += [_matrix(f, [even], lapack) for f in ("cholesky", "qr", "svd", "eigh")]
    rows += [_matrix(f, [positive], small) for f in ("det", "inv", "cholesky")]
    return [*rows, _matrix("solve", [positive, many], small)]


def _counts() -> list[Row]:
    asked = {"numpy": 2.0, "torch": 1.0}
    x = _normal(10 * M)
    few = np.random.default_rng(0).integers(0, 1000, 10 * M)
    table = _normal(4096, 1024)
    rows = [
        Row("histogram, 10 M, 100 bins", [x], _all(lambda xp, x: xp.histogram(x, 100)), asked),
        Row("bincount, 10 M below 1000", [few], _all(lambda xp, x: xp.bincount(x)), asked),
        Row("median, 10 M", [x], _all(lambda xp, x: xp.median(x)), asked),
    ]
    along = _all(lambda xp, x: xp.quantile(x, 0.9, 1))
    return [*rows, Row("quantile, 4096 x 1024 along rows", [table], along, asked)]


def _files() -> list[Row]:
    """A file of 1 GiB in the temporary folder (`TMPDIR`), beside the safetensors library."""
    folder = tempfile.TemporaryDirectory()

    def path(xp: Foreign) -> str:
        return f"{folder.name}/{xp.__name__}.safetensors"

    def saved(xp: Foreign, a: Foreign) -> Foreign:
        save = dt.save if xp is dt else lambda p, x: peer("safetensors.numpy").save_file(x, p)
        save(path(xp), {"x": a})
        return xp.asarray(os.path.getsize(path(xp)) / 1e9)

    def read(xp: Foreign, a: Foreign) -> Foreign:
        if not os.path.exists(path(xp)):
            saved(xp, a)
        return (dt.load if xp is dt else peer("safetensors.numpy").load_file)(path(xp))["x"]

    def loaded(xp: Foreign, a: Foreign) -> Foreign:
        return read(xp, a)[-1:]

    def summed(xp: Foreign, a: Foreign) -> Foreign:
        return xp.sum(read(xp, a))

    one, asked = np.arange(1 << 28, dtype="f4"), {"numpy": 0.9}
    works = {"save": saved, "load": loaded, "load and sum": summed}
    return [
        Row(f"{name}, 1 GiB safetensors", [one], _all(work, "numpy"), asked)
        for name, work in works.items()
    ]


def rows() -> list[Row]:
    """All of them."""
    a, b = (_normal(M, dtype="complex64") + k for k in (0, 1))
    chain = _all(lambda xp, a, b: ((((a * b + a) * b + a) * b + a) * b + a) * b + a)
    return [
        Row("complex chain of five, 1 M", [a, b], chain, {"numpy": 4.0, "torch": 2.0}),
        Row("abs, 1 M complex64", [a], _all(lambda xp, a: xp.abs(a)), {"numpy": 3.0}),
        Row("exp, 1 M complex64", [a], _all(lambda xp, a: xp.exp(a)), {"numpy": 3.0}),
        _transform("fft, 2^20", "fft", 1 << 20),
        _transform("fft2, 1024 x 1024", "fft2", 1024, 1024),
        _transform("fft, 4096 x 256", "fft", 4096, 256),
        _transform("fft, 10,007", "fft", 10_007, least=0.8),
        *_matrices(),
        *_counts(),
        *_files(),
    ]


# --- measuring ------------------------------------------------------------------------------------


def _contestants(row: Row) -> dict[str, Work]:
    found: dict[str, Work] = {}
    for name, work in row.works.items():
        xp = dt if name == "dovetail" else peer(name)
        if name == "scipy":
            peer("scipy.fft")
        put_there = {"dovetail": dt.asarray, "torch": getattr(xp, "from_numpy", None)}.get(name)
        given = [(put_there or np.asarray)(a.copy()) for a in row.operands]

        def run(work: Callable[..., Foreign] = work, xp: Foreign = xp, given: Any = given) -> Any:
            result = work(xp, *given)
            if xp is dt:
                dt.evaluate(*(result if isinstance(result, tuple) else (result,)))
            return result

        found[name] = run
    return found


def check(row: Row, works: Mapping[str, Work]) -> None:
    """Raises ArithmeticError where the sizes of results differ from the first peer's."""
    sizes = {}
    for name, work in works.items():
        result = work()
        parts = result if isinstance(result, tuple) else [result]
        sizes[name] = [float(np.linalg.norm(np.abs(np.asarray(p, "c16")))) for p in parts]
    ours = sizes.pop("dovetail")
    theirs = next(iter(sizes.values()))
    if not np.allclose(ours, theirs, rtol=1e-3):
        raise ArithmeticError(f"dovetail computed {row.name} wrongly: {ours}, not {theirs}")


def measure(row: Row, rounds: int) -> None:
    """Fills in the row's seconds."""
    peer("torch").set_num_threads(THREADS)
    works = _contestants(row)
    check(row, works)
    order, row.seconds = list(works), dict.fromkeys(works, float("inf"))
    gc.collect()
    for turn in range(rounds):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            time.sleep(PAUSE)
            timed(works[name], 1)
            row.seconds[name] = min(row.seconds[name], *(timed(works[name], 1) for _ in range(3)))


# --- showing --------------------------------------------------------------------------------------


def table(done: Sequence[Row]) -> list[list[str]]:
    """Headings and rows."""
    made = [["work", "dovetail", *PEERS, *(f"x {p}" for p in PEERS), "asked", "met"]]
    for row in done:
        times = [
            seconds_text(row.seconds[c]) if c in row.seconds else "" for c in ("dovetail", *PEERS)
        ]
        found = [f"{row.ratio(p):.2f}" if p in row.seconds else "" for p in PEERS]
        asked = ", ".join(f"{least:g} x {name}" for name, least in row.asked.items())
        met = all(row.ratio(name) >= least for name, least in row.asked.items())
        made.append([row.name, *times, *found, asked, "yes" if met else "no"])
    return made


def main() -> int:
    """Measures and prints; 0."""
    return measured("numeric surface", __doc__ or "", rows, measure, table, rounds=9)


if __name__ == "__main__":
    sys.exit(main())
