"""`bench/plots.py`: the pictures show the numbers of docs/benchmarks.md."""

from __future__ import annotations

import importlib
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("matplotlib")
AGAIN = "`python bench/plots.py` draws them again"


@pytest.fixture
def plots(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    yield importlib.import_module("plots")
    for name in ("plots", "benchmarks_page"):
        sys.modules.pop(name, None)


@pytest.fixture
def page(plots):
    return plots.PAGE.read_text()


def test_pictures_are_up_to_date_with_the_tables(plots, page):
    assert plots.stale(page) == [], AGAIN


def test_changed_number_makes_its_picture_stale(plots, page):
    other = re.sub(r"(\| softmax, 32 x 32 (?:\|[^|]*){4}\|) [\d.]+ ", r"\1 77.25 ", page)
    assert other != page and plots.stale(other) == ["small-work"]
    assert ("softmax, 32 x 32", "numpy", 77.25) in plots.of_columns("Small work")(other)


def test_page_links_exactly_the_existing_pictures(plots, page):
    linked = re.findall(r"!\[[^\]]+\]\(pictures/([\w-]+)\.svg\)", page)
    assert linked == [p.name for p in plots.ALL], AGAIN
    stems = (p.stem for p in plots.PICTURES.iterdir())
    assert sorted(linked) == sorted(s for s in stems if not s.startswith("readme-"))
    assert "\n".join(plots.section()) in page, AGAIN


def test_each_table_row_is_drawn(plots, page):
    rows = {
        "small-work": plots.tables(page, "Small work")[0],
        "numeric-surface": plots.tables(page, "Numeric surface")[0],
        "networks": plots.tables(page, "Networks")[0],
    }
    for picture in plots.ALL:
        text = "".join(ET.fromstring(picture.svg(page)).itertext())
        assert picture.title in text and "currentColor" in picture.svg(page)
        for row in rows.get(picture.name, []):
            assert next(iter(row.values())).split(",")[0][:20] in text
        names = {name for name, _, _ in picture.points(page)}
        assert len(names) > 4 and all(ratio >= 0 for _, _, ratio in picture.points(page))


def test_picture_is_deterministic(plots, page):
    one = plots.ALL[3]
    assert one.svg(page) == one.svg(page)


def test_tables_are_parsed_by_section(plots):
    page = (
        "| case | a |\n|---|---|\n| x | 1 x n\\|t |\n\n## One\n| a |\n|---|\n| 1 |\n\n"
        "| b |\n|---|\n| 2 |\n\n## One more\n| c |\n|---|\n| 3 |\n"
    )
    assert plots.tables(page, "") == [[{"case": "x", "a": r"1 x n\|t"}]]
    assert plots.tables(page, "One") == [[{"a": "1"}], [{"b": "2"}]]
    assert plots.tables(page, "One more") == [[{"c": "3"}]]
    with pytest.raises(ValueError, match="zip"):
        plots.tables("| a |\n|---|\n| 1 | 2 |\n", "")


def test_seconds_and_peers_are_parsed(plots):
    assert plots.seconds("4.5 us") == pytest.approx(4.5e-6) and plots.seconds("2 s") == 2.0
    with pytest.raises(ValueError, match="'fast' is no time"):
        plots.seconds("fast")
    page = (
        "## Own work\n| work | beside | ratio |\n|---|---|---|\n"
        "| f | captured 59.1 us, torch by hand 425 us | 0.15, 1.07 |\n| g |  |  |\n"
    )
    assert plots.of_lists("Own work")(page) == [
        ("f", "captured", 0.15), ("f", "torch by hand", 1.07),
    ]  # fmt: skip
