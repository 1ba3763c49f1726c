"""The conformance kit against broken backends: each must be caught, and honest ones must pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import broken_backends
import float_devices as floats
import flushing_cpu
import limited
import partial_devices as partial
import pytest
from dovetail.backend.float_probe import FLOAT_EXPRESSIONS
from dovetail.plugins.entry import GROUP
from dovetail.testing import cli
from kit_levels import QUICK_LEVELS
from places import TESTS

BACKENDS = (
    *broken_backends.BROKEN,
    *broken_backends.MORE_BROKEN,
    broken_backends.Honest,
    broken_backends.Late,
    broken_backends.Compiles,
    broken_backends.DeclaresItsGap,
    broken_backends.BoastsOfAGap,
    broken_backends.MisspellsItsGap,
    broken_backends.ListsItsGaps,
    *partial.BROKEN,
    *partial.HONEST,
    *floats.BROKEN,
    *floats.HONEST,
    *limited.BROKEN,
    *flushing_cpu.DEVICES,
    *limited.LIMITED,
)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all of them are installed, as pip would do it."""
    folder = tmp_path_factory.mktemp("site")
    for backend in BACKENDS:
        name = backend.plugin.type
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        entry = f"[{GROUP}]\n{name} = {backend.__module__}:{backend.__name__}.plugin\n"
        info.joinpath("entry_points.txt").write_text(entry)
    return folder


