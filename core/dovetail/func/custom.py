"""`vmap` of user-defined ops (`dt.autograd.Function`): one `backward` for all examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any
from weakref import ref

from ..autograd.function import Context, FunctionNode, Output, output
from ..autograd.tape import Kept, Node, Sent, edge_to
from ..engine import tracer_api
from ..functions.reductions.statistics import sum as sum_
from ..graph.expr import Expr, spec
from ..tensor.tensor import Tensor, make
from .batch_tracer import Examples
from .batching import EXAMPLE, Lifting


class _Many(FunctionNode):
    """The tape node of a Function call on all examples."""

    __slots__ = ("known", "of_one", "resumed", "size", "tapes")

    known: dict[Expr, Expr]  # saved values of one example -> those of all examples
    of_one: FunctionNode
    resumed: list[int]
    size: int
    tapes: set[Any]  # the same set as `Lifting.tapes`

    def resume(self, sent: dict[Node, Sent]) -> list[int]:
        """Return the edges whose parts continue sums.

        An operand that all examples share is left out: `parts` gives a sum over the examples for
        it.
        """
        pairs = zip(self.edges, self.of_one.edges, strict=True)
        differs = [
            a is not None and b is not None and a.node.spec is not b.node.spec for a, b in pairs
        ]
        self.resumed = [k for k in super().resume(sent) if differs[k]]
        return self.resumed

    def parts(self, arriving: Sequence[Tensor | None]) -> tuple[Any, ...]:
        examples = Examples("vmap", self.size)
        examples.lifting.known.update(self.known)
        examples.lifting.tapes |= self.tapes
        examples.lifting.functions[self.of_one] = self
        of_one = tracer_api.run_traced(examples, self._parts_of_one, examples, arriving)
        return tuple(
            None if part is None or edge is None else self._fit(examples, part, edge.node)
            for part, edge in zip(of_one, self.edges, strict=True)
        )

    def _parts_of_one(
        self, examples: Examples, arriving: Sequence[Tensor | None]
    ) -> tuple[Any, ...]:
        context, sent = self.context, self.context._sent
        context._sent = {k: examples.example(g) for k, g in sent.items() if k in self.resumed}
        return super().parts([None if g is None else examples.example(g) for g in arriving])

    def _fit(self, examples: Examples, part: Any, to: Node) -> Any:
        """Return a part with the axis of examples, or summed over it for a shared operand."""
        if not isinstance(part, Tensor):
            return part
        if part.shape == to.spec.shape:  # the operand is the same for each example
            return sum_(examples.all(part), axis=0)
        return examples.all(part)

    def join(self, a: dict[int, Tensor], b: dict[int, Tensor]) -> dict[int, Tensor]:
        both = {i: a[i] + b[i] for i in a.keys() & b.keys()}  # a result may be there twice
        return {**a, **b, **both}

    def release(self) -> Callable[[], None]:
        values, self.known, self.released = self.known, {}, True

        def restore() -> None:
            self.known, self.released = values, False

        return restore


def output_of_all(to: Lifting, tape: Output, lifted: Expr | None) -> Expr | None:
    """Return a Function's result for all examples, on the tape node of all examples."""
    one = tape.edges[0].node  # type: ignore[union-attr]  # a result has one edge
    assert isinstance(one, FunctionNode)
    if not one.given:
        return None
    if one not in to.functions:
        to.functions[one] = _many(to, one)
        if to.functions[one] is not None:
            _keep(to, to.functions[one], one)
    node = to.functions[one]
    if node is None or tape.value is None:
        return None
    whole = to.lift(tape.value) if lifted is None else lifted
    return output(make(whole), node, tape.number)._expr


def _many(to: Lifting, one: FunctionNode) -> _Many | None:
    """Return the tape node of all examples for that of one, or None if no gradient flows."""
    lifted = [None if a is None else to.lift(a) for a in one.given]
    edges = tuple(
        [None if b is None else edge_to(g) for b, g in zip(one.edges, lifted, strict=True)]
    )
    if all(e is None for e in edges):
        return None
    whole = [spec((to.size, *s.shape), s.dtype, s.device) for s in one.results]
    node = _Many(one.name, whole[0], edges)
    node.function, node.results, node.given, node.size = one.function, whole, (), to.size
    node.of_one, node.tapes = one, to.tapes
    return node


def _keep(to: Lifting, node: _Many, one: FunctionNode) -> None:
    """Store in the node the saved values of one example, and its sources, for all examples."""
    node.context, saved = _context(one.context, node)
    node.known = {e: to.lift(e) for e in [*saved, *_sources(to, saved)]}


def _sources(to: Lifting, values: Sequence[Expr]) -> set[Expr]:
    """Return the example placeholders that values depend on; they may be recomputed from them."""
    sources: set[Expr] = set()
    visited: set[Expr] = set()
    stack = [*values]
    while stack:
        e = stack.pop()
        if e in visited:
            continue
        visited.add(e)
        if e.op is EXAMPLE:
            sources.add(e)
        elif e.op is not None:
            stack += [a for a in e.args if type(a) is Expr]
        elif (source := to.source_of(e)) is not None:
            stack.append(source)
    return sources


def _context(context: Context, node: Node) -> tuple[Context, list[Expr]]:
    """Return the context as it was after `forward`, and the nodes that it saved."""
    again = copy(context)
    again._kept = [*context._first_kept]
    again._node = ref(node)
    nodes = [k.value for k in again._kept if isinstance(k, Kept)]
    return again, [e for e in nodes if type(e) is Expr]
