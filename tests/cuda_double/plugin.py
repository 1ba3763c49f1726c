"""A pytest plugin that puts the double where dovetail-cuda would find the driver: `-p
cuda_double.plugin`, before any plugin that opens the device."""

from __future__ import annotations

import importlib

from . import driver, nvrtc


def install() -> None:
    """From now on dovetail_cuda talks to the double, in this process."""
    room = importlib.import_module("dovetail_cuda.driver")
    room.driver, room.nvrtc = driver, nvrtc  # type: ignore[attr-defined]


def pytest_addoption() -> None:
    """Installs: this hook is called before the device under test is opened."""
    install()
