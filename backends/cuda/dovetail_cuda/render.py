"""The renderer of kernels as CUDA C: one thread per point, or LANES threads for reductions.

No header is needed: the compiler has all functions that are used here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dovetail.extend import (
    LANES,
    Block,
    CStyle,
    DType,
    Loop,
    Tile,
    bool_,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)

THREADS = 256  # of a block

WIDTHS = (16, 8, 4, 2, 1)  # of the tree that combines lanes

_RESERVED_WORDS = (
    "atomicAdd atomicAnd atomicCAS atomicMax atomicMin atomicOr blockDim blockIdx gridDim "
    "first other outer part present rest seen threadIdx warpSize word words"
)


class CudaStyle(CStyle):
    """CUDA C for NVRTC, to be compiled without contraction."""

    types: ClassVar[Mapping[DType, str]] = {
        bool_: "bool",
        int8: "signed char",
        int16: "short",
        int32: "int",
        int64: "long long",
        uint8: "unsigned char",
        uint16: "unsigned short",
        uint32: "unsigned int",
        uint64: "unsigned long long",
        float32: "float",
        float64: "double",
    }
    functions: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fma": ("__fmaf_rn", "__fma_rn"),
        "sqrt": ("__fsqrt_rn", "__dsqrt_rn"),
        "trunc": ("truncf", "trunc"),
        "floor": ("floorf", "floor"),
        "rint": ("rintf", "rint"),
    }
    reserved: ClassVar[frozenset[str]] = CStyle.reserved | frozenset(_RESERVED_WORDS.split())
    helper: ClassVar[str] = "static __device__ __forceinline__ "
    threads: ClassVar[int] = THREADS  # of a block, at most
    local_barrier: ClassVar[Sequence[str]] = ("__syncthreads();",)
    tile_unrolled: ClassVar[str] = "#pragma unroll"
    tile_steps: ClassVar[str] = "#pragma unroll 4"

    def preamble(self, body: str) -> list[str]:
        """Return no lines: NVRTC needs no header."""
        return []

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        """Return the head of a __global__ function with launch bounds and C linkage."""
        return _render_head(name, parameters, self.threads)

    def tile_function(self, name: str, parameters: Sequence[str], tile: Tile) -> str:
        """Return the head of a __global__ function for blocks of a thread per item of a tile."""
        return _render_head(name, parameters, math.prod(tile.items))

    def tile_points(self, extents: Sequence[str], tile: Tile) -> list[str]:
        """Return loops over tiles: each block takes every n-th one along each axis."""
        *outer, m, n = [(f"i{d}", extent) for d, extent in enumerate(extents)]
        sides = (("tile_row", "y", tile.rows, m[1]), ("tile_column", "x", tile.columns, n[1]))
        return [
            *(self.along_z(outer) if outer else ()),
            "const int item_row = threadIdx.y, item_column = threadIdx.x;",
            *(
                _render_loop(
                    first, f"blockIdx.{axis} * {size}LL", f"gridDim.{axis} * {size}LL", extent
                )
                for first, axis, size, extent in sides
            ),
        ]

    def local(self, type: str, array: str) -> str:
        """Return the declaration of an array in shared memory, aligned to 16 bytes."""
        return f"__shared__ __align__(16) {type} {array};"

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return loops over the grid; each thread (or group of them) takes every n-th point.

        The last axis is dimension x of the launch, the one before it y, and all others are z.
        """
        if not extents:
            return self.along_x("point", "1")
        *outer, x = [(f"i{d}", n) for d, n in enumerate(extents)]
        lines = [] if len(outer) < 2 else self.along_z(outer[:-1])
        lines += self.along_y(*outer[-1]) if outer else []
        return lines + self.along_x(*x)

    def along_z(self, axes: Sequence[tuple[str, str]]) -> list[str]:
        """Return the C loop along all axes but the last two, over blocks in z, and the indices."""
        lines = [_render_loop("outer", "blockIdx.z", "gridDim.z", " * ".join(n for _, n in axes))]
        index_left = "outer"
        for index, n in reversed(axes):
            lines.append(f"const long long {index} = {index_left} % {n};")
            index_left += f" / {n}"
        return lines

    def along_x(self, index: str, size: str) -> list[str]:
        """Return the C loop along the last axis, over threads in x."""
        return [_render_loop(index, *_render_thread_range("x", "x"), size)]

    def along_y(self, index: str, size: str) -> list[str]:
        """Return the C loop along the second last axis, over threads in y."""
        return [_render_loop(index, *_render_thread_range("y", "y"), size)]

    def bitcast(self, x: str, source: DType, target: DType) -> str:
        """Return the bits of `x` read as `target`, by CUDA's intrinsics for floats."""
        if "f" not in (source.kind, target.kind):
            return super().bitcast(x, source, target)
        if target is float32:
            return f"__uint_as_float({x})"
        if target is float64:
            return f"__longlong_as_double({x})"
        plain = "__float_as_uint" if source is float32 else "__double_as_longlong"
        return f"({self.type(target)}){plain}({x})"

    def atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """Return an atomic call for 32 or 64 bits; narrower types use a loop on a word."""
        if dtype.bits < 32:
            return self.narrow_atomic(op, dtype, place, value)
        wraps = op not in ("min", "max")  # the same bits for both signs: there is one of them
        t = self.type((uint32 if dtype.bits == 32 else uint64) if wraps else dtype)
        return [f"atomic{op.capitalize()}(({t} *)({place}), ({t}){value});"]

    def narrow_atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """Return an atomic on a part of a 32-bit word, by compare-and-exchange."""
        t, part = self.type(dtype), self.type(uint8 if dtype.bits == 8 else uint16)
        new = f"{value} {_SIGN[op]} old"
        if op in ("min", "max"):
            new += f" ? {value} : old"
        return [
            f"unsigned int *word = (unsigned int *)((unsigned long long){place} & ~3ULL);",
            f"const int at = 8 * (int)((unsigned long long){place} & 3);",
            "unsigned int seen = *word, before;",
            "do {",
            "  before = seen;",
            f"  const {t} old = ({t})(before >> at);",
            f"  const {part} part = ({part})({new});",
            f"  const unsigned int rest = before & ~((unsigned int)({part})~0 << at);",
            "  seen = atomicCAS(word, before, rest | (unsigned int)part << at);",
            "} while (seen != before);",
        ]


