"""Batching of pending work: the graph of one example becomes that of all examples.

`vmap` runs a function once, on tensors that stand for one example each (`examples`). Each node of
the graph that this leaves is rebuilt here with a leading axis of examples, by a rule for its kind
of row: elementwise rows broadcast, reductions and views move their axes by one. A node that
depends on no example stays as it is, and is computed once. Rules of kernel ops are in `kernels`;
an op without one is done example by example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from ..autograd.engine import detach
from ..autograd.tape import OpNode, TapeLeaf
from ..device_class import opened as open_device
from ..errors import TransformError
from ..functions.shape.manipulation import as_strided
from ..graph.expr import Expr, mark_index_check, node, spec, storage_of
from ..layout import ELEMENTS_MAX, Move, Shape, StridedView, contiguous
from ..layout import apply_move as moved_layout
from ..memory.storage import Storage
from ..ops import table as ops
from ..ops.table import Op
from ..settings import flags
from ..tensor.host import evaluate_leaf
from ..tensor.primitives import apply, pending_view, view
from ..tensor.tensor import Tensor, create_tensor

# A rule builds the node of all examples from that of one and its lifted arguments.
Rule: TypeAlias = Callable[["BatchMap", Expr, list[Any]], Expr]


def _raise_escaped(op: str, kinds: object, attrs: object) -> NoReturn:
    """Raise TransformError: an example cannot be computed after its function has returned."""
    raise TransformError(
        "vmap: a tensor that stands for one example cannot be read after the function has "
        "returned; return it from the function to get all examples"
    )


# The op of a placeholder for one example's value; it is looked up, not evaluated.
EXAMPLE = Op("example", "kernel", _raise_escaped, arity=0, placeholder=True)
rules: dict[Op, Rule] = {}  # of kernel ops
# For ops outside of the table: by the class of one example's tape node, a function that returns
# the node of all examples. It gets that node without a tape if it is known, and may return None.
tape_rules: dict[type, Callable[[BatchMap, Any, Expr | None], Expr | None]] = {}


class BatchMap:
    """A map from nodes of one example to those of all; a shared node maps to itself."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lifted_by_expr: dict[Expr, Expr] = {}
        self.views: dict[Expr, list[Expr]] = {}  # lifted views of each pending node
        # Memory that all examples shared until a write made it differ, with its placeholder.
        self.memory: dict[int, tuple[Storage, Expr]] = {}
        self.random_args: dict[
            int, tuple[object, tuple[Any, ...]]
        ] = {}  # by the id of the arguments
        self.example_leaves: set[Any] = set()  # leaves of examples whose tensor requires a gradient
        self.hooked_nodes: dict[
            Any, Expr
        ] = {}  # tape node of one example with hooks -> node of all
        self.functions: dict[Any, Any] = {}  # Function node of one example -> that of all
        self.sequential_ops: list[str] = []  # the ops that were done example by example

    def inherit(self, parent: BatchMap) -> None:
        """Replace the entries by copies of another map's; later changes are independent."""
        self.lifted_by_expr = {
            e: lifted for e, lifted in parent.lifted_by_expr.items() if lifted is not e
        }
        self.views = {e: [*views] for e, views in parent.views.items()}
        self.memory, self.random_args = {**parent.memory}, {**parent.random_args}
        self.example_leaves, self.hooked_nodes = {*parent.example_leaves}, {**parent.hooked_nodes}
        self.functions = {**parent.functions}

    # --- traversal

    def lift(self, e: Expr) -> Expr:
        """Return the node of all examples, cached; `e` itself if all examples share it."""
        lifted = self.lifted_by_expr.get(e)
        # A shared node that has become memory is looked up again: it may have been overwritten.
        if lifted is not None and (lifted is not e or e.op is not None):
            return lifted
        if (
            self.hooked_nodes and e.tape in self.hooked_nodes
        ):  # gradients of all uses meet at this node
            return self.hooked_nodes[e.tape]
        if e.op is None:
            source = self.source_of(e)
            if source is None:
                return self._lift_shared(e)  # memory, which may be written
            lifted = self._lift_leaf(e, source)
            self.views.setdefault(source, []).append(e)
        else:
            args = [self.lift(a) if type(a) is Expr else a for a in e.args]
            lifted = self._lift_node(e, args)
        self.lifted_by_expr[e] = lifted
        return lifted

    def source_of(self, e: Expr) -> Expr | None:
        """Return the node that stands for a leaf's memory, or None if it holds values."""
        storage = storage_of(e)
        if storage.pending is None and self.memory:
            entry = self.memory.get(id(storage))
            return None if entry is None else entry[1]
        return storage.pending

    def is_batched(self, e: Expr) -> bool:
        """Return True if a node differs between examples; lift it to find out."""
        return self.lift(e) is not e

    def replace_lifted(self, source: Expr, lifted: Expr) -> None:
        """Set a new node for a source after a write, and forget the lifted views of it."""
        self.lifted_by_expr[source] = lifted
        for e in self.views.pop(source, ()):
            del self.lifted_by_expr[e]

    def _lift_leaf(self, e: Expr, source: Expr) -> Expr:
        """Return the view of all examples for a leaf that is a view of `source`; `e` if shared."""
        lifted = self.lift(source)
        if lifted is source:
            return self._lift_shared(e)
        lifted = self.batched_view(e, source, create_tensor(lifted))._expr
        if e.tape is not None and lifted.tape is None:
            return self._lift_by_tape(e.tape, lifted)
        own = e.tape is None or (type(e.tape) is TapeLeaf and e.tape not in self.example_leaves)
        return detach(create_tensor(lifted))._expr if own and lifted.tape is not None else lifted

    def _lift_shared(self, e: Expr) -> Expr:
        """Return an unbatched leaf, or the batched result of the user-defined op on its tape."""
        return e if e.tape is None else self._lift_by_tape(e.tape, e, is_shared=True)

    def _lift_by_tape(self, tape: Any, lifted: Expr, is_shared: bool = False) -> Expr:
        """Return the batched result of the user-defined op on a tape; `lifted` if there is none."""
        moves: list[Move] = []
        while type(tape) is OpNode and tape.op is ops.VIEW and tape.edges[0] is not None:
            moves.append(tape.attrs)
            tape = tape.edges[0].node
        if type(tape) not in tape_rules:
            return lifted
        whole = tape_rules[type(tape)](self, tape, None if moves or is_shared else lifted)
        if whole is None:
            return lifted
        for m in reversed(moves):
            whole = self.view(whole, m)
        return whole

    def batched_view(self, e: Expr, source: Expr, batched: Tensor) -> Tensor:
        """Return the view of `batched` that stands for leaf `e`, a view of `source`."""
        if not _is_moved(e, source):
            return self._view_by_strides(e, source, batched)
        for m in e.moves:
            for moved in self._batch_move(batched.shape, m):
                batched = view(batched, moved)
        return batched

    def _view_by_strides(self, e: Expr, source: Expr, batched: Tensor) -> Tensor:
        """Return the view for a leaf that only strides describe, of a copy if not contiguous."""
        if evaluate_leaf(batched).offset or not batched.is_contiguous():
            batched = apply(ops.COPY, (batched,))
        strides = (source.spec.size, *e.strides)
        return as_strided(batched, (self.size, *e.spec.shape), strides, e.offset)

    def _lift_node(self, e: Expr, args: list[Any]) -> Expr:
        """Build the node of all examples by the op's rule; return `e` if no operand differs."""
        op = e.op
        assert op is not None
        if op.kind == "generate":
            return self._lift_random(e)
        if all(a is b for a, b in zip(e.args, args, strict=True)):
            return e  # an example among them: that of a function around this one
        rule = _KINDS.get(op.kind) or rules.get(op) or _rule_of_op(op)
        lifted = rule(self, e, args)
        if e.tape is None and lifted.tape is not None:  # recorded under no_grad, or detached
            if any(lifted is b for b in args):
                return detach(create_tensor(lifted))._expr
            lifted.tape = None
        if e.check_line is not None and lifted.op is not None:
            mark_index_check(lifted, e.check_line)
        return lifted

    def _lift_random(self, e: Expr) -> Expr:
        """Build a random op for all examples; return an op that draws no numbers unchanged."""
        entry = self.random_args.get(id(e.args))
        if entry is None or entry[0] is not e.args:
            return e
        return self.make_node(op_of(e), entry[1], (self.size, *e.spec.shape), e)

    # --- building blocks of rules

    def make_node(
        self, op: Op, args: Sequence[Any], shape: Shape, like: Expr, attrs: Any = None
    ) -> Expr:
        """Build a node of all examples with the device, dtype and attributes of `like`."""
        s = spec(shape, like.spec.dtype, like.spec.device)
        return limit_depth(node(op, tuple(args), s, like.attrs if attrs is None else attrs))

    def make_plain_node(self, op: Op, args: Sequence[Any], shape: Shape, like: Expr) -> Expr:
        """Build a node of all examples without attributes."""
        s = spec(shape, like.spec.dtype, like.spec.device)
        return limit_depth(node(op, tuple(args), s, None))

    def view(self, lifted: Expr, m: Move) -> Expr:
        """Apply a move of one example to a lifted node."""
        return pending_view(lifted, *self._batch_move(lifted.spec.shape, m))

    def _batch_move(self, shape: Shape, m: Move) -> list[Move]:
        """Return the moves of all examples for a move of one example; the first axis stays."""
        n = self.size
        if m[0] == "permute":
            return [("permute", (0, *(d + 1 for d in m[1])))]
        if m[0] == "slice":
            return [("slice", (0, *m[1]), (n, *m[2]), (1, *m[3]))]
        if m[0] == "reshape":
            return [("reshape", (n, *m[1]))]
        if m[0] == "expand":
            ones = (1,) * (len(m[1]) + 1 - len(shape))
            return [("reshape", (n, *ones, *shape[1:])), ("expand", (n, *m[1]))]
        return [("pad", m[1] + 1, *m[2:])]

    def pad_to_rank(self, one: Expr, lifted: Expr, rank: int) -> Expr:
        """Return a lifted operand with unit axes up to `rank`; a shared one is unchanged."""
        if lifted is one or len(one.spec.shape) == rank:
            return lifted
        ones = (1,) * (rank - len(one.spec.shape))
        return pending_view(lifted, ("reshape", (self.size, *ones, *one.spec.shape)))

    def expand_to_batch(self, one: Expr, lifted: Expr) -> Expr:
        """Return a lifted operand with the axis of examples, expanded if it is shared."""
        if lifted is not one:
            return lifted
        shape = one.spec.shape
        first = pending_view(one, ("reshape", (1, *shape)))
        return pending_view(first, ("expand", (self.size, *shape)))


