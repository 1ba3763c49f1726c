"""Capabilities that the plugin reports for devices with incomplete floats, on stand-ins for
pyopencl's.
"""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.extend import Capabilities, float16, float64
from dovetail.plugins.fallback_device import open_with_companion

pytest.importorskip("dovetail_opencl.plugin")

from dovetail_opencl import plugin
from opencl_devices import DEVICES, REASON, opened

DENORM, INF_NAN, NEAREST, FMA, EXACT = 1, 2, 4, 32, 128
ALL = DENORM | INF_NAN | NEAREST | 8 | 16 | FMA | EXACT


def capabilities(single: int = ALL, double: int = ALL, half: int = ALL) -> Capabilities:
    found: Capabilities = plugin.capabilities(stand_in(single, double, half))
    return found


def stand_in(single: int = ALL, double: int = ALL, half: int = ALL) -> Any:
    return SimpleNamespace(
        profile="EMBEDDED_PROFILE",
        extensions="cl_khr_fp64 cl_khr_fp16", single_fp_config=single, double_fp_config=double,
        half_fp_config=half, max_compute_units=4, available=True, compiler_available=True,
    )  # fmt: skip


def test_device_with_full_floats_has_all_capabilities() -> None:
    can = capabilities()
    assert can.denormals and can.nan and can.fma and can.exact_division and can.float64
    assert float64 in can.dtypes and can.native_halves == {float16}


@pytest.mark.parametrize(
    "bit, field", [(DENORM, "denormals"), (INF_NAN, "nan"), (FMA, "fma"), (EXACT, "exact_division")]
)
def test_missing_bit_of_float32_is_a_missing_capability(bit: int, field: str) -> None:
    fields = ("denormals", "nan", "fma", "exact_division", "float64")
    can = capabilities(single=ALL & ~bit)
    assert [f for f in fields if not getattr(can, f)] == [field]


@pytest.mark.parametrize("bit", [DENORM, INF_NAN, NEAREST, FMA])
def test_float64_that_lacks_a_bit_is_not_used(bit: int) -> None:
    can = capabilities(double=ALL & ~bit)
    assert not can.float64 and float64 not in can.dtypes and can.denormals


@pytest.mark.parametrize("bit", [DENORM, INF_NAN, NEAREST])
def test_float16_that_lacks_a_bit_is_not_used(bit: int) -> None:
    assert capabilities(half=ALL & ~bit).native_halves == frozenset()


def test_full_profile_has_an_exact_fma_without_its_bit() -> None:
    device = stand_in(single=ALL & ~FMA)
    device.profile = "FULL_PROFILE"
    assert plugin.capabilities(device).fma


def test_device_without_rounding_to_nearest_is_skipped() -> None:
    devices = [stand_in(), stand_in(single=ALL & ~NEAREST)]
    platform = SimpleNamespace(get_devices=lambda: devices)
    assert plugin.devices_of(platform) == devices[:1]


@pytest.mark.skipif(not DEVICES, reason=REASON)
def test_device_that_flushes_denormals_computes_float32_itself() -> None:
    """A guarded sum of rows, in OpenCL C: rows with no denormals, some, and nothing else."""
    (info, *_) = DEVICES
    less = replace(info.capabilities, denormals=False)
    x = np.random.default_rng(1).standard_normal((6, 70)).astype("f4")
    x[2:4, ::3] *= 1e-42
    x[4:] *= 1e-40
    with opened(replace(info, capabilities=less)) as (dev, backend):
        alone = open_with_companion(dev, backend, None, {})
        assert alone.backend is backend
        found = (dt.asarray(x, device=dev) * 0.5).sum(axis=1)
        expected = (dt.asarray(x, device="reference") * 0.5).sum(axis=1)
        assert found.numpy().tobytes() == expected.numpy().tobytes()
