"""Pages and docstrings name existing files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
APPLIED = {"adding-an-op.md", "adding-a-fusion-rule.md"}  # these pages add files; tests apply them
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")),
    *sorted(p for p in (ROOT / "docs").glob("*.md") if p.name not in APPLIED),
    *sorted((ROOT / "docs" / "internals").glob("*.md")),
]
NAMED = re.compile(r"`([\w./-]+\.(?:py|pyi|html|toml))`")


def absent(text: str) -> list[str]:
    """Return the files that a text names and that are nowhere under the root."""
    found = []
    for name in NAMED.findall(text):
        whole = "/" in name and (ROOT / name.partition("/")[0]).is_dir()
        there = (ROOT / name).exists() if whole else any(ROOT.glob(f"*/**/{name}"))
        found += [] if there else [name]
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_files_named_by_a_page_exist(page: Path) -> None:
    assert absent(page.read_text()) == []


def test_absent_file_is_detected() -> None:
    assert absent("`tests/nowhere.py`, `nowhere.py`, `tests/test_docs.py`, `expr.py`") == [
        "tests/nowhere.py", "nowhere.py",
    ]  # fmt: skip


def test_index_links_every_guide() -> None:
    linked = set(re.findall(r"\]\(([\w-]+\.md)\)", (ROOT / "docs" / "index.md").read_text()))
    written = {p.name for p in (ROOT / "docs").glob("*.md")}
    assert written - linked == {"index.md", "releasing.md"}  # the latter is for maintainers
