"""The README is true: sessions print what it says, links lead somewhere, commands exist."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.commands.cli import COMMANDS
from dovetail.ops import table as ops
from dovetail.tensor.verbs import reduce

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").glob("*.md")),
]
SESSION = re.compile(r"```python\n(>>>.*?)```", re.DOTALL)


def failures(text: str, name: str) -> list[str]:
    """What the sessions in a page print otherwise than it says."""
    said: list[str] = []
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=flags)
    for number, session in enumerate(SESSION.findall(text), 1):
        test = doctest.DocTestParser().get_doctest(session, {}, f"{name}[{number}]", name, 0)
        runner.run(test, out=said.append)
    return said


def test_a_wrong_page_is_seen() -> None:
    assert failures("```python\n>>> 1 + 1\n3\n```", "x")
    assert not failures("```python\n>>> 1 + 1\n2\n```", "x")


def test_the_readme_has_a_session() -> None:
    assert SESSION.search(PAGES[0].read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_sessions_print_what_the_page_says(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("dovetail.device"), "_default", None)
    assert failures(page.read_text(), page.name) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#:]+)\)", page.read_text())
    assert [t for t in targets if not (page.parent / t).exists()] == []


def test_the_two_commands_are_there() -> None:
    text = PAGES[0].read_text()
    assert '\npip install ".[demo]" ./backends/cpu_llvm && dovetail demo\n' in text
    assert '\npip install -e ".[test]" -e ./backends/cpu_llvm && pytest\n' in text


def test_commands_that_the_readme_names_exist() -> None:
    named = set(re.findall(r"`dovetail ([a-z-]+)`|&& dovetail ([a-z-]+)", PAGES[0].read_text()))
    assert {a or b for a, b in named} <= set(COMMANDS)


def test_the_architecture_names_every_module_of_the_core_in_its_package_and_no_other() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("| ground floor |") : text.index("`backends/cpu_llvm")]
    cells = [[c.strip() for c in line.split("|")[1:3]] for line in table.strip().splitlines()]
    named = {where.strip("`"): {*re.findall(r"`([a-z_]+)`", what)} for where, what in cells}
    core = ROOT / "core" / "dovetail"
    found = {"ground floor": {p.stem for p in core.glob("*.py")} - {"__init__"}}
    for folder in sorted(p.parent for p in core.glob("*/__init__.py")):
        inside = {p.stem for p in folder.iterdir() if p.suffix == ".py" or p.name == "template"}
        found[folder.name] = {n for n in inside if not n.startswith(("_", "test_"))}
    assert named == found


ADDED = re.compile(
    r"In `([\w/.]+)`,\s+after the line that begins `([^`]+)`:\n\n```(?:python|text)\n(.*?)```",
    re.DOTALL,
)
PLACES = ["core/dovetail/ops/table.py", "core/dovetail/functions/elementwise.py",
         "core/dovetail/__init__.py", "core/dovetail/tensor/signatures.pyi",
         "tests/ops/test_table_oracle.py"]  # fmt: skip
USE_OF_SOFTSIGN = """
import doctest, typing
import dovetail as dt
from dovetail.functions import elementwise
from dovetail.autograd import gradcheck
from dovetail.testing.test_table import unreached
x = dt.asarray([1.0, -3.0], device="reference")
assert dt.softsign(x).tolist() == x.softsign().tolist() == [0.5, -0.75]
assert "softsign" in dt.__all__ and unreached() == []
point = dt.asarray([1.0, -3.0], dtype=dt.float64, device="reference").requires_grad_()
assert gradcheck(dt.softsign, point)
runner = doctest.DocTestRunner()
for test in doctest.DocTestFinder().find(dt.softsign, "softsign", elementwise, {}):
    runner.run(test)
assert runner.summarize() == (0, 2)
assert x.softsign_().tolist() == [0.5, -0.75]
"""


def with_softsign(tree: Path) -> dict[str, str]:
    """A copy of the core and its tests, after what the page says has been done to it."""
    for part in ("core", "tests"):
        shutil.copytree(ROOT / part, tree / part, ignore=shutil.ignore_patterns("__pycache__"))
    steps = ADDED.findall((ROOT / "docs" / "adding-an-op.md").read_text())
    assert list(dict.fromkeys(path for path, _, _ in steps)) == PLACES
    for path, start, text in steps:
        lines = (tree / path).read_text().splitlines(keepends=True)
        (at,) = (i for i, line in enumerate(lines) if line.lstrip().startswith(start))
        lines.insert(at + 1, text)
        (tree / path).write_text("".join(lines))
    others = [p for p in sys.path if p and not p.startswith(str(ROOT / "core"))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree / "core"), *others])}


def test_ops_are_added_as_the_page_says(tmp_path: Path) -> None:
    """Where the page leaves out a place, this fails: nothing is done but what it says."""
    environment = with_softsign(tmp_path)
    (tmp_path / "use.py").write_text(USE_OF_SOFTSIGN)
    tests = ["ops/test_table_oracle.py", "test_namespace.py", "functions/test_elementwise.py",
             "autograd/test_autograd.py"]  # fmt: skip
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0"]
    command += ["-k", "(softsign or every_row or namespace) and not cpu"]
    for run in ([sys.executable, "use.py"], [*command, *(f"tests/{name}" for name in tests)]):
        done = subprocess.run(
            run, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 10, done.stdout


def test_reductions_are_added_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "adding-an-op.md").read_text()
    squares = re.findall(r"```python\n(SUM_OF_SQUARES.*?)```", page, re.DOTALL)[0]
    monkeypatch.setattr(ops, "TABLE", dict(ops.TABLE))
    rows = dict(vars(ops))
    exec(squares, rows)
    x = dt.asarray([1.0, -3.0], device="reference")
    assert reduce(rows["SUM_OF_SQUARES"], x, (0,), False).item() == 10.0


@pytest.mark.skipif(shutil.which("cc") is None, reason="the example needs a C compiler")
def test_the_backend_of_the_page_works(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "writing-a-backend.md").read_text()
    (tmp_path / "dovetail_cc.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    info = tmp_path / "dovetail_cc-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dovetail-cc\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dovetail.backends.v1]\ncc = dovetail_cc\n")
    program = """
import dovetail as dt
def work(device):
    x = dt.random.default_rng(1).normal((300, 70), device=device)
    y = dt.softmax(x.T, axis=1) + dt.sin(x.T) // 0.25
    return [dt.sum(y).numpy().tobytes(), y.astype(dt.float16).numpy().tobytes()]
assert work("cc") == work("reference")
"""
    path = os.pathsep.join([str(tmp_path), str(ROOT / "core"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "DOVETAIL_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


# --- examples


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_heat_spreads_and_is_symmetric() -> None:
    plate = example("heat")["main"](size=12, steps=40, device="reference").numpy()
    assert np.all(plate[0] == 100) and 5 < plate[5, 6] < 60
    np.testing.assert_allclose(plate, plate[:, ::-1], rtol=1e-5)


def test_softmax_is_explained_and_sums_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    y = example("explain_softmax")["main"](device="reference").numpy()
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)
    assert "1 launch, " in capsys.readouterr().out


def test_mandelbrot_is_nearly_symmetric_and_has_an_inside() -> None:
    rows = example("mandelbrot")["main"](40, 15, 20, "reference").splitlines()
    pairs = list(zip("".join(rows), "".join(rows[::-1]), strict=True))
    assert len(pairs) == 600 and sum(a == b for a, b in pairs) > 570  # rounding is not symmetric
    assert "@" * 12 in rows[7] and "@" not in rows[0]
