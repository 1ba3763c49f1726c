"""Level 6: runs of equal elements, which sets are made of."""

from __future__ import annotations

import numpy as np
import pytest

from ..dtypes import DType
from ..functions.masks import run_bounds
from .cases import STORED
from .kit import Kit
from .test_scalar_ops import named
from .test_table import dense
from .values import sample


@pytest.mark.parametrize("size", (1, 31, 4095, 4096, 4097, 10_000))
@pytest.mark.parametrize("d", STORED, ids=named)
def test_runs(kit: Kit, d: DType, size: int) -> None:
    """Runs of equal elements: the rows `count_runs` and `run_bounds`."""
    for several in (1, 3, size):
        values = np.repeat(sample(d, -(-size // several), 2), several)[:size]
        kit.agree(
            lambda on, v=values: run_bounds(dense(v, d, on)), f"{size} of {d.name}, {several} a run"
        )
