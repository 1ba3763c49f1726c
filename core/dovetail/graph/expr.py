"""The deferred graph: immutable nodes with shape, dtype and device.

An `Expr` is an op applied to other nodes and Python numbers, or a leaf: a strided view of a
`Storage`. When its value has been computed, a node *becomes* a leaf, which also drops its
references to its arguments.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias
from weakref import ref

from .. import callbacks
from ..argument_checks import DIMENSIONS
from ..dtypes import DType
from ..errors import ShapeError
from ..layout import ELEMENTS_MAX, Move, Shape, contiguous_strides
from ..locks import Lock
from ..lru_cache import LRUCache
from ..object_pool import pool_objects
from .alias_analysis import are_disjoint
from .weak_refs import append_weakly, live_refs, referent, weakly

if TYPE_CHECKING:
    from ..device_class import Device
    from ..memory.storage import Storage
    from ..memory.tracing.stacktrace import Line
    from ..ops.table import Op

Args: TypeAlias = tuple[Any, ...]  # nodes and Python numbers, in the order that the op defines
Attrs: TypeAlias = Any  # the op's static parameters: hashable, of a type of its own
Tape: TypeAlias = Any  # autograd's record of a node's gradient; None: no gradient


class Spec:
    """Shape, dtype and device; unique objects, compared with `is` and hashed by identity."""

    __slots__ = (
        "__weakref__",
        "device",
        "dtype",
        "itemsize",
        "nbytes",
        "shape",
        "size",
        "sized",
        "strides",
    )

    shape: Shape
    dtype: DType
    device: Device
    itemsize: int  # bytes of an element
    nbytes: int  # bytes of all elements
    size: int
    sized: int | None  # `size` as tensors return it; set by them
    strides: Shape  # contiguous ones

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} on {self.device}"


SPEC_CACHE_MAX = 16384  # cached specs without users
_SPECS: LRUCache[tuple[Shape, DType, Device], Spec] = LRUCache(SPEC_CACHE_MAX, revives=True)
_specs_lock = Lock()


def spec(shape: Shape, dtype: DType, device: Device, op: str = "tensor") -> Spec:
    """Return the unique Spec of shape, dtype and device.

    Raises: ShapeError, in the name of `op`, if it is too large for any device.
    """
    return _SPECS.young.get((shape, dtype, device)) or _find_or_create_spec(
        (shape, dtype, device), op
    )


def _find_or_create_spec(key: tuple[Shape, DType, Device], op: str) -> Spec:
    """Return the unique Spec of the key from the cache, or create and cache one, under the lock."""
    with _specs_lock:
        spec = _SPECS.find(key)
        if spec is None:
            spec = _SPECS[key] = _create_spec(key, op)
        return spec


def _create_spec(key: tuple[Shape, DType, Device], op: str) -> Spec:
    """Create an uncached Spec; raise ShapeError, in the name of `op`, if the shape is too large."""
    spec = Spec()
    shape, dtype, spec.device = key
    spec.shape = shape = tuple([n if type(n) is int else int(n) for n in shape])
    spec.dtype, spec.sized = dtype, None
    if len(shape) > DIMENSIONS:
        raise ShapeError(
            f"{op}: a tensor must have at most {DIMENSIONS} dimensions, got {len(shape)}"
        )
    whole = math.prod(
        [n or 1 for n in shape]
    )  # 0 counts as 1, as in NumPy: strides must be in range, too
    if whole * dtype.itemsize >= ELEMENTS_MAX:
        raise ShapeError(
            f"{op}: shape {shape} of {dtype.name} needs 2**63 bytes or more; a tensor must be "
            f"smaller, in memory, pending or as a view; split it into parts"
        )
    spec.itemsize = dtype.itemsize
    spec.size, spec.strides = math.prod(shape), contiguous_strides(shape)
    spec.nbytes = spec.size * spec.itemsize
    return spec


class Watch:
    """A flag for saved values that an in-place write overwrites.

    writer: the name of the op that overwrote the value first, or None.
    """

    __slots__ = ("writer",)

    writer: str | None

    def __init__(self) -> None:
        self.writer = None


class Expr:
    """A node of the graph.

    A pending node has `op`, `args` (nodes and Python numbers) and `attrs` (static parameters).

    A leaf (`op` is None) has `storage`, `strides` and `offset`. If its storage is still pending,
    `moves` are the view operations that lead to it.
    """

    __slots__ = (
        "__weakref__",
        "args",
        "attrs",
        "check_line",
        "depth",
        "moves",
        "offset",
        "op",
        "readers",
        "spec",
        "storage",
        "strides",
        "tape",
        "watch",
    )

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
    watch: Watch | None  # of a pending node; for a leaf, the storage has it
    readers: list[ref[Expr]] | None  # registered pending nodes with this one as an argument
    check_line: Line | None  # the user's line, if the node checks indices when it runs


pool_objects(Expr)

# Every node that may still be pending; dead and computed nodes are pruned from time to time. The
# first `_registered_count` of them are in the `readers` of their operands (a node, or a leaf's
# storage).
_pending_log: list[ref[Expr]] = []
_pending_log_limit = 512
_registered_count = 0
UNREGISTERED_NODES_MAX = 8  # recent nodes that stay unregistered, and are searched by each query
_unregistered_max = UNREGISTERED_NODES_MAX  # compiled to a typed variable, invisible to Python
_constant_log: list[ref[Expr]] = []  # pending constants that the host has computed: no operands
_constant_log_limit = 512
PENDING_READERS_MAX = 64  # readers of other parts of a storage that stay pending when it is written
_log_lock = Lock()
_checking_nodes: list[ref[Expr]] = []  # the nodes with `check_line` that may still be pending
_rematerialized_nodes: list[
    ref[Expr]
] = []  # rematerialised nodes; those at the end may still be pending


def node(op: Op, args: Args, spec: Spec, attrs: Attrs = None) -> Expr:
    """Create a pending node, with a tape if an operand has one, and append it to the log."""
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
    e.readers = e.check_line = None
    e.tape = callbacks.record_tape(e) if taped else None
    append_weakly(_pending_log, e, _registered_count, _log_lock)
    if len(_pending_log) > _pending_log_limit:
        prune()
    return e


def binary_node(op: Op, a: Expr, b: object, spec: Spec) -> Expr:
    """Record a pending node with two operands, of which the first is a node; a faster `node`.

    It is the hot path of recording, and 0.15 us shorter than `node`.
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
    e.readers = e.check_line = None
    e.tape = None if taped is None else callbacks.record_tape(e)
    append_weakly(_pending_log, e, _registered_count, _log_lock)
    if len(_pending_log) > _pending_log_limit:
        prune()
    return e


