"""The blocks of docs/attention.md run, one after the other."""

from __future__ import annotations

import re
from pathlib import Path

import dovetail as dt

ROOT = Path(__file__).parent.parent.parent


def test_code_of_the_page_runs() -> None:
    page = (ROOT / "docs" / "attention.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 6
    names: dict[str, object] = {}
    before = dt.default_device()
    try:
        for block in blocks:
            exec(block, names)
    finally:
        dt.set_default_device(before)
