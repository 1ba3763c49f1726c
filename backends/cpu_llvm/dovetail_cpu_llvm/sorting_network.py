"""Sorts of short rows as machine code: a network of exchanges in vectors.

An array of `rows` vectors has the words of one row of a tensor. Element s of the sorted row is lane
s // rows of vector s % rows, so most exchanges are between the same lanes of two vectors: a minimum
and a maximum. First the column of each lane is sorted, by Batcher's network. Then columns that
lie side by side are merged: the first exchange mirrors one half, the others have strides that
halve. Each power of two of vectors is a kernel of its own. No branch of the network depends on the
elements; one around the repair of zeros and NaNs does.

A sort's words are the elements as integers in their order. A network is not stable: zeros and
NaNs, which are equal and differ in bits, are put back into their original order. `argsort` has the
position below a key of 32 bits in one word, or key and position in two, so no two are equal.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise

from dovetail.extend import DType, StridedOperand, float32, float64, int32, int64, uint32, uint64

from .gemm import RoutineCall, RoutineModule
from .ir_writer import FunctionWriter, Slot, fields

# NumPy sorts rows of more elements faster, and on CPUs with narrow vectors those of more vectors:
# of 16 bytes, 512 are 2,048 float32, and 1,024 words of `argsort`.
ELEMENTS_MAX, VECTORS_BITS_MAX = 1 << 12, 9
OPERATIONS_PER_EXCHANGE = 4  # for each vector, estimated
REGISTER_VECTORS_BITS = {
    64: 4,
    32: 3,
    16: 3,
}  # by bytes of a vector
_DTYPES = {d.code: d for d in (float32, float64, int32, int64, uint32, uint64)}
_EXPONENT_BITS = {32: 8, 64: 11}
# The integers of a call, after the addresses of operand and result: the elements of a row, the
# strides of rows in bytes, and that of the operand's elements in elements.
_INTS = ("n", "x_row", "out_row", "step")


Words = list[str]
"""The registers of the words of a vector's lanes: one vector, or keys and positions."""


