"""The capabilities of a device, as far as kernels are concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..dtypes import FLOATS, INTEGERS, DType, bool_
from ..errors import ArgumentError

BUFFERS_MIN = 8  # buffers that the ops with kernels of their own need in one kernel
BUFFER_BYTES_MIN = 1 << 22  # bytes of a buffer: small tensors share buffers of half of them
ITERATIONS_MIN = 1 << 13  # iterations of a launch: a chunk of a reduction takes half of them
NARROW_ALIGNMENT_MAX = 1 << 20  # bytes, with 32-bit indices: an index begins with a part of it


@dataclass(frozen=True)
class Capabilities:
    """The features that kernels for a device may use.

    The core legalises the rest away, or refuses it clearly.

    - `dtypes`: the dtypes of buffers. A dtype that is missing is an error for users.
    - `native_halves`: of float16, bfloat16 and the dtypes of plugins, those that the device loads,
      stores and casts to and from float32. Others come as integers.
    - `exact_division`: True if float32 division and square root round correctly. False: kernels
      compute them with float64 or integers.
    - `float64`: True if the device computes in float64.
    - `fma`: True if there is a multiply-add that rounds once. False: kernels compute it exactly.
    - `fma64`: True if there is one of float64; None: as `fma`.
    - `contraction`: True if the compiler may fuse a product, unasked, with a sum that uses it, and
      no option prevents that.
    - `algebra`: the float expressions that the compiler may rewrite: none ("exact"), operations
      with a constant 0 ("zeros"), or any ("free").
    - `denormals`: True if float32 arithmetic keeps subnormal numbers.
    - `nan`: True if float arithmetic keeps infinities and NaN.
    - `concurrency`: the number of independent grid points that keep the device busy. Long
      reductions are split until there are as many.
    - `near`: the bytes of a first-level cache that a grid point has for itself; 0 if points share
      it.
    - `max_buffers`: the most buffers of a kernel, 8 or more; 0 is no limit.
    - `max_buffer`: the most bytes of a buffer, which is one allocation, or of its binding; 0 is no
      limit. A temporary above it is computed where it is read, if that is possible; any other
      value is an OutOfMemoryError.
    - `offset_alignment`: the offsets of a launch's buffers are multiples of it, in bytes: a power
      of two, and at most 1 << 20 with 32-bit indices. Kernels get the rest as an integer.
    - `offset_params`: True if the backend binds whole allocations, and gives kernels the first
      element of each buffer as an integer (`Kernel.offset_ints`, `place_offsets`).
    - `max_grid`: the most points of a launch along each axis, the last axis last, and the most
      axes; () is no limit. Larger grids are launched in parts.
    - `max_iterations`: the most loop iterations of one point in one launch, all loops together; 0
      is no limit. The test that ends a loop is an iteration, in which the loops in it run 0 times.
      A reduction counts the loops of `expand_reductions`. Kernels with longer loops are launched in
      parts.
    - `index_bits`: the bits of indices and sizes in kernels, 64 or 32.
    - `int64`: False if 64-bit integers, which `dtypes` still has, come as two words. True promises
      atomics on them as well, unless `atomic_bits` is 32.
    - `storage_bits`: the smallest unit of memory access, 8 or 32. Scalars keep their dtypes.
    - `atomic_bits`: the most bits of an integer on which the device has atomics, 64 or 32.
    - `reductions`: True if the backend compiles reduce loops. False: they come as folds over
      private arrays of lanes.
    """

    dtypes: frozenset[DType] = frozenset((bool_, *INTEGERS, *FLOATS))  # dtypes of buffers
    native_halves: frozenset[DType] = frozenset()
    exact_division: bool = True  # float32 div and sqrt round correctly
    float64: bool = True
    fma: bool = True  # there is an fma that rounds once
    fma64: bool | None = None  # there is one of float64; None: as `fma`
    contraction: bool = False  # a product may be fused, unasked, with a sum that uses it
    # The compiler may rewrite operations with a constant 0 ("zeros"), or all of floats ("free").
    algebra: Literal["exact", "zeros", "free"] = "exact"
    denormals: bool = True  # float32 arithmetic keeps them
    nan: bool = True  # float arithmetic keeps infinities and NaN
    concurrency: int = 1  # independent grid points that keep the device busy
    # Bytes of a first-level cache: a grid point writes and rereads them at little cost, and its
    # loops are as quick as neighbouring points. 0 if points share such memory.
    near: int = 0
    max_buffers: int = 0  # the most that a kernel may have; 0: no limit, else BUFFERS_MIN or more
    max_buffer: int = 0  # bytes of the largest buffer; 0: no limit, else BUFFER_BYTES_MIN or more
    offset_alignment: int = 1  # bytes: the offsets of a launch's buffers are multiples of it
    # True: the backend binds whole allocations, and gives kernels the first element of each buffer
    offset_params: bool = False
    # Most points of a launch along each axis, the last axis last; no more axes. (): no limit
    max_grid: tuple[int, ...] = ()
    # Most iterations of one point in one launch, all loops together. 0: no limit, else
    # ITERATIONS_MIN or more
    max_iterations: int = 0
    index_bits: int = 64  # of indices and sizes in kernels: 32 if the device has no more
    int64: bool = True  # False: 64-bit integers, which `dtypes` still has, come as two words
    storage_bits: int = 8  # the smallest unit of memory access: 32 if there are only words
    atomic_bits: int = 64  # of the largest integers that atomics change: 32 if those of 64 lack
    reductions: bool = True  # kernels may have reduce loops

    @property
    def has_fma64(self) -> bool:
        """Return True if the device has an fma of float64."""
        return self.fma if self.fma64 is None else self.fma64

    @property
    def hiding_zeros(self) -> tuple[int, ...]:
        """The integers that each launch brings to hide floats from the compiler: zeros."""
        if self.algebra == "free":
            return (0, 0)
        return (0,) if self.contraction or self.algebra == "zeros" else ()

    @property
    def changes_launches(self) -> bool:
        """Return True if launches need aligned offsets, split grids or extra integers."""
        has_limits = self.offset_alignment > 1 or self.max_grid != ()
        return has_limits or self.hiding_zeros != () or not self.int64

    @property
    def divides_launches(self) -> bool:
        """Return True if a bound launch may be several launches of the backend."""
        return self.changes_launches or self.max_iterations > 0

    @property
    def has_launch_limits(self) -> bool:
        """Return True if `backend.limits` must bind launches; else the backend binds them."""
        return self.divides_launches or self.offset_params or self.index_bits == 32

    @property
    def plan_buffers(self) -> int:
        """The most buffers of a kernel that is not in parts, which have one buffer more."""
        return self.max_buffers - (self.max_iterations > 0 < self.max_buffers)

    def __post_init__(self) -> None:
        if self.algebra not in ("exact", "zeros", "free"):
            raise ArgumentError(
                f'Capabilities: algebra must be "exact", "zeros" or "free", got {self.algebra!r}'
            )
        if self.algebra == "free" and self.float64 and not self.int64:
            raise ArgumentError(
                'Capabilities: float64 must be False if algebra is "free" and int64 is False, got '
                "float64=True; without int64, float arithmetic computes the bits of a float64"
            )
        alignment, most = self.offset_alignment, self.max_grid
        if alignment < 1 or alignment & (alignment - 1):
            raise ArgumentError(
                f"Capabilities: offset_alignment must be a power of two, in bytes, got {alignment}"
            )
        if any(n < 1 for n in most):
            raise ArgumentError(
                f"Capabilities: max_grid must hold a positive number for each axis, got {most}"
            )
        if self.index_bits not in (32, 64):
            raise ArgumentError(f"Capabilities: index_bits must be 32 or 64, got {self.index_bits}")
        if self.index_bits == 32 and alignment > NARROW_ALIGNMENT_MAX:
            raise ArgumentError(
                f"Capabilities: offset_alignment must be at most {NARROW_ALIGNMENT_MAX} with "
                f"index_bits=32, got {alignment}"
            )
        if not self.int64 and self.index_bits != 32:
            raise ArgumentError(
                f"Capabilities: index_bits must be 32 if int64 is False, got {self.index_bits}"
            )
        if self.offset_params and alignment != 1:
            raise ArgumentError(
                "Capabilities: offset_alignment must be 1 if offset_params is True, got "
                f"{alignment}"
            )
        if self.offset_params and self.index_bits == 32 and not 0 < self.max_buffer <= 1 << 31:
            raise ArgumentError(
                "Capabilities: max_buffer must be at most 1 << 31 bytes with offset_params and "
                f"index_bits=32, whose indices reach all of it, got {self.max_buffer}"
            )
        aligned = alignment >= 4 or self.offset_params
        if self.storage_bits not in (8, 32) or (self.storage_bits == 32 and not aligned):
            raise ArgumentError(
                "Capabilities: storage_bits must be 8, or 32 with offset_alignment 4 or more or "
                f"offset_params, got storage_bits={self.storage_bits}, offset_alignment={alignment}"
            )
        if self.atomic_bits not in (32, 64):
            raise ArgumentError(
                f"Capabilities: atomic_bits must be 32 or 64, got {self.atomic_bits}"
            )
        if self.max_buffers and self.plan_buffers < BUFFERS_MIN:
            least = BUFFERS_MIN + self.max_buffers - self.plan_buffers
            raise ArgumentError(
                f"Capabilities: max_buffers must be 0 (no limit) or at least {least}, got "
                f"{self.max_buffers}"
            )
        if self.max_buffer and self.max_buffer < BUFFER_BYTES_MIN:
            raise ArgumentError(
                f"Capabilities: max_buffer must be 0 (no limit) or at least {BUFFER_BYTES_MIN} "
                f"bytes, got {self.max_buffer}"
            )
        if self.max_iterations and self.max_iterations < ITERATIONS_MIN:
            raise ArgumentError(
                f"Capabilities: max_iterations must be 0 (no limit) or at least {ITERATIONS_MIN}, "
                f"got {self.max_iterations}"
            )
