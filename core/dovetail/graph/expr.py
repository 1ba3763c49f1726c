"""The deferred graph: immutable nodes, and what is known of each before it is computed.

An `Expr` is an op applied to other nodes and Python numbers, or a leaf: a strided view of a
`Storage`. When its value has been computed, a node *becomes* a leaf, which also lets go of its
arguments.
"""

from __future__ import annotations

import math
from collections.abc import Container
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from .. import callbacks
from ..arguments import DIMENSIONS
from ..dtypes import DType
from ..errors import ShapeError
from ..freelists import keep
from ..layout import LIMIT, Move, Shape, contiguous_strides
from ..locks import Lock
from ..recent import Shared
from .regions import are_apart
from .weak import alive, referent, weakly

if TYPE_CHECKING:
    from ..device_class import Device
    from ..memory.storage import Storage
    from ..memory.tracing.stacktrace import Line
    from ..ops.table import Op

Args: TypeAlias = tuple[Any, ...]  # nodes and Python numbers: which is where, the op says
Attrs: TypeAlias = Any  # what is static about a use of an op: hashable, and each op's own
Tape: TypeAlias = Any  # autograd's: how gradients flow back from a node; None where none do


class Spec:
    """Shape, dtype and device: unique, so specs compare with `is` and hash at once."""

    __slots__ = ("__weakref__", "device", "dtype", "itemsize", "shape", "size", "sized", "strides")

    shape: Shape
    dtype: DType
    device: Device
    itemsize: int  # bytes of an element
    size: int
    sized: int | None  # the same, as tensors show it: they make it
    strides: Shape  # contiguous ones

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} on {self.device}"


SPEC_LIMIT = 16384  # specs kept that nobody uses
_SPECS: Shared[tuple[Shape, DType, Device], Spec] = Shared(SPEC_LIMIT)
_making = Lock()


def spec(shape: Shape, dtype: DType, device: Device, op: str = "tensor") -> Spec:
    """The one Spec for these three.

    Raises: ShapeError, on behalf of `op`, where it is too large for any device.
    """
    return _SPECS.young.get((shape, dtype, device)) or _spec((shape, dtype, device), op)


def _spec(key: tuple[Shape, DType, Device], op: str) -> Spec:
    with _making:
        found = _SPECS.find(key)
        if found is None:
            found = _SPECS[key] = _made(key, op)
        return found


def _made(key: tuple[Shape, DType, Device], op: str) -> Spec:
    made = Spec()
    shape, dtype, made.device = key
    made.shape = shape = tuple([n if type(n) is int else int(n) for n in shape])
    made.dtype, made.sized = dtype, None
    if len(shape) > DIMENSIONS:
        raise ShapeError(f"{op}: {len(shape)} dimensions: a tensor has at most {DIMENSIONS}")
    whole = math.prod([n or 1 for n in shape])  # as NumPy does: strides must be in range, too
    if whole * dtype.itemsize >= LIMIT:
        raise ShapeError(
            f"{op}: shape {shape} of {dtype.name} comes to 2**63 bytes or more, which no tensor "
            f"may have, in memory, pending or as a view; make it in parts"
        )
    made.itemsize = dtype.itemsize
    made.size, made.strides = math.prod(shape), contiguous_strides(shape)
    return made


class Watch:
    """Whether a value that somebody has saved has been overwritten in place since.

    `writer` is the name of the op that did it first.
    """

    __slots__ = ("writer",)

    writer: str | None

    def __init__(self) -> None:
        self.writer = None


class Expr:
    """A node.

    Pending: `op`, `args` (nodes and Python numbers), `attrs` (what is static about the op).

    Leaf (`op` is None): `storage`, `strides`, `offset`; `moves` say how a view of a storage that is
    itself still
    pending came about.
    """

    __slots__ = (
        "__weakref__", "args", "asked_at", "attrs", "depth", "moves", "offset", "op", "readers",
        "spec", "storage", "strides", "tape", "watch",
    )  # fmt: skip

    op: Op | None
    args: Args
    attrs: Attrs
    spec: Spec
    depth: int
    storage: Storage
    strides: Shape
    offset: int
    moves: tuple[Move, ...]
    tape: Tape
    watch: Watch | None  # while pending; a leaf's is its storage's
    readers: list[ref[Expr]] | None  # the pending nodes that have this one as an argument, noted
    asked_at: Line | None  # of a node that checks indices when it runs: the source line that asked


