"""NVIDIA's driver and run-time compiler: the only module that imports their bindings.

Everything else calls `driver` and `nvrtc` through this module, so that a test can replace them with
a stand-in. Importing it loads neither library: the first call does.
"""

from __future__ import annotations

import ctypes
from typing import Any

from cuda.bindings import driver as driver
from cuda.bindings import nvrtc as nvrtc
from cuda.pathfinder import load_nvidia_dynamic_lib
from dovetail.extend import DovetailError, Process

OUT_OF_MEMORY = 2
process = Process("cuda", "CUDA")  # that loads the driver


class CudaError(DovetailError, RuntimeError):
    """A call to NVIDIA's driver failed; the message has its name for that."""


def unwrap_result(result: tuple[Any, ...], action: str) -> Any:
    """Return a driver call's result, or its tuple of results.

    Raises: MemoryError if the call ran out of memory, CudaError if it failed otherwise.
    """
    if result[0] != 0:
        raise status_error(result[0], action)
    return result[1] if len(result) == 2 else result[1:]


def unwrap_nvrtc_result(result: tuple[Any, ...], action: str) -> Any:
    """Return an NVRTC call's result, or its tuple of results. Raises: CudaError if it failed."""
    if result[0] != 0:
        text = _decode_text(nvrtc.nvrtcGetErrorString(result[0]))
        raise CudaError(f"cuda: {action}: {text or int(result[0])}")
    return result[1] if len(result) == 2 else result[1:]


def status_error(status: Any, action: str) -> Exception:
    """Build the MemoryError or CudaError for a status that is not success."""
    name, text = (_decode_text(f(status)) for f in (driver.cuGetErrorName, driver.cuGetErrorString))
    message = f"cuda: {action}: {name or int(status)}: {text}{_find_advice(int(status))}"
    return MemoryError(message) if status == OUT_OF_MEMORY else CudaError(message)


def load_library(name: str) -> ctypes.CDLL:
    """Load one of NVIDIA's libraries. Raises: RuntimeError if not found, OSError if unusable."""
    return ctypes.CDLL(str(load_nvidia_dynamic_lib(name).abs_path))


def _decode_text(result: tuple[Any, ...]) -> str:
    """Return the text in a driver's or compiler's result, or "" if that call failed."""
    name = result[1] if result[0] == 0 else b""
    return name.decode() if isinstance(name, bytes) else str(name or "")


def _find_advice(status: int) -> str:
    """Return advice for the user after a fork or a fatal status, or ""."""
    if not process.alive:
        return f". {process.advice}"
    if status in _FATAL_STATUSES:
        return (
            ". The device is unusable in this process; restart the process, and report this error"
        )
    return ""


# An illegal address, a failed launch and the like: every later call fails with the same status.
_FATAL_STATUSES = (700, 702, 710, 714, 715, 716, 717, 718, 719)
