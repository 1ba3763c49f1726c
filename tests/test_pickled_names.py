"""Pickles of the functions and classes of all namespaces: each is found by its name."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from types import ModuleType
from typing import Any

import pytest

NAMESPACES = (
    "dovetail", "dovetail.linalg", "dovetail.nn.functional", "dovetail.numpy", "dovetail.numpy.fft",
    "dovetail.numpy.linalg", "dovetail.numpy.random", "dovetail.torch", "dovetail.torch.nn",
    "dovetail.torch.nn.functional", "dovetail.jax", "dovetail.jax.numpy",
)  # fmt: skip


def public_values(namespace: str) -> dict[str, Any]:
    module = importlib.import_module(namespace)
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    values = {name: getattr(module, name) for name in names}
    return {n: v for n, v in values.items() if callable(v) and not isinstance(v, ModuleType)}


@pytest.mark.parametrize("namespace", NAMESPACES)
def test_pickle_of_a_public_function_or_class_gives_the_same_object(namespace: str) -> None:
    values = public_values(namespace)
    assert values
    wrong = [n for n, v in values.items() if pickle.loads(pickle.dumps(v)) is not v]
    assert not wrong


@pytest.mark.parametrize("namespace", ["dovetail.numpy", "dovetail.torch.nn.functional"])
def test_pickles_are_read_by_a_process_that_has_imported_nothing(namespace: str) -> None:
    values = public_values(namespace)
    code = "import pickle, sys; print(len(pickle.load(sys.stdin.buffer)))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, input=pickle.dumps(values), capture_output=True, check=True)
    assert done.stdout.split() == [str(len(values)).encode()]
