"""Moving modules to another device or dtype, while their tensors stay the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import dovetail as dt

if TYPE_CHECKING:
    pass

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor


def convert_gradient(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor | None:
    """Return the converted gradient of `x`, or None if it has none."""
    return None if x.grad is None else change(x.grad)


def convert_tensor(x: Tensor, device: dt.Device | None, dtype: dt.DType | None) -> Tensor:
    """Return a tensor on a device and, if it holds floats, in a dtype; None keeps either."""
    if device is not None and x.device != device:
        x = x.to(device)
    if dtype is not None and x.dtype.kind in "fc" and x.dtype is not dtype:
        x = x.astype(dtype)
    return x


def parse_target(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dt.Device | None, dt.DType | None]:
    """Return (device, dtype), None if not requested by the arguments of `to`; open the device.

    Raises: ArgumentTypeError for another argument, DTypeError, DeviceError.
    """
    values = [*args, kwargs.get("other"), kwargs.get("dtype"), kwargs.get("device")]
    unknown = {*kwargs} - {"other", "dtype", "device", "non_blocking", "tensor", "memory_format"}
    if unknown:
        raise dt.ArgumentTypeError(f"Module.to: has no parameter {sorted(unknown)[0]!r}")
    device: dt.Device | None = None
    dtype: dt.DType | None = None
    for x in [*values, kwargs.get("tensor")]:
        if isinstance(x, dt.Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, dt.DType):
            dtype = x
        elif x is not None and not isinstance(x, bool):
            device = dt.empty(0, device=x).device
    return device, dtype
