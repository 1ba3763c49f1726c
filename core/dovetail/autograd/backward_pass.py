"""Backward pass: gradients flow along the tape, latest op first, to the nodes that collect them."""

from __future__ import annotations

from heapq import heappop, heappush

from ..errors import DeviceError, DovetailError, DTypeError, GradientError, ShapeError
from ..functions.elementwise import op_functions as ew
from ..graph.expr import spec
from ..ops import table as ops
from ..records import DEPTH_LIMIT
from ..settings import current, record, restore
from ..tensor.host import evaluate
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, strided
from .tape import Kept, Leaf, Node, OpNode, Sent, keep

# When one gradient exceeds this depth, all pending ones are evaluated together. Evaluated alone,
# it would leave the others pending, and they keep their operands in memory. A network of 40 layers
# of 256 needs two thirds of the memory this way.
DEEP = DEPTH_LIMIT * 3 // 4


def check_gradient(name: str, what: str, node_: Node, g: object) -> Tensor:
    """Return `g` if it has the spec of the tensor.

    The gradient of a leaf may have another layout: a table that is read by rows can have a gradient
    of those rows only. Raises: DTypeError, ShapeError, DeviceError.
    """
    if not isinstance(g, Tensor):
        raise DTypeError(f"{name}: {what} is a {type(g).__name__}, not a tensor")
    own = type(g) is Tensor or type(node_) is not Leaf
    want, have = (
        node_.spec,
        strided(name, g)._expr.spec if own else spec(g.shape, g.dtype, g.device),
    )
    if have is not want:
        kind: type[DovetailError] = ShapeError if have.shape != want.shape else DTypeError
        kind = kind if have.device is want.device else DeviceError
        raise kind(f"{name}: {what} is {have!r}, but the tensor is {want!r}; they must be the same")
    return g


class GradientCollector:
    """The collector of gradients. `nodes`: the nodes to collect for, or None for all leaves.

    No `grad` changes before all gradients are known, so an error leaves all of them unchanged.
    """

    __slots__ = ("accumulate", "found", "given", "reached", "wanted")

    def __init__(self, nodes: list[Node] | None, accumulate: bool) -> None:
        self.wanted = None if nodes is None else set(nodes)
        self.accumulate = accumulate
        self.found: dict[Node, Tensor] = {}
        self.reached: dict[Node, Tensor] = {}  # whose `grad` is to change
        self.given: set[int] = set()  # ids of nodes that are some gradient already

    def take(self, n: Node, g: Tensor) -> None:
        """Store the gradient of a node if it was asked for."""
        asked = type(n) is Leaf if self.wanted is None else n in self.wanted
        if n.retains or (asked and self.accumulate):
            self.reached[n] = g
        if asked and not self.accumulate:
            self.found[n] = g

    def _is_shared(self, n: Node, g: Tensor) -> bool:
        """Return True if another tensor may share a gradient's memory."""
        return g._expr.op is None or id(g._expr) in self.given or bool(n.hooks)

    def new_grads(self, recorded: bool) -> list[tuple[Node, Tensor]]:
        """Return the new `grad` of every node that has one.

        No two of them may share memory, because the user may write to a `grad`.
        """
        grads: list[tuple[Node, Tensor]] = []
        before = current()
        try:
            record(recorded)
            for n, g in self.reached.items():
                if n.grad is not None:
                    g = n.join(n.grad, g)
                elif type(g) is Tensor and self._is_shared(n, g):
                    g = apply(ops.COPY, (g,))
                if type(g) is not Tensor:  # a layout that cannot be written to
                    grads.append((n, g))
                    continue
                self.given.add(id(g._expr))
                grads.append((n, g))
        finally:
            restore(before)
        self.reached.clear()  # these references would make the evaluator store the gradients
        return grads


