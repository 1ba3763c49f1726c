"""Matrix products as machine code: packed panels, register tiles, blocks that threads share.

The sums have the order of products (`ops.kernel_ops.sum_of_products`): BLOCK fused multiply-adds
from 0, then sums of blocks, in groups of PRODUCT_BLOCKS. A tile of the result stays in registers
for one block, with a row's element in all lanes times vectors of columns. So the bits do not depend
on tiles, vector width, threads or strides.

A call computes some of the blocks of the result. For each block of k it copies the columns of the
second operand into panels, and walks down the rows. Panels are left out for columns that lie side
by side in short rows; the first operand is copied only if its elements along k are far apart.

Operands of other dtypes are always copied, and cast by the copy (`packing`). An int32 product of
int8 and uint8 adds two k at once: an element of its panels is a pair of int16, so its k counts
pairs, and a multiply-add is the instruction PMADDWD.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from dovetail.extend import (
    PRODUCT_BLOCK,
    PRODUCT_BLOCKS,
    DType,
    StridedOperand,
    float16,
    float32,
    float64,
    int32,
)

from . import dots, matvec
from .ir_writer import FunctionWriter, Slot, fields
from .lines import NATIVE_BYTES_MAX, PIECE_BYTES, prefetch_line
from .packing import CASTS, K_PER_ELEMENT, Packer, column_packers, list_turned_tiles, row_packers
from .targets import Target

BLOCK, GROUP = PRODUCT_BLOCK, PRODUCT_BLOCK * PRODUCT_BLOCKS  # along k
TILE_ROWS = {64: (12, 8, 4, 2, 1), 32: (6, 4, 2, 1), 16: (4, 2, 1)}  # by bytes of a vector
TILE_VECTORS = 2  # 12 rows and 2 vectors take 24 of 32 registers
ROW_TILE_VECTORS = 16  # of a single row, so that no multiply-add waits for the one before
COLUMNS_BYTES_MAX = 1 << 11  # of a block's rows: its panels (512 KB) stay in the second-level cache
NEAR_ROW_BYTES_MAX = 1 << 11  # columns in rows that are no further apart are read in place
NEAR_STEP_BYTES_MAX = 1 << 8  # elements along k of the first operand, likewise
TASK_MULTIPLIES_MIN = 1 << 19  # of a block that a thread takes, some 5 us
TASKS_PER_THREAD = 4

Shape = tuple[int, ...]

LETTERS = {float32: "s", float64: "d", int32: "i"}
_TYPES = {"s": ("float", 4), "d": ("double", 8), "i": ("i32", 4)}
# PMADDWD by bytes of a vector
_PAIR_PRODUCTS = {64: "avx512.pmaddw.d.512", 32: "avx2.pmadd.wd", 16: "sse2.pmadd.wd"}
# The integers of a call, after the addresses: sizes, strides in bytes, the blocks of the result,
# and if the operands are exchanged, copied, or transposed in registers; the length along k of
# operands that are cast, the number of each operand's cast (0: none), and the strides of scales
# along the rows of the first and the columns of the second operand. Then, for each axis of
# the stack, four more: its extent and three strides.
_INTS = (
    "m", "n", "k", "a_row", "a_col", "b_row", "b_col", "c_row", "c_col", "rows", "columns",
    "across", "per_matrix", "swaps", "packs_a", "packs_b", "turns", "length", "a_cast", "b_cast",
    "has_scales", "a_scaled", "b_scaled", "a_scale_step", "b_scale_step", "rank",
)  # fmt: skip
_ADDRESSES = 5  # operands, the scales of both if there are any, and the result after them


class RoutineModule(NamedTuple):
    """Kernels that are compiled together: their names, and a function that writes their IR.

    write_ir: a function of the target triple and the target.
    """

    kernels: tuple[str, ...]
    write_ir: Callable[[str, Target], str]


class RoutineCall(NamedTuple):
    """A call of the compiled routine of a product or a sort.

    - `ints`: the arguments behind `addresses` addresses.
    - `blocks`: how many independent units threads share.
    - `operations`: an estimate of the arithmetic operations.
    """

    module: RoutineModule
    kernel: str
    ints: tuple[int, ...]
    blocks: int
    operations: int
    addresses: int = _ADDRESSES


def choose_product(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> RoutineCall | None:
    """Return the call for these operands; None for other dtypes, and if an extent is 0.

    native: bytes of a vector; threads: how many will share the call. Neither changes the bits.
    """
    (_, _, x, xs, x_dtype), (_, _, _, ys, y_dtype), *scales = inputs
    _, _, shape, outs, dtype = output
    letter = LETTERS.get(dtype)
    if letter is None or not x[-1] or 0 in shape:
        return None
    *stack, m, n = shape
    size, length, sizes = dtype.itemsize, x[-1], (x_dtype.itemsize, y_dtype.itemsize)
    axes = [
        (
            stack[axis],
            _stack_stride(xs, len(shape), axis) * sizes[0],
            _stack_stride(ys, len(shape), axis) * sizes[1],
            outs[axis] * size,
        )
        for axis in reversed(range(len(stack)))
    ]
    a, b, c = (
        [s * itemsize for s in strides[-2:]]
        for strides, itemsize in zip((xs, ys, outs), (*sizes, size), strict=True)
    )
    a_cast, b_cast = (_find_cast(letter, d, dtype) for d in (x_dtype, y_dtype))
    k = -(-length // K_PER_ELEMENT[letter])
    count, operations, casts = math.prod(stack), math.prod(stack) * m * n * k, a_cast or b_cast
    is_row, is_column = m == 1, n == 1
    along_k = (is_column or b[0] == size) and (is_row or a[1] == size)
    is_vector = (is_row or is_column) and not casts
    if is_vector and m * n < matvec.ROWS_MIN and along_k:
        rows_and_columns = [(m, a[0], 0, c[0])] * (m > 1) + [(n, 0, b[1], c[1])] * (n > 1)
        words, tasks = dots.choose_tasks(k, rows_and_columns + axes, (a[1], b[0]))
        return RoutineCall(module(letter), f"{letter}dots", words, tasks, operations, 3)
    # an operand without a scale stands for its own
    is_scaled = [
        scale[4] is dtype is not d for scale, d in zip(scales, (x_dtype, y_dtype), strict=False)
    ]
    steps = [scale[3][axis] * size for scale, axis in zip(scales, (-2, -1), strict=False)]
    if not scales:
        is_scaled, steps = [False, False], [0, 0]
    swaps = n == 1 < m  # a column as a row, whose vectors are full
    if swaps:
        m, n, a, b, c = n, m, b[::-1], a[::-1], c[::-1]
        a_cast, b_cast, is_scaled, steps = b_cast, a_cast, is_scaled[::-1], steps[::-1]
        axes = [(extent, y, x, z) for extent, x, y, z in axes]
    if is_vector and m == 1 and b[0] == size != b[1]:
        words, tasks = matvec.choose_tasks(n, k, size, (b[1], a[1], c[1]), swaps, axes, threads)
        return RoutineCall(module(letter), f"{letter}matvec", words, tasks, operations, 3)
    near = b[1] == size and b[0] <= NEAR_ROW_BYTES_MAX
    few_rows = b[1] == size and m <= TILE_ROWS[native][0]
    itemsize = sizes[0] if swaps else sizes[1]
    turns = m == 1 and b[0] == itemsize != b[1] and K_PER_ELEMENT[letter] == 1
    reads_in_place = turns or n == 1 or near or few_rows
    packs_b = not turns if b_cast else not reads_in_place
    packs_a = m > 1 and a[1] > NEAR_STEP_BYTES_MAX and n > TILE_VECTORS * native // size
    rows, columns = choose_block(m, n, k, size, threads)
    if turns:  # each is read from end to end
        columns = min(n, TILE_VECTORS * native // size)
    across, down = -(-n // columns), -(-m // rows)
    a[1] *= K_PER_ELEMENT[letter]
    b[0] *= K_PER_ELEMENT[letter]
    ints = [m, n, k, *a, *b, *c, rows, columns, across, across * down]
    ints += [swaps, packs_a and not a_cast, packs_b, turns, length, a_cast, b_cast]
    ints += [bool(scales), *is_scaled, *steps, len(stack)]
    ints += [number for axis in axes for number in axis]
    blocks = count * across * down
    return RoutineCall(module(letter), f"{letter}gemm", tuple(map(int, ints)), blocks, operations)


def _find_cast(letter: str, dtype: DType, result: DType) -> int:
    """Return the number of the cast of an operand; 0 if it has the dtype of the result."""
    return 0 if dtype is result else 1 + [*CASTS[letter]].index(dtype)


def _stack_stride(strides: Shape, rank: int, axis: int) -> int:
    """Return an operand's stride along an axis of the stack; 0 for an operand without the stack."""
    return strides[axis] if len(strides) == rank else 0


