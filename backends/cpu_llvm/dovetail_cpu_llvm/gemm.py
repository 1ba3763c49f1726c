"""Matrix products as machine code: packed panels, register tiles, blocks that threads share.

The sums have the order of products (`ops.kernel_ops.sum_of_products`): BLOCK fused multiply-adds
from 0, then sums of blocks, in groups of PRODUCT_BLOCKS. A tile of the result stays in registers
for one block, with a row's element in all lanes times vectors of columns. So the bits do not depend
on tiles, vector width, threads or strides.

A call computes some of the blocks of the result. For each block of k it copies the columns of the
second operand into panels, and walks down the rows. Panels are left out for columns that lie side
by side in short rows; the first operand is copied only if its elements along k are far apart.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dovetail.extend import PRODUCT_BLOCK, PRODUCT_BLOCKS, StridedOperand, float32, float64

from . import dots, matvec
from .ir_writer import FunctionWriter, Slot, fields
from .lines import CACHE_LINE_BYTES, NATIVE_BYTES_MAX, PIECE_BYTES, Lines

BLOCK, GROUP = PRODUCT_BLOCK, PRODUCT_BLOCK * PRODUCT_BLOCKS  # along k
TILE_ROWS = {64: (12, 8, 4, 2, 1), 32: (6, 4, 2, 1), 16: (4, 2, 1)}  # by bytes of a vector
TILE_VECTORS = 2  # 12 rows and 2 vectors take 24 of 32 registers
ROW_TILE_VECTORS = 16  # of a single row, so that no multiply-add waits for the one before
COLUMNS_BYTES_MAX = 1 << 11  # of a block's rows: its panels (512 KB) stay in the second-level cache
NEAR_ROW_BYTES_MAX = 1 << 11  # columns in rows that are no further apart are read in place
NEAR_STEP_BYTES_MAX = 1 << 8  # elements along k of the first operand, likewise
PREFETCH_BYTES = 1 << 8  # ahead, along k, of the columns that are copied
TASK_MULTIPLIES_MIN = 1 << 19  # of a block that a thread takes, some 5 us
TASKS_PER_THREAD = 4

Shape = tuple[int, ...]

_LETTERS = {float32: "s", float64: "d"}
_REAL = {"s": ("float", 4), "d": ("double", 8)}
# The integers of a call, after three addresses: sizes, strides in bytes, the blocks of the result,
# and if the operands are exchanged or copied. Then, for each axis of the stack, four more: its
# extent and three strides.
_INTS = (
    "m", "n", "k", "a_row", "a_col", "b_row", "b_col", "c_row", "c_col", "rows", "columns",
    "across", "per_matrix", "swaps", "packs_a", "packs_b", "rank",
)  # fmt: skip


class Product(NamedTuple):
    """A call: its kernel, the kernel's integers, the number of blocks, and the multiplications."""

    kernel: str
    ints: tuple[int, ...]
    blocks: int
    operations: int


