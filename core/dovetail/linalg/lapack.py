"""Routines of LAPACK on the host, which NumPy calls, for tensors of every device.

Where host and device share memory nothing is copied, either way; elsewhere the matrices are. Each
call is counted (`engine.events`) and noted in a profile with the bytes that it moved. Errors of
NumPy's name no matrix: here they do.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from ..device import opened
from ..dtypes import dtype as dtype_of
from ..engine import events, recording
from ..errors import LinAlgError, OutOfMemoryError
from ..functions.interop import address, share
from ..tensor.host import from_host, numpy
from ..tensor.tensor import Tensor

Routine: TypeAlias = Callable[..., "np.ndarray | tuple[np.ndarray, ...]"]
SHARED_FROM = 1 << 16  # bytes: smaller results are copied into memory of the device's allocator


class Failure:
    """What is said when a routine fails: what is wrong with the matrix, and a way out."""

    def __init__(self, wrong: str, way_out: str) -> None:
        self.wrong, self.way_out = wrong, way_out

    def error(self, name: str, at: tuple[int, ...], matrix: np.ndarray) -> LinAlgError:
        """The error for one matrix, found at an index of the batch."""
        wrong, way_out = self.wrong, self.way_out
        if not np.isfinite(matrix).all():
            wrong, way_out = "has NaN or infinite elements", "see dt.isfinite"
        return LinAlgError(f"{name}: the matrix{_place(at)} {wrong}; {way_out}")


def _place(at: tuple[int, ...]) -> str:
    return f" at {list(at)} of the batch" if at else ""


SINGULAR = Failure("is singular", "see dt.linalg.pinv and dt.linalg.lstsq")
INDEFINITE = Failure("is not positive definite", "see dt.linalg.eigh")
UNSETTLED = Failure("makes LAPACK's iteration not converge", "scale it, or use float64")


def finite(routine: Routine) -> Routine:
    """A routine that refuses NaN and infinity, of which LAPACK's makes anything, or never ends."""

    def refusing(*arrays: np.ndarray) -> np.ndarray | tuple[np.ndarray, ...]:
        if not np.isfinite(arrays[0]).all():
            raise np.linalg.LinAlgError
        return routine(*arrays)

    return refusing


def call(name: str, failure: Failure, routine: Routine, *given: Tensor) -> tuple[Tensor, ...]:
    """What a routine makes of the values of matrices, whose batches are the same, as tensors.

    Raises: LinAlgError, OutOfMemoryError; CaptureError while a function is captured.
    """
    many = recording.lifted(partial(call, name, failure, routine), given)
    if many is not None:
        return tuple(many)
    recording.refuse(f"dt.linalg.{name} asks LAPACK on the host", *given)
    begun = time.perf_counter_ns()
    arrays = [numpy(x) for x in given]
    try:
        made = attempt(name, failure, routine, arrays)
    except MemoryError:
        raise OutOfMemoryError(
            f"{name}: the host has no memory for what LAPACK makes of shape {given[0].shape}"
        ) from None
    found = tuple([_tensor(a, given[0]) for a in made])
    events.counters.calls += 1
    shared = opened(given[0].device).backend.host
    moved = 0 if shared else sum(a.nbytes for a in (*arrays, *made))
    events.note(f"call linalg.{name} on the host", begun, bytes=moved)
    return found


def attempt(
    name: str, failure: Failure, routine: Routine, arrays: Sequence[np.ndarray]
) -> tuple[np.ndarray, ...]:
    """What a routine makes of host values. Raises: LinAlgError, with the place in the batch.

    The batch is one axis for the routine: NumPy's take fewer axes than arrays have.
    """
    batch = arrays[0].shape[:-2]
    rows = [a.reshape(math.prod(batch), *a.shape[-2:]) for a in arrays]
    try:
        made = _quiet(routine, rows)
    except np.linalg.LinAlgError:
        first = _first_refused(routine, rows)
        at = tuple(map(int, np.unravel_index(first, batch))) if batch else ()
        raise failure.error(name, at, rows[0][first]) from None
    every = made if isinstance(made, tuple) else (made,)
    return tuple([a.reshape((*batch, *a.shape[1:])) for a in every])


def _quiet(routine: Routine, arrays: Sequence[np.ndarray]) -> np.ndarray | tuple[np.ndarray, ...]:
    with np.errstate(all="ignore"):
        return routine(*arrays)


def refuses(routine: Routine, arrays: Sequence[np.ndarray]) -> bool:
    """Whether a routine refuses one of some matrices."""
    try:
        _quiet(routine, arrays)
    except np.linalg.LinAlgError:
        return True
    return False


def _first_refused(routine: Routine, arrays: Sequence[np.ndarray]) -> int:
    """The number of the first matrix that a routine refuses, of a batch in which it refuses one."""
    low, high = 0, len(arrays[0])
    while high - low > 1:
        middle = (low + high) // 2
        if refuses(routine, [a[low:middle] for a in arrays]):
            high = middle
        else:
            low = middle
    return low


def _tensor(a: np.ndarray, like: Tensor) -> Tensor:
    """Values of the host as a tensor of the device, over their own memory where that pays."""
    dtype = dtype_of(a.dtype)
    assert dtype.part is like.dtype.part, "a routine of another precision"
    if a.nbytes >= SHARED_FROM and a.flags.c_contiguous and a.flags.writeable:
        strides = tuple(s // a.itemsize for s in a.strides)
        found = share(a, address(a), a.shape, strides, dtype, like.device, False)
        if found is not None:
            return found
    return from_host(a, dtype, like.device)
