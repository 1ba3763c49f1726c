"""kernel -> kernel: passes, in order, that express what a device lacks by what it has.

Every pass keeps the bits of the result, and returns the kernel itself if it has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..dtypes import (
    BUILT_IN,
    UNSIGNED,
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int32,
    uint16,
    uint32,
)
from ..errors import CompileError, DeviceError, DTypeError
from .analysis import values
from .builder import Kernel
from .expand_reductions import lower_reductions
from .guard_subnormals import guard_subnormals
from .hide_floats import hide_floats
from .language import (
    Buffer,
    Value,
    bitcast,
    cast,
    const,
    eq,
    ne,
    where,
)
from .lower_complex import lower_complex_to_pairs
from .lower_index32 import lower_index_width
from .lower_int64 import lower_int64_to_words
from .lower_limits import lower_buffer_offsets, split_grid
from .lower_subword import lower_subword_elements
from .rewrite import rewrite_kernel
from .serialize_atomics import serialize_carrying_atomics
from .soft_float import lower_float32_division, lower_fma
from .target import Capabilities

Pass = Callable[[Kernel, Capabilities], Kernel]


def legalize(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return an equivalent kernel that a device of these capabilities can run.

    The kernel itself comes back if the device can run it as it is.

    - `capabilities`: the features of the device.

    Raises: DTypeError when the kernel needs a dtype that the device does not have, DeviceError when
    it has more buffers than the device takes, CompileError when it has private arrays already.
    """
    check_arrays(kernel)
    check_dtypes(kernel, capabilities)
    check_buffer_count(kernel, capabilities)
    for change in PASSES:
        kernel = change(kernel, capabilities)
    return kernel


# --- kernels that no pass can adapt ---------------------------------------------------------------


def check_arrays(kernel: Kernel) -> None:
    """Raise CompileError if the kernel has private arrays, which passes and parts do not keep.

    Raises: CompileError. Only kernels that a plugin builds can reach it.
    """
    if kernel.arrays:
        names = ", ".join(b.name for b in kernel.arrays)
        raise CompileError(
            f"kernel {kernel.name} must have no private arrays before it is legalised, "
            f"got {names}; use a buffer with an element for each point"
        )


def check_dtypes(kernel: Kernel, capabilities: Capabilities) -> None:
    """Raise DTypeError if the device lacks a dtype that the kernel needs.

    Raises: DTypeError that names what the device lacks.
    """
    for b in kernel.buffers:
        if _storage_dtype(b.dtype) not in capabilities.dtypes:
            raise DTypeError(
                f"this device has no {b.dtype.name} (buffer {b.name} of kernel {kernel.name}); "
                f"it has {', '.join(sorted(d.name for d in capabilities.dtypes))}; "
                "use astype() first, or another device"
            )
    if not capabilities.float64 and any(d.part is float64 for d in _iterate_dtypes(kernel)):
        raise DTypeError(
            f"kernel {kernel.name} computes in float64, which this device lacks; "
            "use float32 (astype(dovetail.float32)) or another device"
        )


def check_buffer_count(kernel: Kernel, capabilities: Capabilities) -> None:
    """Raise DeviceError if the kernel has more buffers than the device takes.

    Raises: DeviceError. Only kernels that users write can reach it: plans respect the limit.
    """
    count, buffers_max = len(kernel.buffers), capabilities.plan_buffers
    if buffers_max and count > buffers_max:
        raise DeviceError(
            f"kernel {kernel.name} must have at most {buffers_max} buffers on this device, got "
            f"{count}; split the work into several kernels, or use another device"
        )


def _storage_dtype(d: DType) -> DType:
    """Return the dtype that a buffer of `d` needs.

    For complex numbers it is the dtype of their parts, for a plugin's dtype that of its bits.
    """
    return d.part if d in BUILT_IN else UNSIGNED_BY_ITEMSIZE[d.itemsize]


def _iterate_dtypes(kernel: Kernel) -> Iterator[DType]:
    """Yield the dtypes of buffers, scalars, values and arguments; repeated ones included."""
    yield from (b.dtype for b in kernel.buffers)
    yield from (dtype for _, dtype in kernel.scalars)
    for v in values(kernel.body):
        yield v.dtype
        yield from (a.dtype for a in v.args)


# --- casts to and from halves: by way of float32 --------------------------------------------------


