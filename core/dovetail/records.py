"""Small records that compiled modules read as C structs: devices, dtypes, flags, counters."""

from __future__ import annotations

from typing import Any

DEPTH_LIMIT = 64  # of a pending chain; a deeper one is computed: it bounds kernels and recursion


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
    """What the hot path asks of the process each time, in one place that is quick to look at."""

    __slots__ = ("captures", "depth", "exports", "profiled", "tainted")

    captures: int  # recorders of captured functions that are in use, on any thread

    # DEPTH_LIMIT, or 0 while some ops run at once: those of a context, or those that read what
    # others may write to. Which these are takes longer to ask.
    depth: int
    exports: int  # owners of views by which other code may write to memory (`storage.Export`)
    profiled: bool  # whether any profile is being taken
    tainted: bool  # whether any tensor may hold what comes of a bad index

    def __init__(self) -> None:
        self.captures, self.depth, self.exports = 0, DEPTH_LIMIT, 0
        self.profiled = self.tainted = False


class Counters:
    """What evaluation has done since the process began."""

    __slots__ = (
        "calls", "compile_seconds", "compiles", "disk_hits", "evaluations", "launches",
        "load_failures", "plans", "recognised",
    )  # fmt: skip

    evaluations: int
    recognised: int  # of those: known from their roots on, without a key
    plans: int  # graphs of a structure not seen before
    launches: int
    compiles: int
    disk_hits: int
    load_failures: int  # binaries from disk that `Backend.load` refused
    compile_seconds: float
    calls: int  # vendor routines

    def __init__(self) -> None:
        self.evaluations = self.recognised = self.plans = self.launches = self.calls = 0
        self.compiles = self.disk_hits = self.load_failures = 0
        self.compile_seconds = 0.0
