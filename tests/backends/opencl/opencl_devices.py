"""The OpenCL devices that the tests find, and stand-ins with fewer capabilities."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from dovetail.device_class import Device, device
from dovetail.extend import Unavailable, float64
from dovetail.memory import make_allocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail_opencl import plugin
from dovetail_opencl.compile import groups_of
from dovetail_opencl.launch import Launcher

FOUND = plugin.dovetail_probe({})
DEVICES = [] if isinstance(FOUND, Unavailable) else list(FOUND)
NAMES = [d.details["platform"].split("(")[0] for d in DEVICES]
_numbers = itertools.count()  # plans are cached by device name
REASON = "no OpenCL device: dovetail-opencl[cpu]"


class LimitedDevice:
    """A pyopencl device that reports fewer capabilities."""

    def __init__(self, of: Any, **less: Any) -> None:
        self._of, self._less = of, less

    def __getattr__(self, name: str) -> Any:
        return self._less[name] if name in self._less else getattr(self._of, name)


@contextmanager
def opened(info: Any) -> Iterator[tuple[Device, Any]]:
    """Yield a separate device on this hardware, with an allocator whose statistics start at 0."""
    backend, dev = plugin.dovetail_open(info, {}), device(f"again{next(_numbers)}")
    dev.opened = OpenedDevice(backend, make_allocator(dev, backend), dev, {})
    try:
        yield dev, backend
    finally:
        dev.opened = None
        backend.close()


@contextmanager
def bare(info: Any, group: int) -> Iterator[tuple[Device, Any]]:
    """Yield the hardware with reduced capabilities.

    It has no float64, float16, exact division, host-mapped memory, nor groups of more than `group`
    work items.
    """
    can = info.capabilities
    less = replace(
        can, dtypes=can.dtypes - {float64}, float64=False, native_halves=frozenset(),
        exact_division=False,
    )  # fmt: skip
    with opened(replace(info, capabilities=less)) as (dev, backend):
        lesser: Any = LimitedDevice(backend.device, max_work_group_size=group)
        backend.launcher = Launcher(backend.stream, lesser, backend.process)
        backend.compiler.groups = groups_of(lesser)
        backend.memory.shared = False
        backend.dlpack_type, backend.pins_memory = None, True
        yield dev, backend
