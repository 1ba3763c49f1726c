"""The tables of docs/from-*.md: code of other libraries, and dovetail's equivalent.

A library that is not installed, or has no device, is not compared with; dovetail's side runs.
"""

from __future__ import annotations

import functools
import os
import pickle
import re
import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
LIBRARIES = {
    "NumPy": "numpy", "PyTorch": "torch", "JAX": "jax", "MLX": "mlx", "CuPy": "cupy",
    "tinygrad": "tinygrad",
}  # fmt: skip
SHORT_NAMES = re.compile(r"\b(np|torch|jax|jnp|mx|cp|dtypes|Tensor)\.")
CODE = re.compile(r"^\| `(.+?)` \| `(.+?)` \|(?: (.+) \|)?$", re.MULTILINE)
SAME = "Different name, same result"
DIFFERS = "Same name, different result"
REFUSED = "Calls that raise an error"


def section(library: str, title: str) -> str:
    page = (ROOT / "docs" / f"from-{library.lower()}.md").read_text()
    return page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def rows(title: str) -> list[Any]:
    found = [(of, *row) for of in LIBRARIES for row in CODE.findall(section(of, title))]
    return [pytest.param(*row, id=f"{row[0]}-{row[1]}") for row in found]


A, V, N = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], [3.0, 1.0, 2.0], [1, 2, 3]
M = [True, False]


def ours() -> dict[str, Any]:
    """Return the names of the pages, as tensors."""
    with dt.device("reference"):
        made = {
            name: dt.asarray(values) for name, values in (("a", A), ("v", V), ("n", N), ("m", M))
        }
        w = dt.asarray(V).requires_grad_()
    return {"dt": dt, "np": np, "w": w, "f": lambda x: (x * x).sum(), **made}


def theirs(library: str) -> dict[str, Any]:
    """Return the names as arrays of another library, or skip if it is not installed."""
    of = pytest.importorskip(LIBRARIES[library], exc_type=ImportError)
    if library == "PyTorch":
        names = {"torch": of, "w": of.tensor(V, requires_grad=True)}
        make = of.tensor
    elif library == "JAX":
        for part in ("nn", "numpy", "scipy.special", "tree_util", "ops"):
            import_module(f"jax.{part}")
        names, make = {"jax": of, "jnp": of.numpy}, of.numpy.asarray
    elif library == "MLX":
        names = {"mx": import_module("mlx.core")}
        make = names["mx"].array
    elif library == "CuPy":
        names, make = {"cp": of}, of.asarray
    elif library == "tinygrad":
        names = {"Tensor": of.Tensor, "TinyJit": of.TinyJit, "dtypes": of.dtypes}
        names["w"] = of.Tensor(V)
        make = of.Tensor
    else:
        names, make = {"np": np}, np.asarray
    a, v = (make(np.asarray(x, np.float32)) for x in (A, V))
    n, m = make(N), make(M)
    return {"np": np, "a": a, "v": v, "n": n, "m": m, "f": lambda x: (x * x).sum(), **names}


def run(code: str, names: dict[str, Any]) -> Any:
    with dt.device("reference"):
        return eval(code, names)


def plain(value: Any) -> Any:
    """Convert a result to Python objects."""
    if isinstance(value, tuple | list):
        return [plain(v) for v in value]
    if value is None or isinstance(value, bool | str):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    if type(value).__module__.startswith(("tinygrad", "cupy")):
        value = value.numpy() if hasattr(value, "numpy") else value.get()
    if type(value).__module__.startswith("torch") and hasattr(value, "resolve_conj"):
        value = value.resolve_conj()
    return np.asarray(value)