_SIGN = {"add": "+", "and": "&", "or": "|", "min": "<", "max": ">"}


def _render_head(name: str, parameters: Sequence[str], threads: int) -> str:
    """Return the head of a __global__ function for blocks of at most so many threads."""
    bounds = f"__launch_bounds__({threads})"
    return f'extern "C" __global__ void {bounds} {name}({", ".join(parameters)})'


def _render_loop(index: str, begin: str, step: str, size: str) -> str:
    """Return the head of a C loop from `begin` to `size` in strides of `step`."""
    return f"for (long long {index} = {begin}; {index} < {size}; {index} += {step}) {{"


def _render_thread_range(block_axis: str, thread_axis: str) -> tuple[str, str]:
    """Return C text of a thread's first point and of its stride, along these axes ("x", "y")."""
    width = f"(long long)blockDim.{thread_axis}"
    return (
        f"blockIdx.{block_axis} * {width} + threadIdx.{thread_axis}",
        f"gridDim.{block_axis} * {width}",
    )


class WarpStyle(CudaStyle):
    """A warp per point: for reductions along rows, whose neighbours its lanes read at once."""

    lane: ClassVar[str] = "(int)threadIdx.x"

    def along_x(self, index: str, size: str) -> list[str]:
        """Return the loop along the last axis; each row of threads (a warp) takes one point."""
        return [_render_loop(index, *_render_thread_range("x", "y"), size)]

    def along_y(self, index: str, size: str) -> list[str]:
        """Return the loop along the second last axis, over blocks in y."""
        return [_render_loop(index, "blockIdx.y", "gridDim.y", size)]

    def shared(self, type: str, name: str) -> list[str]:
        """Return no declarations: shuffles need no shared memory."""
        return []

    def tree(self, type: str, name: str, function: str, shared: str) -> list[str]:
        """Return lines that combine the lanes of a warp by shuffles, for all lanes."""
        lines, words = [], f"(sizeof({type}) + 3) / 4"
        for width in (*WIDTHS, 0):  # the last round broadcasts the value of lane 0
            moved = f"__shfl_down_sync(~0u, other.words[w], {width})"
            if not width:
                moved = "__shfl_sync(~0u, other.words[w], 0)"
            result = f"{function}({name}, other.value)" if width else "other.value"
            lines += [
                f"{{ union {{ {type} value; unsigned int words[{words}]; }} other;",
                f"  other.words[{words} - 1] = 0, other.value = {name};",
                "  #pragma unroll",
                f"  for (int w = 0; w < {words}; ++w) other.words[w] = {moved};",
                f"  {name} = {result}; }}",
            ]
        return lines

    def unroll(self, body: Block) -> list[str]:
        """Return an unroll pragma, so that several loads are in flight, if the text is short."""
        loops = any(isinstance(s, Loop) for s in body)
        count = max(len(body), 4)
        return [] if loops or count > 32 else [f"#pragma unroll {64 // count}"]

    def barrier(self) -> list[str]:
        """Return a barrier of the warp."""
        return ["__syncwarp();"]


