"""A module on another device, or in another dtype: its tensors stay the same objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, TypeAlias

import dovetail as dt

from .contents import Contents

if TYPE_CHECKING:
    from dovetail.extend import DeviceLike, DTypeLike

__all__: list[str] = []

Tensor: TypeAlias = dt.Tensor


class Movable(Contents):
    """What is done to all tensors of a module.

    Each stays the object that it is, over other memory (`x.set_(y)`): optimisers, and whoever else
    holds a parameter, go on with it. Gradients move along.
    """

    def _changed(self, change: Callable[[Tensor], Tensor]) -> Self:
        """Has each tensor become what `change` makes of it; all are made before the first does."""
        mine = {id(x): x for x in [*self.parameters(), *self.buffers()]}
        with dt.no_grad():
            made = [(x, change(x.detach()), _gradient(x, change)) for x in mine.values()]
            dt.evaluate(*[y for _, y, _ in made])
            for x, y, g in made:
                if y.dtype is not x.dtype or y.device != x.device:
                    x.set_(y)
                    if g is not None:
                        x.grad = g
        return self

    def to(self, *args: Any, **named: Any) -> Self:
        """Moves its tensors to a device, and floats to a dtype: `to(device)`, `to(dtype)`, both.

        Arguments are those of `x.to`: a device, a dtype, or a tensor that has both;
        `non_blocking` changes nothing. Integers keep their dtype. Returns the module.
        Raises: DTypeError for a dtype of integers or bools, DeviceError.
        """
        device, dtype = _target(args, named)
        if dtype is not None and dtype.kind not in "fc":
            raise dt.DTypeError(
                f"{type(self).__name__}.to: the dtype of a module is one of floats or complex "
                f"numbers, not {dtype.name}"
            )
        return self._changed(lambda x: _moved(x, device, dtype))

    def to_empty(self, *, device: DeviceLike, recurse: bool = True) -> Self:
        """Gives its tensors other memory on a device, with nothing in it: nothing is copied.

        For weights that are loaded or drawn next; gradients are let go. `recurse`: whether also
        those of the modules within it.
        Returns the module.
        Raises: DeviceError, MemoryError; then nothing has changed.
        """
        mine = {id(x): x for x in [*self.parameters(recurse), *self.buffers(recurse)]}
        with dt.no_grad():
            made = [(x, dt.empty_like(x.detach(), device=device)) for x in mine.values()]
            for x, y in made:
                x.set_(y)
        return self

    def type(self, dst_type: DTypeLike) -> Self:
        """Casts all of its tensors, integers among them, to a dtype.

        Returns the module.
        """
        return self._changed(lambda x: x.astype(dst_type))

    def float(self) -> Self:
        """Casts its floats to float32.

        Returns the module.
        """
        return self.to(dt.float32)

    def double(self) -> Self:
        """Casts its floats to float64.

        Returns the module.
        """
        return self.to(dt.float64)

    def half(self) -> Self:
        """Casts its floats to float16.

        Returns the module.
        """
        return self.to(dt.float16)

    def bfloat16(self) -> Self:
        """Casts its floats to bfloat16.

        Returns the module.
        """
        return self.to(dt.bfloat16)

    def cpu(self) -> Self:
        """Moves it to the device "cpu".

        Returns the module.
        """
        return self.to("cpu")

    def cuda(self, device: int | DeviceLike = None) -> Self:
        """Moves it to "cuda", or to the one of a number.

        Returns the module.
        """
        if device is None or isinstance(device, int):
            device = "cuda" if device is None else f"cuda:{device}"
        return self.to(device)


def _gradient(x: Tensor, change: Callable[[Tensor], Tensor]) -> Tensor | None:
    return None if x.grad is None else change(x.grad)


def _moved(x: Tensor, device: dt.Device | None, dtype: dt.DType | None) -> Tensor:
    if device is not None and x.device != device:
        x = x.to(device)
    if dtype is not None and x.dtype.kind in "fc" and x.dtype is not dtype:
        x = x.astype(dtype)
    return x


def _target(
    args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[dt.Device | None, dt.DType | None]:
    """The device and the dtype that `to` was asked for."""
    given = [*args, named.get("other"), named.get("dtype"), named.get("device")]
    unknown = {*named} - {"other", "dtype", "device", "non_blocking", "tensor", "memory_format"}
    if unknown:
        raise dt.ArgumentTypeError(f"Module.to: has no parameter {sorted(unknown)[0]!r}")
    device: dt.Device | None = None
    dtype: dt.DType | None = None
    for x in [*given, named.get("tensor")]:
        if isinstance(x, dt.Tensor):
            device, dtype = x.device, x.dtype
        elif isinstance(x, dt.DType):
            dtype = x
        elif x is not None and not isinstance(x, bool):
            device = dt.empty(0, device=x).device
    return device, dtype
