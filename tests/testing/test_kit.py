"""The conformance kit on the devices that every run tests: a sample by default, all on request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dovetail.testing.test_table import unreached
from kit_levels import QUICK_LEVELS

DEVICES = ("reference", "cpu")


def conformance(
    name: str, report: Path, *options: str, folder: Path | None = None
) -> dict[str, Any]:
    """Return the certificate of a run of the kit in its own process."""
    command = [
        sys.executable,
        "-m",
        "dovetail.commands.cli",
        "test-backend",
        name,
        "--report",
        str(report),
        *options,
    ]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=900, check=False, cwd=folder
    )
    assert report.exists(), done.stdout + done.stderr
    certificate: dict[str, Any] = json.loads(report.read_text())
    assert done.returncode == 0 and certificate["conforms"], done.stdout[-20_000:]
    return certificate


def test_kit_reaches_every_op() -> None:
    assert unreached() == [], (
        "write a case in dovetail/testing/test_table.py, and name the row in BY_NAME"
    )


@pytest.mark.parametrize("name", DEVICES)
def test_sampled_kit_passes_without_a_conftest_of_the_directory(
    name: str, tmp_path: Path, is_plain: bool
) -> None:
    """`nox -s kit` runs larger samples."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "conftest.py").write_text("raise ImportError('of another project')")
    report = tmp_path / "report.json"
    options = ("--sample", "2000", "-n", "0", *(QUICK_LEVELS if is_plain else ()))
    certificate = conformance(name, report, *options, folder=tmp_path)
    assert certificate["device"]["type"] == name and certificate["sample"] == 2000
    assert certificate["cases"] > 50 and certificate["comparisons"] > 400
    assert len(certificate["digest"]) == 64 and certificate["versions"]["dovetail"]


@pytest.mark.exhaustive
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("name", DEVICES)
def test_whole_kit_passes(name: str, tmp_path: Path) -> None:
    certificate = conformance(name, tmp_path / "report.json", "-n", "2")
    assert certificate["cases"] > 4000 and certificate["whole"]
