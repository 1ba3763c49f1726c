"""Random programs of NumPy statements: `dovetail.numpy`, plain and captured, against NumPy."""

from __future__ import annotations

import pytest
import random_numpy_programs as programs

BLOCK = 10


def check(seeds: range, statements: int, captures: bool) -> None:
    """Check values, dtypes and types of all variables, those of captured programs without types."""
    for seed in seeds:
        text = programs.generate(seed, statements)
        assert not programs.find_differences(text, seed, captures), (seed, text)


@pytest.mark.parametrize("start", range(0, 60, BLOCK))
@pytest.mark.filterwarnings("ignore")
def test_random_programs_give_numpys_values_and_types(start: int) -> None:
    check(range(start, start + BLOCK), 12, captures=False)


@pytest.mark.parametrize("start", range(0, 20, BLOCK))
@pytest.mark.filterwarnings("ignore")
def test_captured_random_programs_give_numpys_values(start: int) -> None:
    check(range(start, start + BLOCK), 8, captures=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(1_000, 3_000, BLOCK))
@pytest.mark.filterwarnings("ignore")
def test_many_random_programs_give_numpys_values_and_types(start: int) -> None:
    check(range(start, start + BLOCK), 12, captures=False)


@pytest.mark.exhaustive
@pytest.mark.parametrize("start", range(1_000, 1_500, BLOCK))
@pytest.mark.filterwarnings("ignore")
def test_many_captured_random_programs_give_numpys_values(start: int) -> None:
    check(range(start, start + BLOCK), 8, captures=True)


def test_difference_of_a_type_is_found() -> None:
    text = "def program(np, x, y, m, k, s, n):\n    s = np.array(s){}\n    return dict(locals())\n"
    assert programs.find_differences(text.format(" + 1"), 0, False) == []
    assert programs.describe_difference(1.0, programs.numpy.float64(1), True)
