"""Hints of errors are correct: the suggested code equals the foreign name."""

from __future__ import annotations

import ast
import copy
import hashlib
import math
import pickle
import re
import tomllib
import warnings
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from types import ModuleType
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from dovetail.compat import hints


@pytest.fixture(autouse=True)
def restored_defaults() -> Iterator[None]:
    """Hints such as `dt.set_default_dtype(dt.float64)` change settings of the process."""
    dtype, device, random = dt.get_default_dtype(), dt.default_device(), dt.random.get_state()
    yield
    dt.set_default_dtype(dtype)
    dt.set_default_device(device)
    dt.random.set_state(random)


xlog1py = "dt.where((x == 0) & (y == y), 0.0, x * dt.log1p(y))"
pairs = "dt.linalg.vector_norm(x[:, None] - x, axis=-1)[dt.triu_indices(len(x), 1)]"
# Foreign name (of `dt`, or of a tensor `x.`) | foreign code | dovetail's code, as in the hint.
TORCH = f"""
dt.range | torch.range(start, end, step) | dt.arange(start, end + step / 2, step)
dt.unsafe_chunk | torch.unsafe_chunk(x, n) | dt.split(x, -(-x.shape[0] // n))
dt.rsub | torch.rsub(x, y) | y - x
dt.addr | torch.addr(square, line[:3], line[:3]) | x + dt.outer(a, b)
dt.frac | torch.frac(x) | x - dt.trunc(x)
dt.special.entr | torch.special.entr(x) | dt.where(x < 0, -dt.inf, -dt.xlogy(x, x))
dt.special.xlog1py | torch.special.xlog1py(y, x * x) | {xlog1py}
dt.dist | torch.dist(x, y) | dt.linalg.vector_norm(x - y)
dt.pdist | torch.pdist(x) | {pairs}
dt.std_mean | torch.std_mean(x) | dt.std(x, correction=1), dt.mean(x)
dt.var_mean | torch.var_mean(x) | dt.var(x, correction=1), dt.mean(x)
dt.polar | torch.polar(y, x) | r * dt.exp(1j * a)
dt.cholesky_inverse | torch.cholesky_inverse(factor) | dt.linalg.cholesky_solve(dt.eye(n), factor)
nn.functional.pdist | F.pdist(x) | {pairs}
""".strip().splitlines()  # fmt: skip
NUMPY = """
dt.rollaxis | np.rollaxis(x, axis, start) | dt.moveaxis(x, axis, start - (start > axis))
dt.in1d | np.isin(x.ravel(), y) | dt.isin(x.ravel(), y)
dt.linalg.toeplitz | scipy.linalg.toeplitz(line) | x[dt.abs(dt.arange(n)[:, None] - dt.arange(n))]
""".strip().splitlines()  # fmt: skip
# Other definitions of a row's names in dovetail's code.
RENAMED: dict[str, dict[str, str]] = {
    "dt.special.xlog1py": {"x": "y", "y": "x * x"},
    "dt.addr": {"x": "square", "a": "line[:3]", "b": "line[:3]"}, "dt.polar": {"r": "y", "a": "x"},
    "dt.linalg.toeplitz": {"x": "line", "n": "5"},
}  # fmt: skip
ARRAYS: dict[str, Any] = {
    "x": np.array([[0.5, 2.0, 1.0], [3.0, -1.5, 0.25]]),
    "y": np.array([[1.0, 2.0, 3.0], [2.0, 1.0, 4.0]]),
    "square": np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 1.0], [0.0, 1.0, 2.0]]),
    "factor": np.array([[2.0, 0.0, 0.0], [0.5, 1.5, 0.0], [0.25, 1.0, 1.0]]),
    "a": np.array([[1.0, 2.0], [0.0, 1.0], [1.0, 1.0]]),
    "b": np.array([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]]),
    "line": np.array([1.0, 1.0, 2.0, 2.0, 1.0]), "boundaries": np.array([0.25, 1.0, 2.0]),
    "index": np.array([[2, 0, 1], [0, 0, 1]]),
    "mask": np.array([[True, False, False], [False, True, True]]),
}  # fmt: skip
NUMBERS = {
    "k": 2, "n": 3, "axis": 1, "dim": 1, "value": 7.0, "start": 0, "end": 4, "step": 2, "size": 3,
    "bins": 4, "low": -1.0, "high": 3.0, "beta": 8.0, "w": 0.25,
}  # fmt: skip


