"""Strides, positions in memory, and properties of tensors, as functions."""

from __future__ import annotations

from collections.abc import Sequence

from ...argument_checks import choice, integer, integers
from ...declarations import public
from ...errors import ShapeError
from ...layout import Shape
from ...tensor.tensor import Tensor, required, strided
from ..creation.constructors import extents

__all__ = [
    "contiguous_strides",
    "element_size",
    "is_complex",
    "is_contiguous",
    "is_floating_point",
    "numel",
    "storage_index",
]


@public(widen=False)
def storage_index(index: int | Sequence[int], strides: int | Sequence[int], offset: int = 0) -> int:
    """Return the position in a storage of an element: offset + sum of index * stride.

    - `index`: one index per axis, from 0.
    - `strides`: one per axis.
    - `offset`: the position of the first element.

    Units: elements, not bytes.
    Raises: ShapeError for different numbers of indices and strides; ArgumentTypeError.

    >>> import dovetail as dt
    >>> x = dt.arange(6).reshape(2, 3).T
    >>> at = dt.storage_index((2, 1), x.stride(), x.storage_offset())
    >>> at, x.storage()[at], x[2, 1].item()
    (5, 5, 5)
    """
    indices = integers("storage_index", index, "index")
    steps = integers("storage_index", strides, "strides")
    if len(indices) != len(steps):
        raise ShapeError(
            f"storage_index: expected a stride for each of {len(indices)} indices, "
            f"got {len(steps)}; "
            "x.stride() has one for each axis of x"
        )
    start = integer("storage_index", offset, "offset")
    return start + sum(i * s for i, s in zip(indices, steps, strict=True))


@public(widen=False)
def contiguous_strides(shape: int | Sequence[int], order: str = "C") -> Shape:
    """Return the strides of a dense tensor of this shape, as a tuple.

    - `order`: "C" is row-major: the last axis has stride 1; "F" is column-major: the first axis
      has.

    Units: elements, not bytes.
    Raises: ShapeError, ArgumentError.

    >>> import dovetail as dt
    >>> dt.contiguous_strides((2, 3, 4)), dt.contiguous_strides((2, 3, 4), order="F")
    ((12, 4, 1), (1, 2, 6))
    """
    sizes = extents("contiguous_strides", shape)
    kind = choice("contiguous_strides", order, "order", ("C", "F"))
    products = [1]
    for n in sizes if kind == "F" else reversed(sizes):
        products.append(products[-1] * max(n, 1))
    steps = products[: len(sizes)]
    return tuple(steps if kind == "F" else reversed(steps))


@public(widen=False)
def is_contiguous(x: Tensor, /, memory_format: None = None) -> bool:
    """Return True if the elements are dense in row-major order: `x.is_contiguous()`.

    - `memory_format`: only None; strides are always row-major.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor, LayoutError for one that is not strided,
    ArgumentTypeError for another `memory_format` than None.

    >>> import dovetail as dt
    >>> x = dt.zeros((2, 3))
    >>> dt.is_contiguous(x), dt.is_contiguous(x.T)
    (True, False)
    """
    return strided("is_contiguous", x).is_contiguous(memory_format)


@public(method=True, widen=False)
def is_floating_point(x: Tensor, /) -> bool:
    """Return True if the elements are real floats: `x.dtype.is_float`.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.zeros(2).is_floating_point()
    True
    """
    return required("is_floating_point", x).dtype.is_float


@public(method=True, widen=False)
def is_complex(x: Tensor, /) -> bool:
    """Return True if the elements are complex: `x.dtype.kind == "c"`.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.zeros(2, dtype=dt.complex64).is_complex()
    True
    """
    return required("is_complex", x).dtype.kind == "c"


@public(method=True, widen=False)
def element_size(x: Tensor, /) -> int:
    """Return the bytes of one element: `x.itemsize`.

    Units: bytes.
    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.zeros(2, dtype=dt.float64).element_size()
    8
    """
    return required("element_size", x).itemsize


@public(widen=False)
def numel(x: Tensor, /) -> int:
    """Return the number of elements: `x.size`.

    Shapes: any.
    Dtypes: all.
    Raises: DTypeError unless it is a tensor.

    >>> import dovetail as dt
    >>> dt.numel(dt.zeros((2, 3)))
    6
    """
    return required("numel", x).size
