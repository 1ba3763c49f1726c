"""What the programs beside their peers have in common: who is right, and who is how quick.

A program gives `beside` two functions that compute the same, ours and the peer's. It compares what
they return, runs them in turns, and prints one line: both times and their ratio.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np

Work = Callable[[], Any]  # a result: a tensor, an array, a number, or several of them
PAUSE = 0.01  # seconds before a turn: threads of the other one may still be spinning


@dataclass(frozen=True)
class Asked:
    """What the command line of a program asks for."""

    small: bool = False  # less work: a second
    out: Path | None = None  # where a picture goes
    rounds: int = 5
    threads: int = 2

    def size(self, whole: int, small: int) -> int:
        """One of two sizes."""
        return small if self.small else whole


def asked(description: str | None, arguments: Sequence[str] | None = None) -> Asked:
    """Reads the command line: --small, --out FILE, --rounds N and --threads N."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--small", action="store_true", help="less work: about a second")
    parser.add_argument("-o", "--out", type=Path, help="write a picture to this file (PNG)")
    parser.add_argument("--rounds", type=int, default=0, help="turns of each (5; 2 with --small)")
    parser.add_argument("--threads", type=int, default=2, help="of each side (%(default)s)")
    found = parser.parse_args(arguments)
    limit(found.threads)
    return Asked(found.small, found.out, found.rounds or (2 if found.small else 5), found.threads)


def limit(threads: int) -> None:
    """Has each side take so many threads: libraries are loaded when this is known."""
    dt.set_num_threads(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        print("NumPy's BLAS has all threads: pip install threadpoolctl", file=sys.stderr)
    else:
        threadpool_limits(threads)


def values(result: Any) -> list[np.ndarray]:
    """A result as arrays."""
    if isinstance(result, list | tuple):
        return [array for part in result for array in values(part)]
    if hasattr(result, "detach") and not isinstance(result, dt.Tensor):  # PyTorch's
        result = result.detach().numpy()
    return [result.numpy() if isinstance(result, dt.Tensor) else np.asarray(result)]


def finished(work: Work) -> float:
    """Seconds for one call, all of its work included."""
    begun = time.perf_counter()
    values(work())  # on the host: nothing is left pending, on either side
    return time.perf_counter() - begun


def agree(ours: Any, theirs: Any, rtol: float, atol: float) -> float:
    """The largest difference. Raises: AssertionError where it is more than the tolerance."""
    pairs = list(zip(values(ours), values(theirs), strict=True))
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
    return max(float(np.max(np.abs(np.subtract(a, b, dtype="f8")), initial=0)) for a, b in pairs)


def beside(
    name: str, ours: Work, peer: str, theirs: Work, asked: Asked,
    rtol: float = 1e-5, atol: float = 1e-6,
) -> float:  # fmt: skip
    """Compares two functions and prints a line; gives our time by the peer's."""
    apart = agree(ours(), theirs(), rtol, atol)
    times: dict[Work, list[float]] = {ours: [], theirs: []}
    for _ in range(asked.rounds):
        for work, taken in times.items():
            time.sleep(PAUSE)
            taken.append(finished(work))
    we, they = (1e3 * min(taken) for taken in times.values())
    print(
        f"{name}: dovetail {we:.2f} ms, {peer} {they:.2f} ms, ratio {we / they:.2f} "
        f"({asked.threads} threads); they agree, {apart:.1e} apart"
    )
    return we / they


def picture(asked: Asked, draw: Callable[[Any], None], size: tuple[float, float] = (5, 4)) -> None:
    """Where a picture is asked for, has `draw` draw on axes, and writes it."""
    if asked.out is None:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, dpi=80, layout="constrained")
    draw(figure.add_subplot())
    figure.savefig(asked.out)
    print(f"Picture: {asked.out}")
