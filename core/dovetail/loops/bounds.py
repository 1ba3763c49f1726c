"""Where a kernel reads and writes, for given sizes: intervals of the indices into its buffers.

They say what is true of every launch with these integers, never less: an index that depends on
data is known only as far as the kernel itself compares it before it uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from ..dtypes import DType, int32
from .builder import Kernel
from .language import CHUNK, Atomic, Block, Loop, Store, Value, walk
from .words import is_wide

Interval = tuple[int, int]  # the least and the largest value
Known = Mapping[int, Interval]  # by id of a value, what a condition says of it
MOST = 4096  # values that one index is made of; beyond, nothing is said


LARGEST = (1 << 31) - 1 - 2 * CHUNK  # of int32 indices: loops over chunks look beyond their end


class Unbounded(Exception):
    """Nothing can be said of an index."""


class Beyond(Exception):
    """A number, `args[0]`, is more than int32 indices have room for."""


def reach(kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> dict[str, Interval]:
    """For each buffer that a launch may touch, the least and the largest index.

    Raises: Unbounded.
    """
    if 0 in grid:
        return {}
    return _Reach(kernel, dict(zip(kernel.ints, ints, strict=True)), grid).run()


def reach_of_each(
    kernel: Kernel, ints: Sequence[int], grid: Sequence[int]
) -> dict[str, Interval | None]:
    """As `reach`, of each buffer apart: None where nothing can be said of one."""
    if 0 in grid:
        return {}
    found = _ReachOfEach(kernel, dict(zip(kernel.ints, ints, strict=True)), grid)
    return found.run() | dict.fromkeys(found.loose)


def refuse_beyond(
    kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int], words: bool = False
) -> None:
    """Nothing, if what a kernel with int32 indices computes of its integers fits, for these.

    `spans`: the least and the largest value of each integer. What memory holds is not asked, but
    as far as the kernel compares it. `words`: whether 64-bit integers are two elements each.

    Raises: Beyond, with a number that does not fit.
    """
    for n in (*grid, *(high for _, high in spans.values())):
        if n > LARGEST:
            raise Beyond(n)
    if 0 not in grid:
        _Fitting(kernel, spans, grid).run()
        if words:
            _InWords(kernel, spans, grid).run()


def whole(d: DType) -> Interval:
    """All values of a dtype of integers or bools."""
    return (0, 1) if d.kind == "b" else (int(d.min), int(d.max))


class _Reach:
    def __init__(self, kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int]) -> None:
        self.kernel, self.ints, self.grid = kernel, ints, grid
        self.loops: dict[int, Interval] = {}  # by id of a loop, its variable
        self.found: dict[str, Interval] = {}
        self.work = 0

    def run(self) -> dict[str, Interval]:
        self.block(self.kernel.body)
        return self.found

    def block(self, block: Block) -> None:
        for s in block:
            if isinstance(s, Loop):
                start, stop = self.value(s.start, {}), self.value(s.stop, {})
                if stop[1] > start[0]:  # else it runs no iteration
                    self.loops[id(s)] = (start[0], stop[1] - 1)
                    self.block(s.body)
            elif isinstance(s, Store | Atomic) or s.op == "load":
                self.touch(s.buffer.name, s.index, s.when)

    def touch(self, name: str, index: Value, when: Value | None) -> None:
        self.work = 0
        known: dict[int, Interval] = {}
        if when is not None:
            known = self.told(when, True, {})
            if any(low > high for low, high in known.values()):
                return
        low, high = self.value(index, known)
        if (low, high) == whole(index.dtype):
            raise Unbounded(name)
        a, b = self.found.get(name, (low, high))
        self.found[name] = (min(a, low), max(b, high))

    # --- conditions
    def told(self, c: Value, holds: bool, known: Known) -> dict[int, Interval]:
        """What is known where a condition holds, or does not."""
        found = dict(known)
        if c.op == "not":
            return self.told(c.args[0], not holds, found)
        if (c.op == "and" and holds) or (c.op == "or" and not holds):
            for a in (*c.args, *c.args):  # twice: what is told of one may narrow the other
                found = self.told(a, holds, found)
        elif c.op in ("lt", "le", "eq") and c.args[0].dtype.is_integer:
            a, b = c.args if holds or c.op == "eq" else c.args[::-1]
            strict = (c.op == "lt") == holds
            if c.op != "eq":
                self.compared(a, b, int(strict), found)
            elif holds:
                self.compared(a, b, 0, found)
                self.compared(b, a, 0, found)
        return found

    def compared(self, a: Value, b: Value, apart: int, found: dict[int, Interval]) -> None:
        """Notes that a + apart <= b."""
        (a_low, a_high), (b_low, b_high) = self.value(a, found), self.value(b, found)
        found[id(a)] = a_low, min(a_high, b_high - apart)
        found[id(b)] = max(b_low, a_low + apart), b_high

    # --- values
    def value(self, v: Value, known: Known) -> Interval:
        """The least and the largest value; all of its dtype where nothing is known."""
        self.work += 1
        if self.work > MOST:
            raise Unbounded(self.kernel.name)
        low, high = self.computed(v, known)
        all_low, all_high = whole(v.dtype) if v.dtype.kind != "f" else (low, high)
        if low < all_low or high > all_high:  # it may wrap
            low, high = all_low, all_high
        if id(v) in known:
            low, high = max(low, known[id(v)][0]), min(high, known[id(v)][1])
        return low, high

    def computed(self, v: Value, known: Known) -> Interval:
        if v.op == "const":
            return int(v.number), int(v.number)
        if v.op == "param" and v.name in self.ints:
            return self.ints[v.name], self.ints[v.name]
        if v.op == "index":
            return 0, self.grid[v.axis] - 1
        if v.op == "loopvar":
            return self.loops[id(v.place[0])]
        if v.op == "where":
            return self.chosen(v, known)
        if v.op in ("lt", "le", "eq", "ne"):
            return 0, 1
        if v.op == "cast" and v.args[0].dtype.kind in "biu":
            return self.value(v.args[0], known)
        rule = _RULES.get(v.op)
        if rule is None or not v.dtype.is_integer:
            if v.dtype.kind == "f":
                raise Unbounded(self.kernel.name)
            return self.unknown(v.dtype)
        return rule(*[self.value(a, known) for a in v.args]) or self.unknown(v.dtype)

    def unknown(self, d: DType) -> Interval:
        """What is said of a value of which nothing is known."""
        return whole(d)

    def chosen(self, v: Value, known: Known) -> Interval:
        """One or the other value, each where the condition says so."""
        c, a, b = v.args
        found = []
        for x, holds in ((a, True), (b, False)):
            told = self.told(c, holds, known)
            if all(low <= high for low, high in told.values()):
                found.append(self.value(x, told))
        if not found:  # neither can be, as far as is known
            raise Unbounded(self.kernel.name)
        return min(low for low, _ in found), max(high for _, high in found)


class _ReachOfEach(_Reach):
    """Goes on where nothing can be said of an index, and notes whose that is as `loose`."""

    def __init__(self, kernel: Kernel, ints: Mapping[str, int], grid: Sequence[int]) -> None:
        super().__init__(kernel, ints, grid)
        self.loose: set[str] = set()

    def block(self, block: Block) -> None:
        try:
            super().block(block)
        except Unbounded:  # a loop's bounds: nothing is known in it, nor looked at behind it
            self.loose |= {
                s.buffer.name
                for s in walk(block)
                if isinstance(s, Store | Atomic) or (isinstance(s, Value) and s.op == "load")
            }

    def touch(self, name: str, index: Value, when: Value | None) -> None:
        try:
            super().touch(name, index, when)
        except Unbounded:
            self.loose.add(name)


class _Fitting(_Reach):
    """Looks at int32 values of integers alone once, and at indices under their conditions."""

    def __init__(self, kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int]) -> None:
        super().__init__(kernel, {}, grid)
        self.spans = spans
        self.plain: dict[int, Interval] = {}  # where no condition is known
        self.data: set[int] = set()  # ids of values in which memory or a scalar has a part

    def block(self, block: Block) -> None:
        for s in block:
            self.work = 0
            with suppress(Unbounded):
                if isinstance(s, Value) and s.op != "load":
                    if any(map(self.is_data, s.args)):
                        self.data.add(id(s))
                    elif s.dtype is int32:
                        self.value(s, {})
                else:
                    super().block((s,))

    def is_data(self, v: Value) -> bool:
        """Whether a value is none of the launch's integers, nor made of these alone."""
        if v.op in ("const", "index", "loopvar"):
            return False
        return v.op in ("load", "carry", "result") or id(v) in self.data or (
            v.op == "param" and v.name not in self.spans
        )  # fmt: skip

    def touch(self, name: str, index: Value, when: Value | None) -> None:
        self.value(index, {} if when is None else self.told(when, True, {}))

    def value(self, v: Value, known: Known) -> Interval:
        if not known and id(v) in self.plain:
            return self.plain[id(v)]
        found = super().value(v, known)
        if not known:
            self.plain[id(v)] = found
        return found

    def computed(self, v: Value, known: Known) -> Interval:
        if v.op == "param" and v.name in self.spans:
            return self.spans[v.name]
        if v.op == "cast" and v.args[0].dtype.kind in "iu":
            of = self.value(v.args[0], known)
            return whole(v.dtype) if of == whole(v.args[0].dtype) else of
        found = super().computed(v, known)
        if v.dtype is not int32 or v.op not in _RULES or _fits(found):
            return found
        if all(_fits(self.value(a, known)) for a in v.args):  # else it is memory that says so
            raise Beyond(max(found, key=abs))
        return found


