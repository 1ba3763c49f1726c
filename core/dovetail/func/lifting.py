"""Pending work of one example as the same work of all of them, at once.

A function is run once, on tensors that stand for one example each (`examples`). What it leaves is a
graph, and each node of that is made again here, with an axis of all examples in front, by a rule
for its kind of row: elementwise rows broadcast, reductions and views move their axes by one. What
no example's value enters stays as it is, and is computed once. Rules of kernel ops are in
`kernels`; an op without one is done example by example.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn, TypeAlias

from ..autograd.engine import detach
from ..autograd.tape import Leaf, OpNode
from ..device_class import opened as open_device
from ..errors import TransformError
from ..functions.shape.manipulation import as_strided
from ..graph.expr import Expr, ask, node, spec, storage_of
from ..layout import LIMIT, Move, Shape, StridedView, contiguous
from ..layout import move as moved_layout
from ..memory.storage import Storage
from ..ops import table as ops
from ..ops.table import Op
from ..settings import flags
from ..tensor.host import evaluated
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply, pending_view, view

# A rule gives the node of all examples: of a node of one, and of its arguments, lifted.
Rule: TypeAlias = Callable[["Lifting", Expr, list[Any]], Expr]


def _gone(op: str, kinds: object, attrs: object) -> NoReturn:
    raise TransformError(
        "vmap: a tensor that stands for one example is looked at after the function has returned; "
        "return it from the function, and it comes back with all examples"
    )


# What stands for one example's value: not evaluated, but looked up.
EXAMPLE = Op("example", "kernel", _gone, arity=0, placeholder=True)
rules: dict[Op, Rule] = {}  # of kernel ops
# By the class of an example's tape what gives the node of all: for ops that are none of the table.
# It is given that node without a tape, where it is known; None comes back where none is wanted.
tapes: dict[type, Callable[[Lifting, Any, Expr | None], Expr | None]] = {}


class Lifting:
    """The nodes of one example that are known, each with that of all: itself where it is shared."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.known: dict[Expr, Expr] = {}
        self.views: dict[Expr, list[Expr]] = {}  # those known of a pending node
        # Memory that was the same for each example, and has been written since; what stands for it.
        self.memory: dict[int, tuple[Storage, Expr]] = {}
        self.drawn: dict[int, tuple[object, tuple[Any, ...]]] = {}  # by the id of the arguments
        self.tapes: set[Any] = set()  # of the examples of what requires a gradient
        self.hooked: dict[Any, Expr] = {}  # by the tape of one example, where that has hooks
        self.functions: dict[Any, Any] = {}  # places on the tape of one, and those of all
        self.by_itself: list[str] = []  # the ops that were done example by example

    def inherit(self, parent: Lifting) -> None:
        """Know what another one knows, from now on apart from it."""
        self.known = {e: found for e, found in parent.known.items() if found is not e}
        self.views = {e: [*views] for e, views in parent.views.items()}
        self.memory, self.drawn = {**parent.memory}, {**parent.drawn}
        self.tapes, self.hooked = {*parent.tapes}, {**parent.hooked}
        self.functions = {**parent.functions}

    # --- the way through a graph

    def lift(self, e: Expr) -> Expr:
        """The node of all examples; `e` itself where it is the same for each."""
        found = self.known.get(e)
        if found is not None and (found is not e or e.op is not None):
            return found  # a shared node that has become memory since may have been written
        if self.hooked and e.tape in self.hooked:  # kept for the way back: there gradients meet
            return self.hooked[e.tape]
        if e.op is None:
            source = self.source_of(e)
            if source is None:
                return e  # memory, which may be written
            found = self._leaf(e, source)
            self.views.setdefault(source, []).append(e)
        else:
            args = [self.lift(a) if type(a) is Expr else a for a in e.args]
            found = self._node(e, args)
        self.known[e] = found
        return found

    def source_of(self, e: Expr) -> Expr | None:
        """The pending node of which a leaf is a view."""
        storage = storage_of(e)
        if storage.pending is None and self.memory:
            found = self.memory.get(id(storage))
            return None if found is None else found[1]
        return storage.pending

    def is_many(self, e: Expr) -> bool:
        """Whether a node is not the same for each example."""
        return self.lift(e) is not e

    def forget(self, source: Expr, found: Expr) -> None:
        """Has a node be something else from now on: it has been written."""
        self.known[source] = found
        for e in self.views.pop(source, ()):
            del self.known[e]

    def _leaf(self, e: Expr, source: Expr) -> Expr:
        found = self.lift(source)
        if found is source:
            return e
        found = self.seen(e, source, make(found))._expr
        if e.tape is not None and found.tape is None:
            return self._by_tape(e.tape, found)
        own = e.tape is None or (type(e.tape) is Leaf and e.tape not in self.tapes)
        return detach(make(found))._expr if own and found.tape is not None else found

    def _by_tape(self, tape: Any, found: Expr) -> Expr:
        """What is known by its tape: a view of a result of a function of one's own."""
        moves: list[Move] = []
        while type(tape) is OpNode and tape.op is ops.VIEW and tape.edges[0] is not None:
            moves.append(tape.attrs)
            tape = tape.edges[0].node
        if type(tape) not in tapes:
            return found
        whole = tapes[type(tape)](self, tape, found if not moves else None)
        if whole is None:
            return found
        for m in reversed(moves):
            whole = self.view(whole, m)
        return whole

    def seen(self, e: Expr, source: Expr, whole: Tensor) -> Tensor:
        """A view of a pending node, as that of all, which are `whole`."""
        if not _is_moved(e, source):
            return self._strided(e, source, whole)
        for m in e.moves:
            for moved in self._moves(whole.shape, m):
                whole = view(whole, moved)
        return whole

    def _strided(self, e: Expr, source: Expr, whole: Tensor) -> Tensor:
        """The same where it is known by strides alone."""
        if evaluated(whole).offset or not whole.is_contiguous():
            whole = apply(ops.COPY, (whole,))
        strides = (source.spec.size, *e.strides)
        return as_strided(whole, (self.size, *e.spec.shape), strides, e.offset)

    def _node(self, e: Expr, args: list[Any]) -> Expr:
        op = e.op
        assert op is not None
        if op.kind == "generate":
            return self._generated(e)
        if all(a is b for a, b in zip(e.args, args, strict=True)):
            return e  # an example among them: that of a function around this one
        rule = _KINDS.get(op.kind) or rules.get(op) or _by_row(op)
        found = rule(self, e, args)
        if e.tape is None and found.tape is not None:  # made under no_grad, or of what was detached
            if any(found is b for b in args):
                return detach(make(found))._expr
            found.tape = None
        if e.asked_at is not None and found.op is not None:
            ask(found, e.asked_at)
        return found

    def _generated(self, e: Expr) -> Expr:
        drawn = self.drawn.get(id(e.args))
        if drawn is None or drawn[0] is not e.args:
            return e
        return self.made(ops_of(e), drawn[1], (self.size, *e.spec.shape), e)

    # --- what rules are made of

    def made(
        self, op: Op, args: Sequence[Any], shape: Shape, like: Expr, attrs: Any = None
    ) -> Expr:
        """A node of all examples, with the device, dtype and attributes of `like`, of one."""
        s = spec(shape, like.spec.dtype, like.spec.device)
        return bounded(node(op, tuple(args), s, like.attrs if attrs is None else attrs))

    def plain(self, op: Op, args: Sequence[Any], shape: Shape, like: Expr) -> Expr:
        """The same without attributes."""
        s = spec(shape, like.spec.dtype, like.spec.device)
        return bounded(node(op, tuple(args), s, None))

    def view(self, found: Expr, m: Move) -> Expr:
        """A lifted node after the move of one example."""
        return pending_view(found, *self._moves(found.spec.shape, m))

    def _moves(self, shape: Shape, m: Move) -> list[Move]:
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

    def of_rank(self, one: Expr, found: Expr, rank: int) -> Expr:
        """A lifted operand that broadcasts as that of one example does, beside `rank` axes."""
        if found is one or len(one.spec.shape) == rank:
            return found
        ones = (1,) * (rank - len(one.spec.shape))
        return pending_view(found, ("reshape", (self.size, *ones, *one.spec.shape)))

    def whole(self, one: Expr, found: Expr) -> Expr:
        """A lifted operand with the axis of examples, also where it is the same for each."""
        if found is not one:
            return found
        shape = one.spec.shape
        first = pending_view(one, ("reshape", (1, *shape)))
        return pending_view(first, ("expand", (self.size, *shape)))