class _Flow:
    """The gradients that are on their way. `needed`: nodes that they must pass, or None for all.

    `reached`: masks of the elements that a gradient reaches, where a `where` cuts others off.
    """

    __slots__ = ("heap", "into", "needed", "passed", "reached", "results", "sent")

    def __init__(self, into: GradientCollector, needed: set[Node] | None) -> None:
        self.into, self.needed = into, needed
        self.sent: dict[Node, Sent] = {}
        self.results: dict[Node, Kept | None] = {}
        self.reached: dict[Node, Tensor | None] = {}
        self.heap: list[tuple[int, Node]] = []  # the latest first
        self.passed: list[Node] = []

    def send(self, n: Node, g: Sent, result: Kept | None, reach: Tensor | None) -> None:
        """Add a gradient to those that have arrived at a node."""
        if n in self.sent:
            self.sent[n] = n.join(self.sent[n], g)
            before = self.reached[n]
            both = None if before is None or reach is None else ew.logical_or(before, reach)
            self.reached[n] = both
        else:
            self.sent[n], self.results[n], self.reached[n] = g, result, reach
            heappush(self.heap, (-n.order, n))

    def pass_on(self, n: Node, g: Sent, result: Kept | None, reach: Tensor | None) -> bool:
        """Send the gradient of a node to its operands; return True if one of the parts is deep.

        No local here may outlive the call with a gradient, or the evaluation that follows would
        store it.
        """
        self.into.take(n, g)
        if not n.edges or (self.needed is not None and n not in self.needed):
            return False
        if n.released:
            raise GradientError(
                f"backward: what {n.name} kept for its gradient has been released by an "
                "earlier backward; the first time, give retain_graph=True"
            )
        looker = current().anomaly
        is_op = type(n) is OpNode and type(g) is Tensor
        inputs = (g, result, reach) if is_op and reach is not None else (g, result)
        resumed = () if is_op else n.resume(self.sent)
        gradients = n.backward(*inputs) if looker is None else looker.back(n, *inputs)
        deep = False
        for i in range(len(gradients)):
            edge, gradient = n.edges[i], gradients[i]
            if edge is not None and i in resumed:
                self.sent[edge.node], self.reached[edge.node] = gradient, None
            elif edge is not None and gradient is not None:
                self.send(
                    edge.node, gradient, edge.result, n.gradient_mask(i, reach) if is_op else None
                )
                deep = deep or (type(gradient) is Tensor and gradient._expr.depth > DEEP)
        self.passed.append(n)
        return deep


def run(
    roots: list[tuple[Tensor, Tensor]], into: GradientCollector, create_graph: bool
) -> list[Node]:
    """Propagate gradients from the roots, and return the nodes that they have passed."""
    flow = _Flow(into, None if into.wanted is None else _leading_to(roots, into.wanted))
    before = current()
    try:
        record(create_graph)
        for t, g in roots:
            into.given.add(id(g._expr))
            flow.send(t._expr.tape, g, keep(t._expr) if t._expr.tape.needs_result else None, None)
        while flow.heap:
            n = heappop(flow.heap)[1]
            reach = None if n.hooks else flow.reached[n]  # a hook may put anything there
            g, result = _run_hooks(n, flow.sent.pop(n)), flow.results.pop(n)
            del flow.reached[n]
            if flow.pass_on(n, g, result, reach):
                evaluate(*[t for t in flow.sent.values() if type(t) is Tensor])
    finally:
        restore(before)
    return flow.passed


def _run_hooks(n: Node, g: Sent) -> Sent:
    """Return the gradient after the hooks of a node have seen it."""
    if n.hooks:
        for hook in tuple(n.hooks.values()):
            changed = hook(g)
            if changed is not None:
                g = check_gradient("backward", "what a hook returned", n, changed)
    return g


def _leading_to(roots: list[tuple[Tensor, Tensor]], wanted: set[Node]) -> set[Node]:
    """Return the nodes that gradients must pass to reach the wanted ones."""
    first = min(n.order for n in wanted) if wanted else 0
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
        if any(e is not None and (e.node in wanted or e.node in leading) for e in n.edges):
            leading.add(n)
    return leading
