"""Matrix products by NumPy's BLAS, which a bound launch calls without NumPy in between.

NumPy takes longer to choose a routine than a product of 32 x 32 takes. The choice is the same for
all memory of the same shapes and strides, so `choose_routine` makes it once, as NumPy's `matmul`
would. If NumPy's choice depends on addresses, or its BLAS is not OpenBLAS, NumPy is called.

OpenBLAS has threads of its own. They spin for a tenth of a second after each product, on the cores
that the pool needs, so they stay asleep: OpenBLAS is limited to one thread while a product is
computed (`enter`, `leave`), and the pool's threads share the blocks of the result. The number of
blocks depends only on the shapes and the machine, and so do the bits. A product of one block has
the bits of `numpy.matmul`.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from dovetail.extend import StridedOperand, float32, float64

from .ir_writer import fields

ROUTINES = ("sgemm", "dgemm", "sgemv", "dgemv")
OPENBLAS_PATTERN = "*openblas64*"  # those in NumPy's wheels; their integers have 64 bits
ROW_MAJOR, COLUMN_MAJOR = 101, 102  # CBLAS's
NOT_TRANSPOSED, TRANSPOSED = 111, 112
SIZE_MAX = (1 << 31) - 2  # of sizes and strides that NumPy passes to BLAS
BLOCK_MULTIPLIES_MIN = 1 << 19  # some 10 us
# A large product has at least a block for each core, and more only if they would be larger than
# BLOCK_ELEMENTS_MAX. Each block packs its rows and columns anew, so two instead of eight are 1.03
# to 1.1 times as fast on two cores; for smaller products eight are no slower. The cores are the
# machine's, not those in use: the bits depend on them.
SMALL_BLOCKS = 8
LARGE_MULTIPLIES_MIN = 1 << 23
LARGE_BLOCKS = min(SMALL_BLOCKS, 1 << ((os.cpu_count() or SMALL_BLOCKS) - 1).bit_length())
BLOCKS_MAX = 64
BLOCK_ELEMENTS_MAX = (1 << 22) // LARGE_BLOCKS
BLOCK_MULTIPLE = 16  # of rows and columns of a block
GEMV_BLOCK_ELEMENTS_MIN = 1 << 15
GEMV_PIECE_ELEMENTS_MIN = 1 << 9  # read at once across a block: 64 take 1.5 times as long

Shape = tuple[int, ...]

_LETTERS = {float32: "s", float64: "d"}


class Routine(NamedTuple):
    """A call of BLAS: the kernel that makes it, the kernel's integers, and how it is shared."""

    kernel: str
    ints: tuple[int, ...]
    blocks: int
    operations: int


def symbols() -> dict[str, int]:
    """Return the addresses of NumPy's OpenBLAS routines by kernel names; {} if there is none."""
    root = Path(np.__file__).parent
    paths = [
        *(root.parent / "numpy.libs").glob(OPENBLAS_PATTERN),
        *root.glob(f".dylibs/{OPENBLAS_PATTERN}"),
    ]
    mode = getattr(os, "RTLD_NOLOAD", None)  # NumPy's own copy, or none
    if mode is None or len(paths) != 1:
        return {}
    try:
        library = ctypes.CDLL(str(paths[0]), mode=mode | os.RTLD_LAZY)
        names = {f"cblas_{name}": f"scipy_cblas_{name}64_" for name in ROUTINES}
        for verb in ("get", "set"):
            names[f"{verb}_num_threads"] = f"scipy_openblas_{verb}_num_threads64_"
        return {name: _find_address(library, symbol) for name, symbol in names.items()}
    except (OSError, AttributeError):
        return {}


def _find_address(library: ctypes.CDLL, symbol: str) -> int:
    """Return the address of a library's function. Raises: AttributeError if there is none."""
    return int(ctypes.cast(library[symbol], ctypes.c_void_p).value or 0)


