"""The style of the sources: counts of `tools/style.py` are its budgets, which only fall."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from places import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import style


def test_counts_of_each_package_are_its_budgets() -> None:
    assert style.compare(style.count_style(), style.read_budgets()) == []


def test_totals_are_within_the_limits_of_the_project() -> None:
    totals = Counter[str]()
    for budgets in style.read_budgets().values():
        totals.update(budgets)
    assert (totals["question"], totals["pronoun"], totals["anaphora"]) == (0, 0, 0)
    assert totals["fmt_skip"] <= 30


def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> Counter[str]:
    (tmp_path / "core" / "dovetail" / "ops").mkdir(parents=True)
    (tmp_path / "core" / "dovetail" / "ops" / "new.py").write_text(text)
    monkeypatch.setattr(style, "ROOT", tmp_path)
    return style.count_style(("core/dovetail",)).by_package["core/ops"]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("question", 'def sizes():\n    """What is large."""\n'),
        ("anaphora", 'def sizes():\n    """The same for sizes."""\n'),
        ("participle", "def taken(x):\n    return x\n"),
        ("participle", "def _padded_rows(x):\n    return x\n"),
        ("vague", "found = 1\n"),
        ("vague", "def sizes(rest):\n    return rest\n"),
        ("vague", "for kept in ():\n    pass\n"),
        ("pronoun", "x = 1  # nobody reads it\n"),
        ("fmt_skip", "x = (1,\n     2)  # fmt: skip\n"),
        ("chain", "class A:\n    pass\n\nclass B(A):\n    pass\n"),
    ],
)
def test_each_kind_is_counted(
    kind: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = count(tmp_path, monkeypatch, text)
    assert counts == Counter({kind: 1})


def test_plain_code_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        'def read_sizes(items):\n    """Return the sizes of items."""\n    return items\n\n'
        "class A(ValueError):\n    pass\n\nclass B(A):\n    pass\n\nclass C(A):\n    pass\n"
    )
    assert count(tmp_path, monkeypatch, text) == Counter()


def test_compare_reports_counts_above_and_below_the_budget() -> None:
    counts = style.Counts()
    counts.add("vague", "core/ops", "a.py:1 found")
    assert style.compare(counts, {}) == ["core/ops: vague: 1, allowed are 0"]
    budgets = {"core/ops": {"vague": 2}}
    assert style.compare(counts, budgets) == ["core/ops: vague: 1; lower the budget of 2"]
    assert style.compare(counts, {"core/ops": {"vague": 1}}) == []
