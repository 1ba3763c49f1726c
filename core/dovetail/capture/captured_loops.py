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
from .tracer import CaptureTracer, evaluate_pending, hold_captures

P = ParamSpec("P")
R = TypeVar("R")

_DEFERRED = Switch(eager=False)  # an index that is computed at once is the same in each iteration


def capture_loop(loop: LoopSpec, reads: set[int] | None = None) -> tuple[Any, Any]:
    """Capture and run a loop as one act; return (carry, ys); fill `reads`.

    `reads`: a set to which the slots are added that the body reads of the program around it; such a
    body may write nothing there and have no other effects.
    Raises: UnrolledLoop if gradients flow through the body's results, or it has such effects;
    errors of the body's results as `LoopSpec.run_body`.
    """

    def trace(tracer: CaptureTracer, device: Device) -> tuple[Any, Any]:
        """Capture the body, fill `reads`, and run the loop; return (carry, ys)."""
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
    """Run a `while_loop` as one act; return its carry; raise UnrolledLoop if gradients flow.

    CaptureError or ShapeError is raised if the condition is no tensor of one element. Errors of the
    body's results are those of `next_carry`.
    """

    def trace(tracer: CaptureTracer, device: Device) -> Any:
        """Capture body and condition, and run the loop; return the last carry."""
        loop = LoopSpec(name, lambda i, c, x: (body(c), ()), carry)
        captured = _CapturedLoop(loop, tracer, device)
        return captured.record_while_loop(condition, captured.body())

    return _run_traced(trace, *carry.leaves)


def capture_cond(pred: Tensor, *branches: Callable[[], R], name: str = "cond") -> R:
    """Capture both branches, record one act that runs one of them, and return its result.

    Raises: GradientError if gradients flow through a result; DTypeError, ShapeError for branches
    whose results differ in containers, dtypes or shapes.
    """
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
    """Capture a branch; return its results' specs, in their containers, and its program.

    Raises: GradientError if gradients flow through a result; DTypeError, LayoutError for results
    that are no numbers or strided tensors.
    """
    body = BodyCapture(tracer, device)

    def trace() -> tuple[FlatTree, list[Place]]:
        """Run the branch; return the tree of specs and the results' places."""
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
        """Run a function whose acts are recorded, not done, and return its result.

        A later read of a tensor that it made raises CaptureError.
        """
        try:
            return tracer_api.run_traced(self.recorder, partial(function, *args, **options))
        finally:
            self.recorder.invalidate_body_values(None if self.index is None else self.index())

    def place_results(
        self, tensors: Sequence[Tensor], inputs: Sequence[Expr]
    ) -> tuple[list[Place], list[bool]]:
        """Evaluate results; return the place of each, and True for each that is its own input.

        An input may be written in place. Each other result has contiguous memory of its own: it is
        copied if it is a view, a constant, or there twice.
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
        """Return True if a leaf is all of a slot that the body allocated, and no constant."""
        size = self.recorder.sizes.get(p.slot)
        return size == e.spec.size * e.spec.dtype.itemsize and p.slot not in self.recorder.constants

    def build_part(self, results: Sequence[Place]) -> NestedProgram:
        """Build the nested program of the captured acts; allocate its arena in the outer one."""
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
        """Capture the body; set `is_same`, `row`, `variable`.

        Raises: UnrolledLoop if gradients flow.
        """
        inner = BodyCapture(self.tracer, self.device)
        return inner.build_part(inner.run(self._trace_body, inner))

    def _trace_body(self, inner: BodyCapture) -> list[Place]:
        """Run the body on placeholders; set `is_same` and `row`; return the results' places."""
        inputs = [inner.recorder.placeholder(e.spec) for e in self.carry]
        row = [inner.recorder.placeholder(_row_spec(e.spec)) for e in self.xs]
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
        """Create the index tensor and its variable; store them in `body.index` and `variable`."""
        environment = self.tracer.environment
        self.variable = environment.variable(0)
        i = index(0, self.device)
        environment.tag(i._expr.args, (self.variable,))
        body.index = ref(i._expr)
        return i

    def record_counted_loop(self, body: NestedProgram) -> tuple[Any, Any]:
        """Allocate the buffers, run and record a `CountedLoop`, and return (carry, ys)."""
        tracer, loop = self.tracer, self.loop
        results, carried = self._allocate_buffers(body)
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
        """Capture the condition, which must give one bool, and run a `WhileLoop`; return the carry.

        Raises: CaptureError, ShapeError if the condition is no tensor of one element.
        """
        inner, name = BodyCapture(self.tracer, self.device), self.loop.name

        def trace_condition() -> list[Place]:
            """Run the condition on placeholders; return the place of its bool."""
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
        results, carried = self._allocate_buffers(asked, body)
        truth_place = self.tracer.locate(self.tracer.allocate(spec((), bool_, self.device)))
        self.tracer.run_and_record(WhileLoop(asked, truth_place, body, carried))
        return self._carry_of(results)

    def _carry_of(self, exprs: Sequence[Expr]) -> Any:
        """Return tensors over these leaves in the containers of the carry."""
        return rebuild(self.loop.carry, list(map(create_tensor, exprs)))

    def _allocate_buffers(self, *parts: NestedProgram) -> tuple[list[Expr], tuple[LoopCarry, ...]]:
        """Allocate the carry's buffers; return the leaves of the last carry and the `LoopCarry`s.

        The first carry is copied if the parts write to it or to an alias of it.
        """
        tracer, results, carried = self.tracer, list[Expr](), list[LoopCarry]()
        for k, is_same in enumerate(self.is_same):
            e = self.carry[k]
            copy = _capture_copy(self.device, e.spec)
            if is_same or self._is_written(k, e, parts):
                e = self.carry[k] = _copy(e)
            last = e if is_same else tracer.allocate(e.spec)
            other = None if is_same else tracer.locate(tracer.allocate(e.spec))
            results.append(last)
            carried.append(LoopCarry(tracer.locate(e), tracer.locate(last), other, copy))
        return results, tuple(carried)

    def _is_written(self, position: int, e: Expr, parts: Sequence[NestedProgram]) -> bool:
        """Return True if a part may write to `e`, as its input `position` or as outer memory."""
        if any(position in p.program.written for p in parts):
            return True
        outside = {place.slot for p in parts for place in p.written(len(self.loop.tensors))}
        is_foreign = storage_of(e).overlap is not None
        return bool(outside) and (is_foreign or self.tracer.locate(e).slot in outside)


