# Written by tools/faces.py for type checkers:
# ruff: noqa
# the names of `torch.mps`.
# fmt: off
# isort: off

from dovetail.torch.adoption import Tensor
from dovetail.tensor.tensor import Tensor as AnyTensor
from typing import Any

def current_device() -> Any: ...
def device_count() -> Any: ...
def empty_cache() -> Any: ...
def get_device_name(device: Any = None) -> str:
    """Return the name of a device."""
def init() -> Any: ...
def is_available() -> Any: ...
def is_bf16_supported(*_: Any) -> Any: ...
def is_initialized() -> Any: ...
def manual_seed(seed: int) -> None:
    """Restart the default generator, which all devices share, at a seed."""
def manual_seed_all(seed: int) -> None:
    """Restart the default generator, which all devices share, at a seed."""
def max_memory_allocated(device: Any = None) -> int:
    """Return the largest number of bytes that were in use on a device."""
def memory_allocated(device: Any = None) -> int:
    """Return the bytes in use on a device."""
def memory_reserved(device: Any = None) -> int:
    """Return the bytes in use on a device."""
def reset_peak_memory_stats(device: Any = None) -> Any: ...
def set_device(device: Any) -> Any: ...
def synchronize(device: Any = None) -> None:
    """Wait for the work of a device."""
def __getattr__(name: str) -> Any: ...