def _is_moved(e: Expr, source: Expr) -> bool:
    """Whether a leaf is where its moves lead; not where a view was made by strides before them."""
    place: StridedView | None = contiguous(source.spec.shape)
    try:
        for m in e.moves:
            place = None if place is None else moved_layout(place, m)
    except (ValueError, IndexError):  # moves of what has other axes
        return False
    return place == StridedView(e.spec.shape, e.strides, e.offset)


def ops_of(e: Expr) -> Op:
    """The op of a pending node."""
    assert e.op is not None
    return e.op


def bounded(e: Expr) -> Expr:
    """A new node, computed where it is deep, or where each op runs at once."""
    if e.depth > flags.depth:
        make(e)
    return e


# --- rules of the kinds of rows -------------------------------------------------------------------


def _map(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    rank = len(e.spec.shape)
    given = [
        to.of_rank(a, b, rank) if type(a) is Expr else a for a, b in zip(e.args, args, strict=True)
    ]
    return to.made(ops_of(e), given, (to.size, *e.spec.shape), e)


def _reduce(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    axes, attrs = e.attrs
    moved = tuple([d + 1 for d in axes]), attrs
    return to.made(ops_of(e), args, (to.size, *e.spec.shape), e, moved)


def _view(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    return bounded(to.view(args[0], e.attrs))


def _gather(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    shape, axes, at, asked = e.attrs
    many = args[0] is not e.args[0]
    step = 1 if many else 0
    moved = tuple([d if d < 0 else d + step for d in axes])
    attrs = (
        (to.size, *shape), (0 if many else -1, *moved), tuple([d + step for d in at]), asked,
    )  # fmt: skip
    rank = len(shape)
    indices = [to.of_rank(a, b, rank) for a, b in zip(e.args[1:], args[1:], strict=True)]
    return to.made(ops_of(e), (args[0], *indices), attrs[0], e, attrs)


def _join(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    parts = [to.whole(a, b) for a, b in zip(e.args, args, strict=True)]
    return to.made(ops_of(e), parts, (to.size, *e.spec.shape), e, e.attrs + 1)


_KINDS: dict[str, Rule] = {
    "map": _map, "reduce": _reduce, "view": _view, "gather": _gather, "join": _join,
}  # fmt: skip


# --- kernel ops -----------------------------------------------------------------------------------


def _by_row(op: Op) -> Rule:
    return {"front": in_front, "first": first_axis, "": each}[op.many]


def in_front(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Of an op that takes any axes in front of those that it works along."""
    given = [to.whole(a, b) if type(a) is Expr else a for a, b in zip(e.args, args, strict=True)]
    return to.made(ops_of(e), given, (to.size, *e.spec.shape), e)


def first_axis(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Of an op along whose first axis are rows that have nothing to do with each other."""
    op, given = ops_of(e), []
    for i, (a, b) in enumerate(zip(e.args, args, strict=True)):
        if type(a) is not Expr or (i in op.shared and b is a):
            given.append(b)
            continue
        rows = (to.size * a.spec.shape[0], *a.spec.shape[1:])
        given.append(pending_view(to.whole(a, b), ("reshape", rows)))
    rows = (to.size * e.spec.shape[0], *e.spec.shape[1:])
    made = to.made(op, given, rows, e)
    return pending_view(made, ("reshape", (to.size, *e.spec.shape)))


def each(to: Lifting, e: Expr, args: list[Any]) -> Expr:
    """Of any op: one example after the other, and what that gives joined."""
    op, parts = ops_of(e), []
    to.by_itself.append(op.name)
    if not to.size:
        empty = node(ops.FULL, (0,), spec((), e.spec.dtype, e.spec.device),
                     ((e.spec.dtype,), e.spec.dtype))  # fmt: skip
        return pending_view(empty, ("expand", (0, *e.spec.shape)))
    for k in range(to.size):
        given = [b if a is b else _one(b, k) for a, b in zip(e.args, args, strict=True)]
        made = bounded(node(op, tuple(given), e.spec, e.attrs))
        if e.asked_at is not None and made.op is not None:
            ask(made, e.asked_at)
        parts.append(pending_view(made, ("reshape", (1, *e.spec.shape))))
    most = (open_device(e.spec.device).backend.info.capabilities.max_buffers or LIMIT) - 1
    while len(parts) > most:  # in stages, where kernels have few buffers
        parts = [_joined(to, parts[k : k + most], e) for k in range(0, len(parts), most)]
    return _joined(to, parts, e)


def _joined(to: Lifting, parts: list[Expr], e: Expr) -> Expr:
    rows = sum(p.spec.shape[0] for p in parts)
    return to.made(ops.CONCAT, parts, (rows, *e.spec.shape), e, 0)


def _one(found: Expr, k: int) -> Expr:
    """What a lifted node has for one example."""
    shape = found.spec.shape
    starts, ones = (k, *(0 for _ in shape[1:])), (1,) * len(shape)
    return pending_view(found, ("slice", starts, (1, *shape[1:]), ones), ("reshape", shape[1:]))
