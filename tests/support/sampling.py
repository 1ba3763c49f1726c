"""The sample of a parametrized test's cases, the same in every run and process."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from zlib import crc32

from installed import INSTALLED

PART = 48
PART_OF_LARGE = 192
LARGE_SAMPLE_MIN = 4
ABSENT = {"cpu", "opencl", "cuda", "vulkan", "webgpu"} - INSTALLED


def sample(cases: Sequence[str], part: int, part_of_large: int) -> list[str]:
    """Return one case in `part`, at least one, chosen by a hash of its id.

    If these are more than LARGE_SAMPLE_MIN, return one case in `part_of_large`, at least so many.
    Cases that can run come first.
    """
    if part == 1:
        return [*cases]
    count = math.ceil(len(cases) / part)
    if count > LARGE_SAMPLE_MIN:
        count = max(LARGE_SAMPLE_MIN, math.ceil(len(cases) / part_of_large))
    return sorted(cases, key=_rank)[:count]


def _rank(case: str) -> tuple[bool, int]:
    """Return a sort key: cases of backends that are not installed come last."""
    return not ABSENT.isdisjoint(re.split(r"[^a-z]", case)), crc32(case.encode())
