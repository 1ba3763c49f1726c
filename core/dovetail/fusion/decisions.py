"""The one value that planning passes on: a graph, and what has been decided of it so far.

Nodes are named by their position in the graph, memory by its slot: leaves have the first slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..dtypes import DType
from ..errors import InternalError
from ..graph.expr import Expr
from ..layout import Shape, StridedView
from .domain import Domain, Path, ordered
from .groups import Group, Kernel, OwnKernels, SplitRows
from .plan import Call, Step, Target
from .reasons import Reason


def has_own_kernels(e: Expr) -> bool:
    """Whether a node's op has kernels of its own, which share nothing with others."""
    return e.op is not None and e.op.kind == "kernel"


def operands(e: Expr) -> Iterator[Expr]:
    """The nodes that a node is computed from; for a leaf, the node that its storage waits for."""
    for a in e.args if e.op is not None else (e.storage.pending,):
        if type(a) is Expr:
            yield a


class Graph:
    """What is to be planned.

    `nodes`, arguments first; `leaf_slot`: position -> slot, for leaves with memory; the roots, and
    the pending nodes that somebody else holds; and for what device. The first root is written where
    `target` is, if one is given.
    """

    def __init__(
        self,
        nodes: Sequence[Expr],
        index: dict[Expr, int],
        leaf_slot: dict[int, int],
        roots: Sequence[int],
        held: Sequence[int],
        concurrency: int,
        library_calls: frozenset[tuple[str, DType]],
        target: Target | None = None,
        near: int = 0,
        max_buffers: int = 0,
    ) -> None:
        self.near, self.max_buffers = near, max_buffers  # see `Capabilities`
        self.nodes, self.index, self.leaf_slot = nodes, index, leaf_slot
        self.roots, self.held, self.target = roots, held, target
        self.concurrency, self.library_calls = concurrency, library_calls
        self.kept = frozenset((*held, *roots))  # what stays when the plan has run
        self.uses = [0] * len(nodes)  # how often each node is read
        self.scalar_at: list[int] = []  # how many Python numbers come before each node's own
        self._casts: dict[int, tuple[DType, ...]] = {}
        self.rows: dict[int, Domain] = {}  # what each reduction reduces
        self.reductions: list[int | None] = []  # see `_first_reduction`
        count = 0
        for i, e in enumerate(nodes):
            for a in operands(e):
                self.uses[index[a]] += 1
            self.scalar_at.append(count)
            count += sum(type(a) is not Expr for a in e.args)
            if e.op is not None and e.op.kind == "reduce":
                self.rows[i] = Domain(e.args[0].spec.shape, e.attrs[0])
            self.reductions.append(self._first_reduction(i, e))

    def _first_reduction(self, i: int, e: Expr) -> int | None:
        """A reduction that a node needs, looking through what can be computed on the fly."""
        if e.op is not None and e.op.kind not in ("map", "view"):
            return i if e.op.kind == "reduce" else None
        known = (self.reductions[self.index[a]] for a in operands(e))
        return next((r for r in known if r is not None), None)

    def casts_of(self, i: int) -> tuple[DType, ...]:
        """The dtypes that a node's operands are cast to."""
        found = self._casts.get(i)
        if found is None:
            e = self.nodes[i]
            assert e.op is not None
            kinds = [a.spec.dtype if type(a) is Expr else type(a) for a in e.args]
            found = self._casts[i] = e.op.dtypes(e.op.name, kinds, e.attrs)[0]
        return found

    def view_of(self, i: int) -> tuple[int, Path] | None:
        """What a node is a view of, and how it is seen; None where it is none."""
        e = self.nodes[i]
        if e.op is None:
            if e.storage.pending is None:
                return None
            source = self.index[e.storage.pending]
            return source, tuple((m, source) for m in e.moves)
        if e.op.kind != "view":
            return None
        source = self.index[e.args[0]]
        return source, ((e.attrs, source),)

    def is_target(self, i: int) -> bool:
        """Whether a node is written into memory that is there already."""
        return self.target is not None and i == self.roots[0]


