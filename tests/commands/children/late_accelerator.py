"""Checks of ordering on the generated accelerator "toyq", which executes its queue late."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.extend import Kernel, KernelBuilder, float32, load
from dovetail.plugins.registry import open_device

N = 50_000
backend: Any = open_device("toyq").backend


def overwritten() -> bool:
    """Return True if y = x + 1 has read z, which takes the memory of x after its death."""
    x = dt.asarray(np.ones(N, np.float32), device="toyq")
    y = x + 1
    dt.evaluate(y)
    del x
    z = [dt.asarray(np.full(N, 7, np.float32), device="toyq") for _ in range(3)]
    assert all((each.numpy() == 7).all() for each in z)
    return bool((y.numpy() != 2).any())


def unordered_copy_in(handle: int, offset: int, source: memoryview, stream: object = None) -> None:
    """Copy in without waiting for the queue."""
    backend._context._bytes(handle, offset, offset + source.nbytes)[:] = np.frombuffer(source, "B")


def raised(call: Callable[[], object]) -> str:
    """Return the message of the DeviceError that this call raises."""
    try:
        call()
    except dt.DeviceError as error:
        return str(error)
    return ""


def kernel() -> Kernel:
    b = KernelBuilder("halved")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) * 0.5)
    return b.build()


def raw(array: Any) -> memoryview:
    return memoryview(array).cast("B")


def copies_in_are_in_order() -> None:
    assert not any(overwritten() for _ in range(6))
    backend.copy_in = unordered_copy_in
    assert any(overwritten() for _ in range(6)), "a wrong order does not show"
    del backend.copy_in


def streams_wait_for_events() -> None:
    one, two, memory = backend.create_stream(), backend.create_stream(), backend.allocate(800)
    found, source = np.zeros(100, np.int64), np.arange(100)
    start = backend.record_event(one)
    backend.copy_in(memory, 0, raw(source), one)
    source[:] = -1  # it may be changed at once
    backend.copy_in(memory, 400, raw(np.zeros(50, np.int64)), one)
    mark = backend.record_event(one)
    assert not backend.event_done(mark)
    backend.wait_event(two, mark)
    backend.copy_out(raw(found), memory, 0, two)
    assert backend.event_done(mark) and backend.elapsed_ms(start, mark) > 0
    assert found.tolist() == [*range(50)] + [0] * 50
    backend.free(memory, 800)


def errors_come_where_something_waits() -> None:
    stream, memory = backend.create_stream(), backend.allocate(800)
    waits: list[Callable[[], object]] = [
        backend.synchronize,
        lambda: backend.synchronize(stream),
        lambda: backend.wait_event(None, backend.record_event(stream)),
        lambda: backend.copy_out(raw(np.zeros(9)), memory, 0, stream),
    ]
    for wait in waits:
        backend.copy_in(memory, 796, memoryview(bytes(8)), stream)  # beyond its end
        said = raised(wait)
        assert said.startswith("toyq:0: queued work failed: bytes 796 to 804"), said
        assert not raised(wait), "it is said once"
    backend.free(memory, 800)
    try:
        backend.allocate(1 << 50)
    except MemoryError as error:
        assert "bytes left" in str(error)


def a_queued_launch_keeps_its_program() -> None:
    made, x = kernel(), np.arange(100, dtype=np.float32)
    memory, stream, found = backend.allocate(800), backend.create_stream(), np.zeros_like(x)
    program = backend.load(made, backend.compile(made).binary)
    gc.collect()
    text = Path("/proc/self/maps")
    here = text.exists() and text.read_text().count("kernel.so")
    backend.copy_in(memory, 0, raw(x), stream)
    backend.launch(program, (memory, 0, memory, 400), (100,), (), (100,), stream)
    del program
    backend.copy_out(raw(found), memory, 400, stream)
    gc.collect()
    assert (found == x / 2).all()
    assert not here or text.read_text().count("kernel.so") < here, "its code is still loaded"
    backend.free(memory, 800)


def children_of_fork_are_told() -> None:
    if hasattr(os, "fork"):
        child = os.fork()
        if not child:
            said = raised(lambda: dt.ones(3, device="toyq").numpy())
            os._exit(0 if "fork" in said else 1)
        assert os.waitpid(child, 0)[1] == 0


def closing_ends_the_queues() -> None:
    backend.synchronize()
    backend.close()
    assert threading.active_count() == 1


copies_in_are_in_order()
streams_wait_for_events()
errors_come_where_something_waits()
a_queued_launch_keeps_its_program()
children_of_fork_are_told()
closing_ends_the_queues()
print("in order")
