"""Type hints of functions that also accept other libraries' parameter names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import dovetail as dt
import numpy as np
import packages
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
dt.sum(x, dim=0, keepdim=True)
dt.mean(input=x, dim=1)
dt.exp(input=x)
dt.add(input=x, other=x)
dt.softmax(x, dim=1)
dt.cumulative_sum(x, dim=0)
x.sum(dim=0, keepdim=True)
x.all(dim=1)
dt.concat([x, x], dim=0)
dt.tensor([[1.0]], dtype=dt.float32, requires_grad=True)
dt.random.randn(2, 3)
"""
WRONG = """\
dt.sum(x, axes=0)
dt.sum(x, 0, True)
dt.sum()
dt.mean(x, keepdims=1.5)
dt.argmax(x, ax=0)
dt.any(x, wheres=x)
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
dt.max(x, dim=0)
dt.exp(inputs=x)
dt.tensor([1.0], dtypes=1)
dt.nn.Linear(2)
"""
IMPORTS = """\
import dovetail as dt
import dovetail.fft
import dovetail.linalg
import dovetail.nn.functional as F
import dovetail.numpy as np
import dovetail.torch as torch
import dovetail.torch.nn.functional as TF
from dovetail.torch import nn as torch_nn
import dovetail.random as random_numbers
from dovetail import checkpoint, data, distributions, fft, linalg, nn, onnx, optim, random, sparse
from dovetail.optim import Adam
from dovetail.random import Generator, randn
"""
BODY = """
net = nn.Linear(2, 3)
x = dt.ones((2, 3))


def f(a: dt.Tensor, b: dt.Tensor) -> dt.Tensor:
    return a + b


"""
REVEALED = {  # expression -> the name of its type
    "dt.nn.Linear(2, 3)": "Linear",
    "Adam(net.parameters())": "Adam",
    "optim.SGD(net.parameters(), lr=0.1)": "SGD",
    "F.relu(x)": "Tensor",
    "distributions.Normal(0.0, 1.0)": "Normal",
    'dt.tensorboard.SummaryWriter("logs")': "SummaryWriter",
    "dt.sparse_coo_tensor([[0]], [1.0], (2,))": "COO",
    "sparse.to_sparse(x)": "COO",
    "data.TensorDataset(x)": "TensorDataset",
    'onnx.load("model.onnx")': "Model",
    'checkpoint.save("file")': "Path",
    "dt.vmap(f)(x, x)": "Tensor",
    "dt.jit(f)(x, x)": "Tensor",
    "dt.grad(x, x)": "Tensor",
    "dt.tensor([1.0])": "Tensor",
    "dt.sum(x, dim=1)": "Tensor",
    "x.sum(dim=1)": "Tensor",
    "(x + 1).sum(axis=0)": "Tensor",
    "linalg.inv(x)": "Tensor",
    "fft.fft(x)": "Tensor",
    "randn(2)": "Tensor",
    "random.normal((2,))": "Tensor",
    "random_numbers.Generator(0)": "Generator",
    "np.zeros((2, 3), dtype=float)": "ndarray",
    "np.mean(np.eye(3), axis=0, keepdims=True)": "ndarray",
    "np.eye(3).std(ddof=1)": "ndarray",
    "np.float32(2) * np.eye(3)": "ndarray",
    "np.linalg.solve(np.eye(3), np.ones(3))": "ndarray",
    "np.fft.rfft(np.ones(8))": "ndarray",
    "np.random.default_rng(0)": "Generator",
    "np.allclose(np.ones(3), 1)": "bool",
    "np.sqrt(np.ones(3)) - 1": "ndarray",
    "np.asarray(torch.zeros(2, 3))": "ndarray",
    "torch_nn.Linear(2, 3)": "Linear",
}
CLASSES = {  # expression -> the module of its type
    "torch.zeros(2, 3) + 1": "dovetail.torch.adoption.Tensor",
    "TF.relu(torch.zeros(3).cumsum(0))": "dovetail.torch.adoption.Tensor",
    "torch.linalg.inv(torch.eye(3))": "dovetail.torch.adoption.Tensor",
    "dt.zeros(3) + 1": "dovetail.tensor.tensor.Tensor",
}
# Programs in which mypy finds an error: the first five also with NumPy's own stubs; the others
# assign a sum, an array without axes, to a name that was a float.
PROGRAMS_WITH_ERRORS = {
    "char_rnn", "convex_hull", "decision_tree", "polynomial_fit", "smith_waterman_rows",
    "autoencoder", "ising_checkerboard",
}  # fmt: skip
USE = IMPORTS + BODY + "".join(f"reveal_type({text})\n" for text in REVEALED)
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


