"""Routines of the host (`ops.host_routines`) for tensors of every device.

Where host and device share memory nothing is copied, either way; elsewhere the matrices are. Each
call is counted (`engine.events`) and noted in a profile with the bytes that it moved. In a captured
function it is a step of the program.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..device_class import opened
from ..dtypes import dtype as dtype_of
from ..engine import events, recording
from ..functions.elementwise import op_functions as ew
from ..functions.io.interop import address, share
from ..functions.reductions.statistics import all as all_
from ..ops.host_routines import HostCall, HostRoutine
from ..ops.table import COPY
from ..tensor.host import evaluate, evaluated, from_host, numpy
from ..tensor.tensor import Tensor, make
from ..tensor.verbs import apply

SHARED_FROM = 1 << 16  # bytes: smaller results are copied into memory of the device's allocator


def call(
    name: str, routine: HostRoutine, *given: Tensor, options: tuple[Any, ...] = ()
) -> tuple[Tensor, ...]:
    """Return what a routine makes of matrices, whose batches are the same; errors name `name`.

    Raises: LinAlgError, OutOfMemoryError.
    """
    many = recording.call_batched(partial(call, name, routine, options=options), given)
    if many is not None:
        return tuple(many)
    host = HostCall(name, routine, options)
    noted = _noted(host, given)
    if noted is not None:
        return noted
    begun = time.perf_counter_ns()
    arrays = [numpy(x) for x in given]
    made = host(arrays)
    found = tuple([_tensor(a, given[0]) for a in made])
    events.counters.calls += 1
    shared = opened(given[0].device).backend.host
    moved = 0 if shared else sum(a.nbytes for a in (*arrays, *made))
    events.note(f"call linalg.{name} on the host", begun, bytes=moved)
    return found


def checked(host: HostCall, made: Tensor, *given: Tensor, into: Tensor | None = None) -> Tensor:
    """Return what a kernel has made, computed now; if it is not finite, LAPACK tries the matrices.

    `into`: what is returned instead; where LAPACK refuses a matrix it has the values that
    `host.instead` gives. Raises: LinAlgError.
    """
    result = made if into is None else into
    known = () if into is None else (into,)
    many = recording.call_batched(
        partial(_checked_many, host, into is not None), (*known, made, *given)
    )
    if many is not None:
        return many[0]
    fine = all_(ew.isfinite(made))
    evaluate(made, fine, *known)
    operands = (fine, made, *given)
    if _noted(host, operands, into) is None:
        replaced = host(map(numpy, operands))
        result = _tensor(replaced[0], result) if replaced else result
    return result


def _checked_many(host: HostCall, replaces: bool, *given: Tensor) -> list[Tensor]:
    """`checked`, of what examples have made, and were given."""
    return [checked(host, *given[replaces:], into=given[0] if replaces else None)]


def _noted(
    host: HostCall, operands: Sequence[Tensor], into: Tensor | None = None
) -> tuple[Tensor, ...] | None:
    """Return the results of a step of the function that is captured; None if none is."""
    recorder = recording.current()
    if recorder is None:
        return None
    leaves = [evaluated(_dense(x)) for x in operands]
    made = recorder.call_host(host, leaves, None if into is None else evaluated(into))
    return None if made is None else tuple(map(make, made))


def _dense(x: Tensor) -> Tensor:
    """The tensor in memory without gaps."""
    evaluated(x)
    return x if x.is_contiguous() else apply(COPY, (x,))


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
