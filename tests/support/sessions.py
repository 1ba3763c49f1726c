"""Run the interactive sessions of docstrings and pages, on the default device."""

from __future__ import annotations

import doctest
import importlib
from collections.abc import Iterable
from typing import Any
from unittest import mock


def find_failures(text: str, name: str, variables: dict[str, Any] | None = None) -> str:
    """Return the differences between the output of the session in a text and the text.

    variables: those of earlier sessions. Those of this one are added.
    """
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    test.globs = {} if variables is None else variables
    return run([test])


def find_module_failures(name: str) -> str:
    """Return the differences in the docstrings of a module."""
    return run(doctest.DocTestFinder().find(importlib.import_module(name)))


def run(tests: Iterable[doctest.DocTest]) -> str:
    """Return what the runner tells of failures; the default device is a new process's."""
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    with mock.patch("dovetail.device_class.process_default", None):
        for test in tests:
            runner.run(test, out=told.append, clear_globs=False)
    return "".join(told)
