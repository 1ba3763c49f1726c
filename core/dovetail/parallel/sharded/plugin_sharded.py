"""Plugin of the layout `sharded`."""

from __future__ import annotations

from dovetail.extend import LayoutInfo, hookimpl

from .sharded_tensor import shard, sharded

KEEPS = frozenset(("apply", "view", "concat", "to_device"))


@hookimpl
def dovetail_layout_info() -> LayoutInfo:
    """Describe the layout: the method `x.to_sharded(axis)`."""
    return LayoutInfo(sharded, methods={"to_sharded": shard}, from_dense=shard, keeps=KEEPS)
