"""The probe of a device's floats: on devices that lie, on honest ones, and from the disk cache."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import float_devices as devices
import pytest
from broken_backends import DividesByTheReciprocal, WrongRounding
from dovetail.backend import diskcache
from dovetail.backend.float_probe import (
    FLOAT_FIELDS,
    find_excessive_claims,
    measure_floats,
    probe_floats,
)
from dovetail.backend.interface import Backend, Program
from dovetail.backend.reference import ReferenceBackend
from dovetail.device_class import device
from dovetail.dtypes import float32
from dovetail.errors import DeviceError
from dovetail.extend import Capabilities
from dovetail.ir.builder import Kernel
from dovetail.ir.language import Value, const
from dovetail.plugins.fallback_device import unwrap_backend
from dovetail.plugins.registry import open_device
from installed import INSTALLED

EXACT = {name: getattr(devices.OF_REFERENCE, name) for name in FLOAT_FIELDS}
FREE = {"algebra": "free"}


def opened(backend: type[devices.Floats], **fields: Any) -> Backend:
    """Return a backend with the capabilities that it says, or with these."""
    can = replace(devices.OF_REFERENCE, **{**backend.says, **fields})
    return backend(replace(backend.info, capabilities=can))


def floats_of(can: Capabilities) -> dict[str, Any]:
    return {name: getattr(can, name) for name in FLOAT_FIELDS}


@pytest.mark.parametrize(
    ("backend", "differs"),
    [
        (devices.Contracting, {"contraction": True}), (devices.FoldsZeros, {"algebra": "zeros"}),
        (devices.Rewrites, FREE), (devices.HidesZerosAlone, FREE), (devices.WithoutNan, FREE),
        (devices.RoundsDoublesTwice, {"fma64": False}), (devices.Flushing, {"denormals": False}),
        (devices.NoFma, {"fma": False}), (devices.NoFmaNorDoubles, {"fma": False}),
    ],
    ids=lambda x: x.__name__ if isinstance(x, type) else "",
)  # fmt: skip
def test_probe_finds_each_deviation(backend: type[Any], differs: dict[str, Any]) -> None:
    device_ = opened(backend)
    assert floats_of(measure_floats(device_)) == EXACT | differs


@pytest.mark.parametrize("backend", devices.HONEST, ids=lambda c: c.__name__)
def test_honest_device_claims_no_more_than_the_probe_finds(backend: type[Any]) -> None:
    declared = opened(backend).info.capabilities
    assert find_excessive_claims(declared, measure_floats(opened(backend))) == []


@pytest.mark.parametrize("backend", devices.BROKEN, ids=lambda c: c.__name__)
def test_lying_device_claims_more_than_the_probe_finds(backend: type[Any]) -> None:
    declared = opened(backend).info.capabilities
    assert find_excessive_claims(declared, measure_floats(opened(backend)))


def test_device_of_few_buffers_is_probed_dtype_by_dtype() -> None:
    assert floats_of(measure_floats(opened(devices.NoFma, max_buffers=8)))["fma"] is False


def test_quotient_by_the_reciprocal_is_no_exact_division() -> None:
    found = measure_floats(DividesByTheReciprocal(ReferenceBackend.info))
    assert not found.exact_division
    assert find_excessive_claims(devices.OF_REFERENCE, found) == ["exact_division"]


def test_wrong_operation_raises_device_error_with_its_operands() -> None:
    with pytest.raises(DeviceError, match=r"reference .* must compute cast to float32 of float64"):
        measure_floats(WrongRounding(ReferenceBackend.info))


class _WrongSums(devices.Floats):
    """A backend that adds a little too much, in ordinary sums."""

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "add" or v.dtype is not float32:
            return None
        return args[0] + args[1] * const(1.0 + 2.0**-23, float32)


def test_wrong_sum_raises_device_error() -> None:
    with pytest.raises(DeviceError, match="must compute add of float32 exactly, got wrong bits"):
        measure_floats(opened(_WrongSums))


class _Counting(devices.FoldsZeros):
    """A backend that counts the kernels that it compiles."""

    compiled = 0

    def compile(self, kernel: Kernel) -> Program:
        self.compiled += 1
        return super().compile(kernel)


def test_result_comes_from_the_disk_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(diskcache.FOLDER_VARIABLE, str(tmp_path))
    monkeypatch.setenv("DOVETAIL_CACHE_MIB", "8")
    diskcache.cache_folder.cache_clear()
    try:
        first, again = opened(_Counting), opened(_Counting)
        assert probe_floats(first) == probe_floats(again)
        assert probe_floats(again).algebra == "zeros"
        assert first.compiled > 1 and again.compiled == 0
        other = _Counting(replace(again.info, fingerprint="another driver"))
        probe_floats(other)
        assert other.compiled == first.compiled
    finally:
        diskcache.cache_folder.cache_clear()


@pytest.mark.parametrize("name", sorted(INSTALLED & {"reference", "cpu", "opencl"}))
def test_installed_device_declares_what_the_probe_finds(name: str) -> None:
    backend = unwrap_backend(open_device(device(name)).backend)
    declared = backend.info.capabilities
    found = measure_floats(backend)
    assert find_excessive_claims(declared, found) == []
    assert found == replace(declared, **floats_of(found))
