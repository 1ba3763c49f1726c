"""Tensors packed as one vector for each dtype, so that few messages carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Vectors: TypeAlias = list[dt.Tensor]


def pack(leaves: Sequence[dt.Tensor]) -> Vectors:
    """Concatenate the elements of all tensors of a dtype to one vector, dtypes by appearance."""
    by_dtype: dict[dt.DType, Vectors] = {}
    for x in leaves:
        by_dtype.setdefault(x.dtype, []).append(x.reshape(-1))
    return [dt.concat(parts) for parts in by_dtype.values()]


def empty_vectors(likes: Sequence[dt.Tensor]) -> Vectors:
    """Return uninitialised vectors of the sizes and dtypes of `pack(likes)`."""
    sizes: dict[dt.DType, int] = {}
    for x in likes:
        sizes[x.dtype] = sizes.get(x.dtype, 0) + x.size
    return [dt.empty(n, dtype=dtype, device=likes[0].device) for dtype, n in sizes.items()]


def unpack(vectors: Vectors, likes: Sequence[dt.Tensor]) -> Vectors:
    """Return the tensors that `pack` concatenated; `likes` have their shapes and dtypes."""
    by_dtype = dict(zip(dict.fromkeys(x.dtype for x in likes), vectors, strict=True))
    starts = dict.fromkeys(by_dtype, 0)
    leaves = []
    for x in likes:
        start = starts[x.dtype]
        starts[x.dtype] += x.size
        leaves.append(by_dtype[x.dtype][start : start + x.size].reshape(x.shape))
    return leaves
