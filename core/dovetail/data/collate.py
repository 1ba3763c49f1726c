"""Collation: a list of items becomes a batch, by stacking numbers, arrays and tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

import dovetail as dt
from dovetail.extend import arguments

from .datasets import Subset, TensorDataset

__all__ = ["default_collate"]


HOSTS = ("cpu", "reference")

# The classes of each kind of item. The first kind that fits counts: strings are sequences, too.
KINDS: dict[str, tuple[type, ...]] = {
    "tensor": (dt.Tensor,),
    "array": (np.ndarray,),
    "text": (str, bytes),
    "number": (bool, int, float, complex, np.bool_, np.number),
    "mapping": (Mapping,),
    "sequence": (Sequence,),
    "foreign": (),  # any other class with `__dlpack__`
}


class HostArray(NamedTuple):
    """A stacked array on the host that becomes a tensor of dtype `dtype`."""

    array: np.ndarray
    dtype: dt.DType


def default_collate(batch: Sequence[Any]) -> Any:
    """Stack tensors, arrays and numbers of items into a batch, without gradients.

    - `batch`: at least one item.

    The new axis is the first. Items may be nested in tuples, lists and mappings; the batch has the
    same structure, with lists for tuples. Tensors of PyTorch and JAX become dovetail's. Strings and
    bytes are collected in a list. As in PyTorch, Python floats become float64 and ints int64.
    Tensors of several dtypes become one of the promoted dtype. Those that NumPy can read go to the
    default device.
    Raises: ArgumentTypeError for other types and for items of different kinds, ArgumentError for
    different keys, ShapeError for different shapes or lengths.

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
    first, kind = batch[0], _common_kind(batch)
    if kind == "tensor":
        if not all(map(_is_on_host, batch)):
            return dt.stack([x.detach() for x in batch])
        dtype = dt.result_type(*{x.dtype for x in batch})
        return _stack([x.detach().numpy() for x in batch], dtype)
    if kind == "foreign":
        return collate_on_host([_share(x) for x in batch])
    if kind == "array":
        return _stack(batch, None)
    if kind == "number":
        array = np.asarray(batch)
        if array.dtype.kind == "O":
            raise dt.ValueOverflowError(
                "data.default_collate: an int must fit int64, got a larger one"
            )
        return HostArray(array, _tensor_dtype(array))
    if kind == "text":
        return [*batch]
    if kind == "mapping":
        _require_equal_keys(batch)
        columns = {key: collate_on_host([x[key] for x in batch]) for key in first}
        return _mapping_like(first, columns)
    _require_equal_fields(batch)
    fields = [collate_on_host(field) for field in zip(*batch, strict=True)]
    return type(first)(*fields) if hasattr(first, "_fields") else fields


def _common_kind(batch: Sequence[Any]) -> str:
    """Return the kind of all items. Raises: ArgumentTypeError for different or other kinds."""
    kinds = {cls: _kind(cls) for cls in map(type, batch)}
    for cls, kind in kinds.items():
        if kind is None:
            raise dt.ArgumentTypeError(
                "data.default_collate: expected tensors, arrays, numbers, strings, or containers "
                f"of them, got {cls.__name__}; pass collate_fn= for other types"
            )
    first = kinds[type(batch[0])]
    for cls, kind in kinds.items():
        if kind != first:
            raise _structure_error("items of one kind", type(batch[0]).__name__, cls.__name__)
    assert first is not None
    return first


def _kind(cls: type) -> str | None:
    """Return the kind of items of a class, a key of `KINDS`; None if they cannot be collated."""
    if issubclass(cls, np.timedelta64):  # a subclass of np.signedinteger
        return None
    kind = next((kind for kind, classes in KINDS.items() if issubclass(cls, classes)), None)
    return "foreign" if kind is None and hasattr(cls, "__dlpack__") else kind


def _share(x: Any) -> dt.Tensor:
    """Return a tensor over the host memory of another library's tensor, or over a copy of it."""
    return dt.from_dlpack(x.detach() if hasattr(x, "detach") else x, device="reference")


def _require_equal_keys(batch: Sequence[Mapping[Any, Any]]) -> None:
    """Raise ArgumentError unless all mappings have the same keys."""
    first = set(batch[0])
    for i, x in enumerate(batch):
        keys = set(x)
        if keys == first:
            continue
        key = next(key for key in (*batch[0], *x) if key not in first & keys)
        has, lacks = (0, i) if key in first else (i, 0)
        raise dt.ArgumentError(
            "data.default_collate: items of a batch must have the same keys, got "
            f"{arguments.shown(key)} in item {has}, but not in item {lacks}; pass collate_fn= for "
            "other batches"
        )


def _require_equal_fields(batch: Sequence[Sequence[Any]]) -> None:
    """Raise unless all sequences have the same length, and named tuples the same fields.

    Raises: ArgumentTypeError for other fields, ShapeError for other lengths.
    """
    classes = dict.fromkeys(map(type, batch))
    first, *others = [(cls.__name__, getattr(cls, "_fields", None)) for cls in classes]
    for name, fields in others:
        if fields != first[1]:
            raise _structure_error(
                "named tuples with the same fields", _signature(*first), _signature(name, fields)
            )
    lengths = sorted({len(x) for x in batch})
    if len(lengths) > 1:
        raise dt.ShapeError(
            "data.default_collate: items of a batch must have the same length, got lengths "
            f"{lengths}; pad them, or pass collate_fn="
        )


def _signature(name: str, fields: Sequence[str] | None) -> str:
    """Return the name of a class with its fields, if it has any: "Pair(x, y)"."""
    return name if fields is None else f"{name}({', '.join(fields)})"


def _structure_error(expected: str, first: str, other: str) -> dt.ArgumentTypeError:
    """Return the error for two items of different structure; the caller raises it."""
    return dt.ArgumentTypeError(
        f"data.default_collate: a batch must hold {expected}, got {first} and {other}; pass "
        "collate_fn= for other batches"
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
    for x in arrays:
        _require_numbers(x)
    shapes = {x.shape for x in arrays}
    if len(shapes) > 1:
        raise dt.ShapeError(
            "data.default_collate: items of a batch must have the same shape, got "
            f"{', '.join(map(str, sorted(shapes)))}; pad or crop them, or pass collate_fn="
        )
    array = np.stack(arrays)
    return HostArray(array, _tensor_dtype(array) if dtype is None else dtype)


def _require_numbers(array: np.ndarray) -> None:
    """Raise DTypeError unless an array holds bools or numbers."""
    if array.dtype.kind not in "biufc":
        raise dt.DTypeError(
            f"data.default_collate: arrays must hold bools or numbers, got {array.dtype}"
        )


def _tensor_dtype(array: np.ndarray) -> dt.DType:
    """Return the dtype of a tensor made of `array`."""
    return dt.asarray(np.zeros(0, array.dtype), device="reference").dtype


def to_device(
    batch: Any, device: Any, transform: Callable[[dt.Tensor], dt.Tensor] | None = None
) -> Any:
    """Return a batch with tensors moved to `device`, HostArrays converted, and each transformed.

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
    """Gather rows of a (Subset of a) TensorDataset: a Tensor or HostArray each; else return None.

    Each tensor is indexed once, detached: the list has an item for each. `on_host`: return a
    `HostArray` for tensors that NumPy can read.
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
    """Return True if NumPy can read `x` without a copy: on a host, strided, not bfloat16."""
    return x.device.type in HOSTS and x.dtype is not dt.bfloat16 and x.layout is dt.strided
