"""pyopencl, with every OpenCL implementation that is here: the system's, and Intel's from PyPI."""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

INTEL = "intel-opencl-rt"
_LIBRARIES = ("libintelocl.so", "intelocl64.dll")
SYSTEM = Path("/etc/OpenCL/vendors")
_lock = threading.Lock()
_platforms: list[Any] | None = None


def intel_runtime() -> Path | None:
    """Intel's runtime for CPUs as pip installed it; its own .icd file names no real path."""
    try:
        files = importlib.metadata.files(INTEL) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    found = (Path(str(f.locate())).resolve() for f in files if f.name in _LIBRARIES)
    return next((path for path in found if path.exists()), None)


@contextmanager
def _vendors(library: Path | None) -> Iterator[None]:
    """An environment in which the loader finds the system's implementations and `library`.

    ocl-icd (in pyopencl's wheels, and on Linux) reads one folder of .icd files; Khronos's loader
    takes further libraries from OCL_ICD_FILENAMES. What the user has set is left alone.
    """
    if library is None or "OCL_ICD_VENDORS" in os.environ or "OCL_ICD_FILENAMES" in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dovetail") as folder:
        for icd in SYSTEM.glob("*.icd") if SYSTEM.is_dir() else ():
            shutil.copy(icd, folder)
        (Path(folder) / "dovetail-intel.icd").write_text(f"{library}\n")
        os.environ["OCL_ICD_VENDORS"], os.environ["OCL_ICD_FILENAMES"] = folder, str(library)
        try:
            yield
        finally:
            del os.environ["OCL_ICD_VENDORS"], os.environ["OCL_ICD_FILENAMES"]


def platforms() -> list[Any]:
    """pyopencl's platforms, the same each time: the loader looks for them once in a process.

    Raises: ImportError where pyopencl or the loader is missing.
    """
    global _platforms
    with _lock:
        if _platforms is None:
            with _vendors(intel_runtime()):
                import pyopencl  # reads the environment, with its loader

                _platforms = _found(pyopencl)
        return _platforms


def _found(cl: Any) -> list[Any]:
    try:
        return list(cl.get_platforms())
    except cl.Error:  # PLATFORM_NOT_FOUND_KHR: there is none
        return []
