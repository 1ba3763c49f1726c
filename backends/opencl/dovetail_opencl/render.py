"""The renderer of kernels as OpenCL C: one work item per point, or a group of LANES per point.

A buffer is passed as its cl_mem and a byte offset: `x_` and `x_at` make the pointer `x`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

from dovetail.extend import (
    LANES,
    Buffer,
    CStyle,
    DType,
    Tile,
    bool_,
    float16,
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

_LOCAL_BARRIER = ["barrier(CLK_LOCAL_MEM_FENCE);"]
NDRANGE_DIMENSIONS_MAX = 3  # of an NDRange; further axes are folded into the last dimension

_RESERVED_WORDS = (
    "before constant event_t generic global half kernel local max min new part pipe ptrdiff_t "
    "read_only read_write rest sampler_t seen size_t uniform vec_step word write_only"
)


NO_CONTRACTION = "#pragma OPENCL FP_CONTRACT OFF"
CONTRACTION = "#pragma clang fp contract(fast)"  # across statements; OpenCL's own is within one


class OpenCLStyle(CStyle):
    """OpenCL C 1.2, with the extensions for float64, float16 and 64-bit atomics where needed."""

    types: ClassVar[Mapping[DType, str]] = {
        bool_: "bool",
        int8: "char",
        int16: "short",
        int32: "int",
        int64: "long",
        uint8: "uchar",
        uint16: "ushort",
        uint32: "uint",
        uint64: "ulong",
        float16: "half",
        float32: "float",
        float64: "double",
    }
    suffixes: ClassVar[Mapping[DType, str]] = {int64: "L", uint64: "UL", uint32: "u"}
    functions: ClassVar[Mapping[str, tuple[str, str]]] = {
        name: (name, name) for name in ("fma", "sqrt", "trunc", "floor", "rint")
    }
    reserved: ClassVar[frozenset[str]] = CStyle.reserved | frozenset(
        (*_RESERVED_WORDS.split(), *types.values(), *functions)
    )
    helper: ClassVar[str] = "static inline "
    space: ClassVar[str] = "__global "
    # Without it Intel's compiler for CPUs vectorises such sums, in another order.
    in_order: ClassVar[str] = "#pragma clang loop vectorize(disable)"
    lane: ClassVar[str] = "lane"
    local_barrier: ClassVar[Sequence[str]] = _LOCAL_BARRIER
    tile_unrolled: ClassVar[str] = "#pragma unroll"
    tile_steps: ClassVar[str] = in_order

    def preamble(self, body: str) -> list[str]:
        """Return pragmas: no contraction, and the extensions whose words the text contains."""
        lines = [NO_CONTRACTION]
        for word, extension in _EXTENSIONS.items():
            if word in body:
                lines.append(f"#pragma OPENCL EXTENSION {extension} : enable")
        return lines

    def function(self, name: str, parameters: Sequence[str], lanes: bool) -> str:
        """Return the head of a __kernel, with a required group size of LANES if `lanes`."""
        size = f" __attribute__((reqd_work_group_size({LANES}, 1, 1)))" if lanes else ""
        return f"__kernel{size} void {name}({', '.join(parameters)})"

    def parameter(self, buffer: Buffer, name: str) -> list[str]:
        """Return two parameters for a buffer: its cl_mem and its byte offset."""
        return [f"{self.pointer(buffer)}{name}_", f"long {name}_at"]

    def prologue(self, buffer: Buffer, name: str) -> list[str]:
        """Return the statement that adds a buffer's byte offset to its pointer."""
        pointer = self.pointer(buffer)
        bytes_ = pointer.replace(self.memory_type(buffer.dtype), "char")
        return [f"{pointer}{name} = ({pointer})(({bytes_}){name}_ + {name}_at);"]

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return lines that set the indices from the NDRange; items beyond the grid return."""
        lines = ["const long lane = get_local_id(0);"] if lanes else []
        count = len(extents)
        lines += _index_lines(extents, "get_group_id" if lanes else "get_global_id")
        outside = [f"i{a} >= {extents[a]}" for a in _list_overhanging_axes(count)]
        if outside and not lanes:
            lines.append(f"if ({' || '.join(outside)}) return;")
        return lines

    def tile_function(self, name: str, parameters: Sequence[str], tile: Tile) -> str:
        """Return the head of a __kernel with the group size of a tile."""
        rows, columns = tile.items
        size = f"__attribute__((reqd_work_group_size({columns}, {rows}, 1)))"
        return f"__kernel {size} void {name}({', '.join(parameters)})"

    def tile_points(self, extents: Sequence[str], tile: Tile) -> list[str]:
        """Return lines that set the tile's place from the group, and that of the item in it."""
        return [
            *_index_lines(extents, "get_group_id")[2:],
            f"const long tile_row = (long)get_group_id(1) * {tile.rows};",
            f"const long tile_column = (long)get_group_id(0) * {tile.columns};",
            "const int item_row = get_local_id(1), item_column = get_local_id(0);",
        ]

    def local(self, type: str, array: str) -> str:
        """Return the declaration of a __local array."""
        return f"__local {type} {array} __attribute__((aligned(16)));"

    def shared(self, type: str, name: str) -> list[str]:
        """Return the declaration of a __local array with an element per lane."""
        return [f"__local {type} {name}[{LANES}];"]

    def tree(self, type: str, name: str, function: str, shared: str) -> list[str]:
        """Return lines that combine `name` of all lanes in local memory, for all lanes."""
        lines = [f"{shared}[lane] = {name};", *_LOCAL_BARRIER]
        width = LANES // 2
        while width:
            pair = f"{shared}[lane], {shared}[lane + {width}]"
            lines += [f"if (lane < {width}) {shared}[lane] = {function}({pair});", *_LOCAL_BARRIER]
            width //= 2
        return [*lines, f"{name} = {shared}[0];", *_LOCAL_BARRIER]

    def barrier(self) -> list[str]:
        """Return a barrier for global memory."""
        return ["barrier(CLK_GLOBAL_MEM_FENCE);"]

    def bitcast(self, x: str, source: DType, target: DType) -> str:
        """Return the bits of `x` read as `target`, by OpenCL's as_type for floats."""
        if "f" not in (source.kind, target.kind):
            return super().bitcast(x, source, target)
        return f"as_{self.type(target)}({x})"

    def atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """Return an atomic call for 32 or 64 bits; narrower types use a loop on a word."""
        if dtype.bits == 32:
            return [f"atomic_{op}({place}, {value});"]
        if dtype.bits == 64:
            return [f"atom_{op}({place}, {value});"]
        return self.narrow_atomic(op, dtype, place, value)

    def narrow_atomic(self, op: str, dtype: DType, place: str, value: str) -> list[str]:
        """Return an atomic on a part of a 32-bit word, by compare-and-exchange."""
        t, part = self.type(dtype), self.type(uint8 if dtype.bits == 8 else uint16)
        new = f"{op}(old, ({t}){value})" if op in ("min", "max") else f"old {_SIGN[op]} {value}"
        return [
            "__global volatile uint *word = "
            f"(__global volatile uint *)((size_t){place} & ~(size_t)3);",
            f"const uint at = 8 * (uint)((size_t){place} & 3);",
            "uint seen = *word, before;",
            "do {",
            "  before = seen;",
            f"  const {t} old = ({t})(before >> at);",
            f"  const {part} new = ({part})({new});",
            f"  const uint rest = before & ~((uint)({part})~0 << at);",
            "  seen = atomic_cmpxchg(word, before, rest | (uint)new << at);",
            "} while (seen != before);",
        ]


