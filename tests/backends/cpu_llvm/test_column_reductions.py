"""Reductions along columns, in each order in which a panel's rows are read, at every width."""

from __future__ import annotations

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.extend import CHUNK, Kernel, KernelBuilder, load
from dovetail.ir.language import reduce_loop
from dovetail_cpu_llvm.reduction import GROUPED_ROWS, GROUPED_STATEMENTS_MAX
from machine_code import compiler_for, run

ROWS = (0, 1, 2, 3, 5, 8, 31, 32, 33, GROUPED_ROWS, GROUPED_ROWS + 1, CHUNK + 3)
COLUMNS = (1, 15, 63, 64, 65, 256, 259, 1100)


def column_reduction(combine: str, negations: int = 0) -> Kernel:
    """Build out[j] = the reduction of x[k, j] along k; each element is negated so many times."""
    b = KernelBuilder("columns")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    rows, columns = b.int("rows"), b.int("columns")
    j = b.axis(columns)

    def element(k):  # type: ignore[no-untyped-def]
        v = load(x, k * columns + j)
        for _ in range(negations):
            v = -v
        return v

    b.store(out, j, reduce_loop(combine, 0, rows, element)[0])
    return b.build()


@pytest.mark.parametrize("combine", ("add", "max"))
@pytest.mark.parametrize("native", (16, 32, 64))
def test_column_reduction_of_any_height_and_width_has_reference_bits(
    native: int, combine: str
) -> None:
    program, rng = compiler_for(native).compile(column_reduction(combine)), np.random.default_rng(3)
    for rows in ROWS:
        for columns in COLUMNS if rows < CHUNK else (1, 65, 259):
            x = rng.standard_normal((rows, columns), dtype=np.float32)
            x[:, ::3], x[rows // 2 :: 7, 1::5] = -0.0, np.nan
            x = x.ravel()
            results = np.full((2, columns), 7, np.float32)
            arrays = [{"x": x, "out": out} for out in results]
            ints = {"rows": rows, "columns": columns}
            run(program, arrays[0], ints, (columns,))
            interpret(program.kernel, [arrays[1][b.name] for b in program.kernel.buffers],
                      [ints[n] for n in program.kernel.ints], [], (columns,))  # fmt: skip
            assert results[0].tobytes() == results[1].tobytes(), (rows, columns)


def test_groups_of_lanes_are_rendered_for_short_bodies_only() -> None:
    """A group has one copy of the body for each of four lanes; others need two orders of rows."""
    loads = []
    for negations in (0, GROUPED_STATEMENTS_MAX):
        source = compiler_for(16).compile(column_reduction("add", negations)).source
        loads.append(source.count("call <16 x float> @llvm.masked.load"))
    assert loads == [5, 1]
