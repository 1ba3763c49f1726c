"""The number of threads by which a device works in this process."""

from __future__ import annotations

from typing import Any

from ..argument_checks import integer
from ..device_class import DEFAULT_DEVICE_TYPE, Device, default_device, device, opened
from ..errors import ArgumentError, DeviceError
from ..install_source import install_command

__all__ = ["get_num_threads", "set_num_threads"]


def get_num_threads(spec: Device | str | None = None) -> int:
    """Return how many threads share a large launch on `spec`, the default device, or else "cpu".

    The result is 1 for a device that uses one thread, or threads outside of this process.

    - `spec`: the device; None is the default device, or "cpu" if that has no threads of its own.

    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.get_num_threads("reference")
    1
    """
    backend = find_backend_with("get_num_threads", "get_num_threads", spec)
    return 1 if backend is None else int(backend.get_num_threads())


def set_num_threads(num: int, spec: Device | str | None = None) -> None:
    """Set the number of threads of this process that share a large launch; no result depends on it.

    Decompositions of matrices use LAPACK, which has threads of its own: see OPENBLAS_NUM_THREADS
    and threadpoolctl. The initial number is that of the environment variable DOVETAIL_NUM_THREADS.

    - `num`: the number, 1 or more, including the calling thread.
    - `spec`: the device; None is the default device, or "cpu" if that has no threads of its own.

    Raises: ArgumentError for less than 1, and for more than 1 if no such device has threads to set;
    ArgumentTypeError, DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.set_num_threads(dt.get_num_threads())
    """
    num = integer("set_num_threads", num, "num", 1)
    backend = find_backend_with("set_num_threads", "set_num_threads", spec)
    if backend is not None:
        backend.set_num_threads(num)
    elif num > 1 and spec is None:
        raise ArgumentError(
            f"set_num_threads: the default device, {default_device()}, has no thread pool, nor has "
            f'"{DEFAULT_DEVICE_TYPE}"; num must be 1, got {num}; for threads, '
            f"{install_command('dovetail-cpu-llvm')}"
        )
    elif num > 1:
        raise ArgumentError(
            f"set_num_threads: {device(spec)} has no thread pool; num must be 1, got {num}; or "
            "name a device that has one"
        )


def find_backend_with(method: str, op: str, spec: Device | str | None) -> Any:
    """Return the backend that has a method, or None; None as device may mean "cpu"."""
    dev = default_device() if spec is None else device(spec, op)
    backend = opened(dev).backend
    if spec is None and not hasattr(backend, method):
        try:
            backend = opened(device(DEFAULT_DEVICE_TYPE)).backend
        except DeviceError:
            return None
    return backend if hasattr(backend, method) else None
