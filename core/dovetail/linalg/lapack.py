"""LAPACK routines of the host (`ops.host_routines`) for tensors of every device.

Matrices are copied to and from the host, unless it shares its memory with the device. Each
call is counted (`engine.events`) and recorded in a profile with the bytes that it moved. In a
captured function it is a step of the program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from ..device_class import opened
from ..dtypes import dtype as dtype_of
from ..engine import events, tracer_api
from ..functions.elementwise import op_functions as ew
from ..functions.io.interop import address, wrap_memory
from ..functions.reductions.statistics import all as all_
from ..ops.host_routines import HostCall, HostRoutine
from ..ops.table import COPY
from ..settings import flags
from ..tensor.host import (
    evaluate,
    evaluate_leaf,
    from_host,
    host_array,
    numpy,
    reachable_address,
)
from ..tensor.host_reductions import OPS as HOST_REDUCTIONS
from ..tensor.host_reductions import reduce as reduce_on_host
from ..tensor.primitives import apply
from ..tensor.tensor import Tensor, create_tensor

# bytes: smaller results are copied into memory of the device's allocator
SHARED_BYTES_MIN = 1 << 16
HOST_CHECK_ELEMENTS_MAX = 1 << 12  # so few elements are checked by the host, not by a kernel


def call_routine(
    name: str, routine: HostRoutine, *operands: Tensor, options: tuple[Any, ...] = ()
) -> tuple[Tensor, ...]:
    """Call a routine on the host, for operands with equal batch axes, or record it in a capture.

    The results are on the device of the first operand.

    Errors name `name`. Raises: LinAlgError, OutOfMemoryError.
    """
    many = tracer_api.call_batched(partial(call_routine, name, routine, options=options), operands)
    if many is not None:
        return tuple(many)
    host = HostCall(name, routine, options)
    recorded_results = _record_call(host, operands)
    if recorded_results is not None:
        return recorded_results
    start = time.perf_counter_ns()
    arrays = [numpy(x) for x in operands]
    results = host(arrays)
    tensors = tuple([_wrap_host_array(a, operands[0]) for a in results])
    events.counters.calls += 1
    shared = opened(operands[0].device).backend.host
    bytes_moved = 0 if shared else sum(a.nbytes for a in (*arrays, *results))
    events.note(f"call linalg.{name} on the host", start, bytes=bytes_moved)
    return tensors


def verify_result(
    host: HostCall, kernel_result: Tensor, *matrices: Tensor, target: Tensor | None = None
) -> Tensor:
    """Evaluate a kernel's result; return it if LAPACK accepts the matrices where it is not finite.

    `target`: the tensor to return instead, with the values of `host.fallback` at the matrices that
    LAPACK refuses. Raises: LinAlgError for these without a target.
    """
    if target is None and is_finite_on_host(kernel_result):
        return kernel_result
    result = kernel_result if target is None else target
    extra = () if target is None else (target,)
    many = tracer_api.call_batched(
        partial(_verify_batched, host, target is not None), (*extra, kernel_result, *matrices)
    )
    if many is not None:
        return many[0]
    fine = all_(ew.isfinite(kernel_result))
    evaluate(kernel_result, fine, *extra)
    operands = (fine, kernel_result, *extra, *matrices)
    if _record_call(host, operands, target) is None:
        replacement = host(map(numpy, operands))
        result = _wrap_host_array(replacement[0], result) if replacement else result
    return result


def is_finite_on_host(x: Tensor) -> bool:
    """Evaluate a tensor of few elements; return True if the host sees that all are finite.

    Return False where the host does not reach the memory, and where a tracer or a profile observes
    launches.
    """
    if flags.captures or flags.is_observed or x.size > HOST_CHECK_ELEMENTS_MAX:
        return False
    dtype = x.dtype.__numpy_dtype__
    if dtype is None or not reachable_address(evaluate_leaf(x)):
        return False
    total = reduce_on_host(HOST_REDUCTIONS["sum"], (x,), {})  # in a quarter of the time
    if total is not None and math.isfinite(total):
        return True
    return bool(np.isfinite(host_array(x, dtype)).all())


def _verify_batched(host: HostCall, replaces: bool, *tensors: Tensor) -> list[Tensor]:
    """Call `verify_result` on batches: the target if `replaces`, the kernel's result, matrices."""
    return [verify_result(host, *tensors[replaces:], target=tensors[0] if replaces else None)]


def _record_call(
    host: HostCall, operands: Sequence[Tensor], target: Tensor | None = None
) -> tuple[Tensor, ...] | None:
    """Record the call in the current capture and return its results; None if nothing records."""
    recorder = tracer_api.current()
    if recorder is None:
        return None
    leaves = [evaluate_leaf(_make_dense(x)) for x in operands]
    results = recorder.call_host(host, leaves, None if target is None else evaluate_leaf(target))
    return None if results is None else tuple(map(create_tensor, results))


def _make_dense(x: Tensor) -> Tensor:
    """Evaluate a tensor; return it if it is contiguous, else a pending contiguous copy."""
    evaluate_leaf(x)
    return x if x.is_contiguous() else apply(COPY, (x,))


def _wrap_host_array(a: np.ndarray, like: Tensor) -> Tensor:
    """Return host values as a tensor of the device, over their own memory if they are large."""
    dtype = dtype_of(a.dtype)
    assert dtype.part is like.dtype.part, "a routine of another precision"
    if a.nbytes >= SHARED_BYTES_MIN and a.flags.c_contiguous and a.flags.writeable:
        strides = tuple(s // a.itemsize for s in a.strides)
        shared = wrap_memory(a, address(a), a.shape, strides, dtype, like.device, False)
        if shared is not None:
            return shared
    return from_host(a, dtype, like.device)
