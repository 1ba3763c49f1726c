"""Distributions beside PyTorch's: densities and samples of a million variables.

`python bench/networks_distributions.py`; rows are in the manner of those of `own_work.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import dovetail as dt
import numpy as np
from comparison_cases import peer
from turns import OURS, Row, Work, measure

N = 1_000_000


def _row(name: str, make: Callable[[Any, Callable[[Any], Any]], Work], draws: bool = False) -> Row:
    """`make(distributions, tensor)` gives what is timed, of arrays brought to their library."""

    def works() -> dict[str, Work]:
        torch = peer("torch")
        ours = make(dt.distributions, dt.asarray)

        def run() -> Any:
            found = ours()
            dt.evaluate(found)
            return found

        return {OURS: run, "torch": make(torch.distributions, torch.from_numpy)}

    def agree(made: Mapping[str, Work]) -> None:
        have, want = (np.asarray(made[name]()) for name in (OURS, "torch"))
        if draws:
            have, want = have.mean(), want.mean()
        if not np.allclose(have, want, rtol=2e-2 if draws else 1e-4, atol=1e-4):
            raise ArithmeticError(f"{name}: something else than torch.distributions gives")

    return Row(name, works, {"torch": 1.0}, agree)


def rows() -> list[Row]:
    """All of them."""
    x = np.random.default_rng(0).standard_normal(N).astype("f4")
    shape = np.full(N, 2.5, "f4")
    kinds = np.random.default_rng(1).random((10_000, 100)).astype("f4") + 0.1

    def normal(D: Any, tensor: Callable[[Any], Any]) -> Work:
        value, loc = tensor(x), tensor(x * 0.5)
        return lambda: D.Normal(loc, 1.5).log_prob(value)

    def gamma(D: Any, tensor: Callable[[Any], Any]) -> Work:
        p = D.Gamma(tensor(shape), 1.0)
        return lambda: p.sample()

    def beta(D: Any, tensor: Callable[[Any], Any]) -> Work:
        p = D.Beta(tensor(shape), 1.0)
        return lambda: p.sample()

    def poisson(D: Any, tensor: Callable[[Any], Any]) -> Work:
        p = D.Poisson(tensor(shape))
        return lambda: p.sample()

    def categorical(D: Any, tensor: Callable[[Any], Any]) -> Work:
        p = D.Categorical(tensor(kinds))
        return lambda: p.log_prob(p.sample((10,))).mean()

    return [
        _row("Normal(loc, 1.5).log_prob, 1 M", normal),
        _row("Gamma(2.5, 1).sample, 1 M", gamma, True),
        _row("Beta(2.5, 1).sample, 1 M", beta, True),
        _row("Poisson(2.5).sample, 1 M rates", poisson, True),
        _row("Categorical of 100 kinds, sample and log_prob, 100 K", categorical, True),
    ]


if __name__ == "__main__":
    for row in rows():
        measure(row, 5)
        seconds = ", ".join(f"{name} {1e3 * s:.2f} ms" for name, s in row.seconds.items())
        print(f"{row.name}: {seconds}, ratio {row.ratio('torch'):.2f}")
