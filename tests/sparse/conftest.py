"""The devices of all sparse tests."""

from __future__ import annotations

from collections.abc import Iterator

import dovetail as dt
import pytest


def here(name: str) -> bool:
    """Return True if a device can be used on this machine."""
    return any(d.type == name for d in dt.devices())


@pytest.fixture(params=["reference", "cpu"])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    """Yield a device, which is also the default one while the test runs."""
    if not here(request.param):
        pytest.skip(f"there is no {request.param} device: pip install dovetail-cpu-llvm")
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)
