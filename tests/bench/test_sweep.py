"""`bench/sweep.py`: its rows cover the namespace and equal NumPy; its page keeps other text."""

import importlib
import re
import sys
import time
from functools import partial
from pathlib import Path

import dovetail as dt
import pytest

BENCH = Path(__file__).parents[2] / "bench"

# Names of the standard's main namespace other than functions of tensors with a measurable cost.
NOT_TIMED = {
    "asarray", "broadcast_shapes", "can_cast", "finfo", "from_dlpack", "iinfo", "isdtype",
    "result_type",
}  # fmt: skip


@pytest.fixture
def sweep(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    yield importlib.import_module("sweep")
    for name in ("sweep", "sweep_rows", "sweep_causes", "benchmarks_page"):
        sys.modules.pop(name, None)


def _standard():
    text = (BENCH.parent / "tests" / "array_api_2025_12.txt").read_text()
    return {n for n in re.findall(r"^(\w+)\(", text, re.M) if hasattr(dt, n)}


def test_every_function_of_the_standard_has_a_row(sweep):
    words = {w for name in sweep.ROWS for w in re.findall(r"\w+", name)}
    assert sorted(_standard() - words - NOT_TIMED) == []


def test_every_row_equals_numpy(sweep, is_plain):
    lines = [*sweep.lines(sweep.parsed(["--sizes", "64"]))]
    for row, n, dtype, arrangement in lines[:: 5 if is_plain else 1]:
        found = sweep.Found(row.name, n, dtype, arrangement)
        works = sweep._works(row, n, dtype, arrangement, ["numpy"])
        assert "dovetail" in sweep._checked(row, found, works), found.title


def test_wrong_result_raises(sweep):
    wrong = sweep.Row("add", lambda xp, x: x + (1 if xp is dt else 2), lambda t, x: x)
    works = sweep._works(wrong, 64, "float32", "contiguous", ["numpy"])
    with pytest.raises(ArithmeticError, match="add"):
        sweep._checked(wrong, sweep.Found("add", 64, "float32", "contiguous"), works)


M = 1 << 20


@pytest.fixture
def page(sweep, tmp_path, monkeypatch):
    path = tmp_path / "benchmarks.md"
    path.write_text("# Benchmarks\n\nbefore\n")
    monkeypatch.setattr(sys.modules["benchmarks_page"], "PAGE", path)
    return path


def test_page_update_keeps_other_sections(sweep, page):
    slow = sweep.Found("add", M, "float32", "contiguous", {"dovetail": 2.0}, {"numpy": 0.25})
    small = sweep.Found("mul", 64, "float32", "sliced", {"dovetail": 2.0}, {"numpy": 0.25})
    fast = sweep.Found("sum", M, "float32", "contiguous", {"dovetail": 2.0}, {"numpy": 4.0})
    sweep.put("sweep", sweep.section([fast], ["numpy"]))
    page.write_text(page.read_text() + "after\n")
    sweep.put("sweep", sweep.section([fast, slow, small], ["numpy"]))
    text = page.read_text()
    assert text.startswith("# Benchmarks\n\nbefore\n") and text.endswith("after\n")
    assert "| add | float32" in text
    assert "| sum | float32" not in text and "| mul | float32" not in text
    assert "| float32 | contiguous | 1 M | 1.00 | 2 | 1 | 0.25 |" in text


def test_page_names_the_cause_of_a_slow_row(sweep, page):
    causes = sys.modules["sweep_causes"]
    rule = causes.Rule("moon", ("add",), most=M, dtypes=("float32",))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(causes, "RULES", [rule])
        patch.setitem(causes.EXPLAINED, "moon", "it is full")
        lines = [
            sweep.Found("add", n, d, "contiguous", {"dovetail": 2.0}, {"numpy": 0.25})
            for n in (M, 2 * M)
            for d in ("float32", "int64")
        ]
        assert [f.cause for f in lines] == ["moon", "", "", ""]
        text = "\n".join(sweep.section(lines, ["numpy"]))
    assert "- **moon** (1): it is full" in text and "| 0.25 | moon |" in text


def test_every_cause_is_explained(sweep):
    causes = sys.modules["sweep_causes"]
    assert {r.cause for r in causes.RULES} == {*causes.EXPLAINED}
    named = {row for r in causes.RULES for row in r.rows or ()}
    assert named <= {*sweep.ROWS}, "rules for rows that there are not"


def test_measured_results_are_read_from_their_file(sweep, tmp_path):
    given = [
        "--sizes",
        "64",
        "--dtypes",
        "float32",
        "--arrangements",
        "contiguous",
        "--rounds",
        "1",
    ]
    file = tmp_path / "found.json"
    asked = sweep.parsed(
        [*given, "--only", "add", "--sample", "0.01", "--peers", "numpy", "--json", str(file)]
    )
    found = sweep.measured(asked)
    assert found and [*sweep.kept([file, file]).values()] == found


def test_sections_follow_a_changed_introduction(sweep, page):
    sweep.put("small work", ["small"])
    sweep.put("sweep", ["swept"])
    page.write_text(page.read_text() + "after\n")
    kept = sys.modules["benchmarks_page"].sections(page.read_text())
    assert kept == (
        "\n<!-- small work: begin -->\nsmall\n<!-- small work: end -->\n"
        "\n<!-- sweep: begin -->\nswept\n<!-- sweep: end -->\n"
    )
    assert sys.modules["benchmarks_page"].sections("# Benchmarks\n") == ""


def test_processor_time_leaves_out_what_others_take(sweep):
    assert sweep.timed(partial(time.sleep, 0.05), 1, time.process_time) < 0.02
    assert sweep.timed(partial(time.sleep, 0.05), 1) >= 0.05
