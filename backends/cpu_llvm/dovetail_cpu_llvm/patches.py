"""Convolutions and the gradients of their weights as matrix products whose patches are not stored.

A matrix of patches has a row for each tap (of each channel), and a column for each position. Its
element is at the sum of a tap's distance, which a table has, and a position's place in a padded
line. So `gemm`'s tiles multiply panels that are copied from the line: for a convolution, taps by
positions, beside a matrix of weights; for the gradient of weights, rows of taps along positions,
beside a panel of the other operand's channels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from dovetail.extend import StridedOperand

from . import gemm
from .gemm import BLOCK, KernelWriter, Matrix, Renderer, RoutineCall, RoutineModule, choose_block
from .ir_writer import FunctionWriter, fields

POSITION_AXES = 4  # of a line: the batch and three axes
TABLE_BYTES = "8"  # of a table's element
RUN_WORDS = 3  # of a run of positions: its distance in bytes, its first position, its length
# The integers of a call, after the addresses of its operands: sizes, strides in bytes, the blocks
# of the result. Then extents and strides of the axes of positions, and the axes of the stack.
_INTS = [
    "m",
    "n",
    "k",
    "a_row",
    "b_col",
    "bias_row",
    "c_row",
    "c_col",
    "rows",
    "columns",
    "across",
    "per_matrix",
    "rank",
]
_AXES = tuple(f"{what}{a}" for a in range(POSITION_AXES) for what in ("extent", "stride"))

Shape = tuple[int, ...]


def choose_convolution(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> RoutineCall:
    """Return the kernel call of a convolution of weights, line, offset table and optional bias.

    Weights are (*stack, rows, taps), the line (*stack, *positions), a bias (*stack, rows), the
    result (*stack, rows, positions).
    """
    a, x, _, *bias = inputs
    depth = len(a[2]) - 2
    (m, k), n = a[2][-2:], output[2][-1]
    size = a[4].itemsize
    strides = [a[3][depth] * size, 0, bias[0][3][depth] * size if bias else 0]
    strides += [s * size for s in output[3][-2:]]
    positions = _merge_axes(x[2][depth:], x[3][depth:], size)
    operands = [a, x, *bias, output]
    name = "convolution_bias" if bias else "convolution"
    return _choose_blocks(name, (m, n, k), strides, positions, operands, depth, threads)


def choose_gradient(
    inputs: Sequence[StridedOperand], output: StridedOperand, native: int, threads: int
) -> RoutineCall:
    """Return the kernel call of a weight gradient of line, offset table and output gradient.

    The line is (*stack, *positions), the other operand (*stack, channels, *positions), the result
    (*stack, channels, taps).
    """
    x, _, y = inputs
    depth = len(output[2]) - 2
    n, m = output[2][-2:]
    size = x[4].itemsize
    strides = [0, y[3][depth] * size, 0, *[s * size for s in output[3][:-3:-1]]]
    axes = _merge_axes(x[2][depth:], x[3][depth:], size)
    axes += _merge_axes(y[2][depth + 1 :], y[3][depth + 1 :], size)
    k = math.prod(x[2][depth:])
    return _choose_blocks("gradient", (m, n, k), strides, axes, [x, y, output], depth, threads)


def _choose_blocks(
    name: str,
    sizes: tuple[int, int, int],
    strides: Sequence[int],
    positions: Sequence[int],
    operands: Sequence[StridedOperand],
    depth: int,
    threads: int,
) -> RoutineCall:
    """Return a kernel call whose result is divided into blocks, one per task."""
    size, (m, n, k) = operands[0][4].itemsize, sizes
    rows, columns = choose_block(m, n, k, size, threads)
    across, down = -(-n // columns), -(-m // rows)
    ints = [m, n, k, *strides, rows, columns, across, across * down, depth, *positions]
    stack = operands[0][2][:depth]
    for axis in reversed(range(depth)):
        ints += [stack[axis], *[x[3][axis] * size for x in operands]]
    count = math.prod(stack)
    letter = gemm.LETTERS[operands[0][4]]
    blocks = count * across * down
    addresses = len(operands) + 1  # those of the operands and of the table
    operations, words = count * m * n * k, tuple(map(int, ints))
    return RoutineCall(module(letter), letter + name, words, blocks, operations, addresses)


def _merge_axes(shape: Shape, strides: Shape, size: int) -> list[int]:
    """Merge contiguous axes; return POSITION_AXES extents and byte strides, the innermost last.

    Axes that are walked as one are merged. The last one has neighbours.
    """
    merged: list[tuple[int, int]] = []
    for n, s in zip(shape, strides, strict=True):
        if merged and merged[-1][1] == s * n:
            merged[-1] = merged[-1][0] * n, s
        elif n != 1:
            merged.append((n, s))
    if not merged or merged[-1][1] != 1:
        merged.append((1, 1))
    padded = [(1, 0)] * (POSITION_AXES - len(merged)) + merged
    return [word for n, s in padded for word in (n, s * size)]


def kernels(letter: str) -> tuple[str, ...]:
    """Return the names of the kernels for a dtype."""
    return f"{letter}convolution", f"{letter}convolution_bias", f"{letter}gradient"


def module(letter: str) -> RoutineModule:
    """Return the module of the convolutions of a dtype."""
    return RoutineModule(
        kernels(letter), lambda triple, target: ir(triple, target.vector_bytes, letter)
    )


def ir(triple: str, native: int, letter: str) -> str:
    """Return the IR of the kernels for a dtype, for vectors of `native` bytes.

    It has tiles of its own, so that products need no convolutions, and these no products.
    """
    r = Renderer(letter, native)
    functions = [
        *r.render_tiles(),
        *[r.render_tile(h, gemm.TILE_VECTORS, False, True) for h in r.heights],
        _render_copy_taps(r),
        *[_render_copy_rows(r, height) for height in r.heights],
        _render_copy_channels(r),
        _render_kernel(r, ("a", "b", "table", "c"), "convolution", _ConvolutionWriter),
        _render_kernel(r, ("a", "b", "table", "bias", "c"), "convolution_bias", _ConvolutionWriter),
        _render_kernel(r, ("a", "table", "b", "c"), "gradient", _GradientWriter),
    ]
    return "\n".join([gemm.declare(triple), *sorted(r.declarations()), *functions])


# --- copies into panels


def _render_copy_taps(r: Renderer) -> str:
    """Return the function that packs %length adjacent positions (a vector at most) of each tap."""
    w = r.writer()
    end, row = w.new_label(), str(r.panel * r.size)
    mask = w.prefix_mask("%length", r.width)
    is_whole = w.let(f"icmp eq i64 %length, {r.width}")
    for condition, used in ((is_whole, None), ("true", mask)):
        with r.last_case(w, condition, end), w.loop("0", "%count") as k:
            distance = w.let(f"load i64, ptr {r.move(w, '%table', (k, TABLE_BYTES))}, align 8")
            vector = r.load(w, r.move(w, "%x", (distance, str(r.size))), used)
            r.store(w, vector, r.move(w, "%to", (k, row)), used)
    w.enter_block(end)
    parameters = "i64 %count, ptr %table, ptr %x, i64 %length, ptr %to"
    return r.function("copy_taps", parameters, w, "internal ")


def _render_copy_rows(r: Renderer, rows: int) -> str:
    """Return the function that packs %count runs of positions of each of `rows` taps.

    The last vector of a run may be written beyond it: the next run follows, or the end of a row.
    """
    w = r.writer()
    with w.loop("0", "%count") as i:
        run = r.move(w, "%runs", (i, str(RUN_WORDS * 8)))
        distance, start, length = (
            w.let(f"load i64, ptr {r.move(w, run, (str(j), '8'))}, align 8")
            for j in range(RUN_WORDS)
        )
        source = r.move(w, "%x", ("1", distance))
        target = r.move(w, "%to", (start, str(r.size)))
        left, whole = w.let(f"and i64 {length}, {r.width - 1}"), w.counter("0")
        with w.loop_from(whole, length, r.width) as k:
            _copy_vectors(r, w, rows, source, target, k)
        with w.if_then(w.let(f"icmp ne i64 {left}, 0")):
            tail = w.prefix_mask(left, r.width)
            _copy_vectors(r, w, rows, source, target, w.load(whole), tail)
    parameters = "i64 %count, ptr %runs, ptr %table, ptr %x, ptr %to"
    return r.function(f"copy_rows_{rows}", parameters, w, "internal ")


def _copy_vectors(
    r: Renderer,
    w: FunctionWriter,
    rows: int,
    source: str,
    target: str,
    k: str,
    mask: str | None = None,
) -> None:
    """Append the copy of a vector of positions of each tap in %table."""
    for i in range(rows):
        distance = w.let(f"load i64, ptr {r.move(w, '%table', (str(i), TABLE_BYTES))}, align 8")
        at = r.move(w, source, (k, str(r.size)), (distance, str(r.size)))
        to = r.move(w, target, (k, str(r.size)), (str(i), str(_row_bytes(r))))
        r.store(w, r.load(w, at, mask), to)


def _render_copy_channels(r: Renderer) -> str:
    """Return the function that packs %length adjacent positions of channels into a panel.

    Squares are transposed. Lanes without a channel repeat the last one; rows beyond the positions
    are written, too.
    """
    w, row = r.writer(), str(r.panel * r.size)
    last = w.i64("sub", "%valid", "1")
    with w.loop("0", "%length", r.width, full_steps=False) as k:
        mask = w.prefix_mask(w.i64("sub", "%length", k), r.width)
        first, to = r.move(w, "%y", (k, str(r.size))), r.move(w, "%to", (k, row))
        for start in range(0, r.panel, r.width):
            with w.if_then(w.let(f"icmp slt i64 {start}, %valid")):
                lines = []
                for i in range(start, start + r.width):
                    channel = w.min_i64(str(i), last)
                    lines.append(r.load(w, r.move(w, first, (channel, "%stride")), mask))
                for i, line in enumerate(r.transpose(w, lines)):
                    r.store(w, line, r.move(w, to, (str(i), row), (str(start), str(r.size))))
    parameters = "i64 %length, ptr %y, i64 %stride, i64 %valid, ptr %to"
    return r.function("copy_channels", parameters, w, "internal ")


def _row_bytes(r: Renderer) -> int:
    """Return the row stride of packed taps in bytes: a block of positions and one spare vector."""
    return BLOCK * r.size + r.native


# --- kernels


class _Walk:
    """A cursor over the positions of a line: the index along each axis, and the address."""

    def __init__(self, r: Renderer, w: FunctionWriter, axes: Sequence[tuple[str, str]]) -> None:
        self.r, self.w, self.axes = r, w, axes
        self.indices = [w.slot("i64") for _ in axes]
        self.at = w.slot("ptr")

    def seek(self, base: str, position: str) -> None:
        """Append the move of the cursor to a position, counted in row-major order."""
        w, r = self.w, self.r
        for (extent, stride), index in zip(self.axes[::-1], self.indices[::-1], strict=True):
            w.store(index, w.let(f"urem i64 {position}, {extent}"))
            position = w.let(f"udiv i64 {position}, {extent}")
            base = r.move(w, base, (w.load(index), stride))
        w.store(self.at, base)

    def count_neighbours(self) -> str:
        """Append the number of positions from the cursor to the end of its row."""
        w = self.w
        return w.i64("sub", self.axes[-1][0], w.load(self.indices[-1]))

    def advance(self, count: str) -> None:
        """Append the move of the cursor by `count` positions of the same row."""
        self._step(len(self.axes) - 1, count)

    def _step(self, axis: int, count: str) -> None:
        """Append the step by `count` along an axis, with a carry to the next axis at its end."""
        w, (extent, stride) = self.w, self.axes[axis]
        index = w.i64("add", w.load(self.indices[axis]), count)
        w.store(self.indices[axis], index)
        w.store(self.at, self.r.move(w, w.load(self.at), (count, stride)))
        if axis:
            with w.if_then(w.let(f"icmp eq i64 {index}, {extent}")):
                back = w.i64("mul", w.i64("sub", "0", extent), stride)
                w.store(self.at, self.r.move(w, w.load(self.at), ("1", back)))
                w.store(self.indices[axis], "0")
                self._step(axis - 1, "1")


class _Operands:
    """The named operands of a kernel call, and the axes of their positions."""

    def __init__(
        self, r: Renderer, w: FunctionWriter, names: Sequence[str], axes_count: int
    ) -> None:
        self.r, self.w, self.names, self.axes_count = r, w, names, axes_count

    def read(self) -> None:
        """Append the loads of a call's words from %slots, each to the register of its name."""
        w = self.w
        axes = [f"{axis}_{i}" for i in range(self.axes_count) for axis in _AXES]
        words = [*[f"{x}_address" for x in self.names], *_INTS, *axes]
        w.entry.append(fields("slots", [f"i64 {n}" for n in words]))
        w.entry += [f"  %{x} = inttoptr i64 %{x}_address to ptr" for x in self.names]

    def walk(self, number: int) -> _Walk:
        """Return a new cursor along set `number` of axes."""
        axes = [(f"%extent{a}_{number}", f"%stride{a}_{number}") for a in range(POSITION_AXES)]
        return _Walk(self.r, self.w, axes)

    def find_starts(self, t: str) -> tuple[dict[str, str], str, str, str, str]:
        """Write the operands' addresses at block `t`; then its row, column, rows and columns."""
        w = self.w
        number = w.slot("i64", w.let(f"udiv i64 {t}, %per_matrix"))
        within = w.let(f"urem i64 {t}, %per_matrix")
        row = w.i64("mul", w.let(f"udiv i64 {within}, %across"), "%rows")
        column = w.i64("mul", w.let(f"urem i64 {within}, %across"), "%columns")
        in_stack = [name for name in self.names if name != "table"]
        first_word = len(self.names) + len(_INTS) + self.axes_count * len(_AXES)
        addresses = self.r.find_item(w, number, first_word, in_stack)
        rows = w.min_i64("%rows", w.i64("sub", "%m", row))
        columns = w.min_i64("%columns", w.i64("sub", "%n", column))
        return dict(zip(in_stack, addresses, strict=True)), row, column, rows, columns


