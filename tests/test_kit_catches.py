"""The conformance kit against backends that lie: each must be caught, and an honest one must
not be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import lying_backends as lies
import pytest
from dovetail.plugins import GROUP

HERE = Path(__file__).parent
BACKENDS = (
    *lies.LIES,
    lies.Honest,
    lies.Late,
    lies.DeclaresItsGap,
    lies.BoastsOfAGap,
    lies.MisspellsItsGap,
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which all of them are installed, as pip would leave them."""
    folder = tmp_path_factory.mktemp("site")
    for backend in BACKENDS:
        name = backend.plugin.type
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entry = f"[{GROUP}]\n{name} = lying_backends:{backend.__name__}.plugin\n"
        info.joinpath("entry_points.txt").write_text(entry)
    return folder


def run_kit(site: Path, name: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """The kit's exit status, its output and its certificate."""
    report = site / f"{name}.json"
    report.unlink(missing_ok=True)
    path = os.pathsep.join([str(site), str(HERE), *filter(None, sys.path)])
    command = [
        sys.executable,
        "-m",
        "dovetail.cli",
        "test-backend",
        name,
        "--report",
        str(report),
        *options,
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    certificate = json.loads(report.read_text()) if report.exists() else {}
    return done.returncode, done.stdout + done.stderr, certificate


@pytest.mark.parametrize("lie", lies.LIES, ids=lambda c: c.__name__)
def test_a_lie_is_caught(site: Path, lie: type[lies.Honest]) -> None:
    status, output, certificate = run_kit(site, lie.plugin.type, "-x", "-k", lie.shown_by)
    assert status == 1, output
    assert certificate["failures"] and not certificate["conforms"]
    line = (
        f"python -m pytest -p dovetail.testing.plugin --dovetail-device={lie.plugin.type} --pyargs"
    )
    assert line in output


def test_the_honest_one_passes(site: Path) -> None:
    status, output, certificate = run_kit(site, "honest", "--sample", "60")
    assert status == 0, output
    assert certificate["conforms"] and certificate["cases"] > 60
    assert certificate["comparisons"] > certificate["cases"] and certificate["counts"].keys() == {
        "passed"
    }


def test_a_declared_gap_is_accepted_and_counted(site: Path) -> None:
    status, output, certificate = run_kit(site, "declaresitsgap", "-k", "fma or where")
    assert status == 0, output
    assert certificate["counts"]["gap"] >= 4 and certificate["gaps"]


def test_a_gap_that_is_none_fails(site: Path) -> None:
    status, output, certificate = run_kit(site, "boastsofagap", "-k", "test_streams")
    assert status == 1 and "declared gap: no streams" in output
    assert set(certificate["counts"]) == {"unexpected pass"}


def test_a_gap_that_names_nothing_is_an_error(site: Path) -> None:
    status, output, _ = run_kit(site, "misspellsitsgap")
    assert status == 4 and "scalar_ops.fused_multiply_add" in output


def test_no_case_at_all_fails(site: Path) -> None:
    status, output, certificate = run_kit(site, "honest", "-k", "no_such_case")
    assert status == 1 and "proves nothing" in output
    assert not certificate["conforms"]


@pytest.mark.parametrize("name", ["absent", "honest:7"])
def test_an_absent_device_fails(site: Path, name: str) -> None:
    status, output, certificate = run_kit(site, name)
    assert status == 4 and name.split(":")[0] in output and not certificate


def test_a_failure_shows_the_kernel(site: Path) -> None:
    status, output, _ = run_kit(site, "flushesdenormals", "-k", "arithmetic and mul-float32-grid2")
    assert status == 1
    assert (
        "kernel mul_f32(" in output
        and "test_scalar_ops::test_arithmetic[mul-float32-grid2]" in output
    )
