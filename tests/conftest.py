"""What many tests need: the devices on which the public functions are tested."""

from __future__ import annotations

from collections.abc import Iterator

import dovetail as dt
import pytest
from dovetail.testing.verified import verified_kernels
from installed import INSTALLED

__all__ = ["device", "verified_kernels"]

pytest.register_assert_rewrite("cstyle_cases", "fake_device")


@pytest.fixture(params=["reference", "cpu"])
def device(request: pytest.FixtureRequest) -> Iterator[dt.Device]:
    """A device, which is also the default one while the test runs."""
    if request.param != "reference" and request.param not in INSTALLED:
        pytest.skip(
            f"the backend for {request.param} is not installed: pip install dovetail-cpu-llvm"
        )
    before = dt.default_device()
    yield dt.set_default_device(request.param)
    dt.set_default_device(before)