def lower_indirect_casts(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel with casts of reduced precision split so that each has a float32 side."""
    if not any(_is_indirect_cast(v) for v in values(kernel.body)):
        return kernel
    return rewrite_kernel(kernel, _cast_by_float32)


def _is_indirect_cast(v: Value) -> bool:
    """Return True for a cast that involves a storage-only dtype but not float32."""
    if v.op != "cast":
        return False
    pair = (v.dtype, v.args[0].dtype)
    return float32 not in pair and any(d.compute is not d for d in pair)


def _cast_by_float32(v: Value, args: tuple[Value, ...]) -> Value | None:
    """Return an indirect cast as two casts through float32; None for other values."""
    if not _is_indirect_cast(v):
        return None
    (x,) = args
    return cast(_round_to_odd(x) if x.dtype is float64 else cast(x, float32), v.dtype)


def _round_to_odd(x: Value) -> Value:
    """Return a float64 as float32, rounded to odd.

    As 24 >= 2 + 11 bits, rounding the result again to a half is correct. Source: Boldo and
    Melquiond 2008, as for `reference.fma`.
    """
    near = cast(x, float32)
    back, bits = cast(near, float64), bitcast(near, int32)
    inexact = ne(back, x) & eq(x, x) & eq(bits & 1, 0)
    too_far = (x < back) ^ (x < 0.0)  # |back| > |x|; x is not 0 where it is inexact
    return bitcast(where(inexact, bits + where(too_far, const(-1, int32), 1), bits), float32)


# --- halves as integers ---------------------------------------------------------------------------


def lower_halves(kernel: Kernel, capabilities: Capabilities) -> Kernel:
    """Return the kernel with halves that the device lacks as uint16, cast by integer work.

    The dtypes of plugins are stored and cast as their descriptions say.
    """
    has_halves = capabilities.storage_bits == 8 and capabilities.algebra != "free"
    native = capabilities.native_halves if has_halves else frozenset[DType]()
    if not capabilities.denormals:
        native -= {bfloat16}  # whose casts may flush, as float32 arithmetic does
    return _replace_by_integers(kernel, [d for d in TO_BITS if d not in native])


def lower_plugin_dtypes(kernel: Kernel) -> Kernel:
    """Return the kernel with plugins' dtypes, and only those, expressed in integers and float32."""
    theirs = [d for d in TO_BITS if d not in BUILT_IN]
    if not any(d in theirs for d in _iterate_dtypes(kernel)):
        return kernel
    return _replace_by_integers(lower_indirect_casts(kernel, Capabilities()), theirs)


def _replace_by_integers(kernel: Kernel, missing_dtypes: Sequence[DType]) -> Kernel:
    """Return the kernel with these dtypes stored as unsigned bits and converted by integer work."""
    buffers = {
        b: Buffer(b.name, UNSIGNED_BY_ITEMSIZE[b.dtype.itemsize], b.access)
        for b in kernel.buffers
        if b.dtype in missing_dtypes
    }
    if not buffers and not any(v.dtype in missing_dtypes for v in values(kernel.body)):
        return kernel

    def replace_cast(v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the conversion of a cast from or to a missing dtype; None for other values."""
        if v.op != "cast":
            return None
        if v.dtype in missing_dtypes:
            return TO_BITS[v.dtype](args[0])
        if v.args[0].dtype in missing_dtypes:
            return FROM_BITS[v.args[0].dtype](args[0])
        return None

    return rewrite_kernel(kernel, replace_cast, buffers)


def _bfloat16_bits(x: Value) -> Value:
    """Return a float32 rounded to bfloat16, as bits; a NaN stays one, quiet."""
    bits = bitcast(x, uint32)
    rounded = bits + ((bits >> 16) & 1) + 0x7FFF
    return cast(where(ne(x, x), bits | 0x400000, rounded) >> 16, uint16)


def _bfloat16_value(bits: Value) -> Value:
    """Return the bits of a bfloat16 as the equal float32."""
    return bitcast(cast(bits, uint32) << 16, float32)


def _float16_bits(x: Value) -> Value:
    """Return a float32 rounded to float16, as bits.

    Below 2^-14 the sum with 0.5 rounds: its last bit is 2^-24, as that of a denormal float16.
    """
    bits = bitcast(x, uint32)
    size = bits & 0x7FFFFFFF
    normal = ((size + ((size >> 13) & 1) + 0xFFF) >> 13) - (112 << 10)
    denormal = bitcast(bitcast(size, float32) + 0.5, uint32) - 0x3F000000
    half = where(size < 0x38800000, denormal, normal)
    half = where(size >= 0x477FF000, 0x7C00, half)  # 65520, half way beyond the largest
    half = where(size > 0x7F800000, ((size >> 13) & 0x1FF) | 0x7E00, half)
    return cast(half | ((bits >> 16) & 0x8000), uint16)


def _float16_value(bits: Value) -> Value:
    """Return the bits of a float16 as the equal float32."""
    wide = cast(bits, uint32)
    size = wide & 0x7FFF
    # the first for infinity and NaN, the second for normal numbers
    rebased = where(size >= 0x7C00, const(224 << 23, uint32), 112 << 23)
    denormal = bitcast(cast(size, float32) * 2.0**-24, uint32)
    magnitude = where(size < 0x400, denormal, (size << 13) + rebased)
    return bitcast(magnitude | ((wide & 0x8000) << 16), float32)


UNSIGNED_BY_ITEMSIZE = {d.itemsize: d for d in UNSIGNED}
# Conversions of floats of reduced precision to bits, and to float32; plugins add theirs.
TO_BITS: dict[DType, Callable[[Value], Value]] = {float16: _float16_bits, bfloat16: _bfloat16_bits}
FROM_BITS: dict[DType, Callable[[Value], Value]] = {
    float16: _float16_value,
    bfloat16: _bfloat16_value,
}


PASSES: tuple[Pass, ...] = (
    lower_complex_to_pairs,
    lower_indirect_casts,
    lower_halves,
    lower_float32_division,
    lower_fma,
    guard_subnormals,
    hide_floats,
    lower_buffer_offsets,
    serialize_carrying_atomics,
    split_grid,
    lower_index_width,
    lower_subword_elements,
    lower_int64_to_words,
    lower_reductions,
)
