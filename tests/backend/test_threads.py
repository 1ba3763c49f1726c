"""The number of threads that share the work of a device."""

from __future__ import annotations

from collections.abc import Iterator

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend import threads
from installed import INSTALLED


@pytest.fixture
def default_threads() -> Iterator[int]:
    before = dt.get_num_threads("cpu")
    yield before
    dt.set_num_threads(before, "cpu")


needs_cpu = pytest.mark.skipif("cpu" not in INSTALLED, reason="threads are the device cpu's")


@needs_cpu
@pytest.mark.parametrize("default", ["cpu", "reference"])
def test_set_num_threads_works_with_any_default_device(default_threads: int, default: str) -> None:
    before = dt.default_device()
    dt.set_default_device(default)
    try:
        dt.set_num_threads(3)
        assert dt.get_num_threads() == dt.get_num_threads("cpu") == 3
    finally:
        dt.set_default_device(before)


@needs_cpu
def test_results_do_not_depend_on_the_number_of_threads(default_threads: int) -> None:
    x = dt.asarray(np.random.default_rng(0).standard_normal(300_000), device="cpu")
    found = []
    for n in (1, 2, 5):
        dt.set_num_threads(n, "cpu")
        found.append(dt.sum(dt.exp(x)).item())
    assert found[0] == found[1] == found[2]


def test_set_num_threads_raises_for_a_device_without_threads() -> None:
    assert dt.get_num_threads("reference") == 1
    with pytest.raises(dt.ArgumentError, match=r"set_num_threads: reference\S* has no thread pool"):
        dt.set_num_threads(2, "reference")
    dt.set_num_threads(dt.get_num_threads("reference"), "reference")


def test_set_num_threads_raises_if_neither_the_default_device_nor_cpu_has_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "DEFAULT_DEVICE_TYPE", "reference")  # as if "cpu" were missing
    before = dt.default_device()
    dt.set_default_device("reference")
    try:
        dt.set_num_threads(1)
        with pytest.raises(dt.ArgumentError, match=r"default device, reference.*must be 1, got 2"):
            dt.set_num_threads(2)
        assert dt.get_num_threads() == 1
        monkeypatch.setattr(threads, "DEFAULT_DEVICE_TYPE", "absent")
        with pytest.raises(dt.ArgumentError, match=r'default device, reference.*nor has "absent"'):
            dt.set_num_threads(2)
    finally:
        dt.set_default_device(before)


@pytest.mark.parametrize("n", [0, -1])
def test_set_num_threads_below_one_raises(n: int) -> None:
    with pytest.raises(dt.ArgumentError, match=f"num must be at least 1, got {n}"):
        dt.set_num_threads(n)


def test_set_num_threads_of_a_non_integer_raises() -> None:
    with pytest.raises(dt.ArgumentTypeError, match="num"):
        dt.set_num_threads("two")  # type: ignore[arg-type]  # that is the test
