"""Backward pass: gradients flow along the tape, latest op first, to the nodes that collect them."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush

from ..errors import DeviceError, DovetailError, DTypeError, GradientError, ShapeError
from ..functions.elementwise import op_functions as ew
from ..graph.expr import spec
from ..ops import table as ops
from ..records import DEPTH_LIMIT
from ..settings import NO_AUTOCAST, current, restore, set_autocast, set_recording
from ..tensor.c_fields import is_strided
from ..tensor.host import evaluate
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, strided
from .slice_sums import SliceSum, as_slice_sum
from .tape import Node, OpNode, PropagatedGradient, SavedValue, TapeLeaf, save_value

# When one gradient exceeds this depth, all pending ones are evaluated together. Evaluated alone,
# it would leave the others pending, and they keep their operands in memory. A network of 40 layers
# of 256 needs two thirds of the memory this way.
PENDING_DEPTH_MAX = DEPTH_LIMIT * 3 // 4


def check_gradient(name: str, what: str, node_: Node, g: object) -> Tensor:
    """Return `g`. Raises: DTypeError, ShapeError, DeviceError unless it fits the node's tensor.

    The gradient of a leaf may have another layout: a table that is read by rows can have a gradient
    of those rows only.
    """
    if not isinstance(g, Tensor):
        raise DTypeError(f"{name}: {what} must be a tensor, got {type(g).__name__}")
    own = is_strided(g) or type(node_) is not TapeLeaf
    want, have = (
        node_.spec,
        strided(name, g)._expr.spec if own else spec(g.shape, g.dtype, g.device),
    )
    if have is not want:
        kind: type[DovetailError] = ShapeError if have.shape != want.shape else DTypeError
        kind = kind if have.device is want.device else DeviceError
        raise kind(f"{name}: {what} must be {want!r}, as the tensor is, got {have!r}")
    return g


class GradientCollector:
    """The collector of gradients. `nodes`: the nodes to collect for, or None for all leaves.

    No `grad` changes before all gradients are known, so an error leaves all of them unchanged.
    """

    __slots__ = ("accumulate", "collected", "gradient_ids", "new_gradients", "requested_nodes")

    def __init__(self, nodes: list[Node] | None, accumulate: bool) -> None:
        self.requested_nodes = None if nodes is None else set(nodes)
        self.accumulate = accumulate
        self.collected: dict[Node, Tensor] = {}
        self.new_gradients: dict[Node, Tensor] = {}  # whose `grad` is to change
        self.gradient_ids: set[int] = set()  # ids of nodes that are some gradient already

    def store_gradient(self, n: Node, g: Tensor) -> None:
        """Store the gradient of a requested node or one that retains it; ignore other nodes.

        It takes the place of an earlier one.
        """
        asked = type(n) is TapeLeaf if self.requested_nodes is None else n in self.requested_nodes
        if n.retains_grad or (asked and self.accumulate):
            self.new_gradients[n] = g
        if asked and not self.accumulate:
            self.collected[n] = g

    def _is_shared(self, n: Node, g: Tensor) -> bool:
        """Return True if another tensor may share a gradient's memory."""
        return g._expr.op is None or id(g._expr) in self.gradient_ids or bool(n.hooks)

    def new_grads(self, recorded: bool) -> list[tuple[Node, Tensor]]:
        """Return (node, old `grad` plus the stored gradient) pairs; forget the stored ones.

        No `grad` changes here. No two may share memory, because the user may write to a `grad`.
        """
        grads: list[tuple[Node, Tensor]] = []
        before = current()
        try:
            set_recording(recorded)
            for n, g in self.new_gradients.items():
                if n.grad is not None:
                    g = n.add_gradients(n.grad, g)
                elif is_strided(g) and self._is_shared(n, g):
                    g = apply(ops.COPY, (g,))
                if not is_strided(g):  # a layout that cannot be written to
                    grads.append((n, g))
                    continue
                self.gradient_ids.add(id(g._expr))
                grads.append((n, g))
        finally:
            restore(before)
        self.new_gradients.clear()  # these references would make the evaluator store the gradients
        return grads


