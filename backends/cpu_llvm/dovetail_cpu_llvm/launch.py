"""From Python to machine code: each bound launch is a built-in function over generated code.

The function is `launch.c`'s. Its `self` is (block, entry, owner, fixed). The block is what does not
change from call to call, packed into bytes; the owner keeps the code alive; `fixed` is what
sequences of launches are made of. Without the compiled module launches are objects of Python
(`python_launch`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
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
from .command_list import BOOL, FLOAT32, FLOAT64, INTEGER, LaunchTemplate
from .compile import Compiler, CpuProgram, link
from .native import native
from .pool import Pool, encode_weight
from .python_launch import PythonLaunch, python_replay
from .schedule import estimate_operations, estimate_traffic_bytes, loop_iterations

RELEASE_GIL_OPERATIONS_MIN = (
    200_000  # scalar operations (some 20 us) from which other Python threads may run
)
SHARE_OPERATIONS_MIN = 250_000  # from which threads that are awake are faster than one
# Points, of the grid and of the loops of each, from which they share launches of less, too: what
# others of as many points wrote, or will read, is in both their caches (a stencil in place: 7 us,
# and 20 where its copy was not shared; the largest of each of 256 rows of 256 elements: 6, not 10).
SHARE_POINTS_MIN = 16_384
# While threads are far from each other they share what is this many times as much, or a fourth of
# that with so many operations for each byte that is loaded or stored (log2 of 64 K: 14 us, not 24),
# or loads and stores so many bytes, which one thread takes some 0.2 ms for, ...
DISTANT_SHARE_FACTOR, OPERATIONS_PER_BYTE_MIN, DISTANT_SHARE_BYTES_MIN = 32, 4, 1 << 22
# ... and products with this many multiplications for each number that is read or written.
OPERATIONS_PER_NUMBER_MIN = 64

ChooseRoutine = Callable[
    [Sequence[StridedOperand], StridedOperand, int, int], gemm.RoutineCall | None
]

_KINDS = {"f32": FLOAT32, "f64": FLOAT64, "b8": BOOL}  # of scalars; the others are INTEGER


class Launcher:
    """The factory of bound launches, and the thread pool that shares them."""

    def __init__(self, compiler: Compiler, fingerprint: str) -> None:
        self._entry = Entry(native.entry) if native else None
        self._compiler, self._fingerprint = compiler, fingerprint
        self.pool = Pool()
        self._linked_routines: dict[str, Any] = {}  # by the first kernel of a module

    def _get_routine_code(self, module: gemm.RoutineModule) -> Any:
        """Return the code of a module of kernels; the first call compiles or loads it."""
        compiler, key = self._compiler, module.kernels[0]
        if key not in self._linked_routines:
            ir = module.write_ir(compiler.machine.triple, compiler.target)
            self._linked_routines[key] = _link_cached(
                compiler, self._fingerprint, ir, module.kernels, gemm.imports()
            )
        return self._linked_routines[key]

    def bind(self, program: CpuProgram, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Return a launch of `program`; start the pool if several threads are to share it."""
        k = program.kernel
        blocks = program.schedule.blocks(grid)
        tiles = math.prod(-(-n // b) for n, b in zip(grid, blocks, strict=True))
        points, sizes = math.prod(grid), dict(zip(k.ints, ints, strict=True))
        operations = points * estimate_operations(k, sizes)
        share_mode = int(operations >= RELEASE_GIL_OPERATIONS_MIN)
        near = points * loop_iterations(k.body, sizes)
        if tiles > 1 and (operations >= SHARE_OPERATIONS_MIN or near >= SHARE_POINTS_MIN):
            share_mode = encode_weight(
                operations, _shares_when_distant(program, sizes, points, operations)
            )
            self.pool.start()
        slots = [0] * len(k.buffers) + [*ints] + [0] * len(k.scalars) + [*grid] + blocks
        first = len(k.buffers) + len(ints)
        kinds = [_KINDS.get(d.code, INTEGER) for _, d in k.scalars]
        shared = share_mode if share_mode > 1 else 0
        fixed = LaunchTemplate(program.address, tiles, shared, operations, slots, first, kinds)
        return self._bind_native(program, fixed, share_mode, len(k.buffers))

    def bind_routine(
        self, choose: ChooseRoutine, inputs: Sequence[StridedOperand], output: StridedOperand
    ) -> Launch | None:
        """Return a built-in function of (buffers, scalars, stream) for a product or sort, or None.

        choose: chooses the call for the operands, a vector's bytes and the number of threads.
        """
        call = choose(inputs, output, self._compiler.native, self.pool.num_threads)
        if call is None:
            return None
        slots = [0] * call.addresses + [*call.ints]
        code, n = self._get_routine_code(call.module), call.operations
        share_mode = int(n >= RELEASE_GIL_OPERATIONS_MIN)
        sizes = [math.prod(operand[2]) for operand in (*inputs, output)]
        numbers = sum(sizes)
        if call.blocks > 1 and (n >= SHARE_OPERATIONS_MIN or numbers >= SHARE_POINTS_MIN):
            items = (operand[4].itemsize for operand in (*inputs, output))
            bytes_moved = sum(a * b for a, b in zip(sizes, items, strict=True))
            shares_when_distant = bytes_moved >= DISTANT_SHARE_BYTES_MIN or (
                n >= DISTANT_SHARE_FACTOR * SHARE_OPERATIONS_MIN
                and n >= OPERATIONS_PER_NUMBER_MIN * numbers
            )
            share_mode = encode_weight(n, shares_when_distant)
            self.pool.start()
        shared = share_mode if share_mode > 1 else 0
        address = code[call.kernel]
        fixed = LaunchTemplate(address, call.blocks, shared, n, slots, len(slots), [])
        return self._bind_native(code, fixed, share_mode, len(inputs) + 1)

    def _bind_native(
        self, owner: object, fixed: LaunchTemplate, share_mode: int, buffers: int
    ) -> Launch:
        """Return a launch as a built-in function, or as a Python object without compiled module.

        `owner` keeps the code alive; `share_mode`: see `struct launch` in launch.c.
        """
        if native is None:
            return PythonLaunch(owner, fixed, share_mode > 0, buffers)
        header = [fixed.function, fixed.tiles, share_mode, self.pool.state]
        words = [*header, buffers, len(fixed.kinds), fixed.first_scalar, len(fixed.slots)]
        words += [*fixed.slots, *fixed.kinds]
        block = struct.pack(f"={len(words)}q", *words)
        launch: Launch = native.bind_launch((block, self._entry, owner, fixed))
        return launch

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        """Return a built-in function of (handles and offsets, variables, stream) for launches."""
        if native is None:
            return python_replay(tuple(launches))
        block = command_list.pack_command_list(
            launches, RELEASE_GIL_OPERATIONS_MIN, self.pool.state
        )
        # The tuple of launches keeps their programs loaded.
        replay: Replay = native.bind_sequence((block, tuple(launches)))
        return replay


def _shares_when_distant(
    program: CpuProgram, ints: Mapping[str, int], points: int, operations: float
) -> bool:
    """Return True if threads share a launch even while they are far from each other."""
    if operations >= DISTANT_SHARE_FACTOR * SHARE_OPERATIONS_MIN:
        return True
    bytes_moved = points * estimate_traffic_bytes(program.kernel, program.schedule, ints)
    return bytes_moved >= DISTANT_SHARE_BYTES_MIN or operations >= max(
        DISTANT_SHARE_FACTOR // 4 * SHARE_OPERATIONS_MIN, OPERATIONS_PER_BYTE_MIN * bytes_moved
    )


def _link_cached(
    compiler: Compiler, fingerprint: str, ir: str, symbols: tuple[str, ...], imports: dict[str, int]
) -> Any:
    """Return linked code that is the same for every kernel, compiled or from the disk cache.

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
