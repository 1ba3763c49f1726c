"""Random programs: the same bits deferred and fused, eager, and on the reference interpreter."""

from __future__ import annotations

import pytest
from dovetail.testing.programs import check


@pytest.mark.parametrize("block", range(8))
@pytest.mark.parametrize("name", ["reference", "cpu"])
def test_random_programs_keep_their_bits(name: str, block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        check(seed, name)


@pytest.mark.exhaustive
@pytest.mark.parametrize("block", range(40))
def test_many_random_programs_keep_their_bits(block: int) -> None:
    for seed in range(10_000 + block * 100, 10_000 + block * 100 + 100):
        check(seed, "cpu")
