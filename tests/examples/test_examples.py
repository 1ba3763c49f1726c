"""Every program in `examples` runs; those with a peer agree with it and draw a picture."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from installed import INSTALLED

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(p.stem for p in EXAMPLES.glob("*.py") if p.stem != "beside")
BESIDE = [name for name in FILES if "from beside import" in (EXAMPLES / f"{name}.py").read_text()]
PEERS = ("torch", "scipy", "sklearn", "matplotlib")
LINE = re.compile(
    r"^.+: dovetail [\d.]+ ms, .+ [\d.]+ ms, ratio [\d.]+ \(2 threads\); they agree, \S+ apart$",
    re.MULTILINE,
)


def run(name: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the program in a process of its own, where a warning of dovetail is an error."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options],
        env={**os.environ, "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"},
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip


def test_readme_names_every_example() -> None:
    page = (EXAMPLES / "README.md").read_text()
    assert len(BESIDE) == 14
    assert {f"{name}.py" for name in FILES} <= set(re.findall(r"`([\w]+\.py)`", page))


@pytest.mark.parametrize("name", BESIDE)
def test_example_agrees_with_its_peer(name: str, tmp_path: Path) -> None:
    needs = {p for p in PEERS if re.search(rf"\b{p}\b", (EXAMPLES / f"{name}.py").read_text())}
    for package in {*needs, "matplotlib"}:
        pytest.importorskip(package)
    if "cpu" not in INSTALLED:
        pytest.skip("the backend for cpu is not installed: pip install dovetail-cpu-llvm")
    picture = tmp_path / "picture.png"
    done = run(name, "--small", "--out", str(picture))
    assert done.returncode == 0, done.stdout + done.stderr
    assert LINE.search(done.stdout), done.stdout
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", [name for name in FILES if name not in BESIDE])
def test_example_runs(name: str) -> None:
    done = run(name)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout


def test_different_results_of_two_sides_raise() -> None:
    wrong = "import beside; beside.beside('x', lambda: 1.0, 'y', lambda: 2.0, beside.Asked(True))"
    done = subprocess.run(
        [sys.executable, "-c", wrong], cwd=EXAMPLES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1 and "Not equal to tolerance" in done.stderr


@pytest.mark.parametrize("threads", [1, 2])
def test_threads_option_applies_to_every_library(threads: int) -> None:
    """Libraries are loaded before the command line is parsed."""
    pytest.importorskip("threadpoolctl")
    if "cpu" not in INSTALLED:
        pytest.skip("the backend for cpu is not installed: pip install dovetail-cpu-llvm")
    script = f"""
import dovetail as dt
import numpy as np
import threadpoolctl
np.ones((300, 300)) @ np.ones((300, 300))
from beside import asked
print(asked("", ["--threads", "{threads}"]).threads, dt.get_num_threads())
print(sorted(x["num_threads"] for x in threadpoolctl.threadpool_info()))
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), *sys.path])}
    done = subprocess.run(
        [sys.executable, "-c", script], env=env, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == f"{threads} {threads}"
    assert set(second.strip("[]").split(", ")) == {str(threads)}
