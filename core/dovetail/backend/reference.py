"""A NumPy interpreter of the kernel IR: slow, correct, always available.

It makes the language precise: what a backend computes is compared with it, bit by bit. All points
of the grid (in blocks) are computed at once. A loop whose iterations may be computed at once puts
an axis in front, so a Value is an array that broadcasts to (iterations of the innermost loop, ...,
points). `active` says where a scope really runs, for bounds that differ from point to point.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from ..dtypes import DType, bfloat16, float16, float64, uint16
from ..errors import InternalError
from ..ir.builder import Combine, Kernel, combine
from ..ir.language import CHUNK, LANES, Atomic, Block, Buffer, Loop, Store, Value, walk
from ..ir.legalize import lower_plugin_dtypes
from ..ir.target import Capabilities
from .interface import (
    HOST_MEMORY,
    Backend,
    DeviceInfo,
    Handle,
    Handles,
    Program,
    Scalar,
    StreamHandle,
)

Array = Any  # an ndarray or NumPy scalar of any dtype
Mask = Any  # a bool array, or None: everywhere
Shape = tuple[int, ...]

BLOCK_POINTS = 1 << 15  # elements per array that are computed at once: a few hundred kB each


# --- fused multiply-add, exactly -----------------------------------------------------------------


def fma(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of float32 or float64 arrays, with one rounding.

    Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums: proved algorithms
    using rounding to odd, IEEE Transactions on Computers 57(4), 2008.
    """
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 + 24 <= 53 bits
        return _add_to_odd(product, c.astype(np.float64)).astype(np.float32)
    a, b, c = np.broadcast_arrays(a, b, c)
    return _fma_float64(a.ravel(), b.ravel(), c.ravel()).reshape(a.shape)


def _add_with_error(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a + b rounded, and its error (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _add_to_odd(a: Array, b: Array) -> Array:
    """Return a + b in float64, rounded to odd: if inexact, the neighbour whose last bit is odd."""
    s, error = _add_with_error(a, b)
    bits = np.asarray(s).view(np.int64)
    away = np.where((error > 0) == (s > 0), 1, -1)
    even_inexact = np.isfinite(s) & np.isfinite(error) & (error != 0) & (bits & 1 == 0)
    return np.where(even_inexact, bits + away, bits).view(np.float64)


def _split_mantissa(a: Array) -> tuple[Array, Array]:
    """Return `a` as a sum of two numbers of at most 26 bits (Veltkamp)."""
    t = a * 134217729.0
    high = t - (t - a)
    return high, a - high


def _multiply_with_error(a: Array, b: Array) -> tuple[Array, Array]:
    """Return a * b rounded, and its error (Dekker)."""
    p = a * b
    (ah, al), (bh, bl) = _split_mantissa(a), _split_mantissa(b)
    return p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)


def _fma_float64(a: Array, b: Array, c: Array) -> Array:
    """Return a * b + c of 1-d float64 arrays, with one rounding."""
    high, low = _multiply_with_error(a, b)
    t, t_low = _add_with_error(c, low)
    v, v_low = _add_with_error(high, t)
    result = v + _add_to_odd(t_low, v_low)
    plain = (a == 0) | (b == 0) | ~np.isfinite(a) | ~np.isfinite(b)  # the product is exact
    result = np.where(plain, a * b + c, np.where(np.isfinite(c), result, c))
    ea, eb, ec = (np.frexp(x)[1] for x in (a, b, c))
    tame = (abs(ea) < 990) & (abs(eb) < 990) & (ea + eb > -950) & (ea + eb < 1000) & (ec < 1000)
    hard = ~(plain | ~np.isfinite(c) | tame)
    for i in np.flatnonzero(hard):
        result[i] = _fma_exactly(float(a[i]), float(b[i]), float(c[i]))
    return result


def _fma_exactly(a: float, b: float, c: float) -> float:
    """Return a * b + c of finite numbers, a and b not zero."""
    if c == 0.0:
        return a * b
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(exact)  # Python divides integers with correct rounding, denormals included
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


# --- the operations ------------------------------------------------------------------------------


def _numpy_dtype(d: DType) -> np.dtype[np.generic]:
    """Return the NumPy dtype that computes `d`; bfloat16 is computed as float32."""
    return np.dtype(np.float32) if d.__numpy_dtype__ is None else d.__numpy_dtype__


def _compute_remainder(a: Array, b: Array) -> Array:
    """Return the remainder with the sign of `a`, as in C; a divisor 0 counts as 1."""
    return np.fmod(a, np.where(b == 0, b.dtype.type(1), b))


def _compute_quotient(a: Array, b: Array) -> Array:
    """Return the integer quotient rounded to zero; a divisor 0 counts as 1."""
    return np.floor_divide(a - _compute_remainder(a, b), np.where(b == 0, b.dtype.type(1), b))


_COMPUTE: dict[str, Callable[..., Array]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "fma": fma,
    "neg": np.negative,
    "sqrt": np.sqrt,
    "trunc": np.trunc,
    "floor": np.floor,
    "rint": np.rint,
    "quo": _compute_quotient,
    "rem": _compute_remainder,
    "shl": np.left_shift,
    "shr": np.right_shift,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "not": np.invert,
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "ne": np.not_equal,
    "where": np.where,
}
_ATOMIC: dict[str, np.ufunc] = {
    "add": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
}


def _round_to_odd_float32(x: Array) -> Array:
    """Return float64 as float32, rounded to odd, so that a second rounding to a half is exact."""
    near = x.astype(np.float32)
    back, bits = near.astype(np.float64), near.view(np.int32)
    toward = np.where(abs(back) > abs(x), np.int32(-1), np.int32(1))
    return np.where((back != x) & ~np.isnan(x) & (bits & 1 == 0), bits + toward, bits).view(
        np.float32
    )


def _encode_bfloat16(x: Array) -> Array:
    """Return float32 rounded to the nearest bfloat16, as uint16 bits."""
    bits = x.view(np.uint32)
    rounded = bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))
    return (np.where(np.isnan(x), bits | np.uint32(0x400000), rounded) >> np.uint32(16)).astype(
        np.uint16
    )


