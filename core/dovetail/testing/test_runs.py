"""Level 6: runs of equal elements, which sets are made of."""

from __future__ import annotations

import numpy as np
import pytest

from ..device import Device
from ..dtypes import DType
from ..functions.masks import run_bounds
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
