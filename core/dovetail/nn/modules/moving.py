"""Moving modules to another device or dtype, while their tensors stay the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import dovetail as dt

from .contents import ModuleRegistry

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor


class Movable(ModuleRegistry):
    """Methods that change the device or dtype of all tensors of a module.

    Each tensor stays the same object over other memory (`x.set_(y)`), so optimisers and other
    holders of a parameter see the change. Gradients are converted with their parameters.
    """

    def _replace_tensors(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Compute `change(x)` for all tensors, then replace the memory of each by its result."""
        own = {id(x): x for x in [*self.parameters(), *self.buffers()]}
        with dt.no_grad():
            changes = [(x, change(x.detach()), _gradient(x, change)) for x in own.values()]
            dt.evaluate(*[y for _, y, _ in changes])
            for x, y, g in changes:
                if y.dtype is not x.dtype or y.device != x.device:
                    x.set_(y)
                    if g is not None:
                        x.grad = g
        return self

    def to(self, *args: Any, **named: Any) -> Self:
        """Move tensors to a device, and cast floats to a dtype: `to(device)`, `to(dtype)`, both.

        Arguments are those of `x.to`: a device, a dtype, or a tensor that has both;
        `non_blocking` has no effect. Integers keep their dtype. Returns the module.
        Raises: DTypeError for a dtype of integers or bools, DeviceError.
        """
        device, dtype = _target(args, named)
        if dtype is not None and dtype.kind not in "fc":
            raise dt.DTypeError(
                f"{type(self).__name__}.to: dtype must be a float or complex dtype, got "
                f"{dtype.name}"
            )
        return self._replace_tensors(lambda x: _convert(x, device, dtype))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Give all tensors new uninitialised memory on a device, without copying.

        Use it before weights are loaded or drawn. Gradients are dropped. `recurse`: include the
        modules within this one.
        Returns the module.
        Raises: DeviceError, MemoryError; then nothing has changed.
        """
        own = {id(x): x for x in [*self.parameters(recurse), *self.buffers(recurse)]}
        with dt.no_grad():
            replacements = [(x, dt.empty_like(x.detach(), device=device)) for x in own.values()]
            for x, y in replacements:
                x.set_(y)
        return self

    def type(self, dst_type: DTypeLike) -> Self:
        """Cast all tensors, including integers, to a dtype.

        Returns the module.
        """
        return self._replace_tensors(lambda x: x.astype(dst_type))

    def float(self) -> Self:
        """Cast floats to float32.

        Returns the module.
        """
        return self.to(dt.float32)

    def double(self) -> Self:
        """Cast floats to float64.

        Returns the module.
        """
        return self.to(dt.float64)

    def half(self) -> Self:
        """Cast floats to float16.

        Returns the module.
        """
        return self.to(dt.float16)

    def bfloat16(self) -> Self:
        """Cast floats to bfloat16.

        Returns the module.
        """
        return self.to(dt.bfloat16)

    def cpu(self) -> Self:
        """Move the module to the device "cpu".

        Returns the module.
        """
        return self.to("cpu")

    def cuda(self, device: int | DeviceLike = None) -> Self:
        """Move the module to "cuda", or to the CUDA device with a number.

        Returns the module.
        """
        if device is None or isinstance(device, int):
            device = "cuda" if device is None else f"cuda:{device}"
        return self.to(device)


def _gradient(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor | None:
    return None if x.grad is None else change(x.grad)


def _convert(x: Tensor, device: dt.Device | None, dtype: dt.DType | None) -> Tensor:
    if device is not None and x.device != device:
        x = x.to(device)
    if dtype is not None and x.dtype.kind in "fc" and x.dtype is not dtype:
        x = x.astype(dtype)
    return x


def _target(
    args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dt.Device | None, dt.DType | None]:
    """Return the device and the dtype that the arguments of `to` request."""
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
