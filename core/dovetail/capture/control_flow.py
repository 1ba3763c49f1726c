"""Loops and branches for captured functions: `fori_loop`, `while_loop`, `cond`, `scan`.

Names and meaning are those of JAX. A body is captured once, so its arguments and results are
tensors, and its writes in place happen in each iteration. If that is impossible, a loop of known
length runs iteration by iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar, TypeVarTuple

import numpy as np

from .. import callbacks
from ..argument_checks import flag, integer
from ..argument_checks import function as callable_
from ..declarations import public
from ..dtypes import int64
from ..engine import tracer_api
from ..engine.tracer_api import BatchTracer, UnrolledLoop
from ..errors import DTypeError, GradientError, ShapeError
from ..functions.creation.constructors import arange
from ..settings import current
from ..tensor.c_fields import is_strided, set_class
from ..tensor.tensor import Tensor
from .batched_loops import batch_tracer, run_loop, run_while
from .captured_loops import capture_cond
from .closures import ClosureSnapshot
from .iterations import (
    LoopSpec,
    branches_of_examples,
    convert_to_while,
    is_any_taped,
    is_mapping,
    run_unrolled,
    run_unrolled_while,
)
from .pytree import FlatTree, flatten, rebuild, tensor_leaves
from .tracer import CaptureTracer

# Tensors and numbers, or containers of them: the carry, a row of xs, a row of ys; and any arguments
# and results.
C = TypeVar("C")
X = TypeVar("X")
Y = TypeVar("Y")
R = TypeVar("R")
Ts = TypeVarTuple("Ts")

__all__ = ["cond", "fori_loop", "scan", "while_loop"]

# The loops of the function that `frontend.traced_value` is tracing; None outside of a trace.
number_loops: ContextVar[Any] = ContextVar("dovetail loops of numbers", default=None)


@public(widen=False)
def fori_loop(
    lower: int | Tensor, upper: int | Tensor, body: Callable[[Tensor, C], C], init: C
) -> C:
    """Return the last carry of `carried = body(i, carried)` for i = lower, ..., upper - 1.

    - `lower`, `upper`: the first index, and the one after the last: ints, or tensors of one, which
      the host reads.
    - `body`: a function of the index, an int64 tensor of no dimensions, and of the carry. It gives
      the next carry: the same containers, with tensors of the same shapes and dtypes.
    - `init`: the first carry: tensors and numbers, or containers of them. The loop works on a copy
      of it, so `init` keeps its values.

    Shapes: those of `init`.
    Dtypes: those of `init`; Python numbers become tensors.
    Gradient: through each round, where `lower` and `upper` are ints.
    Raises: ShapeError, DTypeError where the body gives something else; CaptureError where it asks
    for values; GradientError where gradients flow through a loop of unknown length.
    See also: `scan`, `while_loop`, `jit`.

    >>> import dovetail as dt
    >>> x = dt.ones(2)
    >>> dt.fori_loop(0, 3, lambda i, x: x * 2 + i, x).tolist()
    [12.0, 12.0]
    """
    name = "fori_loop"
    callable_(name, body, "body")
    if (own := number_loops.get()) is not None:
        in_kernel: C = own.fori_loop(lower, upper, body, init)
        return in_kernel
    bounds = _validate_bound(name, lower, "lower"), _validate_bound(name, upper, "upper")
    carry = tensor_leaves(name, init)
    kind = _find_class(carry.leaves)
    of_class = _keep_class(kind, body)
    loop = LoopSpec(
        name, lambda i, c, x: (of_class(i, c), ()), carry, bounds=bounds, is_indexed=True
    )
    result: C = _set_classes(kind, _run(loop)[0])
    return result


@public(widen=False)
def while_loop(cond: Callable[[C], object], body: Callable[[C], C], init: C) -> C:
    """Return the last carry of `carried = body(carried)`, repeated while `cond(carried)` is true.

    - `cond`: a function of the carry that gives a bool, a tensor of one element, which the host
      reads in each round.
    - `body`: a function from the carry to the next one, as for `fori_loop`.
    - `init`: the first carry. The loop works on a copy of it, so `init` keeps its values.

    Shapes: those of `init`.
    Dtypes: those of `init`; Python numbers become tensors.
    Raises: ShapeError, DTypeError where the body gives something else; CaptureError where it asks
    for values; GradientError where gradients would flow through it: see `scan` and `fori_loop`.
    See also: `fori_loop`, `scan`, `cond`.

    >>> import dovetail as dt
    >>> x = dt.ones(())
    >>> dt.while_loop(lambda x: x < 100, lambda x: x * 2, x).item()
    128.0
    """
    name = "while_loop"
    callable_(name, cond, "cond"), callable_(name, body, "body")
    if (own := number_loops.get()) is not None:
        own.refuse(name)
    carry = tensor_leaves(name, init)
    kind = _find_class(carry.leaves)
    functions = _keep_class(kind, cond), _keep_class(kind, body)
    with suppress(UnrolledLoop):
        if not (current().grad and is_any_taped(carry.leaves)):
            result: C = _set_classes(kind, run_while(name, *functions, carry))
            return result
    if is_mapping():
        mapped: C = _set_classes(kind, run_unrolled_while(name, *functions, carry))
        return mapped
    raise GradientError(
        f"{name}: gradients cannot flow through a loop of unknown length; use dt.fori_loop or "
        "dt.scan, or run it under dt.no_grad()"
    )


@public(widen=False)
def cond(
    pred: object, true_fn: Callable[[*Ts], R], false_fn: Callable[[*Ts], R], *operands: *Ts
) -> R:
    """Return `true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`.

    Within `dt.vmap` both run, and each example takes the result and the writes of its own branch.

    - `pred`: a bool, or a tensor of one element, which the host reads.
    - `true_fn`, `false_fn`: functions of `operands`. In a captured function both are captured, and
      must return the same containers with tensors of the same shapes and dtypes; one of them runs.
    - `operands`: the arguments of both functions, of any type.

    Shapes: any.
    Dtypes: all.
    Gradient: through the one that runs; none inside a captured function.
    Raises: ShapeError, DTypeError where the two give something else in a captured function;
    GradientError where gradients would flow through it there.
    See also: `where`, which chooses by element, `while_loop`, `jit`.

    >>> import dovetail as dt
    >>> x = dt.ones(2)
    >>> dt.cond(x.sum() > 1, lambda x: x * 2, lambda x: -x, x).tolist()
    [2.0, 2.0]
    """
    name = "cond"
    callable_(name, true_fn, "true_fn"), callable_(name, false_fn, "false_fn")
    if isinstance(pred, (Tensor, np.ndarray)) and pred.size != 1:
        raise ShapeError(f"{name}: pred must be one bool, got shape {pred.shape}; use dt.where")
    branches = partial(true_fn, *operands), partial(false_fn, *operands)
    if isinstance(pred, Tensor) and (
        tracer_api.is_batched(pred._expr) or batch_tracer() is not None
    ):
        return branches_of_examples(name, pred, *branches)
    if not isinstance(pred, Tensor) or tracer_api.current() is None or is_mapping():
        return true_fn(*operands) if pred else false_fn(*operands)
    kind = _find_class([pred, *flatten(operands).leaves])
    return _set_classes(kind, capture_cond(pred, *branches))


@public(widen=False)
def scan(
    f: Callable[[C, X], tuple[C, Y]],
    init: C,
    xs: X | None = None,
    length: int | None = None,
    reverse: bool = False,
) -> tuple[C, Y]:
    """Return the last carry of `f`, and the stacked outputs of its iterations.

    - `f`: takes the carry and a part of `xs`, and gives `(carry, y)`.
    - `init`: the first carry. The loop works on copies of `init` and `xs`.
    - `xs`: tensors, or containers of them, of which `f` gets one part after the other along the
      first axis; None gives None to `f`, `length` times.
    - `length`: the number of iterations; None takes the size of the first axis of `xs`.
    - `reverse`: True begins with the last part.

    Shapes: what is carried has those of `init`, what is stacked a first axis of that length.
    Dtypes: those of `init` and of what `f` gives; Python numbers become tensors.
    Gradient: through each round.
    Raises: ShapeError, DTypeError where what is carried changes, or the lengths differ;
    CaptureError where `f` asks for values.
    See also: `fori_loop`, `while_loop`, `jit`.

    >>> import dovetail as dt
    >>> x = dt.asarray([1.0, 2.0, 3.0])
    >>> total, sums = dt.scan(lambda c, x: (c + x, c + x), dt.zeros(()), x)
    >>> total.item(), sums.tolist()
    (6.0, [1.0, 3.0, 6.0])
    """
    name = "scan"
    callable_(name, f, "f")
    if (own := number_loops.get()) is not None:
        own.refuse(name)
    reverse = flag(name, reverse, "reverse")
    rows = tensor_leaves(name, xs)
    carry = tensor_leaves(name, init, rows.leaves[0] if rows.leaves else None)
    n = _common_length(name, rows, length)
    if not n:
        raise ShapeError(
            f"{name}: length must be at least 1, got 0; without a round the result of f is unknown"
        )
    kind = _find_class([*carry.leaves, *rows.leaves])
    of_class = _keep_class(kind, f)
    loop = LoopSpec(name, lambda i, c, x: of_class(c, x), carry, rows, (0, n), reverse)
    result: tuple[C, Y] = _set_classes(kind, _run(loop))
    return result


# --- how a loop is run


def _run(loop: LoopSpec) -> tuple[Any, Any]:
    """Run a `fori_loop` or `scan`, unrolled if need be; return (carry, ys).

    Raises: GradientError for gradients through a loop with bounds that are tensors.
    """
    length, is_eager = loop.length(), current().eager
    if not is_eager or (length is None and isinstance(tracer_api.current(), CaptureTracer)):
        with suppress(UnrolledLoop):
            if not loop.is_taped:
                return run_loop(loop)
        if length and not is_eager:
            with suppress(UnrolledLoop):
                return _run_taped(loop)
    if length is not None:
        return run_unrolled(loop)
    if any(tracer_api.is_batched(b._expr) for b in loop.bounds if isinstance(b, Tensor)):
        return run_unrolled_while(loop.name, *convert_to_while(loop))[1], ()
    if not is_eager and (not is_mapping() or (tracer_api.is_captured() and loop.is_taped)):
        raise _tensor_bounds_error(loop.name)
    result = run_unrolled(loop)
    if not is_mapping() and is_any_taped(flatten(result).leaves):
        raise _tensor_bounds_error(loop.name)
    return result


def _tensor_bounds_error(name: str) -> GradientError:
    """Return the error for gradients of a loop with tensor bounds; the caller raises it."""
    return GradientError(f"{name}: the bounds must be ints for a loop with gradients, got a tensor")


def _run_taped(loop: LoopSpec, closure: Sequence[Tensor] | None = None) -> tuple[Any, Any]:
    """Run a captured loop with gradients as one loop; return (carry, ys).

    `closure`: the tensors with gradients that the body reads from its closure.
    Raises: UnrolledLoop outside of a capture, if no gradient flows, and if it cannot be one loop.
    """
    if not tracer_api.is_captured():
        raise UnrolledLoop
    snapshot = ClosureSnapshot(loop.name, loop.body)
    if closure is None:
        taped = [t for t in snapshot.tensors if t._expr.tape is not None]
        closure = [*{t._expr.tape: t for t in taped}.values()]
    if not (closure or loop.is_taped):
        raise UnrolledLoop
    xs, trees, reads = loop.xs.leaves, list[FlatTree](), set[int]()
    if loop.is_indexed:
        xs = [arange(*loop.bounds, dtype=int64, device=loop.device)]

    def body(c: list[Tensor], x: list[Tensor], loop: LoopSpec = loop) -> tuple[list[Tensor], Any]:
        """Run the loop's body on leaves; store the tree of the ys in `trees`."""
        after, ys = loop.run_body(*(x[0], c, []) if loop.is_indexed else (None, c, x))
        trees[:] = [FlatTree((), ys.tree)]  # without the tensors, which have no values
        return after, ys.leaves

    def rerun(c: list[Tensor], x: list[Tensor]) -> tuple[list[Tensor], Any]:
        """Run the body with the closure of that time. Raises: GradientError if it changed."""
        snapshot.require_unchanged()
        return body(c, x, loop._replace(body=snapshot.function()))

    def closure_reads() -> list[Tensor]:
        """Return the tensors without gradients that the loop read.

        Raises: UnrolledLoop if the closure has changed.
        """
        if snapshot.find_change() is not None:
            raise UnrolledLoop
        untaped = [t for t in snapshot.tensors if t._expr.tape is None]
        return [t for t in untaped if _slot_of(t) in reads]

    length = loop.length()
    assert length is not None
    after, ys = callbacks.tapes.run_loop(
        partial(_run_leaves, loop.name, reads),
        body,
        rerun,
        loop.carry.leaves,
        xs,
        length,
        loop.is_reversed,
        closure,
        closure_reads,
    )
    return rebuild(loop.carry, after), rebuild(trees[0], ys)


