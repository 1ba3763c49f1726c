"""Elements of a reduction that later loops over the same row reuse instead of computing them."""

from __future__ import annotations

from collections.abc import Sequence

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.extend import Kernel, KernelBuilder, Value, load
from dovetail.ir.language import Store, map_loop, reduce_loop
from dovetail.ops.table import TABLE
from dovetail_cpu_llvm.row_reuse import REUSE_ELEMENTS_MAX
from dovetail_cpu_llvm.schedule import schedule
from machine_code import compiler_for, run

DTYPES = (dt.float32, dt.float64)


def softmax(
    dtype: dt.DType = dt.float32,
    op: str = "exp",
    stores_between: bool = False,
    combine: str = "add",
) -> Kernel:
    """Build out[i, k] = f(x[i, k]) / sum of f(x[i, k]) along k, for an op f of the table.

    combine: another reduction instead of the sum; of "argmax" the number.
    """
    b = KernelBuilder("softmax")
    x, out, sums = b.buffer("x", dtype, "r"), b.buffer("out", dtype, "w"), b.buffer("s", dtype, "w")
    i, n = b.axis(b.int("rows")), b.int("n")

    def element(k: Value) -> Value:
        return TABLE[op].expression(load(x, i * n + k))

    def elements(k: Value) -> Sequence[Value]:
        return (element(k), k) if combine == "argmax" else (element(k),)

    total = reduce_loop(combine, 0, n, elements)[0]
    if stores_between:
        b.store(sums, i, total)
    b.effect(map_loop(0, n, lambda k: [Store(out, i * n + k, element(k) / total)]))
    return b.build()


def reuses(kernel: Kernel) -> int:
    """Return how many values of a kernel are reused."""
    return len(schedule(kernel, 64).reuses)


@pytest.mark.parametrize(
    ("op", "combine"), [("exp", "add"), ("tanh", "max"), ("sin", "add"), ("exp", "argmax")]
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("native", (16, 32, 64))
def test_reused_elements_have_reference_bits_at_any_length(
    native: int, dtype: dt.DType, op: str, combine: str
) -> None:
    program = compiler_for(native).compile(softmax(dtype, op, combine=combine))
    assert len(program.schedule.reuses) == 1
    rng = np.random.default_rng(5)
    for rows, n in ((3, 0), (3, 1), (5, 31), (4, 32), (3, 100), (2, 4099), (1, REUSE_ELEMENTS_MAX),
                    (2, REUSE_ELEMENTS_MAX + 1)):  # fmt: skip
        x = rng.standard_normal(rows * n).astype(dtype.name)
        x[: n // 7], x[5:6] = 3e5, np.nan
        outs = np.full((2, rows * n + 1), 7, x.dtype)
        sums, ints = np.zeros(rows, x.dtype), {"rows": rows, "n": n}
        arrays = [{"x": x, "out": out, "s": sums} for out in outs]
        run(program, arrays[0], ints, (rows,))
        kernel = program.kernel
        interpret(kernel, [arrays[1][b.name] for b in kernel.buffers],
                  [ints[name] for name in kernel.ints], [], (rows,))  # fmt: skip
        assert outs[0].tobytes() == outs[1].tobytes(), n


def test_cheap_elements_are_not_kept() -> None:
    assert reuses(softmax(op="exp")) == 1
    assert reuses(softmax(op="square")) == 0


def test_elements_are_not_kept_across_a_store() -> None:
    """Memory that the elements come from could be written in between."""
    assert reuses(softmax(stores_between=True)) == 0
