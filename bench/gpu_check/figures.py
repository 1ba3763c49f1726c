"""What is measured on one device: `python figures.py DEVICE [--elements N]` prints JSON.

Work is queued many times over and waited for once; a time is the median of several such rounds.
Rates count the bytes that the work must read and write.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.engine.evaluate import counters
from dovetail.plugins.registry import open_device

ROUNDS = 7
SAMPLE = 0.1  # seconds of work in a round
Work = Callable[[], Any]
Wait = Callable[[], None]


def seconds(work: Work, wait: Wait) -> float:
    """Seconds that `work` takes the device, results freed at once."""
    for _ in range(3):
        work()
    wait()
    begun = time.perf_counter()
    work()
    wait()
    repeats = max(1, min(1000, int(SAMPLE / max(time.perf_counter() - begun, 1e-6))))
    times = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(repeats):
            work()
        wait()
        times.append((time.perf_counter() - begun) / repeats)
    return statistics.median(times)


def chain(xp: Any, x: Any, y: Any) -> Any:
    """Seven elementwise ops; fused they read two arrays and write one."""
    return xp.tanh(x * 2 + y) * x - y / (1 + x * x)


def arithmetic(xp: Any, x: Any, y: Any) -> Any:
    """Four elementwise ops without a function: bound by memory on any device."""
    return (x * 2 + y) * x - y


# name: (the work on the library and its arrays, bytes for each element of x)
WORKS: dict[str, tuple[Callable[[Any, Any, Any], Any], int]] = {
    "x + y": (lambda xp, x, y: x + y, 12),
    "(x * 2 + y) * x - y": (arithmetic, 12),
    "tanh(x * 2 + y) * x - y / (1 + x * x)": (chain, 12),
    "sum": (lambda xp, x, y: xp.sum(x), 4),
    "sum of rows": (lambda xp, x, y: xp.sum(x, 1), 4),
    "sum of columns": (lambda xp, x, y: xp.sum(x, 0), 4),
    "copy of x.T": (lambda xp, x, y: contiguous(xp, x), 8),
}
MATRIX = ("sum of rows", "sum of columns", "copy of x.T")


def contiguous(xp: Any, x: Any) -> Any:
    """A copy of the transpose, in each library's words."""
    if hasattr(xp, "ascontiguousarray"):
        return xp.ascontiguousarray(x.T)
    return x.T.contiguous()