def _run_traced(function: Callable[[CaptureTracer, Device], R], *operands: object) -> R:
    """Evaluate all pending work; call `function` with the active or a new tracer, and a device."""
    device = next((x.device for x in operands if isinstance(x, Tensor)), None) or usable(None)
    evaluate_pending()
    tracer = tracer_api.current()
    if tracer is not None:
        assert isinstance(tracer, CaptureTracer)
        return function(tracer, device)
    tracer = CaptureTracer(device, False)
    return hold_captures(tracer_api.run_traced, (tracer, function, tracer, device))


def _place_of_bound(tracer: CaptureTracer, bound: int | Tensor) -> int | Place:
    """Return an int bound itself; evaluate a tensor as int64 and return its place."""
    if isinstance(bound, int):
        return bound
    e = apply(ops.COPY, (bound.reshape(()).astype(int64),))._expr
    run.evaluate([e])
    return tracer.locate_live(e)


def _contiguous(t: Tensor) -> Expr:
    """Evaluate a tensor and return its leaf, or that of a copy if it is not contiguous."""
    e = evaluate_leaf(t)
    return e if t.is_contiguous() else _copy(e)


def _copy(e: Expr) -> Expr:
    """Copy a leaf to new memory now, as the tracer's work, and return the leaf of the copy."""
    e = apply(ops.COPY, (create_tensor(e),))._expr
    run.evaluate([e])
    return e


def _row_spec(s: Spec) -> Spec:
    """Return a spec without its first axis."""
    return spec(s.shape[1:], s.dtype, s.device)


def _locate_rows(tracer: CaptureTracer, e: Expr) -> ScannedRows:
    """Return the place of the first row of a leaf, and the bytes of a row."""
    row = _row_spec(e.spec)
    return ScannedRows(tracer.locate(e), row.size * row.dtype.itemsize)


def _capture_copy(device: Device, s: Spec) -> CapturedProgram:
    """Capture the program that copies an input of this spec to its one result."""
    tracer = CaptureTracer(device, True)
    e = tracer_api.run_traced(tracer, lambda: _copy(tracer.placeholder(s)))
    return tracer.program([tracer.locate(e)])