def prune() -> None:
    """Remove dead and computed nodes from the log; set its limit to twice the rest, 512 or more.

    Other threads may append meanwhile, so only the entries from the start are replaced.
    """
    global _pending_log_limit, _registered_count
    with _log_lock:
        n, registered = len(_pending_log), _registered_count
        live = [r for r in live_refs(_pending_log[:registered]) if _is_pending(r())]
        _registered_count = len(live)
        live += [r for r in live_refs(_pending_log[registered:n]) if _is_pending(r())]
        _pending_log[:n] = live
        _pending_log_limit = max(512, 2 * len(live))
        _drop_computed(_rematerialized_nodes)


def log_constant(e: Expr) -> None:
    """Append a pending constant that was not created by `node` to the log of constants.

    No write needs to examine it, since it reads no memory. So it is in a log of its own.
    """
    _constant_log.append(weakly(e))
    if len(_constant_log) > _constant_log_limit:
        _prune_constants()


def _prune_constants() -> None:
    """Remove dead and computed constants; set the log's limit to twice the rest, 512 or more."""
    global _constant_log_limit
    with _log_lock:
        _drop_computed(_constant_log)
        _constant_log_limit = max(512, 2 * len(_constant_log))


def _drop_computed(log: list[ref[Expr]]) -> None:
    """Remove dead and computed nodes from a log; needs the lock."""
    n = len(log)  # other threads may append meanwhile
    log[:n] = [r for r in live_refs(log[:n]) if _is_pending(r())]


def pending_nodes() -> list[Expr]:
    """Return all nodes that are alive and not yet computed."""
    logged = _constant_log + _pending_log
    return [e for r in logged if (e := r()) is not None and e.op is not None]


def _is_pending(e: Expr | None) -> bool:
    """Return True if a node is alive and not computed; None is not pending."""
    return e is not None and e.op is not None


def find_readers(storage: Storage) -> list[Expr]:
    """Return pending nodes that read this storage or overlapping ones; register new nodes.

    Only evaluation may run meanwhile. A node is added to the `readers` of what it reads by the
    first call after it was recorded. So recording costs nothing, and a write does not search all
    pending nodes.
    """
    register_readers()
    if storage.overlap is None:
        return _pending_readers(storage)
    exprs: dict[Expr, None] = {}
    for member in storage.overlap.members():
        exprs.update(dict.fromkeys(_pending_readers(member)))
    return list(exprs)