def choose_routine(inputs: Sequence[StridedOperand], output: StridedOperand) -> Routine | None:
    """Return the BLAS call that NumPy would make; None for operands where it may differ."""
    (_, _, x, xs, dtype), (_, _, y, ys, _) = inputs
    _, _, shape, outs, _ = output
    letter = _LETTERS.get(dtype)
    if letter is None or not len(x) == len(y) == len(shape) > 1:
        return None
    stack = _merge_stack_axes(shape[:-2], [xs[:-2], ys[:-2], outs[:-2]])
    (m, k), n = x[-2:], y[-1]
    if stack is None or min(m, k, n) < 1 or max(m, k, n) > SIZE_MAX or k == 1 or m == n == 1:
        return None
    size, (count, stack_strides) = dtype.itemsize, stack
    if m == 1 or n == 1:
        if len(shape) > 2:
            return None
        if m == 1:
            return _build_gemv_routine(
                f"{letter}gemv_left", y[::-1], ys[::-1], xs[1], outs[1], size
            )
        return _build_gemv_routine(f"{letter}gemv_right", x, xs, ys[0], outs[0], size)
    first, second = _find_order(x[-2:], xs[-2:]), _find_order(y[-2:], ys[-2:])
    if first is None or second is None or outs[-2:] != (n, 1):
        return None
    # may be a matrix times its own transpose, whose bits are symmetric
    square = (
        m == n
        and xs[-2:] == ys[-2:][::-1]
        and first[0] != second[0]
        and stack_strides[0] == stack_strides[1]
    )
    rows, columns, blocks_per_matrix = _choose_blocks(m, n, k, square)
    ints = (
        first[0],
        second[0],
        m,
        n,
        k,
        first[1],
        second[1],
        n,
        rows,
        columns,
        ceil_div(n, columns),
        blocks_per_matrix,
        xs[-2] * size,
        ys[-1] * size,
        n * size,
        size,
        *[s * size for s in stack_strides],
        square,
    )
    return Routine(f"{letter}gemm", ints, blocks_per_matrix * count, m * n * k * count)


