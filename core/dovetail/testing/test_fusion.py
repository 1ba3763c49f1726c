"""Level 8: random programs, deferred and fused, give the bits of the same programs run op by
op, and the reference's."""

from __future__ import annotations

import pytest

from .kit import Kit
from .programs import check

BLOCK = 10


@pytest.mark.parametrize("block", range(20))
def test_random_programs(kit: Kit, block: int) -> None:
    """Check a block of seeds: deferred, eager and reference bits are equal."""
    for seed in range(block * BLOCK, (block + 1) * BLOCK):
        check(seed, str(kit.device))
        kit.comparisons += 1