def choose_block(m: int, n: int, k: int, size: int, threads: int) -> tuple[int, int]:
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


def kernels(letter: str) -> tuple[str, ...]:
    """Return the names of the kernels for a dtype."""
    names = ("gemm",) if letter == "i" else ("gemm", "matvec", "dots")
    return tuple([letter + name for name in names])


def module(letter: str) -> RoutineModule:
    """Return the module of the products of a dtype."""
    return RoutineModule(
        kernels(letter),
        lambda triple, target: ir(triple, target.vector_bytes, letter, target.has_halves),
    )


def find_accepted_dtypes(triple: str, target: Target) -> dict[DType, frozenset[DType]]:
    """Return the dtypes of operands that the kernels take, by the dtype of the product."""
    accepted = {d: frozenset({d, *CASTS[LETTERS[d]]}) for d in (float32, float64)}
    if not target.has_halves:
        accepted[float32] -= {float16}
    if triple.startswith("x86_64") and target.has_pairs:
        accepted[int32] = frozenset(CASTS["i"])
    return accepted


def ir(triple: str, native: int, letter: str, has_halves: bool = True) -> str:
    """Return the IR of the kernels for a dtype, for vectors of `native` bytes.

    `has_halves`: False if the target converts no float16, which the module then cannot cast.
    """
    renderer = Renderer(letter, native)
    if not has_halves:
        renderer.packers = [p for p in renderer.packers if p.cast is not CASTS["s"][float16]]
    return "\n".join([declare(triple), renderer.render()])


