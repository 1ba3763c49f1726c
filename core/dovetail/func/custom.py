"""`vmap` of user-defined ops (`dt.autograd.Function`): one `backward` for all examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Any
from weakref import ref

from ..autograd.function import Context, FunctionNode, FunctionOutput, attach_output
from ..autograd.tape import Node, PropagatedGradient, SavedValue, edge_to
from ..engine import tracer_api
from ..functions.reductions.statistics import sum as sum_
from ..graph.expr import Expr, spec
from ..tensor.tensor import Tensor, create_tensor
from .batch_tracer import VmapTracer
from .batching import EXAMPLE, BatchMap


class _BatchedFunctionNode(FunctionNode):
    """The tape node of a Function call on all examples."""

    __slots__ = ("example_leaves", "example_node", "lifted_by_expr", "resumed", "size")

    lifted_by_expr: dict[Expr, Expr]  # saved values of one example -> those of all examples
    example_node: FunctionNode
    resumed: list[int]
    size: int
    example_leaves: set[Any]  # the same set as `BatchMap.example_leaves`

    def resume(self, sent: dict[Node, PropagatedGradient]) -> list[int]:
        """Return and store the edges whose gradients continue earlier sums, no shared operands.

        `call_backward` sums the gradient of an operand that all examples share over the examples.
        """
        pairs = zip(self.edges, self.example_node.edges, strict=True)
        differs = [
            a is not None and b is not None and a.node.spec is not b.node.spec for a, b in pairs
        ]
        self.resumed = [k for k in super().resume(sent) if differs[k]]
        return self.resumed

    def call_backward(self, arriving: Sequence[Tensor | None]) -> tuple[Any, ...]:
        """Run the `backward` of one example for all; sum parts of shared operands."""
        examples = VmapTracer("vmap", self.size)
        examples.lifting.lifted_by_expr.update(self.lifted_by_expr)
        examples.lifting.example_leaves |= self.example_leaves
        examples.lifting.functions[self.example_node] = self
        of_one = tracer_api.run_traced(examples, self._example_parts, examples, arriving)
        return tuple(
            None
            if part is None or edge is None
            else self._sum_shared_part(examples, part, edge.node)
            for part, edge in zip(of_one, self.edges, strict=True)
        )

    def _example_parts(
        self, examples: VmapTracer, arriving: Sequence[Tensor | None]
    ) -> tuple[Any, ...]:
        """Call the user's `backward` on placeholders of one example."""
        context, sent = self.context, self.context._resumed_gradients
        context._resumed_gradients = {
            k: examples.create_example(g) for k, g in sent.items() if k in self.resumed
        }
        return super().call_backward(
            [None if g is None else examples.create_example(g) for g in arriving]
        )

    def _sum_shared_part(self, examples: VmapTracer, part: Any, to: Node) -> Any:
        """Return a part with the axis of examples, or summed over it for a shared operand."""
        if not isinstance(part, Tensor):
            return part
        if part.shape == to.spec.shape:  # the operand is the same for each example
            return sum_(examples.all(part), axis=0)
        return examples.all(part)

    def release(self) -> Callable[[], None]:
        """Drop the lifted values; return a function that restores them."""
        values, self.lifted_by_expr = self.lifted_by_expr, {}
        self.released = self.context._is_released = True

        def restore() -> None:
            """Put the lifted values back and mark the node as not released."""
            self.lifted_by_expr = values
            self.released = self.context._is_released = False

        return restore


def batched_output(batch_map: BatchMap, tape: FunctionOutput, lifted: Expr | None) -> Expr | None:
    """Return a Function's result for all examples, on their tape node; None without gradients.

    The tape node is created once for each call of the Function.
    """
    one = tape.edges[0].node  # type: ignore[union-attr]  # a result has one edge
    assert isinstance(one, FunctionNode)
    if not one.batched_arguments:
        return None
    if one not in batch_map.functions:
        batch_map.functions[one] = _batched_function_node(batch_map, one)
        if batch_map.functions[one] is not None:
            _save_batched_values(batch_map, batch_map.functions[one], one)
    node = batch_map.functions[one]
    if node is None or tape.value is None:
        return None
    whole = lifted
    if whole is None:
        whole = batch_map.expand_to_batch(tape.value, batch_map.lift(tape.value))
    return attach_output(create_tensor(whole), node, tape.index)._expr


def _batched_function_node(
    batch_map: BatchMap, example_node: FunctionNode
) -> _BatchedFunctionNode | None:
    """Return the tape node of all examples for that of one, or None if no gradient flows."""
    lifted = [None if a is None else batch_map.lift(a) for a in example_node.batched_arguments]
    edges = tuple(
        [None if b is None else edge_to(g) for b, g in zip(example_node.edges, lifted, strict=True)]
    )
    if all(e is None for e in edges):
        return None
    whole = [spec((batch_map.size, *s.shape), s.dtype, s.device) for s in example_node.results]
    node = _BatchedFunctionNode(example_node.name, whole[0], edges)
    node.function, node.results, node.batched_arguments, node.size = (
        example_node.function,
        whole,
        (),
        batch_map.size,
    )
    node.example_node, node.example_leaves = example_node, batch_map.example_leaves
    return node


def _save_batched_values(
    batch_map: BatchMap, node: _BatchedFunctionNode, example_node: FunctionNode
) -> None:
    """Store in the node the saved values of one example, and its sources, for all examples."""
    node.context, saved = _copy_context(example_node.context, node)
    node.lifted_by_expr = {
        e: batch_map.lift(e) for e in [*saved, *_placeholders_of(batch_map, saved)]
    }


def _placeholders_of(batch_map: BatchMap, values: Sequence[Expr]) -> set[Expr]:
    """Return the placeholders of examples from which these values are computed."""
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
        elif (source := batch_map.source_of(e)) is not None:
            stack.append(source)
    return sources


def _copy_context(context: Context, node: Node) -> tuple[Context, list[Expr]]:
    """Return a copy of the context as it was after `forward`, and the nodes that it saved."""
    again = copy(context)
    again._saved_values = [*context._first_saved_values]
    again._node, again._is_released = ref(node), False
    nodes = [k.value for k in again._saved_values if isinstance(k, SavedValue)]
    return again, [e for e in nodes if type(e) is Expr]
