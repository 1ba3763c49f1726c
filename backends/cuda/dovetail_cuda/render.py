"""kernel -> CUDA C: one thread per point of the grid, or a warp of LANES threads per point.

No header is needed: the compiler knows all that is used here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dovetail.extend import (
    LANES,
    CStyle,
    DType,
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
DIMENSIONS = 3  # of a launch; further axes are folded into the last dimension

_WORDS = (
    "atomicAdd atomicAnd atomicCAS atomicMax atomicMin atomicOr blockDim blockIdx gridDim "
    "other part rest seen threadIdx warpSize word words"
)


class CudaStyle(CStyle):
    """CUDA C for NVRTC, to be compiled without contraction."""

    types: ClassVar[Mapping[DType, str]] = {
        bool_: "bool", int8: "signed char", int16: "short", int32: "int", int64: "long long",
        uint8: "unsigned char", uint16: "unsigned short", uint32: "unsigned int",
        uint64: "unsigned long long", float32: "float", float64: "double",
    }  # fmt: skip
    functions: ClassVar[Mapping[str, tuple[str, str]]] = {
        "fma": ("__fmaf_rn", "__fma_rn"), "sqrt": ("__fsqrt_rn", "__dsqrt_rn"),
        "trunc": ("truncf", "trunc"), "floor": ("floorf", "floor"), "rint": ("rintf", "rint"),
    }  # fmt: skip
    reserved: ClassVar[frozenset[str]] = CStyle.reserved | frozenset(_WORDS.split())
    helper: ClassVar[str] = "static __device__ __forceinline__ "
    lane: ClassVar[str] = "lane"

    def preamble(self, body: str) -> list[str]:
        return []

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        bounds = f"__launch_bounds__({THREADS})"
        return f'extern "C" __global__ void {bounds} {name}({", ".join(parameters)})'

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Loops over the grid, in which each thread (each warp) does every so many-th point."""
        lines = ["const int lane = threadIdx.x;"] if lanes else []
        count = len(extents)
        for place in reversed(range(min(count, DIMENSIONS))):
            axis = "xyz"[place]
            inside = [count - 1 - place] if place < DIMENSIONS - 1 else [*range(count - place)]
            var = f"i{inside[-1]}" if len(inside) == 1 else "outer"
            size = " * ".join(extents[d] for d in inside)
            # Of a warp's block the x are lanes, and the y are points along the last axis.
            thread, step = ("y" if lanes else "x") if place == 0 else "", "blockDim."
            begin, by = f"blockIdx.{axis}", f"gridDim.{axis}"
            if place == 0:
                begin = f"(long long){begin} * {step}{thread} + threadIdx.{thread}"
                by = f"(long long){by} * {step}{thread}"
            elif place == 1 and not lanes:
                begin = f"(long long){begin} * {step}y + threadIdx.y"
                by = f"(long long){by} * {step}y"
            lines.append(f"for (long long {var} = {begin}; {var} < {size}; {var} += {by}) {{")
            if len(inside) > 1:
                lines += self.unfolded(inside, extents)
        return lines

    def unfolded(self, axes: Sequence[int], extents: Sequence[str]) -> list[str]:
        """The indices of axes that share a dimension."""
        lines, rest = [], "outer"
        for d in reversed(axes):
            lines.append(f"const long long i{d} = {rest}" + (f" % {extents[d]};" if d else ";"))
            rest += f" / {extents[d]}"
        return lines

    def shared(self, type: str, name: str) -> list[str]:
        return []

    def tree(self, type: str, name: str, function: str, shared: str) -> list[str]:
        lines, words = [], f"(sizeof({type}) + 3) / 4"
        for width in (16, 8, 4, 2, 1, 0):  # at last, all get what lane 0 has
            moved = f"__shfl_down_sync(~0u, other.words[w], {width})"
            if not width:
                moved = "__shfl_sync(~0u, other.words[w], 0)"
            lines += [
                f"{{ union {{ {type} value; unsigned int words[{words}]; }} other;",
                f"  other.words[{words} - 1] = 0, other.value = {name};",
                "  #pragma unroll",
                f"  for (int w = 0; w < {words}; ++w) other.words[w] = {moved};",
                f"  {name} = "
                + (f"{function}({name}, other.value); }}" if width else "other.value; }"),
            ]
        return lines

    def barrier(self) -> list[str]:
        return ["__syncwarp();"]

    def bitcast(self, x: str, source: DType, target: DType) -> str:
        if "f" not in (source.kind, target.kind):
            return super().bitcast(x, source, target)
        if target is float32:
            return f"__uint_as_float({x})"
        if target is float64:
            return f"__longlong_as_double({x})"
        plain = "__float_as_uint" if source is float32 else "__double_as_longlong"
        return f"({self.type(target)}){plain}({x})"

    def atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        if dtype.bits < 32:
            return self.narrow_atomic(op, dtype, place, value)
        wraps = op not in ("min", "max")  # the same bits for both signs: there is one of them
        t = self.type((uint32 if dtype.bits == 32 else uint64) if wraps else dtype)
        return [f"atomic{op.capitalize()}(({t} *)({place}), ({t}){value});"]

    def narrow_atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """On a part of a 32-bit word, by comparing and exchanging the word."""
        t, part = self.type(dtype), self.type(uint8 if dtype.bits == 8 else uint16)
        new = f"old {_SIGN[op]} {value}"
        if op in ("min", "max"):
            new = f"{value} {'<' if op == 'min' else '>'} old ? {value} : old"
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


_SIGN = {"add": "+", "and": "&", "or": "|"}


def blocks(grid: Sequence[int], lanes: bool) -> tuple[int, int, int, int, int, int]:
    """The launch of a grid: blocks in x, y, z, then the threads of a block in x, y, z."""
    sizes = [*reversed(grid), 1, 1, 1]
    if len(grid) > DIMENSIONS:
        for extra in sizes[DIMENSIONS : len(grid)]:
            sizes[DIMENSIONS - 1] *= extra
    if lanes:
        wide = (LANES, THREADS // LANES)
        return _blocks(sizes[0], wide[1]), min(sizes[1], _MOST), min(sizes[2], _MOST), *wide, 1
    x = min(THREADS, max(LANES // 4, 1 << (sizes[0] - 1).bit_length()))
    y = min(THREADS // x, 1 << (sizes[1] - 1).bit_length())
    return _blocks(sizes[0], x), min(_blocks(sizes[1], y), _MOST), min(sizes[2], _MOST), x, y, 1


_MOST = 65535  # blocks in y and in z; in x there are 2**31 - 1


def _blocks(size: int, threads: int) -> int:
    return min(-(-size // threads), (1 << 31) - 1)
