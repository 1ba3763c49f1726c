"""Plans and kernels are what the files in `golden*` say, whatever runs the test."""

from __future__ import annotations

from pathlib import Path

import golden_plans
import pytest

MEANT = "if it was meant: python tests/fusion/golden_plans.py --write"


@pytest.mark.parametrize("name", golden_plans.GRAPHS)
def test_a_graph_is_planned_as_its_file_says(name: str) -> None:
    path = golden_plans.FOLDER / f"{name}.txt"
    assert golden_plans.text(name) == path.read_text(), MEANT


@pytest.mark.parametrize("name", golden_plans.GRAPHS)
def test_the_kernels_of_a_graph_are_as_their_file_says(name: str) -> None:
    path = golden_plans.KERNELS / f"{name}.txt"
    assert golden_plans.kernels(name) == path.read_text(), MEANT


@pytest.mark.parametrize("folder", [golden_plans.FOLDER, golden_plans.KERNELS])
def test_there_is_a_graph_for_every_file(folder: Path) -> None:
    assert {p.stem for p in folder.glob("*.txt")} == {*golden_plans.GRAPHS}
