"""The deferred graph: immutable nodes, and what is known of each before it is computed.

An `Expr` is an op applied to other nodes and Python numbers, or a leaf: a strided view of a
`Storage`. When its value has been computed, a node *becomes* a leaf, which also lets go of its
arguments.
"""

from __future__ import annotations

import math
from threading import RLock
from typing import TYPE_CHECKING, Any
from weakref import ref

from .dtypes import DType
from .errors import ShapeError
from .layout import LIMIT, Shape, contiguous_strides
from .recent import Shared

if TYPE_CHECKING:
    from .device import Device
    from .memory import Storage
    from .ops import Op

# A pending chain deeper than this is computed: it bounds kernels, recursion and memory.
DEPTH_LIMIT = 64


class Spec:
    """Shape, dtype and device: unique, so specs compare with `is` and hash at once."""

    __slots__ = ("__weakref__", "device", "dtype", "shape", "size", "strides")

    shape: Shape
    dtype: DType
    device: Device
    size: int
    strides: Shape  # contiguous ones

    def __repr__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)} on {self.device}"


SPEC_LIMIT = 16384  # specs kept that nobody uses
_SPECS: Shared[tuple[Shape, DType, Any], Spec] = Shared(SPEC_LIMIT)
_making = RLock()


def spec(shape: Shape, dtype: DType, device: Device, op: str = "tensor") -> Spec:
    """The one Spec for these three. Raises: ShapeError, on behalf of `op`, where it is too large
    for any device."""
    return _SPECS.young.get((shape, dtype, device)) or _spec((shape, dtype, device), op)


def _spec(key: tuple[Shape, DType, Device], op: str) -> Spec:
    with _making:
        found = _SPECS.find(key)
        if found is None:
            found = _SPECS[key] = _made(key, op)
        return found


def _made(key: tuple[Shape, DType, Device], op: str) -> Spec:
    made = Spec()
    made.shape, made.dtype, made.device = shape, dtype, _ = key
    whole = math.prod([n or 1 for n in shape])  # as NumPy does: strides must be in range, too
    if whole * dtype.itemsize >= LIMIT:
        raise ShapeError(
            f"{op}: shape {shape} of {dtype.name} comes to 2**63 bytes or more, which no tensor "
            f"may have, in memory, pending or as a view; make it in parts"
        )
    made.size, made.strides = math.prod(shape), contiguous_strides(shape)
    return made


class Expr:
    """A node. Pending: `op`, `args` (nodes and Python numbers), `attrs` (what is static about the
    op).

    Leaf (`op` is None): `storage`, `strides`, `offset`; `moves` say how a view of a storage that is
    itself still
    pending came about.
    """

    __slots__ = (
        "__weakref__", "args", "attrs", "depth", "moves", "offset", "op", "spec", "storage",
        "strides", "tape",
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


_log: list[
    ref[Expr]
] = []  # every node that may still be pending; the dead and the done are dropped in passing
_log_limit = 512
_pruning = RLock()
record: Any = None  # autograd's: the tape of a node of which some operand has one


def node(op: Op, args: tuple[Any, ...], spec: Spec, attrs: Any = None) -> Expr:
    """A pending node."""
    e = Expr()
    e.op, e.args, e.attrs, e.spec = op, args, attrs, spec
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
    e.op, e.args, e.attrs, e.spec = op, (a, b), None, spec
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
    e.tape = None
    return e


def tape_of(op: Op, args: tuple[Any, ...], spec: Spec, attrs: Any) -> Any:
    """The tape of what is made otherwise than by evaluating a node: a view, a concatenation."""
    if record is None or all(type(a) is not Expr or a.tape is None for a in args):
        return None
    e = Expr()
    e.op, e.args, e.attrs, e.spec = op, args, attrs, spec
    return record(e)


def twin(e: Expr) -> Expr:
    """A pending node with the same value: who holds it has it computed again, not stored."""
    t = Expr()
    t.op, t.args, t.attrs, t.spec, t.depth, t.tape = e.op, e.args, e.attrs, e.spec, e.depth, e.tape
    _log.append(ref(t))
    return t


def settle(e: Expr, storage: Storage) -> None:
    """The node's value has been computed into `storage`, contiguously: it is a leaf from now on."""
    e.storage, e.strides, e.offset, e.moves = storage, e.spec.strides, 0, ()
    e.op, e.args, e.attrs, e.depth = None, (), None, 0
