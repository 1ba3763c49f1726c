"""`bench/numpy_programs.py`: its programs return what NumPy returns; a wrong one is reported."""

from __future__ import annotations

import argparse
from typing import Any

import dovetail as dt
import numpy as np
import numpy_programs as runner
import pytest

pytest.importorskip("dovetail_cpu_llvm")


@pytest.mark.parametrize("name", runner.program_names())
def test_program_returns_what_numpy_returns(name: str) -> None:
    ours = runner.load(name, "dovetail.numpy")
    runner.assert_equal_results(runner.finish(ours.main()), runner.load(name).main())


def test_program_in_numpy_returns_equal_values_twice() -> None:
    call, _ = runner.prepare("lcs", "numpy", "dovetail.numpy")
    runner.assert_equal_results(call(), call())
    assert call()[2] == 81


@pytest.mark.parametrize(
    ("ours", "message"),
    [
        ((np.array([1.0, 2.1]), 3), "result 0"),
        ((np.array([1.0, 2.0]), 4), "result 1"),
        ((np.array([1.0, 2.0], np.float32), 3), r"result 0 is float32 \(2,\), expected float64"),
        ((np.array([1.0, 2.0]),), "1 results, expected 2"),
    ],
)
def test_comparison_raises_when_a_result_differs(ours: Any, message: str) -> None:
    theirs = np.array([1.0, 2.0]), 3
    runner.assert_equal_results((np.array([1.0, 2.0 + 1e-9]), 3), theirs)
    runner.assert_equal_results((dt.asarray([1.0, 2.0], dtype=dt.float64), 3), theirs)
    with pytest.raises(AssertionError, match=message):
        runner.assert_equal_results(ours, theirs)


def test_reports_contain_times_errors_and_first_calls() -> None:
    rows = [
        {"name": "a", "errors": {"jit": "E: no"}, "ran plain": "",
         "seconds": {"numpy": 1.0, "plain": 2.0}, "ratio": {"plain": 0.5}, "first": "E: no"},
        {"name": "b", "errors": {}, "ran plain": "a branch",
         "seconds": {"numpy": 1.0, "plain": 0.5, "jit": 0.25},
         "ratio": {"plain": 2.0, "jit": 4.0}, "first": 1.5},
    ]  # fmt: skip
    assert runner.summarize(rows) == [
        "plain: 2 of 2 run, geometric mean 1.00, worst 0.500 (a), 0 below 0.4",
        "jit: 1 of 2 run, geometric mean 4.00, worst 4.000 (b), 0 below 0.4",
        "without a capture: 1",
        "first call: median 1.50 s, worst 1.50 s (b)",
    ]
    table = runner.markdown(rows).splitlines()
    assert table[-2].startswith("| a | 1000.0 | 2000.0 |") and "jit: E: no" in table[-2]
    assert len({line.count("|") for line in table[5:]}) == 1


def test_worker_answers_seconds_or_the_error() -> None:
    options = argparse.Namespace(block=0.0, threads=1, processor_time=True)
    command = (runner.__file__, "--library", "math")
    workers = {side: runner.Worker(side, options, *command) for side in ("numpy", "plain")}
    try:
        row = runner.measure("lcs", workers, 1)
    finally:
        for worker in workers.values():
            worker.close()
    assert row["seconds"]["numpy"] > 0
    assert "AttributeError" in row["errors"]["plain"] and row["ratio"] == {}
