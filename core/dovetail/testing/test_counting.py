"""Counting and selecting: the ops made of tables of counts, against the reference."""

from __future__ import annotations

import numpy as np
import pytest

from ..device_class import Device
from ..dtypes import DType, int64
from ..graph.expr import node, spec
from ..ops import sort as radix
from ..ops import table as ops
from ..ops.histogram import BitRange
from ..tensor import tensor as T
from .cases import REAL_DTYPES, dense, flipped
from .kit import Kit
from .values import sample


@pytest.mark.parametrize("n", (0, 1, 7, 3000))
def test_count_values(kit: Kit, n: int) -> None:
    """Check the counts of small integers, of which several never occur."""
    values = np.random.default_rng(n).integers(0, 40, n) // 2 * 2

    def make(on: Device) -> T.Tensor:
        """Count the values 0 to 40 of an int64 tensor on `on`."""
        x = dense(values, int64, on)
        return T.create_tensor(node(ops.COUNT_VALUES, (x._expr,), spec((41,), int64, on)))

    kit.check_agreement(make, f"{n} values")


@pytest.mark.parametrize("d", REAL_DTYPES, ids=lambda d: d.name)
def test_select(kit: Kit, d: DType) -> None:
    """Check the element at a rank of each row, with ties, infinities and both zeros."""
    bits = BitRange(0, d.bits if d.kind != "f" else max(d.bits, 32))
    zero = d.min % (radix.key_dtype(d).max + 1) if d.kind == "i" else 0
    for shape, place, rank in (((1, 1), dense, 0), ((3, 60), flipped, 7), ((2, 60), dense, 59)):
        values = sample(d, shape, 1)

        def make(on: Device, v=values, p=place, k=rank) -> T.Tensor:  # type: ignore[no-untyped-def]  # the defaults
            """Select the element at rank `k` of each row, on `on`."""
            x = p(v, d, on)
            tensor = spec(x.shape[:-1], d, on)
            return T.create_tensor(node(ops.SELECT, (x._expr, zero, k), tensor, bits))

        kit.check_agreement(make, f"{d.name} {shape}, rank {rank}")
