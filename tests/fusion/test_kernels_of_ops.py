"""The arguments with which ops build their own kernels."""

from __future__ import annotations

from dovetail.dtypes import float32
from dovetail.fusion.kernels_of_ops import BLOCKS_PER_UNIT, OpLaunches, OpSite
from dovetail.fusion.plan import MemoryOperand
from dovetail.layout import contiguous


def test_scalar_integer_differs_from_a_size_of_the_same_name() -> None:
    operands = [
        MemoryOperand(0, contiguous((5, 7)), float32),
        MemoryOperand(1, contiguous((5, 7)), float32),
    ]
    site = OpSite("any", operands, (float32,), None, scalar=0, node=0)
    sizes, number = site.size(0, 0), site.number("n", 900)
    assert sizes is not number and site.number("n", 900) is number
    assert site._emitter.ints == [5, 900]


def test_rows_are_split_into_enough_blocks_to_fill_the_device() -> None:
    launches = object.__new__(OpLaunches)
    launches.concurrency = 4
    n, busy = 1 << 24, 4 * BLOCKS_PER_UNIT
    assert launches.block((1,), n, 1) == max(n // busy, 1 << 12)
    assert launches.block((2, 2), n, 1) == n // (busy // 4)
    assert launches.block((busy + 1, 3), n, 1) == n, "there are enough of them: none is cut"
    assert launches.block((0,), n, 1) == launches.block((1,), n, 1)
    assert launches.block((1,), 100, 7) == 10, "no more blocks than a block has elements"
    assert launches.block((1,), 100, 64) == 64
