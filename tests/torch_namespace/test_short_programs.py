"""Short programs of PyTorch's users return the same in both libraries; only imports differ."""

from __future__ import annotations

import re
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

PATH = Path(__file__).with_name("short_programs.py")
SOURCE = PATH.read_text()
NAMES = re.findall(r"\w+", SOURCE[SOURCE.index("PROGRAMS = (") + 11 : SOURCE.rindex(")")])


def load(library: str) -> ModuleType:
    """Return the programs as a module that imports PyTorch or `dovetail.torch`."""
    source = SOURCE
    if library != "torch":
        source = re.sub(r"^import torch$", "import dovetail.torch as torch", source, flags=re.M)
        source = re.sub(r"^( *)(import|from) torch\b", rf"\1\2 {library}", source, flags=re.M)
    module = ModuleType(f"short_programs_on_{library.replace('.', '_')}")
    sys.modules[module.__name__] = module  # pickles look it up
    exec(compile(source, str(PATH), "exec"), module.__dict__)
    return module


def simplify(x: Any) -> Any:
    """Return a result as nested lists, arrays, and plain values that both libraries share."""
    if hasattr(x, "detach"):
        x = x.detach()
        values = x.float() if "bfloat16" in str(x.dtype) else x
        return [simplify(x.dtype), values.numpy()]
    if isinstance(x, dict):
        return {k: simplify(v) for k, v in x.items()}
    if isinstance(x, (tuple, list)):
        return [simplify(v) for v in x]
    if type(x).__name__ in ("dtype", "DType"):
        return str(x).rpartition(".")[2]
    return x


def assert_same(found: Any, expected: Any, path: str) -> None:
    """Check nested results: numbers to float32's accuracy, the rest exactly."""
    if isinstance(expected, np.ndarray):
        assert found.shape == expected.shape, path
        np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5, err_msg=path)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), path
        for k in expected:
            assert_same(found[k], expected[k], f"{path}[{k!r}]")
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected), path
        for k, pair in enumerate(zip(found, expected, strict=True)):
            assert_same(*pair, f"{path}[{k}]")
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-4, abs=2e-5), path
    else:
        assert type(found) is type(expected) and found == expected, path


@pytest.fixture(scope="module")
def libraries() -> tuple[ModuleType, ModuleType]:
    """Return the programs in PyTorch and in dovetail."""
    pytest.importorskip("torch")
    return load("torch"), load("dovetail.torch")


@pytest.mark.parametrize("name", NAMES)
def test_short_program_returns_the_same(name: str, libraries: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected, found = (simplify(getattr(m, name)()) for m in libraries)
    assert_same(found, expected, name)
