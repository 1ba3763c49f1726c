"""What many tests need: the devices on which the public functions are tested."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from importlib.util import find_spec

import dovetail as dt
import pytest
from dovetail.testing.verified import verified_kernels
from installed import INSTALLED
from places import PACKAGES

__all__ = ["device", "verified_kernels"]

sys.path += map(str, PACKAGES)

# Where PyData's sparse is not installed Dask would take the folder of that name in a checkout for
# it; in processes of its own it still does.
_sparse = find_spec("sparse")
if _sparse is not None and _sparse.origin is None:
    sys.modules["sparse"] = None  # type: ignore[assignment]  # no module is imported by this name
    collect_ignore = ["functions/test_dask_distributed.py"]

pytest.register_assert_rewrite("captured", "cstyle_cases", "fake_device")


@pytest.fixture(scope="module", autouse=True)
def settled_heap() -> None:
    """No search for garbage looks at what other modules have left: that would take a second."""
    gc.collect()
    gc.freeze()


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
