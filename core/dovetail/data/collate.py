"""Collation: a list of items becomes a batch, by stacking numbers, arrays and tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt

from .datasets import Subset, TensorDataset

__all__ = ["default_collate"]


HOSTS = ("cpu", "reference")


class HostArray(NamedTuple):
    """A stacked array on the host that becomes a tensor of dtype `dtype`."""

    array: np.ndarray
    dtype: dt.DType


def default_collate(batch: Sequence[Any]) -> Any:
    """Collate items into a batch without gradients: stack tensors, arrays and numbers.

    The new axis is the first. Items may be nested in tuples, lists and mappings; the batch has the
    same structure, with lists for tuples. Strings and bytes are collected in a list. As in PyTorch,
    Python floats become float64 and ints int64. Tensors of several dtypes become one of the
    promoted dtype. Those that NumPy can read go to the default device. `batch`: at least one item.
    Raises: ArgumentTypeError for other types, ShapeError for items of different shapes or lengths.

    >>> import dovetail as dt
    >>> batch = dt.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    >>> batch["x"].tolist(), batch["name"]
    ([1.0, 2.0], ['a', 'b'])
    """
    return to_device(collate_on_host(batch), None)


def collate_on_host(batch: Sequence[Any]) -> Any:
    """Collate as `default_collate`, but give a `HostArray` for each tensor that NumPy can read.

    Other tensors are stacked on their device.
    """
    if not len(batch):
        raise dt.ArgumentError("data.default_collate: batch must have at least one item, got none")
    first = batch[0]
    if isinstance(first, dt.Tensor):
        for x in batch:
            if not isinstance(x, dt.Tensor):
                raise _type_error(x)
        if not all(map(_is_on_host, batch)):
            return dt.stack([x.detach() for x in batch])
        dtype = dt.result_type(*{x.dtype for x in batch})
        return _stack([x.detach().numpy() for x in batch], dtype)
    if isinstance(first, np.ndarray):
        return _stack(batch, None)
    if isinstance(first, (bool, int, float, complex, np.generic)):
        for x in batch:
            if not isinstance(x, (bool, int, float, complex, np.generic)):
                raise _type_error(x)
        array = np.asarray(batch)
        if array.dtype.kind == "O":
            raise dt.ValueOverflow("data.default_collate: an int must fit int64, got a larger one")
        if array.dtype.kind not in "biufc":
            raise _type_error(first)
        return HostArray(array, _tensor_dtype(array))
    if isinstance(first, (str, bytes)):
        return [*batch]
    if isinstance(first, Mapping):
        columns = {key: collate_on_host([x[key] for x in batch]) for key in first}
        return _mapping_like(first, columns)
    if isinstance(first, Sequence):
        if any(len(x) != len(first) for x in batch):
            raise dt.ShapeError(
                "data.default_collate: items of a batch must have the same length, got lengths "
                f"{sorted({len(x) for x in batch})}; pad them, or pass collate_fn="
            )
        fields = [collate_on_host(field) for field in zip(*batch, strict=True)]
        return type(first)(*fields) if hasattr(first, "_fields") else fields
    raise _type_error(first)


def _type_error(item: object) -> dt.ArgumentTypeError:
    """Return the error for an item that cannot be collated; the caller raises it."""
    return dt.ArgumentTypeError(
        "data.default_collate: expected tensors, arrays, numbers, or containers of them, got "
        f"{type(item).__name__}; pass collate_fn= for other types"
    )


def _mapping_like(mapping: Mapping[Any, Any], content: dict[Any, Any]) -> Any:
    """Return `content` as the type of `mapping`, or as a dict if that type refuses a dict."""
    try:
        return type(mapping)(content)  # type: ignore[call-arg]  # TypeError is handled
    except TypeError:
        return content


def _stack(arrays: Sequence[np.ndarray], dtype: dt.DType | None) -> HostArray:
    """Stack arrays of one shape; unequal dtypes promote. Raises: ShapeError if shapes differ.

    `dtype`: the tensor's dtype, or None for the equivalent of the array's; then DTypeError is
    raised for arrays of other values than bools and numbers.
    """
    shapes = {x.shape for x in arrays}
    if len(shapes) > 1:
        raise dt.ShapeError(
            "data.default_collate: items of a batch must have the same shape, got "
            f"{', '.join(map(str, sorted(shapes)))}; pad or crop them, or pass collate_fn="
        )
    array = np.stack(arrays)
    return HostArray(array, _tensor_dtype(array) if dtype is None else dtype)


def _tensor_dtype(array: np.ndarray) -> dt.DType:
    """Return the dtype of a tensor made of `array`. Raises: DTypeError unless bools or numbers."""
    if array.dtype.kind not in "biufc":
        raise dt.DTypeError(
            f"data.default_collate: arrays must hold bools or numbers, got {array.dtype}"
        )
    return dt.asarray(np.zeros(0, array.dtype), device="reference").dtype


def to_device(
    batch: Any, device: Any, transform: Callable[[dt.Tensor], dt.Tensor] | None = None
) -> Any:
    """Return a batch with its tensors and HostArrays as tensors on `device`, each transformed.

    `device`: None leaves tensors where they are, and puts arrays on the default device.
    `transform`: a function that each tensor passes through, or None.
    """
    if isinstance(batch, HostArray):
        # read-only arrays are views of shared memory that the worker overwrites later
        array = batch.array if batch.array.flags.writeable else batch.array.copy()
        tensor = dt.asarray(array, device=device)
        tensor = tensor if tensor.dtype is batch.dtype else tensor.astype(batch.dtype)
        return tensor if transform is None else transform(tensor)
    if isinstance(batch, dt.Tensor):
        tensor = batch if device is None else batch.to(device)
        return tensor if transform is None else transform(tensor)
    if isinstance(batch, (str, bytes)) or not isinstance(batch, (Mapping, Sequence)):
        return batch
    if isinstance(batch, Mapping):
        return _mapping_like(batch, {k: to_device(x, device, transform) for k, x in batch.items()})
    items = [to_device(x, device, transform) for x in batch]
    if isinstance(batch, tuple):
        return type(batch)(*items) if hasattr(batch, "_fields") else tuple(items)
    return items


def gather_rows(dataset: Any, indices: list[int], on_host: bool) -> list[Any] | None:
    """Gather rows of a `TensorDataset`, or a Subset of one, detached; None for other data sets.

    Each tensor is indexed once: the list has an item for each. `on_host`: return a `HostArray` for
    tensors that NumPy can read.
    """
    while type(dataset) is Subset:
        indices, dataset = [dataset.indices[i] for i in indices], dataset.dataset
    if type(dataset) is not TensorDataset:
        return None
    columns: list[Any] = []
    for x in dataset.tensors:
        if on_host and _is_on_host(x):
            columns.append(HostArray(x.detach().numpy()[indices], x.dtype))
        else:
            index = dt.asarray(indices, dtype=dt.int64, device=x.device)
            columns.append(dt.take(x.detach(), index, axis=0))
    return columns


def _is_on_host(x: dt.Tensor) -> bool:
    """Return True if NumPy can read the elements of `x` without a copy."""
    return x.device.type in HOSTS and x.dtype is not dt.bfloat16 and x.layout is dt.strided
