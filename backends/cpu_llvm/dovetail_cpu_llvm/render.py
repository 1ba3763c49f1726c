"""A kernel as LLVM IR text, with explicit vectors; LLVM's own vectoriser is not used.

A value is rendered in one of three forms (see `Lane`): uniform, affine or a vector. Addresses need
no vectors because indices are affine: a load at stride 1 is a vector load, at stride 0 a scalar
one, at a small stride a few loads and shuffles, at any other a gather.

What lanes are depends on the `Schedule`:
- "lanes": the points of the innermost grid axis; loops inside run in lockstep for all lanes;
- "rows": the iterations of each innermost map or reduce loop, point by point;
- "points": there is one lane, and one point at a time.

From the bottom up: `ir_writer` (text), `memory_ops`, `expressions` and `stores` (statements),
`vector_loops`, `accumulators` and `reduction`, `compress_store`, `control_flow` (blocks, loops,
branches), and `tiles` (the grid).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count

from dovetail.extend import Kernel, Store, bool_

from .control_flow import ControlFlow
from .expressions import Expressions
from .ir_writer import FunctionWriter, Lane, memory_type
from .memory_ops import MemoryOps
from .schedule import CpuSchedule
from .tiles import Tiles

# A product and a sum may be fused, quotients may be products with a reciprocal. Not reassoc, nnan,
# ninf and nsz: the algorithms of elementary functions need an order, and special values.
FAST_FLAGS = "contract arcp afn"
_FLOAT_ARITHMETIC = re.compile(r"(= (?:fadd|fsub|fmul|fdiv|frem)) ")


def render(kernel: Kernel, schedule: CpuSchedule) -> str:
    """Return the IR of `void @kernel(ptr args, i64 begin, i64 end)`, with args as in `launch`."""
    w, slots = FunctionWriter(), count()
    addresses = {b.name: _load_argument(w, next(slots), "ptr") for b in kernel.buffers}
    params = {name: Lane(_load_argument(w, next(slots), "i64")) for name in kernel.ints}
    for name, dtype in kernel.scalars:
        text = _load_argument(w, next(slots), memory_type(dtype))
        if dtype is bool_:
            w.entry.append(f"  {text}b = trunc i8 {text} to i1")
        params[name] = Lane(text + "b" * (dtype is bool_))
    sizes = [_load_argument(w, next(slots), "i64") for _ in kernel.grid * 2]
    extents, blocks = sizes[: len(kernel.grid)], sizes[len(kernel.grid) :]
    points = "1"
    for n in extents:
        points = w.i64("mul", points, n)
    streams = _is_streaming_worth_it(w, kernel, schedule.stream_bytes_min, addresses, points)
    memory = MemoryOps(w, addresses, schedule.native, points, streams)
    memory.may_prefetch = not kernel.fast_math
    flow = ControlFlow(kernel, Expressions(kernel, schedule, memory, params))
    Tiles(kernel, flow, extents, blocks).render()
    if streams:
        w.emit("fence seq_cst")  # makes non-temporal stores visible to other threads
    entry, tiles = "\n".join(w.entry), "\n".join(w.lines)
    if kernel.fast_math:
        tiles = _FLOAT_ARITHMETIC.sub(rf"\1 {FAST_FLAGS} ", tiles)
    # aligned spills of vector registers: others cross cache lines, in half of the processes
    attributes = f'alignstack={schedule.native} "prefer-vector-width"="{schedule.native * 8}"'
    return f"""define void @kernel(ptr %args, i64 %begin, i64 %end) #0 {{
entry:
{entry}
  br label %tiles
tiles:
{tiles}
  ret void
}}
attributes #0 = {{ nounwind {attributes} }}"""


def _load_argument(w: FunctionWriter, slot: int, type_: str) -> str:
    """Add the load of an argument's slot to the entry block; return the register."""
    name = w.new_register()
    w.entry.append(f"  {name}p = getelementptr i64, ptr %args, i64 {slot}")
    w.entry.append(f"  {name} = load {type_}, ptr {name}p, align 8")
    return name


def _is_streaming_worth_it(
    w: FunctionWriter,
    kernel: Kernel,
    bytes_min: int,
    addresses: Mapping[str, str],
    points: str,
) -> str:
    """Render an i1: True if the result is too large for the caches; "" if it never matters.

    A store that bypasses the caches need not read the line first: a transposed copy of 4096 x 4096
    takes 7 ms instead of 20. Memory that is updated in place has been read anyhow.
    """
    if not bytes_min:
        return ""
    written = {s.buffer.name: s.buffer for s in kernel.body if isinstance(s, Store)}
    nbytes = w.i64("mul", points, str(max(b.dtype.itemsize for b in written.values())))
    pays = w.let(f"icmp uge i64 {nbytes}, {bytes_min}")
    for b in kernel.buffers:
        for name in written if b.name not in written else ():
            other = w.let(f"icmp ne ptr {addresses[b.name]}, {addresses[name]}")
            pays = w.let(f"and i1 {pays}, {other}")
    return pays