def _decode_bfloat16(bits: Array) -> Array:
    """Return bfloat16 bits as float32."""
    return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)


def _cast(x: Array, source: DType, target: DType) -> Array:
    """Convert values to dtype `target`; bfloat16 is rounded once and returned as float32."""
    if target is not bfloat16:
        return x.astype(_numpy_dtype(target))
    near = _round_to_odd_float32(x) if source is float64 else x.astype(np.float32)
    return _decode_bfloat16(_encode_bfloat16(near))


# --- the interpreter -----------------------------------------------------------------------------


class _InterpretedBuffer:
    """A buffer while a kernel runs: `data[origin + k * stride]` is the element of index k."""

    def __init__(
        self, name: str, dtype: DType, data: Array, origin: Array, stride: int = 1
    ) -> None:
        self.name, self.dtype, self.origin, self.stride = name, dtype, origin, stride
        element_type = np.dtype(np.uint16) if dtype is bfloat16 else _numpy_dtype(dtype)
        self.data = data if data.dtype == element_type else data.view(element_type)

    def resolve_positions(self, index: Array, mask: Mask, what: str) -> Array:
        """Return positions in `data`, 0 where masked out. Raises: InternalError if out of range."""
        position = np.asarray(index, np.int64) * self.stride + self.origin
        if mask is not None:
            position = np.where(mask, position, 0)
        wrong = (position < 0) | (position >= self.data.size)
        if mask is not None:
            wrong = wrong & mask
        if wrong.any():
            first = int((position - self.origin)[wrong].flat[0]) // self.stride
            count = (self.data.size - np.min(self.origin)) // self.stride
            raise InternalError(f"{what} {self.name}[{first}]: it has {count} elements")
        return position

    def load(self, index: Array, mask: Mask) -> Array:
        """Return the elements at an index, 0 where masked out; bfloat16 as float32."""
        position = self.resolve_positions(index, mask, "load of")
        if mask is None:
            values = self.data[position]
        elif self.data.size:
            values = np.where(mask, self.data[position], self.data.dtype.type(0))
        else:
            values = np.zeros(np.shape(position), self.data.dtype)
        return _decode_bfloat16(values) if self.dtype is bfloat16 else values

    def encode(self, value: Array) -> Array:
        """Return a value as stored: bfloat16 as uint16 bits, others unchanged."""
        return _encode_bfloat16(value) if self.dtype is bfloat16 else value


def _create_private_array(array: Buffer, points: int) -> _InterpretedBuffer:
    """Return a private array of all points: element k of point p is `data[k * points + p]`."""
    size = array.length * points * _numpy_dtype(array.dtype).itemsize
    data = np.full(size, 0xAA, np.uint8)
    return _InterpretedBuffer(array.name, array.dtype, data, np.arange(points), points)


def _and_masks(a: Mask, b: Mask) -> Mask:
    """Return the conjunction of two masks, where None is true everywhere."""
    if a is None or b is None:
        return b if a is None else a
    return a & b


