"""What ops with kernels of their own are given to build them with."""

from __future__ import annotations

from dovetail.dtypes import float32
from dovetail.fusion.kernels_of_ops import OpSite
from dovetail.fusion.plan import Operand
from dovetail.layout import contiguous


def test_a_number_is_another_integer_than_a_size_of_the_same_name() -> None:
    operands = [Operand(0, contiguous((5, 7)), float32), Operand(1, contiguous((5, 7)), float32)]
    site = OpSite("any", operands, (float32,), None, scalar=0, node=0)
    sizes, number = site.size(0, 0), site.number("n", 900)
    assert sizes is not number and site.number("n", 900) is number
    assert site._emitter.ints == [5, 900]
