"""Loops and branches that a captured function may have: `fori_loop`, `while_loop`, `cond`, `scan`.

Names and meaning are JAX's. Bodies are captured, so they get tensors and give tensors; what a body
writes in place is written in each round. Where gradients flow through a loop whose length is known,
its rounds are recorded one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

from ..arguments import flag, integer, named, shown
from ..arguments import function as callable_
from ..device import Device, default_device, usable
from ..dtypes import bool_, int64, uint8
from ..engine import evaluate as run
from ..engine import recording
from ..engine.recording import BatchTracer, UnrolledLoop
from ..errors import CaptureError, DTypeError, GradientError, ShapeError
from ..functions.copies import stack
from ..functions.creation import arange
from ..graph.expr import Expr, Spec, spec, storage_of
from ..ops import table as ops
from ..settings import Switch, current
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply
from .batched_loops import (
    batch_tracer,
    rounds_of_examples,
    scan_of_examples,
    while_of_examples,
)
from .closures import Snapshot
from .forms import Branch, Carried, Part, Repeat, Scanned, While
from .program import Place, Program
from .pytree import Flat, flattened, rebuilt, tensor_leaves
from .rounds import (
    branches_of_examples,
    carried_on,
    copied,
    first,
    index,
    is_of_examples,
    many_rounds,
    many_while,
    pair,
    rounds,
    separated,
    truth_of,
)
from .tracer import Recorder, evaluate_pending, recorded_by

# Tensors and numbers, or containers of them: what is carried, parts of what is scanned, what a
# round gives; and any arguments and results.
C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

__all__ = ["cond", "fori_loop", "scan", "while_loop"]

# What loops are while a function of numbers is traced (`own.element`); None where none is.
of_numbers: ContextVar[Any] = ContextVar("dovetail loops of numbers", default=None)

# --- the four -------------------------------------------------------------------------------------


@named(widen=False)
def fori_loop(
    lower: int | Tensor, upper: int | Tensor, body: Callable[[Tensor, C], C], init: C
) -> C:
    """Return what is carried after `body(i, carried)` for i = lower, ..., upper - 1.

    `init`: what is carried first. The loop works on a copy of it, so `init` keeps its values.
    `lower`, `upper`: ints, or tensors of one, which the host reads. `body`: a function of the
    index, an int64 tensor of no dimensions, and of what is carried: tensors and numbers, or
    containers of them. It gives the same containers, with tensors of the same shapes and dtypes.
    Shapes: those of `init`.
    Dtypes: those of `init`; Python numbers become tensors.
    Gradient: through each round, where `lower` and `upper` are ints.
    Raises: ShapeError, DTypeError where the body gives something else; CaptureError where it asks
    for values; GradientError where gradients flow through a loop of unknown length.

    >>> import dovetail as dt
    >>> x = dt.ones(2, device="reference")
    >>> dt.fori_loop(0, 3, lambda i, x: x * 2 + i, x).tolist()
    [12.0, 12.0]
    """
    name = "fori_loop"
    callable_(name, body, "body")
    if (own := of_numbers.get()) is not None:
        in_kernel: C = own.fori_loop(lower, upper, body, init)
        return in_kernel
    bounds = [_bound(name, n, k) for k, n in (("lower", lower), ("upper", upper))]
    carried = tensor_leaves(name, init)
    known = [b for b in bounds if isinstance(b, int)]
    if (tracer := batch_tracer()) is not None:
        with suppress(UnrolledLoop):
            repeat, go_on = partial(_repeat_at_once, name), partial(_go_on_at_once, name)
            return rounds_of_examples(name, tracer, body, carried, bounds, repeat, go_on)
    if len(known) == 2 and known[0] < known[1] and recording.is_captured() and not current().eager:
        with suppress(UnrolledLoop):
            return _fori_taped(name, body, carried, known[0], known[1])
    if is_of_examples():
        return many_rounds(name, body, carried, lower, upper)
    if current().eager and recording.current() is None:  # the host reads the bounds
        result = rounds(name, body, carried, range(int(lower), int(upper)))
        if any(t._expr.tape is not None for t in flattened(result).leaves):
            _require_ints(name, bounds)
        return result
    if _is_plain(carried) and len(known) == 2:
        return rounds(name, body, carried, range(known[0], known[1]))
    with suppress(UnrolledLoop):
        return _repeat_at_once(name, body, carried, bounds)
    _require_ints(name, bounds)
    return rounds(name, body, carried, range(known[0], known[1]))


@named(widen=False)
def while_loop(cond: Callable[[C], object], body: Callable[[C], C], init: C) -> C:
    """Return what is carried after `body(carried)` as long as `cond(carried)` is true.

    `init`: what is carried first. The loop works on a copy of it, so `init` keeps its values.
    `cond`: a function of what is carried that gives a bool, a tensor of one element, which the host
    reads in each round. `body`: a function that gives what is carried next, as for `fori_loop`.
    Shapes: those of `init`.
    Dtypes: those of `init`; Python numbers become tensors.
    Raises: ShapeError, DTypeError where the body gives something else; CaptureError where it asks
    for values; GradientError where gradients would flow through it: see `scan` and `fori_loop`.

    >>> import dovetail as dt
    >>> x = dt.ones((), device="reference")
    >>> dt.while_loop(lambda x: x < 100, lambda x: x * 2, x).item()
    128.0
    """
    name = "while_loop"
    callable_(name, cond, "cond"), callable_(name, body, "body")
    if (own := of_numbers.get()) is not None:
        own.refuse(name)
    carried = tensor_leaves(name, init)
    if (tracer := batch_tracer()) is not None:
        with suppress(UnrolledLoop):
            go_on = partial(_go_on_at_once, name)
            return while_of_examples(name, tracer, cond, body, carried, go_on)
    if is_of_examples():
        return many_while(name, cond, body, carried)
    if not any(t._expr.tape is not None for t in _recorded(carried)):
        with suppress(UnrolledLoop):
            return _go_on_at_once(name, cond, body, carried)
    raise GradientError(
        f"{name}: no gradients flow through a loop of unknown length; use dt.fori_loop or "
        "dt.scan, or dt.no_grad()"
    )


@named(widen=False)
def cond(
    pred: object, true_fn: Callable[[*Ts], R], false_fn: Callable[[*Ts], R], *operands: *Ts
) -> R:
    """Return `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    `pred`: a bool, or a tensor of one element, which the host reads when it is known. `true_fn`,
    `false_fn`: functions of `operands`, whatever these are. In a captured function both are
    captured, and give the same containers with tensors of the same shapes and dtypes; one of them
    runs. Within `dt.vmap` both run, and each example takes the result and the writes of its own.
    See `dt.where` for a choice by element.
    Shapes: any.
    Dtypes: all.
    Gradient: through the one that runs; none inside a captured function.
    Raises: ShapeError, DTypeError where the two give something else in a captured function;
    GradientError where gradients would flow through it there.

    >>> import dovetail as dt
    >>> x = dt.ones(2, device="reference")
    >>> dt.cond(x.sum() > 1, lambda x: x * 2, lambda x: -x, x).tolist()
    [2.0, 2.0]
    """
    name = "cond"
    callable_(name, true_fn, "true_fn"), callable_(name, false_fn, "false_fn")
    if isinstance(pred, (Tensor, np.ndarray)) and pred.size != 1:
        raise ShapeError(f"{name}: pred is one bool, not of shape {pred.shape}; see dt.where")
    recorder = recording.current()
    if isinstance(pred, Tensor) and recording.batches(pred._expr):
        return branches_of_examples(
            name, pred, partial(true_fn, *operands), partial(false_fn, *operands)
        )
    if not isinstance(pred, Tensor) or recorder is None or is_of_examples():
        return true_fn(*operands) if pred else false_fn(*operands)
    assert isinstance(recorder, Recorder)
    truth = truth_of(pred)
    evaluate_pending()
    run.evaluate([truth])
    place = recorder.needed(truth)
    branches = [
        _Branch(name, recorder, truth.spec.device, partial(f, *operands))
        for f in (true_fn, false_fn)
    ]
    made: R = _chosen(name, recorder, place, *branches)
    return made


@named(widen=False)
def scan(
    f: Callable[[C, X], tuple[C, Y]], init: C, xs: X | None = None,
    length: int | None = None, reverse: bool = False,
) -> tuple[C, Y]:  # fmt: skip
    """Return what `f` carried in the end, and stacked what each iteration gave.

    `f`: takes what is carried and a part of `xs`, and gives `(carried, y)`. `init`: what is carried
    first. The loop works on copies of `init` and `xs`.
    `xs`: tensors, or containers of them, of which `f` gets one part after the other along the first
    axis; None gives None to `f`, `length` times. `reverse`: True begins with the last part.
    Shapes: what is carried has those of `init`, what is stacked a first axis of that length.
    Dtypes: those of `init` and of what `f` gives; Python numbers become tensors.
    Gradient: through each round.
    Raises: ShapeError, DTypeError where what is carried changes, or the lengths differ;
    CaptureError where `f` asks for values.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0, 3.0], device="reference")
    >>> total, sums = dt.scan(lambda c, x: (c + x, c + x), dt.zeros((), device="reference"), x)
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    name = "scan"
    callable_(name, f, "f")
    if (own := of_numbers.get()) is not None:
        own.refuse(name)
    reverse = flag(name, reverse, "reverse")
    parts = tensor_leaves(name, xs)
    like = parts.leaves[0] if parts.leaves else None
    carried = tensor_leaves(name, init, like)
    n = _common_length(name, parts, length)
    return _run_scan(name, f, carried, parts, n, reverse)


# --- the way in -----------------------------------------------------------------------------------


def _bound(name: str, value: int | Tensor, what: str) -> int | Tensor:
    if not isinstance(value, Tensor):
        return integer(name, value, what)
    if value.size != 1 or not value.dtype.is_integer:
        raise DTypeError(f"{name}: {what} is one integer, not {value._expr.spec!r}")
    return value


def _require_ints(name: str, bounds: Sequence[int | Tensor]) -> None:
    if any(isinstance(b, Tensor) for b in bounds):
        raise GradientError(f"{name}: gradients flow through it, so its bounds must be ints")


def _recorded(*flats: Flat) -> list[Tensor]:
    """The tensors, where gradients are recorded."""
    return [t for flat in flats for t in flat.leaves] if current().grad else []


def _is_plain(flat: Flat) -> bool:
    """Whether rounds are to be done one by one: gradients flow, or each op runs at once."""
    if is_of_examples() or current().eager:
        return True
    return any(t._expr.tape is not None for t in _recorded(flat))


def _run_scan(
    name: str, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat, n: int, reverse: bool,
) -> tuple[C, Y]:  # fmt: skip
    """Run a scan as one loop if it can be one, else iteration by iteration."""
    if not n or current().eager:
        return _steps(name, f, carried, parts, n, reverse)
    if not any(t._expr.tape is not None for t in _recorded(carried, parts)):
        with suppress(UnrolledLoop):
            return _scan_untaped(name, f, carried, parts, n, reverse)
    with suppress(UnrolledLoop):
        return _scan_taped(name, f, carried, parts, n, reverse)
    return _steps(name, f, carried, parts, n, reverse)


def _scan_untaped(
    name: str, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat, n: int, reverse: bool,
    reads: set[int] | None = None,
) -> tuple[C, Y]:  # fmt: skip
    """Run a scan without gradients as one loop.

    `reads`: gets the slots of the outer program that it reads, and must not write.
    Raises: UnrolledLoop.
    """
    tracer = batch_tracer()
    at_once = partial(_scan_at_once, name, n=n, reverse=reverse, reads=reads)
    if tracer is not None:
        return scan_of_examples(name, tracer, f, carried, parts, at_once)
    if is_of_examples():
        raise UnrolledLoop
    return at_once(f, carried, parts)


def _scan_taped(
    name: str, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat, n: int, reverse: bool,
    closure: Sequence[Tensor] | None = None,
) -> tuple[C, Y]:  # fmt: skip
    """Run a scan through which gradients flow as one loop, in a capture. Raises: UnrolledLoop."""
    if not recording.is_captured() or recording.tapes is None:
        raise UnrolledLoop
    snapshot = Snapshot(name, f)
    if closure is None:
        found = [t for t in snapshot.tensors if t._expr.tape is not None]
        closure = [*{t._expr.tape: t for t in found}.values()]
    if not (closure or _recorded(carried, parts)):
        raise UnrolledLoop
    trees, reads = list[Flat](), set[int]()

    def body(
        c: list[Tensor], x: list[Tensor], f: Callable[[C, X], tuple[C, Y]] = f
    ) -> tuple[list[Tensor], Sequence[Tensor]]:
        value, y = pair(name, f(rebuilt(carried, c), rebuilt(parts, x)))
        ys = tensor_leaves(name, y, first(carried))
        trees[:] = [Flat((), ys.tree)]
        return carried_on(name, carried, value), ys.leaves

    def again(c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], Sequence[Tensor]]:
        snapshot.require_unchanged()
        return body(c, x, snapshot.function())

    def watched() -> list[Tensor]:
        if snapshot.changed() is not None:
            raise UnrolledLoop
        untaped = [t for t in snapshot.tensors if t._expr.tape is None]
        return [t for t in untaped if _slot_of(t) in reads]

    after, ys = recording.tapes.run_loop(
        partial(_scan_leaves, name, reads), body, again, carried.leaves, parts.leaves, n, reverse,
        closure, watched,
    )  # fmt: skip
    return rebuilt(carried, after), rebuilt(trees[0], ys)


def _slot_of(t: Tensor) -> int | None:
    """Return the slot of the outermost program in which a tensor's memory is, if it is known."""
    tracer = recording.current()
    if isinstance(tracer, Recorder):
        return tracer.known_slot(t._expr.storage)
    assert isinstance(tracer, BatchTracer)
    found: int | None = tracer.outside(partial(_slot_of, tracer.all(t) if tracer.differs(t) else t))
    return found


def _fori_taped(
    name: str, body: Callable[[Tensor, C], C], carried: Flat, lower: int, upper: int
) -> C:
    """Run a `fori_loop` through which gradients flow as a scan. Raises: UnrolledLoop."""
    device = carried.leaves[0].device if carried.leaves else default_device()
    indices = arange(lower, upper, dtype=int64, device=device)

    def step(c: C, i: Tensor) -> tuple[C, tuple[()]]:
        return body(i, c), ()

    value: C = _scan_taped(name, step, carried, flattened(indices), upper - lower, False)[0]
    return value


def _scan_leaves(
    name: str, reads: set[int], body: recording.LoopBody, carry: Sequence[Tensor],
    xs: Sequence[Tensor], length: int, reverse: bool, closure: Sequence[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:  # fmt: skip
    """See `recording.Scan`. With a closure it may be run iteration by iteration."""
    flats = flattened([*carry]), flattened([*xs])
    if closure is None:
        return _scan_untaped(name, body, *flats, length, reverse, reads)
    if any(t._expr.tape is not None for t in _recorded(*flats)):
        with suppress(UnrolledLoop):
            return _scan_taped(name, body, *flats, length, reverse, closure)
    else:
        with suppress(UnrolledLoop):
            return _scan_untaped(name, body, *flats, length, reverse)
    return _steps(name, body, *flats, length, reverse)


def _steps(
    name: str, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat, n: int, reverse: bool
) -> tuple[C, Y]:
    """Run a scan of which each iteration is an ordinary piece of the program."""
    leaves, xs = copied(carried.leaves), copied(parts.leaves)
    ys: list[Flat] = []
    for k in range(n - 1, -1, -1) if reverse else range(n):
        value, y = pair(name, f(rebuilt(carried, leaves), rebuilt(parts, [x[k] for x in xs])))
        after, flat = carried_on(name, carried, value), tensor_leaves(name, y, first(carried))
        y_leaves, tree = [*flat.leaves], flat.tree
        del value, y, flat  # references that `separated` would count
        leaves = separated(after, leaves)
        ys.append(Flat(separated(y_leaves), tree))
    if not ys:
        raise ShapeError(f"{name}: over no parts at all, so that what f gives is not known")
    ys = ys[::-1] if reverse else ys
    columns = [stack([m.leaves[k] for m in ys]) for k in range(len(ys[0].leaves))]
    return rebuilt(carried, leaves), rebuilt(ys[0], columns)


def _repeat_at_once(
    name: str, body: Callable[[Tensor, C], C], carried: Flat, bounds: Sequence[int | Tensor]
) -> C:
    """Run a loop whose body is captured. Raises: UnrolledLoop where gradients flow through it."""
    with _recorder(carried, *bounds) as (recorder, device):
        loop = _Loop(name, recorder, device, carried)
        part = loop.captured(lambda i, xs, c: (body(i, c), ()), indexed=True)
        made: C = loop.repeated(part, [_length(recorder, b) for b in bounds], False)[0]
        return made


def _go_on_at_once(
    name: str, condition: Callable[[C], object], body: Callable[[C], C], carried: Flat
) -> C:
    """Run a loop of unknown length. Raises: UnrolledLoop where gradients flow through it."""
    with _recorder(carried) as (recorder, device):
        loop = _Loop(name, recorder, device, carried)
        part = loop.captured(lambda i, xs, c: (body(c), ()))
        return loop.repeated_while(condition, part)


def _scan_at_once(
    name: str, f: Callable[[C, X], tuple[C, Y]], carried: Flat, parts: Flat, n: int, reverse: bool,
    reads: set[int] | None = None,
) -> tuple[C, Y]:  # fmt: skip
    """Run a scan whose body is captured. Raises: UnrolledLoop where gradients flow through it."""
    with _recorder(carried, *parts.leaves) as (recorder, device):
        loop = _Loop(name, recorder, device, carried, parts)

        def step(i: Tensor, x: X, c: C) -> tuple[C, Y]:
            return f(c, x)

        part = loop.captured(step)
        if reads is not None:
            if not part.is_pure(len(carried.leaves) + len(parts.leaves)):
                raise UnrolledLoop
            reads.update(p.slot for p in part.outer)
        return loop.repeated(part, [0, n], reverse)


def _common_length(name: str, parts: Flat, length: int | None) -> int:
    found = {x.shape[0] if x.ndim else -1 for x in parts.leaves}
    if length is not None:
        found.add(integer(name, length, "length", 0))
    if len(found) != 1 or -1 in found:
        what = "have no first axis" if -1 in found else f"have lengths {sorted(found)}"
        raise ShapeError(f"{name}: xs and length {what}; give tensors of one length, or length")
    return found.pop()


@contextmanager
def _recorder(carried: Flat, *others: object) -> Iterator[tuple[Recorder, Device]]:
    """The recorder of this thread, or one for the while, and the device of a loop."""
    tensors = [x for x in (*carried.leaves, *others) if isinstance(x, Tensor)]
    device = tensors[0].device if tensors else usable(None)
    evaluate_pending()
    found = recording.current()
    if found is not None:
        assert isinstance(found, Recorder)
        yield found, device
        return
    made = Recorder(device, False)
    with recorded_by(made):
        yield made, device


def _length(recorder: Recorder, b: int | Tensor) -> int | Place:
    """A bound, or where it will be."""
    if isinstance(b, int):
        return b
    e = apply(ops.COPY, (b.reshape(()).astype(int64),))._expr
    run.evaluate([e])
    return recorder.needed(e)


# --- captured bodies ------------------------------------------------------------------------------


class Inner:
    """A piece of a program that is captured without being run."""

    def __init__(self, outer: Recorder, device: Device) -> None:
        self.outer, self.device = outer, device
        self.recorder = Recorder(device, True, outer=outer)

    def finished(
        self, tensors: Sequence[Tensor], inputs: Sequence[Expr]
    ) -> tuple[list[Place], list[bool]]:
        """Where results are.

        Each is in memory of its own, without gaps, or is what was given in the same position.
        """
        pending = [t._expr for t in tensors]
        if pending:
            run.evaluate(pending)
        found: list[Place] = []
        same: list[bool] = []
        for k, t in enumerate(tensors):
            e = evaluated(t)
            p = self.recorder.place(e)
            own = e.offset == 0 and e.strides == e.spec.strides
            is_same = k < len(inputs) and own and storage_of(e) is storage_of(inputs[k])
            taken = {x.slot for x in found}
            if not is_same and not (own and self._is_new(p, e) and p.slot not in taken):
                e = _copied(e)
                p = self.recorder.place(e)
            found.append(p)
            same.append(is_same)
        return found, same

    def _is_new(self, p: Place, e: Expr) -> bool:
        size = self.recorder.sizes.get(p.slot)
        return size == e.spec.size * e.spec.dtype.itemsize and p.slot not in self.recorder.held

    def part(self, results: Sequence[Place]) -> Part:
        """What was captured, as a part of the outer program."""
        program = self.recorder.program(results)
        outer = tuple(self.recorder.from_outer.values())
        arena = None
        if program.arena:
            arena = self.outer.place(
                self.outer.allocated(spec((program.arena,), uint8, self.device))
            )
        return Part(program, outer, arena)


_DEFERRED = Switch(eager=False)  # an index that is computed at once is the same in each iteration


class _Loop:
    """A loop that is being captured, as an act of the recorder that is current."""

    def __init__(
        self, name: str, recorder: Recorder, device: Device, carried: Flat,
        parts: Flat | None = None,
    ) -> None:  # fmt: skip
        self.name, self.recorder, self.device = name, recorder, device
        self.carried, self.parts = carried, parts or Flat([], flattened(()).tree)
        self.first = [_contiguous(t) for t in carried.leaves]
        self.given = [_contiguous(t) for t in self.parts.leaves]
        self.variable: int | None = None
        self.same: list[bool] = []
        self.ys = Flat([], self.parts.tree)
        self.y_specs: list[Spec] = []

    def captured(self, step: Callable[[Tensor, X, C], tuple[C, Y]], indexed: bool = False) -> Part:
        """Return the body, of an index, the parts and what is carried.

        Raises: UnrolledLoop where gradients flow through what it gives.
        """
        inner = Inner(self.recorder, self.device)
        with recorded_by(inner.recorder), _DEFERRED if current().eager else nullcontext():
            inputs = [inner.recorder.placeholder(e.spec) for e in self.first]
            xs = [inner.recorder.placeholder(_row(e.spec)) for e in self.given]
            carried: C = rebuilt(self.carried, [make(e) for e in inputs])
            given: X = rebuilt(self.parts, list(map(make, xs)))
            made, y = pair(self.name, step(self._index(indexed), given, carried))
            results = carried_on(self.name, self.carried, made)
            self.ys = tensor_leaves(self.name, y, first(self.carried))
            tensors = [*results, *self.ys.leaves]
            if any(t._expr.tape is not None for t in tensors):
                raise UnrolledLoop
            places, same = inner.finished(tensors, inputs)
        self.same = same[: len(inputs)]
        self.y_specs = [t._expr.spec for t in self.ys.leaves]
        return inner.part(places)

    def _index(self, indexed: bool) -> Tensor:
        if not indexed:
            return index(0, self.device)
        environment = self.recorder.environment
        self.variable = environment.variable(0)
        made = index(0, self.device)
        environment.tag(made._expr.args, (self.variable,))
        return made

    def buffers(self, *parts: Part) -> tuple[list[Expr], tuple[Carried, ...]]:
        """Return what is carried after the loop, and how.

        `init` is copied if the parts write to it, by this or another name.
        """
        recorder, exprs, found = self.recorder, [], []
        for k, (e, same) in enumerate(zip(self.first, self.same, strict=True)):
            copy = _copying(self.device, e.spec)
            if same or self._is_written(k, e, parts):
                e = self.first[k] = _copied(e)
            if same:
                exprs.append(e)
                found.append(Carried(recorder.place(e), recorder.place(e), None, copy))
            else:
                a, b = recorder.allocated(e.spec), recorder.allocated(e.spec)
                exprs.append(a)
                places = [recorder.place(x) for x in (e, a, b)]
                found.append(Carried(places[0], places[1], places[2], copy))
        return exprs, tuple(found)

    def _is_written(self, position: int, e: Expr, parts: Sequence[Part]) -> bool:
        """Return True if parts write to what they are given here, as an input or from outside."""
        if any(position in p.program.written for p in parts):
            return True
        first = len(self.first) + len(self.given)
        outside = {place.slot for p in parts for place in p.written(first)}
        is_foreign = storage_of(e).overlap is not None
        return bool(outside) and (is_foreign or self.recorder.place(e).slot in outside)

    def repeated(self, part: Part, bounds: Sequence[int | Place], reverse: bool) -> tuple[Any, Any]:
        """What the loop gives."""
        recorder = self.recorder
        exprs, carried = self.buffers(part)
        for k in range(len(self.given)):
            if self._is_written(len(carried) + k, self.given[k], (part,)):
                self.given[k] = _copied(self.given[k])
        n = self.given[0].spec.shape[0] if self.given else bounds[1]
        ys = [
            recorder.allocated(spec((n, *s.shape), s.dtype, s.device, self.name))
            for s in self.y_specs
            if isinstance(n, int)
        ]
        recorder.perform(
            Repeat(
                part,
                (bounds[0], bounds[1]),
                self.variable,
                carried,
                tuple(_scanned(recorder, e) for e in self.given),
                tuple(_scanned(recorder, e) for e in ys),
                reverse,
            )
        )
        made = rebuilt(self.carried, [make(e) for e in exprs])
        return made, rebuilt(self.ys, [make(e) for e in ys])

    def repeated_while(self, condition: Callable[[C], object], part: Part) -> C:
        """What a loop gives that goes on while a condition holds."""
        inner = Inner(self.recorder, self.device)
        with recorded_by(inner.recorder):
            inputs = [make(inner.recorder.placeholder(e.spec)) for e in self.first]
            truth = condition(rebuilt(self.carried, inputs))
            if not isinstance(truth, Tensor):
                raise CaptureError(
                    f"{self.name}: cond gives {shown(truth)}, no tensor, so that it is the same in "
                    "each round; compare what is carried"
                )
            if truth.size != 1:
                raise ShapeError(f"{self.name}: cond gives one bool, not shape {truth.shape}")
            places, _ = inner.finished([make(truth_of(truth))], [])
        asked = inner.part(places)
        exprs, carried = self.buffers(asked, part)
        place = self.recorder.place(self.recorder.allocated(spec((), bool_, self.device)))
        self.recorder.perform(While(asked, place, part, carried))
        carried_on: C = rebuilt(self.carried, [make(e) for e in exprs])
        return carried_on


class _Branch:
    """One of the functions of `cond`, captured."""

    def __init__(
        self, name: str, recorder: Recorder, device: Device, function: Callable[[], object]
    ) -> None:
        inner = Inner(recorder, device)
        with recorded_by(inner.recorder):
            self.flat = tensor_leaves(name, function())
            if any(t._expr.tape is not None for t in self.flat.leaves):
                raise GradientError(
                    f"{name}: no gradients flow through it in a captured function; use dt.where"
                )
            places, _ = inner.finished(self.flat.leaves, [])
            self.specs = [t._expr.spec for t in self.flat.leaves]
        self.part = inner.part(places)


def _chosen(name: str, recorder: Recorder, truth: Place, yes: _Branch, no: _Branch) -> Any:
    if yes.flat.tree != no.flat.tree:
        raise DTypeError(
            f"{name}: true_fn gives {yes.flat.tree}, and false_fn {no.flat.tree}; they must give "
            "the same containers"
        )
    for a, b in zip(yes.specs, no.specs, strict=True):
        if a is not b:
            error = ShapeError if a.shape != b.shape else DTypeError
            raise error(f"{name}: true_fn gives {a!r} where false_fn gives {b!r}")
    exprs = [recorder.allocated(s) for s in yes.specs]
    places = tuple(recorder.place(e) for e in exprs)
    recorder.perform(Branch(truth, (yes.part, no.part), places))
    return rebuilt(yes.flat, [make(e) for e in exprs])


def _contiguous(t: Tensor) -> Expr:
    """The leaf of a tensor, in memory without gaps."""
    e = evaluated(t)
    return e if t.is_contiguous() else _copied(e)


def _copied(e: Expr) -> Expr:
    e = apply(ops.COPY, (make(e),))._expr
    run.evaluate([e])
    return e


def _row(s: Spec) -> Spec:
    return spec(s.shape[1:], s.dtype, s.device)


def _scanned(recorder: Recorder, e: Expr) -> Scanned:
    row = _row(e.spec)
    return Scanned(recorder.place(e), row.size * row.dtype.itemsize)


def _copying(device: Device, s: Spec) -> Program:
    """What copies a value of this spec."""
    recorder = Recorder(device, True)
    with recorded_by(recorder):
        e = apply(ops.COPY, (make(recorder.placeholder(s)),))._expr
        run.evaluate([e])
    return recorder.program([recorder.place(e)])