def _run_leaves(
    name: str,
    reads: set[int],
    body: tracer_api.LoopBody,
    carry: Sequence[Tensor],
    xs: Sequence[Tensor],
    length: int,
    reverse: bool,
    closure: Sequence[Tensor] | None = None,
) -> tuple[list[Tensor], list[Tensor]]:
    """Run a loop on lists of leaves; without a closure fill `reads`, or raise UnrolledLoop.

    This is a `tracer_api.Scan`. Without a closure it is `run_loop`. With one, a loop that cannot be
    one loop runs iteration by iteration.
    """
    loop = LoopSpec(
        name,
        lambda i, c, x: body(c, x),
        flatten([*carry]),
        flatten([*xs]),
        (0, length),
        reverse,
    )
    if closure is None:
        return run_loop(loop, reads)
    with suppress(UnrolledLoop):
        return _run_taped(loop, closure) if loop.is_taped else run_loop(loop)
    return run_unrolled(loop)


def _slot_of(t: Tensor) -> int | None:
    """Return the slot of a tensor's memory in the nearest captured program; None if unknown."""
    tracer = tracer_api.current()
    if isinstance(tracer, CaptureTracer):
        return tracer.find_slot(t._expr.storage)
    assert isinstance(tracer, BatchTracer)
    of_all = tracer.full_batch(t) if tracer.is_batched_tensor(t) else t
    slot: int | None = tracer.run_outside(partial(_slot_of, of_all))
    return slot


