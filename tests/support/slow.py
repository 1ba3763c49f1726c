"""Test functions that take a second or more, of which most runs take a part.

`pytest --part 48 --write-slow` measures all tests and writes the list, `slow_tests.txt`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from zlib import crc32

import pytest

SLOW_PART = 4  # of a plain run
SLOW_SECONDS_MIN = 1.0
SLOW_FILE = Path(__file__).with_name("slow_tests.txt")
SLOW = frozenset(SLOW_FILE.read_text().split())
BEGUN = pytest.StashKey[float]()


def function_of(test: str) -> str:
    """Return the id of a test without its case."""
    return test.partition("[")[0]


def is_left_out(test: str, part: int) -> bool:
    """Return True if a run of one slow function in `part` leaves the test out, by its name."""
    name = function_of(test)
    return name in SLOW and crc32(name.encode()) % part != 0


def processor_seconds() -> float:
    """Return the processor time of this process and of its children that ended."""
    return sum(os.times()[:4])


def write_slow(tests: Iterable[tuple[str, float]]) -> None:
    """Write the functions with a test that took SLOW_SECONDS_MIN, in alphabetical order."""
    names = {function_of(test) for test, seconds in tests if seconds >= SLOW_SECONDS_MIN}
    SLOW_FILE.write_text("".join(f"{name}\n" for name in sorted(names)))