def declare(triple: str) -> str:
    """Return the head of a module: its target, and what all of its functions may call."""
    declarations = [
        f'target triple = "{triple}"',
        "declare i64 @llvm.smin.i64(i64, i64)",
        "declare i64 @llvm.smax.i64(i64, i64)",
        "declare ptr @allocate(i64)",
        "declare void @release(ptr)",
        "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)",
    ]
    return "\n".join(declarations)


class Renderer:
    """Renders the functions for one dtype: tiles, copies into panels, and the kernel.

    `panel`: the columns of a tile. `pairs`: True if an element along k is a pair of int16.
    `narrow`: the renderer for vectors of lines, which may be narrower; `piece`: the elements of 16
    bytes. `spills`: False if all vectors fit into the registers.
    """

    def __init__(self, letter: str, native: int, spills: bool = True) -> None:
        self.letter, self.spills = letter, spills
        self.real, self.size = _TYPES[letter]
        self.pairs = letter == "i"
        self.native, self.width = native, native // self.size
        self.panel, self.piece = self.width * TILE_VECTORS, PIECE_BYTES // self.size
        self.type = f"<{self.width} x {self.real}>"
        self.suffix = f"v{self.width}{'i' if self.pairs else 'f'}{8 * self.size}"
        self.add = "add" if self.pairs else "fadd"
        self.heights = TILE_ROWS[native]
        self.packers = [Packer(self, cast) for cast in CASTS[letter].values()]
        if not self.pairs:
            self.packers.insert(0, Packer(self, None))
        is_wide = native > NATIVE_BYTES_MAX  # and a CPU with such vectors has 32 registers
        self.narrow = Renderer(letter, NATIVE_BYTES_MAX, spills=False) if is_wide else self

    def render(self) -> str:
        """Return the IR of all functions."""
        declarations = self.declarations()
        declarations.update(line for packer in self.packers for line in packer.declarations())
        one = "1" if self.pairs else "1.0"
        functions = [
            f"@{self.letter}one = private constant {self.real} {one}",
            self.render_tile(1, ROW_TILE_VECTORS, False),
            *self.render_tiles(),
        ]
        if not self.pairs:
            declarations |= self.narrow.declarations()
            functions += map(self._render_turned_tile, self.packers)
            functions += [*matvec.render(self.narrow), *dots.render(self.narrow)]
        for packer in self.packers:
            functions += packer.render()
        functions.append(self._render_kernel())
        return "\n".join([*sorted(declarations), *functions])

    def declarations(self) -> set[str]:
        """Return the declarations of the intrinsics for tiles."""
        t, bits = self.type, f"<{self.width} x i1>"
        declarations = {
            f"declare {t} @llvm.masked.load.{self.suffix}.p0(ptr, i32, {bits}, {t})",
            f"declare void @llvm.masked.store.{self.suffix}.p0({t}, ptr, i32, {bits})",
        }
        if self.pairs:
            p = f"<{2 * self.width} x i16>"
            declarations.add(f"declare {t} @llvm.x86.{_PAIR_PRODUCTS[self.native]}({p}, {p})")
        else:
            scalars = ", ".join([self.real] * 3)
            declarations.add(f"declare {t} @llvm.fma.{self.suffix}({t}, {t}, {t})")
            declarations.add(f"declare {self.real} @llvm.fma.f{8 * self.size}({scalars})")
        return declarations

    def render_tiles(self) -> list[str]:
        """Return the IR of the tiles that a kernel calls for panels."""
        return [
            self.render_tile(rows, vectors, is_tail)
            for rows in self.heights
            for vectors, is_tail in (
                (TILE_VECTORS, False),
                *((v, True) for v in range(1, TILE_VECTORS + 1)),
            )
        ]

    def function(self, name: str, parameters: str, w: FunctionWriter, linkage: str = "") -> str:
        """Return the IR of a function."""
        lines = "\n".join([*w.entry, *w.lines, "  ret void"])
        # vectors that LLVM spills would cross cache lines, and take twice as long
        aligned = f" alignstack({self.native})" if self.spills else ""
        head = f"define {linkage}void @{self.letter}{name}({parameters}){aligned}"
        return f"{head} {{\nentry:\n{lines}\n}}"

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

    def name_operands(self, others: Sequence[tuple[str, int, int]]) -> list[str]:
        """Return IR that names the operands %a and %b, and others, exchanged if %swaps.

        others: the name of each, and the numbers of its address and of the exchanged one.
        """
        lines = ["  %exchanged = icmp ne i64 %swaps, 0"]
        for name, i, j in (("a", 0, 1), ("b", 1, 0), *others):
            lines += [f"  %{name}_address = select i1 %exchanged, i64 %w{j}, i64 %w{i}"]
            lines += [f"  %{name} = inttoptr i64 %{name}_address to ptr"]
        return lines

    def find_item(
        self, w: FunctionWriter, number: Slot, first_word: int, operands: Sequence[str] = "abc"
    ) -> list[str]:
        """Append the walk to an item of the stack; return the addresses of the operands there.

        number: the item's; the walk leaves 0 there.
        first_word: the place in %slots of the axes, each an extent and a stride of each operand,
            the fastest axis first.
        """
        slots = [w.slot("ptr", f"%{name}") for name in operands]
        with w.loop("0", "%rank") as axis:
            words = str(len(operands) + 1)
            word = w.i64("add", w.i64("mul", axis, words), str(first_word))
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

    def render_tile(self, rows: int, vectors: int, is_tail: bool, has_table: bool = False) -> str:
        """Return the function that adds one block of k to a tile, or starts it.

        is_tail: only %valid columns are stored; the second operand is padded to whole vectors.
        has_table: its rows are at the distances, in elements, of a table at address %b_row, and
            its vectors %valid bytes apart.
        """
        w = self.writer()
        sums = [[w.slot(self.type, "zeroinitializer") for _ in range(vectors)] for _ in range(rows)]
        self._render_sums(w, sums, has_table)
        mask = None
        if is_tail:
            left = w.i64("sub", "%valid", str((vectors - 1) * self.width))
            mask = w.prefix_mask(left, self.width)
        self._render_results(w, sums, mask)
        name = f"tile_{rows}_{vectors}" + ("_tail" if is_tail else "_table" if has_table else "")
        parameters = (
            "i64 %count, ptr %a, i64 %a_row, i64 %a_col, ptr %b, i64 %b_row, ptr %c, i64 %c_row, "
            "i1 %first, i64 %valid"
        )
        return self.function(name, parameters, w, "internal ")

    def _render_sums(
        self, w: FunctionWriter, sums: Sequence[Sequence[Slot]], has_table: bool
    ) -> None:
        """Append the loop over k: each row's element times the vectors of columns.

        Three rows share an address, since x86 adds a register once or twice to another.
        """
        starts = ["%a"]
        for _ in range(3, len(sums), 3):
            starts.append(self.move(w, starts[-1], ("3", "%a_row")))
        steps = ["0", "%a_row", w.i64("mul", "%a_row", "2")]
        a_slots, b_slot = [w.slot("ptr", start) for start in starts], w.slot("ptr", "%b")
        table = w.let("inttoptr i64 %b_row to ptr") if has_table else ""
        step = "%valid" if has_table else str(self.native)
        prefetches_rows = len(sums) == self.heights[0] and len(sums[0]) == 1
        if prefetches_rows:  # few products for each element of the first operand
            is_dense = w.let(f"icmp eq i64 %a_row, {w.i64('mul', '%count', str(self.size))}")
            next_rows = w.slot("ptr", self.move(w, "%a", (str(len(sums)), "%a_row")))
            row_step = w.select_i64(is_dense, str(len(sums) * self.size), "0")
        with w.loop("0", "%count") as k:
            b = w.load(b_slot)
            if has_table:
                distance = w.let(f"load i64, ptr {self.move(w, table, (k, '8'))}, align 8")
                b = self.move(w, b, (distance, str(self.size)))
            if len(sums) == self.heights[0]:  # the first rows to read the next panel
                for ahead in range(TILE_VECTORS):
                    at = self.move(w, b, (str(TILE_VECTORS + ahead), step))
                    prefetch_line(w, at, 3)
            if prefetches_rows:
                at = w.load(next_rows)
                prefetch_line(w, at, 3)
                w.store(next_rows, self.move(w, at, ("1", row_step)))
            vectors = [self.load(w, self.move(w, b, (str(j), step))) for j in range(len(sums[0]))]
            bases = [w.load(slot) for slot in a_slots]
            for i, row in enumerate(sums):
                at = self.move(w, bases[i // 3], ("1", steps[i % 3]))
                self._add_products(w, at, row, vectors)
            for slot, base in zip(a_slots, bases, strict=True):
                w.store(slot, self.move(w, base, ("1", "%a_col")))
            if not has_table:
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
        if self.pairs:
            p = f"<{2 * self.width} x i16>"
            x, y = (w.let(f"bitcast {t} {z} to {p}") for z in (x, y))
            name = f"@llvm.x86.{_PAIR_PRODUCTS[self.native]}"
            product = w.let(f"call {t} {name}({p} {x}, {p} {y})")
            w.store(total, w.let(f"add {t} {w.load(total)}, {product}"))
            return
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
                        before = self.load(w, at, outside)
                        value = w.let(f"{self.add} {self.type} {before}, {value}")
                    self.store(w, value, at, outside)
            w.emit(f"br label %{end}")
        w.begin_block(end)

    def _render_turned_tile(self, packer: Packer) -> str:
        """Return the tile of a row and columns that lie along k: squares of them are transposed.

        A vector has an element of each column, so no copy is needed, which would take as long.
        """
        w, n = self.writer(), self.width
        sums = [w.slot(self.type, "zeroinitializer") for _ in range(TILE_VECTORS)]
        bases = [self.move(w, "%b", (str(j * n), "%b_col")) for j in range(TILE_VECTORS)]
        start, factors = w.counter("0"), packer.load_scales(w, str(self.panel))

        with w.loop_from(start, "%count", n) as k:
            for base, sum_slot, factor in zip(bases, sums, factors, strict=True):
                for i, vector in enumerate(self.load_turned(w, base, k, "%b_col", packer)):
                    at = self.move(w, "%a", (w.i64("add", k, str(i)), "%a_col"))
                    self._add_products(w, at, [sum_slot], [packer.scale(w, vector, factor)])
        with w.loop_from(start, "%count", 1) as k:
            vectors = [
                packer.scale(w, self.gather(w, base, k, "%b_col", packer), factor)
                for base, factor in zip(bases, factors, strict=True)
            ]
            self._add_products(w, self.move(w, "%a", (k, "%a_col")), sums, vectors)
        self._render_results(w, [sums], None)
        parameters = (
            "i64 %count, ptr %a, i64 %a_col, ptr %b, i64 %b_col, ptr %scale, i64 %scale_step, "
            "ptr %c, i1 %first"
        )
        return self.function(packer.turned_name, parameters, w, "internal ")

    def load_turned(
        self, w: FunctionWriter, base: str, k: str, stride: str, packer: Packer
    ) -> list[str]:
        """Append loads of a square of lines along k; return a vector across lines for each k.

        stride: the register of the bytes from line to line.
        """
        first = self.move(w, base, (k, str(packer.element_bytes)))
        lines = [
            packer.load_along(w, self.move(w, first, (str(i), stride))) for i in range(self.width)
        ]
        return self.transpose(w, lines)

    def gather(self, w: FunctionWriter, base: str, k: str, stride: str, packer: Packer) -> str:
        """Append loads of the lines' elements at one k; return them as a vector."""
        vector, first = "poison", self.move(w, base, (k, str(packer.element_bytes)))
        for i in range(self.width):
            x = packer.load_one(w, self.move(w, first, (str(i), stride)))
            vector = w.let(f"insertelement {self.type} {vector}, {self.real} {x}, i64 {i}")
        return vector

    @contextmanager
    def last_case(self, w: FunctionWriter, condition: str, end: str) -> Iterator[None]:
        """Write a branch around the body, which jumps to `end` after it."""
        yes, no = w.new_label(), w.new_label()
        w.branch(condition, yes, no)
        w.begin_block(yes)
        yield
        w.emit(f"br label %{end}")
        w.begin_block(no)

    def transpose(self, w: FunctionWriter, lines: list[str]) -> list[str]:
        """Append the transposition of a square of vectors: blocks of 1, 2, 4, ... change places."""
        n, step = len(lines), 1
        while step < n:
            upper = [q if not q & step else n + q - step for q in range(n)]
            lower = [q + step if not q & step else n + q for q in range(n)]
            turned = list(lines)
            for i in (i for i in range(n) if not i & step):
                pair = lines[i], lines[i + step]
                turned[i] = w.shuffle(self.type, *pair, upper)
                turned[i + step] = w.shuffle(self.type, *pair, lower)
            lines, step = turned, 2 * step
        return lines

    # --- the kernel

    def _render_kernel(self) -> str:
        """Return the kernel: the blocks %begin..%end-1 of the result, each for all of k."""
        w = self.writer()
        names = [*[f"i64 w{i}" for i in range(_ADDRESSES)], *[f"i64 {n}" for n in _INTS]]
        w.entry += [fields("slots", names)]
        w.entry += self.name_operands((("a_factors", 2, 3), ("b_factors", 3, 2)))
        w.entry += ["  %scaled = icmp ne i64 %has_scales, 0"]
        w.entry += ["  %result = select i1 %scaled, i64 %w4, i64 %w2"]
        w.entry += ["  %c = inttoptr i64 %result to ptr"]
        _ProductWriter(self, w).render()
        return self.function("gemm", "ptr %slots, i64 %begin, i64 %end", w)


class Matrix(NamedTuple):
    """A matrix, or a part of one, in registers: its address, and its strides in bytes."""

    address: str
    row: str
    column: str


class KernelWriter:
    """Writes the body of a kernel: blocks of the result, blocks of k, panels of columns, tiles.

    Subclasses write the copies of the operands: by default, all columns and no rows are copied.
    """

    def __init__(self, renderer: Renderer, w: FunctionWriter) -> None:
        self.renderer, self.w = renderer, w
        self.size, self.panel = renderer.size, renderer.panel
        self.panel_row = str(self.panel * self.size)  # bytes
        self.panel_bytes = str(self.panel * self.size * BLOCK)
        self.packs_b = "true"

    def render(self) -> None:
        """Write the loop over blocks of the result, and before it the memory for panels and sums.

        The sums of a block are in memory of their own if the result's columns are strided, or if
        there are several groups.
        """
        w, size = self.w, str(self.size)
        self.is_strided = w.let(f"icmp ne i64 %c_col, {size}")
        has_groups = w.let(f"icmp sgt i64 %k, {GROUP}")
        has_sums = w.let(f"or i1 {has_groups}, {self.is_strided}")
        above = w.i64("add", "%columns", str(self.panel - 1))
        count = w.select_i64(self.packs_b, w.let(f"udiv i64 {above}, {self.panel}"), "1")
        panels_bytes = w.i64("mul", count, self.panel_bytes)
        rows_bytes = str(self.renderer.heights[0] * self.row_copy_bytes())
        sums_row = w.i64("mul", "%columns", size)
        sums_bytes = w.select_i64(has_sums, w.i64("mul", "%rows", sums_row), "0")
        nbytes = w.i64(
            "add", w.i64("add", panels_bytes, rows_bytes), w.i64("add", sums_bytes, "64")
        )
        memory = w.let(f"call ptr @allocate(i64 {nbytes})")
        above = w.i64("add", w.let(f"ptrtoint ptr {memory} to i64"), "63")
        aligned = w.let(f"and i64 {above}, -64")
        self.panels = w.let(f"inttoptr i64 {aligned} to ptr")
        self.packed_rows = self.move(self.panels, ("1", panels_bytes))
        self.sums = Matrix(self.move(self.packed_rows, ("1", rows_bytes)), sums_row, size)
        with w.loop("%begin", "%end") as t:
            self.write_block(t)
        w.emit(f"call void @release(ptr {memory})")

    # --- what subclasses write

    def row_copy_bytes(self) -> int:
        """Return the bytes that a row of the first operand takes if it is copied."""
        return BLOCK * self.size

    def find_block(self, t: str) -> tuple[Matrix, Matrix, Matrix, str, str]:
        """Write the starts of block `t` in the three matrices, and its rows and columns."""
        raise NotImplementedError

    def pack_columns(self, b: Matrix, column: str, valid: str, to: str) -> None:
        """Write the copy of `valid` columns of b, from `column` on, to a panel, then zeros."""
        raise NotImplementedError

    def find_rows(self, height: int, a: Matrix, row: str) -> Matrix:
        """Write the rows of a tile, from `row` of the block on, which may be copied first."""
        raise NotImplementedError

    def write_row_tiles(
        self, slot: Slot, row: Matrix, whole: str, target: Matrix
    ) -> Sequence[tuple[int, str]]:
        """Write tiles of a single row for the first panels, from the one in `slot` on.

        Return the vectors of wider tiles for the next panels, and the panel at which they end.
        """
        return ()

    # --- blocks

    def move(self, base: str, *steps: tuple[str, str]) -> str:
        """Write base + the sum of index * stride in bytes; return the register."""
        return self.renderer.move(self.w, base, *steps)

    def part(self, x: Matrix, row: str, column: str) -> Matrix:
        """Return the matrix from a row and a column on."""
        return x._replace(address=self.move(x.address, (row, x.row), (column, x.column)))

    def write_block(self, t: str) -> None:
        """Write the sums of block `t` of the result, group by group."""
        w = self.w
        a, b, c, self.rows, self.columns = self.find_block(t)
        with w.loop("0", "%k", GROUP, full_steps=False) as group:
            stop = w.min_i64("%k", w.i64("add", group, str(GROUP)))
            is_later = w.let(f"icmp ne i64 {group}, 0")
            is_apart = w.let(f"or i1 {is_later}, {self.is_strided}")
            self.target = Matrix(
                w.let(f"select i1 {is_apart}, ptr {self.sums.address}, ptr {c.address}"),
                w.select_i64(is_apart, self.sums.row, c.row),
                str(self.size),
            )
            with w.loop(group, stop, BLOCK, full_steps=False) as k:
                self.k = k
                self.count = w.min_i64(str(BLOCK), w.i64("sub", stop, k))
                self.is_first = w.let(f"icmp eq i64 {k}, {group}")
                self.write_products(self.part(a, "0", k), self.part(b, k, "0"))
            with w.if_then(is_apart), w.loop("0", self.rows) as i, w.loop("0", self.columns) as j:
                self._add_sum(self.part(c, i, j), self.part(self.sums, i, j), is_later)

    def _add_sum(self, result: Matrix, summed: Matrix, is_later: str) -> None:
        """Write one sum to the result; that of a later group is added to it."""
        w, real, align = self.w, self.renderer.real, f"align {self.size}"
        value = w.slot(real, w.let(f"load {real}, ptr {summed.address}, {align}"))
        with w.if_then(is_later):
            before = w.let(f"load {real}, ptr {result.address}, {align}")
            w.store(value, w.let(f"{self.renderer.add} {real} {before}, {w.load(value)}"))
        w.emit(f"store {real} {w.load(value)}, ptr {result.address}, {align}")

    def write_products(self, a: Matrix, b: Matrix) -> None:
        """Write one block of k of a block of the result: panels of columns, then tiles of rows."""
        w, panel = self.w, str(self.panel)
        whole = w.let(f"udiv i64 {self.columns}, {panel}")
        start = w.i64("mul", whole, panel)  # of the columns that fill no panel
        left = w.i64("sub", self.columns, start)
        has_left = w.let(f"icmp ne i64 {left}, 0")
        with w.if_then(self.packs_b), w.loop("0", whole) as p:
            to = self.move(self.panels, (p, self.panel_bytes))
            self.pack_columns(b, w.i64("mul", p, panel), panel, to)
        before = w.select_i64(self.packs_b, w.i64("mul", whole, self.panel_bytes), "0")
        tail = Matrix(self.move(self.panels, ("1", before)), self.panel_row, "")
        with w.if_then(has_left):
            self.pack_columns(b, start, left, tail.address)
        panels = Matrix(  # its columns are panels
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
                    self.find_rows(height, self.part(a, i, "0"), i),
                    self.part(self.target, i, "0"),
                )
                self.write_whole_tiles(height, rows, panels, whole, target)
                last = self.part(target, "0", start)
                for vectors, condition in ((1, is_narrow), (2, is_wide)):
                    with w.if_then(condition):
                        self.call_tile(f"{height}_{vectors}_tail", rows, tail, last, left)

    def write_whole_tiles(
        self, height: int, rows: Matrix, panels: Matrix, whole: str, target: Matrix
    ) -> None:
        """Write the tiles of some rows over all whole panels; a single row may have wider tiles."""
        w, slot = self.w, self.w.counter("0")
        wide = self.write_row_tiles(slot, rows, whole, target) if height == 1 else ()
        for vectors, stop in (*wide, (TILE_VECTORS, whole)):
            with w.loop_from(slot, stop, vectors // TILE_VECTORS) as p:
                tile = target._replace(address=self.move(target.address, (p, self.panel_row)))
                panel = self.part(panels, "0", p)
                self.call_tile(f"{height}_{vectors}", rows, panel, tile, "0")

    def call_tile(self, name: str, a: Matrix, b: Matrix, c: Matrix, valid: str) -> None:
        """Write the call of the tile `name`."""
        self.w.emit(
            f"call void @{self.renderer.letter}tile_{name}(i64 {self.count}, "
            f"ptr {a.address}, i64 {a.row}, i64 {a.column}, ptr {b.address}, i64 {b.row}, "
            f"ptr {c.address}, i64 {c.row}, i1 {self.is_first}, i64 {valid})"
        )


class _ProductWriter(KernelWriter):
    """Writes the kernel of a product: operands are copied if that is faster, or if it casts."""

    def render(self) -> None:
        """Write the flags that say which operands are copied, the functions, and the loop."""
        w = self.w
        self.packs_a, self.packs_b, self.casts_a = (
            w.let(f"icmp ne i64 %{name}, 0") for name in ("packs_a", "packs_b", "a_cast")
        )
        packers = self.renderer.packers
        names, first = column_packers(packers), int(self.renderer.pairs)
        self.column_packer = self._choose_function("%b_cast", names, first)
        self.row_packer = self._choose_function("%a_cast", row_packers(packers), 1)
        if not self.renderer.pairs:
            self.turned_tile = self._choose_function("%b_cast", list_turned_tiles(packers), first)
            self.turns = w.let("icmp ne i64 %turns, 0")
        one = f"@{self.renderer.letter}one"
        self.a_ones, self.b_ones = (
            w.let(f"select i1 {w.let(f'icmp ne i64 %{m}_scaled, 0')}, ptr %{m}_factors, ptr {one}")
            for m in "ab"
        )
        super().render()

    def _choose_function(self, number: str, names: Sequence[str], first: int) -> str:
        """Write the choice of a function by its number; `first` is the number of the first one."""
        *others, last = enumerate(names, first)
        chosen = f"@{last[1]}"
        for k, name in others:
            is_it = self.w.let(f"icmp eq i64 {number}, {k}")
            chosen = self.w.let(f"select i1 {is_it}, ptr @{name}, ptr {chosen}")
        return chosen

    def find_block(self, t: str) -> tuple[Matrix, Matrix, Matrix, str, str]:
        """Write the starts of block `t` in the three matrices, and its rows and columns."""
        w = self.w
        number = w.slot("i64", w.let(f"udiv i64 {t}, %per_matrix"))
        within = w.let(f"urem i64 {t}, %per_matrix")
        row = w.i64("mul", w.let(f"udiv i64 {within}, %across"), "%rows")
        column = w.i64("mul", w.let(f"urem i64 {within}, %across"), "%columns")
        starts = self.renderer.find_item(w, number, _ADDRESSES + len(_INTS))
        self.a_scale, self.b_scale = (
            self.move(start, (position, f"%{m}_scale_step"))
            for start, position, m in ((self.a_ones, row, "a"), (self.b_ones, column, "b"))
        )
        a, b, c = (
            Matrix(start, f"%{x}_row", f"%{x}_col") for start, x in zip(starts, "abc", strict=True)
        )
        rows = w.min_i64("%rows", w.i64("sub", "%m", row))
        columns = w.min_i64("%columns", w.i64("sub", "%n", column))
        return (
            self.part(a, row, "0"),
            self.part(b, "0", column),
            self.part(c, row, column),
            rows,
            columns,
        )

    def write_products(self, a: Matrix, b: Matrix) -> None:
        """Write one block of k of a block of the result; find its length along k before casts."""
        w, per = self.w, str(self.renderer.packers[0].k_per_element)
        left = w.i64("sub", "%length", w.i64("mul", self.k, per))
        self.limit = w.min_i64(w.i64("mul", self.count, per), left)
        self.block_of_b = b
        super().write_products(a, b)

    def _scale_columns(self, column: str) -> str:
        """Write the arguments for the scales of columns of the block, from one on."""
        return f"ptr {self.move(self.b_scale, (column, '%b_scale_step'))}, i64 %b_scale_step"

    def pack_columns(self, b: Matrix, column: str, valid: str, to: str) -> None:
        """Write the call that copies columns to a panel."""
        b, scale = self.part(b, "0", column), self._scale_columns(column)
        arguments = f"i64 {self.count}, ptr {b.address}, i64 {b.row}, i64 {b.column}, "
        arguments += f"i64 {self.limit}, {scale}, i64 {valid}, ptr {to}"
        self.w.emit(f"call void {self.column_packer}({arguments})")

    def find_rows(self, height: int, a: Matrix, row: str) -> Matrix:
        """Write the rows of a tile, which are copied first if that is faster, or casts them."""
        w, size = self.w, str(self.size)
        arguments = f"i64 {self.count}, ptr {a.address}, i64 {a.row}, i64 {a.column}"
        if not self.renderer.pairs:
            with w.if_then(self.packs_a):
                name = f"{self.renderer.letter}pack_{height}"
                w.emit(f"call void @{name}({arguments}, ptr {self.packed_rows})")
        with w.if_then(self.casts_a):
            scale = self.move(self.a_scale, (row, "%a_scale_step"))
            arguments += f", i64 {self.limit}, ptr {scale}, i64 %a_scale_step"
            arguments += f", i64 {height}, ptr {self.packed_rows}"
            w.emit(f"call void {self.row_packer}({arguments})")
        is_copy = w.let(f"or i1 {self.packs_a}, {self.casts_a}")
        row_step = w.select_i64(self.packs_a, size, a.row)
        column = w.select_i64(self.packs_a, str(height * self.size), a.column)
        return Matrix(
            w.let(f"select i1 {is_copy}, ptr {self.packed_rows}, ptr {a.address}"),
            w.select_i64(self.casts_a, str(BLOCK * self.size), row_step),
            w.select_i64(self.casts_a, size, column),
        )

    def write_row_tiles(
        self, slot: Slot, row: Matrix, whole: str, target: Matrix
    ) -> Sequence[tuple[int, str]]:
        """Write the tiles whose columns lie along k; return those of many vectors.

        A wide tile needs panels that lie side by side, as they do without a copy.
        """
        w = self.w
        if self.renderer.pairs:
            return ()
        with w.loop_from(slot, w.select_i64(self.turns, whole, "0"), 1) as p:
            column = w.i64("mul", p, str(self.panel))
            columns, scale = self.part(self.block_of_b, "0", column), self._scale_columns(column)
            at = self.move(target.address, (p, self.panel_row))
            self._call_turned_tile(row, columns, scale, at)
        return ((ROW_TILE_VECTORS, w.select_i64(self.packs_b, "0", whole)),)

    def _call_turned_tile(self, a: Matrix, b: Matrix, scale: str, c: str) -> None:
        """Write the call of the tile whose columns lie along k."""
        self.w.emit(
            f"call void {self.turned_tile}(i64 {self.count}, ptr {a.address}, "
            f"i64 {a.column}, ptr {b.address}, i64 {b.column}, {scale}, "
            f"ptr {c}, i1 {self.is_first})"
        )
