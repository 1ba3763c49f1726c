"""Reductions that are too long for one launch, as a map that stores results and a short reduction.

A reduction of more than a chunk becomes a map that reduces each chunk, and a reduction of the
chunks' results, in the same canonical order. A shorter one, which has long loops in it, becomes a
map that stores what is reduced, and a reduction without other loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from .language import CHUNK, Block, Loop, Store, Value, const, eq, where
from .point_state import PointState, word_count
from .rewrite import Cloner
from .trip_counts import Trips, count_iterations, count_of_loop


def find_long_reductions(block: Block, trips: Trips, limit: int, depth: int = 0) -> list[Loop]:
    """Return the reductions beyond the limit that are in no loop that launches run as a whole.

    - `depth`: the number of loops around the block, of which a launch runs one iteration.
    """
    long: list[Loop] = []
    for s in block:
        if not isinstance(s, Loop) or count_of_loop(s, trips).nest(depth).active <= limit:
            continue
        if s.kind == "reduce":
            long.append(s)
        elif count_iterations(s.body, trips).nest(depth + 1).active > limit:
            long += find_long_reductions(s.body, trips, limit, depth + 1)
    return long


class ReductionCloner(Cloner):
    """A cloner that makes a map, whose results are in the state, of long reductions.

    `long`: the reductions, each with the name of the integer parameter that is the first word of
    its stored results. `stored_words`: the number of words that each of them stores, in order.
    `new_trips`: the trip counts of the copied loops.
    """

    def __init__(self, state: PointState, long: Mapping[Loop, str], trips: Trips) -> None:
        super().__init__()
        self.state, self.long, self.trips = state, long, trips
        self.new_trips: dict[Loop, int] = {}
        self.stored_words: list[int] = []

    def copy_loop_head(self, old: Loop) -> Loop:
        """Return the copy of a loop without its body, and record its trip count."""
        new = super().copy_loop_head(old)
        self.new_trips[new] = self.trips[old]
        return new

    def block(self, block: Block) -> Block:
        """Return the copy of a block, with several statements for a long reduction."""
        outer, self.statements = self.statements, []
        for s in block:
            if isinstance(s, Value):
                self.value(s)
            elif isinstance(s, Loop) and s in self.long:
                (self.map_chunks if self.trips[s] > CHUNK else self.map_values)(s)
            else:
                self.statements.append(self.loop(s) if isinstance(s, Loop) else self.effect(s))
        statements, self.statements = tuple(self.statements), outer
        return statements

    def map_chunks(self, old: Loop) -> None:
        """Append a map that reduces each chunk, and the reduction of the chunks' results."""
        start, stop = self.operand(old.start), self.operand(old.stop)
        chunks = (stop - start + (CHUNK - 1)) >> (CHUNK.bit_length() - 1)
        trips = -(-self.trips[old] // CHUNK)

        def reduce_chunk(each: Loop) -> tuple[Value, ...]:
            """Append the reduction of one chunk, and return its results."""
            first = start + each.var * CHUNK
            end = first + CHUNK
            chunk = self.open_loop("reduce", first, where(end < stop, end, stop), CHUNK, old)
            self.replacements[old.var] = chunk.var
            chunk.set_body(self.block(old.body))
            self.close_loop(chunk, self.operands(old.update))
            return chunk.results

        first_word = self.store_results(old, chunks, trips, reduce_chunk)
        whole = self.reduce_stored(old, first_word, chunks, trips)
        one = eq(chunks, 1)  # the result of a single chunk is not combined with the identity
        single = self.load_results(first_word, old, one)
        for r, a, b in zip(old.results, single, whole, strict=True):
            self.replacements[r] = where(one, a, b)
            self.emit(self.replacements[r])

    def map_values(self, old: Loop) -> None:
        """Append a map that computes what is reduced, and its reduction."""
        start, stop = self.operand(old.start), self.operand(old.stop)

        def compute(each: Loop) -> tuple[Value, ...]:
            """Append the computation of one iteration's values, and return them."""
            self.replacements[old.var] = start + each.var
            self.emit(self.replacements[old.var])
            self.statements += self.block(old.body)
            return self.operands(old.update)

        count, trips = stop - start, self.trips[old]
        first_word = self.store_results(old, count, trips, compute)
        results = self.reduce_stored(old, first_word, count, trips)
        self.replacements.update(zip(old.results, results, strict=True))

    def store_results(
        self, old: Loop, count: Value, trips: int, compute: Callable[[Loop], tuple[Value, ...]]
    ) -> Value:
        """Append a map that stores the results of `compute`; return the word where they start."""
        first_word = Value("param", count.dtype, (), self.long[old])
        words = sum(word_count(r.dtype) for r in old.results)
        self.stored_words.append(trips * words)
        each = self.open_loop("map", const(0, count.dtype), count, trips)
        outer, self.statements = self.statements, []
        word = first_word + each.var * words
        stores: list[Store] = []
        for v in compute(each):
            stores += self.state.write(word, v)
            word = word + word_count(v.dtype)
        for s in stores:
            self.emit(s.index)
            self.emit(s.value)
        each.set_body((*self.statements, *stores))
        self.statements = outer
        self.close_loop(each)
        return first_word

    def reduce_stored(
        self, old: Loop, first_word: Value, count: Value, trips: int
    ) -> tuple[Value, ...]:
        """Append the reduction of stored values, and return its results."""
        loop = self.open_loop("reduce", const(0, count.dtype), count, trips, old)
        words = sum(word_count(r.dtype) for r in old.results)
        outer, self.statements = self.statements, []
        update = self.load_results(first_word + loop.var * words, old)
        loop.set_body(tuple(self.statements))
        self.statements = outer
        self.close_loop(loop, update)
        return loop.results

    def load_results(self, word: Value, old: Loop, when: Value | None = None) -> tuple[Value, ...]:
        """Append loads of values like a loop's results, from a word on, and return the values."""
        values: list[Value] = []
        for r in old.results:
            values.append(self.state.read(word, r.dtype, when))
            self.emit(values[-1])
            word = word + word_count(r.dtype)
        return tuple(values)

    def open_loop(
        self, kind: str, start: Value, stop: Value, trips: int, like: Loop | None = None
    ) -> Loop:
        """Return a new loop without a body; its ends are appended."""
        self.emit(start)
        self.emit(stop)
        loop = Loop(kind, start, stop)
        if like is not None:
            loop.combine, loop.init = like.combine, self.operands(like.init)
        self.new_trips[loop] = trips
        return loop

    def close_loop(self, loop: Loop, update: tuple[Value, ...] = ()) -> None:
        """Append a loop that has a body, and give it its updates and results."""
        loop.update = update
        loop.results = tuple(Value("result", u.dtype, (), (loop, i)) for i, u in enumerate(update))
        self.statements.append(loop)
