"""The loader of pyopencl with every OpenCL implementation that is installed.

They are the system's, and Intel's from PyPI.
"""

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

from dovetail.extend import Lock, install_command

INTEL_PACKAGE = "intel-opencl-rt"
RUNTIME_PACKAGES = (INTEL_PACKAGE, "intel-cmplr-lib-rt")  # the packages of dovetail-opencl[cpu]
DRIVER_VARIABLES = ("OCL_ICD_VENDORS", "OCL_ICD_FILENAMES")  # variables by which users name drivers
_LIBRARIES = ("libintelocl.so", "intelocl64.dll")
SYSTEM_VENDORS = Path("/etc/OpenCL/vendors")
_lock = Lock()
_platforms: list[Any] | None = None
_loader_error = ""  # the loader's error, if it failed


def intel_runtime() -> Path | None:
    """Return the library of Intel's CPU runtime that pip installed, or None."""
    try:
        files = importlib.metadata.files(INTEL_PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    paths = (Path(str(f.locate())).resolve() for f in files if f.name in _LIBRARIES)
    return next((path for path in paths if path.exists()), None)


@contextmanager
def _set_vendor_environment(library: Path | None) -> Iterator[None]:
    """Return a context with variables by which the loader finds all drivers and `library`.

    ocl-icd (in pyopencl's wheels, and on Linux) reads one folder of .icd files; Khronos's loader
    takes further libraries from OCL_ICD_FILENAMES. Variables that the user has set stay.
    """
    if library is None or driver_variables_in_use():
        yield
        return
    with tempfile.TemporaryDirectory(prefix="dovetail") as folder:
        for icd in SYSTEM_VENDORS.glob("*.icd") if SYSTEM_VENDORS.is_dir() else ():
            shutil.copy(icd, folder)
        (Path(folder) / "dovetail-intel.icd").write_text(f"{library}\n")
        os.environ["OCL_ICD_VENDORS"], os.environ["OCL_ICD_FILENAMES"] = folder, str(library)
        try:
            yield
        finally:
            del os.environ["OCL_ICD_VENDORS"], os.environ["OCL_ICD_FILENAMES"]


def platforms() -> list[Any]:
    """Return pyopencl's platforms; the first call in a process imports it and searches.

    Raises: ImportError where pyopencl or the loader is missing.
    """
    global _platforms
    with _lock:
        if _platforms is None:
            with _set_vendor_environment(intel_runtime()):
                import pyopencl  # its loader reads the environment

                _platforms = _find_platforms(pyopencl)
        return _platforms


def _find_platforms(cl: Any) -> list[Any]:
    """Return the platforms; after a loader's error store its text and return none."""
    global _loader_error
    try:
        return list(cl.get_platforms())
    except cl.Error as error:
        _loader_error = "" if "PLATFORM_NOT_FOUND" in str(error) else str(error)
        return []


# --- reasons if there is no device


def driver_variables_in_use() -> list[str]:
    """Return the names of set variables that name drivers; then no others are searched for."""
    return [name for name in DRIVER_VARIABLES if name in os.environ]


def drivers() -> list[str]:
    """Return the libraries the loader tries: from .icd files, variables, or pip (Intel's)."""
    vendors = Path(os.environ.get("OCL_ICD_VENDORS") or SYSTEM_VENDORS)
    files = sorted(vendors.glob("*.icd")) if vendors.is_dir() else [vendors]
    named = [_read_first_line(icd) for icd in files if icd.suffix == ".icd" and icd.is_file()]
    named += os.environ.get("OCL_ICD_FILENAMES", "").split(os.pathsep)
    intel = None if driver_variables_in_use() else intel_runtime()
    return [*filter(None, named), *([] if intel is None else [str(intel)])]


def _read_first_line(icd: Path) -> str:
    """Return the first line of an .icd file, or "" if the file cannot be read."""
    try:
        return icd.read_text("utf-8", errors="replace").strip().partition("\n")[0]
    except OSError:
        return ""


def load_errors() -> dict[str, str]:
    """Try to load each driver; return {library: error} of those that fail."""
    errors = {}
    for name in drivers():
        try:
            ctypes.CDLL(name)
        except OSError as error:
            errors[name] = str(error)
    return errors


def explain_no_device() -> str:
    """Return the reasons why no platform has a device, as one sentence."""
    reasons = [f"{name} cannot be loaded: {reason}" for name, reason in load_errors().items()]
    return "; ".join(["no OpenCL platform has a device", *filter(None, [_loader_error]), *reasons])


def suggest_fix() -> str:
    """Return the steps that may give a device, as text, omitting installed packages."""
    steps = []
    if driver_variables_in_use():
        steps.append(
            f"unset {' and '.join(driver_variables_in_use())}, which hides all other drivers"
        )
    if missing := [name for name in RUNTIME_PACKAGES if not _is_installed(name)]:
        wanted = ["dovetail-opencl[cpu]"] if INTEL_PACKAGE in missing else missing
        steps.append(install_command(*wanted))
    elif not driver_variables_in_use():
        steps.append("fix the loading error of the driver")
    if platform.machine() not in ("x86_64", "AMD64"):  # Intel's runtime is for no other
        steps = steps[:1] if driver_variables_in_use() else []
    return ", or ".join([*steps, "install your hardware's OpenCL driver"])


def _is_installed(distribution: str) -> bool:
    """Return True if a distribution is installed."""
    try:
        return bool(importlib.metadata.version(distribution))
    except importlib.metadata.PackageNotFoundError:
        return False