class Decisions:
    """What passes decide, one after the other. `str` of it is what a trace shows."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.materialised: dict[int, Reason] = {}
        # Materialised nodes whose memory is not row-major: their axes, outermost first.
        self.order: dict[int, Shape] = {}
        self.slot_of: dict[int, int] = {}
        self.slots = len(graph.leaf_slot) + (graph.target is not None)
        self.takes_over: dict[int, int] = {}  # update -> the node in whose memory it goes on
        self.split: set[Domain] = set()  # whose rows are cut into chunks
        self.kernels: list[Kernel] = []  # in order
        self.home: dict[int, int] = {}  # materialised node -> index of its kernel
        self.inlined: dict[int, list[Group]] = {}  # node -> the kernels that compute it on the fly
        self.costs: dict[int, int] = {}  # see `cost.on_the_fly` ...
        self.weighed = -1  # ... the last node that has one
        self.overlaps = False  # whether the target would be written before it has been read
        self.steps: list[Step | Call] = []

    def materialise(self, i: int, reason: Reason, order: Shape = ()) -> None:
        """Decides that a node is written to memory.

        Its axes have this order there, row-major if none is given.
        """
        if i in self.materialised:
            raise InternalError(f"fusion asks twice to materialise node {i}", str(reason))
        self.materialised[i] = reason
        for k in range(i, self.weighed + 1):  # what is computed from it costs less now
            self.costs.pop(k, None)
        self.weighed = min(self.weighed, i - 1)
        if order:
            self.order[i] = order
        source = self._updated(i)
        if self.graph.target is not None and self.graph.is_target(i):
            self.slot_of[i] = self.graph.target.slot
        elif source is not None:
            self.takes_over[i], self.slot_of[i] = source, self.slot_of[source]
        else:
            self.slot_of[i] = self.new_slot()

    def _updated(self, i: int) -> int | None:
        """The operand that an op updates in its memory: pending, contiguous, and nobody else's."""
        e = self.graph.nodes[i]
        if e.op is None or not e.op.updates:
            return None
        if any(name == e.op.name for name, _ in self.graph.library_calls):
            return None
        source = e.args[0]
        if source.op is None or source.op.kind == "view":
            return None
        j = self.graph.index[source]
        shared = self.graph.uses[j] > 1 or j in self.graph.kept
        return None if shared or j in self.order or j not in self.slot_of else j

    def new_slot(self) -> int:
        """Memory that nothing else has."""
        self.slots += 1
        return self.slots - 1

    def base(self, i: int) -> StridedView:
        """How a materialised node lies in its memory."""
        e, target = self.graph.nodes[i], self.graph.target
        if target is not None and self.graph.is_target(i):
            return StridedView(e.spec.shape, target.strides, 0)
        return ordered(e.spec.shape, self.order.get(i, ()))

    def fresh(self, i: int) -> tuple[tuple[int, int], ...]:
        """The memory that a node needs, (slot, bytes): none where it goes into what is there."""
        if i in self.takes_over or self.graph.is_target(i):
            return ()
        s = self.graph.nodes[i].spec
        return ((self.slot_of[i], s.size * s.dtype.itemsize),)

    def named(self, i: int) -> str:
        """A node, for people: its position, its op and what it is."""
        e = self.graph.nodes[i]
        return f"{i} {'leaf' if e.op is None else e.op.name} {e.spec}"

    def __str__(self) -> str:
        lines = []
        for i in sorted(self.materialised):
            axes = f" with axes {self.order[i]}" if i in self.order else ""
            memory = f"slot {self.slot_of[i]}{axes}"
            lines.append(f"materialised {self.named(i)}, {memory}: {self.materialised[i]}")
        lines += [f"rows cut into chunks: {rows.row} of {rows.full}" for rows in self.split]
        for number, kernel in enumerate(self.kernels):
            lines.append(f"kernel {number}: {self._described(kernel)}")
        for step in self.steps:
            if isinstance(step, Call):
                name = f"{step.op.name}, a library call"
            else:
                name = f"{step.kernel.name}, grid {step.grid}"
            drops = f", then drops slots {sorted(step.drops)}" if step.drops else ""
            lines.append(f"launch {name}{drops}")
        return "\n".join(lines)

    def _described(self, kernel: Kernel) -> str:
        """What a kernel writes, and what it computes on the fly."""
        if isinstance(kernel, OwnKernels):
            return f"writes {self.named(kernel.node)} by kernels of its own"
        chunks = isinstance(kernel, SplitRows)
        group = kernel.group if isinstance(kernel, SplitRows) else kernel
        outputs = [kernel.output] if isinstance(kernel, SplitRows) else kernel.outputs
        nodes = {out.node for out in outputs}
        used = {i for i, _ in group.memo} - nodes
        reads, inlined = sorted(used & {*self.materialised}), sorted(used - {*self.materialised})
        writes = ", ".join(self.named(i) for i in sorted(nodes))
        rows = f" with rows of {group.domain.row}" if group.domain.axes else ""
        return (
            f"writes {writes}; over {group.domain.outer}{rows}{' in chunks' * chunks}; "
            f"reads {reads}, computes {inlined} on the fly"
        )