def register_readers() -> None:
    """Register the nodes recorded since the last call as readers of their operands."""
    if _registered_count != len(_pending_log):
        _log_lock.held(_register_recent, ())


def _pending_readers(storage: Storage) -> list[Expr]:
    """Return the registered pending nodes that read this storage; prune `storage.readers`."""
    registered = storage.readers
    if registered is None:
        return []
    live = {e: r for r in registered if (e := r()) is not None and e.op is not None}
    storage.readers = list(live.values()) or None
    return list(live)


def is_recomputed(e: Expr, graph: Container[Expr]) -> bool:
    """Return True if a rematerialised node that is not in `graph` would compute `e` again.

    Such a node shares the `args` of a node in `graph`. `find_readers` has been called before.
    """
    if not _rematerialized_nodes:
        return False
    stack = [e]
    while stack:
        readers = [x for r in stack.pop().readers or () if (x := r()) is not None]
        stack += [x for x in readers if x in graph]
        shared = {id(x.args) for x in readers if x in graph}
        if any([id(x.args) in shared and x.op is not None and x not in graph for x in readers]):
            return True
    return False


def _prune_rematerialized() -> None:
    """Drop rematerialised nodes that are dead or computed from the end of their list."""
    while _rematerialized_nodes and not _is_pending(_rematerialized_nodes[-1]()):
        _rematerialized_nodes.pop()


def has_other_reader(target: Expr, writer: Expr) -> bool:
    """Return False only if no pending node but those that `writer` needs reads the leaf `target`.

    Also True if too many nodes read other parts of that storage. The conditions of `find_readers`
    hold.
    """
    storage = storage_of(target)
    if _rematerialized_nodes:
        _log_lock.held(_prune_rematerialized, ())
        register_readers()
    if storage.overlap is not None:
        needed_by_overlap: set[Expr] = set()
        early = [
            r
            for r in find_readers(storage)
            if _must_run_before_write(r, target, writer, needed_by_overlap)
        ]
        return bool(early)
    if _may_unregistered_node_read(storage, writer) and _log_lock.held(
        _must_recent_node_run_first, (target, writer)
    ):
        return True
    if storage.readers is None:
        return False
    still_pending: list[ref[Expr]] = []
    needed_by: set[Expr] = set()
    for r in storage.readers:
        e = referent(r)
        if e is not None and e.op is not None:
            if _must_run_before_write(e, target, writer, needed_by):
                return True
            still_pending.append(r)
    storage.readers = still_pending or None
    return len(still_pending) > PENDING_READERS_MAX


def has_no_reader(storage: Storage) -> bool:
    """Return True if a short search finds that no pending node reads the storage.

    Only storages that do not overlap others are searched for. A False may be wrong: then
    `has_other_reader` must decide, which registers and prunes nodes for the next searches.
    """
    if storage.readers is not None or storage.overlap is not None or _rematerialized_nodes:
        return False
    return not _may_unregistered_node_read(storage, None)


def _may_unregistered_node_read(storage: Storage, writer: Expr | None) -> bool:
    """Return True if an unregistered node but `writer` reads a storage, or there are too many."""
    n = len(_pending_log)
    if n - _registered_count > _unregistered_max:
        return True
    for i in range(_registered_count, n):
        e = referent(_pending_log[i])
        if e is not None and e is not writer and e.op is not None and _reads_directly(e, storage):
            return True
    return False


def _must_run_before_write(e: Expr, target: Expr, writer: Expr, needed_by: set[Expr]) -> bool:
    """Return True if `e` reads the leaf, and is no part of `writer` or is recomputed later.

    An empty `needed_by` is filled with the nodes that `writer` depends on.
    """
    if e is writer or not reads(e, target):
        return False
    return not _is_needed_by(e, writer, needed_by) or is_recomputed(e, needed_by)


def _reads_directly(e: Expr, storage: Storage) -> bool:
    """Return True if a node reads this storage directly."""
    for a in e.args:
        if type(a) is Expr:
            x = a
            if x.op is None and storage_of(x) is storage:
                return True
    return False


def reads(e: Expr, target: Expr) -> bool:
    """Return True if a leaf among a node's operands may overlap the leaf `target`."""
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
        return not is_disjoint(a, b)
    return storage.overlap is not None and storage.overlap is other.overlap


def is_disjoint(a: Expr, b: Expr) -> bool:
    """Return True if the strides prove that two leaves of one storage share no element."""
    return a.spec.itemsize == b.spec.itemsize and are_disjoint(
        a.spec.shape, a.strides, a.offset, b.spec.shape, b.strides, b.offset
    )


