"""Public names: an unannounced change is detected, and change fragments are well formed."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from places import ROOT

FRAGMENTS = sorted((ROOT / "changes").glob("*"))
KINDS = {"added", "changed", "faster", "fixed", "deprecated", "removed", "security"}


def generator() -> Any:
    """Return the module of `tools/names.py`."""
    spec = importlib.util.spec_from_file_location("names", ROOT / "tools" / "names.py")
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_public_names_equal_the_recorded_ones() -> None:
    command = [sys.executable, "tools/names.py", "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_recorded_file_has_every_kind_of_name() -> None:
    lines = {*(ROOT / "tests" / "public_names.txt").read_text("utf-8").splitlines()}
    for start in (
        "dt.Tensor.reshape(", "dt.nn.Linear(in_features, out_features, bias=True", "dt.linalg.svd(",
        "dt.optim.SGD(", "dt.data.DataLoader(", "dt.distributions.Normal(", "dt.onnx.export(",
        "dovetail.extend.Backend.copy_in(self", "dt.fft.rfft(", "dt.ShapeError",
        "dt.float32: DType", "dt.SlowDeviceWarning", "dt.random.default_rng(",
        "dt.nn.functional.relu(",
    ):  # fmt: skip
        assert any(line.startswith(start) for line in lines), start


def test_changed_public_name_is_detected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = generator()
    monkeypatch.setenv("DOVETAIL_PURE", "1")
    monkeypatch.setattr(names, "NAMES_FILE", tmp_path / "public_names.txt")
    monkeypatch.setattr(names, "lines", lambda: ["dt.a(x)", "dt.b(x)"])
    assert names.main([]) == 0 and names.main(["--check"]) == 0
    monkeypatch.setattr(names, "lines", lambda: ["dt.a(x, *, axis=None)", "dt.b(x)"])
    assert names.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "-dt.a(x)" in said and "+dt.a(x, *, axis=None)" in said and "dt.b" not in said


def test_signatures_are_deterministic_across_processes() -> None:
    def f(x: int, y: object = frozenset({"b", "a"}), z: object = len, *more: int) -> int:
        return x

    assert (
        generator()
        .format_signature(f)
        .startswith("(x, y={'a', 'b'}, z=<built-in function len>, *more)")
    )


# --- fragments of the changes


def test_fragments_have_valid_names_and_texts() -> None:
    assert FRAGMENTS or (ROOT / "changes").is_dir()
    for path in FRAGMENTS:
        if path.name in ("README.md", "template.md.jinja"):
            continue
        found = re.fullmatch(r"[a-z0-9-]+\.([a-z]+)\.md", path.name)
        assert found and found[1] in KINDS, f"changes/{path.name}: see docs/versions.md"
        lines = path.read_text("utf-8").splitlines()
        assert lines and all(line.startswith(("- ", "  ")) for line in lines), path.name


def test_towncrier_has_the_kinds_of_fragments() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    assert {kind["directory"] for kind in settings["type"]} == KINDS


def test_release_notes_contain_every_line_of_the_fragments() -> None:
    pytest.importorskip("towncrier")
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", "9.9.9"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "9.9.9" in done.stdout
    for path in FRAGMENTS:
        if path.suffix == ".md" and path.name != "README.md":
            for line in path.read_text("utf-8").splitlines():
                assert line.strip() in done.stdout, (path.name, line)
