"""Plugin of the layout `sharded`."""

from __future__ import annotations

from collections.abc import Mapping

import dovetail as dt
from dovetail.extend import LayoutInfo, hookimpl

from .sharded_tensor import shard, sharded

KEEPS = frozenset(("apply", "concat", "to_device"))  # a view of one position is strided


def from_dense(x: dt.Tensor) -> dt.Tensor:
    """Return a tensor cut along its first axis. Raises: LayoutError if it has none."""
    if not x.ndim:
        raise dt.LayoutError("from_dense: a sharded tensor has at least 1 axis, got shape ()")
    return shard(x)


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe the layout: the method `x.to_sharded(axis)`."""
    return LayoutInfo(sharded, methods={"to_sharded": shard}, from_dense=from_dense, keeps=KEEPS)


@hookimpl
def dovetail_conformance() -> Mapping[str, str]:
    """Return the declared gaps, for the layout kit."""
    return {"construction.copies.pickle": "another process is in another group"}
