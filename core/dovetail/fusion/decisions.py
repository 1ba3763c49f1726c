"""The decisions about a graph, the one value that planning passes from pass to pass.

Nodes are named by their position in the graph, memory by its slot: leaves have the first slots.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from ..dtypes import DType
from ..errors import InternalError
from ..graph.expr import Expr
from ..layout import Shape, StridedView
from ..ops.table import ASTYPE, MULTIPLY, Op
from .domain import Domain, Path, dense_layout
from .groups import FusionGroup, OwnKernels, PlannedKernel, SplitRows
from .kernel_templates import KernelTemplate
from .plan import PlannedCall, PlannedLaunch, WriteTarget
from .reasons import Reason


def has_own_kernels(expr: Expr) -> bool:
    """Return True if a node's op has kernels of its own, which share nothing with others."""
    return expr.op is not None and expr.op.kind == "kernel"


def operands(expr: Expr) -> Iterator[Expr]:
    """Yield the nodes that a node is computed from; for a leaf, the node that fills its storage."""
    for a in expr.args if expr.op is not None else (expr.storage.pending,):
        if type(a) is Expr:
            yield a


class Producers(NamedTuple):
    """Nodes that a routine computes itself while it reads an operand.

    sources: a node -> the node that it casts. scales: a node -> the node by which it multiplies.
    """

    sources: dict[int, int]
    scales: dict[int, int]


class PlanGraph:
    """The graph to plan.

    `nodes`, arguments first. `leaf_slot`: position -> slot, for leaves with memory. `roots`, and
    `externally_referenced`: the pending nodes to which the user still has references. The first
    root is written to `target`, if one is given. The other fields describe the device.
    """

    def __init__(
        self,
        nodes: Sequence[Expr],
        index: dict[Expr, int],
        leaf_slot: dict[int, int],
        roots: Sequence[int],
        externally_referenced: Sequence[int],
        concurrency: int,
        library_calls: frozenset[tuple[str, DType]],
        target: WriteTarget | None = None,
        near: int = 0,
        max_buffers: int = 0,
        max_buffer: int = 0,
        ordered_calls: Mapping[tuple[str, DType], Collection[DType]] = MappingProxyType({}),
        scaling_calls: Collection[tuple[str, DType]] = (),
    ) -> None:
        # fields of `Capabilities`
        self.near, self.max_buffers, self.max_buffer = near, max_buffers, max_buffer
        self.nodes, self.index, self.leaf_slot = nodes, index, leaf_slot
        self.roots, self.externally_referenced, self.target = roots, externally_referenced, target
        self.concurrency, self.library_calls = concurrency, library_calls
        # routines by `interface.mark_ordered` -> the dtypes of operands that they take
        self.ordered_calls = ordered_calls
        self.scaling_calls = scaling_calls  # those of them that multiply operands by scales
        self.output_nodes = frozenset(
            (*externally_referenced, *roots)
        )  # nodes that stay after the plan has run
        self.use_counts = [0] * len(nodes)  # how often each node is read
        self.first_scalar: list[int] = []  # position of each node's first Python number among all
        self._casts: dict[int, tuple[DType, ...]] = {}
        self.rows: dict[int, Domain] = {}  # reduction -> the rows that it reduces
        self.reductions: list[int | None] = []  # by node, the result of `_find_first_reduction`
        count = 0
        for i, expr in enumerate(nodes):
            for a in operands(expr):
                self.use_counts[index[a]] += 1
            self.first_scalar.append(count)
            count += sum(type(a) is not Expr for a in expr.args)
            if expr.op is not None and expr.op.kind == "reduce":
                self.rows[i] = Domain(expr.args[0].spec.shape, expr.attrs[0])
            self.reductions.append(self._find_first_reduction(i, expr))

    def _find_first_reduction(self, i: int, expr: Expr) -> int | None:
        """Return a reduction that a node needs, through nodes computed on the fly, or None."""
        if expr.op is not None and expr.op.kind not in ("map", "view"):
            return i if expr.op.kind == "reduce" else None
        operand_reductions = (self.reductions[self.index[a]] for a in operands(expr))
        return next((r for r in operand_reductions if r is not None), None)

    def casts_of(self, i: int) -> tuple[DType, ...]:
        """Return the dtypes, cached, that the operands of an op's node are cast to."""
        casts = self._casts.get(i)
        if casts is None:
            expr = self.nodes[i]
            assert expr.op is not None
            kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in expr.args]
            casts = self._casts[i] = expr.op.dtypes(expr.op.name, kinds, expr.attrs)[0]
        return casts

    def view_of(self, i: int) -> tuple[int, Path] | None:
        """Return the node that a node is a view of, and the path of the view, or None."""
        expr = self.nodes[i]
        if expr.op is None:
            if expr.storage.pending is None:
                return None
            source = self.index[expr.storage.pending]
            return source, tuple((m, source) for m in expr.moves)
        if expr.op.kind != "view":
            return None
        source = self.index[expr.args[0]]
        return source, ((expr.attrs, source),)

    def find_producers(self, i: int, in_memory: Collection[int]) -> Producers:
        """Return the casts, and products of casts and scales, that the routine of `i` does itself.

        They are operands, or what these view, that are not `in_memory` for another reason. There
        are none unless the routine then takes all operands.
        """
        expr = self.nodes[i]
        assert expr.op is not None
        dtype = self.casts_of(i)[0]
        call = expr.op.name, dtype
        accepted = self.ordered_calls.get(call, ())
        producers = Producers({}, {})
        for a in operands(expr):
            j = self.follow_views(self.index[a], in_memory)
            factors = self._pending_args(j, MULTIPLY, in_memory)
            is_scaled = call in self.scaling_calls and len(a.spec.shape) == 2 and factors
            for cast, scale in (factors, factors[::-1]) if is_scaled else ((j, None),):
                read = self._pending_args(cast, ASTYPE, in_memory)
                if read and self.nodes[read[0]].spec.dtype in accepted:
                    if scale is None:
                        producers.sources[j] = j = read[0]
                    elif self._may_scale(j, cast, scale, dtype):
                        producers.scales[j] = scale
                        producers.sources[j] = j = read[0]
                        break
            if self.nodes[j].spec.dtype not in accepted:
                return Producers({}, {})
        return producers

    def _pending_args(self, i: int, op: Op, in_memory: Collection[int]) -> tuple[int, ...]:
        """Return the operands of a node that is an `op` and in no memory; else none."""
        expr = self.nodes[i]
        if expr.op is not op or i in in_memory or not all(type(a) is Expr for a in expr.args):
            return ()
        return tuple([self.index[a] for a in expr.args])

    def _may_scale(self, product: int, cast: int, scale: int, dtype: DType) -> bool:
        """Return True if a node's scale has a dtype and fewer elements, and the cast its shape."""
        whole, factors = self.nodes[product].spec, self.nodes[scale].spec
        has_shape = self.nodes[cast].spec.shape == whole.shape
        return has_shape and factors.dtype is dtype and factors.size < whole.size

    def follow_views(self, i: int, in_memory: Collection[int]) -> int:
        """Return the node that a node views, through views that are not `in_memory`."""
        while i not in in_memory and i not in self.leaf_slot:
            view = self.view_of(i)
            if view is None:
                break
            i = view[0]
        return i

    def is_target(self, i: int) -> bool:
        """Return True if a node is written into the target, memory that exists already."""
        return self.target is not None and i == self.roots[0]


