"""`bench/small_work.py`: its statements compute what the peers compute, and a wrong one is
reported.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import dovetail as dt
import pytest

BENCH = Path(__file__).parents[2] / "bench"
pytest.importorskip("torch", reason="the statements are compared with PyTorch")
pytest.importorskip("dovetail_cpu_llvm")


@pytest.fixture
def small(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("small_work")
    for name in ("small_work", "sweep", "sweep_rows"):
        sys.modules.pop(name, None)


def test_every_statement_returns_and_writes_what_the_peers_do(small):
    for row in small.rows():
        small.check(row)


def test_wrong_statement_raises(small):
    operands = [small._random(8)]
    wrong = small.Row("wrong", lambda xp, x: x + (1 if xp is dt else 2), operands, {})
    with pytest.raises(ArithmeticError, match="dovetail computed wrong wrongly"):
        small.check(wrong)

    def put(xp, x):
        x[0] = 1 if xp is dt else 2

    with pytest.raises(ArithmeticError, match="dovetail computed wrong wrongly"):
        small.check(small.Row("wrong", put, operands, {}))


def test_table_shows_whether_each_target_is_met(small):
    row = small.Row("x + y", lambda xp, x, y: x + y, [small._random(8)] * 2, {"torch": 1e-9})
    small.measure(row, 2)
    row.asked = {**row.asked, "numpy": 1e9}
    [heads, cells] = small.table([row])
    assert cells[heads.index("met")] == "no"
    row.asked = {"torch": 1e-9}
    assert small.table([row])[1][-1] == "yes"
