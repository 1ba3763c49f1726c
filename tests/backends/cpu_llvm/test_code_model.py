"""The code model of a kernel: where its constants are, and how code refers to them."""

from __future__ import annotations

import dovetail as dt
import pytest
from dovetail.extend import KernelBuilder, load
from dovetail.ir.language import reduce_loop
from machine_code import compiler_for


@pytest.mark.parametrize(("loops", "is_small"), [(1, False), (2, True)])
def test_kernels_with_several_vectorized_loops_use_the_small_code_model(
    loops: int, is_small: bool
) -> None:
    b = KernelBuilder("sums")
    x, out = b.buffer("x", dt.float32, "r"), b.buffer("out", dt.float32, "w")
    i, n = b.axis(b.int("rows")), b.int("n")
    total = load(x, i * n)
    for _ in range(loops):
        center = total
        (total,) = reduce_loop("add", 0, n, lambda k, c=center: (load(x, i * n + k) - c) * 3.25)
    b.store(out, i, total)
    compiler = compiler_for(16)
    program = compiler.compile(b.build())
    large = compiler.object_code(program.source, compiler.machine)
    small = compiler.object_code(program.source, compiler.small_model_machine)
    assert large != small
    assert program.binary == (small if is_small else large)
