"""`bench/readme_figures.py`: README's table and picture show the same figures."""

from __future__ import annotations

import copy
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
import readme_figures
from readme_figures import COLORS, FIGURES, LIBRARIES, README


@pytest.fixture
def figures() -> dict[str, Any]:
    return json.loads(FIGURES.read_text())


def test_readme_and_pictures_show_the_figures(figures: dict[str, Any]) -> None:
    assert readme_figures.stale(figures) == [], "run python bench/readme_figures.py"


def test_changed_figure_makes_the_table_and_both_pictures_stale(figures: dict[str, Any]) -> None:
    other = copy.deepcopy(figures)
    other["rows"][0]["seconds"]["dovetail"] *= 2
    assert readme_figures.stale(other) == ["README.md", "readme-light.svg", "readme-dark.svg"]


@pytest.mark.parametrize("scheme", COLORS)
def test_picture_has_the_times_of_the_table(figures: dict[str, Any], scheme: str) -> None:
    root = ET.fromstring(readme_figures.svg(figures, scheme))
    texts = [element.text or "" for element in root if element.tag.endswith("text")]
    widths = [float(e.attrib["width"]) for e in root if e.tag.endswith("rect")]
    table = README.read_text().partition("<!-- figures: begin -->")[2].partition("<!--")[0]
    times = re.findall(r"([\d.]+) ms", table)
    names = {v.partition(",")[0] for v in LIBRARIES.values()}
    titles = [row["name"].replace("`", "") for row in figures["rows"]]
    assert sorted(t for t in texts if t not in {*titles, *names}) == sorted(times)
    assert [t for t in texts if t in titles] == titles
    assert len(widths) == len(times) and max(widths) == readme_figures.BAR_WIDTH


def test_some_row_is_lost(figures: dict[str, Any]) -> None:
    best = [min(row["seconds"], key=row["seconds"].get) for row in figures["rows"]]
    assert {"dovetail"} < {*best}
    lines = " ".join(readme_figures.markdown(figures).split())
    assert f"first in {best.count('dovetail')} of {len(best)} rows" in lines


def test_every_row_is_measured_for_the_installed_libraries(figures: dict[str, Any]) -> None:
    for name in ("torch", "jax"):
        pytest.importorskip(name)
    measured = readme_figures.measure(1, shrink=64)
    assert {*measured} == {*figures}
    assert [row["name"] for row in measured["rows"]] == [row["name"] for row in figures["rows"]]
    for row in measured["rows"]:
        without = {"jax"} if row["name"].startswith("LSTM") else set()
        assert {*row["seconds"]} == {*LIBRARIES} - without, row["name"]
        assert all(seconds > 0 for seconds in row["seconds"].values())
