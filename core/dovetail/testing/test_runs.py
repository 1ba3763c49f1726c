"""Level 7: runs of equal elements, which sets are made of."""

from __future__ import annotations

import numpy as np
import pytest

from ..device_class import Device
from ..dtypes import DType, bool_, int32
from ..functions.indexing.masks import KERNEL_SCAN_BLOCKS_MAX, run_bounds, true_positions
from ..ops.kernel_ops import BLOCK_ELEMENTS
from ..tensor.tensor import Tensor
from .cases import REAL_DTYPES, dense
from .kit import Kit
from .test_scalar_ops import param_id
from .values import Array, sample


@pytest.mark.parametrize("size", (1, 31, 4095, 4096, 4097, 10_000))
@pytest.mark.parametrize("d", REAL_DTYPES, ids=param_id)
def test_runs(kit: Kit, d: DType, size: int) -> None:
    """Check the bounds of runs of equal elements, by the rows `count_runs` and `run_bounds`."""
    for several in (1, 3, size):
        values = np.repeat(sample(d, -(-size // several), 2), several)[:size]

        def make(on: Device, values: Array = values) -> Tensor:
            """Return the bounds of runs of equal values, on `on`."""
            return run_bounds(dense(values, d, on))

        kit.check_agreement(make, f"{size} of {d.name}, {several} a run")


def test_more_blocks_than_a_kernel_adds_up(kit: Kit) -> None:
    """Check bounds and positions for more blocks than one kernel can scan."""
    size = KERNEL_SCAN_BLOCKS_MAX * BLOCK_ELEMENTS + 1
    values = np.repeat(np.arange(size // 1000 + 1, dtype="i4"), 1000)[:size]
    mask = np.random.default_rng(1).random(size) < 0.001
    kit.check_agreement(lambda on: run_bounds(dense(values, int32, on)), f"runs in {size}")
    kit.check_agreement(lambda on: true_positions(dense(mask, bool_, on), on), f"a mask of {size}")