class _ConvolutionWriter(KernelWriter):
    """Writes the kernel of a convolution: weights times patches, by columns of positions."""

    def __init__(self, renderer: Renderer, w: FunctionWriter, operands: _Operands) -> None:
        super().__init__(renderer, w)
        self.operands, self.walk = operands, operands.walk(0)
        panels_max = gemm.COLUMNS_BYTES_MAX // int(self.panel_row) + 1
        self.panel_starts = w.alloca("i64", panels_max)  # in the line; 0: the panel is a copy
        self.panel_steps = w.alloca("i64", panels_max)  # bytes from its first vector to the second
        self.panel_count = w.slot("i64")

    def row_copy_bytes(self) -> int:
        """Return 0: rows of weights are read in place."""
        return 0

    def find_rows(self, height: int, a: Matrix, row: str) -> Matrix:
        """Return the rows of weights."""
        return a

    def find_block(self, t: str) -> tuple[Matrix, Matrix, Matrix, str, str]:
        """Write the starts of block `t`; return weights, patches, result, rows and columns."""
        at, row, self.column, rows, columns = self.operands.find_starts(t)
        self.line, size = at["b"], str(self.size)
        a = self.part(Matrix(at["a"], "%a_row", size), row, "0")
        c = self.part(Matrix(at["c"], "%c_row", "%c_col"), row, self.column)
        if "bias" in at:
            self.bias = self.move(at["bias"], (row, "%bias_row"))
        self.result = c
        return a, Matrix("%table", TABLE_BYTES, "0"), c, rows, columns

    def write_block(self, t: str) -> None:
        """Write the sums of block `t`, and add the bias."""
        super().write_block(t)
        if "bias" in self.operands.names:
            with self.w.loop("0", self.rows) as i:
                self._add_bias(i)

    def _add_bias(self, row: str) -> None:
        """Write the addition of the bias to a row of the block."""
        w, r = self.w, self.renderer
        at = self.move(self.bias, (row, "%bias_row"))
        x = w.splat(r.real, w.let(f"load {r.real}, ptr {at}, align {r.size}"))
        start = self.move(self.result.address, (row, "%c_row"))
        with w.loop("0", self.columns, r.width, full_steps=False) as j:
            mask = w.prefix_mask(w.i64("sub", self.columns, j), r.width)
            at = self.move(start, (j, str(r.size)))
            total = w.let(f"fadd {r.type} {r.load(w, at, mask)}, {x}")
            r.store(w, total, at, mask)

    def write_products(self, a: Matrix, b: Matrix) -> None:
        """Write one block of k of a block of the result."""
        self.walk.seek(self.line, self.column)
        self.w.store(self.panel_count, "0")
        self.table = b.address
        super().write_products(a, b)

    def write_whole_tiles(
        self, height: int, rows: Matrix, panels: Matrix, whole: str, target: Matrix
    ) -> None:
        """Write the tiles of some rows over all whole panels, of which some are in the line."""
        w = self.w
        with w.loop("0", whole) as p:
            tile = target._replace(address=self.move(target.address, (p, self.panel_row)))
            begin = w.let(f"load i64, ptr {self.move(self.panel_starts, (p, '8'))}")
            is_copy, end = w.let(f"icmp eq i64 {begin}, 0"), w.new_label()
            with self.renderer.last_case(w, is_copy, end):
                self.call_tile(f"{height}_2", rows, self.part(panels, "0", p), tile, "0")
            table = w.let(f"ptrtoint ptr {self.table} to i64")
            columns = Matrix(w.let(f"inttoptr i64 {begin} to ptr"), table, "")
            step = w.let(f"load i64, ptr {self.move(self.panel_steps, (p, '8'))}")
            self.call_tile(f"{height}_2_table", rows, columns, tile, step)
            w.enter_block(end)

    def pack_columns(self, b: Matrix, column: str, valid: str, to: str) -> None:
        """Write the copy of the next positions to a panel, or the addresses of its vectors.

        A panel stays in the line if each of its vectors is of neighbours. Panels come in order.
        """
        w, panel, width = self.w, str(self.panel), self.renderer.width
        if valid != panel:
            self._clear(to)
            self._copy_runs(b, valid, to)
            return
        number, end = w.load(self.panel_count), w.new_label()
        w.store(self.panel_count, w.i64("add", number, "1"))
        slot = self.move(self.panel_starts, (number, "8"))
        near = w.let(f"icmp sge i64 {self.walk.count_neighbours()}, {panel}")
        ends = w.let(f"or i64 {self.walk.axes[-1][0]}, {w.load(self.walk.indices[-1])}")
        left = w.let(f"and i64 {ends}, {width - 1}")  # 0: no row ends in a vector
        in_line = w.let(f"or i1 {near}, {w.let(f'icmp eq i64 {left}, 0')}")
        with self.renderer.last_case(w, in_line, end):
            begin = w.let(f"ptrtoint ptr {w.load(self.walk.at)} to i64")
            w.emit(f"store i64 {begin}, ptr {slot}")
            self.walk.advance(w.select_i64(near, panel, str(width)))
            second = w.let(f"ptrtoint ptr {w.load(self.walk.at)} to i64")
            step = w.select_i64(near, str(self.renderer.native), w.i64("sub", second, begin))
            w.emit(f"store i64 {step}, ptr {self.move(self.panel_steps, (number, '8'))}")
            self.walk.advance(w.select_i64(near, "0", str(width)))
        w.emit(f"store i64 0, ptr {slot}")
        self._copy_runs(b, valid, to)
        w.enter_block(end)

    def _copy_runs(self, b: Matrix, valid: str, to: str) -> None:
        """Write the copy of the next positions to a panel, run by run in each vector."""
        w, r, width = self.w, self.renderer, self.renderer.width
        lane = w.counter("0")
        head, body, end = w.new_label(), w.new_label(), w.new_label()
        w.enter_block(head)
        start = w.load(lane)
        w.branch(w.let(f"icmp slt i64 {start}, {valid}"), body, end)
        w.begin_block(body)
        near = w.min_i64(self.walk.count_neighbours(), w.i64("sub", valid, start))
        to_vector = w.i64("sub", str(width), w.let(f"and i64 {start}, {width - 1}"))
        length = w.min_i64(near, to_vector)
        at = self.move(to, (start, str(self.size)))
        w.emit(
            f"call void @{r.letter}copy_taps(i64 {self.count}, ptr {b.address}, "
            f"ptr {w.load(self.walk.at)}, i64 {length}, ptr {at})"
        )
        self.walk.advance(length)
        w.store(lane, w.i64("add", start, length))
        w.emit(f"br label %{head}")
        w.begin_block(end)

    def _clear(self, panel: str) -> None:
        """Write zeros to a panel, of which not all columns are copied."""
        w = self.w
        with w.loop("0", self.count) as k:
            row = self.move(panel, (k, self.panel_row))
            for j in range(gemm.TILE_VECTORS):
                at = self.move(row, (str(j), str(self.renderer.native)))
                self.renderer.store(w, "zeroinitializer", at)


