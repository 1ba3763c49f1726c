"""Docstrings of the methods of `dt.nn`; tests/test_docstrings.py checks those of its names."""

from __future__ import annotations

import inspect
from typing import Any

import dovetail as dt

SPACES = {
    "nn": dt.nn, "nn.functional": dt.nn.functional, "nn.init": dt.nn.init, "nn.utils": dt.nn.utils,
}  # fmt: skip
EVERY: dict[str, Any] = {
    f"{where}.{name}": getattr(space, name)
    for where, space in SPACES.items()
    for name in space.__all__
    if not inspect.ismodule(getattr(space, name))
}


def test_public_methods_have_docstrings() -> None:
    silent = [
        f"{name}.{method}"
        for name, value in EVERY.items()
        if inspect.isclass(value)
        for method, f in vars(value).items()
        if not method.startswith("_") and inspect.isfunction(f) and not inspect.getdoc(f)
    ]
    assert silent == []
