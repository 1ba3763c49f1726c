"""Batches made of items: numbers, arrays and tensors are stacked, whatever they lie in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt

from .datasets import Subset, TensorDataset

__all__ = ["default_collate"]


HOSTS = ("cpu", "reference")


class Stacked(NamedTuple):
    """A batch on the host, that is to be a tensor; `dtype`: the tensor's."""

    array: np.ndarray
    dtype: dt.DType


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of items: tensors, arrays and numbers stacked along a new first axis.

    Items may be tuples, lists and mappings of them, which stay what they are (tuples become lists);
    texts and bytes are kept in a list. Python's floats become float64, ints int64, as PyTorch's.
    `batch`: the items, one at least.
    Raises: ArgumentTypeError for other kinds, ShapeError for items of other shapes or lengths.

    >>> import dovetail as dt
    >>> found = dt.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}])
    >>> found["x"].tolist(), found["name"]
    ([1.0, 2.0], ['a', 'b'])
    """
    return on_device(collated(batch), None)


def collated(batch: Sequence[Any]) -> Any:
    """The same on the host: `Stacked` where tensors are to be."""
    if not len(batch):
        raise dt.ArgumentError("data.default_collate: batch must have at least one item, got none")
    first = batch[0]
    if isinstance(first, dt.Tensor):
        if not _is_on_host(first):
            return dt.stack([x.detach() for x in batch])
        return _stacked([x.detach().numpy() for x in batch], first.dtype)
    if isinstance(first, np.ndarray):
        return _stacked(batch, None)
    if isinstance(first, (bool, int, float, complex, np.generic)):
        for x in batch:
            if not isinstance(x, (bool, int, float, complex, np.generic)):
                raise _unknown(x)
        made = np.asarray(batch)
        if made.dtype.kind == "O":
            raise dt.ValueOverflow("data.default_collate: an int must fit int64")
        if made.dtype.kind not in "biufc":
            raise _unknown(first)
        return Stacked(made, _dtype(made))
    if isinstance(first, (str, bytes)):
        return [*batch]
    if isinstance(first, Mapping):
        return _mapped(first, {key: collated([x[key] for x in batch]) for key in first})
    if isinstance(first, Sequence):
        if any(len(x) != len(first) for x in batch):
            raise dt.ShapeError(
                f"data.default_collate: items of lengths {sorted({len(x) for x in batch})}; items "
                "of a batch have the same parts: pad them, or give collate_fn="
            )
        parts = [collated(part) for part in zip(*batch, strict=True)]
        return type(first)(*parts) if hasattr(first, "_fields") else parts
    raise _unknown(first)


def _unknown(item: object) -> dt.ArgumentTypeError:
    return dt.ArgumentTypeError(
        f"data.default_collate: an item has a {type(item).__name__}; it stacks tensors, arrays, "
        "numbers, and containers of them: give collate_fn= for others"
    )


def _mapped(first: Mapping[Any, Any], found: dict[Any, Any]) -> Any:
    """A mapping of the kind of the first, where that can be made of a dict."""
    try:
        return type(first)(found)  # type: ignore[call-arg]  # what cannot be is a dict
    except TypeError:
        return found


def _stacked(arrays: Sequence[np.ndarray], dtype: dt.DType | None) -> Stacked:
    shapes = {x.shape for x in arrays}
    if len(shapes) > 1:
        raise dt.ShapeError(
            f"data.default_collate: items of shapes {', '.join(map(str, sorted(shapes)))}; items "
            "of a batch have one shape: pad or crop them, or give collate_fn="
        )
    made = np.stack(arrays)
    return Stacked(made, _dtype(made) if dtype is None else dtype)


def _dtype(array: np.ndarray) -> dt.DType:
    if array.dtype.kind not in "biufc":
        raise dt.DTypeError(f"data.default_collate: an array of {array.dtype} is no tensor")
    return dt.asarray(np.zeros(0, array.dtype), device="reference").dtype


def on_device(batch: Any, device: Any, made: Callable[[dt.Tensor], dt.Tensor] | None = None) -> Any:
    """A batch whose tensors are on a device (None: where they are), each passed through `made`."""
    if isinstance(batch, Stacked):
        array = (
            batch.array if batch.array.flags.writeable else batch.array.copy()
        )  # of shared memory
        found = dt.asarray(array, device=device)
        found = found if found.dtype is batch.dtype else found.astype(batch.dtype)
        return found if made is None else made(found)
    if isinstance(batch, dt.Tensor):
        found = batch if device is None else batch.to(device)
        return found if made is None else made(found)
    if isinstance(batch, (str, bytes)) or not isinstance(batch, (Mapping, Sequence)):
        return batch
    if isinstance(batch, Mapping):
        return _mapped(batch, {k: on_device(x, device, made) for k, x in batch.items()})
    parts = [on_device(x, device, made) for x in batch]
    if isinstance(batch, tuple):
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return parts


def rows(dataset: Any, indices: list[int], on_host: bool) -> list[Any] | None:
    """The batch of a data set of tensors, taken at once; None of others."""
    while type(dataset) is Subset:
        indices, dataset = [dataset.indices[i] for i in indices], dataset.dataset
    if type(dataset) is not TensorDataset:
        return None
    found: list[Any] = []
    for x in dataset.tensors:
        if on_host and _is_on_host(x):
            found.append(Stacked(x.detach().numpy()[indices], x.dtype))
        else:
            at = dt.asarray(indices, dtype=dt.int64, device=x.device)
            found.append(dt.take(x.detach(), at, axis=0))
    return found


def _is_on_host(x: dt.Tensor) -> bool:
    """Whether NumPy sees its elements where they are."""
    return x.device.type in HOSTS and x.dtype is not dt.bfloat16 and x.layout is dt.strided