class _InWords(_Reach):
    """Looks at indices of 64-bit integers, which are twice as large in words.

    What memory holds may be anything, as far as the kernel does not compare it: `_ANY`, which is
    also what is made of it, and no index is refused for that.
    """

    def __init__(self, kernel: Kernel, spans: Mapping[str, Interval], grid: Sequence[int]) -> None:
        super().__init__(kernel, {}, grid)
        self.spans = spans
        self.pairs = {b.name for b in kernel.buffers if is_wide(b.dtype)}

    def block(self, block: Block) -> None:
        for s in block:
            self.work = 0
            with suppress(Unbounded):
                super().block((s,))

    def touch(self, name: str, index: Value, when: Value | None) -> None:
        if name in self.pairs:
            _, high = self.value(index, {} if when is None else self.told(when, True, {}))
            if high <= LARGEST < 2 * high + 1:  # more than fits is none but memory's
                raise Beyond(2 * high + 1)

    def value(self, v: Value, known: Known) -> Interval:
        self.work += 1
        if self.work > MOST:
            raise Unbounded(self.kernel.name)
        low, high = self.computed(v, known)
        least, most = known.get(id(v), (low, high))
        return max(low, least), min(high, most)

    def computed(self, v: Value, known: Known) -> Interval:
        if v.op == "param" and v.name in self.spans:
            return self.spans[v.name]
        return super().computed(v, known)

    def unknown(self, d: DType) -> Interval:
        return whole(d) if d.kind == "b" else _ANY


