"""Why rows of the sweep are behind the faster peer: a word for each, which the page explains.

Rules are asked in order; the first that holds for a row, a size, a dtype and an arrangement says
the cause. A row that no rule explains has none on the page, and `sweep.py` prints its name.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

K = 1024
SMALL = 4 * K  # elements up to which what surrounds the kernel counts most
CACHED = 256 * K  # up to which operands lie in the processor's caches

EXPLAINED = {
    "operand": "PyTorch returns the operand itself. The standard requires a new array, as in "
    "NumPy, so dovetail copies.",
    "launch": "One launch takes 0.15-0.2 us to record, and 0.65 us from the lookup of the graph's "
    "key to the kernel's return. NumPy's call of a ufunc takes 0.25-0.4 us in all.",
    "first cache": "One launch (0.85 us) and a kernel of 1-10 us. NumPy has less overhead before "
    "the loop, or the peer uses two threads. dovetail shares such small work between threads only "
    "if the virtual cores are near each other, so some of these rows are slow in one run and not "
    "in another (`argmax(axis=1)` of float64 10 us and 6 us; `copy` 8 us and 4 us).",
    "view": "No launch. A view is a tensor, a leaf and an entry among the aliases of its storage: "
    "0.15-0.3 us, and 0.05 us for its `evaluate`. NumPy makes one object.",
    "host read": "A slice and a read, 0.16-0.2 us each, are dispatched one after the other. NumPy "
    "makes one scalar.",
    "write": "A write is a graph with a target. dovetail looks for other readers and views of the "
    "memory (0.5 us), then launches. NumPy stores through a pointer.",
    "checked": "The kernel checks the indices, and its result becomes visible only after the "
    "check. In a scatter the last write to a place wins, so writes are sequential.",
    "count": "The size of the result depends on values: launches that count, a read by the host, "
    "and a launch for the result. NumPy counts and fills in one call.",
    "pages": "A kernel fills the memory. NumPy gets zeroed pages from the system, which are "
    "allocated at first access, after the measured time (`zeros` and one write to all of it, 16 "
    "M: 2.8 ms, NumPy 3.9 ms). Below that size NumPy clears its memory.",
    "objects": "dovetail makes four objects, where the peer makes one: a tensor with a storage, a "
    "pointer and a leaf. The caching allocator adds to that.",
    "random": "Numbers come from Philox counters, so they are the same on every device. A "
    "permutation sorts 64-bit keys, where PyTorch swaps in place.",
    "elementary": "The function is written in the kernel IR, within about 1 ulp and with the same "
    "bits on every device. It computes in pairs of floats, where the peer computes float32 in "
    "float64. The peer's way was measured too (`pow` 1.5 times as fast), but every device would "
    "need float64.",
    "order": "The reduction uses the canonical order (chunks and lanes), which no device may "
    "change. The peer calls BLAS, or adds in any order.",
    "exact": "The remainder is the exact one, rounded once, for any ratio of the operands. The "
    "peer subtracts a rounded product.",
    "places": "Each element is computed from its position. The peer clears memory and writes the "
    "diagonal.",
    "column": "A launch of few elements, each in its own cache line.",
    "memory": "Memory limits both libraries, so such rows change from run to run (`sum(axis=1)` "
    "of (n/32, 32) at 16 M was 0.76, 1.20 and 1.15 in three runs).",
    "sort": "Short rows are sorted by a network of exchanges, whose length is a power of two; "
    "longer ones by NumPy's own sort, a copy, and a search for -0 and NaN, which NumPy leaves in "
    "any order.",
    "search": "A binary search for each element, ten steps at 1 K. NumPy continues from the "
    "previous position.",
}


@dataclass(frozen=True)
class Rule:
    """Rows by name (all unless given), sizes, dtypes and arrangements of which a cause holds."""

    cause: str
    rows: Container[str] | None = None
    least: int = 0
    most: int = 1 << 62
    dtypes: Container[str] | None = None
    arrangements: Container[str] | None = None

    def holds(self, row: str, size: int, dtype: str, arrangement: str) -> bool:
        """Whether it explains this line of the table."""
        return (
            (self.rows is None or row in self.rows)
            and self.least <= size <= self.most
            and (self.dtypes is None or dtype in self.dtypes)
            and (self.arrangements is None or arrangement in self.arrangements)
        )


RULES = [
    Rule("operand", ("positive",)),
    Rule("host read", ("float(x[i])", "x.item()")),
    Rule("view", ("x[i]", "x[a:b]", "permute_dims", "matrix_transpose", "squeeze", "moveaxis",
                  "expand_dims", "reshape", "broadcast_to")),
    Rule("checked", ("x[idx]", "square[idx]", "x[idx] = y", "take", "take_along_axis")),
    Rule("write", ("x[i] = 1", "x[a:b] = y", "x[10:] = y[10:]", "x[::2] = y[::2]", "x[:] = 0",
                   "x += y; x -= y", "x[mask] = 0")),
    Rule("count", ("x[mask]", "nonzero", "unique_values", "unique_counts", "unique_inverse",
                   "unique_all")),
    Rule("pages", ("zeros", "zeros_like")),
    Rule("objects", ("empty", "empty_like")),
    Rule("random", ("random.random", "random.normal", "random.permutation")),
    Rule("elementary", ("pow", "log2", "log10", "log", "log1p", "tan", "atan2", "acosh", "asinh",
                        "atanh", "sinh", "cosh", "tanh", "exp", "expm1", "acos", "asin", "atan",
                        "sin", "cos", "hypot", "logaddexp"), least=SMALL),
    Rule("sort", ("sort", "sort(axis=1)", "argsort")),
    Rule("search", ("searchsorted",)),
    Rule("order", ("matrix @ vector", "vector @ matrix", "x @ y", "vecdot", "argmax", "argmin",
                   "sum", "mean", "prod", "var", "std"), least=SMALL),
    Rule("exact", ("remainder", "floor_divide"), least=SMALL),
    Rule("places", ("eye",), least=SMALL),
    Rule("column", ("square[:, 0] + 1",), least=SMALL),
    Rule("launch", most=SMALL),
    Rule("first cache", most=CACHED),
    Rule("memory"),
]  # fmt: skip


def cause_of(row: str, size: int, dtype: str, arrangement: str) -> str:
    """The word for a line's cause; empty where none is known."""
    found = (r.cause for r in RULES if r.holds(row, size, dtype, arrangement))
    return next(found, "")
