"""Poisson's equation on a square, by conjugate gradients.

Run: python examples/conjugate_gradients.py
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from beside import Asked, asked, beside, picture


def poisson(n: int) -> Any:
    """Each of n x n points by its four neighbours: SciPy's CSR, (n * n, n * n)."""
    beside_it = -np.ones(n - 1)
    line = scipy.sparse.diags_array([beside_it, 2 * np.ones(n), beside_it], offsets=[-1, 0, 1])
    one = scipy.sparse.eye_array(n)
    return (scipy.sparse.kron(line, one) + scipy.sparse.kron(one, line)).tocsr()


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same equations here and in SciPy; then products with the transpose of a matrix."""
    options = asked(__doc__, arguments)
    n = options.size(128, 24)
    theirs = poisson(n)
    ours = dt.sparse.from_scipy(theirs, layout=dt.sparse_csr)
    heat = np.zeros((n, n))
    heat[n // 4, n // 4], heat[n // 2, 3 * n // 4] = 1, -1
    b = dt.asarray(heat.ravel())
    beside(
        f"conjugate gradients, {n * n} unknowns",
        lambda: dt.sparse.linalg.cg(ours, b, rtol=1e-8).x,
        "SciPy",
        lambda: scipy.sparse.linalg.cg(theirs, heat.ravel(), rtol=1e-8)[0],
        options,
        rtol=1e-4, atol=1e-6,
    )  # fmt: skip
    beside(
        "A.T @ (A @ x), twenty times",
        lambda: there_and_back(ours, b),
        "SciPy",
        lambda: there_and_back(theirs, heat.ravel()),
        options,
        rtol=1e-9, atol=1e-9,
    )  # fmt: skip
    field = dt.sparse.linalg.cg(ours, b, rtol=1e-8).x.reshape((n, n))
    picture(options, lambda a: a.imshow(field, cmap="RdBu"))
    return options


def there_and_back(a: Any, x: Any) -> Any:
    """Twenty products with A and as many with its transpose."""
    for _ in range(20):
        x = a.T @ (a @ x) / 64
    return x


if __name__ == "__main__":
    main()