def _is_moved(e: Expr, source: Expr) -> bool:
    """Return True if the leaf's moves, applied to the source, lead to its strides."""
    layout: StridedView | None = contiguous(source.spec.shape)
    try:
        for m in e.moves:
            layout = None if layout is None else moved_layout(layout, m)
    except (ValueError, IndexError):  # moves of what has other axes
        return False
    return layout == StridedView(e.spec.shape, e.strides, e.offset)


def op_of(e: Expr) -> Op:
    """Return the op of a pending node."""
    assert e.op is not None
    return e.op


def limit_depth(e: Expr) -> Expr:
    """Return the node; compute it first if its graph is deep, or if ops run eagerly."""
    if e.depth > flags.depth:
        create_tensor(e)
    return e


# --- rules of the kinds of rows -------------------------------------------------------------------


def _batch_elementwise(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch an elementwise op: pad the operands to one rank."""
    rank = len(e.spec.shape)
    operands = [
        batch_map.pad_to_rank(a, b, rank) if type(a) is Expr else a
        for a, b in zip(e.args, args, strict=True)
    ]
    return batch_map.make_node(op_of(e), operands, (batch_map.size, *e.spec.shape), e)


def _batch_reduction(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a reduction: shift its axes by one."""
    axes, attrs = e.attrs
    moved = tuple([d + 1 for d in axes]), attrs
    return batch_map.make_node(op_of(e), args, (batch_map.size, *e.spec.shape), e, moved)


def _batch_view(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a view: apply its move to each example."""
    return limit_depth(batch_map.view(args[0], e.attrs))


def _batch_gather(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a gather; from a shared operand only the indices carry the axis of examples."""
    shape, axes, at, asked = e.attrs
    many = args[0] is not e.args[0]
    step = 1 if many else 0
    moved = tuple([d if d < 0 else d + step for d in axes])
    attrs = (
        (batch_map.size, *shape),
        (0 if many else -1, *moved),
        tuple([d + step for d in at]),
        asked,
    )
    rank = len(shape)
    indices = [batch_map.pad_to_rank(a, b, rank) for a, b in zip(e.args[1:], args[1:], strict=True)]
    return batch_map.make_node(op_of(e), (args[0], *indices), attrs[0], e, attrs)


def _batch_concat(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch a concatenation: expand shared operands, and join along the next axis."""
    operands = [batch_map.expand_to_batch(a, b) for a, b in zip(e.args, args, strict=True)]
    return batch_map.make_node(op_of(e), operands, (batch_map.size, *e.spec.shape), e, e.attrs + 1)


_KINDS: dict[str, Rule] = {
    "map": _batch_elementwise,
    "reduce": _batch_reduction,
    "view": _batch_view,
    "gather": _batch_gather,
    "join": _batch_concat,
}


# --- kernel ops -----------------------------------------------------------------------------------


def _rule_of_op(op: Op) -> Rule:
    """Return the rule for the axes that the op's row allows in `many`."""
    return {"front": batch_leading_axis, "first": batch_first_axis, "": run_each_example}[op.many]


def batch_leading_axis(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch an op that allows any axes in front of those that it works along."""
    operands = [
        batch_map.expand_to_batch(a, b) if type(a) is Expr else a
        for a, b in zip(e.args, args, strict=True)
    ]
    return batch_map.make_node(op_of(e), operands, (batch_map.size, *e.spec.shape), e)


def batch_first_axis(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch an op whose first axis is of independent rows."""
    op, operands = op_of(e), []
    for i, (a, b) in enumerate(zip(e.args, args, strict=True)):
        if type(a) is not Expr or (i in op.shared and b is a):
            operands.append(b)
            continue
        rows = (batch_map.size * a.spec.shape[0], *a.spec.shape[1:])
        operands.append(pending_view(batch_map.expand_to_batch(a, b), ("reshape", rows)))
    rows = (batch_map.size * e.spec.shape[0], *e.spec.shape[1:])
    result = batch_map.make_node(op, operands, rows, e)
    return pending_view(result, ("reshape", (batch_map.size, *e.spec.shape)))


def run_each_example(batch_map: BatchMap, e: Expr, args: list[Any]) -> Expr:
    """Batch any op: apply it example by example, join; add its name to `sequential_ops`."""
    op, pieces = op_of(e), []
    batch_map.sequential_ops.append(op.name)
    if not batch_map.size:
        empty = node(
            ops.FULL, (0,), spec((), e.spec.dtype, e.spec.device), ((e.spec.dtype,), e.spec.dtype)
        )
        return pending_view(empty, ("expand", (0, *e.spec.shape)))
    for k in range(batch_map.size):
        operands = [
            b if a is b else _select_example(b, k) for a, b in zip(e.args, args, strict=True)
        ]
        result = limit_depth(node(op, tuple(operands), e.spec, e.attrs))
        if e.check_line is not None and result.op is not None:
            mark_index_check(result, e.check_line)
        pieces.append(pending_view(result, ("reshape", (1, *e.spec.shape))))
    joined_max = (
        open_device(e.spec.device).backend.info.capabilities.plan_buffers or ELEMENTS_MAX
    ) - 1
    while len(pieces) > joined_max:  # in stages, where kernels have few buffers
        pieces = [
            _concat_examples(batch_map, pieces[k : k + joined_max], e)
            for k in range(0, len(pieces), joined_max)
        ]
    return _concat_examples(batch_map, pieces, e)


def _concat_examples(batch_map: BatchMap, pieces: list[Expr], e: Expr) -> Expr:
    """Return the pieces joined along the axis of examples."""
    rows = sum(p.spec.shape[0] for p in pieces)
    return batch_map.make_node(ops.CONCAT, pieces, (rows, *e.spec.shape), e, 0)


def _select_example(lifted: Expr, k: int) -> Expr:
    """Return one example of a lifted node."""
    shape = lifted.spec.shape
    starts, ones = (k, *(0 for _ in shape[1:])), (1,) * len(shape)
    return pending_view(lifted, ("slice", starts, (1, *shape[1:]), ones), ("reshape", shape[1:]))
