"""Warnings for results that a line reads as PyTorch's pair of values and indices.

`x.max(1)` returns the largest elements. PyTorch's returns (values, indices), so that `x.max(1)[0]`
and `_, index = x.max(1)` are valid in both libraries and differ. The line's bytecode tells them
from other reads: a literal 0 or 1, or two targets, directly behind a call with arguments by
position alone. `x.max(axis=1)[0]`, NumPy's form, is not warned about.
"""

from __future__ import annotations

import dis
import sys
import warnings
from functools import lru_cache
from types import CodeType

from ..errors import DovetailWarning

INDEX_HINTS = {  # functions with such results -> how to get the indices
    "max": "dt.argmax",
    "min": "dt.argmin",
    "sort": "dt.argsort",
    "median": "dt.argsort",
    "nanmedian": "dt.argsort",
}


def warn_if_pair(name: str, along_first: bool = False, at_call: bool = False) -> None:
    """Warn if the line that reads a result of the function `name` reads it as a pair.

    along_first: the result is along axis 0, so that it may be two numbers: `x, y = points.max(0)`.
    at_call: the function is running, and has not returned to the line.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_globals.get("__name__", "").partition(".")[0] == "dovetail":
        if frame.f_back is None:
            return
        level, frame = level + 1, frame.f_back
    read = _find_read(frame.f_code, frame.f_lasti, at_call)
    if read and not (along_first and read == UNPACKED):
        warnings.warn(
            f"{name}: dovetail returns values only, so {read}; for PyTorch's values use the result "
            f"itself, for indices {INDEX_HINTS[name]}; if this is meant, pass axis= by name",
            DovetailWarning,
            stacklevel=level,
        )


UNPACKED, INDEXED = "both names get a row of them", "[{}] is a row of them"


@lru_cache(256)
def _find_read(code: CodeType, offset: int, at_call: bool) -> str:
    """Return how the instruction at an offset reads the result of a call as a pair, or ""."""
    steps = [s for s in dis.get_instructions(code) if s.opname not in ("EXTENDED_ARG", "NOP")]
    at = sum(s.offset <= offset for s in steps) - 1  # the offset may be in a step's inline cache
    if at_call:
        at += 2 if steps[at + 1].opname.startswith("LOAD_") else 1
    last = steps[at]
    if last.opname == "UNPACK_SEQUENCE" and last.argval == 2:
        call, read = at - 1, UNPACKED
    elif _is_subscript(last) and type(index := steps[at - 1].argval) is int and index in (0, 1):
        call, read = at - 2, INDEXED.format(index)
    else:
        return ""
    is_call = steps[call].opname == "CALL"
    by_name = any(s.opname == "KW_NAMES" for s in steps[max(call - 2, 0) : call])
    return read if is_call and not by_name else ""


def _is_subscript(step: dis.Instruction) -> bool:
    """Return True if an instruction is `x[key]`: a BINARY_OP from Python 3.14 on."""
    return step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
