"""The deferred graph: immutable nodes, and what is known of each before it is computed.

An `Expr` is an op applied to other nodes and Python numbers, or a leaf: a strided view of a
`Storage`. When its value has been computed, a node *becomes* a leaf, which also lets go of its
arguments.
"""

from __future__ import annotations

import math
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .dtypes import DType
from .layout import Shape, contiguous_strides

if TYPE_CHECKING:
    from .device import Device
    from .memory import Storage
    from .ops import Op


class Spec:
    """Shape, dtype and device: unique, so specs compare with `is` and hash at once."""

    __slots__ = ("device", "dtype", "shape", "size", "strides")

    shape: Shape
    dtype: DType
    device: Device
    size: int
    strides: Shape  # contiguous ones

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} on {self.device}"


_SPECS: dict[tuple[Shape, DType, Any], Spec] = {}


def spec(shape: Shape, dtype: DType, device: Device) -> Spec:
    """The one Spec for these three."""
    key = (shape, dtype, device)
    found = _SPECS.get(key)
    if found is None:
        found = Spec()
        found.shape, found.dtype, found.device = key
        found.size, found.strides = math.prod(shape), contiguous_strides(shape)
        found = _SPECS.setdefault(key, found)
    return found


class Watch:
    """Whether a value that somebody has saved has been overwritten in place since: `writer` is the
    name of the op that did it first.
    """

    __slots__ = ("writer",)

    writer: str | None

    def __init__(self) -> None:
        self.writer = None


class Expr:
    """A node. Pending: `op`, `args` (nodes and Python numbers), `attrs` (what is static about the
    op).

    Leaf (`op` is None): `storage`, `strides`, `offset`; `moves` say how a view of a storage that is
    itself still
    pending came about.
    """

    __slots__ = (
        "__weakref__", "args", "attrs", "depth", "moves", "offset", "op", "spec", "storage",
        "strides", "tape", "watch",
    )  # fmt: skip

    op: Op | None
    args: tuple[Any, ...]
    attrs: Any
    spec: Spec
    depth: int
    storage: Storage
    strides: Shape
    offset: int
    moves: tuple[Any, ...]
    tape: Any  # how gradients flow back from it, where some operand requires them; else None
    watch: Watch | None  # while pending; a leaf's is its storage's


# Of nodes that check their indices when the work runs, and their tapes: the source line that asked.
asked_at: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

_log: list[
    ref[Expr]
] = []  # every node that may still be pending; the dead and the done are dropped in passing
_log_limit = 512
_pruning = RLock()
record: Any = None  # autograd's: the tape of a node of which some operand has one


def node(op: Op, args: tuple[Any, ...], spec: Spec, attrs: Any = None) -> Expr:
    """A pending node."""
    e = Expr()
    e.op, e.args, e.attrs, e.spec, e.watch = op, args, attrs, spec, None
    depth, taped = 0, False
    for a in args:
        if type(a) is Expr:
            if a.depth > depth:
                depth = a.depth
            if a.tape is not None:
                taped = True
    e.depth = depth + 1
    e.tape = record(e) if taped else None
    _log.append(ref(e))
    if len(_log) > _log_limit:
        prune()
    return e


def binary_node(op: Op, a: Expr, b: Any, spec: Spec) -> Expr:
    """`node` for two operands of which the first is a node: the hot path of recording, 0.15 us
    shorter.
    """
    e = Expr()
    e.op, e.args, e.attrs, e.spec, e.watch = op, (a, b), None, spec, None
    depth, taped = a.depth, a.tape
    if type(b) is Expr:
        if b.depth > depth:
            depth = b.depth
        if b.tape is not None:
            taped = b.tape
    e.depth = depth + 1
    e.tape = None if taped is None else record(e)
    _log.append(ref(e))
    if len(_log) > _log_limit:
        prune()
    return e