_ANY = -(1 << 200), 1 << 200


def _fits(x: Interval) -> bool:
    return -LARGEST <= x[0] <= x[1] <= LARGEST


def _product(a: Interval, b: Interval) -> Interval:
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _quotient(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0:
        return None
    ends = [abs(x) // y * (1 if x >= 0 else -1) for x in a for y in b]
    return min(ends), max(ends)


def _remainder(a: Interval, b: Interval) -> Interval | None:
    if b[0] <= 0:
        return None
    most = b[1] - 1
    return (0 if a[0] >= 0 else max(-most, a[0])), (0 if a[1] < 0 else min(most, a[1]))


def _both(a: Interval, b: Interval) -> Interval | None:
    tops = [x[1] for x in (a, b) if x[0] >= 0]
    return (0, min(tops)) if tops else None


def _shifted(a: Interval, b: Interval) -> Interval | None:
    if b[0] < 0 or b[1] > 63:
        return None
    ends = [x >> y for x in a for y in b]
    return min(ends), max(ends)


def _raised(a: Interval, b: Interval) -> Interval | None:
    if b[0] < 0 or b[1] > 63:
        return None
    ends = [x << y for x in a for y in b]
    return min(ends), max(ends)


_RULES: dict[str, Callable[..., Interval | None]] = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": _product,
    "quo": _quotient,
    "rem": _remainder,
    "and": _both,
    "shr": _shifted,
    "shl": _raised,
}
