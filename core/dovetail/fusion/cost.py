"""What planning weighs: what it costs to compute a value again, and where the limits are."""

from __future__ import annotations

from ..graph.expr import Expr
from .decisions import Decisions

REPEAT_LIMIT = 4  # a value repeated so often by broadcasting is materialised, if over CHEAP
CHEAP = 8
NODE_LIMIT = 160  # values computed on the fly in one kernel; more are cut
COSTLY = 6  # what costs so much counts twice: compilers take 0.5 s for 20 sines, and 4 s for 60
TWICE = 60  # so costly a value that two kernels need is materialised: 10 M normals, 70 ms, not 78
ROWS_BUSY = 4  # rows per unit of the device's concurrency that keep it busy without splitting them
ABREAST = 16  # neighbouring columns that are reduced at once count as one row
BLOCKS_BUSY = 16  # blocks of rows per unit of concurrency, where rows are cut
SMALL_ROWS = 1 << 15  # elements below which a reduction is not worth splitting
MOST = 10_000  # a cost that is as good as any higher one


def on_the_fly(d: Decisions, i: int) -> int:
    """About how many instructions it takes to compute node `i` where it is used."""
    found = d.costs.get(i)
    if found is None:
        found = d.costs[i] = _weighed(d, i)
        d.weighed = max(d.weighed, i)
    return found


def _weighed(d: Decisions, i: int) -> int:
    e, index = d.graph.nodes[i], d.graph.index
    if e.op is None:
        pending = e.storage.pending
        return 0 if pending is None else on_the_fly(d, index[pending])
    if i in d.materialised or e.op.kind in ("reduce", "kernel"):
        return 0
    below = sum(on_the_fly(d, index[a]) for a in e.args if type(a) is Expr)
    return min(e.op.cost + below, MOST)
