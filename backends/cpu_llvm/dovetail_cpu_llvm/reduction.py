"""The reduce loop, in the canonical order of `dovetail.loops.language`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dovetail.extend import CHUNK, LANES, DType, Loop, combine

from .emit import Lane, constant, memory_type, scalar_type
from .loops import Loops
from .schedule import REGISTERS

LEVELS = 3  # good for CHUNK ** 3 elements


class Reduction:
    """One reduce loop.

    Lanes of the canonical order are kept per level: level 0 combines elements, level 1 the results
    of chunks, and so on. In lockstep a level is an array of LANES vectors (one element for each
    point), or of LANES rows of vectors in a panel; where the loop's iterations are themselves
    spread, level 0 is one vector of LANES elements.
    """

    def __init__(self, r: Loops, loop: Loop) -> None:
        self.r, self.loop = r, loop
        self.dtypes = [u.dtype for u in loop.update]
        self.vectorized = r.vectorizes(loop)
        panel = r.schedule.panel
        self.width = r.schedule.width if panel else r.width
        self.unit = r.vectors if panel else "1"
        self.items = [r.wide(memory_type(d), self.width) for d in self.dtypes]
        most = r.schedule.tile // r.schedule.width if panel else 1
        self.levels = [r.slot(t, LEVELS * LANES * most) for t in self.items]
        identity = combine(str(loop.combine), tuple(self.dtypes)).identity
        self.identity = [constant(v) for v in identity]

    def render(self) -> None:
        r = self.r
        self.first = r.uniform(self.loop.start)
        span = r.let(f"sub i64 {r.uniform(self.loop.stop)}, {self.first}")
        some = r.let(f"icmp sgt i64 {span}, 0")
        self.count = r.let(f"select i1 {some}, i64 {span}, i64 0")
        chunks = self.over_chunk(self.count)
        none = r.let(f"icmp eq i64 {chunks}, 0")
        chunks = r.let(f"select i1 {none}, i64 1, i64 {chunks}")
        self.done = r.label()
        self.out = [r.slot(r.wide(scalar_type(d))) for d in self.dtypes]
        self.base = r.slot("i64")
        if not self.vectorized:
            self.used = self.lanes_used()
            self.narrow = self.is_narrow() if r.schedule.panel else ""
            self.half = r.counter(r.let(f"lshr i64 {self.used}, 1"))
        with r.loop("0", chunks) as c:
            known = r.snapshot()
            if self.vectorized:
                self.chunk_vectorized(c)
            else:
                self.chunk_lockstep(c)
            r.restore(known)
            self.climb(c, chunks)
        r.do(f"br label %{self.done}")
        r.start(self.done)
        results = self.loop.results
        base = r.let(f"load i64, ptr {self.base}")
        if self.vectorized:
            r.read(results, [scalar_type(d) for d in self.dtypes], self.out)
        elif r.schedule.panel:
            r.results |= {id(v): (a, base) for v, a in zip(results, self.levels, strict=True)}
        else:
            for v, text in zip(results, self.get(self.places(base)), strict=True):
                r.env[id(v)] = Lane(text, r.form)

    def lanes_used(self) -> str:
        """How many lanes of level 0 the tree must see: a power of two.

        Beyond them is only the identity, and x combined with it is x, since every lane has begun
        with it.
        """
        r = self.r
        less = r.let(f"sub i64 {self.count}, 1")
        bits = r.let(f"call i64 @llvm.ctlz.i64(i64 {less}, i1 false)")
        power = r.let(f"shl i64 1, {r.let(f'sub i64 64, {bits}')}")
        one = r.let(f"icmp sle i64 {self.count}, 1")
        many = r.let(f"icmp sge i64 {self.count}, {LANES}")
        few = r.let(f"select i1 {one}, i64 1, i64 {power}")
        return r.let(f"select i1 {many}, i64 {LANES}, i64 {few}")

    def over_chunk(self, n: str) -> str:
        return self.r.let(
            f"lshr i64 {self.r.let(f'add i64 {n}, {CHUNK - 1}')}, {CHUNK.bit_length() - 1}"
        )

    def bounds(self, c: str) -> tuple[str, str]:
        r = self.r
        start = r.let(f"mul i64 {c}, {CHUNK}")
        end = r.let(f"add i64 {start}, {CHUNK}")
        inside = r.let(f"icmp slt i64 {end}, {self.count}")
        return start, r.let(f"select i1 {inside}, i64 {end}, i64 {self.count}")

    def chunk_vectorized(self, c: str) -> None:
        """One chunk, its iterations spread over a vector of LANES accumulators."""
        r = self.r
        types = [r.wide(scalar_type(d), LANES) for d in self.dtypes]
        slots = [r.slot(t) for t in types]
        for t, d, slot, one in zip(types, self.dtypes, slots, self.identity, strict=True):
            r.do(f"store {t} splat ({scalar_type(d)} {one}), ptr {slot}")
        start, stop = self.bounds(c)
        for k in r.lanes(r.counter(start), stop, LANES):
            for _ in r.runs(self.loop, r.i64("add", k.text, self.first)):
                self.accumulate(slots, types)
        self.vectors, self.types = slots, types

    def accumulate(self, slots: list[str], types: list[str]) -> None:
        """Combines the next LANES iterations, or those of the mask, into the accumulators."""
        r = self.r
        r.block(self.loop.body, self.loop.update)
        old = [r.let(f"load {t}, ptr {slot}") for t, slot in zip(types, slots, strict=True)]
        new = r.combined(self.loop, old, [r.vector(u) for u in self.loop.update])
        if r.mask is not None:
            pairs = zip(types, new, old, strict=True)
            new = [r.let(f"select {r.bits(r.mask)}, {t} {x}, {t} {y}") for t, x, y in pairs]
        for t, x, slot in zip(types, new, slots, strict=True):
            r.do(f"store {t} {x}, ptr {slot}")

    def chunk_lockstep(self, c: str) -> None:
        """One chunk for all points at once: LANES partial results in memory, taken in turn."""
        r = self.r
        start, stop = self.bounds(c)
        self.clear("0", self.used)
        if not r.schedule.panel:
            with r.loop(start, stop) as k:
                self.accumulate_in_turn(k, "0")
            return
        known = r.snapshot()
        with r.when(self.narrow), r.loop(start, stop, LANES, whole=False) as first:
            end = r.least(r.let(f"add i64 {first}, {LANES}"), stop)
            for column in r.panel(r.schedule.width // REGISTERS):
                with r.loop(first, end) as k:
                    self.accumulate_in_turn(k, column)
        r.restore(known)
        with r.when(r.let(f"xor i1 {self.narrow}, true")), r.loop(start, stop) as k:
            for column in r.panel():
                self.accumulate_in_turn(k, column)

    def is_narrow(self) -> str:
        """Whether a panel has not even columns for a vector.

        Then fewer of them are set up for many rows at once; a wide panel is read in long pieces.
        """
        r = self.r
        columns = r.let(f"sub i64 {r.columns[1]}, {r.columns[0]}")
        return r.let(f"icmp slt i64 {columns}, {self.width}")

    def accumulate_in_turn(self, k: str, column: str) -> None:
        """Combines iteration `k` into the lane whose turn it is."""
        r = self.r
        r.env[id(self.loop.var)] = Lane(r.i64("add", k, self.first))
        lane = self.at(r.let(f"and i64 {k}, {LANES - 1}"))
        r.block(self.loop.body, self.loop.update)
        places = self.places(lane, column)
        new = [r.vector(u) for u in self.loop.update]
        self.put(places, r.combined(self.loop, self.get(places), new))

    def at(self, lane: str) -> str:
        """The position of a lane's first vector."""
        return self.r.i64("mul", lane, self.unit)

    @contextmanager
    def across(self, count: str) -> Iterator[str]:
        """A loop over vectors in memory."""
        r = self.r
        with r.loop("0", count) as j:
            width, r.width = r.width, self.width
            yield j
            r.width = width

    def climb(self, c: str, chunks: str) -> None:
        """Takes the result of chunk `c` a level up, and on from there while chunks are complete."""
        r = self.r
        level, index, count = r.counter("0"), r.counter(c), r.counter(chunks)
        up, more, again, end = r.label(), r.label(), r.label(), r.label()
        r.do(f"br label %{up}")
        r.start(up)
        which = r.let(f"load i64, ptr {level}")
        base = self.at(r.let(f"mul i64 {which}, {LANES}"))
        r.do(f"store i64 {base}, ptr {self.base}")
        item = self.tree_vectorized() if self.vectorized else self.tree_lockstep(base)
        for d, x, slot in zip(self.dtypes, item, self.out, strict=False):
            r.do(f"store {scalar_type(d)} {x}, ptr {slot}")
        n = r.let(f"load i64, ptr {count}")
        r.do(f"br i1 {r.let(f'icmp eq i64 {n}, 1')}, label %{self.done}, label %{more}")
        r.start(more)
        i = r.let(f"load i64, ptr {index}")
        above = r.let(f"add i64 {base}, {self.at(str(LANES))}")
        low = r.let(f"and i64 {i}, {CHUNK - 1}")
        with r.when(r.let(f"icmp eq i64 {low}, 0")):
            self.clear(above)
        lane = r.let(f"and i64 {i}, {LANES - 1}")
        lane = r.let(f"add i64 {above}, {self.at(lane)}")
        with self.across(self.unit) as j:
            places = self.places(r.let(f"add i64 {lane}, {j}"))
            right = item or self.get(self.places(r.let(f"add i64 {base}, {j}")))
            self.put(places, r.combined(self.loop, self.get(places), right))
        full = r.let(f"icmp eq i64 {low}, {CHUNK - 1}")
        last = r.let(f"icmp eq i64 {r.let(f'add i64 {i}, 1')}, {n}")
        r.do(f"br i1 {r.let(f'or i1 {full}, {last}')}, label %{again}, label %{end}")
        r.start(again)
        r.do(f"store i64 {r.let(f'lshr i64 {i}, {CHUNK.bit_length() - 1}')}, ptr {index}")
        r.do(f"store i64 {self.over_chunk(n)}, ptr {count}")
        r.do(f"store i64 {r.let(f'add i64 {which}, 1')}, ptr {level}")
        if self.vectorized:
            self.level_to_vectors(above)
        else:
            r.do(f"store i64 {LANES // 2}, ptr {self.half}")
        r.do(f"br label %{up}")
        r.start(end)

    def tree_vectorized(self) -> list[str]:
        """The fixed binary tree over the lanes of one vector, by halves."""
        r = self.r
        values = [
            r.let(f"load {t}, ptr {s}") for t, s in zip(self.types, self.vectors, strict=True)
        ]
        width = LANES
        while width > 1:
            halves: list[list[str]] = []
            for first in (0, width // 2):
                picks = ", ".join(f"i32 {first + j}" for j in range(width // 2))
                halves.append(
                    [
                        self.pick(d, x, width, picks, first)
                        for d, x in zip(self.dtypes, values, strict=True)
                    ]
                )
            width //= 2
            r.width = width
            values = r.combined(self.loop, *halves)
        return values

    def pick(self, d: DType, x: str, width: int, picks: str, first: int) -> str:
        t = self.r.wide(scalar_type(d), width)
        if width == 2:
            return self.r.let(f"extractelement {t} {x}, i64 {first}")
        return self.r.let(f"shufflevector {t} {x}, {t} poison, <{width // 2} x i32> <{picks}>")

    def level_to_vectors(self, base: str) -> None:
        r = self.r
        for d, t, place, slot in zip(
            self.dtypes, self.types, self.places(base), self.vectors, strict=True
        ):
            text = r.let(f"load {r.wide(memory_type(d), LANES)}, ptr {place}, align {d.itemsize}")
            r.do(f"store {t} {r.from_memory(d, text, LANES)}, ptr {slot}")

    def tree_lockstep(self, base: str) -> list[str]:
        """The same tree for a level in memory, at all points at once; the result is at `base`."""
        r = self.r
        half = r.counter(r.let(f"load i64, ptr {self.half}"))
        head, body, end = r.label(), r.label(), r.label()
        r.do(f"br label %{head}")
        r.start(head)
        h = r.let(f"load i64, ptr {half}")
        r.do(f"br i1 {r.let(f'icmp eq i64 {h}, 0')}, label %{end}, label %{body}")
        r.start(body)
        with self.across(self.at(h)) as j:
            left = r.let(f"add i64 {base}, {j}")
            right = self.get(self.places(r.let(f"add i64 {left}, {self.at(h)}")))
            places = self.places(left)
            self.put(places, r.combined(self.loop, self.get(places), right))
        r.do(f"store i64 {r.let(f'lshr i64 {h}, 1')}, ptr {half}")
        r.do(f"br label %{head}")
        r.start(end)
        return []

    def places(self, vector: str, column: str = "0") -> list[str]:
        """Where a vector of each level is, or what is at a column in it."""
        r = self.r
        found = [
            r.let(f"getelementptr {t}, ptr {base}, i64 {vector}")
            for t, base in zip(self.items, self.levels, strict=True)
        ]
        if column == "0":
            return found
        return [
            r.let(f"getelementptr {memory_type(d)}, ptr {p}, i64 {column}")
            for d, p in zip(self.dtypes, found, strict=True)
        ]

    def get(self, places: list[str]) -> list[str]:
        r = self.r
        texts = [
            r.let(f"load {r.wide(memory_type(d))}, ptr {p}, align {d.itemsize}")
            for d, p in zip(self.dtypes, places, strict=True)
        ]
        return [r.from_memory(d, x, r.width) for d, x in zip(self.dtypes, texts, strict=True)]

    def put(self, places: list[str], values: list[str]) -> None:
        r = self.r
        for d, p, x in zip(self.dtypes, places, values, strict=True):
            t = r.wide(memory_type(d))
            r.do(f"store {t} {r.to_memory(d, x, r.width)}, ptr {p}, align {d.itemsize}")

    def clear(self, base: str, lanes: str = str(LANES)) -> None:
        """Sets the lanes of the level at `base` to the identity."""
        r = self.r
        with self.across(self.at(lanes)) as j:
            values = [
                r.splat(scalar_type(d), one)
                for d, one in zip(self.dtypes, self.identity, strict=True)
            ]
            self.put(self.places(r.let(f"add i64 {base}, {j}")), values)
