"""A pytest plugin that keeps every kernel that the reference is given, as the cuda backend would be
given it: legalised, as text, one file each in the folder DOVETAIL_RECORD_KERNELS.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from dovetail.backend.reference import ReferenceBackend
from dovetail.dtypes import FLOATS, INTEGERS, bool_
from dovetail.extend import Kernel, Program, legalize
from dovetail.ir.target import Capabilities

CUDA = Capabilities(dtypes=frozenset((bool_, *INTEGERS, *FLOATS)))
_compile = ReferenceBackend.compile


def compile_and_keep(self: ReferenceBackend, kernel: Kernel) -> Program:
    """What the reference compiles, after its text has been written."""
    text = str(legalize(kernel, CUDA))
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    (Path(os.environ["DOVETAIL_RECORD_KERNELS"]) / name).write_text(text)
    return _compile(self, kernel)


def pytest_configure() -> None:
    """Begins to record: not on import, which other tests do too."""
    ReferenceBackend.compile = compile_and_keep  # type: ignore[method-assign]