class Decisions:
    """The decisions of the passes, one after the other. `str` of it is what a trace shows."""

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph
        self.materialised: dict[int, Reason] = {}
        # Materialised nodes whose memory is not row-major: their axes, outermost first.
        self.axis_orders: dict[int, Shape] = {}
        self.slot_of: dict[int, int] = {}
        self.slot_count = len(graph.leaf_slot) + (graph.target is not None)
        self.updated_operand: dict[int, int] = {}  # update -> the node whose memory it reuses
        self.split_domains: set[Domain] = set()  # domains whose rows are cut into chunks
        self.kernels: list[PlannedKernel] = []  # in order
        self.kernel_of: dict[int, int] = {}  # materialised node -> index of its kernel
        self.inlined: dict[
            int, list[FusionGroup]
        ] = {}  # node -> the kernels that compute it on the fly
        self.costs: dict[int, int] = {}  # cache of `cost.recompute_cost`
        self.last_costed = -1  # the last node in `costs`
        self.target_overlaps = False  # True if the target would be written before it has been read
        self.kernel_templates: dict[tuple[Hashable, ...], KernelTemplate] = {}
        self.steps: list[PlannedLaunch | PlannedCall] = []

    def materialise(self, i: int, reason: Reason, order: Shape = ()) -> None:
        """Decide that a node is written to memory: assign a slot, drop cached costs of users.

        Its axes have the given order there, or are row-major. It may get the slot of the target or
        of an operand that it updates. Raises: InternalError, if it is decided already.
        """
        if i in self.materialised:
            raise InternalError(f"fusion asks twice to materialise node {i}", str(reason))
        self.materialised[i] = reason
        for k in range(i, self.last_costed + 1):  # nodes that are computed from it cost less now
            self.costs.pop(k, None)
        self.last_costed = min(self.last_costed, i - 1)
        if order:
            self.axis_orders[i] = order
        source = self._operand_to_update(i)
        if self.graph.target is not None and self.graph.is_target(i):
            self.slot_of[i] = self.graph.target.slot
        elif source is not None:
            self.updated_operand[i], self.slot_of[i] = source, self.slot_of[source]
        else:
            self.slot_of[i] = self.new_slot()

    def _operand_to_update(self, i: int) -> int | None:
        """Return the operand whose memory an op may update in place, or None.

        It is pending, contiguous, and used by no other node.
        """
        expr = self.graph.nodes[i]
        if expr.op is None or not expr.op.updates:
            return None
        if any(name == expr.op.name for name, _ in self.graph.library_calls):
            return None
        source = expr.args[0]
        if source.op is None or source.op.kind == "view":
            return None
        j = self.graph.index[source]
        shared = self.graph.use_counts[j] > 1 or j in self.graph.output_nodes
        return None if shared or j in self.axis_orders or j not in self.slot_of else j

    def new_slot(self) -> int:
        """Reserve and return a slot of memory that nothing else uses."""
        self.slot_count += 1
        return self.slot_count - 1

    def memory_layout(self, i: int) -> StridedView:
        """Return the layout of a materialised node in its memory."""
        expr, target = self.graph.nodes[i], self.graph.target
        if target is not None and self.graph.is_target(i):
            return StridedView(expr.spec.shape, target.strides, 0)
        return dense_layout(expr.spec.shape, self.axis_orders.get(i, ()))

    def allocations_of(self, i: int) -> tuple[tuple[int, int], ...]:
        """Return the memory to allocate for a node, as (slot, bytes); empty if it exists."""
        if i in self.updated_operand or self.graph.is_target(i):
            return ()
        s = self.graph.nodes[i].spec
        return ((self.slot_of[i], s.size * s.dtype.itemsize),)

    def describe_node(self, i: int) -> str:
        """Return a node's position, op and spec as text."""
        expr = self.graph.nodes[i]
        return f"{i} {'leaf' if expr.op is None else expr.op.name} {expr.spec}"

    def __str__(self) -> str:
        lines = []
        for i in sorted(self.materialised):
            axes = f" with axes {self.axis_orders[i]}" if i in self.axis_orders else ""
            memory = f"slot {self.slot_of[i]}{axes}"
            lines.append(f"materialised {self.describe_node(i)}, {memory}: {self.materialised[i]}")
        lines += [f"rows cut into chunks: {rows.row} of {rows.full}" for rows in self.split_domains]
        for number, kernel in enumerate(self.kernels):
            lines.append(f"kernel {number}: {self._describe_kernel(kernel)}")
        for step in self.steps:
            if isinstance(step, PlannedCall):
                name = f"{step.op.name}, a library call"
            else:
                name = f"{step.kernel.name}, grid {step.grid}"
            drops = (
                f", then drops slots {sorted(step.released_slots)}" if step.released_slots else ""
            )
            lines.append(f"launch {name}{drops}")
        return "\n".join(lines)

    def _describe_kernel(self, kernel: PlannedKernel) -> str:
        """Return text about the nodes that a kernel writes, reads and computes on the fly."""
        if isinstance(kernel, OwnKernels):
            return f"writes {self.describe_node(kernel.node)} by kernels of its own"
        chunks = isinstance(kernel, SplitRows)
        group = kernel.group if isinstance(kernel, SplitRows) else kernel
        outputs = [kernel.output] if isinstance(kernel, SplitRows) else kernel.outputs
        nodes = {out.node for out in outputs}
        used = {i for i, _ in group.terms} - nodes
        reads, inlined = sorted(used & {*self.materialised}), sorted(used - {*self.materialised})
        writes = ", ".join(self.describe_node(i) for i in sorted(nodes))
        rows = f" with rows of {group.domain.row}" if group.domain.axes else ""
        return (
            f"writes {writes}; over {group.domain.outer}{rows}{' in chunks' * chunks}; "
            f"reads {reads}, computes {inlined} on the fly"
        )
