"""From Python to machine code: each bound launch is a built-in function over generated code.

The function is `launch.c`'s. Its `self` is (block, entry, owner, fixed). The block is what does not
change from call to call, packed into bytes; the owner keeps the code alive; `fixed` is what
sequences of launches are made of. Without the compiled module launches are objects of Python
(`python_launch`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from dovetail.extend import (
    Entry,
    Launch,
    QueuedLaunch,
    Replay,
    StridedOperand,
    cache_binary,
    cached_binary,
)

from . import command_list, gemm
from .command_list import BOOL, FLOAT32, FLOAT64, INTEGER, Fixed
from .compile import Compiler, CpuProgram, link
from .native import native
from .pool import Pool, weight
from .python_launch import PythonLaunch, python_replay
from .schedule import elements, traffic, work

RELEASE_GIL = 200_000  # scalar operations (some 20 us) from which other Python threads may run
SHARE = 250_000  # from which threads that are awake are faster than one
# Points, of the grid and of the loops of each, from which they share launches of less, too: what
# others of as many points wrote, or will read, is in both their caches (a stencil in place: 7 us,
# and 20 where its copy was not shared; the largest of each of 256 rows of 256 elements: 6, not 10).
POINTS = 16_384
# While threads are far from each other they share what is this many times as much, or a fourth of
# that with so many operations for each byte that is loaded or stored (log2 of 64 K: 14 us, not 24),
# or loads and stores so many bytes, which one thread takes some 0.2 ms for, ...
WORTH, DENSE, TRAFFIC = 32, 4, 1 << 22
# ... and products only with this many multiplications for each number that is read or written.
REUSE = 64

_KINDS = {"f32": FLOAT32, "f64": FLOAT64, "b8": BOOL}  # of scalars; the others are INTEGER


class Launcher:
    """The factory of bound launches, and the thread pool that shares them."""

    def __init__(self, compiler: Compiler, fingerprint: str) -> None:
        self._entry = Entry(native.entry) if native else None
        self.pool = Pool()
        self._products: Any = None  # the code of NumPy's BLAS, if it can be called
        if blas := gemm.symbols():
            ir = gemm.ir(compiler.machine.triple)
            self._products = _link_cached(compiler, fingerprint, ir, gemm.KERNELS, blas)

    def bind(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a built-in function of (buffers, scalars, stream) that runs `program`."""
        k = program.kernel
        blocks = program.schedule.blocks(grid)
        tiles = math.prod(-(-n // b) for n, b in zip(grid, blocks, strict=True))
        points, sizes = math.prod(grid), dict(zip(k.ints, ints, strict=True))
        operations = points * work(k, sizes)
        how = int(operations >= RELEASE_GIL)
        near = points * elements(k.body, sizes)
        if tiles > 1 and (operations >= SHARE or near >= POINTS):
            how = weight(operations, _is_worth_it(program, sizes, points, operations))
            self.pool.start()
        slots = [0] * len(k.buffers) + [*ints] + [0] * len(k.scalars) + [*grid] + blocks
        first = len(k.buffers) + len(ints)
        kinds = [_KINDS.get(d.code, INTEGER) for _, d in k.scalars]
        shared = how if how > 1 else 0
        fixed = Fixed(program.address, tiles, shared, operations, slots, first, kinds)
        return self._bind_native(program, fixed, how, len(k.buffers))

    def product(self, inputs: Sequence[StridedOperand], output: StridedOperand) -> Launch | None:
        """Return a built-in function of (buffers, scalars, stream) that multiplies, or None."""
        routine = gemm.routine(inputs, output) if self._products is not None else None
        if routine is None:
            return None
        slots = [0, 0, 0, *routine.ints]
        address, n = self._products[routine.kernel], routine.operations
        how = int(n >= RELEASE_GIL)
        numbers = sum(math.prod(shape) for _, _, shape, *_ in (*inputs, output))
        if routine.blocks > 1 and (n >= SHARE or numbers >= POINTS):
            how = weight(n, n >= WORTH * SHARE and n >= REUSE * numbers)
            self.pool.start()
        shared = how if how > 1 else 0
        fixed = Fixed(address, routine.blocks, shared, n, slots, len(slots), [])
        return self._bind_native(self._products, fixed, how, 3)

    def _bind_native(self, owner: object, fixed: Fixed, how: int, buffers: int) -> Launch:
        """Return a launch. `owner` keeps the code alive; `how`: see `struct launch` in launch.c."""
        if native is None:
            return PythonLaunch(owner, fixed, how > 0, buffers)
        header = [fixed.function, fixed.tiles, how, self.pool.state]
        words = [*header, buffers, len(fixed.kinds), fixed.first_scalar, len(fixed.slots)]
        words += [*fixed.slots, *fixed.kinds]
        block = struct.pack(f"={len(words)}q", *words)
        launch: Launch = native.bind_launch((block, self._entry, owner, fixed))
        return launch

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        """Return a built-in function of (handles and offsets, variables, stream) for launches."""
        if native is None:
            return python_replay(tuple(launches))
        block = command_list.block(launches, RELEASE_GIL, self.pool.state)
        # The tuple of launches keeps their programs loaded.
        replay: Replay = native.bind_sequence((block, tuple(launches)))
        return replay


def _is_worth_it(
    program: CpuProgram, ints: Mapping[str, int], points: int, operations: float
) -> bool:
    """Return True if threads share a launch even while they are far from each other."""
    if operations >= WORTH * SHARE:
        return True
    moved = points * traffic(program.kernel, program.schedule, ints)
    return moved >= TRAFFIC or operations >= max(WORTH // 4 * SHARE, DENSE * moved)


def _link_cached(
    compiler: Compiler, fingerprint: str, ir: str, symbols: tuple[str, ...], imports: dict[str, int]
) -> Any:
    """Return linked code that is the same for every kernel.

    Its object code is cached on disk; if that does not link, it is compiled and written again.
    """
    cached = cached_binary(fingerprint, ir)
    if cached is not None:
        with suppress(RuntimeError):
            return link(cached, symbols, imports)
    code = compiler.object_code(ir)
    linked = link(code, symbols, imports)
    cache_binary(fingerprint, ir, code)
    return linked
