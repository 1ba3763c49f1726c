"""Devices and settings: `torch.cuda`, `torch.mps`, `torch.backends`, `torch.device`."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dovetail as dt


class _DeviceKind(type):
    """The class of `torch.device`, of which all devices are instances."""

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], int):
            args = ("cuda", *args)
        return dt.device(*args, **options)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, dt.Device)


class device(metaclass=_DeviceKind):
    """The device with a name such as "cpu" or "cuda:0"; its instances are those of `dt.Device`."""


class Accepted:
    """Settings of PyTorch that have no effect here: any attribute can be set and read.

    - `values`: those that are read without being set.
    """

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return False


def device_functions(kind: str) -> dict[str, Callable[..., Any]]:
    """Return the functions of `torch.cuda` for devices of a type."""

    def find() -> list[dt.Device]:
        return [d for d in dt.devices() if d.type == kind]

    def name(index: Any = None) -> Any:
        if index is None or isinstance(index, int):
            return f"{kind}:{index or 0}"
        return index

    def get_device_name(device: Any = None) -> str:
        """Return the name of a device."""
        return str(dt.device(name(device)))

    def synchronize(device: Any = None) -> None:
        """Wait for the work of a device."""
        dt.synchronize(name(device))

    def memory_allocated(device: Any = None) -> int:
        """Return the bytes in use on a device."""
        return int(dt.memory.stats(name(device)).live_bytes) if find() else 0

    def max_memory_allocated(device: Any = None) -> int:
        """Return the largest number of bytes that were in use on a device."""
        return int(dt.memory.stats(name(device)).peak_live_bytes) if find() else 0

    def manual_seed(seed: int) -> None:
        """Restart the default generator, which all devices share, at a seed."""
        dt.random.manual_seed(seed)

    functions: dict[str, Callable[..., Any]] = {
        "is_available": lambda: bool(find()),
        "device_count": lambda: len(find()),
        "current_device": lambda: 0,
        "is_initialized": lambda: bool(find()),
        "init": lambda: None,
        "empty_cache": lambda: None,
        "reset_peak_memory_stats": lambda device=None: None,
        "set_device": lambda device: None,
        "is_bf16_supported": lambda *_: bool(find()),
        "get_device_name": get_device_name,
        "synchronize": synchronize,
        "memory_allocated": memory_allocated,
        "memory_reserved": memory_allocated,
        "max_memory_allocated": max_memory_allocated,
        "manual_seed": manual_seed,
        "manual_seed_all": manual_seed,
    }
    for name_, function in functions.items():
        function.__name__ = function.__qualname__ = name_
    return functions


def backends() -> dict[str, Any]:
    """Return the attributes of `torch.backends`: accepted settings."""

    def has(kind: str) -> Callable[[], bool]:
        return lambda: any(d.type == kind for d in dt.devices())

    return {
        "cudnn": Accepted(is_available=has("cuda"), enabled=True, version=lambda: None),
        "cuda": Accepted(matmul=Accepted(), is_built=has("cuda")),
        "mps": Accepted(is_available=has("mps"), is_built=has("mps")),
        "mkl": Accepted(is_available=lambda: False),
        "mkldnn": Accepted(is_available=lambda: False),
        "openmp": Accepted(is_available=lambda: True),
        "opt_einsum": Accepted(is_available=lambda: False),
    }


version = SimpleNamespace(cuda=None, hip=None, git_version="", debug=False)
