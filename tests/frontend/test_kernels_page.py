"""The blocks of docs/kernels-of-loops.md and docs/extensions.md run, one after the other."""

from __future__ import annotations

import re
import runpy
import shutil
from pathlib import Path

import pytest
from places import ROOT


@pytest.mark.parametrize(
    ("name", "count", "printed"),
    [("kernels-of-loops", 7, "kernel five_point(out: w f32, u: r f32"), ("extensions", 4, "")],
)
def test_code_of_the_page_runs(
    name: str, count: int, printed: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if name == "extensions" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
        pytest.skip("there is no C++ compiler")
    page = (ROOT / "docs" / f"{name}.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == count
    program = tmp_path / "page.py"  # a file, because kernels are compiled from source text
    program.write_text("\n".join(blocks))
    runpy.run_path(str(program))
    assert capsys.readouterr().out.startswith(printed)
