"""The devices on which user kernels are tested: all that are installed, and CUDA's double."""

from __future__ import annotations

import gc
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count

import dovetail as dt
import pytest

THERE = {str(d) for d in dt.devices()}
DOUBLE = "cuda on the double"
_numbers = count(90)  # a name that was not used before
DEVICES = [*sorted({"reference", "cpu", *(d for d in THERE if not d.startswith("cuda"))}), DOUBLE]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    """Yield a device, which is also the default one while the test runs."""
    if request.param == DOUBLE:
        with on_double() as found:
            yield from as_default(found)
    elif request.param in THERE:
        yield from as_default(request.param)
    else:
        pytest.skip(f"{request.param} is not installed: pip install dovetail-cpu-llvm")


def as_default(device: dt.Device | str) -> Iterator[dt.Device]:
    before = dt.default_device()
    try:
        yield dt.set_default_device(device)
    finally:
        dt.set_default_device(before)


@contextmanager
def on_double() -> Iterator[dt.Device]:
    """Yield a device of the double of CUDA's driver, which runs work late, in any legal order."""
    lacking = [n for n in ("dovetail_cuda", "cuda") if find_spec(n) is None]
    lacking += [n for n in ("cc", "ld") if shutil.which(n) is None]
    if lacking or sys.platform != "linux":
        pytest.skip(f"CUDA's double needs Linux and {', '.join(lacking)}")
    from cuda_double import driver, plugin
    from dovetail.memory import CachingAllocator
    from dovetail.plugins.device_handle import OpenedDevice
    from dovetail_cuda import plugin as cuda_plugin

    with plugin.installed():
        driver.reset(seed=1)
        (info,) = cuda_plugin.dovetail_probe({})  # type: ignore[misc]  # it is there
        backend, device = cuda_plugin.dovetail_open(info, {}), dt.device(f"cuda:{next(_numbers)}")
        allocator = CachingAllocator(backend, device)
        device.opened = OpenedDevice(backend, allocator, device, backend.library_calls())
        del allocator, backend  # while the double is installed
        yield device
        gc.collect()
        device.opened = None
        gc.collect()
