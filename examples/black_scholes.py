"""A call by Monte Carlo: ten million paths, and an error. Run: python examples/black_scholes.py"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from beside import Asked, asked, beside, picture

SPOT, STRIKE, RATE, SIGMA, YEARS = 100.0, 105.0, 0.02, 0.25, 1.0


def price(xp: Any, z: Any) -> tuple[Any, Any]:
    """What the right to buy at STRIKE is worth, and the standard error of that."""
    growth = (RATE - SIGMA**2 / 2) * YEARS + SIGMA * math.sqrt(YEARS) * z
    paid = math.exp(-RATE * YEARS) * xp.maximum(SPOT * xp.exp(growth) - STRIKE, 0)
    return xp.mean(paid), xp.std(paid) / math.sqrt(z.size)


def exact() -> float:
    """The price by Black and Scholes' formula."""
    d1 = math.log(SPOT / STRIKE) + (RATE + SIGMA**2 / 2) * YEARS
    d1 /= SIGMA * math.sqrt(YEARS)
    below = [0.5 * (1 + math.erf(d / math.sqrt(2))) for d in (d1, d1 - SIGMA * math.sqrt(YEARS))]
    return SPOT * below[0] - STRIKE * math.exp(-RATE * YEARS) * below[1]


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same paths here and in NumPy; both beside the formula."""
    options = asked(__doc__, arguments)
    z = dt.random.default_rng(7).normal((options.size(10_000_000, 200_000),))
    dt.evaluate(z)
    plain = z.numpy()
    beside("Black-Scholes", lambda: price(dt, z), "NumPy", lambda: price(np, plain), options, 1e-4)
    found, error = (x.item() for x in price(dt, z))
    print(f"price {found:.4f} +- {error:.4f}, by the formula {exact():.4f}")
    assert abs(found - exact()) < 4 * error
    ends = SPOT * dt.exp((RATE - SIGMA**2 / 2) * YEARS + SIGMA * z[:100_000])
    picture(options, lambda axes: axes.hist(ends.numpy(), bins=200))
    return options


if __name__ == "__main__":
    main()
