"""Copies and sums of tensors between the devices of one process, as in `torch.cuda.comm`.

The functions are compositions of `x.to(device)`, `dt.split`, `dt.concat` and additions in the order
of the list, so gradients flow, and results have the same bits on any devices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt
from dovetail.extend import arguments, publish_all
from dovetail.extend import axis as find_axis

__all__ = ["broadcast", "gather", "reduce_add", "scatter"]

DeviceName: TypeAlias = dt.Device | str


def __dir__() -> list[str]:
    return __all__


def broadcast(tensor: dt.Tensor, devices: Sequence[DeviceName]) -> tuple[dt.Tensor, ...]:
    """Return copies of a tensor, one on each device; on its own device it is the tensor itself.

    - `tensor`: the tensor.
    - `devices`: the devices, in the order of the results.

    Shapes: any; the results have that of `tensor`.
    Dtypes: all.
    Raises: ArgumentError without devices, DeviceError for an unknown one, ArgumentTypeError.
    See also: `reduce_add`, which is its gradient.

    >>> import dovetail as dt
    >>> [x.tolist() for x in dt.comm.broadcast(dt.arange(2), ["reference", "reference"])]
    [[0, 1], [0, 1]]
    """
    x = arguments.instance("broadcast", tensor, "tensor", dt.Tensor)
    return tuple([x.to(device) for device in _devices("broadcast", devices)])


def scatter(
    tensor: dt.Tensor,
    devices: Sequence[DeviceName],
    chunk_sizes: Sequence[int] | None = None,
    dim: int = 0,
) -> tuple[dt.Tensor, ...]:
    """Return the parts of a tensor along an axis, one on each device.

    - `tensor`: the tensor.
    - `devices`: the devices, in the order of the parts.
    - `chunk_sizes`: the size of each part along the axis; they add up to its size. None: equal
      sizes, where the first ones have one more if the size is no multiple.
    - `dim`: the axis.

    Shapes: of at least 1 dimension; the parts have the sizes of `chunk_sizes` along the axis.
    Dtypes: all.
    Raises: ArgumentError for another number or sum of sizes, AxisError, DeviceError,
    ArgumentTypeError.
    See also: `gather`, which is its inverse and its gradient.

    >>> import dovetail as dt
    >>> [x.tolist() for x in dt.comm.scatter(dt.arange(5), ["reference", "reference"])]
    [[0, 1, 2], [3, 4]]
    """
    x = arguments.instance("scatter", tensor, "tensor", dt.Tensor)
    targets = _devices("scatter", devices)
    axis = find_axis("scatter", dim, x.ndim)
    if chunk_sizes is None:
        least, more = divmod(x.shape[axis], len(targets))
        sizes = [least + (k < more) for k in range(len(targets))]
    else:
        sizes = list(arguments.integers("scatter", chunk_sizes, "chunk_sizes"))
        if len(sizes) != len(targets) or min(sizes) < 0 or sum(sizes) != x.shape[axis]:
            raise dt.ArgumentError(
                f"scatter: chunk_sizes must be {len(targets)} natural numbers, one for each "
                f"device, that add up to {x.shape[axis]}, got {sizes}"
            )
    chunks = dt.split(x, sizes, axis=axis)
    return tuple([chunk.to(device) for chunk, device in zip(chunks, targets, strict=True)])


def gather(
    tensors: Sequence[dt.Tensor], dim: int = 0, destination: DeviceName | None = None
) -> dt.Tensor:
    """Return tensors of several devices, joined along an axis, on one device.

    - `tensors`: the tensors; their shapes differ along the axis only.
    - `dim`: the axis.
    - `destination`: the device of the result; None is that of the first tensor.

    Shapes: of at least 1 dimension.
    Dtypes: all, promoted.
    Raises: ArgumentError without tensors, ShapeError, AxisError, DeviceError, ArgumentTypeError.
    See also: `scatter`.

    >>> import dovetail as dt
    >>> dt.comm.gather([dt.ones(2), dt.zeros(1)], destination="reference").tolist()
    [1.0, 1.0, 0.0]
    """
    return dt.concat(_move_all("gather", tensors, destination), axis=dim)


def reduce_add(inputs: Sequence[dt.Tensor], destination: DeviceName | None = None) -> dt.Tensor:
    """Return the sum of tensors of several devices, on one device.

    They are added in the order of the list, so the bits depend on no device.

    - `inputs`: tensors of one shape and dtype.
    - `destination`: the device of the result; None is that of the first tensor.

    Shapes: any; the result has that of each tensor.
    Dtypes: all; the sum of bools is their "or".
    Raises: ArgumentError without tensors or for another shape or dtype, DeviceError,
    ArgumentTypeError.
    See also: `broadcast`.

    >>> import dovetail as dt
    >>> dt.comm.reduce_add([dt.ones(2), dt.ones(2, device="reference")]).tolist()
    [2.0, 2.0]
    """
    first, *others = _move_all("reduce_add", inputs, destination)
    for x in others:
        if x.shape != first.shape or x.dtype is not first.dtype:
            raise dt.ArgumentError(
                f"reduce_add: inputs must have one shape and dtype, got {first.dtype}{first.shape} "
                f"and {x.dtype}{x.shape}"
            )
    total = first
    for x in others:
        total = total + x
    return total


def _devices(op: str, devices: Sequence[DeviceName]) -> list[dt.Device]:
    """Return devices. Raises: ArgumentError without any, ArgumentTypeError, DeviceError."""
    if isinstance(devices, str | dt.Device):
        raise arguments.refused(op, "devices", 'a list such as ["cpu", "opencl"]', devices)
    targets = [dt.device(spec) for spec in devices]
    if not targets:
        raise dt.ArgumentError(f"{op}: devices must name a device, got none")
    return targets


def _move_all(
    op: str, tensors: Sequence[dt.Tensor], destination: DeviceName | None
) -> list[dt.Tensor]:
    """Return tensors on one device, by default that of the first.

    Raises: ArgumentError without any, ArgumentTypeError, DeviceError.
    """
    if isinstance(tensors, dt.Tensor):
        raise arguments.refused(op, "tensors", "a list of tensors", tensors)
    sources = [arguments.instance(op, x, "tensors", dt.Tensor) for x in tensors]
    if not sources:
        raise dt.ArgumentError(f"{op}: tensors must have a tensor, got none")
    device = sources[0].device if destination is None else dt.device(destination)
    return [x.to(device) for x in sources]


publish_all(globals())
