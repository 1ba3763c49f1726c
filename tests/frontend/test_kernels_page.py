"""The blocks of docs/kernels-of-loops.md run, one after the other."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
from places import ROOT


def test_code_of_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = (ROOT / "docs" / "kernels-of-loops.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 7
    program = tmp_path / "page.py"  # a file, because kernels are compiled from source text
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program))
    assert capsys.readouterr().out.startswith("kernel five_point(out: w f32, u: r f32")
