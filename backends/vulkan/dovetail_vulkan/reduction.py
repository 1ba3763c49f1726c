"""A reduce loop as SPIR-V, in the canonical order of the kernel IR.

Level 0 combines elements into LANES lanes, level 1 the results of chunks, and so on. The lanes of a
level are an array for each value, or, if a group of work items shares the loop, one value in each
of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dovetail.extend import CHUNK, LANES, Loop, combine

from .spirv import Ext, Op, Storage

if TYPE_CHECKING:
    from .render import Renderer

LEVELS_MAX = 4  # levels of chunks of chunks: CHUNK ** 4 elements are more than any memory holds


class ReductionWriter:
    """A writer of one reduce loop; its methods pass values as SPIR-V ids."""

    def __init__(self, renderer: Renderer, loop: Loop, by_group: bool) -> None:
        self.renderer, self.loop, self.by_group = renderer, loop, by_group
        self.asm, self.index, self.uint = renderer.asm, renderer.index_type, renderer.uint
        self.bits = renderer.kernel.index.bits
        self.rule = combine(str(loop.combine), tuple(u.dtype for u in loop.update))
        values = len(loop.update)
        self.identity = loop.init[:values] or self.rule.identity
        self.constants = zip(self.rule.shared, loop.init[values:], strict=True)
        self.types = [renderer.type(u.dtype) for u in loop.update]
        self.width = 1 if by_group else LANES  # elements of a level in the arrays
        self.lanes, self.upper = self.arrays(self.width), self.arrays(self.width * (LEVELS_MAX - 1))

    # --- arithmetic

    def word(self, number: int) -> int:
        """Return a constant of 32 bits, for lanes, elements of arrays and shifts."""
        return self.asm.integer(32, number)

    def number(self, number: int) -> int:
        """Return a constant of the kernel's index type."""
        return self.asm.integer(self.bits, number)

    def compute(self, op: Op, a: int, b: int) -> int:
        """Emit an operation on two indices; return its result."""
        return self.asm.value(op, self.index, a, b)

    def test(self, op: Op, a: int, b: int) -> int:
        """Emit a comparison or a logical operation; return its bool."""
        return self.asm.value(op, self.renderer.bool, a, b)

    def count_chunks(self, n: int) -> int:
        """Return the number of chunks of `n` values."""
        n = self.compute(Op.I_ADD, n, self.number(CHUNK - 1))
        return self.compute(Op.SHIFT_RIGHT_LOGICAL, n, self.word(CHUNK.bit_length() - 1))

    # --- arrays of lanes

    def arrays(self, length: int) -> list[int]:
        """Return a new array for each value."""
        size = self.word(length)
        return [self.asm.variable(self.asm.type(Op.TYPE_ARRAY, t, size)) for t in self.types]

    def pointers(
        self, arrays: Sequence[int], at: int, storage: Storage = Storage.FUNCTION
    ) -> list[int]:
        """Return the pointers to elements of arrays."""
        return [
            self.asm.value(Op.ACCESS_CHAIN, self.asm.pointer_type(storage, t), array, at)
            for t, array in zip(self.types, arrays, strict=True)
        ]

    def load(self, pointers: Sequence[int]) -> list[int]:
        """Return the values at pointers."""
        return [self.asm.value(Op.LOAD, t, p) for t, p in zip(self.types, pointers, strict=True)]

    def store(self, pointers: Sequence[int], values: Sequence[int]) -> None:
        """Store values at pointers."""
        for pointer, x in zip(pointers, values, strict=True):
            self.asm.emit(Op.STORE, pointer, x)

    def fill_with_identity(self, arrays: Sequence[int], first: int) -> None:
        """Store the identity in the lanes of a level, which start at element `first`."""
        identity = [self.renderer.value_id(v) for v in self.identity]
        with self.count_words(self.width) as j:
            at = self.asm.value(Op.I_ADD, self.uint, first, j)
            self.store(self.pointers(arrays, at), identity)

    @contextmanager
    def count_words(self, stop: int) -> Iterator[int]:
        """Repeat the instructions of the context for 0, 1, ... of 32 bits, below a constant."""
        with self.asm.count(32, self.word(0), self.word(stop), self.word(1)) as (j, _):
            yield j

    def combine_at(self, pointers: Sequence[int], right: Sequence[int]) -> None:
        """Combine the values at pointers with further ones."""
        self.store(pointers, self.renderer.combine(self.rule, self.load(pointers), right))

    # --- the loop

    def write(self) -> list[int]:
        """Write the loop; return its results."""
        asm, compute, number = self.asm, self.compute, self.number
        self.renderer.ids.update((id(v), self.renderer.value_id(x)) for v, x in self.constants)
        start, stop = (self.renderer.value_id(v) for v in (self.loop.start, self.loop.stop))
        empty = self.test(Op.S_LESS_THAN_EQUAL, stop, start)
        size = compute(Op.I_SUB, stop, start)
        size = asm.value(Op.SELECT, self.index, empty, number(0), size)
        chunks = asm.value(Op.SELECT, self.index, empty, number(1), self.count_chunks(size))
        results = [asm.variable(t) for t in self.types]
        with asm.count(self.bits, number(0), chunks, number(1)) as (chunk, _):
            self.fill_with_identity(self.lanes, self.word(0))
            first = compute(Op.I_MUL, chunk, number(CHUNK))
            end = compute(Op.I_ADD, first, number(CHUNK))
            short = self.test(Op.S_LESS_THAN, size, end)
            end = asm.value(Op.SELECT, self.index, short, size, end)
            self.write_chunk(start, first, end)
            self.store(results, self.write_tree(self.lanes, self.word(0)))
            with asm.when(self.test(Op.S_LESS_THAN, number(1), chunks)):
                self.write_levels(chunk, chunks, results)
        return self.load(results)

    def write_chunk(self, start: int, first: int, end: int) -> None:
        """Write the loop over the elements of a chunk."""
        asm, compute, rows = self.asm, self.compute, self.number(LANES)
        if self.by_group:
            first = compute(Op.I_ADD, first, self.renderer.widen(self.renderer.lane))
            with asm.count(self.bits, first, end, rows) as (i, _):
                self.write_element(start, i, self.word(0))
        else:
            with asm.count(self.bits, first, end, self.number(1)) as (i, _):
                self.write_element(start, i, self.lane_of(i))

    def write_element(self, start: int, i: int, lane: int) -> None:
        """Write the body for an element, and combine its update into a lane."""
        self.renderer.ids[id(self.loop.var)] = self.compute(Op.I_ADD, start, i)
        self.renderer.write_block(self.loop.body)
        update = [self.renderer.value_id(u) for u in self.loop.update]
        self.combine_at(self.pointers(self.lanes, lane), update)

    def lane_of(self, i: int) -> int:
        """Return the lane of a value: its number modulo LANES."""
        word = i if self.bits == 32 else self.asm.value(Op.U_CONVERT, self.uint, i)
        return self.asm.value(Op.BITWISE_AND, self.uint, word, self.word(LANES - 1))

    def write_levels(self, chunk: int, chunks: int, results: Sequence[int]) -> None:
        """Combine a chunk's result into the level above, and go on while chunks are complete."""
        asm, number, compute, test = self.asm, self.number, self.compute, self.test
        position_var, count_var, base_var = map(asm.variable, (self.index, self.index, self.uint))
        for variable, x in ((position_var, chunk), (count_var, chunks), (base_var, self.word(0))):
            asm.emit(Op.STORE, variable, x)
        with asm.repeat() as loop:
            position, count = (asm.value(Op.LOAD, self.index, v) for v in (position_var, count_var))
            base = asm.value(Op.LOAD, self.uint, base_var)
            within = compute(Op.BITWISE_AND, position, number(CHUNK - 1))
            with asm.when(test(Op.I_EQUAL, within, number(0))):
                self.fill_with_identity(self.upper, base)
            lane, part = self.lane_of(position), self.load(results)
            if self.by_group:
                with asm.when(test(Op.I_EQUAL, lane, self.renderer.lane)):
                    self.combine_at(self.pointers(self.upper, base), part)
            else:
                lane = asm.value(Op.I_ADD, self.uint, base, lane)
                self.combine_at(self.pointers(self.upper, lane), part)
            inside = test(Op.I_NOT_EQUAL, within, number(CHUNK - 1))
            more = test(Op.I_NOT_EQUAL, compute(Op.I_ADD, position, number(1)), count)
            asm.leave(loop, test(Op.LOGICAL_AND, inside, more))
            self.store(results, self.write_tree(self.upper, base))
            above = self.count_chunks(count)
            asm.leave(loop, test(Op.S_LESS_THAN_EQUAL, above, number(1)))
            asm.emit(Op.STORE, count_var, above)
            asm.emit(Op.STORE, position_var, compute(Op.U_DIV, position, number(CHUNK)))
            above = asm.value(Op.I_ADD, self.uint, base, self.word(self.width))
            asm.emit(Op.STORE, base_var, above)

    # --- the tree

    def write_tree(self, arrays: Sequence[int], first: int) -> list[int]:
        """Return the lanes of a level, combined in the fixed tree.

        Lane j takes lane j + h for j < h, h = 16, 8, 4, 2, 1: these j + h count down from 31 to 1.
        """
        if self.by_group:
            return self.write_shared_tree(self.load(self.pointers(arrays, first)))
        asm, uint = self.asm, self.uint
        with self.count_words(LANES - 1) as k:
            far = asm.value(Op.I_SUB, uint, self.word(LANES - 1), k)
            bit = asm.value(Op.EXT_INST, uint, asm.extended, Ext.FIND_U_MSB, far)
            width = asm.value(Op.SHIFT_LEFT_LOGICAL, uint, self.word(1), bit)
            near = asm.value(Op.I_SUB, uint, far, width)
            right = self.load(self.pointers(arrays, asm.value(Op.I_ADD, uint, first, far)))
            near = asm.value(Op.I_ADD, uint, first, near)
            self.combine_at(self.pointers(arrays, near), right)
        return self.load(self.pointers(arrays, first))

    def write_shared_tree(self, values: Sequence[int]) -> list[int]:
        """Return the values of a group's work items, combined in the fixed tree."""
        asm, uint, lane = self.asm, self.uint, self.renderer.lane
        arrays = self.renderer.group_arrays(self.types)
        self.store(self.pointers(arrays, lane, Storage.WORKGROUP), values)
        asm.barrier()
        with self.count_words(LANES.bit_length() - 1) as k:
            width = asm.value(Op.SHIFT_RIGHT_LOGICAL, uint, self.word(LANES // 2), k)
            with asm.when(self.test(Op.U_LESS_THAN, lane, width)):
                far = asm.value(Op.I_ADD, uint, lane, width)
                right = self.load(self.pointers(arrays, far, Storage.WORKGROUP))
                self.combine_at(self.pointers(arrays, lane, Storage.WORKGROUP), right)
            asm.barrier()
        results = self.load(self.pointers(arrays, self.word(0), Storage.WORKGROUP))
        asm.barrier()
        return results
