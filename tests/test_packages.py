"""Wheels and sdists of all four distributions, and their metadata."""

from __future__ import annotations

import email.message
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from places import ROOT


def checker() -> Any:
    """Return the module of `tools/packages.py`."""
    spec = importlib.util.spec_from_file_location("packages", ROOT / "tools" / "packages.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


packages = checker()


def page(**changes: str | None) -> email.message.Message:
    """Return valid metadata, with these fields changed."""
    said = email.message.Message()
    fields = {
        "Name": "dovetail-cpu-llvm", "Version": "0.1.0", "License-Expression": "BSD-3-Clause",
        "License-File": "LICENSE", "Requires-Python": ">=3.11",
        "Description-Content-Type": "text/markdown", "Requires-Dist": "dovetail<0.2,>=0.1",
    }  # fmt: skip
    for name, value in {**fields, **{k.replace("_", "-"): v for k, v in changes.items()}}.items():
        if value is not None:
            said[name] = value
    for link in packages.LINKS:
        said["Project-URL"] = f"{link}, https://example.org/{link}"
    for python in packages.PYTHONS:
        said["Classifier"] = f"Programming Language :: Python :: {python}"
    said.set_payload("text " * 100)
    return said


def test_valid_metadata_is_accepted() -> None:
    assert packages.metadata(page(), "dovetail-cpu-llvm", release=True) == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"Requires-Dist": "dovetail"}, "does not ask for >=0.1,<0.2"),
        ({"Requires-Dist": "dovetail<1,>=0.1"}, "does not ask for"),
        ({"Requires-Dist": "numpy"}, "asks for 0 of dovetail's"),
        ({"License-File": None}, "names no licence"),
        ({"Description-Content-Type": None}, "has no text"),
        ({"Requires-Python": ">=3.10"}, "Requires-Python is >=3.10"),
    ],
)
def test_invalid_metadata_is_detected(changes: dict[str, str | None], word: str) -> None:
    (line,) = packages.metadata(page(**changes), "dovetail-cpu-llvm")
    assert word in line


def test_missing_links_classifiers_and_placeholders_are_detected() -> None:
    said = page()
    del said["Project-URL"]
    del said["Classifier"]
    lines = packages.metadata(said, "dovetail-cpu-llvm")
    assert len(lines) == 2 and "Issues" in lines[0] and "3.12" in lines[1]
    said = page()
    del said["Project-URL"]
    for link in packages.LINKS:
        said["Project-URL"] = f"{link}, https://dovetail.invalid/{link}"
    assert packages.metadata(said, "dovetail-cpu-llvm") == []
    (line,) = packages.metadata(said, "dovetail-cpu-llvm", release=True)
    assert "placeholders" in line


def test_pin_of_compatible_versions() -> None:
    assert (
        packages.version_range("0.1.3") == ">=0.1,<0.2"
        and packages.version_range("2.4.0") == ">=2,<3"
    )


def test_missing_and_foreign_files_are_detected(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    for name in ("__init__.py", "work.py"):
        (tmp_path / "odd" / name).touch()
    (tmp_path / "pyproject.toml").write_text('[tool.setuptools]\npackages = ["odd"]\n')
    held = {"odd/__init__.py", "odd/work.py", "odd-1.dist-info/licenses/LICENSE"}
    packed = {"odd/__init__.py", "odd/work.py", "LICENSE", "README.md"}
    assert packages.contents(tmp_path, held, packed) == []
    wrong = packages.contents(tmp_path, held - {"odd/work.py"} | {"tests/x.py"}, {"LICENSE"})
    assert "odd/work.py is missing" in wrong and "README.md is missing" in wrong
    assert "the wheel holds tests" in wrong and len(wrong) == 5


def test_every_licence_is_the_same() -> None:
    texts = {(folder / "LICENSE").read_text() for folder in packages.DISTRIBUTIONS.values()}
    assert len(texts) == 1


@pytest.mark.exhaustive
def test_packages_are_built_checked_and_installed(tmp_path: Path) -> None:
    """As in `.ci/run`, but with downloads: minutes."""
    pytest.importorskip("build")
    pytest.importorskip("twine")
    done = subprocess.run(
        [sys.executable, "tools/packages.py", "--into", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert len([*tmp_path.glob("*.whl")]) == len([*tmp_path.glob("*.tar.gz")]) == 4
