"""pyopencl, with every OpenCL implementation that is here: the system's, and Intel's from PyPI."""

from __future__ import annotations

import ctypes
import importlib.metadata
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dovetail.extend import Lock

INTEL = "intel-opencl-rt"
RUNTIME = (INTEL, "intel-cmplr-lib-rt")  # what dovetail-opencl[cpu] brings
CHOICES = ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES")  # by which users say where drivers are
_LIBRARIES = ("libintelocl.so", "intelocl64.dll")
SYSTEM = Path("/etc/OpenCL/vendors")
_lock = Lock()
_platforms: list[Any] | None = None
_said = ""  # by the loader, where it failed


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
    if library is None or chosen():
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
    global _said
    try:
        return list(cl.get_platforms())
    except cl.Error as error:
        _said = "" if "PLATFORM_NOT_FOUND" in str(error) else str(error)
        return []


# --- where there is none: why


def chosen() -> list[str]:
    """The variables by which the user has said where drivers are: others are not looked for."""
    return [name for name in CHOICES if name in os.environ]


def drivers() -> list[str]:
    """The libraries that the loader tries, as .icd files and the environment name them."""
    vendors = Path(os.environ.get("OCL_ICD_VENDORS") or SYSTEM)
    files = sorted(vendors.glob("*.icd")) if vendors.is_dir() else [vendors]
    named = [_first_line(icd) for icd in files if icd.suffix == ".icd" and icd.is_file()]
    named += os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep)
    intel = None if chosen() else intel_runtime()
    return [*filter(None, named), *([] if intel is None else [str(intel)])]


def _first_line(icd: Path) -> str:
    try:
        return icd.read_text("utf-8", errors="replace").strip().partition("\n")[0]
    except OSError:
        return ""


def refusals() -> dict[str, str]:
    """The drivers that do not load, and why: the OpenCL loader keeps that to itself."""
    found = {}
    for name in drivers():
        try:
            ctypes.CDLL(name)
        except OSError as error:
            found[name] = str(error)
    return found


def why() -> str:
    """Why no platform has a device."""
    found = [f"{name} does not load: {reason}" for name, reason in refusals().items()]
    return "; ".join(["no OpenCL platform has a device here", *filter(None, [_said]), *found])


def mend() -> str:
    """What to do about it: nothing is recommended that is there already."""
    steps = []
    if chosen():
        steps.append(f"unset {' and '.join(chosen())}, which hides all other drivers")
    if missing := [name for name in RUNTIME if not _installed(name)]:
        whole = 'pip install "dovetail-opencl[cpu]"'
        steps.append(whole if INTEL in missing else f"pip install {' '.join(missing)}")
    elif not chosen():
        steps.append("mend what keeps the driver from loading")
    if platform.machine() not in ("x86_64", "AMD64"):  # Intel's runtime is for no other
        steps = steps[:1] if chosen() else []
    return ", or ".join([*steps, "install your hardware's OpenCL driver"])


def _installed(distribution: str) -> bool:
    try:
        return bool(importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return False
