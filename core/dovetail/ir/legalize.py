"""kernel -> kernel: passes, in order, that express what a device lacks by what it has.

Every pass keeps the bits of the result, and returns the kernel itself if it has nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import (
    BUILT_IN,
    DType,
    bfloat16,
    float32,
    float64,
    int32,
)
from ..errors import CompileError, DeviceError, DTypeError
from ..lazy_import import LazyFunctions
from .analysis import values
from .builder import Kernel
from .float_bits import FROM_BITS, TO_BITS, UNSIGNED_BY_ITEMSIZE
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
from .rewrite import rewrite_kernel
from .target import Capabilities

if TYPE_CHECKING:
    from . import (
        expand_reductions,
        guard_subnormals,
        hide_floats,
        lower_index32,
        lower_int64,
        lower_limits,
        lower_subword,
        serialize_atomics,
        soft_float,
    )
else:
    expand_reductions = LazyFunctions(".expand_reductions", __package__)
    guard_subnormals = LazyFunctions(".guard_subnormals", __package__)
    hide_floats = LazyFunctions(".hide_floats", __package__)
    lower_index32 = LazyFunctions(".lower_index32", __package__)
    lower_int64 = LazyFunctions(".lower_int64", __package__)
    lower_limits = LazyFunctions(".lower_limits", __package__)
    lower_subword = LazyFunctions(".lower_subword", __package__)
    serialize_atomics = LazyFunctions(".serialize_atomics", __package__)
    soft_float = LazyFunctions(".soft_float", __package__)


class Pass(NamedTuple):
    """A pass, and a quick test of kernel and device; if it is False, the pass changes nothing.

    The module of a pass is imported when the test is True for the first time.
    """

    run: Callable[[Kernel, Capabilities], Kernel]
    applies: Callable[[Kernel, Capabilities], bool] = lambda kernel, can: True


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
        if change.applies(kernel, capabilities):
            kernel = change.run(kernel, capabilities)
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


PASSES = (
    Pass(lower_complex_to_pairs),
    Pass(lower_indirect_casts),
    Pass(lower_halves),
    Pass(soft_float.lower_float32_division, lambda kernel, can: not can.exact_division),
    Pass(soft_float.lower_fma, lambda kernel, can: not (can.fma and can.has_fma64)),
    Pass(guard_subnormals.guard_subnormals, lambda kernel, can: not can.denormals),
    Pass(hide_floats.hide_floats, lambda kernel, can: can.hiding_zeros != ()),
    Pass(
        lower_limits.lower_buffer_offsets,
        lambda kernel, can: can.offset_alignment > 1 or can.offset_params,
    ),
    Pass(
        serialize_atomics.serialize_carrying_atomics,
        lambda kernel, can: can.storage_bits == 32 or can.atomic_bits == 32 or not can.int64,
    ),
    Pass(lower_limits.split_grid, lambda kernel, can: can.max_grid != ()),
    Pass(
        lower_index32.lower_index_width,
        lambda kernel, can: kernel.index.bits != can.index_bits,
    ),
    Pass(lower_subword.lower_subword_elements, lambda kernel, can: can.storage_bits == 32),
    Pass(lower_int64.lower_int64_to_words, lambda kernel, can: not can.int64),
    Pass(expand_reductions.lower_reductions, lambda kernel, can: not can.reductions),
)
