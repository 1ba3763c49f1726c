"""Plans and kernels equal the files in `golden*`, whichever device runs the test."""

from __future__ import annotations

from pathlib import Path

import golden_plans
import pytest

MEANT = "if it was meant: python tests/fusion/golden_plans.py --write"


@pytest.mark.parametrize("name", golden_plans.GRAPHS)
def test_plan_equals_its_golden_file(name: str) -> None:
    path = golden_plans.FOLDER / f"{name}.txt"
    assert golden_plans.text(name) == path.read_text(), MEANT


@pytest.mark.parametrize("name", golden_plans.GRAPHS)
def test_kernels_equal_their_golden_file(name: str) -> None:
    path = golden_plans.KERNELS / f"{name}.txt"
    assert golden_plans.kernels(name) == path.read_text(), MEANT


@pytest.mark.parametrize("folder", [golden_plans.FOLDER, golden_plans.KERNELS])
def test_every_golden_file_has_a_graph(folder: Path) -> None:
    assert {p.stem for p in folder.glob("*.txt")} == {*golden_plans.GRAPHS}
