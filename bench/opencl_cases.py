"""The benchmarks of the OpenCL backend, on the device "opencl": beside pyopencl.array and "cpu"."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Sequence
from typing import Any

import dovetail as dt
import numpy as np
from comparison import Result
from comparison_cases import Array, Case, Target, Work
from dovetail.errors import DovetailError
from dovetail_opencl import loader, plugin

ARRAYS, CPU = "pyopencl.array", "dovetail.cpu"
PEERS = (ARRAYS, CPU)
LAUNCH = "opencl: a cached kernel, with evaluation"


def available() -> bool:
    """Whether there is an OpenCL device."""
    try:
        dt.evaluate(dt.ones(1, device="opencl") + 1)
    except DovetailError:
        return False
    return True


def _chain(n: Any, x: Any, y: Any) -> Any:
    return n.tanh(x * 2 + y) * x - y / (1 + x * x)


def _ours(device: str) -> Any:
    def make(*arrays: Array) -> Work:
        x, y = (dt.asarray(a, device=device) for a in arrays)

        def work() -> Any:
            result = _chain(dt, x, y)
            dt.evaluate(result)
            dt.synchronize(device)
            return result

        return work

    return make


class _Result:
    """An array of pyopencl's, read when somebody checks it."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.asarray(self.array.get(), dtype)


def _arrays(*arrays: Array) -> Work:
    device = next(d for p in loader.platforms() for d in plugin.devices_of(p))
    cl, cla, clmath = (importlib.import_module(f"pyopencl{m}") for m in ("", ".array", ".clmath"))
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    x, y = (cla.to_device(queue, a) for a in arrays)

    def work(_alive: Any = context) -> Any:
        result = _chain(clmath, x, y)
        queue.finish()
        return _Result(result)

    return work


def cases(shrink: int) -> list[Case]:
    """The chain of seven ops on 16 M elements."""
    n = (1 << 24) // shrink

    def inputs() -> Sequence[Array]:
        rng = np.random.default_rng(0)
        return [rng.standard_normal(n).astype("f4") for _ in range(2)]

    contestants = {
        "dovetail": _ours("opencl"),
        "numpy": lambda x, y: lambda: _chain(np, x, y),
        CPU: _ours("cpu"),
        ARRAYS: _arrays,
    }
    targets = (Target(ARRAYS, 2), Target(CPU, 0.6))
    return [Case("opencl: chain of 7, 16 M", targets, inputs, contestants, 12 * n)]


def launch(rounds: int = 2000) -> Result:
    """Microseconds for a cached elementwise kernel on 1 K elements, with its evaluation."""
    x = dt.ones(1024, device="opencl")
    taken = []
    for k in range(rounds + 100):
        begun = time.perf_counter()
        dt.evaluate(x + 1)
        if k >= 100:
            taken.append(time.perf_counter() - begun)
        if k % 50 == 49:
            dt.synchronize("opencl")
    median = statistics.median(taken) * 1e6
    return Result(LAUNCH, (Target("", 25, "us"),), value=median)
