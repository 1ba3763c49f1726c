"""Level 6: runs of equal elements, which sets are made of."""

from __future__ import annotations

import numpy as np
import pytest

from ..device_class import Device
from ..dtypes import DType, bool_, int32
from ..functions.indexing.masks import FEW, run_bounds, true_positions
from ..ops.kernel_ops import BLOCK
from ..tensor.tensor import Tensor
from .cases import STORED, dense
from .kit import Kit
from .test_scalar_ops import named
from .values import Array, sample


@pytest.mark.parametrize("size", (1, 31, 4095, 4096, 4097, 10_000))
@pytest.mark.parametrize("d", STORED, ids=named)
def test_runs(kit: Kit, d: DType, size: int) -> None:
    """Runs of equal elements: the rows `count_runs` and `run_bounds`."""
    for several in (1, 3, size):
        values = np.repeat(sample(d, -(-size // several), 2), several)[:size]

        def make(on: Device, values: Array = values) -> Tensor:
            return run_bounds(dense(values, d, on))

        kit.agree(make, f"{size} of {d.name}, {several} a run")


def test_more_blocks_than_a_kernel_adds_up(kit: Kit) -> None:
    """The rows `run_bounds` and `true_positions`, given what is before each block."""
    size = FEW * BLOCK + 1
    values = np.repeat(np.arange(size // 1000 + 1, dtype="i4"), 1000)[:size]
    mask = np.random.default_rng(1).random(size) < 0.001
    kit.agree(lambda on: run_bounds(dense(values, int32, on)), f"runs in {size}")
    kit.agree(lambda on: true_positions(dense(mask, bool_, on), on), f"a mask of {size}")