class _BlockRun:
    """The run of a kernel over one block of its grid."""

    def __init__(
        self,
        memory: Mapping[int, _InterpretedBuffer],
        params: Mapping[str, Array],
        index: Sequence[Array],
    ) -> None:
        self.memory, self.params, self.index = memory, params, index
        self.values: dict[int, Array] = {}

    def __getitem__(self, v: Value) -> Array:
        if v.op == "const":
            return np.asarray(v.number, _numpy_dtype(v.dtype))
        if v.op == "param":
            return self.params[v.name]
        if v.op == "index":
            return self.index[v.axis]
        return self.values[id(v)]

    def __setitem__(self, v: Value, x: Array) -> None:
        self.values[id(v)] = x

    def block(self, block: Block, shape: Shape, active: Mask) -> None:
        """Run the statements of a scope of this shape; store values and change buffers."""
        for s in block:
            if isinstance(s, Value):
                self[s] = self.compute(s, active)
            elif isinstance(s, Loop):
                _LOOPS[s.kind](self, s, shape, active)
            else:
                self.effect(s, shape, active)

    def compute(self, v: Value, active: Mask) -> Array:
        """Return the result of a value's op; loads read 0 where `active` is false."""
        args = [self[a] for a in v.args]
        if v.op == "load":
            mask = active if len(args) == 1 else _and_masks(active, args[1])
            return self.memory[id(v.buffer)].load(args[0], mask)
        if v.op == "cast":
            return _cast(args[0], v.args[0].dtype, v.dtype)
        if v.op == "bitcast":
            return args[0].view(_numpy_dtype(v.dtype))
        return np.asarray(_COMPUTE[v.op](*args))

    def effect(self, s: Store | Atomic, shape: Shape, active: Mask) -> None:
        """Run a store or an atomic update of a buffer, where active."""
        memory = self.memory[id(s.buffer)]
        mask = active if s.when is None else _and_masks(active, self[s.when])
        place = np.broadcast_to(memory.resolve_positions(self[s.index], mask, "store to"), shape)
        value = np.broadcast_to(memory.encode(self[s.value]), shape)
        if mask is not None:
            mask = np.broadcast_to(mask, shape)
            place, value = place[mask], value[mask]
        if isinstance(s, Store):
            memory.data[place] = value
        else:
            _ATOMIC[s.op].at(memory.data, place, value)

    def trip_counts(self, loop: Loop, active: Mask) -> tuple[Array, int]:
        """Return the number of iterations at every point (0 where inactive), and its maximum."""
        n = np.maximum(self[loop.stop] - self[loop.start], 0)
        if active is not None:
            n = np.where(active, n, 0)
        return n, int(n.max())

    def iterations(self, loop: Loop, n: Array, k: Array, shape: Shape) -> Mask:
        """Run iterations `k` (a 1-d array) of a body at once; return the mask of active ones."""
        k = k.reshape(-1, *[1] * len(shape))
        self[loop.var] = (self[loop.start] + k).astype(_numpy_dtype(loop.var.dtype))
        runs = k < n
        active = None if runs.all() else runs
        self.block(loop.body, (k.size, *shape), active)
        return active

    def map(self, loop: Loop, shape: Shape, active: Mask) -> None:
        """Run a loop without carried values, several iterations at once."""
        n, count_max = self.trip_counts(loop, active)
        step = max(1, BLOCK_POINTS // math.prod(shape))
        for first in range(0, count_max, step):
            self.iterations(loop, n, np.arange(first, min(first + step, count_max)), shape)

    def fold(self, loop: Loop, shape: Shape, active: Mask) -> None:
        """Run a loop in order with carried values; store the results."""
        n, count_max = self.trip_counts(loop, active)
        count_min = int(n.min())
        start = self[loop.start]
        state = [self[v] for v in loop.init]
        for k in range(count_max):
            self[loop.var] = np.asarray(start + k, _numpy_dtype(loop.var.dtype))
            for carry, x in zip(loop.carry, state, strict=True):
                self[carry] = x
            runs = None if k < count_min else k < n
            self.block(loop.body, shape, runs)
            new = [self[u] for u in loop.update]
            state = (
                new
                if runs is None
                else [np.where(runs, x, y) for x, y in zip(new, state, strict=True)]
            )
        for result, x in zip(loop.results, state, strict=True):
            self[result] = x

    def reduce(self, loop: Loop, shape: Shape, active: Mask) -> None:
        """Run a reduction in the canonical order; store the results."""
        assert loop.combine is not None
        rule = combine(loop.combine, tuple(u.dtype for u in loop.update))
        start = [self[v] for v in loop.init or rule.identity]
        n, _ = self.trip_counts(loop, active)

        def evaluate(k: Array) -> tuple[Mask, list[Array]]:
            """Run iterations `k`; return their mask and their updates, broadcast to the scope."""
            runs = self.iterations(loop, n, k, shape)
            return runs, [np.broadcast_to(self[u], (k.size, *shape)) for u in loop.update]

        for result, x in zip(
            loop.results,
            _combine_in_canonical_order(rule, start, n, shape, evaluate),
            strict=True,
        ):
            self[result] = x


_LOOPS: dict[str, Callable[[_BlockRun, Loop, Shape, Mask], None]] = {
    "map": _BlockRun.map,
    "reduce": _BlockRun.reduce,
    "fold": _BlockRun.fold,
}


# --- the canonical order of a reduction ----------------------------------------------------------

# iterations k -> mask of the active ones, their updates
Evaluate = Callable[[Array], tuple[Mask, list[Array]]]


def _combine(
    rule: Combine, shared: Sequence[Array], left: Sequence[Array], right: Sequence[Array]
) -> list[Array]:
    """Return the rule's combination of two lists of accumulators, elementwise."""
    points = _BlockRun({}, {}, ())
    operands = rule.shared + rule.left + rule.right
    for v, x in zip(operands, [*shared, *left, *right], strict=True):
        points[v] = x
    points.block(rule.body, (), None)
    return [points[v] for v in rule.result]


def _combine_in_canonical_order(
    rule: Combine, start: Sequence[Array], n: Array, shape: Shape, evaluate: Evaluate
) -> list[Array]:
    """Combine `n` values per point in the order that `ir.language` defines.

    `start`: the identity, then the values of `rule.shared`.
    """
    count_max = int(n.max())
    chunks = max(1, -(-count_max // CHUNK))
    chunks_at_once = max(1, BLOCK_POINTS // (CHUNK * math.prod(shape)))  # chunks at once
    blocks = [
        np.arange(c, min(c + chunks_at_once, chunks)) for c in range(0, chunks, chunks_at_once)
    ]
    partials = [_combine_chunks(rule, start, c, count_max, shape, evaluate) for c in blocks]
    partial = [np.concatenate(column) for column in zip(*partials, strict=True)]
    if chunks == 1:
        return [x[0] for x in partial]
    chunk_counts = -(-n // CHUNK)

    def pick(k: Array) -> tuple[Mask, list[Array]]:
        """Return the mask and the partial results of chunks `k`."""
        return k.reshape(-1, *[1] * len(shape)) < chunk_counts, [
            x[np.minimum(k, chunks - 1)] for x in partial
        ]

    whole = _combine_in_canonical_order(rule, start, chunk_counts, shape, pick)
    # a single chunk's result is not combined with the identity
    return [np.where(chunk_counts > 1, x, y[0]) for x, y in zip(whole, partial, strict=True)]


def _combine_chunks(
    rule: Combine,
    start: Sequence[Array],
    chunks: Array,
    count_max: int,
    shape: Shape,
    evaluate: Evaluate,
) -> list[Array]:
    """Return the results of chunks, along axis 0: each chunk in lanes, the lanes then as a tree."""
    wide = (chunks.size, LANES, *shape)
    lanes = [np.broadcast_to(x, wide) for x in start[: len(rule.identity)]]
    shared = start[len(rule.identity) :]
    rows = -(-min(count_max - int(chunks[0]) * CHUNK, CHUNK) // LANES)
    step = max(1, BLOCK_POINTS // math.prod(wide))
    first = chunks[:, None] * CHUNK + np.arange(LANES)
    for r in range(0, rows, step):
        row = np.arange(r, min(r + step, rows))
        mask, updates = evaluate((row[:, None, None] * LANES + first).ravel())
        updates = [u.reshape(row.size, *wide) for u in updates]
        masks = None if mask is None else np.broadcast_to(mask, (row.size * first.size, *shape))
        for i in range(row.size):
            new = _combine(rule, shared, lanes, [u[i] for u in updates])
            if masks is not None:
                runs = masks.reshape(row.size, *wide)[i]
                new = [np.where(runs, x, y) for x, y in zip(new, lanes, strict=True)]
            lanes = new
    for half in (16, 8, 4, 2, 1):
        halves = [x[:, :half] for x in lanes], [x[:, half:] for x in lanes]
        lanes = _combine(rule, shared, *halves)
    return [x[:, 0] for x in lanes]


def interpret(
    kernel: Kernel,
    buffers: Sequence[Array],
    ints: Sequence[int],
    scalars: Sequence[Scalar],
    grid: Sequence[int],
    origins: Sequence[int] | None = None,
) -> None:
    """Run a kernel over a grid of these extents, and change `buffers` (1-d arrays) in place.

    - `buffers`: a 1-d NumPy array for each buffer, changed in place.
    - `origins`: the element of each array with index 0 (by default the first). bfloat16 buffers are
      uint16, those of a plugin's dtype unsigned integers of its size.

    Raises: InternalError for an access outside of a buffer.
    """
    kernel = lower_plugin_dtypes(kernel)
    starts = [0] * len(buffers) if origins is None else origins
    memory = {
        id(b): _InterpretedBuffer(b.name, b.dtype, data, start)
        for b, data, start in zip(kernel.buffers, buffers, starts, strict=True)
    }
    index_type = _numpy_dtype(kernel.index)
    params = {name: np.asarray(n, index_type) for name, n in zip(kernel.ints, ints, strict=True)}
    for (name, dtype), x in zip(kernel.scalars, scalars, strict=True):
        params[name] = np.asarray(x, _numpy_dtype(dtype))
    total = math.prod(grid)
    lanes = any(isinstance(s, Loop) and s.kind != "fold" for s in walk(kernel.body))
    step = BLOCK_POINTS // LANES if lanes else BLOCK_POINTS
    with np.errstate(all="ignore"):
        for first in range(0, total, step):
            points = np.arange(first, min(first + step, total))
            index = np.unravel_index(points, tuple(grid)) if grid else ()
            index = tuple(i.astype(index_type, copy=False) for i in index)
            private = {id(b): _create_private_array(b, points.size) for b in kernel.arrays}
            _BlockRun(memory | private, params, index).block(kernel.body, (points.size,), None)


# --- the backend ---------------------------------------------------------------------------------


class ReferenceProgram(Program):
    """A kernel that each launch interprets."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.source = kernel, str(kernel)


class ReferenceBackend(Backend):
    """The built-in device "reference": handles are uint8 arrays, and launches are synchronous."""

    info = DeviceInfo(
        type="reference",
        index=0,
        name="NumPy interpreter",
        fingerprint="reference-1",
        capabilities=Capabilities(native_halves=frozenset((float16,))),
    )
    dlpack_type = HOST_MEMORY
    careful = True

    def allocate(self, nbytes: int) -> Handle:
        """Return a uint8 array of `nbytes`, aligned to 64 bytes."""
        try:
            raw = np.empty(nbytes + 63, np.uint8)
        except ValueError as error:  # of sizes that no address reaches
            raise MemoryError(f"the host could not allocate {nbytes} bytes") from error
        skip = -raw.__array_interface__["data"][0] % 64
        return raw[skip : skip + nbytes]

    def free(self, handle: Handle, nbytes: int) -> None:
        """Do nothing: the last reference frees the array's memory."""

    def copy_in(
        self, handle: Handle, offset: int, source: memoryview, stream: StreamHandle = None
    ) -> None:
        """Copy host bytes into the array."""
        handle[offset : offset + source.nbytes] = np.frombuffer(source, np.uint8)

    def copy_out(
        self, target: memoryview, handle: Handle, offset: int, stream: StreamHandle = None
    ) -> None:
        """Copy bytes of the array to host memory."""
        np.frombuffer(target, np.uint8)[:] = handle[offset : offset + target.nbytes]

    def host_address(self, handle: Handle, offset: int) -> int | None:
        """Return the array's address."""
        return int(handle.__array_interface__["data"][0]) + offset

    def adopt(self, address: int, nbytes: int) -> Handle:
        """Return an array over foreign memory."""
        if nbytes == 0:
            return np.empty(0, np.uint8)
        return np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))

    def compile(self, kernel: Kernel) -> Program:
        """Return a program with the kernel itself."""
        return ReferenceProgram(kernel)

    def launch(
        self,
        program: ReferenceProgram,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[Scalar],
        grid: Sequence[int],
        stream: StreamHandle = None,
    ) -> None:
        """Interpret the kernel. Indices may reach back before an offset, as on any device."""
        arrays, origins = [], []
        for b, handle, offset in zip(
            program.kernel.buffers, buffers[::2], buffers[1::2], strict=True
        ):
            size = b.dtype.itemsize
            usable = handle[offset % size :]
            dtype = (uint16 if b.dtype is bfloat16 else b.dtype).__numpy_dtype__
            arrays.append(usable[: usable.size // size * size].view(dtype))
            origins.append(offset // size)
        interpret(program.kernel, arrays, ints, scalars, grid, origins)


__all__ = ["ReferenceBackend", "ReferenceProgram", "fma", "interpret"]