def run_kit(site: Path, name: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Return the kit's exit status, its output and its certificate."""
    return run(
        site, name, "dovetail.commands.cli", "test-backend", name, *options, report="--report"
    )


def run_level(site: Path, name: str, level: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Run one level, and import no other: it saves a second each time."""
    plugin = (
        "pytest",
        "-c",
        "/dev/null",
        "-p",
        "dovetail.testing.plugin",
        "-p",
        "no:cacheprovider",
    )
    chosen = (f"--dovetail-device={name}", "--pyargs", f"dovetail.testing.{level}", "--tb=short")
    return run(site, name, *plugin, *chosen, *options, report="--dovetail-report")


def run(site: Path, name: str, *command: str, report: str) -> tuple[int, str, dict[str, Any]]:
    path = site / f"{name}.json"
    path.unlink(missing_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", *command, report, str(path)],
        env=environment(site),
        cwd=site,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    certificate = json.loads(path.read_text()) if path.exists() else {}
    return done.returncode, done.stdout + done.stderr, certificate


def environment(site: Path) -> dict[str, str]:
    """Return an environment in which the broken backends are installed, and `python` is this
    one.
    """
    paths = os.pathsep.join([str(site), str(TESTS), *filter(None, sys.path)])
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PYTHONPATH": paths, "PATH": programs}


EXHAUSTIVE = [
    pytest.param(lie, marks=pytest.mark.exhaustive) for lie in broken_backends.MORE_BROKEN
]


@pytest.mark.parametrize(
    "lie",
    [
        *broken_backends.BROKEN,
        *partial.BROKEN,
        *floats.BROKEN,
        *limited.BROKEN,
        flushing_cpu.LyingFlushingCpu,
        *EXHAUSTIVE,
    ],
    ids=lambda c: getattr(c, "__name__", None),
)
def test_broken_backend_is_caught(site: Path, lie: type[broken_backends.Honest]) -> None:
    level, _, case = lie.shown_by.partition(" and ")
    status, output, certificate = run_level(
        site, lie.plugin.type, level, "-x", "-k", case or "test"
    )
    assert status == 1, output
    [failure] = certificate["failures"]
    assert not certificate["conforms"] and f"test_{failure['case'].split('.')[0]}" == level
    assert failure["outcome"] == "failed" and lie.sign in failure["message"], failure
    line = (
        f"python -m pytest -p dovetail.testing.plugin --dovetail-device={lie.plugin.type} --pyargs"
    )
    assert failure["reproduce"].startswith(line) and failure["reproduce"] in output


def test_command_of_a_failure_reproduces_it(site: Path) -> None:
    """In a shell, word by word; with an honest device's name in it, it passes."""
    _, _, certificate = run_level(site, "ignoredstride", "test_layouts", "-x")
    [failure] = certificate["failures"]
    for name, status, says in (("ignoredstride", 1, "1 failed"), ("honest", 0, "1 passed")):
        line = failure["reproduce"].replace("ignoredstride", name)
        done = subprocess.run(
            line, shell=True, env=environment(site), cwd=site,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == status and says in done.stdout, done.stdout + done.stderr


def run_sample(site: Path, name: str, is_plain: bool, *options: str) -> tuple[str, dict[str, Any]]:
    """Return the output and the certificate of a sample of the kit, which must pass."""
    fewer = QUICK_LEVELS if is_plain else ()
    status, output, certificate = run_kit(site, name, "--sample", "9999", *fewer, *options)
    assert status == 0 and certificate["conforms"], output
    assert certificate["cases"] > (30 if is_plain else 60), output
    return output, certificate


FIRST, *OTHERS = partial.HONEST


@pytest.mark.parametrize(
    "device",
    [FIRST, *(pytest.param(c, marks=pytest.mark.exhaustive) for c in OTHERS)],
    ids=lambda c: getattr(c, "__name__", None),
)
def test_partial_device_passes(
    site: Path, device: type[broken_backends.Honest], is_plain: bool
) -> None:
    """A sample of each; the certificate says what the companion did."""
    name, companion = device.plugin.type, getattr(device, "companion", None)
    output, certificate = run_sample(site, name, is_plain, "-n", "0" if is_plain else "2")
    if companion is None:
        assert "companion" not in certificate
        return
    found = certificate["companion"]
    assert found["device"] == companion and found["launches"] > (0 if is_plain else 100)
    assert f"{found['launches']} launches were done by its companion, {companion}" in output


@pytest.mark.parametrize("device", floats.HONEST, ids=lambda c: c.__name__)
def test_device_with_other_floats_passes_if_declared(site: Path, device: type[Any]) -> None:
    """The case that catches a device with the same floats and no declaration."""
    level, _, case = (device.shown_by or "test_scalar_ops and fma").partition(" and ")
    status, output, certificate = run_level(site, device.plugin.type, level, "-k", case)
    assert status == 0 and certificate["conforms"] and certificate["cases"] > 1, output


@pytest.mark.parametrize(
    ("device", "status"), [(floats.FoldsZeros, 1), (floats.SaysThatItFoldsZeros, 0)],
    ids=("lying", "honest"),
)  # fmt: skip
def test_level_1_compares_what_a_device_declares_with_the_probe(
    site: Path, device: type[Any], status: int
) -> None:
    found, output, certificate = run_level(
        site, device.plugin.type, "test_lifecycle", "-k", "floats"
    )
    assert found == status and certificate["floats"]["algebra"] == "zeros", output
    assert ("Capabilities(algebra='exact'); the probe finds" in output) == (status == 1)


def test_each_sample_has_all_float_expressions(site: Path) -> None:
    status, output, certificate = run_kit(
        site, "honest", "--sample", "9999", "-k", "contracted_or_reassociated"
    )
    assert status == 0 and certificate["cases"] >= 2 * len(FLOAT_EXPRESSIONS), output


POOR = (floats.Poor,)  # the others take a minute each


@pytest.mark.parametrize(
    "device",
    [
        *POOR,
        *(
            pytest.param(c, marks=pytest.mark.exhaustive)
            for c in (*limited.LIMITED, *floats.HONEST)
            if c not in POOR
        ),
    ],
    ids=lambda c: getattr(c, "__name__", None),
)
def test_limited_device_passes(
    site: Path, device: type[broken_backends.Honest], is_plain: bool
) -> None:
    """A sample of each: the core does not use what they lack."""
    run_sample(site, device.plugin.type, is_plain)


@pytest.mark.parametrize(
    "device",
    [flushing_cpu.FlushingCpu, flushing_cpu.FlushingCpuWithoutFma],
    ids=lambda c: c.plugin.type,
)
def test_cpu_that_flushes_passes_without_a_companion(
    site: Path, device: type[flushing_cpu.FlushingCpu]
) -> None:
    """A sample of the quick levels: the device computes float32 itself, and keeps subnormals."""
    _, certificate = run_sample(site, device.plugin.type, True, "-n", "2")
    assert "companion" not in certificate


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("cpu_ftz", {"add", "mul", "div", "fma"}),
        ("cpu_ftz_no_fma", {"add", "mul", "div"}),
        ("honest", set()),
    ],
)
def test_certificate_counts_points_that_guards_repair(
    site: Path, name: str, operations: set[str]
) -> None:
    _, output, certificate = run_level(site, name, "test_lifecycle", "-k", "guards_repair")
    repaired = certificate["repaired"]
    points = repaired.pop("points")
    assert {op for op, n in repaired.items() if n} == operations, output
    assert all(n < points for n in repaired.values())


@pytest.mark.exhaustive
def test_asynchronous_device_passes(site: Path) -> None:
    """It is the base of the broken stream backends."""
    _, certificate = run_sample(site, "late", is_plain=False)
    assert certificate["failures"] == []


@pytest.mark.exhaustive
def test_device_with_binaries_passes(site: Path) -> None:
    """It is the base of the broken binary backends."""
    _, certificate = run_sample(site, "compiles", is_plain=False)
    assert certificate["failures"] == []


def test_certificate_describes_the_run(site: Path) -> None:
    _, output, part = run_level(site, "honest", "test_streams", "-k", "order", "-n", "2")
    assert part["conforms"] and not part["whole"] and part["sample"] == 1
    assert part["counts"] == {"passed": part["cases"]} and part["failures"] == []
    assert part["levels"] == {"streams": {"passed": part["cases"]}}
    assert f"streams: {part['cases']} passed" in output
    assert part["kit"]["digest"] and len(part["digest"]) == 64 and part["seconds"] > 0
    assert part["device"]["type"] == "honest" and part["versions"]["plugin"] == "honest 1.0"


def test_honest_device_passes(site: Path, is_plain: bool) -> None:
    _, certificate = run_sample(site, "honest", is_plain)
    assert certificate["comparisons"] > certificate["cases"] and certificate["counts"].keys() == {
        "passed"
    }


def test_declared_gap_is_accepted_and_counted(site: Path) -> None:
    status, output, certificate = run_level(site, "declaresitsgap", "test_scalar_ops", "-k", "fma")
    assert status == 0, output
    assert certificate["counts"]["gap"] >= 4 and certificate["gaps"]


def test_declared_gap_that_works_fails(site: Path) -> None:
    status, output, certificate = run_level(site, "boastsofagap", "test_streams", "-k", "order")
    assert status == 1 and "declared gap: no streams" in output
    assert set(certificate["counts"]) == {"unexpected pass"}


def test_declared_gap_without_a_case_is_an_error(site: Path) -> None:
    for options, expected in (((), 2), (("-n", "2", "-k", "where"), 1)):
        status, output, _ = run_kit(site, "misspellsitsgap", *options)
        assert status == expected and "exist: scalar_ops.fused_multiply_add" in output


def test_gaps_of_other_levels_are_ignored(site: Path) -> None:
    status, output, certificate = run_level(site, "declaresitsgap", "test_streams", "-k", "order")
    assert status == 0 and certificate["levels"].keys() == {"streams"}, output


def test_run_without_cases_fails(site: Path) -> None:
    status, output, certificate = run_kit(site, "honest", "-k", "no_such_case")
    assert status == 1 and "proves nothing" in output
    assert not certificate["conforms"]


@pytest.mark.parametrize("name", ["absent", "honest:7"])
def test_missing_device_fails(site: Path, name: str) -> None:
    status, output, certificate = run_kit(site, name)
    assert status == 2 and name.split(":")[0] in output and not certificate


def test_kit_is_a_pytest_plugin(site: Path, tmp_path: Path) -> None:
    """The command of the documentation, word by word, where dovetail is installed."""
    settings = tomllib.loads(TESTS.parent.joinpath("pyproject.toml").read_text())
    entries = settings["project"]["entry-points"]["pytest11"]
    info = tmp_path / "kit-1.0.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text("Metadata-Version: 2.1\nName: kit\nVersion: 1.0\n")
    lines = "".join(f"{name} = {value}\n" for name, value in entries.items())
    info.joinpath("entry_points.txt").write_text(f"[pytest11]\n{lines}")
    environ = environment(site)
    environ["PYTHONPATH"] = os.pathsep.join([str(tmp_path), environ["PYTHONPATH"]])

    def done(*options: str) -> subprocess.CompletedProcess[str]:
        command = ["pytest", "--pyargs", "dovetail.testing.test_streams", *options]
        return subprocess.run(
            [sys.executable, "-m", *command], env=environ, cwd=tmp_path,
            capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    found = done("--dovetail-device=honest")
    assert found.returncode == 0 and "14 passed" in found.stdout, found.stdout + found.stderr
    without = done()
    assert without.returncode == 4 and "give --dovetail-device=NAME" in without.stderr


def test_failure_shows_the_kernel(site: Path) -> None:
    case = "arithmetic and mul-float32-grid2"
    status, output, _ = run_level(site, "flushesdenormals", "test_scalar_ops", "-k", case)
    assert status == 1
    assert (
        "kernel mul_f32(" in output
        and "test_scalar_ops::test_arithmetic[mul-float32-grid2]" in output
    )


def test_kit_without_xdist_runs_and_reports_it(
    site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("-p", "no:xdist", "-k", "info", "-W", "error")
    status, output, certificate = run_level(site, "honest", "test_lifecycle", *options)
    assert status == 0 and certificate["conforms"] and "xdist_group" not in output, output
    monkeypatch.setattr("dovetail.testing.cli.find_spec", lambda name: None)
    assert cli.main(["honest", "-n", "2"]) == 2
    assert "pip install pytest-xdist" in capsys.readouterr().err


def test_gaps_that_are_no_mapping_are_reported(site: Path) -> None:
    status, output, certificate = run_level(site, "listsitsgaps", "test_streams")
    assert status == 4 and not certificate
    assert "dovetail_conformance: expected a mapping of strings" in output
