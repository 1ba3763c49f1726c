"""A pytest plugin that replaces the driver of dovetail-cuda by the double.

Load it with `-p cuda_double.plugin`, with the folder `tests` on PYTHONPATH.
"""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from dovetail.device_class import opened_devices
from dovetail.engine.programs import program_caches
from dovetail.fft import twiddles

from . import driver, nvrtc

TESTS = Path(__file__).parent.parent


def install() -> None:
    """Make dovetail_cuda use the double, in this process and in its children."""
    room = importlib.import_module("dovetail_cuda.driver")
    room.driver, room.nvrtc = driver, nvrtc  # type: ignore[attr-defined]
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(TESTS / "cuda_double/children"), str(TESTS), *others]
    )


@contextmanager
def installed() -> Iterator[None]:
    """Use the double inside a `with` block."""
    room = importlib.import_module("dovetail_cuda.driver")
    with patch.multiple(room, driver=driver, nvrtc=nvrtc), patch.dict(os.environ):
        install()
        yield
        # other tests must not find these modules without the double
        for device in opened_devices():
            if device.type == "cuda":
                device.opened = None
        # Plans and tables refer to the device, whose memory the double frees.
        for cache in (*program_caches, twiddles._tables):
            cache.age()
            cache.age()
        gc.collect()


def pytest_addoption() -> None:
    """Install the double. pytest calls this hook before the device under test is opened."""
    install()