def ours(device: str, a: Any, b: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds by work on the device, and how each result differs from NumPy's."""
    x, y = (dt.asarray(v, device=device) for v in (a, b))
    found, errors = {}, {}
    for name, (work, _) in WORKS.items():
        u = matrix(x) if name in MATRIX else x
        evaluated = lambda u=u, work=work: dt.evaluate(work(dt, u, y))  # noqa: E731
        found[name] = seconds(evaluated, lambda: dt.synchronize(device))
        errors[name] = error(work, u, y)
    return found, errors


def matrix(x: Any) -> Any:
    """The largest square that the elements fill."""
    side = int(len(x) ** 0.5)
    return x[: side**2].reshape((side, side))


def error(work: Any, x: Any, y: Any) -> float:
    """The largest relative difference from NumPy's result in float64."""
    small = slice(None, 1 << 10)
    if x.ndim == 2:
        x = x[small, small]
    else:
        x, y = x[: 1 << 20], y[: 1 << 20]
    mine = np.asarray(work(dt, x, y).numpy(), "f8")
    true = work(np, x.numpy().astype("f8"), y.numpy().astype("f8"))
    return float(np.max(np.abs(mine - true) / np.maximum(np.abs(true), 1)))


def copy_rate(device: str, nbytes: int) -> float:
    """Bytes a second, read and written, of the driver's own copy from device to device."""
    opened = open_device(device)
    backend, (x, y) = opened.backend, [opened.allocator.allocate(nbytes) for _ in range(2)]
    if opened.device.type == "cuda":
        cuda = importlib.import_module("dovetail_cuda.driver")

        def copy() -> None:
            target, source = y.handle + y.offset, x.handle + x.offset
            cuda.unwrap_result(cuda.driver.cuMemcpyDtoDAsync(target, source, nbytes, 0), "copy")
    else:
        cl = importlib.import_module("pyopencl")

        def copy() -> None:
            places = {"src_offset": x.offset, "dst_offset": y.offset, "byte_count": nbytes}
            cl.enqueue_copy(backend.stream, y.handle, x.handle, **places)

    return 2 * nbytes / seconds(copy, backend.synchronize)


def host_rates(device: str, nbytes: int) -> dict[str, float]:
    """Bytes a second between the host and the device, from and to page-locked memory, and not."""
    plain = dt.zeros(nbytes // 4, dtype=dt.float32, device="reference")
    there = dt.asarray(plain, device=device)
    moves: dict[str, Work] = {"to the device": lambda: dt.evaluate(plain.to(device))}
    moves["from the device"] = there.numpy
    if open_device(device).backend.pins_memory:
        pinned = plain.pin_memory(device)
        moves["to the device, pinned"] = lambda: pinned.to(device, non_blocking=True)
        moves["from the device, pinned"] = lambda: there.to("reference", non_blocking=True)
    return {k: nbytes / seconds(w, lambda: dt.synchronize(device)) for k, w in moves.items()}


def latencies(device: str) -> dict[str, float]:
    """Seconds of small things: launches from Python, and a kernel's first use."""
    x = dt.ones(1024, dtype=dt.float32, device=device)
    wait = lambda: dt.synchronize(device)  # noqa: E731
    found = {
        "launch of a cached kernel, recorded and evaluated": queued(
            lambda: dt.evaluate(x * 2 + 1), wait
        ),
        "the same, waited for": seconds(lambda: (dt.evaluate(x * 2 + 1), wait()), wait),
    }
    before, begun = counters.compile_seconds, time.perf_counter()
    dt.evaluate(dt.sin(x) * 3 - dt.cos(x))
    wait()
    found["first use of sin(x) * 3 - cos(x)"] = time.perf_counter() - begun
    found["of that, compiling"] = counters.compile_seconds - before
    return found


def queued(work: Work, wait: Wait, count: int = 500) -> float:
    """Seconds of the host for each of `count` launches, which the device need not have done."""
    times = []
    for _ in range(9):
        wait()
        begun = time.perf_counter()
        for _ in range(count):
            work()
        times.append((time.perf_counter() - begun) / count)
    wait()
    return statistics.median(times)


PRODUCT_DTYPES = (dt.float32, dt.float64, dt.float16)
VENDOR, GENERATED = "the vendor's routine", "generated, in tiles"


def products(device: str, sides: tuple[int, ...]) -> dict[str, dict[str, float]]:
    """Operations a second of square products, by dtype and side, and in each way that there is.

    The generated kernels stage tiles in local memory from 65,536 results on.
    """
    opened = open_device(device)
    return {
        f"{dtype.name}, {n}": product_rates(device, dtype, n)
        for dtype in PRODUCT_DTYPES
        if dtype in opened.backend.info.capabilities.dtypes
        for n in sides
    }


def product_rates(device: str, dtype: dt.DType, n: int) -> dict[str, float]:
    """Operations a second of one product, by the way in which it is computed."""
    numbers = np.random.default_rng(0).standard_normal((n, n)).astype("f4")
    x = dt.asarray(numbers, device=device).astype(dtype)
    ways = {GENERATED: dt.vendor_products(False)}
    if ("matmul", dtype) in open_device(device).library_calls:
        ways = {VENDOR: dt.vendor_products(True)} | ways
    found = {}
    for name, way in ways.items():
        with way:
            took = seconds(lambda: dt.evaluate(x @ x), lambda: dt.synchronize(device))
        found[name] = 2 * n**3 / took
    return found


def peers(a: Any, b: Any) -> dict[str, dict[str, float]]:
    """Seconds by work of CuPy and PyTorch on the same GPU, where they are installed."""
    found = {}
    for name, make in (("cupy", by_cupy), ("torch", by_torch)):
        try:
            xp, x, y, wait = make(a, b)
        except Exception as missing:
            print(f"{name}: {type(missing).__name__}: {missing}", file=sys.stderr)
            continue
        found[name] = _theirs(xp, x, y, wait)
    return found


def _theirs(xp: Any, x: Any, y: Any, wait: Wait) -> dict[str, float]:
    return {
        name: seconds(partial(work, xp, matrix(x) if name in MATRIX else x, y), wait)
        for name, (work, _) in WORKS.items()
    }


def by_cupy(a: Any, b: Any) -> tuple[Any, Any, Any, Wait]:
    """CuPy, the arrays on the GPU, and how to wait."""
    cupy = importlib.import_module("cupy")
    return cupy, cupy.asarray(a), cupy.asarray(b), cupy.cuda.Device().synchronize


def by_torch(a: Any, b: Any) -> tuple[Any, Any, Any, Wait]:
    """PyTorch, likewise."""
    torch = importlib.import_module("torch")
    x, y = (torch.from_numpy(v).cuda() for v in (a, b))
    return torch, x, y, torch.cuda.synchronize


def measure(device: str, elements: int, sides: tuple[int, ...]) -> dict[str, Any]:
    """All figures of one device."""
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(elements, dtype="f4") for _ in range(2))
    times, errors = ours(device, a, b)
    found = {
        "device": open_device(device).backend.info.name,
        "elements": elements,
        "copy rate": copy_rate(device, 4 * elements),
        "seconds": {"dovetail": times},
        "bytes": {name: per * elements for name, (_, per) in WORKS.items()},
        "errors": errors,
        "latencies": latencies(device),
        "host rates": host_rates(device, min(4 * elements, 1 << 28)),
        "products": products(device, sides),
    }
    if device.startswith("cuda"):
        found["seconds"] |= peers(a, b)
    return found


def main() -> None:
    """Prints the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("device")
    parser.add_argument("--elements", type=int, default=1 << 28)
    asked = parser.parse_args()
    memory = open_device(asked.device).backend.info.total_memory
    elements = min(asked.elements, max(memory // 4 // 8, 1024))  # eight such arrays fit
    sides = (512, 1024, 2048, 4096, 8192) if elements >= 1 << 24 else (64,)
    print(json.dumps(measure(asked.device, elements, sides)))


if __name__ == "__main__":
    main()
