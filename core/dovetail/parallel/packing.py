"""Tensors packed as few vectors, the buckets, so that few messages carry them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import dovetail as dt

__all__: list[str] = []

Vectors: TypeAlias = list[dt.Tensor]

BUCKET_BYTES = 4 << 20  # the first buckets are sent while later ones are computed


def assign_buckets(leaves: Sequence[dt.Tensor]) -> list[list[int]]:
    """Return the numbers of the tensors of each bucket: of one dtype, with a limit of bytes.

    A tensor that exceeds the limit has a bucket to itself.
    """
    buckets: list[list[int]] = []
    last: dict[dt.DType, tuple[list[int], int]] = {}
    for i, x in enumerate(leaves):
        nbytes = x.size * x.dtype.itemsize
        bucket, filled = last.get(x.dtype, ([], 0))
        if not bucket or filled + nbytes > BUCKET_BYTES:
            bucket, filled = [], 0
            buckets.append(bucket)
        bucket.append(i)
        last[x.dtype] = bucket, filled + nbytes
    return buckets


def pack(leaves: Sequence[dt.Tensor]) -> Vectors:
    """Return a vector for each bucket, with the elements of its tensors."""
    return [dt.concat([leaves[i].reshape(-1) for i in b]) for b in assign_buckets(leaves)]


def empty_vectors(likes: Sequence[dt.Tensor]) -> Vectors:
    """Return uninitialised vectors of the sizes and dtypes of `pack(likes)`."""
    return [
        dt.empty(sum(likes[i].size for i in b), dtype=likes[b[0]].dtype, device=likes[0].device)
        for b in assign_buckets(likes)
    ]


def unpack(vectors: Vectors, likes: Sequence[dt.Tensor]) -> Vectors:
    """Return the tensors that `pack` concatenated; `likes` have their shapes and dtypes."""
    leaves: dict[int, dt.Tensor] = {}
    for bucket, vector in zip(assign_buckets(likes), vectors, strict=True):
        start = 0
        for i in bucket:
            leaves[i] = vector[start : start + likes[i].size].reshape(likes[i].shape)
            start += likes[i].size
    return [leaves[i] for i in range(len(likes))]
