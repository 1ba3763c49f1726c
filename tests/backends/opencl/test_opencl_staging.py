"""Products in tiles on every OpenCL device here: the bits of the reference, in every form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("pyopencl", reason="pyopencl is not installed")
pytest.importorskip("dovetail_opencl", reason="dovetail-opencl is not installed")

from dovetail.device_class import Device
from dovetail_opencl import schedule
from dovetail_opencl.compile import Compiler
from opencl_devices import DEVICES, NAMES, REASON, opened
from staged_cases import CASES, bits, check_product_with_epilogue
from test_opencl_kernels import OpenCLHost

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(scope="module", params=[True, False], ids=["vectors", "items"])
def vectors(request: pytest.FixtureRequest) -> bool:
    """Return True if tiles are those for compilers that make vectors of work items."""
    return bool(request.param)


@pytest.fixture(scope="module", params=DEVICES, ids=NAMES)
def staging_device(
    request: pytest.FixtureRequest, vectors: bool
) -> Iterator[tuple[Device, Any, list[str]]]:
    """Yield a device that stages every product, its backend, and the schedules of its launches."""
    best, chosen = Compiler.best, list[str]()

    def record(self: Compiler, *sizes: Any) -> str:
        chosen.append(best(self, *sizes))
        return chosen[-1]

    with pytest.MonkeyPatch.context() as patch, opened(request.param) as (dev, backend):
        patch.setattr(schedule, "stages_wider_values", lambda kernel: True)
        patch.setattr(Compiler, "best", record)
        groups = replace(backend.compiler.groups, vectors=vectors, staged_points_min=0)
        backend.compiler.groups = groups
        yield dev, backend, chosen


@pytest.mark.parametrize("case", CASES)
def test_staged_products_have_the_reference_bits(
    staging_device: tuple[Device, Any, list[str]], case: str
) -> None:
    dev, _, chosen = staging_device
    chosen.clear()
    result, expected = bits(CASES[case](dev)), bits(CASES[case]("reference"))
    assert result.tobytes() == expected.tobytes()
    assert schedule.STAGED in chosen


def test_staged_kernel_with_epilogue_has_the_reference_bits(
    staging_device: tuple[Device, Any, list[str]],
) -> None:
    _, backend, chosen = staging_device
    chosen.clear()
    check_product_with_epilogue(OpenCLHost(backend))
    assert chosen == [schedule.STAGED]