def answer(library: str, code: str) -> Any:
    """Return the result of another library, or skip if it cannot be had.

    NumPy and PyTorch run here. The others run in a process of their own, because their threads
    disturb tests that fork.
    """
    if library in ("NumPy", "PyTorch"):
        return run(code, theirs(library))
    if find_spec(LIBRARIES[library]) is None:
        pytest.skip(f"{library} is not installed")
    answers = answers_of(library)
    if isinstance(answers, str):
        pytest.skip(f"{library} cannot compute here: {answers}")
    return answers[code]


@functools.cache
def answers_of(library: str) -> dict[str, Any] | str:
    """Return a library's plain results by code, or why it has none."""
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    program = f"import test_coming_from as t; t.tell({library!r})"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, check=True,
    )  # fmt: skip
    found: dict[str, Any] | str = pickle.loads(done.stdout)
    return found


def tell(library: str) -> None:
    """Print a library's results of the code of its page, or its error if it has no device."""
    warnings.simplefilter("ignore")
    found: dict[str, Any] | str
    try:
        names = theirs(library)
        plain(names["v"] + names["v"])
    except Exception as error:  # of a driver or a compiler that is absent: any class
        found = f"{type(error).__name__}: {error}"
    else:
        pages = (section(library, title) for title in (SAME, DIFFERS, REFUSED))
        codes = [row[0] for page in pages for row in CODE.findall(page)]
        found = {code: plain(run(code, theirs(library))) for code in codes}
    sys.stdout.buffer.write(pickle.dumps(found))


def alike(x: Any, y: Any) -> bool:
    """Return True if two plain results have the same structure, shapes and values."""
    if isinstance(x, list) or isinstance(y, list):
        both = isinstance(x, list) and isinstance(y, list) and len(x) == len(y)
        return both and all(alike(p, q) for p, q in zip(x, y, strict=True))
    if not (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
        return bool(np.all(x == y))
    return x.shape == y.shape and bool(np.allclose(x, y, rtol=1e-5, atol=1e-6, equal_nan=True))


def identical(x: Any, y: Any) -> bool:
    """Return True if dtypes are equal too, and both or neither are scalars."""
    if isinstance(x, list) and isinstance(y, list) and alike(x, y):
        return all(identical(p, q) for p, q in zip(x, y, strict=True))
    return alike(x, y) and getattr(x, "dtype", None) == getattr(y, "dtype", None)


def test_each_table_has_enough_rows() -> None:
    for library in LIBRARIES:
        counts = [len(CODE.findall(section(library, t))) for t in (SAME, DIFFERS, REFUSED)]
        assert counts[0] >= 19 and min(counts) >= 5, (library, counts)


@pytest.mark.parametrize(("library", "their", "our", "note"), rows(SAME))
@pytest.mark.filterwarnings("ignore")
def test_equivalent_code_gives_the_same_result(
    library: str, their: str, our: str, note: str
) -> None:
    found = plain(run(our, ours()))
    assert not note
    assert alike(found, plain(answer(library, their)))


@pytest.mark.parametrize(("library", "their", "our", "note"), rows(DIFFERS))
@pytest.mark.filterwarnings("ignore")
def test_documented_difference_exists(library: str, their: str, our: str, note: str) -> None:
    found = run(our, ours())
    expected = answer(library, their)
    kinds = isinstance(found, dt.Tensor) and isinstance(expected, np.generic)
    assert note and (kinds or not identical(plain(found), plain(expected)))


@pytest.mark.parametrize(("library", "their", "our", "note"), rows(REFUSED))
@pytest.mark.filterwarnings("ignore")
def test_documented_error_names_code_with_the_same_result(
    library: str, their: str, our: str, note: str
) -> None:
    names = ours()
    typed = SHORT_NAMES.sub("dt.", their.replace("Tensor(", "dt.asarray("))
    with pytest.raises((dt.DovetailError, AttributeError)) as error:
        run(typed, names)
    assert re.search(
        r"; use |; see |; write |arguments are |parameters are |dt\.", str(error.value)
    )
    found = plain(run(our, ours()))
    assert not note
    assert alike(found, plain(answer(library, their)))
