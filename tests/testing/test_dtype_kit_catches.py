"""The dtype kit against broken dtypes: each must be caught, and honest ones must pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import broken_blocks as blocks
import broken_dtypes
import pytest
from dovetail.dtypes import BY_NAME
from dovetail.errors import PluginError
from dovetail.plugins.dtype_registry import DTypeRegistry
from dovetail.plugins.entry import PluginEntry
from installed import INSTALLED
from places import TESTS

GROUP = "dovetail.dtypes.v1"
INSTALLABLE = ("float8_e4m3", "float8_e5m2", "int4_32", "int8_32")  # of dovetail-dtypes
# detected through an entry point of their own
SEEN = [name for name in broken_dtypes.REFUSED if name != "others_name"]


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder in which all of them are installed, as pip would do it."""
    folder = tmp_path_factory.mktemp("dtypes")
    offered = {getattr(broken_dtypes, name).entry: f"broken_dtypes:{name}"
               for name in ("honest8", *SEEN, *broken_dtypes.BROKEN)}  # fmt: skip
    offered |= {name: f"broken_blocks:{name}" for name in blocks.BROKEN}
    offered |= {name: f"dovetail_dtypes.{name}" for name in INSTALLABLE}
    for name, where in offered.items():
        info = folder / f"{name}-1.0.dist-info"
        info.mkdir()
        info.joinpath("METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        info.joinpath("entry_points.txt").write_text(f"[{GROUP}]\n{name} = {where}\n")
    return folder


def run_kit(site: Path, name: str, *options: str) -> tuple[int, str, dict[str, Any]]:
    """Return the exit status of `dovetail test-dtype`, its output and its certificate."""
    report = site / f"{name}.json"
    report.unlink(missing_ok=True)
    command = ("dovetail.commands.cli", "test-dtype", name, "--report", str(report))
    paths = os.pathsep.join([str(site), str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(
        [sys.executable, "-m", *command, *options], env={**os.environ, "PYTHONPATH": paths},
        cwd=site, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    found = json.loads(report.read_text()) if report.exists() else {}
    return done.returncode, done.stdout + done.stderr, found


@pytest.mark.parametrize("name", broken_dtypes.REFUSED)
def test_invalid_description_is_rejected(name: str) -> None:
    plugin, known = getattr(broken_dtypes, name), dict(BY_NAME)
    entry = PluginEntry(plugin.entry, f"broken_dtypes:{name}", GROUP, "dovetail-lies", "1.0")
    registry = DTypeRegistry(find=lambda: [entry])
    for _ in range(2):
        with pytest.raises(PluginError) as raised:
            registry.find_by_name(plugin.entry)
        text = str(raised.value)
        assert plugin.sign in text and text.startswith(f'dtype "{plugin.entry}" '), text
        assert "dovetail-lies 1.0" in text and "To fix it" in text
    assert known == BY_NAME, "nothing of it stays"


def test_kit_names_the_error_of_a_plugin(site: Path) -> None:
    status, output, certificate = run_kit(site, "others_code")
    assert status == 2 and not certificate and broken_dtypes.others_code.sign in output, output


@pytest.mark.parametrize("name", [*broken_dtypes.BROKEN, *blocks.BROKEN])
def test_broken_dtype_is_caught(site: Path, name: str) -> None:
    plugin: Any = getattr(broken_dtypes, name, None) or getattr(blocks, name)
    status, output, certificate = run_kit(site, name, "-x", "-k", plugin.shown_by)
    assert status == 1, output
    [failure] = certificate["failures"]
    assert not certificate["conforms"] and certificate["dtype"] == name
    assert plugin.sign in failure["message"], failure
    assert f"--dovetail-dtype={name}" in failure["reproduce"]


@pytest.mark.parametrize("device", ["reference", *sorted({"cpu", "opencl", "cuda"} & INSTALLED)])
@pytest.mark.parametrize("name", ["honest8", *INSTALLABLE])
def test_honest_dtype_passes(site: Path, name: str, device: str) -> None:
    sample = ("--sample", "1" if device == "cpu" and name != "honest8" else "16")
    if device == "cuda":
        pytest.importorskip("cuda.bindings")
        sample = (*sample, "-p", "cuda_double.plugin")
    status, output, certificate = run_kit(site, name, "--device", device, *sample)
    if device == "opencl" and status == 2 and "unavailable" in output:
        pytest.skip("there is no OpenCL driver")
    assert status == 0, output
    assert certificate["conforms"] and certificate["cases"] > 10
    assert certificate["comparisons"] > certificate["cases"]
    assert certificate["counts"].keys() == {"passed"}


def test_missing_dtype_is_reported(site: Path) -> None:
    status, output, certificate = run_kit(site, "absent")
    assert status == 2 and "no plugin brings a dtype 'absent'" in output and not certificate
