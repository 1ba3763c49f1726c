"""Loops as data, the checks of their bodies, and loops that run iteration by iteration.

The names are those of JAX: a body takes the carry and a row of the xs, and returns the next carry
and a row of the ys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from ..argument_checks import shown
from ..device_class import Device, default_device
from ..dtypes import bool_, int64
from ..engine import tracer_api
from ..errors import ArgumentTypeError, DTypeError, ShapeError
from ..functions.shape.copies import stack
from ..graph.expr import Expr, node, spec, storage_of
from ..graph.refcount import Box, is_sole_owner
from ..ops import table as ops
from ..settings import current
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, create_tensor
from .pytree import FlatTree, rebuild, tensor_leaves
from .tracer import CaptureTracer

R = TypeVar("R")


class LoopSpec(NamedTuple):
    """A `fori_loop`, a `scan`, or the body of a `while_loop`, whose length is not known.

    `body`: of the index (None unless `is_indexed`), the carry and a row of the xs; it gives the
    next carry and a row of the ys. `bounds`: the first index and the end.
    """

    name: str
    body: Callable[[Any, Any, Any], tuple[Any, Any]]
    carry: FlatTree
    xs: FlatTree = FlatTree([], None)
    bounds: tuple[int | Tensor, int | Tensor] = (0, 0)
    is_reversed: bool = False
    is_indexed: bool = False

    @property
    def tensors(self) -> list[Tensor]:
        """The initial carry and the xs."""
        return [*self.carry.leaves, *self.xs.leaves]

    @property
    def device(self) -> Device:
        """The device of the carry, or the default device."""
        return self.carry.leaves[0].device if self.carry.leaves else default_device()

    @property
    def is_taped(self) -> bool:
        """True if gradients are on and flow through the initial carry or the xs."""
        return current().grad and is_any_taped(self.tensors)

    def length(self) -> int | None:
        """Return the number of iterations; None if a bound is a tensor."""
        low, high = self.bounds
        return max(high - low, 0) if isinstance(low, int) and isinstance(high, int) else None

    def run_body(
        self, i: Tensor | None, carry: Sequence[Tensor], row: Sequence[Tensor]
    ) -> tuple[list[Tensor], FlatTree]:
        """Call the body; return the leaves of the next carry and the row of ys, or raise.

        Raises: ArgumentTypeError, DTypeError, ShapeError, unless the body returns these.
        """
        xs = rebuild(self.xs, row) if self.xs.tree is not None else None
        result = self.body(i, rebuild(self.carry, carry), xs)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentTypeError(
                f"{self.name}: f must return a pair (carry, y), got {shown(result)}"
            )
        like = self.carry.leaves[0] if self.carry.leaves else None
        return next_carry(self.name, self.carry, result[0]), tensor_leaves(
            self.name, result[1], like
        )


def next_carry(name: str, carry: FlatTree, result: object) -> list[Tensor]:
    """Flatten a body's result; raise unless it has the carry's containers, shapes and dtypes.

    Raises: DTypeError, ShapeError.
    """
    flat = tensor_leaves(name, result, carry.leaves[0] if carry.leaves else None)
    if flat.tree != carry.tree:
        raise DTypeError(
            f"{name}: the body must return the containers of its carry, {carry.tree}, got "
            f"{flat.tree}"
        )
    for before, after in zip(carry.leaves, flat.leaves, strict=True):
        want, have = before._expr.spec, after._expr.spec
        if want is not have:
            error = ShapeError if want.shape != have.shape else DTypeError
            raise error(
                f"{name}: the body must return the shape and dtype of its carry, {want!r}, got "
                f"{have!r}; cast it with astype(), or start with the returned dtype"
            )
    return list(flat.leaves)


def is_any_taped(tensors: Sequence[Tensor]) -> bool:
    """Return True if gradients flow through one of some tensors."""
    return any(t._expr.tape is not None for t in tensors)


def index(i: int, device: Device) -> Tensor:
    """Return a pending int64 tensor without axes that holds `i`, known by its identity."""
    args = (*[i],)  # an object of its own, by which it may be known again
    return create_tensor(node(ops.FULL, args, spec((), int64, device), ((int64,), int64)))


def truth_of(pred: Tensor) -> Tensor:
    """Return `pred != 0` as a new bool tensor without axes; `pred` has one element."""
    pred = pred.reshape(())
    if pred.dtype is not bool_:
        pred = apply(ops.NOT_EQUAL, (pred, 0))
    return apply(ops.COPY, (pred,))


def is_mapping() -> bool:
    """Return True if this thread has a tracer that is no CaptureTracer, such as in `dt.vmap`."""
    return not isinstance(tracer_api.current(), CaptureTracer | None)


# --- iteration by iteration


def run_unrolled(loop: LoopSpec) -> tuple[Any, Any]:
    """Run a loop iteration by iteration, as ordinary ops; return (carry, stacked ys).

    The host reads bounds that are tensors. Without iterations the ys are ().
    """
    low, high = int(loop.bounds[0]), int(loop.bounds[1])
    carry, xs = copy_all(loop.carry.leaves), copy_all(loop.xs.leaves)
    rows = list[FlatTree]()
    for k in range(low, high)[:: -1 if loop.is_reversed else 1]:
        after, y = loop.run_body(  # a reference to the index would materialise it
            index(k, loop.device) if loop.is_indexed else None, carry, [x[k] for x in xs]
        )
        carry = copy_shared(after, carry)
        leaves, tree = [*y.leaves], y.tree
        del y  # otherwise `copy_shared` would count this reference
        rows.append(FlatTree(copy_shared(leaves), tree))
    if not rows:
        return rebuild(loop.carry, carry), ()
    rows = rows[::-1] if loop.is_reversed else rows
    ys = [stack(list(column)) for column in zip(*(row.leaves for row in rows), strict=True)]
    return rebuild(loop.carry, carry), rebuild(rows[0], ys)


def run_unrolled_while(
    name: str, condition: Callable[[Any], object], body: Callable[[Any], Any], carry: FlatTree
) -> Any:
    """Run a `while_loop` of examples until all have stopped; return the last carry.

    An example that has stopped keeps its carry, and writes nothing in place. The host reads the
    condition in each iteration.
    """
    tracer = tracer_api.current()
    assert tracer is not None
    leaves = copy_all(carry.leaves)
    active: Tensor | None = None  # None: all examples
    while True:
        with tracer_api.use_write_mask(active):
            truth = condition(rebuild(carry, leaves))
        if isinstance(truth, Tensor) and tracer_api.is_batched(truth._expr):
            truth = truth_of(truth)
            active = truth if active is None else apply(ops.LOGICAL_AND, (active, truth))
            truth = tracer.is_true_for_any(active)
        if not truth:
            return rebuild(carry, leaves)
        with tracer_api.use_write_mask(active):
            after = next_carry(name, carry, body(rebuild(carry, leaves)))
        leaves = copy_shared(after, leaves) if active is None else choose(active, after, leaves)


def branches_of_examples(
    name: str, pred: Tensor, true_fn: Callable[[], R], false_fn: Callable[[], R]
) -> R:
    """Run both branches of `cond`, and choose each result by the bool of each example.

    What a branch writes in place is written for the examples that choose it.
    Raises: DTypeError, ShapeError if the results differ in containers, dtypes or shapes.
    """
    truth = truth_of(pred)
    with tracer_api.use_write_mask(truth):
        yes = true_fn()
    flat = tensor_leaves(name, yes)
    with tracer_api.use_write_mask(apply(ops.LOGICAL_NOT, (truth,))):
        no = false_fn()
    result: R = rebuild(flat, choose(truth, flat.leaves, next_carry(name, flat, no)))
    return result


def choose(truth: Tensor, yes: Sequence[Tensor], no: Sequence[Tensor]) -> list[Tensor]:
    """Return `where(truth, a, b)` for each pair of tensors of `yes` and `no`."""
    return [apply(ops.WHERE, (truth, a, b)) for a, b in zip(yes, no, strict=True)]


def convert_to_while(
    loop: LoopSpec,
) -> tuple[Callable[[Any], Tensor], Callable[[Any], tuple[Tensor, Any]], FlatTree]:
    """Return (condition, body, carry) of a `while_loop` that does what a `fori_loop` does.

    One of the bounds is a tensor. The carry is a pair: an index and that of the `fori_loop`.
    """
    # copies, because the body may write to a bound; int64, so that the index never overflows
    low, high = (
        apply(ops.COPY, (b.reshape(()).astype(int64),)) if isinstance(b, Tensor) else b
        for b in loop.bounds
    )
    like = next(b for b in (low, high) if isinstance(b, Tensor))
    first = apply(ops.ADD, (like * 0, low))
    row = rebuild(loop.xs, ()) if loop.xs.tree is not None else None  # without tensors
    both = tensor_leaves(loop.name, (first, rebuild(loop.carry, loop.carry.leaves)))

    def condition(c: tuple[Tensor, Any]) -> Tensor:
        """Return True while the index is below the upper bound."""
        return apply(ops.LESS, (c[0], high))

    def body(c: tuple[Tensor, Any]) -> tuple[Tensor, Any]:
        """Return the next index, and the next carry of the `fori_loop`."""
        return c[0] + 1, loop.body(c[0].astype(int64), c[1], row)[0]

    return condition, body, both


# --- the memory of the carry


def copy_all(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Return copies, which a loop may write, and which other writes do not change."""
    return [apply(ops.COPY, (t,)) for t in tensors]


def copy_shared(leaves: list[Tensor], before: Sequence[Tensor] = ()) -> list[Tensor]:
    """Empty `leaves` and return its tensors; copy those whose memory has another reference.

    `before`: the inputs of the iteration; an input that it returns in the same position is not
    copied.
    """
    unshared = list[Tensor]()
    for k in range(len(leaves)):
        holder = [leaves.pop(0)]
        is_same = k < len(before) and holder[0] is before[k]
        unshared.append(holder[0] if is_same or _is_unshared(holder) else copy_all(holder)[0])
    return unshared


def _is_unshared(holder: Box[Tensor]) -> bool:
    """Return True if nothing else can write the tensor's memory."""
    if not is_sole_owner(holder):
        return False
    e: Expr = holder[0]._expr
    return e.op is not None or is_sole_owner([storage_of(e)], 1)