def _is_needed_by(e: Expr, writer: Expr, needed_by: set[Expr]) -> bool:
    """Return True if `writer` depends on `e`; fill an empty `needed_by` with dependencies.

    These are also found behind leaves with a lazy storage.
    """
    if not needed_by:
        stack = [writer]
        while stack:
            a = stack.pop()
            if a.op is None:
                if a.storage.pending is not None:
                    stack.append(a.storage.pending)
            elif a not in needed_by:
                needed_by.add(a)
                stack += [b for b in a.args if type(b) is Expr]
    return e in needed_by


def _must_recent_node_run_first(target: Expr, writer: Expr) -> bool:
    """Return True if an unregistered node must run before the write; if none, register a surplus.

    Up to UNREGISTERED_NODES_MAX of them, as in a loop, stay unregistered.
    """
    n, storage = len(_pending_log), storage_of(target)
    needed_by: set[Expr] = set()
    for i in range(_registered_count, n):
        e = referent(_pending_log[i])
        if e is None or e.op is None or not _reads_directly(e, storage):
            continue
        if _must_run_before_write(e, target, writer, needed_by):
            return True
    if n - _registered_count > _unregistered_max:
        still_pending: list[ref[Expr]] = []
        for i in range(_registered_count, n):
            e = referent(_pending_log[i])
            if e is not None and e.op is not None:
                still_pending.append(_pending_log[i])
        _pending_log[_registered_count:n] = still_pending
        if len(_pending_log) - _registered_count > _unregistered_max:
            _register_recent()
    return False


def _register_recent() -> None:
    """Add each node recorded since the last call to its operands' `readers`; needs the lock."""
    global _registered_count
    first, _registered_count = _registered_count, len(_pending_log)
    for r in _pending_log[first:_registered_count]:
        e = referent(r)
        if e is not None:
            for a in e.args:
                if type(a) is Expr:
                    _register_reader(r, a)


def _register_reader(r: ref[Expr], operand: Expr) -> None:
    """Add a node to the `readers` of an operand, or of the storage or node behind a leaf."""
    owner: Expr | Storage = operand
    if operand.op is None:
        storage = storage_of(operand)
        owner = storage if storage.pending is None else storage.pending
    if owner.readers is None:
        owner.readers = [r]
    else:
        owner.readers.append(r)


def watch_value(e: Expr) -> Watch:
    """Return the Watch, created on first use, that reports an overwrite of the current value.

    It stays with the value when that is computed, and all views of the value share it.
    """
    holder = _value_owner(e)
    watch: Watch | None = holder.watch
    if watch is None:
        holder.watch = watch = Watch()
    return watch


def mark_value_overwritten(e: Expr, name: str) -> None:
    """Set the writer of the watch on the current value of `e` to `name`, and drop the watch."""
    if e.op is None:
        storage = storage_of(e)
        if storage.pending is None and storage.watch is None and storage.overlap is None:
            return  # the most frequent case
    mark_overwritten(_value_owner(e), name)


def mark_overwritten(owner: Expr | Storage, name: str) -> None:
    """Set the writer of the watches of a node, or a storage and its overlaps; drop the watches."""
    overlap = None if isinstance(owner, Expr) else owner.overlap
    for h in (owner,) if overlap is None else overlap.members():
        if h.watch is not None:  # the next value that is saved there gets a new watch
            h.watch.writer, h.watch = name, None


def _value_owner(e: Expr) -> Expr | Storage:
    """Return what holds the value's watch: the node that is to compute it, else its storage."""
    if e.op is not None:
        return e
    storage = storage_of(e)
    return storage if storage.pending is None else storage.pending


def mark_index_check(e: Expr, line: Line) -> None:
    """Mark a node as one that checks its indices when it runs; store the user's line in it."""
    e.check_line = line
    _checking_nodes.append(weakly(e))
    if len(_checking_nodes) % 512 == 0:
        with _log_lock:
            _drop_computed(_checking_nodes)


def has_index_checks() -> bool:
    """Return True if any pending node checks its indices; prune their list first."""
    if _checking_nodes:
        with _log_lock:
            _drop_computed(_checking_nodes)
    return bool(_checking_nodes)


def has_unresolved_check(e: Expr) -> bool:
    """Return True if the value depends on a bounds check that is pending, unsettled or failed."""
    visited: set[Expr] = set()
    stack = [e]
    while stack:
        a = stack.pop()
        if a in visited:
            continue
        visited.add(a)
        if a.op is None:
            storage = storage_of(a)
            if storage.checks:
                return True
            if storage.pending is not None:
                stack.append(storage.pending)
        elif a.check_line is not None:
            return True
        else:
            stack += [b for b in a.args if type(b) is Expr]
    return False