class TiledStyle(OpenCLStyle):
    """A style for reductions along columns.

    Work items of a group keep in step, so that they read the same rows at the same time. The last
    group begins early, and computes some points twice.
    """

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return lines that set the indices, where a group covers neighbouring columns."""
        return _tile_points(extents, super().points(extents, True))

    def rows(self) -> list[str]:
        """Return a local barrier, so that a group reads the same rows at the same time."""
        return _LOCAL_BARRIER


class UnrolledStyle(OpenCLStyle):
    """The tiled style for compilers that make vectors of work items: lanes are registers."""

    unrolled: ClassVar[str] = "#pragma unroll"
    reserved: ClassVar[frozenset[str]] = OpenCLStyle.reserved | {"ups"}

    def points(self, extents: Sequence[str], lanes: bool) -> list[str]:
        """Return lines that set the indices, where a group covers neighbouring columns."""
        return _tile_points(extents, super().points(extents, True))

    def rows(self) -> list[str]:
        """Return a local barrier, so that a group reads the same rows at the same time."""
        return _LOCAL_BARRIER


def _index_lines(extents: Sequence[str], number: str) -> list[str]:
    """Return lines that set the indices, last axis first, from the NDRange's function `number`."""
    lines, count = [], len(extents)
    for axis in reversed(range(count)):
        dimension = min(count - 1 - axis, NDRANGE_DIMENSIONS_MAX - 1)
        inside = [f"({extents[a]})" for a in range(axis + 1, count - NDRANGE_DIMENSIONS_MAX + 1)]
        below, first = "".join(f" / {n}" for n in inside), axis == 0
        above = "" if first or dimension < NDRANGE_DIMENSIONS_MAX - 1 else f" % {extents[axis]}"
        lines.append(f"const long i{axis} = (long){number}({dimension}){below}{above};")
    return lines


def _tile_points(extents: Sequence[str], lines: Sequence[str]) -> list[str]:
    """Return the index lines of a group per point, changed so that a group covers neighbours."""
    size = "(long)get_local_size(0)"
    first = f"min((long)get_group_id(0) * {size}, {extents[-1]} - {size})"
    own = f"const long i{len(extents) - 1} = {first} + (long)get_local_id(0);"
    return [own, *(line.replace("group_id", "global_id") for line in lines[2:])]


_SIGN = {"add": "+", "and": "&", "or": "|"}
_EXTENSIONS = {
    "double": "cl_khr_fp64",
    "half": "cl_khr_fp16",
    "atom_add": "cl_khr_int64_base_atomics",
    "atom_": "cl_khr_int64_extended_atomics",
}


def _list_overhanging_axes(axes: int) -> list[int]:
    """Return the axis along which the NDRange may exceed the grid: that of dimension 0."""
    return [axes - 1] if axes else []


def ndrange_sizes(grid: Sequence[int]) -> tuple[int, ...]:
    """Return the grid as an NDRange.

    The last axis is dimension 0; all axes from the third on are folded into dimension 2.
    """
    sizes = list(reversed(grid))
    if len(sizes) > NDRANGE_DIMENSIONS_MAX:
        sizes[NDRANGE_DIMENSIONS_MAX - 1 :] = [math.prod(sizes[NDRANGE_DIMENSIONS_MAX - 1 :])]
    return tuple(sizes) or (1,)
