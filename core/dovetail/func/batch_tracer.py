"""The tracer of `vmap`: it handles reads, writes and random numbers of a function of one example.

It takes the place of a capture's tracer (`engine.recording`), so no function needs to know of it.
Work that depends on an example's value is never computed for one example: it becomes work of all
examples, which the outer tracer records or which stays pending. Work that all examples share is
ordinary work, whose values may be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from ..autograd.engine import detach
from ..autograd.tape import TapeLeaf
from ..backend.interface import Scalar
from ..engine import evaluate as engine
from ..engine import tracer_api
from ..engine.evaluation import Evaluation
from ..engine.launching import BoundKernel
from ..errors import TransformError
from ..functions.reductions.statistics import any as any_true
from ..graph.expr import (
    Args,
    Expr,
    Spec,
    convert_to_leaf,
    leaf,
    mark_overwritten,
    node,
    overlaps,
    pending_nodes,
    register_readers,
    spec,
    storage_of,
)
from ..memory.storage import Storage
from ..memory.tracing.stacktrace import caller_line
from ..ops.host_routines import HostCall
from ..ops.table import COPY, LOGICAL_AND
from ..settings import Switch, current, set_recording
from ..tensor.c_fields import keep_class
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, create_lazy_storage, create_tensor
from ..tensor.writes import write_tensor
from ..weak_identity_map import WeakIdentityMap
from .batching import EXAMPLE, BatchMap

READ_ADVICE = (
    "choose with dt.where, or do it outside of the function; a tensor that is the same for each "
    "example (in_axes=None) can be read"
)


class VmapTracer(tracer_api.Tracer, tracer_api.BatchTracer):
    """The tracer of a function that runs on one example for all of `size`."""

    def __init__(self, name: str, size: int, randomness: str = "different") -> None:
        self.name, self.size, self.randomness = name, size, randomness
        self.outer = tracer_api.current()
        self.lifting = BatchMap(size)
        # Tape nodes of one example that have hooks, with the tensors of all examples.
        self.hooks: list[tuple[Any, Tensor]] = []
        # saved_tensors_hooks for values of all examples
        self._saved_tensors_hooks = current().saved_value_hooks
        self.mask: Tensor | None = None  # which examples may write
        self._outer_pending = _snapshot_pending()
        # pending before the function, or this branch of it
        self._pending_before = self._outer_pending
        self._allocated: WeakIdentityMap[Storage, bool] = WeakIdentityMap()  # inside the function
        self._batched_by_source: dict[
            Expr, Tensor
        ] = {}  # tensors of all examples that writes change in place
        self._arguments: dict[Expr, Tensor] = {}
        self._parent: VmapTracer | None = (
            None  # the tracer around the loop whose body this one runs
        )

    # --- examples

    def arguments(
        self, leaves: Sequence[Any], batched: Sequence[Any], axes: Sequence[int | None]
    ) -> list[Any]:
        """Return the arguments of one example: a stand-in for each leaf that has an axis.

        `batched`: the leaves with the axis of examples first. A tensor that is passed twice with
        the same axis is one tensor for each example, too.
        """
        by_identity: dict[tuple[int, int], Tensor] = {}
        arguments = []
        for x, whole, axis in zip(leaves, batched, axes, strict=True):
            if axis is not None:
                key = id(x), axis
                if key not in by_identity:
                    by_identity[key] = self.create_example(whole, is_argument=True)
                x = by_identity[key]
            arguments.append(x)
        return arguments

    def create_example(self, batched: Tensor, is_argument: bool = False) -> Tensor:
        """Create and register a tensor that stands for one example of `batched`, on its first axis.

        `is_argument`: writes to it are writes to `batched`.
        """
        e = batched._expr
        source = node(EXAMPLE, (), spec(e.spec.shape[1:], e.spec.dtype, e.spec.device))
        self.lifting.lifted_by_expr[source] = e
        if is_argument:
            self._batched_by_source[source] = self._arguments[source] = batched
        placeholder = leaf(create_lazy_storage(source), source.spec, source.spec.strides, 0)
        if e.tape is not None and current().grad:
            placeholder.tape = TapeLeaf(placeholder.spec)
            self.lifting.example_leaves.add(placeholder.tape)
        return keep_class(create_tensor(placeholder), batched)

    def all(self, x: Tensor) -> Tensor:
        """Return a tensor of all examples; one that they share is expanded along a first axis."""
        e = x._expr
        lifted = self.run_outside(partial(self.lifting.lift, e))
        if lifted is e:
            lifted = self.run_outside(partial(self.lifting.expand_to_batch, e, e))
        return keep_class(create_tensor(lifted), x)

    def run_outside(self, action: Callable[[], Any]) -> Any:
        """Run an action under the outer tracer, with gradients recorded; return its result."""
        return tracer_api.run_traced(self.outer, self._outside, action, isolated=True)

    def _outside(self, action: Callable[[], Any]) -> Any:
        """Run an action with recording on and with the outer hooks for saved values."""
        set_recording(True)
        if current().saved_value_hooks is not self._saved_tensors_hooks:
            Switch(
                saved_value_hooks=self._saved_tensors_hooks
            ).__enter__()  # this context ends with the action
        return action()

    def is_batched_tensor(self, x: Tensor) -> bool:
        """Return True if a tensor differs between examples of this `vmap`."""
        return self._is_batched_expr(x._expr)

    # --- loops

    def full_batch(self, x: Tensor) -> Tensor:
        """Return the tensor of all examples, expanded if they share it, detached from its tape."""
        whole = self.all(x)
        return whole if whole._expr.tape is None else detach(whole)

    def adopt_tensor(self, x: Tensor) -> Tensor:
        """Register a tensor's memory as allocated inside the function, and return the tensor."""
        self._allocated[storage_of(x._expr)] = True
        return x

    def check_pending_reads(self) -> None:
        """Evaluate lifted nodes if memory was overwritten. Raises: UnrolledLoop if one reads it."""
        if self.lifting.memory:
            lifted = [
                e for e in self.lifting.lifted_by_expr.values() if e.op not in (None, EXAMPLE)
            ]
            self.run_outside(partial(engine.evaluate, lifted, False))
            if any(self._reads_overwritten_memory(e) for e in pending_nodes()):
                raise tracer_api.UnrolledLoop

    @contextmanager
    def iteration_scope(self) -> Iterator[VmapTracer]:
        """Yield a tracer for a loop's body, where writes to older memory raise UnrolledLoop."""
        tracer = VmapTracer(self.name, self.size, self.randomness)
        tracer.lifting.inherit(self.lifting)
        tracer.mask, tracer._saved_tensors_hooks, tracer._parent = (
            self.mask,
            self._saved_tensors_hooks,
            self,
        )
        with tracer_api.recorded_by(tracer):
            yield tracer

    # --- evaluations

    def run(self, evaluation: Evaluation, reports_checks: bool) -> bool:
        """Evaluate for all examples."""
        target = evaluation.graph.target
        roots = [r for r in evaluation.graph.roots if r.op is not None]
        if target is None and not reports_checks:
            roots = [r for r in roots if not self._leads_to_overwritten_memory(r)]
        lifted = [self.run_outside(partial(self.lifting.lift, r)) for r in roots]
        if target is not None:
            self._write(roots[0], lifted[0], target)
            return True
        shared = [r for r, f in zip(roots, lifted, strict=True) if f is r]
        if shared:
            self.run_outside(partial(engine.evaluate, shared, reports_checks))
            for r in shared:
                if r.op is None and r not in self._outer_pending:
                    self._allocated[storage_of(r)] = True
        for r, f in zip(roots, lifted, strict=True):
            if f is not r and r.op is not EXAMPLE:
                self._make_leaf(r, f)
        return True

    def _reads_overwritten_memory(self, r: Expr) -> bool:
        """Return True if a node reads memory that has come to differ between examples.

        A node of all examples was lifted before and must stay as it is. Those of one example are
        lifted by `_write`.
        """
        if not self.lifting.memory:
            return False
        leaves = [a for a in r.args if type(a) is Expr and a.op is None]
        return any(id(storage_of(e)) in self.lifting.memory for e in leaves)

    def _leads_to_overwritten_memory(self, r: Expr) -> bool:
        """Return True if a node, or a pending one below it, reads memory that came to differ."""
        stack, visited = [r], {r}
        while self.lifting.memory and stack:
            e = stack.pop()
            if self._reads_overwritten_memory(e):
                return True
            read = {a for a in e.args if type(a) is Expr and a.op is not None} - visited
            visited |= read
            stack += read
        return False

    def _make_leaf(self, r: Expr, lifted: Expr) -> None:
        """Turn a pending node into a leaf that stands for `lifted`, as if computed."""
        source, to = node(EXAMPLE, (), r.spec), self.lifting
        to.lifted_by_expr[source] = lifted
        del to.lifted_by_expr[r]
        if r in to.views:
            to.views[source] = to.views.pop(r)
        convert_to_leaf(r, create_lazy_storage(source))

    # --- writes

    def _write(self, value: Expr, lifted: Expr, target: Expr) -> None:
        """Write a value into memory; the memory of all examples if either differs between them."""
        register_readers()
        storage = storage_of(target)
        source = self.lifting.source_of(target)
        if self._parent is not None and source in self._parent.lifting.lifted_by_expr:
            raise tracer_api.UnrolledLoop
        readers = storage.readers if source is None or storage.pending is None else source.readers
        if source is None:
            self._settle_readers(value, readers)
            if lifted is value:
                self.run_outside(partial(engine.write, [value], target))
                return
            source, readers = self._make_batched(storage, target.spec), None
        aliases = self._aliases_of(source)
        self._settle_readers(value, readers, *(a.readers for a in aliases))
        self.run_outside(partial(self._write_batched, source, target, value, lifted))
        for a in aliases:
            self.lifting.replace_lifted(a, self._arguments[a]._expr)
            mark_overwritten(a, self.name)

    def _settle_readers(
        self, value: Expr, *readers: Sequence[Callable[[], Expr | None]] | None
    ) -> None:
        """Evaluate or turn into leaves the pending readers of a memory, before `value` is written.

        A node that is recorded later, to compute such a value again, would read the new contents.
        """
        waiting = [e for references in readers for r in references or () if (e := r()) is not None]
        for e in dict.fromkeys(waiting):
            if e.op is None or e is value:
                continue
            lifted = self.run_outside(partial(self.lifting.lift, e))
            if lifted is e:
                self.run_outside(partial(engine.evaluate, [e], False))
            elif e.op is not EXAMPLE and not self._is_outer_batched(e):
                self._make_leaf(e, lifted)

    def _is_outer_batched(self, e: Expr) -> bool:
        """Return True if a pending node was recorded outside, for all examples."""
        stack = list[Expr]()
        tracer: tracer_api.Tracer | None = self
        while isinstance(tracer, VmapTracer):
            stack += [
                lifted for lifted in tracer.lifting.lifted_by_expr.values() if lifted.op is not None
            ]
            tracer = tracer.outer
        visited = {*stack}
        while stack:
            read = {a for a in stack.pop().args if type(a) is Expr and a.op is not None} - visited
            visited |= read
            stack += read
        return e in visited

    def _aliases_of(self, source: Expr) -> list[Expr]:
        """Return the sources of other arguments over the memory of an argument."""
        written = self._arguments.get(source)
        if written is None or written._expr.op is not None:
            return []
        return [
            s
            for s, x in self._arguments.items()
            if s is not source and x._expr.op is None and overlaps(x._expr, written._expr)
        ]

    def _write_batched(self, source: Expr, target: Expr, value: Expr, lifted: Expr) -> None:
        """Write a value of all examples into the memory of a source."""
        to = self.lifting
        lifted = to.expand_to_batch(value, lifted)
        whole = self._batched_by_source.get(source)
        is_whole = target.strides == source.spec.strides and not target.offset
        if whole is None and target.spec is source.spec and is_whole:
            to.replace_lifted(source, lifted)
            return
        if whole is None:
            whole = self._batched_by_source[source] = apply(
                COPY, (create_tensor(to.expand_to_batch(source, to.lift(source))),)
            )
        write_tensor("vmap", to.batched_view(target, source, whole), [lifted])
        to.replace_lifted(source, whole._expr)

    def _make_batched(self, storage: Storage, s: Spec) -> Expr:
        """Give each example a copy of shared memory; register its node, or raise TransformError.

        TransformError is for memory from outside; in a loop's body that is UnrolledLoop.
        """
        if not self._is_allocated_here(storage):
            if self._parent is not None:
                raise tracer_api.UnrolledLoop(storage)
            what = "a value that differs between examples is written"
            if self.mask is not None:
                what = "a branch or loop that differs between examples writes"
            raise TransformError(
                f"{self.name}: at {caller_line()}, {what} into the tensor {s!r} from outside of "
                "the function, which holds only one example; return the result instead, or pass "
                "the tensor as an argument with an axis of examples"
            )
        n = storage.nbytes // s.itemsize
        flat = leaf(storage, spec((n,), s.dtype, s.device), (1,), 0)
        source = node(EXAMPLE, (), flat.spec)
        self.lifting.lifted_by_expr[source] = self.run_outside(
            partial(self.lifting.expand_to_batch, flat, flat)
        )
        self.lifting.memory[id(storage)] = storage, source
        return source

    def _is_allocated_here(self, storage: Storage) -> bool:
        """Return True if the mapped function, or a lifted node of it, allocated this memory."""
        if storage in self._allocated:
            return True
        return any(
            e is lifted
            and e.op is None
            and storage_of(e) is storage
            and e not in self._outer_pending
            for e, lifted in self.lifting.lifted_by_expr.items()
        )

    def record_allocation(self, storage: Storage) -> None:
        """Register memory that the function allocates."""
        self._allocated[storage] = True
        super().record_allocation(storage)

    def knows_leaf(self, e: Expr) -> bool:
        """Return True if this trace or an outer one knows a node."""
        return e in self.lifting.lifted_by_expr or super().knows_leaf(e)

    def evaluate_earlier(self, e: Expr) -> None:
        """Evaluate a node if it was pending before the function or the branch; others stay."""
        if e in self._outer_pending:
            self.run_outside(partial(engine.evaluate, [e], False))
        elif e in self._pending_before:
            engine.evaluate([e])

    @contextmanager
    def use_write_mask(self, mask: Tensor) -> Iterator[None]:
        """Restrict writes to the examples where the mask is True, within a context."""
        before = self.mask, self._pending_before
        self.mask = mask if self.mask is None else apply(LOGICAL_AND, (self.mask, mask))
        self._pending_before = _snapshot_pending()
        try:
            yield
        finally:
            self.mask, self._pending_before = before

    # --- random numbers

    def draw(self, reserve: Callable[[], tuple[int, int]]) -> tuple[int, int]:
        """Reserve numbers per example, or once for "same"; raise TransformError for "error"."""
        if self.randomness == "error":
            raise TransformError(
                f"{self.name}: random numbers are drawn at {caller_line()}; pass "
                'randomness="different" for other numbers per example or "same" for the same '
                "numbers"
            )
        if self.randomness == "different":
            assert isinstance(reserve, partial)
            reserve = partial(reserve.func, reserve.args[0] * self.size)
        return reserve() if self.outer is None else self.outer.draw(reserve)

    def mark_drawn(self, args: Args) -> None:
        """Mark a random op's arguments, or a copy for all examples, as the numbers drawn last."""
        own_args = args
        if self.randomness == "different":
            own_args = (*args,)  # a copy: it is looked up by its identity
            self.lifting.random_args[id(args)] = args, own_args
        if self.outer is not None:
            self.outer.mark_drawn(own_args)

    # --- work that cannot be deferred

    def refuse_read(self, what: str, tensors: Sequence[Tensor]) -> None:
        """Raise TransformError if a tensor differs between examples; else ask the outer tracer."""
        if self.is_batched(*[t._expr for t in tensors]):
            raise TransformError(
                f"{self.name}: {what} at {caller_line()}, which stands for {self.size} examples "
                f"and has no single value; {READ_ADVICE}"
            )
        if self.outer is not None:
            self.outer.refuse_read(what, tensors)

    def launch(
        self, step: BoundKernel, leaves: Sequence[Expr], numbers: Sequence[Scalar], line: str | None
    ) -> None:
        """Raise TransformError: vmap cannot map a launch of a user's kernel."""
        self._refuse_kernel(step.step.kernel.name)

    def call(
        self,
        name: str,
        source: str,
        work: tracer_api.Work,
        leaves: Sequence[Expr],
        written: Sequence[int],
        numbers: Sequence[Scalar],
    ) -> None:
        """Raise TransformError: vmap cannot map a call of a library."""
        self._refuse_kernel(name)

    def call_host(
        self, call: HostCall, operands: Sequence[Expr], into: Expr | None
    ) -> Sequence[Expr] | None:
        """Pass a host routine to the outer tracer, and own its results; None: the caller runs it.

        None is for a tracer without an outer one.
        """
        if self.outer is None:
            return None
        results: Sequence[Expr] | None = self.run_outside(
            partial(self.outer.call_host, call, operands, into)
        )
        for e in results or ():
            self._allocated[storage_of(e)] = True
        return results

    def _refuse_kernel(self, name: str) -> None:
        """Refuse a kernel or library call. Raises: TransformError, always."""
        raise TransformError(
            f"{self.name}: the kernel {name} at {caller_line()} runs on tensors in memory and "
            "cannot be mapped over examples; call it outside of the function with the examples as "
            "an axis of its grid, or write it with dt.elementwise or tensor functions"
        )

    def is_batched(self, *exprs: Expr) -> bool:
        """Return True if a node differs between examples of this or an outer `vmap`."""
        if self._is_batched_expr(*exprs):
            return True
        return self.outer is not None and self.outer.is_batched(*exprs)

    def record_hook(self, e: Expr) -> None:
        """Register a hook of an example's tensor with the tensor of all examples.

        A tensor that all examples share keeps its own hooks.
        """
        whole = self.run_outside(partial(self.lifting.lift, e))  # now: it may be written afterwards
        if whole is not e and whole.tape is not None:
            self.hooks.append((e.tape, create_tensor(whole)))
            self.lifting.hooked_nodes[e.tape] = whole

    def check_grad(self, order: int) -> None:
        """Pass the check of a tape's order to the outer tracer."""
        if self.outer is not None:
            self.outer.check_grad(order)

    def is_true_for_any(self, x: Tensor) -> bool:
        """Return True if a boolean is True for an example of the mask; the host reads it."""
        if self.mask is not None:
            x = apply(LOGICAL_AND, (self.mask, x))
        if self._is_batched_expr(x._expr):
            x = self.run_outside(partial(any_true, self.all(x)))
        outer = self.outer
        if outer is None or not outer.is_batched(x._expr):
            return bool(self.run_outside(partial(bool, x)))
        return bool(self.run_outside(partial(outer.is_true_for_any, x)))

    def _is_batched_expr(self, *exprs: Expr) -> bool:
        """Return True if one of these nodes differs between examples of this `vmap`."""
        return bool(self.run_outside(lambda: any(self.lifting.is_batched(e) for e in exprs)))

    def call_batched(
        self, function: Callable[..., Sequence[Tensor]], tensors: Sequence[Tensor]
    ) -> Sequence[Tensor] | None:
        """Call a function on tensors of all examples; return examples, or None if none differs."""
        if not self.is_batched(*[t._expr for t in tensors]):
            return None
        many = [self.all(t) for t in tensors]
        results = self.run_outside(lambda: function(*many))
        return [self.create_example(t) for t in results]


def _snapshot_pending() -> WeakIdentityMap[Expr, bool]:
    """Return a weak map of the nodes that are pending now."""
    return WeakIdentityMap((e, True) for e in pending_nodes())