keep(Expr)

# Every node that may still be pending; the dead and the done are dropped in passing. The first
# `_noted` of them are among the `readers` of what they read: a node, or the storage of a leaf.
_log: list[ref[Expr]] = []
_log_limit = 512
_noted = 0
FEW = 8  # nodes that are looked at anew by each who asks
MANY = 64  # readers of a storage that stay pending when it is written where they do not read
_pruning = Lock()
_asked: list[ref[Expr]] = []  # the nodes with `asked_at` that may still be pending
_copies: list[ref[Expr]] = []  # rematerialised nodes; those at the end may still be pending


def node(op: Op, args: Args, spec: Spec, attrs: Attrs = None) -> Expr:
    """A pending node."""
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec, e.watch = op, args, attrs, spec, None
    depth, taped = 0, False
    for a in args:
        if type(a) is Expr:
            x = a
            if x.depth > depth:
                depth = x.depth
            if x.tape is not None:
                taped = True
    e.depth = depth + 1
    e.readers = e.asked_at = None
    e.tape = callbacks.record_tape(e) if taped else None
    _log.append(weakly(e))
    if len(_log) > _log_limit:
        prune()
    return e


def binary_node(op: Op, a: Expr, b: object, spec: Spec) -> Expr:
    """`node` for two operands of which the first is a node.

    It is the hot path of recording, 0.15 us shorter.
    """
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec, e.watch = op, (a, b), None, spec, None
    depth, taped = a.depth, a.tape
    if type(b) is Expr:
        x = b
        if x.depth > depth:
            depth = x.depth
        if x.tape is not None:
            taped = x.tape
    e.depth = depth + 1
    e.readers = e.asked_at = None
    e.tape = None if taped is None else callbacks.record_tape(e)
    _log.append(weakly(e))
    if len(_log) > _log_limit:
        prune()
    return e


def prune() -> None:
    """Drops what is no longer pending from the log; comes again when it has doubled.

    Other threads may append meanwhile: only what was there at the start is replaced.
    """
    global _log_limit, _noted
    with _pruning:
        n, noted = len(_log), _noted
        live = [r for r in alive(_log[:noted]) if _is_pending(r())]
        _noted = len(live)
        live += [r for r in alive(_log[noted:n]) if _is_pending(r())]
        _log[:n] = live
        _log_limit = max(512, 2 * len(live))
        copies = len(_copies)
        _copies[:copies] = [r for r in alive(_copies[:copies]) if _is_pending(r())]


def pending() -> list[Expr]:
    """Every node that has not been computed, and that somebody holds."""
    return [e for r in _log.copy() if (e := r()) is not None and e.op is not None]


def _is_pending(e: Expr | None) -> bool:
    return e is not None and e.op is not None


def readers(storage: Storage) -> list[Expr]:
    """Return the pending nodes that read this storage, or one that overlaps it, directly.

    Only evaluation may run meanwhile. A node is added to the `readers` of what it reads by the
    first call after it was recorded. So recording costs nothing, and a write does not search all
    pending nodes.
    """
    note_readers()
    if storage.overlap is None:
        return _noted_readers(storage)
    found: dict[Expr, None] = {}
    for member in storage.overlap.members():
        found.update(dict.fromkeys(_noted_readers(member)))
    return list(found)


def note_readers() -> None:
    """Add the nodes that were recorded since the last call to the `readers` of what they read."""
    if _noted != len(_log):
        _pruning.held(_note_readers, ())


def _noted_readers(storage: Storage) -> list[Expr]:
    noted = storage.readers
    if noted is None:
        return []
    live = {e: r for r in noted if (e := r()) is not None and e.op is not None}
    storage.readers = list(live.values()) or None
    return list(live)


def is_recomputed(e: Expr, mine: Container[Expr]) -> bool:
    """Return True if a rematerialised node that is not in `mine` would compute `e` again.

    Such a node shares the `args` of a node in `mine`. `readers` has been called before.
    """
    if not _copies:
        return False
    stack = [e]
    while stack:
        found = [x for r in stack.pop().readers or () if (x := r()) is not None]
        stack += [x for x in found if x in mine]
        shared = {id(x.args) for x in found if x in mine}
        if any(id(x.args) in shared and x.op is not None and x not in mine for x in found):
            return True
    return False


def _drop_copies() -> None:
    while _copies and not _is_pending(_copies[-1]()):
        _copies.pop()


