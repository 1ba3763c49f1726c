"""Products in tiles on the driver double: the bits of the reference, in every form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("cuda.bindings", reason="cuda-bindings is not installed")
pytest.importorskip("dovetail_cuda", reason="dovetail-cuda is not installed")

import dovetail as dt
from cuda_double import plugin as double
from dovetail.device_class import device
from dovetail.memory import make_allocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail_cuda import plugin, render, schedule
from staged_cases import CASES, bits, check_product_with_epilogue
from test_cuda_kernels import CudaHost

Staging = tuple[Any, CudaHost, list[str]]


@pytest.fixture(scope="module")
def staging() -> Iterator[Staging]:
    """Yield a device that stages every product, a host of kernels, and the schedules launched."""
    best, chosen = schedule.best, list[str]()

    def record(*sizes: Any) -> str:
        chosen.append(best(*sizes))
        return chosen[-1]

    with double.installed(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(schedule, "STAGED_POINTS_MIN", 0)
        patch.setattr(schedule, "best", record)
        patch.setattr(render, "_BLOCKS_YZ_MAX", 1)  # so that a block computes several tiles
        (info, *_) = plugin.dovetail_probe({})  # type: ignore[misc]  # the double has a GPU
        backend, dev = plugin.dovetail_open(info, {}), device("staging")
        dev.opened = OpenedDevice(backend, make_allocator(dev, backend), dev, {})
        yield dev, CudaHost(backend), chosen
        dev.opened = None


@pytest.mark.parametrize("case", CASES)
def test_staged_products_have_the_reference_bits(staging: Staging, case: str) -> None:
    dev, _, chosen = staging
    chosen.clear()
    with dt.vendor_products(False):
        result, expected = bits(CASES[case](dev)), bits(CASES[case]("reference"))
    assert result.tobytes() == expected.tobytes()
    assert schedule.STAGED in chosen


def test_staged_kernel_with_epilogue_has_the_reference_bits(staging: Staging) -> None:
    _, host, _ = staging
    check_product_with_epilogue(host)
    assert host.launched == {schedule.STAGED}
