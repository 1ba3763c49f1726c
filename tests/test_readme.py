"""The README is correct: sessions print their output, links and commands exist."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import reference
from dovetail.commands.cli import COMMANDS
from dovetail.ops import table as ops
from dovetail.tensor.primitives import reduce
from sessions import find_failures

ROOT = Path(__file__).parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "ARCHITECTURE.md",
    ROOT / "SECURITY.md",
    *sorted(p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "reference"),
]
SESSION = re.compile(r"```python\n(>>>.*?)```", re.DOTALL)


def failures(text: str, name: str) -> str:
    """Return the differences between the output of a page's sessions and its text.

    A session has the names of those above it.
    """
    variables: dict[str, Any] = {}
    sessions = enumerate(SESSION.findall(text), 1)
    return "".join(find_failures(part, f"{name}[{n}]", variables) for n, part in sessions)


def test_wrong_page_is_detected() -> None:
    assert failures("```python\n>>> 1 + 1\n3\n```", "x")
    assert not failures("```python\n>>> 1 + 1\n2\n```", "x")


def test_readme_has_a_session() -> None:
    assert SESSION.search(PAGES[0].read_text())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_sessions_print_the_output_of_the_page(page: Path) -> None:
    assert failures(page.read_text(), page.name) == ""


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_exist(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    built = {reference.REFERENCE / f"{n}.md" for n in ("README", *reference.page_table())}
    paths = {(page.parent / t).resolve() for t in targets}
    assert [p for p in paths - built if not p.exists()] == []


def test_install_commands_are_documented() -> None:
    text = PAGES[0].read_text()
    assert '\npip install ".[demo]" ./backends/cpu_llvm && dovetail demo\n' in text
    assert '\npip install -e ".[test]" -e ./backends/cpu_llvm && pytest\n' in text


def test_commands_named_by_the_readme_exist() -> None:
    named = set(re.findall(r"`dovetail ([a-z-]+)`|&& dovetail ([a-z-]+)", PAGES[0].read_text()))
    assert {a or b for a, b in named} <= set(COMMANDS)


# --- pages that change the core: their steps are applied to a copy

STEP = re.compile(
    r"[Ii]n `([\w/.]+)`,\s+after\s+the\s+line\s+that\s+begins\s+`([^`]+)`:\n\n"
    r"```(?:python|text)\n(.*?)```",
    re.DOTALL,
)


def after_the_page(page: str, tree: Path) -> dict[str, str]:
    """Apply a page to a copy of the sources in `tree`, and write the generated files.

    Returns the environment in which the copy is imported.
    """
    for part in ("core", "tests", "docs", "tools"):
        skip = shutil.ignore_patterns("__pycache__", "build")
        shutil.copytree(ROOT / part, tree / part, ignore=skip)
    for path, start, text in STEP.findall((ROOT / "docs" / page).read_text()):
        lines = (tree / path).read_text().splitlines(keepends=True)
        is_compiled = (tree / path).with_suffix(".pxd").exists()
        assert not is_compiled, "a step changes a compiled module, which has to be built again"
        (at,) = (i for i, line in enumerate(lines) if line.lstrip().startswith(start))
        lines.insert(at + 1, text)
        (tree / path).write_text("".join(lines))
    ours = [str(tree / part) for part in ("core", "tests", "tests/support", "tools")]
    others = [p for p in sys.path if p and not Path(p).is_relative_to(ROOT)]
    backends = [str(p) for p in (ROOT / "backends").iterdir()]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*ours, *backends, *others])}
    said(tree, environment, "tools/faces.py")
    return environment


@pytest.fixture(scope="module")
def softsign(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """Return a tree after the steps of adding-an-op.md, and its environment."""
    tree = tmp_path_factory.mktemp("tree")
    return tree, after_the_page("adding-an-op.md", tree)


def said(tree: Path, environment: dict[str, str], *command: str) -> str:
    """Return the output of a Python command in the copy; it must succeed."""
    done = subprocess.run(
        [sys.executable, *command], cwd=tree, env=environment, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    return done.stdout


def passed(tree: Path, environment: dict[str, str], chosen: str, *tests: str) -> int:
    """Return how many tests of the copy pass; none may fail."""
    command = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", "-k", chosen, *tests)
    return int(re.findall(r"(\d+) passed", said(tree, environment, *command))[0])


USE_OF_SOFTSIGN = """
import doctest, inspect
import dovetail as dt
from dovetail.functions.elementwise import op_functions
from dovetail.autograd import gradcheck
from dovetail.testing.test_table import unreached
x = dt.asarray([1.0, -3.0], device="reference")
assert dt.softsign(x).tolist() == x.softsign().tolist() == [0.5, -0.75]
assert "softsign" in dt.__all__ and "softsign" in dir(dt) and unreached() == []
assert str(inspect.signature(x.softsign_)) == "() -> Tensor"
point = dt.asarray([1.0, -3.0], dtype=dt.float64, device="reference").requires_grad_()
assert gradcheck(dt.softsign, point)
runner = doctest.DocTestRunner()
for test in doctest.DocTestFinder().find(dt.softsign, "softsign", op_functions, {}):
    runner.run(test)
