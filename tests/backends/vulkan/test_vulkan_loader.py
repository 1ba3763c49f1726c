"""Finding Vulkan's loader and its devices, and what the doctor says where there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from dovetail.extend import Unavailable, float64
from dovetail_vulkan import loader, plugin
from dovetail_vulkan import vulkan as vk
from vulkan_devices import DEVICES, REASON, run_python

needs_device = pytest.mark.skipif(not DEVICES, reason=REASON)
DOCTOR = "from dovetail.commands.cli import main; main(['doctor'])"


def test_probe_names_the_library_and_the_package_when_the_loader_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loader, "LIBRARIES", ("libvulkan_is_nowhere.so",))
    monkeypatch.setattr(loader, "_instances", {})
    loader.library.cache_clear()
    try:
        result = plugin.dovetail_probe({})
        assert plugin.dovetail_diagnostics() == {}
    finally:
        loader.library.cache_clear()
    assert isinstance(result, Unavailable)
    assert "libvulkan_is_nowhere.so" in result.reason and "libvulkan1" in result.hint


@needs_device
def test_doctor_explains_hidden_drivers(tmp_path: Path) -> None:
    nothing = str(tmp_path / "none.json")
    hidden = dict.fromkeys(plugin.DRIVER_VARIABLES, nothing)
    done = run_python(DOCTOR, DOVETAIL_BACKENDS="vulkan", **hidden)
    assert "vulkan: unavailable: Vulkan's loader finds no driver" in done.stdout, done.stderr
    assert "unset VK_ICD_FILENAMES" in done.stdout and "mesa-vulkan-drivers" in done.stdout


@needs_device
def test_doctor_runs_a_kernel_and_shows_the_driver() -> None:
    done = run_python(DOCTOR, DOVETAIL_BACKENDS="vulkan")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = (line for line in done.stdout.splitlines() if line.startswith("  vulkan"))
    assert "open" in row and "compiled" in row, done.stdout


@needs_device
@pytest.mark.parametrize("kind", ["CPU", "integrated"])
def test_doctor_says_that_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    device = loader.instance().devices()[0]
    device.kind = kind
    monkeypatch.setattr(loader.Instance, "devices", lambda self: [device])
    monkeypatch.setenv("VK_DRIVER_FILES", "/nowhere")
    facts = plugin.dovetail_diagnostics()
    assert ("GPU" in facts) == (kind == "CPU")
    if kind == "CPU":
        assert facts["GPU"].startswith("none is found; if there is one, unset VK_DRIVER_FILES")
        assert "NVIDIA's driver" in facts["GPU"] and "mesa-vulkan-drivers" in facts["GPU"]


def test_validation_without_its_layer_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "VALIDATION_LAYER", b"VK_LAYER_is_nowhere")
    monkeypatch.setattr(loader, "_instances", {})
    result: Any = plugin.dovetail_probe({"validate": "1"})
    assert "VK_ERROR_LAYER_NOT_PRESENT" in result.reason or "loader" in result.reason
    assert "install" in result.hint


@needs_device
def test_devices_are_numbered_and_have_unique_fingerprints() -> None:
    assert [d.index for d in DEVICES] == list(range(len(DEVICES)))
    assert len({d.fingerprint for d in DEVICES}) == len(DEVICES)


@needs_device
def test_discrete_devices_come_first() -> None:
    kinds = [d.details["kind"] for d in DEVICES]
    assert kinds == sorted(kinds, key=[*loader.DEVICE_TYPES.values()].index)


@pytest.mark.parametrize(
    ("heaps", "expected"),
    [([(8, 1), (32, 0)], 8), ([(1, 1), (8, 1), (32, 0)], 8), ([(16, 0)], 16)],
    ids=["discrete", "with a window", "no own heap"],
)
def test_memory_of_a_device_is_not_that_of_the_host(
    heaps: list[tuple[int, int]], expected: int
) -> None:
    memory = vk.MemoryProperties(heap_count=len(heaps))
    for heap, (gib, flags) in zip(memory.heaps, heaps, strict=False):
        heap.size, heap.flags = gib << 30, flags
    assert loader.find_device_heap(memory) == expected << 30


@needs_device
def test_queue_without_timestamps_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    families = [vk.QueueFamily(flags=2, count=4), vk.QueueFamily(flags=6, count=1)]
    families[1].timestamp_bits = 36
    monkeypatch.setattr(
        vk,
        "enumerate_items",
        lambda f, t, *a, read=vk.enumerate_items: (
            families if t is vk.QueueFamily else read(f, t, *a)
        ),
    )
    (device, *_) = loader.instance().devices()
    assert (device.family, device.queues, device.timestamp_bits) == (1, 1, 36)
    families.pop()
    assert loader.instance().devices()[0].missing() == ["a compute queue with timestamps"]


@needs_device
def test_device_without_required_features_is_left_out_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loader, "REQUIRED", ("timelineSemaphore", "levitation"))
    result: Any = plugin.dovetail_probe({})
    assert f"{DEVICES[0].name} lacks levitation" in result.reason
    assert "lacks levitation" in str(plugin.dovetail_diagnostics())


@needs_device
def test_floats_of_unknown_drivers_are_not_trusted() -> None:
    """Vulkan promises neither exact quotients nor float64 that is as exact as float32."""
    device = loader.instance().devices()[0]
    known = plugin.capabilities(device)
    device.driver_id = 99
    unknown = plugin.capabilities(device)
    assert not unknown.exact_division and not unknown.float64 and float64 not in unknown.dtypes
    assert known.exact_division == (device.kind == "CPU" and "llvmpipe" in device.name)
