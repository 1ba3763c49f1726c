"""Project files other than code: citation, issue templates, workflows, and pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dovetail as dt
import pytest
from places import ROOT

TEMPLATES = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(path: Path) -> Any:
    yaml = pytest.importorskip("yaml", reason="no reader of YAML is here: pip install pyyaml")
    return yaml.safe_load(path.read_text("utf-8"))


def test_citation_has_this_version() -> None:
    """The rules of cffconvert for a file of version 1.2.0, as far as this one uses it."""
    said = read(ROOT / "CITATION.cff")
    assert said["cff-version"] == "1.2.0" and said["type"] == "software"
    assert {"message", "title", "authors"} <= {*said} and said["license"] == "BSD-3-Clause"
    assert said["version"] == dt.__version__
    assert all({"name"} <= {*a} or {"family-names"} <= {*a} for a in said["authors"])
    known = {
        "abstract", "authors", "cff-version", "date-released", "doi", "keywords", "license",
        "message", "repository-code", "title", "type", "url", "version",
    }  # fmt: skip
    assert {*said} <= known


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda p: p.stem)
def test_issue_templates_are_valid_forms(path: Path) -> None:
    said = read(path)
    if path.stem == "config":
        assert said["contact_links"][0]["url"].startswith("https://")
        return
    assert said["name"] and said["description"]
    fields = [field["id"] for field in said["body"]]
    assert len({*fields}) == len(fields) and all(f["attributes"]["label"] for f in said["body"])


def test_issue_templates_exist() -> None:
    assert {p.stem for p in TEMPLATES} >= {"bug", "slow", "wish", "config"}
    assert "changes/" in (ROOT / ".github" / "pull_request_template.md").read_text("utf-8")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.stem)
def test_workflows_run_existing_files_with_minimal_permissions(path: Path) -> None:
    said = read(path)
    assert said["permissions"] == {"contents": "read"}
    text = path.read_text("utf-8")
    files = re.findall(r"(?:tools/[\w.]+|noxfile\.py)", text)
    assert files and all((ROOT / file).exists() for file in files)
    used = re.findall(r"uses: (\S+)", text)
    assert used and all("@" in action for action in used), "an action without a version"


def test_test_workflow_covers_every_system_and_python() -> None:
    matrix = read(ROOT / ".github/workflows/tests.yml")["jobs"]["tests"]["strategy"]["matrix"]
    assert [s.partition("-")[0] for s in matrix["system"]] == ["ubuntu", "macos", "windows"]
    classes = re.findall(r'Python :: (3\.\d+)"', (ROOT / "pyproject.toml").read_text("utf-8"))
    assert matrix["python"] == classes


@pytest.mark.parametrize("name", ["SECURITY.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md"])
def test_links_of_project_pages_exist(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    links = [t for t in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in t]
    assert len(text) > 500 and [t for t in links if not (ROOT / t).exists()] == []


def test_variables_named_by_the_security_page_are_read() -> None:
    known = (ROOT / "core/dovetail/environment.py").read_text("utf-8")
    named = re.findall(r"DOVETAIL_[A-Z_]+", (ROOT / "SECURITY.md").read_text("utf-8"))
    assert named and all(name in known for name in named)