def have_unresolved_checks(roots: list[Expr]) -> list[bool]:
    """Return `has_unresolved_check` of each root; nodes that roots share are visited once."""
    is_bad: dict[Expr, bool] = {}
    stack = [*roots]
    while stack:
        e = stack[-1]
        if e.op is not None:
            operands = [a for a in e.args if type(a) is Expr]
        else:
            pending = storage_of(e).pending
            operands = [] if pending is None else [pending]
        waiting = [a for a in operands if a not in is_bad]
        if waiting and e.check_line is None:
            stack += waiting
            continue
        own = e.check_line is not None if e.op is not None else bool(storage_of(e).checks)
        is_bad[e] = own or any([is_bad.get(a, False) for a in operands])
        stack.pop()
    return [is_bad[e] for e in roots]


EXPORT_SEARCH_NODES_MAX = 256  # nodes that `reads_exported` visits at most


def reads_exported(e: Expr) -> bool:
    """Return True if pending work reads exported memory, or has too many nodes to search.

    Code outside of dovetail may write to exported memory at any time.
    """
    visited: set[Expr] = set()
    stack = [e]
    while stack:
        a = stack.pop()
        if a in visited:
            continue
        visited.add(a)
        if len(visited) > EXPORT_SEARCH_NODES_MAX:
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
    """Return the storage of a leaf; replace a lazy storage in `e` if its node is computed."""
    storage = e.storage
    pending = storage.pending
    while pending is not None and pending.op is None:
        e.storage = storage = pending.storage
        pending = storage.pending
    return storage


def leaf(
    storage: Storage, spec: Spec, strides: Shape, offset: int, moves: tuple[Move, ...] = ()
) -> Expr:
    """Create a leaf: a strided view of a storage, without tape; `moves` lead to a lazy storage."""
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec = None, (), None, spec
    e.depth = 0 if storage.pending is None else storage.pending.depth
    e.storage, e.strides, e.offset, e.moves = storage, strides, offset, moves
    e.tape = e.readers = e.watch = e.check_line = None
    return e


def tape_of(op: Op, args: Args, spec: Spec, attrs: Attrs) -> Tape:
    """Record the tape of an op that never runs; return it, or None if no operand has a tape."""
    if all([type(a) is not Expr or a.tape is None for a in args]):
        return None
    e = Expr.__new__(Expr)
    e.op, e.args, e.attrs, e.spec, e.watch = op, args, attrs, spec, None
    return callbacks.record_tape(e)


def rematerialize(e: Expr) -> Expr:
    """Create a pending node that computes the value of `e` again, so `e` is not materialised.

    The two share one tuple of arguments: outside of an evaluated graph the new node holds no
    further references to them, for which the planner would store them (`find_shared_arguments`).
    """
    t = Expr.__new__(Expr)
    t.op, t.args, t.attrs, t.spec, t.depth, t.tape = e.op, e.args, e.attrs, e.spec, e.depth, e.tape
    t.readers = t.watch = t.check_line = None
    r = weakly(t)
    _pending_log.append(r)
    _rematerialized_nodes.append(r)
    if e.check_line is not None:
        mark_index_check(t, e.check_line)
    return t


def has_rematerialized() -> bool:
    """Return False only if no rematerialised node is pending."""
    return bool(_rematerialized_nodes)


def find_shared_arguments(nodes: Sequence[Expr | None]) -> tuple[int, ...]:
    """Return positions of nodes whose `args` is the very tuple of an earlier one.

    These are rematerialised forms of nodes in the same graph: their uses are not references.
    """
    if not _rematerialized_nodes:
        return ()
    visited: set[int] = set()
    shared = []
    for i, e in enumerate(nodes):
        if e is not None and e.op is not None and e.args:
            if id(e.args) in visited:
                shared.append(i)
            else:
                visited.add(id(e.args))
    return tuple(shared)


def convert_to_leaf(e: Expr, storage: Storage) -> None:
    """Turn a node into a contiguous leaf; its watch and readers go to `storage` or its source.

    Watch and readers go where `_value_owner` and `_register_reader` look for them.
    """
    pending = storage.pending
    if pending is None:
        storage.watch = e.watch
    else:
        pending.watch = e.watch
    e.storage, e.strides, e.offset, e.moves = storage, e.spec.strides, 0, ()
    e.op, e.args, e.attrs, e.depth = None, (), None, 0
    if e.readers is not None:
        owner: Expr | Storage = storage if pending is None else pending
        owner.readers, e.readers = e.readers, None
