"""Small records that compiled modules read as C structs: devices, dtypes, flags, counters."""

from __future__ import annotations

from typing import Any

DEPTH_LIMIT = 64  # of a pending chain; a deeper one is evaluated, to bound kernels and recursion


class DeviceRecord:
    """The attributes of a `Device` that compiled modules read as a C struct."""

    __slots__ = ("_hash", "opened")

    _hash: int
    opened: Any

    def __hash__(self) -> int:
        return self._hash


class DTypeRecord:
    """The attributes of a `DType` that compiled modules read as a C struct."""

    __slots__ = ("_hash", "compute", "itemsize", "kind", "name")

    _hash: int
    compute: Any
    itemsize: int
    kind: str
    name: str

    def __hash__(self) -> int:
        return self._hash


class Flags:
    """Flags of the process that the hot path reads each time, in one quick place."""

    __slots__ = (
        "captures",
        "depth",
        "exports",
        "has_autocast",
        "has_fast_math",
        "has_unresolved_checks",
        "is_observed",
        "may_fill_junk",
    )

    captures: int  # recorders of captured functions that are in use, on any thread

    # DEPTH_LIMIT, or 0 while some ops run eagerly: in a context, or because they read memory that
    # other code may write to. Then each op checks whether it is one of them, which takes longer.
    depth: int
    exports: int  # owners of views by which other code may write to memory (`storage.Export`)
    is_observed: bool  # True while a profile is being taken
    has_autocast: bool  # True while some context has the setting `autocast`
    has_fast_math: bool  # True while some context has the setting `fast_math`
    may_fill_junk: bool  # False if neither a context nor DOVETAIL_JUNK fills new memory
    has_unresolved_checks: bool  # True if a tensor may hold values read at an index out of range

    def __init__(self) -> None:
        self.captures, self.depth, self.exports = 0, DEPTH_LIMIT, 0
        self.is_observed = self.has_autocast = False
        self.has_fast_math = self.has_unresolved_checks = False
        self.may_fill_junk = True  # until the variable is read


class Counters:
    """Counters of evaluation since the process began."""

    __slots__ = (
        "calls",
        "compile_seconds",
        "compiles",
        "disk_hits",
        "evaluations",
        "graph_hits",
        "launches",
        "load_failures",
        "plans",
        "shape_class_hits",
    )

    evaluations: int
    graph_hits: int  # evaluations whose cached graph matched from its roots, without a key
    plans: int  # graphs that were planned: of a new structure, or of sizes in no shape class
    shape_class_hits: int  # graphs that got their plan from the shape class of their sizes
    launches: int
    compiles: int
    disk_hits: int
    load_failures: int  # binaries from disk that `Backend.load` refused
    compile_seconds: float
    calls: int  # vendor routines

    def __init__(self) -> None:
        self.evaluations = self.graph_hits = self.plans = self.launches = self.calls = 0
        self.compiles = self.disk_hits = self.load_failures = self.shape_class_hits = 0
        self.compile_seconds = 0.0