def _asked(name: str) -> str:
    """Return the error of asking for a foreign name."""
    *path, last = name.split(".")
    of: Any = dt.ones(3, device="reference") if path == ["x"] else dt
    of = of if path in (["x"], ["dt"]) else reduce(getattr, [p for p in path if p != "dt"], dt)
    with pytest.raises(AttributeError) as error:
        getattr(of, last)
    return str(error.value)


def _compare(row: str, libraries: dict[str, ModuleType], make: Callable[[Any], Any]) -> None:
    name, theirs, ours = row.split(" | ")
    assert ours in _asked(name), name
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecated names
        wanted = eval(theirs, {**libraries, **{k: make(v) for k, v in ARRAYS.items()}, **NUMBERS})
    with dt.device("reference"):
        space: dict[str, Any] = {"dt": dt, "np": np, **NUMBERS}
        space |= {k: dt.asarray(v) for k, v in ARRAYS.items()}
        space |= {k: eval(v, dict(space)) for k, v in RENAMED.get(name, {}).items()}
        found = eval(ours, space)
    several = isinstance(wanted, (tuple, list))
    assert several == isinstance(found, tuple), row
    for have, want in zip(found, wanted, strict=True) if several else [(found, wanted)]:
        np.testing.assert_allclose(np.asarray(have), np.asarray(want), 1e-6, 1e-7, err_msg=row)


def test_hints_for_pytorch_names_equal_pytorch() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    for row in TORCH:
        _compare(row, {"torch": torch, "F": torch.nn.functional}, torch.from_numpy)


def test_hints_for_numpy_names_equal_numpy() -> None:
    for row in NUMPY:
        _compare(row, {"np": np, "scipy": scipy}, np.asarray)


def test_hints_for_ambiguous_dtypes_name_one() -> None:
    assert "dt.int32" in _asked("dt.int") and "dt.float64" in _asked("dt.float_")


def test_hint_of_a_compressed_tensor_names_its_own_methods() -> None:
    x = dt.eye(2, device="reference").to_sparse_csr()
    with pytest.raises(AttributeError, match=r"use x\.crow_indices\(\) and"):
        x.indices  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="its entries are in order, each once"):
        x.coalesce  # type: ignore[attr-defined]  # noqa: B018


def test_hint_without_an_equivalent_says_so() -> None:
    for name, closest in (
        ("nn.SyncBatchNorm", "dovetail has no SyncBatchNorm"),
        ("dt.quantization", "dovetail has no quantization module; to halve"),
    ):
        assert closest in _asked(name)
        assert "; use " not in _asked(name)


def test_hint_for_cuda_names_an_equal_of_each_function() -> None:
    for name in ("cuda", "mps", "xpu"):
        text = _asked(f"dt.{name}")
        count = [d.type for d in dt.devices()].count(name)
        for function, expected in (("is_available", count > 0), ("device_count", count)):
            code = re.search(rf"(?:use |, )((?:any|sum)[^,]*) for {name}\.{function}\(\)", text)
            assert code is not None, text
            assert eval(code[1], {"dt": dt}) == expected
        assert f"dt.synchronize() for {name}.synchronize()" in text


# --- every hint ----------------------------------------------------------------------------------

OTHER_TABLES = {"synonyms", "compressed", "parameters"}
TABLES = {name: table for name, table in hints.tables().items() if name not in OTHER_TABLES}


def _hints() -> list[str]:
    return sorted({hint for table in TABLES.values() for hint in table.values()})


def test_each_name_is_in_one_file() -> None:
    files = [Path(str(hints.__file__)).with_name(f"{library}.toml") for library in hints.LIBRARIES]
    names = [
        (table, name)
        for file in files
        for table, ways in tomllib.loads(file.read_text("utf-8")).items()
        for name in " ".join(ways.values()).split()
    ]
    assert len(names) == len({*names}) == sum(map(len, hints.tables().values())) > 1300


