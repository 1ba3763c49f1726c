"""The examples in docstrings of optimizers, loaders, checkpoints and logs are correct."""

from __future__ import annotations

import pkgutil

import dovetail.data
import dovetail.optim
import pytest
from sessions import find_module_failures

PACKAGES = (dovetail.data, dovetail.optim)
MODULES = [
    *(f"{p.__name__}.{m.name}" for p in PACKAGES for m in pkgutil.iter_modules(p.__path__)),
    "dovetail.checkpoint", "dovetail.nn.clipping", "dovetail.tensorboard",
]  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_are_correct(name: str) -> None:
    if name.endswith("checkpoint"):
        pytest.importorskip("safetensors")
    if name.endswith("tensorboard"):
        pytest.importorskip("tensorboard")
    assert find_module_failures(name) == ""
