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
    """Return the declared gaps, for the layout kit: functions along the sharded axis."""
    return {
        "apply.broadcast.*-((4, 7), (1, 7))": "broadcast along the sharded axis",
        "apply.broadcast.*-((1, 6), (6, 1))": "broadcast along the sharded axis",
        "apply.broadcast.*-((4, 7), (7,))": "operands along axes 0 and 1 of the result",
        "apply.broadcast.*-((3, 4, 5), (4, 1))": "operands along axes 0 and 1 of the result",
        "moves.views.flip-*": "reversed along the sharded axis",
        "moves.views.expand an axis-*": "broadcast along the sharded axis",
        "moves.views.roll-*": "joined along the sharded axis",
        "moves.concat.*-0": "joined along the sharded axis",
        "moves.concat.*--1": "joined along the sharded axis",
        "gradients.gradients.concat-*": "joined along the sharded axis",
        "gradients.gradients.product of both-*": "rows by columns: one is gathered first",
        "moves.sort.*": "sorted along the sharded axis",
        "reduce.matmul.[!v]*-layout and layout-*": "rows by contraction: one is resharded first",
        "reduce.softmax.0-*": "along the sharded axis",
    }
