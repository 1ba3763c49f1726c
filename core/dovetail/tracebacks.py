"""Tracebacks that end in the user's code.

A public function that catches an error cuts dovetail's frames, then raises it again. Python adds no
frame for a bare `raise`, so that the traceback ends at the line that called the function. Frames of
the user's code between them, as of a function under `dt.vmap`, stay. In Python's development mode
(`python -X dev`) all frames stay, and those of an InternalError always do.
"""

from __future__ import annotations

import sys
from types import TracebackType

from .errors import DovetailError, InternalError

keeps_frames = sys.flags.dev_mode  # a test changes it


def hide_internal_frames(error: BaseException) -> None:
    """Remove dovetail's frames from the traceback of an error, before a bare `raise`.

    Errors that dovetail does not raise on purpose keep theirs.
    """
    if keeps_frames or not isinstance(error, DovetailError) or isinstance(error, InternalError):
        return
    user_entries: list[TracebackType] = []
    entry = error.__traceback__
    while entry is not None:
        if not _is_internal(str(entry.tb_frame.f_globals.get("__name__"))):
            user_entries.append(entry)
        entry = entry.tb_next
    error.__traceback__ = None
    for entry in reversed(user_entries):
        error.__traceback__ = TracebackType(
            error.__traceback__, entry.tb_frame, entry.tb_lasti, entry.tb_lineno
        )


def _is_internal(module: str) -> bool:
    """Return True for the modules of dovetail and of its backends."""
    package = module.partition(".")[0]
    return package == "dovetail" or package.startswith("dovetail_")