class ColumnStyle(CudaStyle):
    """LANES warps for as many neighbouring points: for reductions along columns.

    Lane j of each point is in warp j, whose threads read neighbours. All threads of a block reach
    every barrier, so those beyond the grid's end compute the last point again.
    """

    threads: ClassVar[int] = LANES * LANES
    lane: ClassVar[str] = "(int)threadIdx.y"
    present: ClassVar[str] = "present"
    along_y = WarpStyle.along_y
    unroll = WarpStyle.unroll

    def along_x(self, index: str, size: str) -> list[str]:
        """Return the loop along the last axis; threads beyond its end repeat the last point."""
        point, width = "first + threadIdx.x", f"(long long){LANES}"
        return [
            _render_loop("first", f"blockIdx.x * {width}", f"gridDim.x * {width}", size),
            f"const bool present = {point} < {size};",
            f"const long long {index} = present ? {point} : {size} - 1;",
        ]

    def shared(self, type: str, name: str) -> list[str]:
        """Return the declaration of a shared array with an element per lane and column."""
        return [f"__shared__ {type} {name}[{LANES}][{LANES}];"]

    def tree(self, type: str, name: str, function: str, shared: str) -> list[str]:
        """Return lines that combine each column's lanes in shared memory, for all lanes."""
        mine = f"{shared}[threadIdx.y][threadIdx.x]"
        lines = [f"{mine} = {name};", "__syncthreads();"]
        for width in WIDTHS:
            pair = f"{mine}, {shared}[threadIdx.y + {width}][threadIdx.x]"
            lines += [
                f"if (threadIdx.y < {width}) {mine} = {function}({pair});",
                "__syncthreads();",
            ]
        return [*lines, f"{name} = {shared}[0][threadIdx.x];", "__syncthreads();"]

    def barrier(self) -> list[str]:
        """Return a barrier of the block."""
        return ["__syncthreads();"]


LaunchShape = tuple[
    int, int, int, int, int, int
]  # blocks in x, y and z; threads of each in x, y and z
_BLOCKS_YZ_MAX = 65535  # blocks in y and in z; in x there are 2**31 - 1


def tile_launch_shape(tile: Tile, grid: Sequence[int]) -> LaunchShape:
    """Return the blocks and threads of a grid whose blocks compute a tile each, or several."""
    *outer, rows, columns = tile.groups(grid)
    z, (threads_y, threads_x) = math.prod(outer), tile.items
    blocks = _count_blocks(columns, 1), min(rows, _BLOCKS_YZ_MAX), min(z, _BLOCKS_YZ_MAX)
    return (*blocks, threads_x, threads_y, 1)


def grid_launch_shape(style: CStyle, grid: Sequence[int], square: bool = False) -> LaunchShape:
    """Return the blocks and threads of a style for a grid; threads loop over points beyond them.

    `square`: prefer nearly square blocks; styles with fixed blocks ignore it.
    """
    sizes = [*reversed(grid), 1, 1, 1]
    x, y, z = *sizes[:2], math.prod(sizes[2:])
    if isinstance(style, ColumnStyle):
        return (
            _count_blocks(x, LANES),
            min(y, _BLOCKS_YZ_MAX),
            min(z, _BLOCKS_YZ_MAX),
            LANES,
            LANES,
            1,
        )
    if isinstance(style, WarpStyle):
        rows = THREADS // LANES
        return (
            _count_blocks(x, rows),
            min(y, _BLOCKS_YZ_MAX),
            min(z, _BLOCKS_YZ_MAX),
            LANES,
            rows,
            1,
        )
    wide = min(LANES if square else THREADS, _next_power_of_two(x))
    block_height = min(THREADS // wide, _next_power_of_two(y))
    return (
        _count_blocks(x, wide),
        min(_count_blocks(y, block_height), _BLOCKS_YZ_MAX),
        min(z, _BLOCKS_YZ_MAX),
        wide,
        block_height,
        1,
    )


def _next_power_of_two(n: int) -> int:
    """Return the least power of two that is not below `n`."""
    return 1 << (n - 1).bit_length()


def _count_blocks(size: int, threads: int) -> int:
    """Return the number of blocks that cover `size` points, at most the driver's limit."""
    return min(-(-size // threads), (1 << 31) - 1)
