"""Gradients through captured functions: one tape node for a whole call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..engine import tracer_api
from ..errors import GradientError
from ..settings import current
from ..tensor.tensor import Tensor
from . import tape
from .engine import grad
from .loop_gradients import run_loop
from .tape import (
    Node,
    PropagatedGradient,
    SavedValue,
    TapeLeaf,
    edge_to,
    load_saved,
    rematerialize_saved,
    save_value,
)


class _CapturedNode(Node):
    """The tape node of a call of a captured function. `saved`: values that its backward reads."""

    __slots__ = ("backward_function", "saved")

    backward_function: tracer_api.BackwardFunction
    saved: list[SavedValue]

    def backward(self, g: Tensor, result: SavedValue | None) -> list[PropagatedGradient | None]:
        """Run the captured backward; return the operands' gradients, which have no gradients.

        Raises: GradientError under `create_graph`, and if a saved value was overwritten.
        """
        if current().grad:
            raise GradientError(
                f"backward: {self.name} was captured, so its gradients have no gradients; compute "
                "both in one captured function, or call the uncaptured function (__wrapped__)"
            )
        saved = []
        for k in self.saved:
            t = load_saved(self, "a value", k)
            assert isinstance(t, Tensor)
            saved.append(t)
        return [*self.backward_function(g, saved)]

    def release(self) -> Callable[[], None]:
        """Drop the saved values; return a function that restores them."""
        saved = [rematerialize_saved(k) for k in self.saved]
        self.released, self.saved = True, []

        def restore() -> None:
            """Put the saved values back."""
            self.released, self.saved = False, saved

        return restore


class LoopTapes:
    """The tape services that captured loops use; implements `tracer_api.Tapes`."""

    def order(self) -> int:
        """Return a new order number, above that of each tape node so far."""
        return next(tape.node_counter)

    def has_direct_paths(self, result: Tensor, given: Sequence[Tensor]) -> bool:
        """Return True if gradients reach `given` alone, each on one path, past no hook."""
        ends = {t._expr.tape for t in given}
        reached: list[Node] = []
        visited: set[Node] = set()
        stack: list[Node] = [result._expr.tape]
        while stack:
            n = stack.pop()
            if n in visited:
                continue
            visited.add(n)
            if n in ends or type(n) is TapeLeaf or n.hooks or n.retains_grad or n.released:
                return False
            for e in n.edges:
                if e is not None:
                    (reached if e.node in ends else stack).append(e.node)
        return len(reached) == len({*reached})

    def gradients(
        self, result: Tensor, given: Sequence[Tensor], g: Tensor
    ) -> Sequence[Tensor | None]:
        """Return the gradients of `given`, None where there is none; keep the tape."""
        return grad([result], [*given], [g], retain_graph=True, allow_unused=True)

    def attach(
        self,
        name: str,
        result: Tensor,
        given: Sequence[Tensor],
        saved: Sequence[Tensor],
        backward: tracer_api.BackwardFunction,
    ) -> None:
        """Set a tape node on `result` that runs `backward` on the saved values."""
        node = _CapturedNode(name, result._expr.spec, tuple([edge_to(t._expr) for t in given]))
        node.backward_function, node.saved = backward, [save_value(t._expr) for t in saved]
        result._expr.tape = node

    def run_loop(
        self,
        scan: tracer_api.Scan,
        body: tracer_api.LoopBody,
        rerun_body: tracer_api.LoopBody,
        carry: Sequence[Tensor],
        xs: Sequence[Tensor],
        length: int,
        reverse: bool,
        closure: Sequence[Tensor],
        find_untaped_reads: Callable[[], Sequence[Tensor]],
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Run a captured loop, recorded as one tape node; return the last carry and stacked ys."""
        return run_loop(
            scan, body, rerun_body, carry, xs, length, reverse, closure, find_untaped_reads
        )