def prune() -> list[Expr]:
    """Drops what is no longer pending from the log, and returns what is; comes again when doubled.

    Other threads may append meanwhile: only what was there at the start is replaced.
    """
    global _log_limit
    with _pruning:
        n = len(_log)
        seen = [(r, r()) for r in _log[:n]]
        live = [(r, e) for r, e in seen if e is not None and e.op is not None]
        _log[:n] = [r for r, _ in live]
        _log_limit = max(512, 2 * len(live))
    return [e for _, e in live]


def readers(storage: Storage) -> list[Expr]:
    """The pending nodes that read this storage directly."""
    return [e for e in prune() if _reads(e, storage)]


def _reads(e: Expr, storage: Storage) -> bool:
    for a in e.args:  # noqa: SIM110 - any() takes three times as long, and writes wait for it
        if type(a) is Expr and a.op is None and storage_of(a) is storage:
            return True
    return False


def watched(e: Expr) -> Watch:
    """What will say whether the value of `e`, as it is now, has been overwritten.

    It belongs to the value whether or not that has been computed, and all views of it share it.
    """
    holder = _holder(e)
    found: Watch | None = holder.watch
    if found is None:
        holder.watch = found = Watch()
    return found


def overwritten(e: Expr, name: str) -> None:
    """Notes that op `name` has written where the value of `e` was."""
    holder = _holder(e)
    if holder.watch is not None:  # whoever saves what is there now asks for another one
        holder.watch.writer, holder.watch = name, None


def _holder(e: Expr) -> Any:
    if e.op is not None:
        return e
    storage = storage_of(e)
    return storage if storage.pending is None else storage.pending


def may_be_bad(e: Expr) -> bool:
    """Whether the value comes of indices of which nobody knows whether they are in range."""
    seen: set[Expr] = set()
    stack = [e]
    while stack:
        a = stack.pop()
        if a in seen:
            continue
        seen.add(a)
        if a.op is None:
            storage = storage_of(a)
            if storage.checks:
                return True
            if storage.pending is not None:
                stack.append(storage.pending)
        elif a in asked_at:
            return True
        else:
            stack += [b for b in a.args if type(b) is Expr]
    return False


def storage_of(e: Expr) -> Storage:
    """The storage of a leaf; where it was made for a pending node that has been computed since,
    that node's.
    """
    storage = e.storage
    pending = storage.pending
    while pending is not None and pending.op is None:
        e.storage = storage = pending.storage
        pending = storage.pending
    return storage


def leaf(
    storage: Storage, spec: Spec, strides: Shape, offset: int, moves: tuple[Any, ...] = ()
) -> Expr:
    """A strided view of a storage."""
    e = Expr()
    e.op, e.args, e.attrs, e.spec = None, (), None, spec
    e.depth = 0 if storage.pending is None else storage.pending.depth
    e.storage, e.strides, e.offset, e.moves = storage, strides, offset, moves
    e.tape = e.watch = None
    return e


def tape_of(op: Op, args: tuple[Any, ...], spec: Spec, attrs: Any) -> Any:
    """The tape of what is made otherwise than by evaluating a node: a view, a concatenation."""
    if record is None or all(type(a) is not Expr or a.tape is None for a in args):
        return None
    e = Expr()
    e.op, e.args, e.attrs, e.spec, e.watch = op, args, attrs, spec, None
    return record(e)


def twin(e: Expr) -> Expr:
    """A pending node with the same value: who holds it has it computed again, not stored."""
    t = Expr()
    t.op, t.args, t.attrs, t.spec, t.depth, t.tape = e.op, e.args, e.attrs, e.spec, e.depth, e.tape
    t.watch = None
    _log.append(ref(t))
    return t


def settle(e: Expr, storage: Storage) -> None:
    """The node's value has been computed into `storage`, contiguously: it is a leaf from now on."""
    storage.watch = e.watch
    e.storage, e.strides, e.offset, e.moves = storage, e.spec.strides, 0, ()
    e.op, e.args, e.attrs, e.depth = None, (), None, 0
