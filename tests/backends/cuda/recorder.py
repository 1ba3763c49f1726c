"""A pytest plugin that records every kernel that the reference compiles, for the cuda backend.

Each kernel is legalized as the cuda backend would and written as one text file to the folder
DOVETAIL_RECORD_KERNELS.
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
    """Write the kernel's text and return what the reference compiles."""
    text = str(legalize(kernel, CUDA))
    name = hashlib.sha256(text.encode()).hexdigest()[:24]
    (Path(os.environ["DOVETAIL_RECORD_KERNELS"]) / name).write_text(text)
    return _compile(self, kernel)


def pytest_configure() -> None:
    """Start recording here, because other tests import this module too."""
    ReferenceBackend.compile = compile_and_keep  # type: ignore[method-assign]
