"""Costs of recomputing values, and the limits by which planning decides."""

from __future__ import annotations

from ..graph.expr import Expr
from ..ops.table import REPEATED_COST_MAX as REPEATED_COST_MAX
from ..ops.table import Op
from .decisions import Decisions, operands

BROADCAST_REPEATS_MAX = (
    4  # a value that broadcasting repeats so often is materialised, if over REPEATED_COST_MAX
)
KERNEL_VALUES_MAX = 160  # values computed on the fly in one kernel; a larger kernel is split
COST_PER_VALUE = (
    6  # each such cost counts as one more value: compilers take 0.5 s for 20 sines, 4 s for 60
)
COMPLEX_COST_FACTOR = 5  # of an op of complex numbers: exp is an exp, a sin, a cos and more
# So costly a value is materialised if two kernels need it (10 M normals: 70 ms, not 78), or two
# loops of a kernel with all that these compute on the fly for it (`bench/programs/kuramoto.py`).
SHARED_VALUE_COST_MIN = 60
EXPANSION_BYTES_MAX = 1 << 26  # a larger value of small operands is computed twice, not stored
ROWS_PER_UNIT_MIN = (
    4  # rows per unit of the device's concurrency that keep it busy without splitting them
)
COLUMNS_PER_ROW = 16  # so many neighbouring columns are reduced at once, and count as one row
BLOCKS_PER_UNIT = 16  # blocks of rows per unit of concurrency, if rows are cut
SPLIT_ELEMENTS_MIN = 1 << 15  # a reduction of fewer elements is not worth splitting
COST_MAX = 10_000  # higher costs make no difference


def count_values(expr: Expr, op: Op) -> int:
    """Return how many values of KERNEL_VALUES_MAX a node counts as."""
    factor = COMPLEX_COST_FACTOR if expr.spec.dtype.kind == "c" else 1
    return 1 + op.cost * factor // COST_PER_VALUE


def recompute_cost(decisions: Decisions, i: int) -> int:
    """Return the estimated instructions to compute node `i` at a use, 0 if it is loaded; cached."""
    estimate = decisions.costs.get(i)
    if estimate is None:
        estimate = decisions.costs[i] = _sum_costs(decisions, i)
        decisions.last_costed = max(decisions.last_costed, i)
    return estimate


def may_exceed_memory(decisions: Decisions, i: int) -> bool:
    """Return True if a node exceeds the device's largest buffer, or is a large expansion.

    That is a node with over EXPANSION_BYTES_MAX and more elements than all it reads, such as a
    table of the differences of all pairs.
    """
    graph, spec = decisions.graph, decisions.graph.nodes[i].spec
    nbytes = spec.size * spec.dtype.itemsize
    if graph.max_buffer and nbytes > graph.max_buffer:
        return True
    if nbytes <= EXPANSION_BYTES_MAX:
        return False
    visited, pending = {i}, [i]
    while pending:
        for operand in operands(graph.nodes[pending.pop()]):
            k = graph.index[operand]
            if k in visited:
                continue
            visited.add(k)
            if k in decisions.materialised or k in graph.leaf_slot:
                if operand.spec.size >= spec.size:
                    return False
            else:
                pending.append(k)
    return True


def _sum_costs(decisions: Decisions, i: int) -> int:
    """Return the cost of a node's op and of operands that it computes on the fly; 0 in memory."""
    expr, index = decisions.graph.nodes[i], decisions.graph.index
    if expr.op is None:
        pending = expr.storage.pending
        return 0 if pending is None else recompute_cost(decisions, index[pending])
    if i in decisions.materialised or expr.op.kind in ("reduce", "kernel"):
        return 0
    return compute_cost(decisions, i)


def compute_cost(decisions: Decisions, i: int) -> int:
    """Return the estimated instructions of a node's op and of operands that are not in memory."""
    expr, index = decisions.graph.nodes[i], decisions.graph.index
    assert expr.op is not None
    below = sum(recompute_cost(decisions, index[a]) for a in expr.args if type(a) is Expr)
    return min(expr.op.cost + below, COST_MAX)


def keeps_device_idle(count: int, n: int, concurrency: int) -> bool:
    """Return True if `count` sums of `n` terms are worth splitting: they occupy a part of it."""
    return count < concurrency * ROWS_PER_UNIT_MIN and n * count > SPLIT_ELEMENTS_MIN