def test_hints_name_existing_objects() -> None:
    """Every dotted name of `dt`, and every method of a tensor `x`, exists."""
    x = dt.ones((2, 3), device="reference")
    absent = []
    for hint in _hints():
        for path in re.findall(r"\bdt\.([A-Za-z_][\w.]*\w)", hint):
            try:
                reduce(getattr, path.split("."), dt)
            except AttributeError:
                absent.append(f"dt.{path} in {hint!r}")
        for name in re.findall(r"(?<![\w.])x\.([a-z_]+)\(", hint):
            kinds = (x, x.to_sparse(), x.to_sparse_csr(), x.to_sparse_csc())
            if not any(hasattr(kind, name) for kind in kinds):
                absent.append(f"x.{name} in {hint!r}")
    assert absent == []


def test_hints_that_are_code_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hint that is an expression is evaluated with each object that it may refer to."""
    monkeypatch.chdir(tmp_path)
    ran, failed = 0, []
    with dt.device("reference"):
        for hint in _hints():
            code = hint.partition(", which ")[0].partition(", where ")[0]
            if not _is_call(code):
                continue
            error: Exception | None = None
            for space in _spaces():
                error = _error(code, space)
                if error is None or isinstance(error, NameError):
                    break  # it runs, or it refers to an object of the user
            ran += error is None
            if error is not None and not isinstance(error, NameError):
                failed.append(f"{hint}: {error!r}")
    assert failed == []
    assert ran > 250


def _is_call(code: str) -> bool:
    """Return True if a hint is a call, not an outline with "..."."""
    try:
        nodes = list(ast.walk(ast.parse(code, mode="eval")))
    except SyntaxError:
        return False
    outline = any(isinstance(n, ast.Constant) and n.value is ... for n in nodes)
    return any(isinstance(n, ast.Call) for n in nodes) and not outline


def _error(code: str, space: dict[str, Any]) -> Exception | None:
    """Return the exception of evaluating a hint; a missing device is none."""
    try:
        eval(code, space)
    except dt.DeviceError as error:
        return None if "no backend for" in str(error) or "device" in str(error) else error
    except Exception as error:
        return error
    finally:
        dt.memory.trace(False)  # a hint turns it on
    return None


def _spaces() -> Iterator[dict[str, Any]]:
    matrix, vector = dt.asarray([[4.0, 1.0], [1.0, 3.0]]), dt.asarray([1.0, 2.0])
    kinds = (
        matrix, vector, matrix.to_sparse(), dt.asarray([1, 2]), vector.copy().requires_grad_(),
        dt.ones(1), matrix.to_sparse_csr(), dt.ones(2, dtype=dt.uint8),
    )  # fmt: skip
    one = dt.float32, dt.device("reference"), dt.distributions.Normal(0.0, 1.0)
    for k, x in enumerate(kinds):
        net = dt.nn.Linear(2, 2)
        optimizer = dt.optim.SGD(net.parameters(), lr=0.1)
        yield {
            "dt": dt, "np": np, "copy": copy, "math": math, "pickle": pickle, "scipy": scipy,
            "hashlib": hashlib, "dtype": "float64", "shape": (2, 2), "axis": 0, "n": 2, "m": 2,
            "low": 0, "high": 3, "seed": 1, "values": [1.0, 2.0], "value": 1.0, "limit": 1.0,
            "k": 1, "bins": 4, "start": 0, "stop": 1, "step": 1, "end": 3, "length": 1, "size": 1,
            "sizes": 1, "kind": "numeric", "density": 0.5, "blocksize": (1, 1),
            "widths": 1, "buffer": b"12345678", "dim": 0,
            "x": x, "y": x + x, "z": x, "a": x, "b": x, "w": x, "r": x, "cov": matrix, "mean": 0.0,
            "p": vector / 3, "u": x, "mask": dt.asarray([True, False]), "i": dt.asarray([0, 1]),
            "index": dt.asarray([0, 1]), "boundaries": vector, "g": dt.random.default_rng(1),
            "generator": dt.random.default_rng(1), "net": net,
            "optimizer": optimizer, "loss": (vector.requires_grad_() * 2).sum(), "df": 3.0,
            "scheduler": dt.optim.lr_scheduler.StepLR(optimizer, 2), "scale": 1.0, "s": x,
            "params": [vector], "lr": 0.1, "threshold": 0.0, "factor": matrix, "beta": 1.0,
            "d": one[k % 3], "f": (dt.finfo(dt.float32), lambda *v: v[0])[k % 2],
            "device": "reference", "loader": [1],
        }  # fmt: skip
