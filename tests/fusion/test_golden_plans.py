"""Plans are what the files in `golden` say, whatever runs the test."""

from __future__ import annotations

import golden_plans
import pytest


@pytest.mark.parametrize("name", golden_plans.GRAPHS)
def test_a_graph_is_planned_as_its_file_says(name: str) -> None:
    path = golden_plans.FOLDER / f"{name}.txt"
    assert golden_plans.text(name) == path.read_text(), (
        "if it was meant: python tests/fusion/golden_plans.py --write"
    )


def test_there_is_a_graph_for_every_file() -> None:
    assert {p.stem for p in golden_plans.FOLDER.glob("*.txt")} == {*golden_plans.GRAPHS}