class _GradientQueue:
    """The gradients that are on their way. `needed`: nodes that they must pass, or None for all.

    `pending`: the sum of each node's gradients so far, or a `SliceSum`.
    `masks`: masks of the elements that a gradient reaches, where a `where` cuts others off.
    """

    __slots__ = ("collector", "heap", "masks", "needed", "pending", "results", "visited")

    def __init__(self, collector: GradientCollector, needed: set[Node] | None) -> None:
        self.collector, self.needed = collector, needed
        self.pending: dict[Node, PropagatedGradient] = {}
        self.results: dict[Node, SavedValue | None] = {}
        self.masks: dict[Node, Tensor | None] = {}
        self.heap: list[tuple[int, Node]] = []  # the latest first
        self.visited: list[Node] = []

    def send(
        self, n: Node, g: PropagatedGradient, result: SavedValue | None, reach: Tensor | None
    ) -> None:
        """Add a gradient to a node's sum, and `reach` to its mask; queue the node if it is new."""
        if n in self.pending:
            earlier = self.pending[n]
            joined = earlier.merge(g) if type(earlier) is type(g) is SliceSum else None
            self.pending[n] = joined or n.add_gradients(_as_total(earlier), _as_total(g))
            before = self.masks[n]
            both = None if before is None or reach is None else ew.logical_or(before, reach)
            self.masks[n] = both
        else:
            self.pending[n], self.results[n], self.masks[n] = g, result, reach
            heappush(self.heap, (-n.order, n))

    def pending_tensors(self) -> list[Tensor]:
        """Return the strided gradients that are on their way."""
        tensors: list[Tensor] = []
        for g in self.pending.values():
            tensors += [part for _, part, _ in g.slices] if type(g) is SliceSum else [g]
        return [t for t in tensors if is_strided(t)]

    def propagate(
        self, n: Node, g: PropagatedGradient, result: SavedValue | None, reach: Tensor | None
    ) -> bool:
        """Store a node's gradient, and send parts to its operands; return True if one is deep.

        A deep part has a large pending graph, and the caller evaluates. No local here may outlive
        the call with a gradient, or the evaluation that follows would store it.
        Raises: GradientError, if the node was released.
        """
        self.collector.store_gradient(n, g)
        if not n.edges or (self.needed is not None and n not in self.needed):
            return False
        if n.released:
            raise GradientError(
                f"backward: the values that {n.name} saved for its gradient were released by an "
                "earlier backward; pass retain_graph=True to the first backward"
            )
        looker = current().anomaly
        is_op = type(n) is OpNode and is_strided(g)
        inputs = (g, result, reach) if is_op and reach is not None else (g, result)
        resumed: Sequence[int] = ()
        if not is_op:
            for edge in n.edges:
                if edge is not None and type(self.pending.get(edge.node)) is SliceSum:
                    self.pending[edge.node] = self.pending[edge.node].total()
            resumed = n.resume(self.pending)
        if looker is not None:
            gradients = looker.run_backward(n, *inputs)
        elif type(n) is OpNode and is_op and (sliced := as_slice_sum(n, g)) is not None:
            gradients = [sliced]
        else:
            gradients = n.backward(*inputs)
        deep = False
        for i in range(len(gradients)):
            edge, gradient = n.edges[i], gradients[i]
            if edge is not None and i in resumed:
                self.pending[edge.node], self.masks[edge.node] = gradient, None
            elif edge is not None and gradient is not None:
                self.send(
                    edge.node, gradient, edge.result, n.gradient_mask(i, reach) if is_op else None
                )
                deep = deep or (is_strided(gradient) and gradient._expr.depth > PENDING_DEPTH_MAX)
        self.visited.append(n)
        return deep


def _as_total(g: PropagatedGradient) -> PropagatedGradient:
    """Return a gradient as a tensor if it is a sum of slices, else as it is."""
    return g.total() if type(g) is SliceSum else g


def propagate_gradients(
    roots: list[tuple[Tensor, Tensor]], collector: GradientCollector, create_graph: bool
) -> list[Node]:
    """Propagate gradients from (output, gradient) roots to the collector; return nodes passed."""
    queue = _GradientQueue(
        collector,
        None
        if collector.requested_nodes is None
        else _nodes_leading_to(roots, collector.requested_nodes),
    )
    before = current()
    try:
        set_recording(create_graph)
        if before.autocast:
            set_autocast(NO_AUTOCAST)
        for t, g in roots:
            collector.gradient_ids.add(id(g._expr))
            queue.send(
                t._expr.tape, g, save_value(t._expr) if t._expr.tape.needs_result else None, None
            )
        while queue.heap:
            n = heappop(queue.heap)[1]
            reach = None if n.hooks else queue.masks[n]  # a hook may put anything there
            g, result = _run_hooks(n, _as_total(queue.pending.pop(n))), queue.results.pop(n)
            del queue.masks[n]
            if queue.propagate(n, g, result, reach):
                evaluate(*queue.pending_tensors())
    finally:
        restore(before)
    return queue.visited


def _run_hooks(n: Node, g: PropagatedGradient) -> PropagatedGradient:
    """Call a node's hooks in order; return the gradient, replaced by checked results but None."""
    if n.hooks:
        for hook in tuple(n.hooks.values()):
            changed = hook(g)
            if changed is not None:
                g = check_gradient("backward", "the gradient that a hook returned", n, changed)
    return g


def _nodes_leading_to(roots: list[tuple[Tensor, Tensor]], requested_nodes: set[Node]) -> set[Node]:
    """Return the nodes, from the roots on, with a path of 1 or more edges to a requested node."""
    first = min([n.order for n in requested_nodes]) if requested_nodes else 0
    order: list[Node] = []
    visited: set[Node] = set()
    stack: list[Node] = [t._expr.tape for t, _ in roots]
    while stack:
        n = stack.pop()
        if n in visited or n.order < first:
            continue
        visited.add(n)
        order.append(n)
        stack += [e.node for e in n.edges if e is not None]
    leading: set[Node] = set()
    for n in sorted(order, key=lambda n: n.order):
        if any(
            [e is not None and (e.node in requested_nodes or e.node in leading) for e in n.edges]
        ):
            leading.add(n)
    return leading