def choose_sort(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> RoutineCall | None:
    """Return the call that sorts rows; None for long rows, and rows that lie irregularly."""
    return _choose_network("sort", inputs[0], output, native)


def choose_argsort(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> RoutineCall | None:
    """Return the call that orders positions; None for long rows, and rows that lie irregularly."""
    return _choose_network("argsort", inputs[0], output, native)


def _choose_network(
    op: str, x: StridedOperand, out: StridedOperand, native: int
) -> RoutineCall | None:
    """Return the call that sorts the rows of `x`, or None if NumPy must."""
    *stack, n = x[2]
    x_row, out_row = (_find_row_bytes(operand) for operand in (x, out))
    if x_row is None or out_row is None or not 0 < n <= ELEMENTS_MAX or 0 in stack:
        return None
    if n > 1 and out[3][-1] != 1:
        return None
    word = 8 if op == "argsort" else x[4].itemsize
    bits = max(0, (-(-n * word // native) - 1).bit_length())
    if bits > VECTORS_BITS_MAX:
        return None
    vectors, count = 1 << bits, math.prod(stack)
    stages = (bits + (native // word).bit_length()) ** 2 // 2
    operations = count * vectors * stages * OPERATIONS_PER_EXCHANGE
    kernel, ints = f"{op}_{x[4].code}_{bits}", (n, x_row, out_row, x[3][-1])
    module = RoutineModule(
        (kernel,), lambda triple, target: ir(triple, target.vector_bytes, kernel)
    )
    return RoutineCall(module, kernel, ints, count, operations, 2)


def _find_row_bytes(operand: StridedOperand) -> int | None:
    """Return the distance of rows in bytes, 0 for a single one; None if they lie irregularly."""
    _, _, shape, strides, dtype = operand
    axes = [axis for axis in range(len(shape) - 1) if shape[axis] > 1]
    for outer, inner in pairwise(axes):
        if strides[outer] != strides[inner] * shape[inner]:
            return None
    return strides[axes[-1]] * dtype.itemsize if axes else 0


def ir(triple: str, native: int, kernel: str) -> str:
    """Return the IR of a kernel, for vectors of `native` bytes."""
    op, code, bits = kernel.split("_")
    writer = _NetworkWriter(_DTYPES[code], native, int(bits), op == "argsort")
    return f'target triple = "{triple}"\n{writer.render(kernel)}'


def batcher_exchanges(n: int) -> Iterator[tuple[int, int]]:
    """Yield the exchanges of Batcher's odd-even merge sort of n elements, a power of two."""
    length = 1
    while length < n:
        step = length
        while step:
            for start in range(step % length, n - step, 2 * step):
                for i in range(start, start + step):
                    if i // (2 * length) == (i + step) // (2 * length):
                        yield i, i + step
            step //= 2
        length *= 2


def _infinity(bits: int) -> int:
    """Return the bits of infinity in a float of `bits` bits."""
    fraction_bits = bits - 1 - _EXPONENT_BITS[bits]
    return (1 << _EXPONENT_BITS[bits]) - 1 << fraction_bits


class _NetworkWriter:
    """The writer of the kernel that sorts rows of one dtype in 2 ** `bits` vectors."""

    def __init__(self, dtype: DType, native: int, bits: int, is_argsort: bool) -> None:
        self.dtype, self.native, self.vectors, self.is_argsort = (
            dtype,
            native,
            1 << bits,
            is_argsort,
        )
        self.bits = 64 if is_argsort else dtype.bits  # of a word
        self.word, self.lanes = f"i{self.bits}", native * 8 // self.bits
        self.type = f"<{self.lanes} x {self.word}>"
        self.bit_type = f"<{self.lanes} x i1>"
        self.has_pairs = is_argsort and dtype.bits == 64  # words of keys and words of positions
        self.register_bits = REGISTER_VECTORS_BITS[native] - self.has_pairs
        self.sign = "u" if dtype.kind == "u" else "s"
        self.w = FunctionWriter()
        self.w.width = self.lanes
        self.scratch = [self.w.alloca(self.type, self.vectors) for _ in range(1 + self.has_pairs)]
        self.declarations: set[str] = set()

    @property
    def restores_order(self) -> bool:
        """True if equal elements that differ in bits must be put into their original order."""
        return self.dtype.kind == "f" and not self.is_argsort

    @cached_property
    def special(self) -> Slot:
        """The stack slot of the lanes that had a NaN or -0."""
        return self.w.slot(self.bit_type)

    def render(self, name: str) -> str:
        """Return the IR of the function and its declarations."""
        w = self.w
        with w.loop("%first", "%last") as row:
            x, out = (
                w.let(f"getelementptr i8, ptr {base}, i64 {w.i64('mul', row, step)}")
                for base, step in (("%x", "%x_row"), ("%out", "%out_row"))
            )
            x = self.gather_row(x)
            if self.restores_order:
                w.store(self.special, "zeroinitializer")
            with self.loop_or_unroll(self.vectors) as indices:
                for r in indices:
                    self.store_words(r, self.encode(x, w.i64("mul", r, str(self.lanes))))
            self.sort_columns()
            for lanes in self.doublings(1, self.lanes):
                self.merge_columns(lanes)
            self.store_result(out)
            if self.restores_order:
                with w.if_then(w.any_lane(w.load(self.special))):
                    self.restore_order(x, out)

        lines = "\n".join(
            [
                *w.entry,
                fields("slots", ("ptr x", "ptr out", *(f"i64 {i}" for i in _INTS))),
                *w.lines,
            ]
        )
        self.declare(f"i1 @llvm.vector.reduce.or.v{self.lanes}i1({self.bit_type})")
        self.declare("i64 @llvm.smin.i64(i64, i64)")
        self.declare("i64 @llvm.smax.i64(i64, i64)")
        head = f"define void @{name}(ptr %slots, i64 %first, i64 %last) alignstack({self.native})"
        return "\n".join(
            [*sorted(self.declarations), f"{head} {{\nentry:\n{lines}\n  ret void\n}}"]
        )

    def declare(self, signature: str) -> None:
        """Add the declaration of an intrinsic."""
        self.declarations.add(f"declare {signature}")

    @staticmethod
    def doublings(start: int, stop: int) -> Iterator[int]:
        """Yield start, 2 * start, 4 * start, ... below stop."""
        while start < stop:
            yield start
            start *= 2

    @contextmanager
    def loop_or_unroll(self, count: int) -> Iterator[list[str]]:
        """Yield the indices of a body: all, if the vectors are in registers, or that of a loop."""
        if self.vectors <= 1 << self.register_bits:
            yield [str(i) for i in range(count)]
        elif count == 1:
            yield ["0"]
        else:
            with self.w.loop("0", str(count)) as i:
                yield [i]

    def split_index(self, i: str, size: int, scale: int) -> tuple[str, str]:
        """Return `scale * (i - i % size)` and `i % size`."""
        if i[0] != "%":
            return str(int(i) // size * size * scale), str(int(i) % size)
        multiple = self.w.let(f"and i64 {i}, -{size}")
        return self.w.i64("mul", multiple, str(scale)), self.w.let(f"and i64 {i}, {size - 1}")

    # --- vectors of words

    def address_of(self, array: str, index: str) -> str:
        """Return the address of a vector."""
        return self.w.let(f"getelementptr {self.type}, ptr {array}, i64 {index}")

    def load_words(self, index: str) -> Words:
        """Load the words of a vector's lanes."""
        return [
            self.w.let(
                f"load {self.type}, ptr {self.address_of(array, index)}, align {self.native}"
            )
            for array in self.scratch
        ]

    def store_words(self, index: str, words: Words) -> None:
        """Render stores of a vector of words, and of positions in pairs, to the scratch arrays."""
        for array, vector in zip(self.scratch, words, strict=True):
            at = self.address_of(array, index)
            self.w.emit(f"store {self.type} {vector}, ptr {at}, align {self.native}")

    def order_pair(self, a: Words, b: Words) -> tuple[Words, Words]:
        """Return the lesser and the greater words of each lane."""
        if self.has_pairs:
            swaps = self.is_less(b, a)
            return self.select(swaps, b, a), self.select(swaps, a, b)
        return self.extreme("min", a, b), self.extreme("max", a, b)

    def is_less(self, a: Words, b: Words) -> str:
        """Return the lanes in which the key, or at equal keys the position, is less."""
        w, (a_key, a_position), (b_key, b_position) = self.w, a, b
        less = w.let(f"icmp {self.sign}lt {self.type} {a_key}, {b_key}")
        same = w.let(f"icmp eq {self.type} {a_key}, {b_key}")
        before = w.let(f"icmp slt {self.type} {a_position}, {b_position}")
        return w.let(f"or {self.bit_type} {less}, {w.let(f'and {self.bit_type} {same}, {before}')}")

    def extreme(self, name: str, a: Words, b: Words) -> Words:
        """Return the minimum or maximum of single words."""
        function = f"{self.type} @llvm.{self.sign}{name}.v{self.lanes}{self.word}"
        self.declare(f"{function}({self.type}, {self.type})")
        return [self.w.let(f"call {function}({self.type} {a[0]}, {self.type} {b[0]})")]

    def select(self, mask: str, a: Words, b: Words) -> Words:
        """Return `a` in the lanes of a mask, `b` in the others."""
        return [self.w.select(mask, self.type, x, y, self.lanes) for x, y in zip(a, b, strict=True)]

    def swap_lanes(self, words: Words, distance: int) -> Words:
        """Return vectors with lane i ^ distance in lane i."""
        picks = [lane ^ distance for lane in range(self.lanes)]
        return [self.w.shuffle(self.type, vector, "poison", picks) for vector in words]

    def blend(self, low: Words, high: Words, bit: int) -> Words:
        """Return `low` in lanes without a bit in their number, `high` in the others."""
        mask = ", ".join(f"i1 {int(not lane & bit)}" for lane in range(self.lanes))
        return self.select(f"<{mask}>", low, high)

    # --- the network

    def sort_columns(self) -> None:
        """Sort the words of each lane."""
        size = min(self.vectors, 1 << self.register_bits)
        self.exchange_groups(size, 1, list(batcher_exchanges(size)))
        for half in self.doublings(size, self.vectors):
            with self.loop_or_unroll(self.vectors // 2) as indices:
                for i in indices:  # vector r of a pair of halves, and its mirror image
                    start, r = self.split_index(i, half, 2)
                    first = self.w.i64("add", start, r)
                    last = self.w.i64("add", start, str(2 * half - 1))
                    mirror = self.w.i64("sub", last, r)
                    low, high = self.order_pair(self.load_words(first), self.load_words(mirror))
                    self.store_words(first, low)
                    self.store_words(mirror, high)
            self.merge_rows(half)

    def merge_rows(self, stop: int) -> None:
        """Exchange vectors at the strides stop / 2, stop / 4, ..., 1, several strides at a time."""
        bits = stop.bit_length() - 1
        passes = -(-bits // self.register_bits)
        for k in range(passes):
            high, low = bits * (passes - k) // passes, bits * (passes - k - 1) // passes
            size = 1 << high - low
            pairs = [
                (a, a + stride)
                for stride in reversed([*self.doublings(1, size)])
                for a in range(size)
                if not a & stride
            ]
            self.exchange_groups(size, 1 << low, pairs)

    def exchange_groups(self, size: int, stride: int, pairs: Sequence[tuple[int, int]]) -> None:
        """Exchange pairs among each `size` vectors that are `stride` apart."""
        w = self.w
        with self.loop_or_unroll(self.vectors // size) as indices:
            for i in indices:
                start = w.i64("add", *self.split_index(i, stride, size))
                rows = [w.i64("add", start, str(k * stride)) for k in range(size)]
                vectors = [self.load_words(r) for r in rows]
                for a, b in pairs:
                    vectors[a], vectors[b] = self.order_pair(vectors[a], vectors[b])
                for r, vector in zip(rows, vectors, strict=True):
                    self.store_words(r, vector)

    def merge_columns(self, lanes: int) -> None:
        """Merge runs of `lanes` columns with the runs at their right."""
        with self.loop_or_unroll(max(1, self.vectors // 2)) as indices:
            for i in indices:
                mirror = self.w.i64("sub", str(self.vectors - 1), i)
                first = self.load_words(i)
                second = self.swap_lanes(self.load_words(mirror), 2 * lanes - 1)
                low, high = self.order_pair(first, second)
                self.store_words(i, self.exchange_lanes(self.blend(low, high, lanes), lanes))
                if self.vectors > 1:
                    swapped = self.swap_lanes(self.blend(high, low, lanes), 2 * lanes - 1)
                    self.store_words(mirror, self.exchange_lanes(swapped, lanes))
        self.merge_rows(self.vectors)

    def exchange_lanes(self, words: Words, stop: int) -> Words:
        """Return the words after exchanges of lanes at the strides stop / 2, stop / 4, ..., 1."""
        for stride in reversed([*self.doublings(1, stop)]):
            low, high = self.order_pair(words, self.swap_lanes(words, stride))
            words = self.blend(low, high, stride)
        return words

    # --- from and to memory

    def gather_row(self, x: str) -> str:
        """Copy elements that lie apart; return the address of a row of neighbours."""
        w, item = self.w, f"i{self.dtype.bits}"
        copy = w.alloca(item, self.vectors * self.lanes)
        lie_apart = w.let("icmp ne i64 %step, 1")
        with w.if_then(lie_apart), w.loop("0", "%n") as k:
            at = w.let(f"getelementptr {item}, ptr {x}, i64 {w.i64('mul', k, '%step')}")
            to = w.let(f"getelementptr {item}, ptr {copy}, i64 {k}")
            element = w.let(f"load {item}, ptr {at}, align {self.dtype.itemsize}")
            w.emit(f"store {item} {element}, ptr {to}, align {self.dtype.itemsize}")
        return w.let(f"select i1 {lie_apart}, ptr {copy}, ptr {x}")

    def row_mask(self, start: str) -> str:
        """Return a mask of the lanes that have elements of the row, from `start` on."""
        return self.w.prefix_mask(self.w.i64("sub", "%n", start), self.lanes)

    def encode(self, x: str, start: str) -> Words:
        """Load the elements from `start` on; return their words, and after the row the greatest."""
        w, bits = self.w, self.dtype.bits
        item, mask_type = f"<{self.lanes} x i{bits}>", self.bit_type
        mask = self.row_mask(start)
        function = f"@llvm.masked.load.v{self.lanes}i{bits}.p0"
        self.declare(f"{item} {function}(ptr, i32, {mask_type}, {item})")
        address = w.let(f"getelementptr i{bits}, ptr {x}, i64 {start}")
        arguments = f"ptr {address}, i32 {bits // 8}, {mask_type} {mask}, {item} zeroinitializer"
        raw = w.let(f"call {item} {function}({arguments})")
        key = self.encode_float(raw, item) if self.dtype.kind == "f" else raw
        words = [key]
        if self.is_argsort:
            position = w.let(f"add {self.type} {w.iota('i64')}, {w.splat('i64', start)}")
            if self.has_pairs:
                words = [key, position]
            else:
                extended = w.let(f"zext {item} {key} to {self.type}")
                high = w.let(f"shl {self.type} {extended}, splat (i64 32)")
                words = [w.let(f"or {self.type} {high}, {position}")]
        greatest = -1 if self.sign == "u" else (1 << self.bits - 1) - 1
        words[0] = w.select(
            mask, self.type, words[0], f"splat ({self.word} {greatest})", self.lanes
        )
        return words

    def encode_float(self, raw: str, item: str) -> str:
        """Return floats as integers in their order; all NaNs are the greatest one."""
        w, bits = self.w, self.dtype.bits
        integer, greatest, infinity = f"i{bits}", (1 << bits - 1) - 1, _infinity(bits)
        magnitude = w.let(f"and {item} {raw}, splat ({integer} {greatest})")
        is_nan = w.let(f"icmp sgt {item} {magnitude}, splat ({integer} {infinity})")
        is_minus_zero = w.let(f"icmp eq {item} {raw}, splat ({integer} {-greatest - 1})")
        if self.restores_order:
            either = w.let(f"or {self.bit_type} {is_nan}, {is_minus_zero}")
            w.store(self.special, w.let(f"or {self.bit_type} {w.load(self.special)}, {either}"))
        key = self.turn_negatives(raw, item)
        if not self.restores_order:
            key = w.select(is_minus_zero, item, "zeroinitializer", key, self.lanes)
        return w.select(is_nan, item, f"splat ({integer} {greatest})", key, self.lanes)

    def turn_negatives(self, raw: str, item: str) -> str:
        """Return negative floats' bits as ordered integers, or the other way round."""
        w, bits = self.w, self.dtype.bits
        sign = w.let(f"ashr {item} {raw}, splat (i{bits} {bits - 1})")
        turned = w.let(f"and {item} {sign}, splat (i{bits} {(1 << bits - 1) - 1})")
        return w.let(f"xor {item} {raw}, {turned}")

    def store_result(self, out: str) -> None:
        """Store the sorted words, a square of them transposed at a time."""
        w, size = self.w, min(self.vectors, self.lanes)
        with self.loop_or_unroll(self.vectors // size) as indices:
            for i in indices:
                start = w.i64("mul", i, str(size))
                vectors = [self.load_words(w.i64("add", start, str(k)))[-1] for k in range(size)]
                for k, vector in enumerate(self.transpose(vectors)):
                    step = self.lanes if self.vectors < self.lanes else self.vectors
                    self.store_vector(vector, out, w.i64("add", start, str(k * step)))

    def transpose(self, vectors: Sequence[str]) -> list[str]:
        """Return vectors with lane 0 of all vectors first, then lane 1 of all, and so on."""
        half, n = len(vectors) // 2, self.lanes
        for _ in range(half.bit_length()):
            pairs = zip(vectors[:half], vectors[half:], strict=True)
            vectors = [
                self.w.shuffle(
                    self.type, a, b, [k for j in range(n // 2) for k in (start + j, start + j + n)]
                )
                for a, b in pairs
                for start in (0, n // 2)
            ]
        return list(vectors)

    def store_vector(self, vector: str, out: str, start: str) -> None:
        """Store elements from `start` on, as far as the row has them."""
        w, mask_type = self.w, self.bit_type
        if self.is_argsort and not self.has_pairs:
            vector = w.let(f"and {self.type} {vector}, splat (i64 {(1 << 32) - 1})")
        elif self.restores_order:
            vector = self.turn_negatives(vector, self.type)
        function = f"@llvm.masked.store.v{self.lanes}{self.word}.p0"
        self.declare(f"void {function}({self.type}, ptr, i32, {mask_type})")
        address = w.let(f"getelementptr {self.word}, ptr {out}, i64 {start}")
        arguments = f"ptr {address}, i32 {self.bits // 8}, {mask_type} {self.row_mask(start)}"
        w.emit(f"call void {function}({self.type} {vector}, {arguments})")

    def restore_order(self, x: str, out: str) -> None:
        """Store zeros and NaNs in the order that they have in the operand."""
        w, word, bits = self.w, self.word, self.dtype.bits
        greatest, infinity = (1 << bits - 1) - 1, _infinity(bits)

        def load(base: str, k: str) -> tuple[str, str, str]:
            """Return an element's bits, and if it is zero, and NaN."""
            address = w.let(f"getelementptr {word}, ptr {base}, i64 {k}")
            raw = w.let(f"load {word}, ptr {address}, align {bits // 8}")
            magnitude = w.let(f"and {word} {raw}, {greatest}")
            is_zero = w.let(f"icmp eq {word} {magnitude}, 0")
            return raw, is_zero, w.let(f"icmp sgt {word} {magnitude}, {infinity}")

        def count(slot: Slot, bit: str) -> None:
            """Add a bit to a counter."""
            w.store(slot, w.i64("add", w.load(slot), w.let(f"zext i1 {bit} to i64")))

        zero, nan = w.counter("0"), w.counter("0")  # where the next one belongs
        with w.loop("0", "%n") as k:
            raw, is_zero, is_nan = load(out, k)
            is_negative = w.let(f"icmp slt {word} {raw}, 0")
            count(zero, w.let(f"and i1 {is_negative}, {w.negate(is_zero)}"))
            count(nan, is_nan)
        w.store(nan, w.i64("sub", "%n", w.load(nan)))
        with w.loop("0", "%n") as k:
            raw, *kinds = load(x, k)
            for slot, is_kind in zip((zero, nan), kinds, strict=True):
                with w.if_then(is_kind):
                    address = w.let(f"getelementptr {word}, ptr {out}, i64 {w.load(slot)}")
                    w.emit(f"store {word} {raw}, ptr {address}, align {bits // 8}")
                count(slot, is_kind)
