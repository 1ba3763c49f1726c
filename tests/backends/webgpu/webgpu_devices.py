"""The WebGPU devices that the tests find, opened apart from those of `dt`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from dovetail.device_class import Device, device
from dovetail.extend import DeviceInfo, Unavailable, parse_kernel
from dovetail.memory import make_allocator
from dovetail.plugins.device_handle import OpenedDevice

pytest.importorskip("dovetail_webgpu", reason="dovetail-webgpu is not installed")

from dovetail_webgpu import plugin

FOUND = plugin.dovetail_probe({})
DEVICES = [] if isinstance(FOUND, Unavailable) else list(FOUND)
NAMES = [d.name.split(" ")[0] for d in DEVICES]
REASON = "no WebGPU device: pip install wgpu; apt install mesa-vulkan-drivers"
_numbers = itertools.count()  # plans are cached by device name

ADD = """kernel add(x: r f32, out: w f32; n, at0, at1; c: f32) grid(n) index i32 {
  v0: i32 = add i0, at0
  v1: f32 = load x[v0]
  v2: f32 = add v1, c
  v3: i32 = add i0, at1
  store out[v3] = v2
}"""


@contextmanager
def opened(info: DeviceInfo) -> Iterator[tuple[Device, Any]]:
    """Yield a separate device on this hardware, with an allocator whose statistics start at 0."""
    backend: Any = plugin.dovetail_open(info, {})
    dev = device(f"again{next(_numbers)}")
    dev.opened = OpenedDevice(backend, make_allocator(dev, backend), dev, {})
    try:
        yield dev, backend
    finally:
        dev.opened = None
        backend.close()


def compile_add(backend: Any) -> Any:
    """Return the program of ADD, which takes the first elements of its buffers."""
    kernel = parse_kernel(ADD)
    object.__setattr__(kernel, "offset_ints", (("at0", 4), ("at1", 4)))
    return backend.compile(kernel)


def read_floats(backend: Any, handle: Any, count: int) -> np.ndarray:
    """Return the first floats of a block of memory."""
    out = np.zeros(count, "f4")
    backend.copy_out(memoryview(out).cast("B"), handle, 0, None)
    return out
