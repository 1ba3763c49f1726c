"""Docstrings of `dt.nn`: first lines are sentences, and the examples print their output."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import dovetail as dt
import pytest

SPACES = {
    "nn": dt.nn, "nn.functional": dt.nn.functional, "nn.init": dt.nn.init, "nn.utils": dt.nn.utils,
}  # fmt: skip
EVERY: dict[str, Any] = {
    f"{where}.{name}": getattr(space, name)
    for where, space in SPACES.items()
    for name in space.__all__
    if not inspect.ismodule(getattr(space, name))
}


@pytest.mark.parametrize("name", EVERY)
def test_examples_print_their_output(name: str) -> None:
    text = inspect.getdoc(EVERY[name]) or ""
    first = text.split("\n")[0]
    assert first.endswith((".", ":")), first
    assert ">>> " in text, name
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append)
    assert "".join(told) == ""


def test_public_methods_have_docstrings() -> None:
    silent = [
        f"{name}.{method}"
        for name, value in EVERY.items()
        if inspect.isclass(value)
        for method, f in vars(value).items()
        if not method.startswith("_") and inspect.isfunction(f) and not inspect.getdoc(f)
    ]
    assert silent == []
