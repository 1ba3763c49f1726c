"""`x.resize_(shape)`: another shape over the same storage, which grows if it is too small."""

from __future__ import annotations

from collections.abc import Sequence

from ...declarations import public
from ...engine import tracer_api
from ...errors import GradientError, SharingError
from ...graph.expr import Expr, leaf, spec, storage_of
from ...memory.blocks import MemoryBlock
from ...memory.storage import Storage
from ...tensor.c_fields import aliases_of, become
from ...tensor.host import evaluate_leaf
from ...tensor.tensor import Tensor, create_tensor, strided
from ..creation.constructors import empty, extents


@public(method=True, widen=False)
def resize_(x: Tensor, /, *shape: int | Sequence[int]) -> Tensor:
    """Give this tensor another shape over its own memory, in row-major order, and return it.

    Memory that is too small is replaced: the elements keep their order, and new ones have arbitrary
    values. This is refused if the memory is shared with views or with objects other than tensors,
    which would not see the new memory, or if the device does not own it.

    - `shape`: the sizes, one by one or as a tuple.

    Shapes: any.
    Dtypes: all.
    Raises: SharingError, ShapeError; GradientError for a tensor that requires a gradient;
    LayoutError; OutOfMemoryError.

    >>> import dovetail as dt
    >>> x = dt.arange(6, device="reference")
    >>> x.resize_(2, 2).tolist(), x.storage()
    ([[0, 1], [2, 3]], <Storage of 6 int64, 48 bytes, on reference>)
    >>> x.resize_(8).shape, x[:6].tolist()
    ((8,), [0, 1, 2, 3, 4, 5])
    """
    requested = shape[0] if len(shape) == 1 else shape
    sizes = extents("resize_", requested)
    tracer_api.refuse_read("resize_() changes the memory of a tensor")
    if strided("resize_", x)._expr.tape is not None:
        raise GradientError(
            "resize_: cannot resize a tensor that requires a gradient; use x.detach() or x.reshape"
        )
    e = evaluate_leaf(x)
    storage, s = storage_of(e), spec(sizes, x.dtype, x.device, "resize_")
    if (e.offset + s.size) * x.itemsize <= storage.nbytes:
        become(x, leaf(storage, s, s.strides, e.offset))
        return x
    _require_unshared(x, e, storage)
    kept_size = storage.nbytes // x.itemsize - e.offset
    old_elements = create_tensor(
        leaf(storage, spec((kept_size,), x.dtype, x.device, "resize_"), (1,), e.offset)
    )
    grown = empty((s.size,), dtype=x.dtype, device=x.device)
    grown[:kept_size] = old_elements
    after = evaluate_leaf(grown)
    become(x, leaf(storage_of(after), s, s.strides, after.offset))
    return x


def _require_unshared(x: Tensor, e: Expr, storage: Storage) -> None:
    """Raise SharingError if other objects alias the memory, which would be replaced."""
    group = aliases_of(x)
    views = 0
    for y in () if group is None else group.live_tensors():
        f = y._expr
        views += y is not x and f.op is None and storage_of(f) is storage
    who = "shared with a NumPy array or another library" if storage.is_exported() else ""
    who = f"shared with {views} other tensors" if views else who
    if not who and not isinstance(storage.ptr.context, MemoryBlock):
        who = "owned by another library or a file (from_blob, asarray, load)"
    if who:
        raise SharingError(
            f"resize_: the memory of this {e.spec!r} is too small, and {who}; use dt.resize, which "
            "makes a new tensor"
        )
