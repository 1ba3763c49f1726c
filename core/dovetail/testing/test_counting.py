"""Counting and selecting: the ops made of tables of counts, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from ..device_class import Device
from ..dtypes import DType, int64
from ..graph.expr import node, spec
from ..ops import sort as radix
from ..ops import table as ops
from ..ops.histogram import Bits
from ..tensor import tensor as T
from .cases import STORED, dense, flipped
from .kit import Kit
from .values import sample


@pytest.mark.parametrize("n", (0, 1, 7, 3000))
def test_count_values(kit: Kit, n: int) -> None:
    """Counts of a few integers agree; some never occur."""
    values = np.random.default_rng(n).integers(0, 40, n) // 2 * 2

    def make(on: Device) -> T.Tensor:
        x = dense(values, int64, on)
        return T.make(node(ops.COUNT_VALUES, (x._expr,), spec((41,), int64, on)))

    kit.agree(make, f"{n} values")


@pytest.mark.parametrize("d", STORED, ids=lambda d: d.name)
def test_select(kit: Kit, d: DType) -> None:
    """The elements that a sort would put at a rank: ties, infinities, both zeros."""
    bits = Bits(0, d.bits if d.kind != "f" else max(d.bits, 32))
    zero = d.min % (radix.key_dtype(d).max + 1) if d.kind == "i" else 0
    for shape, place, rank in (((1, 1), dense, 0), ((3, 60), flipped, 7), ((2, 60), dense, 59)):
        values = sample(d, shape, 1)

        def make(on: Device, v=values, p=place, k=rank) -> T.Tensor:  # type: ignore[no-untyped-def]  # the defaults
            x = p(v, d, on)
            tensor = spec(x.shape[:-1], d, on)
            return T.make(node(ops.SELECT, (x._expr, zero, k), tensor, bits))

        kit.agree(make, f"{d.name} {shape}, rank {rank}")
