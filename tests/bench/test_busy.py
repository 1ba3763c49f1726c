"""`bench/busy.py`: on a machine whose cores are all busy, two threads are no slower than one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import dovetail as dt
import pytest
from places import ROOT

BENCH = ROOT / "bench"


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(BENCH), *filter(None, sys.path)])
    return subprocess.run(
        [sys.executable, str(BENCH / "busy.py"), *arguments],
        env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=300,
        check=False,
    )  # fmt: skip


@pytest.fixture
def busy(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", os.environ.get("OPENBLAS_NUM_THREADS", "1"))
    monkeypatch.syspath_prepend(str(BENCH))
    import busy  # type: ignore[import-not-found]

    yield busy
    for name in ("busy", "sweep", "sweep_rows", "sweep_causes", "benchmarks_page"):
        sys.modules.pop(name, None)


def test_measure_alternates_threads_and_compares_within_a_round(busy: Any) -> None:
    asked = list[int]()
    before = dt.get_num_threads("cpu")
    times = busy.measure(lambda: asked.append(dt.get_num_threads("cpu")), rounds=4, turn=0)
    first, again = 3, 2  # one call to measure its duration; one before each series of one thread
    turns = asked[first:][::again]
    assert turns == [2, 1, 1, 2, 2, 1, 1, 2] and asked[first + 1 :: again] == turns
    assert [len(times[1]), len(times[2])] == [4, 4] and dt.get_num_threads("cpu") == before
    assert busy.ratio({1: [1.0, 10.0, 4.0], 2: [1.2, 9.0, 8.0]}) == pytest.approx(1.2)


def test_busy_processes_end_with_their_block(busy: Any) -> None:
    with busy.busy(2) as others:
        assert [other.poll() for other in others] == [None, None]
    assert all(other.returncode not in (None, 0, 1) for other in others)


def test_ratio_above_the_limit_fails() -> None:
    done = run("--processes", "0", "--rounds", "1", "--most", "0")
    assert done.returncode == 1 and done.stderr == ""
    rows = [line.split("  ")[0] for line in done.stdout.splitlines()]
    assert rows == ["work", "training step", "chain of 1 M"]
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["met", "no", "no"]


@pytest.mark.timing
def test_two_threads_are_no_slower_than_one_on_a_busy_machine() -> None:
    """The promise is 1.1; a test has few rounds."""
    done = run("--rounds", "9", "--most", "1.5")
    assert done.returncode == 0, done.stdout + done.stderr
