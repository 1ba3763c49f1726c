"""The pages about the code's structure: architecture, internals, glossary."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
CORE = ROOT / "core" / "dovetail"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
INTERNALS = ROOT / "docs" / "internals"
PACKAGES = sorted(p.parent.name for p in CORE.glob("*/__init__.py"))
ARCHITECTURE_BYTES_MAX = 12_000
TEMPLATE = "template"  # a folder of files for new backends, not a package


def modules_of(package: str) -> set[str]:
    """Return the modules of a package by their path in it; "core": those in no package."""
    if package == "core":
        return {p.stem for p in CORE.glob("*.py")} - {"__init__"}
    folder = CORE / package
    paths = {p.relative_to(folder).with_suffix("") for p in folder.rglob("*.py")}
    own = {p.as_posix() for p in paths if p.name != "__init__" and TEMPLATE not in p.parts}
    return own | {p.name for p in folder.iterdir() if p.name == TEMPLATE}


def modules_in_table(page: str) -> list[str]:
    """Return the modules that the section "Modules" of a page lists, one a row."""
    section = page.partition("\n## Modules\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `([\w/]+)`", section, re.MULTILINE)


@pytest.mark.parametrize("package", ["core", *PACKAGES])
def test_internals_page_lists_each_module_of_its_package_once(package: str) -> None:
    listed = modules_in_table((INTERNALS / f"{package}.md").read_text())
    assert sorted(listed) == sorted(modules_of(package))


def test_modules_in_table_ignores_other_sections() -> None:
    page = "| `w` |\n## Modules\n\n| module |\n|---|\n| `a/b` | c |\n\n## More\n\n| `x` | y |\n"
    assert modules_in_table(page) == ["a/b"]


def test_index_of_internals_links_every_page() -> None:
    linked = set(re.findall(r"\]\((\w+)\.md\)", (INTERNALS / "README.md").read_text()))
    assert linked == {p.stem for p in INTERNALS.glob("*.md")} - {"README"}


def test_architecture_is_short_and_links_the_page_of_every_package() -> None:
    text = ARCHITECTURE.read_text()
    assert len(text.encode()) <= ARCHITECTURE_BYTES_MAX
    linked = set(re.findall(r"\]\(docs/internals/(\w+)\.md\)", text))
    assert {"core", "backends", *PACKAGES} <= linked


def test_paths_in_architecture_exist() -> None:
    text = ARCHITECTURE.read_text()
    named = re.findall(
        r"`([\w./]+\.(?:py|toml|md))`|`((?:tests|tools|core|backends)/[\w/]+)`", text
    )
    paths = {a or b for a, b in named}
    assert len(paths) > 40
    backends = [p.parent for p in (ROOT / "backends").glob("*/*/plugin.py")]
    places = [ROOT, CORE, *backends]
    assert [p for p in sorted(paths) if not any((place / p).exists() for place in places)] == []


def terms() -> list[str]:
    """Return the terms of the glossary in the order of the page."""
    text = (ROOT / "docs" / "glossary.md").read_text()
    return re.findall(r"^- \*\*(.+?)\*\*: ", text, re.MULTILINE)


def test_glossary_defines_each_term_once_in_alphabetical_order() -> None:
    found = terms()
    assert len(found) > 80
    assert found == sorted({*found}, key=str.lower)


def test_paths_in_glossary_exist() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text()
    named = re.findall(r"\((`[^)]*`)\)$", text, re.MULTILINE)
    paths = [p for group in named for p in re.findall(r"`([\w/.]+)`", group)]
    assert len(paths) > 80
    assert [p for p in paths if not (CORE / p).exists() and not (ROOT / p).exists()] == []
