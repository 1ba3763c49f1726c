"""docs/adding-a-fusion-rule.md adds a rule in a copy of the core, and the rule works."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import golden_plans

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "adding-a-fusion-rule.md").read_text()
NEW = re.compile(r"In a new file `([\w/.]+)`:\n\n```python\n(.*?)```", re.DOTALL)
ADDED = re.compile(
    r"In `([\w/.]+)`,\s+after the line that begins `([^`]+)`:\n\n```(?:python|text)\n(.*?)```",
    re.DOTALL,
)
CHANGED = re.compile(r"The example changes only `(\w+)`")
CHANGED_PLANS = """
import golden_plans
from dovetail.testing.verified import verify_passes
with verify_passes():
    for name in golden_plans.GRAPHS:
        text = golden_plans.text(name)
        if text != (golden_plans.FOLDER / f"{name}.txt").read_text():
            print(name, "several others read it" in text)
"""


def test_rule_of_the_page_changes_the_plan_as_described(tmp_path: Path) -> None:
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "core", tmp_path / "core", ignore=ignored)
    for path, text in NEW.findall(PAGE):
        (tmp_path / path).write_text(text)
    for path, start, text in ADDED.findall(PAGE):
        lines = (tmp_path / path).read_text().splitlines(keepends=True)
        (at,) = (i for i, line in enumerate(lines) if line.lstrip().startswith(start))
        lines.insert(at + 1, text)
        (tmp_path / path).write_text("".join(lines))
    tests = Path(golden_plans.__file__).parent
    others = [p for p in sys.path if p and not p.startswith(str(ROOT / "core"))]
    path = os.pathsep.join([str(tmp_path / "core"), str(tests), *others])
    done = subprocess.run(
        [sys.executable, "-c", CHANGED_PLANS], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [*CHANGED.findall(PAGE), "True"]
