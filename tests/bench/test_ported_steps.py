"""`bench/ported_steps.py`: captured steps have the losses of plain ones; times and errors."""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import ported_steps as runner
import pytest

pytest.importorskip("dovetail_cpu_llvm")


def losses(name: str, captures: bool) -> list[float]:
    """Return the losses of four iterations of a program on dovetail from one seed."""
    program = runner.load(name, "dovetail.torch")
    program.torch.manual_seed(0)
    capture: Any = program.torch.compile if captures else lambda f: f
    step = runner.CASES[name](program, capture)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [step() for _ in range(4)]


@pytest.mark.parametrize("name", runner.CASES)
def test_captured_step_has_the_losses_of_a_plain_one(name: str) -> None:
    assert losses(name, True) == losses(name, False)


def test_worker_answers_seconds_of_a_side() -> None:
    options = argparse.Namespace(block=0.0, threads=1, processor_time=True)
    worker = runner.Worker("plain", options, runner.__file__, "--threads", "1")
    try:
        row = runner.measure("vae", {"plain": worker}, 1)
    finally:
        worker.close()
    assert row["errors"] == {} and 0 < row["seconds"]["plain"] < 10


def test_table_has_rates_ratios_and_notes() -> None:
    row = {
        "name": "vae", "errors": {"jit": "E: a|b"}, "ran plain": "",
        "seconds": {"torch": 0.004, "plain": 0.002}, "ratio": {"plain": 2.0},
    }  # fmt: skip
    table = runner.markdown([row]).splitlines()
    assert table[2] == "| vae | 4.00 | 2.00 |  | 250 | 500 |  | 2.00 |  | jit: E: a/b |"
    assert len({line.count("|") for line in table}) == 1