class _GradientWriter(KernelWriter):
    """Writes the kernel of a gradient of weights: taps times positions times channels."""

    def __init__(self, renderer: Renderer, w: FunctionWriter, operands: _Operands) -> None:
        super().__init__(renderer, w)
        self.operands = operands
        self.walk, self.other_walk = operands.walk(0), operands.walk(1)
        self.runs = w.alloca("i64", RUN_WORDS * BLOCK)
        self.run_count = w.slot("i64")

    def row_copy_bytes(self) -> int:
        """Return the bytes from one copied tap to the next: a block of positions and a vector."""
        return _row_bytes(self.renderer)

    def find_block(self, t: str) -> tuple[Matrix, Matrix, Matrix, str, str]:
        """Write the starts of block `t`; return the table, y, result, rows and columns."""
        at, row, column, rows, columns = self.operands.find_starts(t)
        self.line, self.other = at["a"], self.move(at["b"], (column, "%b_col"))
        table = self.part(Matrix("%table", TABLE_BYTES, "0"), row, "0")
        c = self.part(Matrix(at["c"], "%c_row", "%c_col"), row, column)
        return table, Matrix(self.other, "0", "%b_col"), c, rows, columns

    def write_products(self, a: Matrix, b: Matrix) -> None:
        """Write one block of k of a block of the result; find its runs of positions first."""
        w = self.w
        self.walk.seek(self.line, self.k)
        w.store(self.run_count, "0")
        origin = w.let(f"ptrtoint ptr {self.line} to i64")
        for start, length in self._each_run(self.walk):
            number = w.load(self.run_count)
            distance = w.let(f"ptrtoint ptr {w.load(self.walk.at)} to i64")
            words = (w.i64("sub", distance, origin), start, length)
            run = self.move(self.runs, (number, str(RUN_WORDS * 8)))
            for i, word in enumerate(words):
                w.emit(f"store i64 {word}, ptr {self.move(run, (str(i), '8'))}")
            w.store(self.run_count, w.i64("add", number, "1"))
        super().write_products(a, b)

    def _each_run(self, walk: _Walk) -> Iterator[tuple[str, str]]:
        """Write the loop over the runs of neighbours of a block of positions; yield each one."""
        w, slot = self.w, self.w.counter("0")
        head, body, end = w.new_label(), w.new_label(), w.new_label()
        w.enter_block(head)
        start = w.load(slot)
        w.branch(w.let(f"icmp slt i64 {start}, {self.count}"), body, end)
        w.begin_block(body)
        length = w.min_i64(walk.count_neighbours(), w.i64("sub", self.count, start))
        yield start, length
        walk.advance(length)
        w.store(slot, w.i64("add", start, length))
        w.emit(f"br label %{head}")
        w.begin_block(end)

    def pack_columns(self, b: Matrix, column: str, valid: str, to: str) -> None:
        """Write the copy of channels to a panel."""
        w, letter = self.w, self.renderer.letter
        self.other_walk.seek(self.part(b, "0", column).address, self.k)
        for start, length in self._each_run(self.other_walk):
            at = self.move(to, (start, self.panel_row))
            w.emit(
                f"call void @{letter}copy_channels(i64 {length}, "
                f"ptr {w.load(self.other_walk.at)}, i64 %b_col, i64 {valid}, ptr {at})"
            )

    def find_rows(self, height: int, a: Matrix, row: str) -> Matrix:
        """Write the copy of a tile's rows of taps; `a` is their part of the table."""
        w, r = self.w, self.renderer
        w.emit(
            f"call void @{r.letter}copy_rows_{height}(i64 {w.load(self.run_count)}, "
            f"ptr {self.runs}, ptr {a.address}, ptr {self.line}, ptr {self.packed_rows})"
        )
        return Matrix(self.packed_rows, str(_row_bytes(r)), str(self.size))


def _render_kernel(
    r: Renderer,
    names: Sequence[str],
    name: str,
    writer: type[_ConvolutionWriter] | type[_GradientWriter],
) -> str:
    """Return a kernel: the blocks %begin..%end-1 of the result, each for all of k."""
    w = r.writer()
    operands = _Operands(r, w, names, 2 if writer is _GradientWriter else 1)
    operands.read()
    writer(r, w, operands).render()
    return r.function(name, "ptr %slots, i64 %begin, i64 %end", w)