def is_read(target: Expr, by: Expr) -> bool:
    """Return True if a pending node that `by` does not need reads the memory of leaf `target`.

    Also True if too many nodes read other parts of that storage. The conditions of `readers` hold.
    """
    storage = storage_of(target)
    if _copies:
        _pruning.held(_drop_copies, ())
        note_readers()
    if storage.overlap is not None:
        needed: set[Expr] = set()
        found = [r for r in readers(storage) if _is_early(r, target, by, needed)]
        return bool(found)
    if _noted != len(_log) and _pruning.held(_is_read_lately, (target, by)):
        return True
    if storage.readers is None:
        return False
    kept: list[ref[Expr]] = []
    mine: set[Expr] = set()
    for r in storage.readers:
        e = referent(r)
        if e is not None and e.op is not None:
            if _is_early(e, target, by, mine):
                return True
            kept.append(r)
    storage.readers = kept or None
    return len(kept) > MANY


def _is_early(e: Expr, target: Expr, by: Expr, mine: set[Expr]) -> bool:
    """Return True if a node must be computed before `by` is written to the leaf `target`."""
    if e is by or not reads(e, target):
        return False
    return not _is_needed(e, by, mine) or is_recomputed(e, mine)


def _is_over(e: Expr, storage: Storage) -> bool:
    """Whether a node reads this storage directly."""
    for a in e.args:
        if type(a) is Expr:
            x = a
            if x.op is None and storage_of(x) is storage:
                return True
    return False


def reads(e: Expr, target: Expr) -> bool:
    """Return True if a node reads memory of the leaf `target` directly."""
    for a in e.args:
        if type(a) is Expr:
            x = a
            if x.op is None and overlaps(x, target):
                return True
    return False


def overlaps(a: Expr, b: Expr) -> bool:
    """Return True if two leaves may have memory in common.

    Leaves of one storage are compared by their strides; those of two storages that overlap always
    count as overlapping.
    """
    storage, other = storage_of(a), storage_of(b)
    if storage is other:
        return not is_apart(a, b)
    return storage.overlap is not None and storage.overlap is other.overlap


def is_apart(a: Expr, b: Expr) -> bool:
    """Whether leaves over the same storage have no element in common, as far as strides say."""
    return a.spec.itemsize == b.spec.itemsize and are_apart(
        a.spec.shape, a.strides, a.offset, b.spec.shape, b.strides, b.offset
    )


def _is_needed(e: Expr, by: Expr, mine: set[Expr]) -> bool:
    """Whether a node is needed for another one; `mine`, empty at first: those that are."""
    if not mine:
        stack = [by]
        while stack:
            a = stack.pop()
            if a.op is not None and a not in mine:
                mine.add(a)
                stack += [b for b in a.args if type(b) is Expr]
    return e in mine


def _is_read_lately(target: Expr, by: Expr) -> bool:
    """The same of nodes that are not noted. Where they are few, as in a loop, they stay so."""
    n, storage = len(_log), storage_of(target)
    mine: set[Expr] = set()
    for i in range(_noted, n):
        e = referent(_log[i])
        if e is None or e.op is None or not _is_over(e, storage):
            continue
        if _is_early(e, target, by, mine):
            return True
    if n - _noted > FEW:
        _log[_noted:n] = [r for r in alive(_log[_noted:n]) if _is_pending(r())]
        if len(_log) - _noted > FEW:
            _note_readers()
    return False


def _note_readers() -> None:
    global _noted
    first, _noted = _noted, len(_log)
    for r in _log[first:_noted]:
        e = referent(r)
        if e is not None:
            for a in e.args:
                if type(a) is Expr:
                    _note_reader(r, a)


def _note_reader(r: ref[Expr], read: Expr) -> None:
    found: Expr | Storage = read
    if read.op is None:
        storage = storage_of(read)
        found = storage if storage.pending is None else storage.pending
    if found.readers is None:
        found.readers = [r]
    else:
        found.readers.append(r)


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
    """Mark the saved values in the memory of `e` as overwritten by op `name`."""
    mark_overwritten(_holder(e), name)


def mark_overwritten(holder: Expr | Storage, name: str) -> None:
    """Mark the saved values of a pending node, or in a storage, as overwritten by op `name`."""
    overlap = None if isinstance(holder, Expr) else holder.overlap
    for h in (holder,) if overlap is None else overlap.members():
        if h.watch is not None:  # the next value that is saved there gets a new watch
            h.watch.writer, h.watch = name, None


