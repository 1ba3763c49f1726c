"""The compiled module of this backend: the thread pool (`pool.c`) and bound launches (`launch.c`).

It is built where dovetail-cpu-llvm is installed, if there is a C compiler. Without it, and with
DOVETAIL_PURE=1, launches are objects of Python and run on the calling thread; results have the same
bits.
"""

from __future__ import annotations

import importlib
import os
from contextlib import suppress
from typing import Any

NOT_COMPILED = (
    "not compiled: each kernel runs on one thread, and its launch takes 2 us longer; install a C "
    "compiler, then reinstall dovetail-cpu-llvm without DOVETAIL_PURE=1"
)


def _load() -> Any:
    """Import the compiled module; return None if missing, or if DOVETAIL_PURE is set."""
    if os.environ.get("DOVETAIL_PURE", "").strip().lower() not in ("1", "true", "yes", "on"):
        with suppress(ImportError):
            return importlib.import_module(f"{__package__}._native")
    return None


native = _load()  # None: it was not compiled, or is not wanted
