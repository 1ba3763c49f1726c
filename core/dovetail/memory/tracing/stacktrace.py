"""The source line of the user's code that called dovetail."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TypeAlias

Line: TypeAlias = object  # a source line, formatted by `str`

_SKIPPED = {__name__.partition(".")[0]}  # packages that are not the user's: dovetail and plugins


def skip_package(entry_point: str) -> None:
    """Make `caller_line` skip the package of a plugin's entry point, "module:object"."""
    _SKIPPED.add(re.split("[.:]", entry_point.strip())[0])
    is_library_module.cache_clear()


def caller_line() -> str:
    """Return "file:line" of the innermost frame outside of dovetail and its plugins."""
    frame = sys._getframe()  # this function's own, which a compiled function does not have
    while frame.f_back is not None and is_library_module(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def current_line() -> Line:
    """Return the line of `caller_line` as an object; compiled, it is formatted on demand."""
    return caller_line()


@cache
def is_library_module(module: str | None) -> bool:
    """Return True for the name of a module of dovetail or of a plugin in use."""
    return str(module).partition(".")[0] in _SKIPPED
