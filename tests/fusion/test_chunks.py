"""Reductions longer than a chunk of chunks."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import float32
from dovetail.engine.evaluate import plan_pending
from dovetail.fusion import split_rows
from dovetail.fusion.domain import Domain
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import CHUNK, load, reduce_loop


@pytest.mark.parametrize("columns", [1, 2])
def test_chunks_of_chunks_are_reduced_in_canonical_order(columns: int) -> None:
    n = CHUNK * CHUNK + 3 * CHUNK + 5
    x = np.random.default_rng(5).standard_normal((n, columns)).astype("f4")
    total = dt.sum(dt.asarray(x, device="cpu"), axis=0)
    names = [s.kernel.name for _, plan in plan_pending([total._expr]) for s in plan.steps]  # type: ignore[union-attr]
    assert names == ["sum_chunks", "sum_chunks_of_chunks", "sum_of_chunks"]
    b = KernelBuilder("sum")
    source, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    rows, width = b.int("n"), b.int("width")
    i = b.axis(width)
    b.store(out, i, reduce_loop("add", 0, rows, lambda k: load(source, k * width + i))[0])
    expected = np.zeros(columns, "f4")
    interpret(b.build(), [x.reshape(-1), expected], [n, columns], [], [columns])
    assert total.numpy().tobytes() == expected.tobytes()


def test_kernel_is_named_after_the_last_six_of_its_ops() -> None:
    x = dt.ones(4, device="reference")
    dt.evaluate(x)
    y = dt.sqrt(dt.abs(dt.exp(dt.tanh(dt.sin(dt.cos(dt.log1p(x)))))))
    [(_, plan)] = plan_pending([y._expr])
    assert [s.kernel.name for s in plan.steps] == ["cos_sin_tanh_exp_abs_sqrt"]


@pytest.mark.parametrize(
    "full, axes, cut",
    [
        ((1 << 19, 32), (0,), True),  # two vectors of columns are too little for two threads
        ((1 << 19, 1024), (0,), False),
        # 32 rows are enough, and can fuse with others into one kernel
        ((32, 1 << 19), (1,), False),
        ((4, 1 << 19), (1,), True),
        ((1 << 19, 32), (0, 1), True),
        ((4096, 32), (0,), False),  # a chunk each
        ((), (), False),
        ((1 << 19, 0), (0,), False),
    ],
)
def test_few_long_rows_or_columns_are_split(
    full: tuple[int, ...], axes: tuple[int, ...], cut: bool
) -> None:
    assert split_rows._keeps_device_idle(Domain(full, axes), concurrency=2) == cut


def test_columns_split_into_chunks_keep_their_bits() -> None:
    x = np.random.default_rng(0).normal(size=(9000, 5, 17)).astype("f4")
    mine, theirs = dt.asarray(x, device="cpu"), dt.asarray(x, device="reference")
    for function in (dt.sum, dt.max, dt.argmin, dt.var):
        a, b = function(mine, axis=0).numpy(), function(theirs, axis=0).numpy()
        assert a.tobytes() == b.tobytes(), function
