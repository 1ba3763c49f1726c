"""Type hints of functions that also accept other libraries' parameter names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import dovetail as dt
import pytest

CORE = Path(dt.__file__).parents[1]
RIGHT = """\
dt.sum(x, 0, keepdims=True, dtype=dt.float64)
dt.max(x, axis=(0, 1), out=dt.zeros(()))
x.sum(axis=0)
dt.zeros((2, 3), dtype=dt.int32)
dt.zeros(2, 3, dtype=dt.int32)
dt.zeros((2, 3), dt.int32)
dt.full((2, 3), 1, dt.int32)
dt.ones_like(x, dt.int32)
dt.reshape(x, 3, 2)
dt.reshape(x, (3, 2))
dt.permute_dims(x, 1, 0)
dt.where(x > 0, x, 1)
dt.pow(x, 2)
dt.asarray([1], dtype="int32", copy=True)
dt.flip(x, axis=0)
dt.softmax(x, axis=0, out=dt.zeros((2, 3)))
dt.isclose(x, x, rtol=0.1)
dt.clip(x, 0, max=1.0)
dt.hann(3, sym=False)
"""
WRONG = """\
dt.sum(x, axes=0)
dt.sum(x, 0, True)
dt.sum()
dt.mean(x, keepdim=True)
dt.argmax(x, ax=0)
dt.any(x, where=x)
dt.count_nonzero(x, axis="0")
x.sum(axes=0)
dt.zeros()
dt.zeros((2, 3), shapes=1)
dt.full((2, 3))
dt.full_like(x, 1, dtypes=dt.int32)
dt.reshape(x, sizes=(3, 2))
dt.swapaxes(x, 0)
dt.where(x > 0, x)
dt.pow(x, 2, nothing=1)
dt.asarray([1], dtypes="int32")
dt.squeeze(x, axiss=0)
dt.copy(x, "C")
dt.exp(x, dtypes=1)
dt.softmax(x, axes=0)
dt.isclose(x, x, 0.1)
dt.clip(x, lower=0)
dt.hann("3")
"""
PACKAGES = """\
import dovetail as dt
import dovetail.nn.functional as F
from dovetail import distributions, nn

net = nn.Linear(2, 3)
reveal_type(dt.nn.Linear(2, 3))
reveal_type(dt.optim.Adam(net.parameters()))
reveal_type(F.relu(dt.ones(2)))
reveal_type(distributions.Normal(0.0, 1.0))
reveal_type(dt.tensorboard.SummaryWriter("logs"))
reveal_type(dt.sparse.sparse_coo_tensor([[0]], [1.0], (2,)))
"""
HEAD = "import dovetail as dt\nx = dt.ones((2, 3))\n"


def test_mypy_accepts_right_and_rejects_wrong_calls(tmp_path: Path) -> None:
    """Every line of `WRONG` is an error, no line of `RIGHT` is."""
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(HEAD + RIGHT + WRONG)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "use.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(CORE)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    places = [line.split(":") for line in done.stdout.splitlines() if ": error: " in line]
    assert {p[0] for p in places} == {"use.py"}, done.stdout + done.stderr
    first = (HEAD + RIGHT).count("\n") + 1
    wanted = set(range(first, first + WRONG.count("\n")))
    assert {int(p[1]) for p in places} == wanted, done.stdout


def test_mypy_finds_packages_by_each_import_form(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    (tmp_path / "use.py").write_text(PACKAGES)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent", "use.py"],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(CORE)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    shown = re.findall(r'Revealed type is "(.*)"', done.stdout)
    assert shown == [
        "dovetail.nn.modules.linear.Linear", "dovetail.optim.adam.Adam",
        "dovetail.tensor.tensor.Tensor", "dovetail.distributions.normals.Normal",
        "dovetail.tensorboard.SummaryWriter", "dovetail.sparse.tensor.COO",
    ]  # fmt: skip


@pytest.mark.parametrize("line", RIGHT.splitlines())
def test_accepted_calls_run(line: str) -> None:
    assert isinstance(eval(line, {"dt": dt, "x": dt.ones((2, 3))}), dt.Tensor)
