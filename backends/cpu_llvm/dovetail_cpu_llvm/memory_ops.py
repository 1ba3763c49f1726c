"""Loads and stores at any width: scalar, contiguous, strided, gathered, interleaved, transposed.

Strides are known at launch, not when the kernel is rendered. An access at an affine index therefore
branches on its stride: at a few small ones it reads or writes whole rows and shuffles, at any other
it gathers or scatters. 1/4 M float32 at stride 2 take 33 us instead of 80, at stride -1 21.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dovetail.extend import Buffer, DType, bool_, int64

from .ir_writer import FunctionWriter, Lane, memory_type
from .lines import prefetch, prefetch_line
from .schedule import LINE_BYTES

REVERSE_STRIDE = -1
SMALL_STRIDES = (2, 3, 4)
MASKED_STORE_BYTES_MIN = 64  # registers of AVX-512: a masked store costs as much as a plain one
PREFETCH_VECTORS = 8  # distance between a prefetch and the gather that uses it
PREFETCHES = 8  # prefetches for each gathered vector
PREFETCH_BYTES = 1 << 11  # distance between a prefetch and the contiguous load that uses it


class MemoryOps:
    """Writes the loads and stores of one kernel. Indices and masks are rendered already."""

    def __init__(
        self,
        writer: FunctionWriter,
        addresses: Mapping[str, str],
        native: int,
        points: str,
        streams: str,
    ) -> None:
        self.writer, self.native = writer, native
        self.points = points  # of the grid, an i64
        self.addresses = addresses  # of buffers, by name
        self.streams = streams  # an i1: True if stores bypass the caches; "": never
        self.prefetches = streams  # an i1: True if contiguous loads prefetch; "": never
        self.may_prefetch = True  # False: nothing branches, so that LLVM fuses across loads

    # --- addresses

    def address(self, buffer: Buffer, index: str) -> str:
        """Render the address of an element, or a vector of them; `index` includes its type."""
        start = self.addresses[buffer.name]
        return self.writer.let(f"getelementptr {memory_type(buffer.dtype)}, ptr {start}, {index}")

    def element(self, buffer: Buffer, index: str) -> str:
        """Return the address of the element at an int64 index."""
        return self.address(buffer, f"i64 {index}")

    def guard(self, pointer: str, when: str) -> str:
        """Return `pointer` if `when` (an i1) holds, else the address of a scratch slot."""
        scratch = self.writer.counter("0").address
        return self.writer.let(f"select i1 {when}, ptr {pointer}, ptr {scratch}")

    def guard_row(self, pointer: str, active: str | None) -> str:
        """Return `pointer` if a lane is active, else the address of a scratch slot.

        A masked load from unmapped memory does not fault, but takes some processors hundreds of
        cycles.
        """
        w = self.writer
        if active == w.mask:  # which has an active lane
            return pointer
        some = w.any_lane(str(active))
        scratch = w.alloca(f"[{w.width} x i64]")
        return w.let(f"select i1 {some}, ptr {pointer}, ptr {scratch}")

    # --- bools, which take a byte in memory

    def from_memory(self, dtype: DType, text: str, width: int) -> str:
        """Return a loaded value as a register holds it: bytes of bools become i1."""
        if dtype is not bool_:
            return text
        zero = "zeroinitializer" if width > 1 else "0"
        return self.writer.let(f"icmp ne {self.writer.vector_type('i8', width)} {text}, {zero}")

    def to_memory(self, dtype: DType, text: str, width: int) -> str:
        """Return a register's value as memory holds it: i1 become bytes."""
        if dtype is not bool_:
            return text
        w = self.writer
        return w.let(f"zext {w.vector_type('i1', width)} {text} to {w.vector_type('i8', width)}")

    # --- loads: vectors of elements as they are in memory

    def load_vector(self, buffer: Buffer, index: Lane, active: str | None) -> str:
        """Render the load of elements at a non-uniform index; zero in lanes that are not active."""
        w, dtype = self.writer, buffer.dtype
        if index.has_stride(1):
            pointer = self.guard_row(self.element(buffer, index.text), active)
            if active is None:
                self.prefetch_row(pointer, dtype, PREFETCH_BYTES)
            return self.load_row(dtype, pointer, active)
        if active is not None or index.form != "affine":
            return self.gather(buffer, index, active)
        t = w.vector_type(memory_type(dtype))
        slot = w.slot(t)
        for stride in self.stride_cases(index):
            if stride == REVERSE_STRIDE:
                last = w.i64("sub", index.text, str(w.width - 1))
                pointer = self.element(buffer, last)
                self.prefetch_row(pointer, dtype, -PREFETCH_BYTES)
                row = self.load_row(dtype, pointer, None)
                text = w.shuffle(t, row, row, range(w.width)[::-1])
            elif stride:
                text = self.load_strided(buffer, index.text, stride)
            else:
                self.prefetch(buffer, index)
                text = self.gather(buffer, index, None)
            w.store(slot, text)
        return w.load(slot)

    def load_row(self, dtype: DType, pointer: str, active: str | None) -> str:
        """Render the load of a contiguous vector; zero in lanes that are not active."""
        w = self.writer
        t = w.vector_type(memory_type(dtype))
        if active is None:
            return w.let(f"load {t}, ptr {pointer}, align {dtype.itemsize}")
        return w.let(
            f"call {t} @llvm.masked.load.{w.suffix(dtype)}.p0("
            f"ptr align {dtype.itemsize} {pointer}, {w.mask_argument(active)}, {t} zeroinitializer)"
        )

    def gather(self, buffer: Buffer, index: Lane, active: str | None) -> str:
        """Render a gather at the index of each lane; zero in lanes that are not active."""
        w, dtype = self.writer, buffer.dtype
        t = w.vector_type(memory_type(dtype))
        pointers = self.address(buffer, f"{w.vector_type('i64')} {w.vector(index, int64)}")
        return w.let(
            f"call {t} @llvm.masked.gather.{w.suffix(dtype)}.v{w.width}p0({w.vector_type('ptr')} "
            f"align {dtype.itemsize} {pointers}, {w.mask_argument(active)}, {t} zeroinitializer)"
        )

    def load_strided(self, buffer: Buffer, first: str, stride: int) -> str:
        """Render loads and shuffles at a small stride; nothing after the last element is read."""
        w, dtype = self.writer, buffer.dtype
        width, t = w.width, w.vector_type(memory_type(dtype))
        starts = [*range(0, (stride - 1) * width, width), (stride - 1) * (width - 1)]
        indices = [w.i64("add", first, str(start)) for start in starts]
        merged, *rows = (self.load_row(dtype, self.element(buffer, i), None) for i in indices)
        row_of = [min(stride * j // width, stride - 1) for j in range(width)]
        lanes = [stride * j - starts[r] for j, r in enumerate(row_of)]
        for k, row in enumerate(rows, 1):
            picked = lanes if k == 1 else range(width)  # positions of the rows merged so far
            picks = [picked[j] if r < k else width + lanes[j] for j, r in enumerate(row_of)]
            picks = [p if r <= k else 0 for p, r in zip(picks, row_of, strict=True)]
            merged = w.shuffle(t, merged, row, picks)
        return merged

    def load_pair(self, dtype: DType, pointer: str, active: str | None) -> list[str]:
        """Render one load of double width; return the even and the odd elements."""
        w, width = self.writer, self.writer.width
        with self.double_width(active) as both:
            text, t = self.load_row(dtype, pointer, both), w.vector_type(memory_type(dtype))
            return [w.shuffle(t, text, text, range(j, 2 * width, 2)) for j in (0, 1)]

    def prefetch(self, buffer: Buffer, index: Lane) -> None:
        """Render prefetches of the elements that a later gather at this stride reads.

        The hardware sees no pattern in gathers: 4 M elements at stride -1, 2 or 4 take 1.9 ns each
        without, 0.15 to 0.4 with.
        """
        w = self.writer
        for part in range(PREFETCHES):
            steps = PREFETCH_VECTORS * w.width + part * w.width // PREFETCHES
            offset = w.i64("mul", index.stride, str(steps))
            pointer = self.element(buffer, w.i64("add", index.text, offset))
            prefetch_line(w, pointer, 3)

    def prefetch_row(self, pointer: str, dtype: DType, offset: int) -> None:
        """Render prefetches of the vector at an offset in bytes, which a later load reads.

        The processor's own prefetcher is too slow for data outside of its caches: x * 2 + 1 of 16 M
        float32 takes 4.8 ms, without 7.1 (Xeon with AVX-512, busy, one thread, 2026-12-03).
        """
        w = self.writer
        if self.prefetches and self.may_prefetch:
            with w.if_then(self.prefetches):
                ahead = w.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")
                prefetch(w, ahead, w.width * dtype.itemsize)

    def stride_cases(self, index: Lane) -> Iterator[int]:
        """Branch on the stride, and yield -1, each small one, and 0 for the others."""
        w = self.writer
        end = w.new_label()
        for stride in (REVERSE_STRIDE, *SMALL_STRIDES):
            yes, no = w.new_label(), w.new_label()
            equal = w.let(f"icmp eq i64 {index.stride}, {stride}")
            w.branch(equal, yes, no)
            w.begin_block(yes)
            yield stride
            w.emit(f"br label %{end}")
            w.begin_block(no)
        yield 0
        w.enter_block(end)

    @contextmanager
    def double_width(self, active: str | None) -> Iterator[str | None]:
        """Return a context for twice as many lanes; yield the mask with each lane repeated."""
        w, width = self.writer, self.writer.width
        twice = [k // 2 for k in range(2 * width)]
        both = active and w.shuffle(w.vector_type("i1"), active, active, twice)
        w.width = 2 * width
        yield both
        w.width = width

    # --- stores: `text` is a vector as it is in memory

    def store_vector(self, buffer: Buffer, index: Lane, text: str, active: str | None) -> None:
        """Render the store of a vector at a non-uniform index, with a branch for small strides."""
        w, dtype = self.writer, buffer.dtype
        if index.has_stride(1):
            self.store_row(dtype, text, self.element(buffer, index.text), active)
            return
        if active is not None or index.form != "affine":
            self.scatter(buffer, index, text, active)
            return
        t = w.vector_type(memory_type(dtype))
        for stride in self.stride_cases(index):
            if stride == REVERSE_STRIDE:
                last = w.i64("sub", index.text, str(w.width - 1))
                row = w.shuffle(t, text, text, range(w.width)[::-1])
                w.emit(f"store {t} {row}, ptr {self.element(buffer, last)}, align {dtype.itemsize}")
            elif stride:
                self.store_strided(buffer, index.text, stride, text)
            else:
                self.scatter(buffer, index, text, None)

    def store_row(self, dtype: DType, text: str, pointer: str, active: str | None) -> None:
        """Store a contiguous vector.

        A store bypasses the caches only if that pays, all lanes are active, the vector fills cache
        lines, and `pointer` is at the start of one: a line of which one half bypasses the caches
        takes 100 times as long as either way.
        """
        w = self.writer
        t = w.vector_type(memory_type(dtype))
        if active is not None:
            self.store_masked(dtype, text, pointer, w.mask_argument(active))
            return
        plain = f"store {t} {text}, ptr {pointer}, align {dtype.itemsize}"
        if not self.streams or w.width * dtype.itemsize % LINE_BYTES:
            w.emit(plain)
            return
        low = w.let(f"and i64 {w.let(f'ptrtoint ptr {pointer} to i64')}, {LINE_BYTES - 1}")
        fits = w.let(f"and i1 {self.streams}, {w.let(f'icmp eq i64 {low}, 0')}")
        with w.if_then(fits):
            w.emit(f"store {t} {text}, ptr {pointer}, align {LINE_BYTES}, !nontemporal !{{i32 1}}")
        with w.if_then(w.negate(fits)):
            w.emit(plain)

    def store_masked(self, dtype: DType, text: str, pointer: str, mask: str) -> None:
        """Store the lanes of a contiguous vector that `mask`, with its type, includes."""
        w = self.writer
        t = w.vector_type(memory_type(dtype))
        to = f"ptr align {dtype.itemsize} {pointer}, {mask}"
        w.emit(f"call void @llvm.masked.store.{w.suffix(dtype)}.p0({t} {text}, {to})")

    def scatter(self, buffer: Buffer, index: Lane, text: str, active: str | None) -> None:
        """Render a scatter of the active lanes to the index of each lane."""
        w, dtype = self.writer, buffer.dtype
        pointers = self.address(buffer, f"{w.vector_type('i64')} {w.vector(index, int64)}")
        to = f"{w.vector_type('ptr')} align {dtype.itemsize} {pointers}, {w.mask_argument(active)}"
        scatter = f"@llvm.masked.scatter.{w.suffix(dtype)}.v{w.width}p0"
        w.emit(f"call void {scatter}({w.vector_type(memory_type(dtype))} {text}, {to})")

    def store_strided(self, buffer: Buffer, first: str, stride: int, text: str) -> None:
        """Store a vector at a small stride, and leave the elements between untouched.

        Without AVX-512 each element is stored alone: a masked store takes up to 20 cycles there
        (32 K float32 at stride 2 take 12 us, with masks 40).
        """
        w, dtype, width = self.writer, buffer.dtype, self.writer.width
        t = w.vector_type(memory_type(dtype))
        if self.native < MASKED_STORE_BYTES_MIN:
            for j in range(width):
                one = w.let(f"extractelement {t} {text}, i64 {j}")
                pointer = self.element(buffer, w.i64("add", first, str(j * stride)))
                w.emit(f"store {memory_type(dtype)} {one}, ptr {pointer}, align {dtype.itemsize}")
            return
        for start in range(0, stride * width, width):
            positions = range(start, start + width)
            row = w.shuffle(t, text, text, [p // stride for p in positions])
            pointer = self.element(buffer, w.i64("add", first, str(start)))
            bits = ", ".join(f"i1 {int(p % stride == 0)}" for p in positions)
            self.store_masked(dtype, row, pointer, f"<{width} x i1> <{bits}>")

    def interleave(self, dtype: DType, a: str, b: str) -> str:
        """Render the alternation of two vectors' elements, as one vector of double width."""
        w, width = self.writer, self.writer.width
        picks = [k // 2 + (k % 2) * width for k in range(2 * width)]
        return w.shuffle(w.vector_type(memory_type(dtype)), a, b, picks)

    def store_transposed(
        self, buffer: Buffer, first: str, rows: Sequence[str], stride: int
    ) -> None:
        """Store the elements of lane j of all `rows` side by side at `first + j * stride`.

        Squares of registers are transposed: a scatter takes 1.5 cycles for each element.
        """
        w, dtype, side = self.writer, buffer.dtype, len(rows)
        t = w.vector_type(memory_type(dtype))
        square = f"<{side} x {memory_type(dtype)}>"
        for lane in range(0, w.width, side):
            cut = [w.shuffle(t, r, r, range(lane, lane + side)) for r in rows]
            for j, column in enumerate(self.transpose(cut, square)):
                pointer = self.element(buffer, w.i64("add", first, str((lane + j) * stride)))
                w.emit(f"store {square} {column}, ptr {pointer}, align {dtype.itemsize}")

    def transpose(self, rows: Sequence[str], t: str) -> Sequence[str]:
        """Render the transpose of a square of registers, by exchanges of ever larger corners."""
        width, step = len(rows), 1
        while step < width:
            upper = [e if not e & step else e - step + width for e in range(width)]
            lower = [e + step if not e & step else e + width for e in range(width)]
            new = list(rows)
            for i in range(width):
                if not i & step:
                    for k, picks in ((i, upper), (i + step, lower)):
                        new[k] = self.writer.shuffle(t, rows[i], rows[i + step], picks)
            rows, step = new, step * 2
        return rows
