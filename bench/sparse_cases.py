"""The sparse cases of `run.py`: a square matrix, one element in a thousand stored.

SciPy says what is right. PyTorch and PyData/sparse get the same triples.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import dovetail as dt
import numpy as np
from comparison_cases import Array, Case, Foreign, Work, peer, peers

SIDE, DENSITY, COLUMNS = 20_000, 1e-3, 32


class Triples:
    """A sparse result: what gives its (rows, columns, values), once somebody checks them."""

    def __init__(self, give: Callable[[], Sequence[Foreign]]) -> None:
        self.give = give

    def __array__(self, dtype: Foreign = None, copy: Foreign = None) -> Array:
        row, column, values = (np.asarray(a, "f8") for a in self.give())
        return np.stack([row, column, values])[:, np.lexsort((column, row))]


def _triples(n: int, repeated: float = 0.0) -> list[Array]:
    """Rows, columns and values in no order, a part of the positions twice."""
    rng = np.random.default_rng(7)
    count = int(n * n * DENSITY)
    at = rng.choice(n * n, count, replace=False)
    at = rng.permutation(np.concatenate([at, rng.choice(at, int(count * repeated))]))
    return [at // n, at % n, rng.normal(size=at.size).astype("f4")]


def _ours(rows: Array, columns: Array, values: Array, n: int) -> Foreign:
    at = dt.asarray(np.stack([rows, columns]))
    return dt.sparse_coo_tensor(at, dt.asarray(values), (n, n), check_invariants=False)


def _scipy(rows: Array, columns: Array, values: Array, n: int) -> Foreign:
    return peer("scipy.sparse").coo_array((values, (rows, columns)), (n, n))


def _torch(rows: Array, columns: Array, values: Array, n: int) -> Foreign:
    torch = peer("torch")
    at = torch.from_numpy(np.stack([rows, columns]))
    return torch.sparse_coo_tensor(at, torch.from_numpy(values), (n, n), check_invariants=False)


def _torch_dense(a: Array) -> Foreign:
    return peer("torch").from_numpy(a)


def _pydata(rows: Array, columns: Array, values: Array, n: int) -> Foreign:
    return peer("sparse").COO(np.stack([rows, columns]), values, (n, n))


def times_dense(n: int) -> Case:
    """A coalesced matrix times a dense one of 32 columns."""

    def inputs() -> list[Array]:
        dense = np.random.default_rng(8).normal(size=(n, COLUMNS)).astype("f4")
        return [*_triples(n), dense]

    def make(
        build: Callable[..., Foreign], ready: Callable[[Foreign], Foreign], dense: Foreign
    ) -> Foreign:
        def contestant(rows: Array, columns: Array, values: Array, right: Array) -> Work:
            x, y = ready(build(rows, columns, values, n)), dense(right)
            return lambda: _looked_at(x @ y)

        return contestant

    return Case(
        f"sparse {n} x {n} @ dense, {COLUMNS} columns", peers(scipy=1.0, torch=4.0, sparse=6.0),
        inputs,
        {
            "dovetail": make(_ours, lambda x: x.coalesce(), dt.asarray),
            "scipy": make(_scipy, lambda x: x.tocsr(), np.asarray),
            "torch": make(_torch, lambda x: x.coalesce(), _torch_dense),
            "sparse": make(_pydata, lambda x: x, np.asarray),
        },
        tolerance=1e-4,
    )  # fmt: skip


def _looked_at(x: Foreign) -> Foreign:
    if isinstance(x, dt.Tensor):
        dt.evaluate(x)
    return x


def coalesce(n: int) -> Case:
    """Shuffled triples, of which 20 % are there twice, brought into order and added."""

    def dovetail(rows: Array, columns: Array, values: Array) -> Work:
        x = _ours(rows, columns, values, n)
        at, v = x.indices(), x.values()

        def work() -> Triples:
            made = dt.sparse_coo_tensor(at, v, (n, n), check_invariants=False).coalesce()
            dt.evaluate(made)
            return Triples(lambda: (*made.indices().numpy(), made.values().numpy()))

        return work

    def scipy(rows: Array, columns: Array, values: Array) -> Work:
        def work() -> Triples:
            made = _scipy(rows, columns, values, n).tocsr()
            made.sum_duplicates()
            return Triples(lambda: (*made.tocoo().coords, made.data))

        return work

    def torch(rows: Array, columns: Array, values: Array) -> Work:
        x = _torch(rows, columns, values, n)
        at, v = x._indices(), x._values()

        def work() -> Triples:
            made = peer("torch").sparse_coo_tensor(at, v, (n, n), check_invariants=False).coalesce()
            return Triples(lambda: (*made.indices().numpy(), made.values().numpy()))

        return work

    return Case(
        f"coalesce of {n} x {n}, 20 % twice", peers(torch=5.0, scipy=0.7),
        lambda: _triples(n, 0.2), {"dovetail": dovetail, "scipy": scipy, "torch": torch},
        tolerance=1e-4,
    )  # fmt: skip


def _plus_transpose(x: Foreign) -> Foreign:
    """Of a tensor that is new, so that nothing about its order is known from the last time."""
    new = dt.sparse_coo_tensor(
        x.indices(), x.values(), x.shape, is_coalesced=True, check_invariants=False
    )
    return new + new.T


def plus_transpose(n: int) -> Case:
    """A sparse matrix and its transpose added; the result is in order."""

    def make(build: Callable[..., Foreign], ready: Foreign, add: Foreign, give: Foreign) -> Foreign:
        def contestant(rows: Array, columns: Array, values: Array) -> Work:
            x = ready(build(rows, columns, values, n))

            def work() -> Triples:
                made = _looked_at(add(x))
                return Triples(lambda: give(made))

            return work

        return contestant

    contestants: Mapping[str, Callable[..., Work]] = {
        "dovetail": make(_ours, lambda x: x.coalesce(), _plus_transpose,
                         lambda x: (*x.indices().numpy(), x.values().numpy())),
        "scipy": make(_scipy, lambda x: x.tocsr(), lambda x: x + x.T,
                      lambda x: (*x.tocoo().coords, x.tocoo().data)),
        "torch": make(_torch, lambda x: x.coalesce(), lambda x: (x + x.t()).coalesce(),
                      lambda x: (*x.indices().numpy(), x.values().numpy())),
        "sparse": make(_pydata, lambda x: x, lambda x: x + x.T, lambda x: (*x.coords, x.data)),
    }  # fmt: skip
    return Case(
        f"sparse + its transpose, {n} x {n}", peers(torch=10.0, sparse=10.0, scipy=0.5),
        lambda: _triples(n), contestants, tolerance=1e-4,
    )  # fmt: skip


def sparse_cases(shrink: int = 1) -> list[Case]:
    """Every timed case. `shrink` > 1 divides the side."""
    n = max(SIDE // shrink, 60)
    return [times_dense(n), coalesce(n), plus_transpose(n)]