def run_mypy(folder: Path, *options: str) -> str:
    """Return what mypy prints for files in a folder, which need no types of their own."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--follow-imports=silent", *options],
        cwd=folder, env={**os.environ, "MYPYPATH": str(CORE)}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


def test_results_of_namespaces_have_their_class(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    lines = "".join(f"reveal_type({text})\n" for text in CLASSES)
    (tmp_path / "use.py").write_text(IMPORTS + lines)
    printed = run_mypy(tmp_path, "--strict", "use.py")
    assert re.findall(r'Revealed type is "([\w.]+)', printed) == [*CLASSES.values()], printed


@pytest.mark.exhaustive
def test_mypy_accepts_programs_that_are_written_for_numpy(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for path in (CORE.parent / "bench" / "programs").glob("*.py"):
        text = path.read_text().replace("import numpy as np", "import dovetail.numpy as np")
        (tmp_path / path.name).write_text(text)
    printed = run_mypy(
        tmp_path, "--check-untyped-defs", *[path.name for path in tmp_path.glob("*.py")]
    )
    found = set(re.findall(r"^(\w+)\.py:\d+: error", printed, re.MULTILINE))
    assert found == PROGRAMS_WITH_ERRORS, printed


def reveal_by_mypy(folder: Path, python: str = sys.executable, path: str = "") -> list[str]:
    """Return the names of the revealed types. Raises: AssertionError for an error in the file."""
    (folder / "use.py").write_text(USE)
    done = subprocess.run(
        [
            sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent",
            "--python-executable", python, "use.py",
        ],
        cwd=folder, env={**os.environ, "MYPYPATH": path, "PYTHONPATH": ""}, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return re.findall(r'Revealed type is "(?:[\w.]*\.)?(\w+)"', done.stdout)


def reveal_by_pyright(folder: Path, python: str = sys.executable, path: str = "") -> list[str]:
    """Return the names of the revealed types. Raises: AssertionError for an error in the file."""
    (folder / "use.py").write_text(USE)
    settings = {"typeCheckingMode": "standard", "extraPaths": [path] if path else []}
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(PYRIGHT), "--outputjson", "--pythonpath", python, "use.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    assert [d for d in found if d["severity"] == "error"] == []
    lines = sorted((d["range"]["start"]["line"], d["message"]) for d in found)
    return [m[1] for _, text in lines if (m := re.search(r' is "(\w+)"$', text))]


@pytest.fixture(scope="module", autouse=True)
def shared_cache_of_mypy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Set one cache for the runs of mypy, which read the same stubs with the same options."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.mktemp("mypy")))
        yield


PYRIGHT = shutil.which("basedpyright") or shutil.which("pyright")
needs_pyright = pytest.mark.skipif(PYRIGHT is None, reason="Pyright is not installed")


def test_mypy_finds_packages_by_each_import_form(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert reveal_by_mypy(tmp_path, path=str(CORE)) == [*REVEALED.values()]


@needs_pyright
def test_pyright_finds_packages_by_each_import_form(tmp_path: Path) -> None:
    assert reveal_by_pyright(tmp_path, path=str(CORE)) == [*REVEALED.values()]


@needs_pyright
def test_pyright_accepts_right_and_rejects_wrong_calls(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(HEAD + RIGHT + WRONG)
    settings = {"typeCheckingMode": "standard", "extraPaths": [str(CORE)]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [str(PYRIGHT), "--outputjson", "--pythonpath", sys.executable, "use.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [d for d in json.loads(done.stdout)["generalDiagnostics"] if d["severity"] == "error"]
    first = (HEAD + RIGHT).count("\n")
    wanted = {*range(first, first + WRONG.count("\n"))}
    assert {d["range"]["start"]["line"] for d in errors} == wanted


@pytest.fixture(scope="module", params=["editable", "wheel"])
def installed_python(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> str:
    """Return the interpreter of an environment into which dovetail is installed."""
    folder = tmp_path_factory.mktemp(request.param)
    source = packages.copy_sources(packages.ROOT, folder / "source")
    program = f"from setuptools.build_meta import build_{request.param} as b; b({str(folder)!r})"
    environment = {**os.environ, "DOVETAIL_PURE": "1", "PYTHONPATH": ""}
    command = [sys.executable, "-c", program]
    subprocess.run(command, cwd=source, env=environment, check=True, capture_output=True)
    venv.create(folder / "venv", symlinks=os.name != "nt")
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    where = subprocess.run([python, "-c", code], check=True, capture_output=True, text=True)
    site = Path(where.stdout.strip())
    (wheel,) = folder.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(site)
    (site / "numpy.pth").write_text(str(Path(np.__file__).parents[1]))
    return str(python)


@pytest.mark.exhaustive
@needs_pyright
def test_pyright_finds_the_packages_of_an_installation(
    installed_python: str, tmp_path: Path
) -> None:
    assert reveal_by_pyright(tmp_path, installed_python) == [*REVEALED.values()]


@pytest.mark.exhaustive
def test_mypy_finds_the_packages_of_an_installation(installed_python: str, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    assert reveal_by_mypy(tmp_path, installed_python) == [*REVEALED.values()]


@pytest.mark.parametrize("line", RIGHT.splitlines())
def test_accepted_calls_run(line: str) -> None:
    assert isinstance(eval(line, {"dt": dt, "x": dt.ones((2, 3))}), dt.Tensor)
