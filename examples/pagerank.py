"""PageRank of a random web, a sparse matrix times a vector. Run: python examples/pagerank.py"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
import scipy.sparse
from beside import Asked, asked, beside, picture

FOLLOW = 0.85  # the chance that a reader takes a link, and does not open any page


def web(pages: int, links: int) -> Any:
    """In column j the chances with which a reader goes from page j to others; SciPy's CSR."""
    rng = np.random.default_rng(0)
    source = rng.integers(0, pages, links)
    target = (pages * rng.random(links) ** 3).astype(np.int64)  # small numbers are popular
    leaving = np.maximum(np.bincount(source, minlength=pages), 1)
    chance = (1 / leaving[source]).astype(np.float32)
    return scipy.sparse.coo_array((chance, (target, source)), (pages, pages)).tocsr()


def rank(matrix: Any, begin: Any, steps: int) -> Any:
    """The share of the time on each page; pages without links lead anywhere."""
    found = begin
    for _ in range(steps):
        flow = FOLLOW * (matrix @ found)
        found = flow + (1 - flow.sum()) / len(begin)
    return found


def main(arguments: Sequence[str] | None = None) -> Asked:
    """The same web here and in SciPy."""
    options = asked(__doc__, arguments)
    pages, steps = options.size(50_000, 2000), options.size(50, 10)
    theirs = web(pages, 10 * pages)
    ours = dt.sparse.from_scipy(theirs, layout=dt.sparse_csr)
    even = np.full(pages, 1 / pages, np.float32)
    begin = dt.asarray(even)
    beside(
        f"PageRank, {pages} pages, {theirs.nnz} links, {steps} steps",
        lambda: rank(ours, begin, steps),
        "SciPy",
        lambda: rank(theirs, even, steps),
        options,
        rtol=1e-3, atol=1e-8,
    )  # fmt: skip
    picture(options, lambda a: a.loglog(dt.sort(rank(ours, begin, steps), descending=True)))
    return options


if __name__ == "__main__":
    main()