# --- arguments


def _find_class(values: Sequence[object]) -> type[Tensor]:
    """Return the class of strided tensors among values: the first subclass of Tensor, or Tensor."""
    return next((type(t) for t in values if is_strided(t) and type(t) is not Tensor), Tensor)


def _set_classes(kind: type[Tensor], values: R) -> R:
    """Give the strided tensors in containers a class, in place, and return the containers."""
    if kind is not Tensor:
        for leaf in flatten(values).leaves:
            if type(leaf) is Tensor:
                set_class(leaf, kind)
    return values


def _keep_class(kind: type[Tensor], function: Callable[..., R]) -> Callable[..., R]:
    """Return a function whose arguments, tensors in containers, are of a class."""
    if kind is Tensor:
        return function
    return lambda *args: function(*_set_classes(kind, args))


def _validate_bound(name: str, value: int | Tensor, what: str) -> int | Tensor:
    """Return an int, or a tensor of one integer itself.

    Raises: DTypeError for another tensor, else ArgumentTypeError.
    """
    if not isinstance(value, Tensor):
        return integer(name, value, what)
    if value.size != 1 or not value.dtype.is_integer:
        raise DTypeError(f"{name}: {what} must be one integer, got {value._expr.spec!r}")
    return value


def _common_length(name: str, xs: FlatTree, length: int | None) -> int:
    """Return the length of the first axes of `xs` and of `length`. Raises: ShapeError if unequal.

    ShapeError is also for a tensor without axes, and if there are no lengths.
    """
    lengths = {x.shape[0] if x.ndim else -1 for x in xs.leaves}
    if length is not None:
        lengths.add(integer(name, length, "length", 0))
    if len(lengths) != 1 or -1 in lengths:
        what = "a tensor without axes" if -1 in lengths else f"lengths {sorted(lengths)}"
        raise ShapeError(
            f"{name}: xs must be tensors with the same first axis, equal to length if given, got "
            f"{what if lengths else 'neither xs nor length'}"
        )
    return lengths.pop()
