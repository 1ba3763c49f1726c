"""How many threads of this process share the work of a device, where it has some to set."""

from __future__ import annotations

from typing import Any

from ..arguments import integer
from ..device_class import DEFAULT, Device, default_device, device, opened
from ..errors import ArgumentError, DeviceError

__all__ = ["get_num_threads", "set_num_threads"]


def get_num_threads(spec: Device | str | None = None) -> int:
    """How many threads of this process share a large piece of work.

    `spec`: the device; the default one unless given, or "cpu" where that has no threads of its own.
    1 for a device that computes in one, or elsewhere.
    Raises: DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.get_num_threads("reference")
    1
    """
    backend = _backend("get_num_threads", spec)
    return 1 if backend is None else int(backend.get_num_threads())


def set_num_threads(num: int, spec: Device | str | None = None) -> None:
    """Sets how many threads of this process share a large piece of work: no result depends on it.

    `num`: 1 or more, the calling thread included. `spec`: the device; the default one unless given,
    or "cpu" where that has no threads of its own. Products of large matrices are by NumPy's BLAS,
    which has threads of its own: see OPENBLAS_NUM_THREADS and threadpoolctl. The environment's
    DOVETAIL_NUM_THREADS is what there is at the beginning.
    Raises: ArgumentError for less than 1, and for a device without threads to set;
    ArgumentTypeError, DeviceError for a malformed name.

    >>> import dovetail as dt
    >>> dt.set_num_threads(dt.get_num_threads())
    """
    num = integer("set_num_threads", num, "num", 1)
    backend = _backend("set_num_threads", spec)
    if backend is not None:
        backend.set_num_threads(num)
    elif spec is not None:
        raise ArgumentError(f"set_num_threads: {device(spec)} has no threads that could be set")


def _backend(op: str, spec: Device | str | None) -> Any:
    """The backend that has threads; None if there is none."""
    wanted = default_device() if spec is None else device(spec, op)
    found = opened(wanted).backend
    if spec is None and not hasattr(found, "set_num_threads"):
        try:
            found = opened(device(DEFAULT)).backend
        except DeviceError:
            return None
    return found if hasattr(found, "set_num_threads") else None
