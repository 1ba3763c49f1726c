"""The layout kit against broken layouts: each must be caught, and an honest one must pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_layouts
import pytest
from dovetail.tensor.layout_registry import ENTRY_POINT_PREFIX
from places import TESTS

LAYOUTS = (broken_layouts.Diagonal, *broken_layouts.BROKEN)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all of them are installed, as pip would do it."""
    folder = tmp_path_factory.mktemp("layouts")
    for layout in LAYOUTS:
        name = layout.plugin.name
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entry = f"[{ENTRY_POINT_PREFIX}1]\n{name} = broken_layouts:{layout.__name__}.plugin\n"
        info.joinpath("entry_points.txt").write_text(entry)
    return folder


def run_kit(site: Path, name: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Return the exit status of `dovetail test-layout`, its output and its certificate."""
    report = site / f"{name}.json"
    report.unlink(missing_ok=True)
    command = ("dovetail.commands.cli", "test-layout", name, "--report", str(report))
    paths = os.pathsep.join([str(site), str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", *command, *options], env={**os.environ, "PYTHONPATH": paths},
        cwd=site, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    found = json.loads(report.read_text()) if report.exists() else {}
    return done.returncode, done.stdout + done.stderr, found


@pytest.mark.parametrize("lie", broken_layouts.BROKEN, ids=lambda c: c.__name__)
def test_broken_layout_is_caught(site: Path, lie: type[broken_layouts.Diagonal]) -> None:
    status, output, certificate = run_kit(site, lie.plugin.name, "-x", "-k", lie.shown_by)
    assert status == 1, output
    [failure] = certificate["failures"]
    assert not certificate["conforms"] and certificate["layout"] == lie.plugin.name
    assert lie.sign in failure["message"], failure
    assert f"--dovetail-layout={lie.plugin.name}" in failure["reproduce"]


def test_honest_layout_passes(site: Path) -> None:
    status, output, certificate = run_kit(site, "diagonal", "--sample", "5")
    assert status == 0, output
    assert certificate["conforms"] and certificate["cases"] > 100
    assert certificate["comparisons"] > certificate["cases"]
    assert certificate["counts"].keys() == {"passed", "gap"}
    assert certificate["absent"] > 20, "what it does not hold"


@pytest.mark.exhaustive
def test_honest_layout_passes_the_whole_kit(site: Path) -> None:
    status, output, certificate = run_kit(site, "diagonal")
    assert status == 0 and certificate["whole"], output


def test_missing_layout_is_reported(site: Path) -> None:
    status, output, certificate = run_kit(site, "absent")
    assert status == 2 and "no layout 'absent' is installed" in output and not certificate