def choose_product(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> Product | None:
    """Return the call for these operands; None for other dtypes, and if an extent is 0.

    native: bytes of a vector; threads: how many will share the call. Neither changes the bits.
    """
    (_, _, x, xs, dtype), (_, _, _, ys, _) = inputs
    _, _, shape, outs, _ = output
    letter = _LETTERS.get(dtype)
    if letter is None or not x[-1] or 0 in shape:
        return None
    *stack, m, n = shape
    size, k = dtype.itemsize, x[-1]
    axes = [
        (stack[axis], *[_stack_stride(s, len(shape), axis) * size for s in (xs, ys, outs)])
        for axis in reversed(range(len(stack)))
    ]
    a, b, c = ([s * size for s in strides[-2:]] for strides in (xs, ys, outs))
    count, operations = math.prod(stack), math.prod(stack) * m * n * k
    is_row, is_column = m == 1, n == 1
    along_k = (is_column or b[0] == size) and (is_row or a[1] == size)
    if (is_row or is_column) and m * n < matvec.ROWS_MIN and along_k:
        rows_and_columns = [(m, a[0], 0, c[0])] * (m > 1) + [(n, 0, b[1], c[1])] * (n > 1)
        words, tasks = dots.choose_tasks(k, rows_and_columns + axes, (a[1], b[0]))
        return Product(f"{letter}dots", words, tasks, operations)
    swaps = n == 1 < m  # a column as a row, whose vectors are full
    if swaps:
        m, n, a, b, c = n, m, b[::-1], a[::-1], c[::-1]
        axes = [(extent, y, x, z) for extent, x, y, z in axes]
    if m == 1 and b[0] == size != b[1]:
        words, tasks = matvec.choose_tasks(n, k, size, (b[1], a[1], c[1]), swaps, axes, threads)
        return Product(f"{letter}matvec", words, tasks, operations)
    near = b[1] == size and b[0] <= NEAR_ROW_BYTES_MAX
    few_rows = b[1] == size and m <= TILE_ROWS[native][0]
    packs_b = n > 1 and not (near or few_rows)
    packs_a = m > 1 and a[1] > NEAR_STEP_BYTES_MAX and n > TILE_VECTORS * native // size
    rows, columns = _choose_block(m, n, k, size, threads)
    across, down = -(-n // columns), -(-m // rows)
    ints = [m, n, k, *a, *b, *c, rows, columns, across, across * down]
    ints += [swaps, packs_a, packs_b, len(stack)]
    ints += [number for axis in axes for number in axis]
    return Product(f"{letter}gemm", tuple(map(int, ints)), count * across * down, operations)


def _stack_stride(strides: Shape, rank: int, axis: int) -> int:
    """Return an operand's stride along an axis of the stack; 0 for an operand without the stack."""
    return strides[axis] if len(strides) == rank else 0


def _choose_block(m: int, n: int, k: int, size: int, threads: int) -> tuple[int, int]:
    """Return the rows and columns of a block of the result."""
    columns = min(n, COLUMNS_BYTES_MAX // size)
    if n > columns:  # equal blocks
        columns = -(-n // -(-n // columns))
    wanted = min(TASKS_PER_THREAD * threads, m * n * k // TASK_MULTIPLIES_MIN)
    down = max(1, -(-wanted // -(-n // columns)))
    rows = -(-m // down)
    largest = TILE_ROWS[64][0]
    return min(m, -(-rows // largest) * largest), columns


def imports() -> dict[str, int]:
    """Return the addresses of the functions that the code calls, by their names there."""
    symbols, api = {"allocate": "PyMem_RawMalloc", "release": "PyMem_RawFree"}, ctypes.pythonapi
    return {
        name: int(ctypes.cast(api[symbol], ctypes.c_void_p).value or 0)
        for name, symbol in symbols.items()
    }


KERNELS = tuple(f"{letter}{kernel}" for letter in _REAL for kernel in ("gemm", "matvec", "dots"))


def ir(triple: str, native: int) -> str:
    """Return the IR of all kernels, for vectors of `native` bytes."""
    declarations = [
        f'target triple = "{triple}"',
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare ptr @allocate(i64)",
        "declare void @release(ptr)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    renderers = [Renderer(x, native) for x in _REAL]
    for renderer in renderers:
        declarations += {**renderer.declarations(), **renderer.narrow.declarations()}
    return "\n".join([*declarations, *[renderer.render() for renderer in renderers]])


class Renderer:
    """Renders the functions for one dtype: tiles, copies into panels, and the kernel.

    `panel`: the columns of a tile. `narrow`: the renderer for vectors of lines, which may be
    narrower; `piece`: the elements of 16 bytes.
    """

    def __init__(self, letter: str, native: int) -> None:
        self.letter = letter
        self.real, self.size = _REAL[letter]
        self.native, self.width = native, native // self.size
        self.panel, self.piece = self.width * TILE_VECTORS, PIECE_BYTES // self.size
        self.type = f"<{self.width} x {self.real}>"
        self.suffix = f"v{self.width}f{8 * self.size}"
        self.heights = TILE_ROWS[native]
        self.narrow = self if native <= NATIVE_BYTES_MAX else Renderer(letter, NATIVE_BYTES_MAX)

    def declarations(self) -> dict[str, None]:
        """Return the declarations of the intrinsics, in order."""
        t, bits = self.type, f"<{self.width} x i1>"
        return dict.fromkeys(
            (
                f"declare {t} @llvm.fma.{self.suffix}({t}, {t}, {t})",
                f"declare {self.real} @llvm.fma.f{8 * self.size}({', '.join([self.real] * 3)})",
                f"declare {t} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {bits}, {t})",
                f"declare void @llvm.masked.store.{self.suffix}.p0({t}, ptr, i32, {bits})",
            )
        )

    def render(self) -> str:
        """Return the IR of all functions."""
        functions = [self._render_tile(1, ROW_TILE_VECTORS, False)]
        for rows in self.heights:
            functions.append(self._render_tile(rows, TILE_VECTORS, False))
            functions += [self._render_tile(rows, v, True) for v in range(1, TILE_VECTORS + 1)]
            functions.append(self._render_pack_rows(rows))
        functions += [self._render_pack_columns(), self._render_kernel()]
        return "\n".join([*functions, *matvec.render(self.narrow), *dots.render(self.narrow)])

    def function(self, name: str, parameters: str, w: FunctionWriter, linkage: str = "") -> str:
        """Return the IR of a function."""
        lines = "\n".join([*w.entry, *w.lines, "  ret void"])
        return f"define {linkage}void @{self.letter}{name}({parameters}) {{\nentry:\n{lines}\n}}"

    def writer(self) -> FunctionWriter:
        """Return a writer at the width of a vector."""
        w = FunctionWriter()
        w.width = self.width
        return w

    # --- memory

    def move(self, w: FunctionWriter, base: str, *steps: tuple[str, str]) -> str:
        """Append base + the sum of index * stride in bytes; return the register."""
        for index, stride in steps:
            offset = w.i64("mul", index, stride)
            base = base if offset == "0" else w.let(f"getelementptr i8, ptr {base}, i64 {offset}")
        return base

    def load(self, w: FunctionWriter, at: str, mask: str | None = None) -> str:
        """Append the load of a vector; lanes outside of the mask are 0."""
        t = self.type
        if mask is None:
            return w.let(f"load {t}, ptr {at}, align {self.size}")
        arguments = f"ptr {at}, i32 {self.size}, <{self.width} x i1> {mask}, {t} zeroinitializer"
        return w.let(f"call {t} @llvm.masked.load.{self.suffix}.p0({arguments})")

    def store(self, w: FunctionWriter, value: str, at: str, mask: str | None = None) -> None:
        """Append the store of a vector, of the lanes in the mask."""
        if mask is None:
            w.emit(f"store {self.type} {value}, ptr {at}, align {self.size}")
            return
        arguments = f"{self.type} {value}, ptr {at}, i32 {self.size}, <{self.width} x i1> {mask}"
        w.emit(f"call void @llvm.masked.store.{self.suffix}.p0({arguments})")

    def copy_element(self, w: FunctionWriter, source: str, target: str) -> None:
        """Append the copy of one element."""
        x = w.let(f"load {self.real}, ptr {source}, align {self.size}")
        w.emit(f"store {self.real} {x}, ptr {target}, align {self.size}")

    def name_operands(self) -> list[str]:
        """Return IR that names the operands %a and %b, exchanged if %swaps, and the result %c."""
        lines = ["  %exchanged = icmp ne i64 %swaps, 0"]
        for name, i, j in (("a", 0, 1), ("b", 1, 0), ("c", 2, 2)):
            lines += [f"  %{name}_address = select i1 %exchanged, i64 %w{j}, i64 %w{i}"]
            lines += [f"  %{name} = inttoptr i64 %{name}_address to ptr"]
        return lines

    def find_item(self, w: FunctionWriter, number: Slot, first_word: int) -> list[str]:
        """Append the walk to an item of the stack; return the addresses of %a, %b and %c there.

        number: the item's; the walk leaves 0 there.
        first_word: the place in %slots of the axes, four integers each, the fastest axis first.
        """
        slots = [w.slot("ptr", name) for name in ("%a", "%b", "%c")]
        with w.loop("0", "%rank") as axis:
            word = w.i64("add", w.i64("mul", axis, "4"), str(first_word))
            at = w.let(f"getelementptr i64, ptr %slots, i64 {word}")
            extent = w.let(f"load i64, ptr {at}, align 1")
            index = w.let(f"urem i64 {w.load(number)}, {extent}")
            w.store(number, w.let(f"udiv i64 {w.load(number)}, {extent}"))
            for i, slot in enumerate(slots):
                word = w.let(f"getelementptr i64, ptr {at}, i64 {i + 1}")
                stride = w.let(f"load i64, ptr {word}, align 1")
                w.store(slot, self.move(w, w.load(slot), (index, stride)))
        return [w.load(slot) for slot in slots]

    # --- a tile

    def _render_tile(self, rows: int, vectors: int, is_tail: bool) -> str:
        """Return the function that adds one block of k to a tile, or starts it.

        is_tail: only %valid columns are stored; the second operand is padded to whole vectors.
        """
        w = self.writer()
        sums = [[w.slot(self.type, "zeroinitializer") for _ in range(vectors)] for _ in range(rows)]
        self._render_sums(w, sums)
        mask = None
        if is_tail:
            left = w.i64("sub", "%valid", str((vectors - 1) * self.width))
            mask = w.prefix_mask(left, self.width)
        self._render_results(w, sums, mask)
        name = f"tile_{rows}_{vectors}" + ("_tail" if is_tail else "")
        parameters = (
            "i64 %count, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, ptr %c, i64 %c_row, "
            "i1 %first, i64 %valid"
        )
        return self.function(name, parameters, w, "internal ")

    def _render_sums(self, w: FunctionWriter, sums: Sequence[Sequence[Slot]]) -> None:
        """Append the loop over k: each row's element times the vectors of columns.

        Three rows share an address, since x86 adds a register once or twice to another.
        """
        starts = ["%a"]
        for _ in range(3, len(sums), 3):
            starts.append(self.move(w, starts[-1], ("3", "%a_row")))
        steps = ["0", "%a_row", w.i64("mul", "%a_row", "2")]
        a_slots, b_slot = [w.slot("ptr", start) for start in starts], w.slot("ptr", "%b")
        with w.loop("0", "%count"):
            b = w.load(b_slot)
            vectors = [
                self.load(w, self.move(w, b, (str(j), str(self.native))))
                for j in range(len(sums[0]))
            ]
            bases = [w.load(slot) for slot in a_slots]
            for i, row in enumerate(sums):
                at = self.move(w, bases[i // 3], ("1", steps[i % 3]))
                self._add_products(w, at, row, vectors)
            for slot, base in zip(a_slots, bases, strict=True):
                w.store(slot, self.move(w, base, ("1", "%a_col")))
            w.store(b_slot, self.move(w, b, ("1", "%b_row")))

    def _add_products(
        self, w: FunctionWriter, at: str, sums: Sequence[Slot], vectors: Sequence[str]
    ) -> None:
        """Append to each sum the products of the element at an address and a vector."""
        x = w.splat(self.real, w.let(f"load {self.real}, ptr {at}, align {self.size}"))
        for slot, y in zip(sums, vectors, strict=True):
            self.fma(w, slot, x, y)

    def fma(self, w: FunctionWriter, total: Slot, x: str, y: str) -> None:
        """Append the fused multiply-add of two vectors to a sum."""
        t = self.type
        arguments = f"{t} {x}, {t} {y}, {t} {w.load(total)}"
        w.store(total, w.let(f"call {t} @llvm.fma.{self.suffix}({arguments})"))

    def _render_results(
        self, w: FunctionWriter, sums: Sequence[Sequence[Slot]], mask: str | None
    ) -> None:
        """Append the stores of a tile: of its sums if %first, else added to what is there.

        mask: the lanes of the last vector of each row that are stored; None: all.
        """
        starts, adds, end = w.new_label(), w.new_label(), w.new_label()
        w.branch("%first", starts, adds)
        for label in (starts, adds):
            w.begin_block(label)
            row = "%c"
            for i, slots in enumerate(sums):
                row = self.move(w, row, ("1", "%c_row")) if i else row
                for j, slot in enumerate(slots):
                    value, at = w.load(slot), self.move(w, row, (str(j), str(self.native)))
                    outside = mask if j == len(slots) - 1 else None
                    if label == adds:
                        value = w.let(f"fadd {self.type} {self.load(w, at, outside)}, {value}")
                    self.store(w, value, at, outside)
            w.emit(f"br label %{end}")
        w.begin_block(end)

    # --- copies into panels

    def _render_pack_rows(self, rows: int) -> str:
        """Return the function that copies rows of the first operand, elements of a k together."""
        w = self.writer()
        with w.loop("0", "%count") as k:
            source = self.move(w, "%a", (k, "%a_col"))
            target = self.move(w, "%to", (k, str(rows * self.size)))
            for i in range(rows):
                at = self.move(w, source, (str(i), "%a_row"))
                self.copy_element(w, at, self.move(w, target, (str(i), str(self.size))))
        parameters = "i64 %count, ptr %a, i64 %a_row, i64 %a_col, ptr %to"
        return self.function(f"pack_{rows}", parameters, w, "internal ")

    def _render_pack_columns(self) -> str:
        """Return the function that copies %valid columns to a panel, with zeros after them."""
        w = self.writer()
        end = w.new_label()
        is_whole = w.let(f"icmp eq i64 %valid, {self.panel}")
        has_rows = w.let(f"icmp eq i64 %b_col, {self.size}")
        has_columns = w.let(f"icmp eq i64 %b_row, {self.size}")
        masks = [
            w.prefix_mask(w.i64("sub", "%valid", str(j * self.width)), self.width)
            for j in range(TILE_VECTORS)
        ]
        cases = (
            (w.let(f"and i1 {has_rows}, {is_whole}"), [None] * TILE_VECTORS),
            (has_rows, masks),
        )
        for condition, used in cases:
            with self.last_case(w, condition, end), w.loop("0", "%count") as k:
                source = self.move(w, "%b", (k, "%b_row"))
                target = self.move(w, "%to", (k, str(self.panel * self.size)))
                for j, mask in enumerate(used):
                    step = (str(j), str(self.native))
                    vector = self.load(w, self.move(w, source, step), mask)
                    self.store(w, vector, self.move(w, target, step))
        row = w.counter("0")
        with w.if_then(w.let(f"and i1 {has_columns}, {is_whole}")):
            self._render_turned(w, row)
        with w.loop_from(row, "%count", 1) as k:
            source = self.move(w, "%b", (k, "%b_row"))
            target = self.move(w, "%to", (k, str(self.panel * self.size)))
            for j in range(TILE_VECTORS):
                self.store(w, "zeroinitializer", self.move(w, target, (str(j), str(self.native))))
            with w.loop("0", "%valid") as column:
                at = self.move(w, source, (column, "%b_col"))
                self.copy_element(w, at, self.move(w, target, (column, str(self.size))))
        w.enter_block(end)
        parameters = "i64 %count, ptr %b, i64 %b_row, i64 %b_col, i64 %valid, ptr %to"
        return self.function("pack_columns", parameters, w, "internal ")

    @contextmanager
    def last_case(self, w: FunctionWriter, condition: str, end: str) -> Iterator[None]:
        """Write a branch around the body, which jumps to `end` after it."""
        yes, no = w.new_label(), w.new_label()
        w.branch(condition, yes, no)
        w.begin_block(yes)
        yield
        w.emit(f"br label %{end}")
        w.begin_block(no)

    def _render_turned(self, w: FunctionWriter, row: Slot) -> None:
        """Append the copy of a panel whose columns lie along k."""
        r = self.narrow
        far = w.i64("mul", "%b_col", str(r.piece))
        starts = [(str(j), "%b_col") for j in range(0, self.panel, r.width)]
        vectors = [Lines(r, w, self.move(w, "%b", start), "%b_col", far) for start in starts]
        for pieces in (CACHE_LINE_BYTES // PIECE_BYTES, 1):
            with w.loop_from(row, "%count", pieces * r.piece) as k:
                for piece in range(pieces):
                    if pieces > 1 and piece < len(vectors):
                        vectors[piece].prefetch(PREFETCH_BYTES)
                    start = w.i64("add", k, str(piece * r.piece))
                    self._copy_pieces(w, vectors, start)

    def _copy_pieces(self, w: FunctionWriter, vectors: Sequence[Lines], k: str) -> None:
        """Append the copy of a piece of each column to the panel's rows from `k` on."""
        row_bytes, r = str(self.panel * self.size), self.narrow
        target = self.move(w, "%to", (k, row_bytes))
        for j, lines in enumerate(vectors):
            for i, vector in enumerate(lines.load()):
                at = self.move(w, target, (str(i), row_bytes), (str(j), str(r.native)))
                r.store(w, vector, at)
            lines.advance(str(PIECE_BYTES))

    # --- the kernel

    def _render_kernel(self) -> str:
        """Return the kernel: the blocks %begin..%end-1 of the result, each for all of k."""
        w = self.writer()
        names = [*[f"i64 w{i}" for i in range(3)], *[f"i64 {n}" for n in _INTS]]
        w.entry += [fields("slots", names)]
        w.entry += self.name_operands()
        _KernelWriter(self, w).render()
        return self.function("gemm", "ptr %slots, i64 %begin, i64 %end", w)


class _Matrix(NamedTuple):
    """A matrix, or a part of one, in registers: its address, and its strides in bytes."""

    address: str
    row: str
    column: str


class _KernelWriter:
    """Writes the body of a kernel."""

    def __init__(self, renderer: Renderer, w: FunctionWriter) -> None:
        self.renderer, self.w = renderer, w
        self.size, self.panel = renderer.size, renderer.panel
        self.panel_row = str(self.panel * self.size)  # bytes
        self.panel_bytes = str(self.panel * self.size * BLOCK)

    def render(self) -> None:
        """Write the loop over blocks of the result, and before it the memory for panels and sums.

        The sums of a block are in memory of their own if the result's columns are strided, or if
        there are several groups.
        """
        w, size = self.w, str(self.size)
        self.packs_a = w.let("icmp ne i64 %packs_a, 0")
        self.packs_b = w.let("icmp ne i64 %packs_b, 0")
        self.is_strided = w.let(f"icmp ne i64 %c_col, {size}")
        has_groups = w.let(f"icmp sgt i64 %k, {GROUP}")
        has_sums = w.let(f"or i1 {has_groups}, {self.is_strided}")
        above = w.i64("add", "%columns", str(self.panel - 1))
        count = w.select_i64(self.packs_b, w.let(f"udiv i64 {above}, {self.panel}"), "1")
        panels_bytes = w.i64("mul", count, self.panel_bytes)
        rows_bytes = str(self.renderer.heights[0] * BLOCK * self.size)
        sums_row = w.i64("mul", "%columns", size)
        sums_bytes = w.select_i64(has_sums, w.i64("mul", "%rows", sums_row), "0")
        nbytes = w.i64(
            "add", w.i64("add", panels_bytes, rows_bytes), w.i64("add", sums_bytes, "64")
        )
        memory = w.let(f"call ptr @allocate(i64 {nbytes})")
        above = w.i64("add", w.let(f"ptrtoint ptr {memory} to i64"), "63")
        aligned = w.let(f"and i64 {above}, -64")
        self.panels = w.let(f"inttoptr i64 {aligned} to ptr")
        self.packed_rows = self._move(self.panels, ("1", panels_bytes))
        self.sums = _Matrix(self._move(self.packed_rows, ("1", rows_bytes)), sums_row, size)
        with w.loop("%begin", "%end") as t:
            self._write_block(t)
        w.emit(f"call void @release(ptr {memory})")

    def _move(self, base: str, *steps: tuple[str, str]) -> str:
        """Write base + the sum of index * stride in bytes; return the register."""
        return self.renderer.move(self.w, base, *steps)

    def _part(self, x: _Matrix, row: str, column: str) -> _Matrix:
        """Return the matrix from a row and a column on."""
        return x._replace(address=self._move(x.address, (row, x.row), (column, x.column)))

    def _write_block(self, t: str) -> None:
        """Write the sums of block `t` of the result, group by group."""
        w = self.w
        a, b, c, self.rows, self.columns = self._find_block(t)
        with w.loop("0", "%k", GROUP, full_steps=False) as group:
            stop = w.min_i64("%k", w.i64("add", group, str(GROUP)))
            is_later = w.let(f"icmp ne i64 {group}, 0")
            is_apart = w.let(f"or i1 {is_later}, {self.is_strided}")
            self.target = _Matrix(
                w.let(f"select i1 {is_apart}, ptr {self.sums.address}, ptr {c.address}"),
                w.select_i64(is_apart, self.sums.row, c.row),
                str(self.size),
            )
            with w.loop(group, stop, BLOCK, full_steps=False) as k:
                self.count = w.min_i64(str(BLOCK), w.i64("sub", stop, k))
                self.is_first = w.let(f"icmp eq i64 {k}, {group}")
                self._write_products(self._part(a, "0", k), self._part(b, k, "0"))
            with w.if_then(is_apart), w.loop("0", self.rows) as i, w.loop("0", self.columns) as j:
                self._add_sum(self._part(c, i, j), self._part(self.sums, i, j), is_later)

    def _find_block(self, t: str) -> tuple[_Matrix, _Matrix, _Matrix, str, str]:
        """Write the starts of block `t` in the three matrices, and its rows and columns."""
        w = self.w
        number = w.slot("i64", w.let(f"udiv i64 {t}, %per_matrix"))
        within = w.let(f"urem i64 {t}, %per_matrix")
        row = w.i64("mul", w.let(f"udiv i64 {within}, %across"), "%rows")
        column = w.i64("mul", w.let(f"urem i64 {within}, %across"), "%columns")
        starts = self.renderer.find_item(w, number, 3 + len(_INTS))
        a, b, c = (
            _Matrix(start, f"%{x}_row", f"%{x}_col") for start, x in zip(starts, "abc", strict=True)
        )
        rows = w.min_i64("%rows", w.i64("sub", "%m", row))
        columns = w.min_i64("%columns", w.i64("sub", "%n", column))
        return (
            self._part(a, row, "0"),
            self._part(b, "0", column),
            self._part(c, row, column),
            rows,
            columns,
        )

    def _add_sum(self, result: _Matrix, summed: _Matrix, is_later: str) -> None:
        """Write one sum to the result; that of a later group is added to it."""
        w, real, align = self.w, self.renderer.real, f"align {self.size}"
        value = w.slot(real, w.let(f"load {real}, ptr {summed.address}, {align}"))
        with w.if_then(is_later):
            before = w.let(f"load {real}, ptr {result.address}, {align}")
            w.store(value, w.let(f"fadd {real} {before}, {w.load(value)}"))
        w.emit(f"store {real} {w.load(value)}, ptr {result.address}, {align}")

    def _write_products(self, a: _Matrix, b: _Matrix) -> None:
        """Write one block of k of a block of the result: panels of columns, then tiles of rows."""
        w, panel = self.w, str(self.panel)
        whole = w.let(f"udiv i64 {self.columns}, {panel}")
        start = w.i64("mul", whole, panel)  # of the columns that fill no panel
        left = w.i64("sub", self.columns, start)
        has_left = w.let(f"icmp ne i64 {left}, 0")
        with w.if_then(self.packs_b), w.loop("0", whole) as p:
            columns = self._part(b, "0", w.i64("mul", p, panel))
            self._pack_columns(columns, panel, self._move(self.panels, (p, self.panel_bytes)))
        before = w.select_i64(self.packs_b, w.i64("mul", whole, self.panel_bytes), "0")
        tail = _Matrix(self._move(self.panels, ("1", before)), self.panel_row, "")
        with w.if_then(has_left):
            self._pack_columns(self._part(b, "0", start), left, tail.address)
        panels = _Matrix(  # its columns are panels
            w.let(f"select i1 {self.packs_b}, ptr {self.panels}, ptr {b.address}"),
            w.select_i64(self.packs_b, self.panel_row, b.row),
            w.select_i64(self.packs_b, self.panel_bytes, self.panel_row),
        )
        is_wide = w.let(f"icmp sgt i64 {left}, {self.renderer.width}")
        is_narrow = w.let(f"and i1 {has_left}, {w.negate(is_wide)}")
        row = w.counter("0")
        for height in self.renderer.heights:
            with w.loop_from(row, self.rows, height) as i:
                rows, target = (
                    self._find_rows(height, self._part(a, i, "0")),
                    self._part(self.target, i, "0"),
                )
                self._write_whole_tiles(height, rows, panels, whole, target)
                last = self._part(target, "0", start)
                for vectors, condition in ((1, is_narrow), (2, is_wide)):
                    with w.if_then(condition):
                        self._call_tile(f"{height}_{vectors}_tail", rows, tail, last, left)

    def _pack_columns(self, b: _Matrix, valid: str, to: str) -> None:
        """Write the call that copies columns to a panel."""
        arguments = f"i64 {self.count}, ptr {b.address}, i64 {b.row}, i64 {b.column}"
        name = f"{self.renderer.letter}pack_columns"
        self.w.emit(f"call void @{name}({arguments}, i64 {valid}, ptr {to})")

    def _find_rows(self, height: int, a: _Matrix) -> _Matrix:
        """Write the rows of a tile, which are copied first if that is faster."""
        w = self.w
        with w.if_then(self.packs_a):
            arguments = f"i64 {self.count}, ptr {a.address}, i64 {a.row}, i64 {a.column}"
            name = f"{self.renderer.letter}pack_{height}"
            w.emit(f"call void @{name}({arguments}, ptr {self.packed_rows})")
        return _Matrix(
            w.let(f"select i1 {self.packs_a}, ptr {self.packed_rows}, ptr {a.address}"),
            w.select_i64(self.packs_a, str(self.size), a.row),
            w.select_i64(self.packs_a, str(height * self.size), a.column),
        )

    def _write_whole_tiles(
        self, height: int, rows: _Matrix, panels: _Matrix, whole: str, target: _Matrix
    ) -> None:
        """Write the tiles of some rows over all whole panels; a single row has wider tiles.

        A wide tile needs panels that lie side by side, as they do without a copy.
        """
        w, slot = self.w, self.w.counter("0")
        wide = []
        if height == 1:
            wide = [(ROW_TILE_VECTORS, w.select_i64(self.packs_b, "0", whole))]
        for vectors, stop in (*wide, (TILE_VECTORS, whole)):
            with w.loop_from(slot, stop, vectors // TILE_VECTORS) as p:
                tile = target._replace(address=self._move(target.address, (p, self.panel_row)))
                panel = self._part(panels, "0", p)
                self._call_tile(f"{height}_{vectors}", rows, panel, tile, "0")

    def _call_tile(self, name: str, a: _Matrix, b: _Matrix, c: _Matrix, valid: str) -> None:
        """Write the call of the tile `name`."""
        self.w.emit(
            f"call void @{self.renderer.letter}tile_{name}(i64 {self.count}, "
            f"ptr {a.address}, i64 {a.row}, i64 {a.column}, ptr {b.address}, i64 {b.row}, "
            f"ptr {c.address}, i64 {c.row}, i1 {self.is_first}, i64 {valid})"
        )
