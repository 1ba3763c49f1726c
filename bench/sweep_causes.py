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
    "operand": "PyTorch returns its operand itself. The standard asks for a new array, as NumPy "
    "makes: this is a copy.",
    "launch": "One launch: 0.15-0.2 us to record it and 0.65 us from the graph's key to the "
    "kernel's return, of which NumPy's call of a ufunc needs 0.25-0.4 us in all.",
    "first cache": "One launch (0.85 us) and 1-10 us of a kernel: NumPy, called with less in "
    "front, is done; or two threads of the peer are. Ours share so little only while the virtual "
    "cores are near each other: some of these rows are here in one run and not in another "
    "(`argmax(axis=1)` of float64 10 us, and 6; `copy` 8 us, and 4).",
    "view": "No launch: a view is a tensor, a leaf and its place among its storage's aliases, "
    "0.15-0.3 us, and `evaluate` of it 0.05 us; NumPy makes one object.",
    "host read": "A slice and a read, 0.16-0.2 us each, dispatched one by one; NumPy makes one "
    "scalar.",
    "write": "A write is a graph with a target: who reads the memory and whose views it has are "
    "looked at (0.5 us), then there is a launch; NumPy stores through a pointer.",
    "checked": "Indices are checked by the kernel, and what others see waits for the answer; a "
    "scatter lets the last writer win, one after the other.",
    "count": "How large the result is depends on values: launches that count, a read by the host, "
    "and one for the result. NumPy counts and fills in one call.",
    "pages": "Filled by a kernel. NumPy takes pages of the system that are zero when they are "
    "touched, later than what is timed (`zeros` and one more write to all of it, 16 M: 2.8 ms, "
    "NumPy's 3.9); below that size it clears what it has.",
    "objects": "A storage, a pointer and a leaf beside the tensor, and the caching allocator: four "
    "objects where the peer has one.",
    "random": "Numbers come from Philox counters, so that they are the same on every device; keys "
    "of 64 bits are sorted where PyTorch swaps in place.",
    "elementary": "Written in the kernel IR, to be right to 1 ulp with the same bits on every "
    "device: in pairs of floats, where the peer computes float32 in float64. That was measured, "
    "too (`pow` 1.5 x as fast); it asks float64 of every device.",
    "order": "A reduction in the canonical order (chunks and lanes that no device may change); the "
    "peer calls BLAS or adds as it likes.",
    "exact": "The remainder of exact arithmetic, rounded once, however far apart the operands are; "
    "the peer subtracts a product that has been rounded.",
    "places": "Each element is computed from its place; the peer clears memory and writes the "
    "diagonal.",
    "column": "A launch of few elements, each of them in a line of the cache of its own.",
    "memory": "Bound by memory for both: such rows come and go from run to run (`sum(axis=1)` of "
    "(n/32, 32) at 16 M was at 0.76, 1.20 and 1.15 in three runs).",
    "sort": "NumPy's own sort does the work, around it a launch, a copy, and the look for -0 and "
    "NaN, which NumPy leaves in any order.",
    "search": "A binary search for each element, ten rounds of it at 1 K, where NumPy goes on from "
    "the last place.",
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
