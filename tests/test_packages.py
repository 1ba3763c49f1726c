"""Wheels and sdists of all four distributions, and their metadata."""

from __future__ import annotations

import email.message
import importlib.util
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from places import ROOT


def load(path: str) -> Any:
    """Return the module of a file."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    assert spec is not None and spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


packages, metadata, setup = (
    load(path) for path in ("tools/packages.py", "tools/metadata.py", "setup.py")
)
PROJECTS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    for name, folder in packages.DISTRIBUTIONS.items()
}


def page(**changes: str | None) -> email.message.Message:
    """Return valid metadata, with these fields changed."""
    said = email.message.Message()
    fields = {
        "Name": "dovetail-cpu-llvm", "Version": "0.1.0", "License-Expression": "BSD-3-Clause",
        "License-File": "LICENSE", "Requires-Python": ">=3.11",
        "Description-Content-Type": "text/markdown",
        "Requires-Dist": "dovetail-tensor<0.2,>=0.1",
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
        ({"Requires-Dist": "dovetail-tensor"}, "does not ask for >=0.1,<0.2"),
        ({"Requires-Dist": "dovetail-tensor<1,>=0.1"}, "does not ask for"),
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


def test_relative_links_of_an_index_page_are_detected() -> None:
    said = page()
    said.set_payload("text " * 100 + "[a](https://example.org) [b](#there) [guide](docs/start.md)")
    (line,) = packages.metadata(said, "dovetail-cpu-llvm")
    assert "docs/start.md" in line


def test_page_of_the_core_has_absolute_links_and_unchanged_code() -> None:
    text = (
        "[a](docs/a.md), [`b`](B.md#c), [d](#d), [e](https://e.org), ![f](docs/f.svg)\n"
        '<img src="docs/f.svg"> <a href="LICENSE">\n`g[0](x)`\n```python\nh[0](x)\n```\n'
    )
    assert setup.with_absolute_links(text, "https://s.org") == (
        "[a](https://s.org/blob/main/docs/a.md), [`b`](https://s.org/blob/main/B.md#c), [d](#d), "
        "[e](https://e.org), ![f](https://s.org/raw/main/docs/f.svg)\n"
        '<img src="https://s.org/raw/main/docs/f.svg"> <a href="https://s.org/blob/main/LICENSE">\n'
        "`g[0](x)`\n```python\nh[0](x)\n```\n"
    )
    readme = (ROOT / "README.md").read_text("utf-8")
    assert packages.relative_links(readme) != []
    assert packages.relative_links(setup.with_absolute_links(readme, "https://s.org")) == []


# --- the version, the addresses, the requirements


@pytest.mark.parametrize(("compiler", "level"), [("true", "-O1"), ("false", "-O2")])
def test_level_is_o2_if_the_compiler_refuses_the_passes(compiler: str, level: str) -> None:
    options = setup.flags([compiler])
    assert options[0] == level
    assert ("-fthread-jumps" in options) is (level == "-O1")


def test_range_of_compatible_versions() -> None:
    assert metadata.compatible("0.1.3") == ">=0.1,<0.2" and metadata.compatible("2.4.0") == ">=2,<3"


def test_version_and_addresses_have_one_source() -> None:
    assert metadata.changes(ROOT) == {}
    changed = metadata.changes(ROOT, "3.1.0")
    assert len(changed) == 15 and "version: 3.1.0" in changed["CITATION.cff"]
    assert '__version__ = "3.1.0"' in changed["backends/cuda/dovetail_cuda/__init__.py"]
    assert 'cpu = ["dovetail-cpu-llvm>=3,<4"]' in changed["pyproject.toml"]
    assert '"dovetail-tensor>=3,<4"' in changed["backends/opencl/pyproject.toml"]
    for name, project in PROJECTS.items():
        assert "version" in project["project"]["dynamic"], name


def test_changed_address_is_copied(tmp_path: Path) -> None:
    paths = [metadata.CORE, "pyproject.toml", "CITATION.cff", ".github/ISSUE_TEMPLATE/config.yml"]
    paths += ["backends/cuda/pyproject.toml", "backends/cuda/dovetail_cuda/__init__.py"]
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        text = (ROOT / path).read_text("utf-8")
        moved = text.replace("dovetail.invalid/source", "example.org/code")
        (tmp_path / path).write_text(moved if path == "pyproject.toml" else text)
    changed = metadata.changes(tmp_path)
    assert {*changed} == {*paths[2:5]}
    assert "repository-code: https://example.org/code" in changed["CITATION.cff"]
    assert 'Source = "https://example.org/code"' in changed["backends/cuda/pyproject.toml"]


def test_tools_of_development_are_no_extras() -> None:
    project = PROJECTS["dovetail-tensor"]
    extras = {*project["project"]["optional-dependencies"]}
    groups = {*project["dependency-groups"]}
    assert groups == {"docs", "wheels", "checks", "release", "notebooks", "peers"}
    users = {
        "cpu",
        "opencl",
        "cuda",
        "vulkan",
        "webgpu",
        "dtypes",
        "files",
        "onnx",
        "tensorboard",
        "demo",
        "scale",
    }
    users.add("completion")
    assert extras == users | {"all", "test"}
    parts = re.findall(r"\[(.*?)\]", str(project["project"]["optional-dependencies"]["all"])[1:])
    assert {*",".join(parts).split(",")} == users


# --- commands that install

WRITTEN = {"dovetail-fpga", "dovetail-tutorial"}  # pages write these with `dovetail new-backend`
SOURCES = sorted(
    p
    for p in [*(ROOT / "core").rglob("*.py"), *(ROOT / "backends").rglob("*.py")]
    if "build" not in p.relative_to(ROOT).parts
)
PAGES = [
    *ROOT.glob("*.md"),
    *(p for folder in ("docs", "examples", "backends") for p in (ROOT / folder).rglob("*.md")),
    *(ROOT / "docs" / "tutorials" / "sources").glob("*.py"),
    ROOT / ".ci" / "run",
    *(ROOT / ".github" / "workflows").glob("*.yml"),
]


def test_one_function_writes_all_commands_that_install() -> None:
    writer = ROOT / "core" / "dovetail" / "install_source.py"
    others = [p for p in SOURCES if p != writer and "pip install " in p.read_text("utf-8")]
    assert writer in SOURCES and others == []


def installed_by(text: str) -> list[tuple[str, str]]:
    """Return (distribution or folder, extras) of dovetail's own in the text's commands."""
    commands = re.findall(r"pip install ([^`\n&]*)", text)
    own = r"(?<![\w/.-])(dovetail[\w-]*|\.(?:/backends/\w+)?)(?:\[([\w,]+)\])?(?![\w/])"
    return [found for command in commands for found in re.findall(own, command)]


def test_commands_name_existing_distributions_and_extras() -> None:
    assert installed_by('pip install "dovetail[demo,all]" ./backends/cuda x') == [
        ("dovetail", "demo,all"), ("./backends/cuda", ""),
    ]  # fmt: skip
    wrong, count = [], 0
    folders = {name: (ROOT / name).resolve() for name in (".", "./backends/cpu_llvm")}
    folders |= {
        f"./backends/{name}": ROOT / "backends" / name
        for name in ("opencl", "cuda", "vulkan", "webgpu")
    }
    for path in [*SOURCES, *PAGES]:
        text = path.read_text("utf-8")
        named = installed_by(text)
        quoted = re.findall(r"install_command\(f?'([\w-]+)\[(\w+)\]'", text)
        for name, extras in [*named, *quoted]:
            known = {folder: n for n, folder in packages.DISTRIBUTIONS.items()}
            project = PROJECTS.get(known.get(folders.get(name, Path()), name))
            offered = project["project"].get("optional-dependencies", {}) if project else {}
            count += 1
            if name in WRITTEN:
                continue
            if project is None or {*filter(None, extras.split(","))} - {*offered}:
                wrong.append(f"{path.relative_to(ROOT)}: {name}[{extras}]")
    assert count > 20 and wrong == []


@pytest.mark.parametrize("page", ["index", "environment"])
def test_quick_install_from_source_is_documented(page: str) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    assert "DOVETAIL_PURE=1 pip install . ./backends/cpu_llvm" in text


def test_groups_named_by_commands_exist() -> None:
    groups = {*PROJECTS["dovetail-tensor"]["dependency-groups"]}
    named = {g for p in PAGES for g in re.findall(r"--group[ =](\w+)", p.read_text("utf-8"))}
    assert named <= groups and {"docs", "checks", "peers", "notebooks"} <= named


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
