"""What a softmax becomes: one kernel of three loops. Run: python examples/explain_softmax.py"""

from __future__ import annotations

import dovetail as dt
from dovetail import Tensor


def softmax(x: Tensor) -> Tensor:
    """Each row scaled so that it is positive and sums to 1."""
    e = dt.exp(x - dt.max(x, axis=1, keepdims=True))
    return e / dt.sum(e, axis=1, keepdims=True)


def main(device: str | None = None) -> Tensor:
    """Explains, then computes, a softmax of 512 rows."""
    x = dt.reshape(dt.arange(512 * 100, dtype=dt.float32, device=device), (512, 100)) / 1000
    dt.evaluate(x)
    y = softmax(x)
    print(dt.explain(y))
    with dt.profile() as p:
        dt.evaluate(y)
    print(p.summary())
    return y


if __name__ == "__main__":
    main()