def _holder(e: Expr) -> Expr | Storage:
    if e.op is not None:
        return e
    storage = storage_of(e)
    return storage if storage.pending is None else storage.pending


def ask(e: Expr, line: Line) -> None:
    """Notes the source line that asked for a node that checks its indices when it runs."""
    e.asked_at = line
    _asked.append(weakly(e))
    if len(_asked) % 512 == 0:
        with _pruning:
            _drop_done()


def is_any_asked() -> bool:
    """Whether any pending node checks its indices."""
    if _asked:
        with _pruning:
            _drop_done()
    return bool(_asked)


def _drop_done() -> None:
    n = len(_asked)  # other threads may append meanwhile
    _asked[:n] = [r for r in _asked[:n] if _is_pending(r())]


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
        elif a.asked_at is not None:
            return True
        else:
            stack += [b for b in a.args if type(b) is Expr]
    return False


def bad_among(roots: list[Expr]) -> list[bool]:
    """Return `may_be_bad` of each root; nodes that they share are visited once."""
    known: dict[Expr, bool] = {}
    stack = [*roots]
    while stack:
        e = stack[-1]
        if e.op is not None:
            operands = [a for a in e.args if type(a) is Expr]
        else:
            pending = storage_of(e).pending
            operands = [] if pending is None else [pending]
        waiting = [a for a in operands if a not in known]
        if waiting and e.asked_at is None:
            stack += waiting
            continue
        own = e.asked_at is not None if e.op is not None else bool(storage_of(e).checks)
        known[e] = own or any(known.get(a, False) for a in operands)
        stack.pop()
    return [known[e] for e in roots]


LONG = 256  # nodes: of more, no `reads_exported` looks at each


def reads_exported(e: Expr) -> bool:
    """Whether pending work reads memory that others may write to meanwhile; or is so long."""
    seen: set[Expr] = set()
    stack = [e]
    while stack:
        a = stack.pop()
        if a in seen:
            continue
        seen.add(a)
        if len(seen) > LONG:
            return True
        if a.op is not None:
            stack += [b for b in a.args if type(b) is Expr]
            continue
        storage = storage_of(a)
        if storage.pending is not None:
            stack.append(storage.pending)
        elif storage.is_exported():
            return True
    return False


def storage_of(e: Expr) -> Storage:
    """The storage of a leaf.

    Where it was made for a pending node that has been computed since, it is that node's.
    """
    storage = e.storage
    pending = storage.pending
    while pending is not None and pending.op is None:
        e.storage = storage = pending.storage
        pending = storage.pending
    return storage


def leaf(
    storage: Storage, spec: Spec, strides: Shape, offset: int, moves: tuple[Move, ...] = ()
) -> Expr:
    """A strided view of a storage."""
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec = None, (), None, spec
    e.depth = 0 if storage.pending is None else storage.pending.depth
    e.storage, e.strides, e.offset, e.moves = storage, strides, offset, moves
    e.tape = e.readers = e.watch = e.asked_at = None
    return e


def tape_of(op: Op, args: Args, spec: Spec, attrs: Attrs) -> Tape:
    """The tape of what is made otherwise than by evaluating a node: a view, a concatenation."""
    if all(type(a) is not Expr or a.tape is None for a in args):
        return None
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec, e.watch = op, args, attrs, spec, None
    return callbacks.record_tape(e)


def rematerialised(e: Expr) -> Expr:
    """A pending node with the same value: who holds it has it computed again, not materialised."""
    t = Expr.__new__(Expr)
    t.op, t.args, t.attrs, t.spec, t.depth, t.tape = e.op, e.args, e.attrs, e.spec, e.depth, e.tape
    t.readers = t.watch = t.asked_at = None
    r = weakly(t)
    _log.append(r)
    _copies.append(r)
    if e.asked_at is not None:
        ask(t, e.asked_at)
    return t


def settle(e: Expr, storage: Storage) -> None:
    """Make a computed node a contiguous leaf of `storage`.

    Watch and readers go where `_holder` and `_note_reader` look for them.
    """
    holder: Expr | Storage = storage if storage.pending is None else storage.pending
    holder.watch = e.watch
    e.storage, e.strides, e.offset, e.moves = storage, e.spec.strides, 0, ()
    e.op, e.args, e.attrs, e.depth = None, (), None, 0
    if e.readers is not None:
        holder.readers, e.readers = e.readers, None
