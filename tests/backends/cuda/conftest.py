"""Skip the tests of the driver double if it cannot be built."""

from __future__ import annotations

import shutil
import sys

import pytest

NEEDED = ("cc", "ld")
ON_THE_DOUBLE = ("double", "gpu_check", "kernels", "matmul", "on_double", "cuda_staging")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests and give the reason."""
    missing = [name for name in NEEDED if shutil.which(name) is None]
    if sys.platform == "linux" and not missing:
        return
    what = f"it needs {' and '.join(missing)}" if missing else f"it is not for {sys.platform}"
    skip = pytest.mark.skip(reason=f"the double of CUDA's driver cannot be built here: {what}")
    for item in items:
        if item.path.parent.name == "cuda" and item.path.stem in [
            f"test_{n}" for n in ON_THE_DOUBLE
        ]:
            item.add_marker(skip)
