"""Loops and branches with bodies that are captured once, as acts of the captured program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from typing import Any, ParamSpec, TypeVar
from weakref import ref

from ..argument_checks import shown
from ..device_class import Device, usable
from ..dtypes import bool_, int64, uint8
from ..engine import evaluate as run
from ..engine import tracer_api
from ..engine.tracer_api import UnrolledLoop
from ..errors import CaptureError, DTypeError, GradientError, ShapeError
from ..graph.expr import Expr, Spec, spec, storage_of
from ..ops import table as ops
from ..settings import Switch, current
from ..tensor.host import evaluate_leaf
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, create_tensor
from .iterations import LoopSpec, index, is_any_taped, truth_of
from .loop_acts import Branch, CountedLoop, LoopCarry, NestedProgram, ScannedRows, WhileLoop
from .program import CapturedProgram, Place
from .pytree import FlatTree, rebuild, tensor_leaves
from .tracer import CaptureTracer, evaluate_pending

P = ParamSpec("P")
R = TypeVar("R")

_DEFERRED = Switch(eager=False)  # an index that is computed at once is the same in each iteration


def capture_loop(loop: LoopSpec, reads: set[int] | None = None) -> tuple[Any, Any]:
    """Run a loop as one act. Return its last carry and its ys.

    `reads`: gets the slots that the body reads of the program around it; it must write none.
    Raises: UnrolledLoop, if gradients flow through the body's results, or it has such effects.
    """

    def trace(tracer: CaptureTracer, device: Device) -> tuple[Any, Any]:
        captured = _CapturedLoop(loop, tracer, device)
        body = captured.body()
        if reads is not None:
            if not body.is_pure(len(loop.tensors)):
                raise UnrolledLoop
            reads.update(p.slot for p in body.outer_places)
        return captured.record_counted_loop(body)

    return _run_traced(trace, *loop.tensors, *loop.bounds)


def capture_while(
    name: str, condition: Callable[[Any], object], body: Callable[[Any], Any], carry: FlatTree
) -> Any:
    """Run a `while_loop` as one act. Raises: UnrolledLoop if gradients flow through it."""

    def trace(tracer: CaptureTracer, device: Device) -> Any:
        loop = LoopSpec(name, lambda i, c, x: (body(c), ()), carry)
        captured = _CapturedLoop(loop, tracer, device)
        return captured.record_while_loop(condition, captured.body())

    return _run_traced(trace, *carry.leaves)


def capture_cond(pred: Tensor, *branches: Callable[[], R], name: str = "cond") -> R:
    """Run `cond` as one act. Raises: GradientError, ShapeError, DTypeError."""
    tracer, truth = tracer_api.current(), truth_of(pred)._expr
    assert isinstance(tracer, CaptureTracer)
    evaluate_pending()
    run.evaluate([truth])
    truth_place = tracer.locate_live(truth)
    (yes, yes_part), (no, no_part) = (
        _capture_branch(name, tracer, truth.spec.device, f) for f in branches
    )
    if yes.tree != no.tree:
        raise DTypeError(
            f"{name}: true_fn and false_fn must return the same containers, got {yes.tree} and "
            f"{no.tree}"
        )
    for a, b in zip(yes.leaves, no.leaves, strict=True):
        if a is not b:
            error = ShapeError if a.shape != b.shape else DTypeError
            raise error(
                f"{name}: true_fn and false_fn must return the same shapes and dtypes, got {a!r} "
                f"and {b!r}"
            )
    results = [tracer.allocate(s) for s in yes.leaves]
    tracer.run_and_record(
        Branch(truth_place, (yes_part, no_part), tuple(map(tracer.locate, results)))
    )
    result: R = rebuild(yes, list(map(create_tensor, results)))
    return result


def _capture_branch(
    name: str, tracer: CaptureTracer, device: Device, function: Callable[[], object]
) -> tuple[FlatTree, NestedProgram]:
    """Capture a branch; return the specs of its results, in its containers, and its program."""
    body = BodyCapture(tracer, device)

    def trace() -> tuple[FlatTree, list[Place]]:
        try:
            flat = tensor_leaves(name, function())
            if is_any_taped(flat.leaves):
                raise UnrolledLoop
        except UnrolledLoop:
            raise GradientError(
                f"{name}: gradients cannot flow through it in a captured function; use dt.where"
            ) from None
        places, _ = body.place_results(flat.leaves, [])
        return FlatTree([t._expr.spec for t in flat.leaves], flat.tree), places

    specs, places = body.run(trace)
    return specs, body.build_part(places)


class BodyCapture:
    """A part of a program that is captured without being run."""

    def __init__(self, outer: CaptureTracer, device: Device) -> None:
        self.outer, self.device = outer, device
        self.recorder = CaptureTracer(device, True, outer=outer)
        self.index: ref[Expr] | None = None

    def run(self, function: Callable[P, R], *args: P.args, **options: P.kwargs) -> R:
        """Capture a function and return its result. Tensors that it made have no value later."""
        try:
            return tracer_api.run_traced(self.recorder, partial(function, *args, **options))
        finally:
            self.recorder.invalidate_body_values(None if self.index is None else self.index())

    def place_results(
        self, tensors: Sequence[Tensor], inputs: Sequence[Expr]
    ) -> tuple[list[Place], list[bool]]:
        """Return the places of results, and True for each that is the input of its position.

        Each other result gets contiguous memory of its own.
        """
        if tensors:
            run.evaluate([t._expr for t in tensors])
        places, same = list[Place](), list[bool]()
        for k, t in enumerate(tensors):
            e = evaluate_leaf(t)
            place = self.recorder.locate(e)
            is_whole = e.offset == 0 and e.strides == e.spec.strides
            is_same = k < len(inputs) and is_whole and storage_of(e) is storage_of(inputs[k])
            is_taken = any(p.slot == place.slot for p in places)
            if not is_same and not (is_whole and self._is_new(place, e) and not is_taken):
                place = self.recorder.locate(_copy(e))
            places.append(place)
            same.append(is_same)
        return places, same

    def _is_new(self, p: Place, e: Expr) -> bool:
        size = self.recorder.sizes.get(p.slot)
        return size == e.spec.size * e.spec.dtype.itemsize and p.slot not in self.recorder.constants

    def build_part(self, results: Sequence[Place]) -> NestedProgram:
        """Return the captured acts as a part of the outer program."""
        program = self.recorder.program(results)
        outer = tuple(self.recorder.from_outer.values())
        arena = None
        if program.arena:
            memory = self.outer.allocate(spec((program.arena,), uint8, self.device))
            arena = self.outer.locate(memory)
        return NestedProgram(program, outer, arena)


class _CapturedLoop:
    """A loop that becomes an act of the program that is captured.

    `carry`, `xs`: leaves of the first carry and the xs. `is_same`: which leaves of the carry the
    body gives back, perhaps written in place. `row`: the specs of a row of the ys.
    """

    def __init__(self, loop: LoopSpec, tracer: CaptureTracer, device: Device) -> None:
        self.loop, self.tracer, self.device = loop, tracer, device
        self.carry = [_contiguous(t) for t in loop.carry.leaves]
        self.xs = [_contiguous(t) for t in loop.xs.leaves]
        self.variable: int | None = None
        self.is_same: list[bool] = []
        self.row = FlatTree([], None)

    def body(self) -> NestedProgram:
        """Capture the body. Raises: UnrolledLoop if gradients flow through its results."""
        inner = BodyCapture(self.tracer, self.device)
        return inner.build_part(inner.run(self._trace_body, inner))

    def _trace_body(self, inner: BodyCapture) -> list[Place]:
        inputs = [inner.recorder.placeholder(e.spec) for e in self.carry]
        row = [inner.recorder.placeholder(_row(e.spec)) for e in self.xs]
        with _DEFERRED if current().eager else nullcontext():
            after, ys = self.loop.run_body(  # a reference to the index would materialise it
                self._index(inner) if self.loop.is_indexed else None,
                list(map(create_tensor, inputs)),
                list(map(create_tensor, row)),
            )
            if is_any_taped([*after, *ys.leaves]):
                raise UnrolledLoop
            places, same = inner.place_results([*after, *ys.leaves], inputs)
        self.row = FlatTree([t._expr.spec for t in ys.leaves], ys.tree)
        self.is_same = same[: len(inputs)]
        return places

    def _index(self, body: BodyCapture) -> Tensor:
        environment = self.tracer.environment
        self.variable = environment.variable(0)
        i = index(0, self.device)
        environment.tag(i._expr.args, (self.variable,))
        body.index = ref(i._expr)
        return i

    def record_counted_loop(self, body: NestedProgram) -> tuple[Any, Any]:
        """Run a loop of known length. Return its last carry and its ys."""
        tracer, loop = self.tracer, self.loop
        results, carried = self._buffers(body)
        for k, e in enumerate(self.xs):
            if self._is_written(len(carried) + k, e, (body,)):
                self.xs[k] = _copy(e)
        n = loop.length() or 0  # without a length there are no ys
        ys = [
            tracer.allocate(spec((n, *s.shape), s.dtype, s.device, loop.name))
            for s in self.row.leaves
        ]
        low, high = (_place_of_bound(tracer, b) for b in loop.bounds)
        xs_rows, ys_rows = (
            tuple(_locate_rows(tracer, e) for e in group) for group in (self.xs, ys)
        )
        tracer.run_and_record(
            CountedLoop(
                body, (low, high), self.variable, carried, xs_rows, ys_rows, loop.is_reversed
            )
        )
        return self._carry_of(results), rebuild(self.row, list(map(create_tensor, ys)))

    def record_while_loop(self, condition: Callable[[Any], object], body: NestedProgram) -> Any:
        """Run a loop while a condition holds, and return the last carry."""
        inner, name = BodyCapture(self.tracer, self.device), self.loop.name

        def trace_condition() -> list[Place]:
            truth = condition(
                self._carry_of([inner.recorder.placeholder(e.spec) for e in self.carry])
            )
            if not isinstance(truth, Tensor):
                raise CaptureError(
                    f"{name}: cond must return a tensor that depends on the carry, got "
                    f"{shown(truth)}, which is constant"
                )
            if truth.size != 1:
                raise ShapeError(f"{name}: cond must return one bool, got shape {truth.shape}")
            return inner.place_results([truth_of(truth)], [])[0]

        asked = inner.build_part(inner.run(trace_condition))
        results, carried = self._buffers(asked, body)
        truth_place = self.tracer.locate(self.tracer.allocate(spec((), bool_, self.device)))
        self.tracer.run_and_record(WhileLoop(asked, truth_place, body, carried))
        return self._carry_of(results)

    def _carry_of(self, exprs: Sequence[Expr]) -> Any:
        return rebuild(self.loop.carry, list(map(create_tensor, exprs)))

    def _buffers(self, *parts: NestedProgram) -> tuple[list[Expr], tuple[LoopCarry, ...]]:
        """Return the leaves of the last carry, and the buffers of the carry.

        The first carry is copied if the parts write to it or to an alias of it.
        """
        tracer, results, carried = self.tracer, list[Expr](), list[LoopCarry]()
        for k, is_same in enumerate(self.is_same):
            e = self.carry[k]
            copy = _copy_program(self.device, e.spec)
            if is_same or self._is_written(k, e, parts):
                e = self.carry[k] = _copy(e)
            last = e if is_same else tracer.allocate(e.spec)
            other = None if is_same else tracer.locate(tracer.allocate(e.spec))
            results.append(last)
            carried.append(LoopCarry(tracer.locate(e), tracer.locate(last), other, copy))
        return results, tuple(carried)

    def _is_written(self, position: int, e: Expr, parts: Sequence[NestedProgram]) -> bool:
        """Return True if parts write to this memory, as an input or as outer memory."""
        if any(position in p.program.written for p in parts):
            return True
        outside = {place.slot for p in parts for place in p.written(len(self.loop.tensors))}
        is_foreign = storage_of(e).overlap is not None
        return bool(outside) and (is_foreign or self.tracer.locate(e).slot in outside)


def _run_traced(function: Callable[[CaptureTracer, Device], R], *operands: object) -> R:
    """Call a function with this thread's tracer, or a temporary one, and the loop's device."""
    device = next((x.device for x in operands if isinstance(x, Tensor)), None) or usable(None)
    evaluate_pending()
    tracer = tracer_api.current()
    if tracer is not None:
        assert isinstance(tracer, CaptureTracer)
        return function(tracer, device)
    tracer = CaptureTracer(device, False)
    return tracer_api.run_traced(tracer, function, tracer, device)


def _place_of_bound(tracer: CaptureTracer, bound: int | Tensor) -> int | Place:
    """Return a constant bound, or the place of a computed one."""
    if isinstance(bound, int):
        return bound
    e = apply(ops.COPY, (bound.reshape(()).astype(int64),))._expr
    run.evaluate([e])
    return tracer.locate_live(e)


def _contiguous(t: Tensor) -> Expr:
    """Return the leaf of a tensor in contiguous memory."""
    e = evaluate_leaf(t)
    return e if t.is_contiguous() else _copy(e)


def _copy(e: Expr) -> Expr:
    e = apply(ops.COPY, (create_tensor(e),))._expr
    run.evaluate([e])
    return e


def _row(s: Spec) -> Spec:
    return spec(s.shape[1:], s.dtype, s.device)


def _locate_rows(tracer: CaptureTracer, e: Expr) -> ScannedRows:
    """Return the place of the first row of a leaf, and the bytes of a row."""
    row = _row(e.spec)
    return ScannedRows(tracer.locate(e), row.size * row.dtype.itemsize)


def _copy_program(device: Device, s: Spec) -> CapturedProgram:
    """Return the program that copies a value of this spec."""
    tracer = CaptureTracer(device, True)
    e = tracer_api.run_traced(tracer, lambda: _copy(tracer.placeholder(s)))
    return tracer.program([tracer.locate(e)])
