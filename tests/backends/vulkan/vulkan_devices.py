"""The Vulkan devices that the tests find, opened apart from those of `dt`."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from dovetail.device_class import Device, device
from dovetail.extend import DeviceInfo, Unavailable, parse_kernel
from dovetail.memory import make_allocator
from dovetail.plugins.device_handle import OpenedDevice

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from dovetail_vulkan import plugin

FOUND = plugin.dovetail_probe({})
DEVICES = [] if isinstance(FOUND, Unavailable) else list(FOUND)
NAMES = [d.name.split(" ")[0] for d in DEVICES]
REASON = "no Vulkan device: apt install libvulkan1 mesa-vulkan-drivers"
_numbers = itertools.count()  # plans are cached by device name

ADD = """kernel add(x: r f32, out: w f32; n; c: f32) grid(n) {
  v0: f32 = load x[i0]
  v1: f32 = add v0, c
  store out[i0] = v1
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


def compile_text(backend: Any, text: str) -> Any:
    """Return the program of a kernel's text, which is legal as it is."""
    return backend.compile(parse_kernel(text))


def read_floats(backend: Any, handle: int, count: int, stream: Any = None) -> np.ndarray:
    """Return the first floats of a block of memory."""
    out = np.zeros(count, "f4")
    backend.copy_out(memoryview(out).cast("B"), handle, 0, stream)
    return out


def run_python(script: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a new process, with further variables in its environment."""
    path = os.pathsep.join(p for p in sys.path if p)
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": path, **environ},
    )  # fmt: skip