def ceil_div(a: int, b: int) -> int:
    """Return a / b, rounded up."""
    return -(-a // b)


def _merge_stack_axes(shape: Shape, strides: Sequence[Shape]) -> tuple[int, list[int]] | None:
    """Return the number of matrices and the stride from one to the next, for each operand.

    None if several strides are needed.
    """
    count, stack_strides = 1, [0] * len(strides)
    for a in reversed(range(len(shape))):
        steps = [s[a] for s in strides]
        if shape[a] == 1:
            continue
        if count == 1:
            stack_strides = steps
        elif steps != [s * count for s in stack_strides]:
            return None
        count *= shape[a]
    return (count, stack_strides) if count else None


def _choose_blocks(m: int, n: int, k: int, square: bool) -> tuple[int, int, int]:
    """Return the rows and columns of a block of the result, and the number of blocks."""
    rows, columns, count = m, n, 1
    wanted = min(BLOCKS_MAX, m * n * k // BLOCK_MULTIPLIES_MIN)
    blocks_enough = LARGE_BLOCKS if m * n * k >= LARGE_MULTIPLIES_MIN else SMALL_BLOCKS
    while count < wanted and (count < blocks_enough or rows * columns >= 2 * BLOCK_ELEMENTS_MAX):
        before = rows, columns
        if rows >= columns:
            rows = ceil_div(ceil_div(rows, 2), BLOCK_MULTIPLE) * BLOCK_MULTIPLE
        else:
            columns = ceil_div(ceil_div(columns, 2), BLOCK_MULTIPLE) * BLOCK_MULTIPLE
        if square:
            columns = rows
        if before == (rows, columns):
            break
        count = ceil_div(m, rows) * ceil_div(n, columns)
    return rows, columns, count


def _build_gemv_routine(
    kernel: str, shape: Shape, strides: Shape, vector_stride: int, result_stride: int, itemsize: int
) -> Routine | None:
    """Return the product of a matrix and a strided vector, or None if BLAS refuses the strides."""
    (rows, columns), layout = shape, _find_order(shape, strides)
    if layout is None or not 1 <= vector_stride <= SIZE_MAX or not 1 <= result_stride <= SIZE_MAX:
        return None
    order = COLUMN_MAJOR if layout[0] == NOT_TRANSPOSED else ROW_MAJOR
    blocks = max(1, min(BLOCKS_MAX, rows * columns // GEMV_BLOCK_ELEMENTS_MIN))
    if layout[0] == TRANSPOSED and blocks > 1:  # read across the block: in long pieces
        blocks = min(blocks, max(2, rows // GEMV_PIECE_ELEMENTS_MIN))
    rows_per_block = ceil_div(ceil_div(rows, blocks), BLOCK_MULTIPLE) * BLOCK_MULTIPLE
    apart = strides[0] * itemsize, result_stride * itemsize
    ints = (order, columns, rows, layout[1], vector_stride, result_stride, rows_per_block, *apart)
    return Routine(kernel, ints, ceil_div(rows, rows_per_block), rows * columns)


def _find_order(shape: Shape, strides: Shape) -> tuple[int, int] | None:
    """Return BLAS's transposition flag of a matrix and its leading stride; None if unusable."""
    if _is_dense(strides[0], strides[1], shape[1]):
        return NOT_TRANSPOSED, strides[0]
    if _is_dense(strides[1], strides[0], shape[0]):
        return TRANSPOSED, strides[1]
    return None


def _is_dense(outer: int, inner: int, length: int) -> bool:
    """Return True if BLAS accepts rows of `length` elements at these strides."""
    return inner == 1 and length <= outer <= SIZE_MAX


# --- as machine code ------------------------------------------------------------------------------

_REAL = {"s": "float", "d": "double"}
# Names of the integers, from the fourth slot on. The first three slots are addresses.
_GEMM_INTS = (
    "first", "second", "m", "n", "k", "lda", "ldb", "ldc", "rows", "columns", "across", "each",
    "down", "right", "below", "beside", "apart0", "apart1", "apart2", "square",
)  # fmt: skip
_GEMM_BODY = """
  %batch = udiv i64 %t, %each
  %within = urem i64 %t, %each
  %bi = udiv i64 %within, %across
  %bj = urem i64 %within, %across
  %i = mul i64 %bi, %rows
  %j = mul i64 %bj, %columns
  %mleft = sub i64 %m, %i
  %nleft = sub i64 %n, %j
  %mm = call i64 @llvm.umin.i64(i64 %mleft, i64 %rows)
  %nn = call i64 @llvm.umin.i64(i64 %nleft, i64 %columns)
  %from0 = mul i64 %batch, %apart0
  %from1 = mul i64 %batch, %apart1
  %from2 = mul i64 %batch, %apart2
  %over0 = mul i64 %i, %down
  %over1 = mul i64 %j, %right
  %over2 = mul i64 %i, %below
  %over3 = mul i64 %j, %beside
  %at0 = add i64 %from0, %over0
  %at1 = add i64 %from1, %over1
  %at2 = add i64 %from2, %over2
  %at3 = add i64 %at2, %over3
  %x = getelementptr i8, ptr %a0, i64 %at0
  %y = getelementptr i8, ptr %a1, i64 %at1
  %z = getelementptr i8, ptr %a2, i64 %at3
  %over4 = mul i64 %j, %below
  %over5 = mul i64 %i, %beside
  %at4 = add i64 %from2, %over4
  %at5 = add i64 %at4, %over5
  %mirror = getelementptr i8, ptr %a2, i64 %at5
  %tx = trunc i64 %first to i32
  %ty = trunc i64 %second to i32
  %both = icmp eq ptr %a0, %a1
  %may = icmp ne i64 %square, 0
  %own = and i1 %both, %may
  %above = icmp ult i64 %bi, %bj
  %left = and i1 %own, %above
  br i1 %left, label %latch, label %make
make:
"""
# If a matrix is multiplied by its own transpose, blocks below the diagonal are copies of others.
_MIRROR_BODY = """
  br i1 %own, label %lines, label %latch
lines:
  %r = phi i64 [ 0, %make ], [ %r1, %line_end ]
  %lower = icmp ugt i64 %bi, %bj
  %stop = select i1 %lower, i64 %nn, i64 %r
  %from = mul i64 %r, %below
  %to = mul i64 %r, %beside
  br label %elements
elements:
  %c = phi i64 [ 0, %lines ], [ %c1, %element ]
  %some = icmp ult i64 %c, %stop
  br i1 %some, label %element, label %line_end
element:
  %cfrom = mul i64 %c, %beside
  %cto = mul i64 %c, %below
  %there = add i64 %from, %cfrom
  %here = add i64 %to, %cto
  %source = getelementptr i8, ptr %z, i64 %there
  %target = getelementptr i8, ptr %mirror, i64 %here
  %value = load REAL, ptr %source
  store REAL %value, ptr %target
  %c1 = add i64 %c, 1
  br label %elements
line_end:
  %r1 = add i64 %r, 1
  %further = icmp ult i64 %r1, %mm
  br i1 %further, label %lines, label %latch
"""
_GEMV_INTS = ("order", "m", "n", "lda", "step", "to", "rows", "down", "below")
_GEMV_BODY = """
  %i = mul i64 %t, %rows
  %nleft = sub i64 %n, %i
  %nn = call i64 @llvm.umin.i64(i64 %nleft, i64 %rows)
  %at0 = mul i64 %i, %down
  %at2 = mul i64 %i, %below
  %x = getelementptr i8, ptr MATRIX, i64 %at0
  %z = getelementptr i8, ptr %a2, i64 %at2
  %tx = trunc i64 %order to i32
"""
_GEMM = (
    f"i32 {ROW_MAJOR}, i32 %tx, i32 %ty, i64 %mm, i64 %nn, i64 %k, REAL 1.0, ptr %x, i64 %lda, "
    "ptr %y, i64 %ldb, REAL 0.0, ptr %z, i64 %ldc"
)
_GEMV = (
    f"i32 %tx, i32 {TRANSPOSED}, i64 %m, i64 %nn, REAL 1.0, ptr %x, i64 %lda, ptr VECTOR, "
    "i64 %step, REAL 0.0, ptr %z, i64 %to"
)
_END = "  br label %latch\n"
# Kernels: the routine that each calls, its integers, code before, the arguments, code after.
_KERNEL_FORMS = {
    "gemm": ("gemm", _GEMM_INTS, _GEMM_BODY, _GEMM, _MIRROR_BODY),
    "gemv_left": (
        "gemv",
        _GEMV_INTS,
        _GEMV_BODY.replace("MATRIX", "%a1"),
        _GEMV.replace("VECTOR", "%a0"),
        _END,
    ),
    "gemv_right": (
        "gemv",
        _GEMV_INTS,
        _GEMV_BODY.replace("MATRIX", "%a0"),
        _GEMV.replace("VECTOR", "%a1"),
        _END,
    ),
}
KERNELS = tuple(f"{letter}{form}" for letter in _REAL for form in _KERNEL_FORMS)

# The number of threads in products, behind a lock, and OpenBLAS's limit before the first one.
_ONE_THREAD_GUARD = """
@lock = internal global i32 0
@inside = internal global i32 0
@before = internal global i32 0
declare i32 @get_num_threads()
declare void @set_num_threads(i32)
declare i64 @llvm.umin.i64(i64, i64)

define internal void @locked() noinline {
entry:
  br label %try
try:
  %pair = cmpxchg ptr @lock, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %pair, 1
  br i1 %mine, label %done, label %try
done:
  ret void
}

define internal void @enter() noinline {
entry:
  call void @locked()
  %inside = load i32, ptr @inside
  %more = add i32 %inside, 1
  store i32 %more, ptr @inside
  %none = icmp eq i32 %inside, 0
  br i1 %none, label %first, label %done
first:
  %threads = call i32 @get_num_threads()
  store i32 %threads, ptr @before
  %one = icmp eq i32 %threads, 1
  br i1 %one, label %done, label %limit
limit:
  call void @set_num_threads(i32 1)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}

define internal void @leave() noinline {
entry:
  call void @locked()
  %inside = load i32, ptr @inside
  %less = sub i32 %inside, 1
  store i32 %less, ptr @inside
  %none = icmp eq i32 %less, 0
  br i1 %none, label %last, label %done
last:
  %before = load i32, ptr @before
  %one = icmp eq i32 %before, 1
  br i1 %one, label %done, label %restore
restore:
  call void @set_num_threads(i32 %before)
  br label %done
done:
  store atomic i32 0, ptr @lock release, align 4
  ret void
}
"""


def ir(triple: str) -> str:
    """Return the LLVM IR text of all kernels that call BLAS."""
    parts, declared = [f'target triple = "{triple}"', _ONE_THREAD_GUARD], {}
    for letter, real in _REAL.items():
        for form, (name, ints, before, arguments, after) in _KERNEL_FORMS.items():
            typed = arguments.replace("REAL", real)
            types = ", ".join(a.split()[0] for a in typed.split(", "))
            called = f"cblas_{letter}{name}"
            declared[called] = f"declare void @{called}({types})"
            call = f"{before}  call void @{called}({typed})\n{after.replace('REAL', real)}"
            parts.append(_render_kernel(f"{letter}{form}", ints, call))
    return "\n".join([*parts, *declared.values()])


def _render_kernel(name: str, ints: Sequence[str], block: str) -> str:
    """Return the IR text of a function that computes the blocks begin..end-1."""
    names = [*[f"i64 w{i}" for i in range(3)], *[f"i64 {n}" for n in ints]]
    addresses = "\n".join(f"  %a{i} = inttoptr i64 %w{i} to ptr" for i in range(3))
    return f"""
define void @{name}(ptr %slots, i64 %begin, i64 %end) {{
entry:
{fields("slots", names)}
{addresses}
  call void @enter()
  br label %loop
loop:
  %t = phi i64 [ %begin, %entry ], [ %next, %latch ]
  %more = icmp slt i64 %t, %end
  br i1 %more, label %body, label %done
body:{block}latch:
  %next = add i64 %t, 1
  br label %loop
done:
  call void @leave()
  ret void
}}"""
