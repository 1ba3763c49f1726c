"""A pytest plugin that puts the double where dovetail-cuda would find the driver: `-p
cuda_double.plugin`, with the folder `tests` on PYTHONPATH."""

from __future__ import annotations

import gc
import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from dovetail.device_class import opened_devices
from dovetail.engine.programs import holders
from dovetail.fft import twiddles

from . import driver, nvrtc

TESTS = Path(__file__).parent.parent


def install() -> None:
    """From now on dovetail_cuda talks to the double, in this process and in its children."""
    room = importlib.import_module("dovetail_cuda.driver")
    room.driver, room.nvrtc = driver, nvrtc  # type: ignore[attr-defined]
    others = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(TESTS / "cuda_double/children"), str(TESTS), *others]
    )


@contextmanager
def installed() -> Iterator[None]:
    """The same, for a while."""
    room = importlib.import_module("dovetail_cuda.driver")
    with patch.multiple(room, driver=driver, nvrtc=nvrtc), patch.dict(os.environ):
        install()
        yield
        for device in opened_devices():  # nobody may come across them without the double
            if device.type == "cuda":
                device.opened = None
        # Plans and tables hold on to the device, whose memory is given back by the double.
        for cache in (*holders, twiddles._tables):
            cache.age()
            cache.age()
        gc.collect()


def pytest_addoption() -> None:
    """Installs: this hook is called before the device under test is opened."""
    install()
