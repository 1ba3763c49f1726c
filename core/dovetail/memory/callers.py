"""Which line of the user's asks for something."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TypeAlias

Line: TypeAlias = object  # a source line: `str` of it says which

_OURS = {__name__.partition(".")[0]}  # packages whose lines nobody has written who asks


def pass_over(place: str) -> None:
    """Says that the lines of a package are not the user's.

    It is a plugin's, known by the "module:object" that it is loaded from.
    """
    _OURS.add(re.split("[.:]", place.strip())[0])
    is_ours.cache_clear()


def caller() -> str:
    """The innermost source line outside of dovetail and its plugins."""
    frame = sys._getframe()  # this function's own, where there is one
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__")):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def line() -> Line:
    """The same, of which the text is made when it is asked for: compiled, that is quicker."""
    return caller()


@cache
def is_ours(module: str | None) -> bool:
    """Return True for the name of a module of dovetail or of a plugin in use."""
    return str(module).partition(".")[0] in _OURS