assert runner.summarize() == (0, 2)
assert x.softsign_().tolist() == [0.5, -0.75]
"""
TYPES_OF_SOFTSIGN = """
import dovetail as dt
x = dt.ones(3)
reveal_type(dt.softsign(x))
reveal_type(x.softsign_())
x.softsign_(1)
"""


def test_ops_are_added_in_two_places_as_the_page_says(
    softsign: tuple[Path, dict[str, str]],
) -> None:
    """It fails if the page omits a place: only its steps are applied."""
    tree, environment = softsign
    (tree / "use.py").write_text(USE_OF_SOFTSIGN)
    said(tree, environment, "use.py")
    said(tree, environment, "tools/faces.py", "--check")
    stub = (tree / "core" / "dovetail" / "tensor" / "signatures.pyi").read_text()
    assert "    def softsign(self, *, out: Tensor | None = None) -> Tensor:\n" in stub
    assert "    def softsign_(self) -> Tensor:\n" in stub
    # Without the tests of the generator itself, which change further copies.
    chosen = "(softsign or every_row or namespace) and not (cpu or check or generat)"
    tests = ("ops/test_table_oracle.py", "test_namespace.py", "functions/test_elementwise.py")
    found = [f"tests/{t}" for t in (*tests, "autograd/test_autograd.py")]
    assert passed(tree, environment, chosen, *found) > 10
    shutil.copy(ROOT / "pyproject.toml", tree)  # has the address of the sources
    said(tree, environment, "tools/reference.py")
    page = (tree / "docs" / "reference" / "elementwise.md").read_text()
    assert "### softsign { #softsign" in page and "\ndt.softsign(x: Tensor, /, *, out: Ten" in page


def test_type_checkers_know_an_added_op(softsign: tuple[Path, dict[str, str]]) -> None:
    pytest.importorskip("mypy")
    tree, environment = softsign
    (tree / "typed.py").write_text(TYPES_OF_SOFTSIGN)
    environment = environment | {"MYPYPATH": str(tree / "core")}
    command = [sys.executable, "-m", "mypy", "--follow-imports=silent", "typed.py"]
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True,
                          check=False)  # fmt: skip
    tensors = [line for line in done.stdout.splitlines() if "dovetail.tensor.tensor.Tensor" in line]
    assert len(tensors) == 2, done.stdout + done.stderr
    assert 'Too many arguments for "softsign_" of "Methods"' in done.stdout


def test_dtype_of_the_page_works(tmp_path: Path) -> None:
    module, program = examples("adding-a-dtype.md")
    (tmp_path / "dovetail_float8_e5m2.py").write_text(module)
    page = (ROOT / "docs" / "adding-a-dtype.md").read_text()
    project = tomllib.loads(re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0])["project"]
    [(group, entries)] = project["entry-points"].items()
    info = tmp_path / "dovetail_float8_e5m2-1.0.dist-info"
    info.mkdir()
    name = project["name"]
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = "".join(f"{k} = {v}\n" for k, v in entries.items())
    (info / "entry_points.txt").write_text(f"[{group}]\n{lines}")
    path = os.pathsep.join([str(tmp_path), str(ROOT / "core"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "DOVETAIL_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    kit = ["-m", "dovetail.commands.cli", "test-dtype", "float8_e5m2", "-k", "codes"]
    subprocess.run([sys.executable, *kit], env=environment, check=True, cwd=tmp_path)


def test_reductions_are_added_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "adding-an-op.md").read_text()
    squares = re.findall(r"```python\n(SUM_OF_SQUARES.*?)```", page, re.DOTALL)[0]
    monkeypatch.setattr(ops, "TABLE", dict(ops.TABLE))
    rows = dict(vars(ops))
    exec(squares, rows)
    x = dt.asarray([1.0, -3.0], device="reference")
    assert reduce(rows["SUM_OF_SQUARES"], x, (0,), False).item() == 10.0


@pytest.mark.skipif(shutil.which("cc") is None, reason="the example needs a C compiler")
def test_backend_of_the_page_works(tmp_path: Path) -> None:
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


def examples(page: str) -> list[str]:
    """Return the blocks of Python in a page that are no sessions."""
    text = (ROOT / "docs" / page).read_text()
    return [b for b in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if b[:3] != ">>>"]


def run_alone(program: str, folder: Path) -> None:
    """Run a program in a process of its own that finds plugins in `folder`."""
    path = os.pathsep.join([str(folder), str(ROOT / "core"), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "DOVETAIL_CACHE_DIR": str(folder)}
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, check=True)


def test_layout_of_the_page_works(tmp_path: Path) -> None:
    plugin, use, judged = examples("writing-a-layout.md")
    (tmp_path / "dovetail_diagonal.py").write_text(f"{plugin}\n{judged}")
    page = (ROOT / "docs" / "writing-a-layout.md").read_text()
    ((declared,),) = [re.findall(r"```toml\n(.*?)```", page, re.DOTALL)]
    project = tomllib.loads(declared)["project"]
    info = tmp_path / "dovetail_diagonal-1.0.dist-info"
    info.mkdir()
    said = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(said)
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {module}\n" for name, module in entries.items())
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("".join(lines))
    run_alone(use, tmp_path)
    kit = "from dovetail.testing.cli_layout import main; exit(main({!r}))"
    which = "(copies or dtypes) or writes_are_not_seen or special_values and square"
    some = ["diagonal", "-q", "-n", "0", "-p", "no:cacheprovider", "-k", which]
    run_alone(kit.format(some), tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "transforms.md", "autograd.md", "convolutions.md", "layers.md", "training.md",
        "parallel-training.md",
    ],
)  # fmt: skip
def test_examples_of_a_page_work(page: str, tmp_path: Path) -> None:
    found = examples(page)
    assert len(found) >= 2
    run_alone("\n".join(found), tmp_path)


def test_script_of_the_training_page_resumes_on_fewer_workers(tmp_path: Path) -> None:
    (script,) = [e for e in examples("parallel-training.md") if e.startswith("# train.py")]
    (tmp_path / "train.py").write_text(script)
    workers = [sys.executable, "-m", "dovetail.parallel", "--workers"]

    def run(folder: Path, *command: str) -> str:
        folder.mkdir(exist_ok=True)
        return subprocess.run(
            command, cwd=folder, env=os.environ, capture_output=True, text=True, check=True
        ).stdout

    alone = run(tmp_path / "alone", sys.executable, "../train.py", "30")
    first = run(tmp_path, *workers, "3", "train.py", "20")
    assert len(alone.splitlines()) == 3
    assert first + run(tmp_path, *workers, "2", "train.py", "30") == alone


def test_allocators_of_the_page_work(tmp_path: Path) -> None:
    programs = examples("writing-an-allocator.md")
    assert len(programs) == 3
    run_alone("\n".join(programs), tmp_path)


# --- examples


def example(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


def test_heat_example_is_symmetric() -> None:
    plate = example("heat")["main"](size=12, steps=40, device="reference").numpy()
    assert np.all(plate[0] == 100) and 5 < plate[5, 6] < 60
    np.testing.assert_allclose(plate, plate[:, ::-1], rtol=1e-5)


def test_softmax_example_is_explained_and_sums_to_one(capsys: pytest.CaptureFixture[str]) -> None:
    y = example("explain_softmax")["main"](device="reference").numpy()
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-5)
    assert "1 launch, " in capsys.readouterr().out


def test_mandelbrot_example_is_nearly_symmetric() -> None:
    rows = example("mandelbrot")["main"](40, 15, 20, "reference").splitlines()
    pairs = list(zip("".join(rows), "".join(rows[::-1]), strict=True))
    assert len(pairs) == 600 and sum(a == b for a, b in pairs) > 570  # rounding is not symmetric
    assert "@" * 12 in rows[7] and "@" not in rows[0]
