"""Programs of Vulkan devices: binaries from the driver's cache, and checks of all calls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from dovetail.extend import CompileError, parse_kernel
from dovetail_vulkan import compile as compiling
from dovetail_vulkan.vulkan import VulkanError
from vulkan_devices import ADD, DEVICES, NAMES, REASON, compile_text, opened, run_python

pytestmark = pytest.mark.skipif(not DEVICES, reason=REASON)


@pytest.fixture(params=DEVICES, ids=NAMES)
def backend(request: Any) -> Iterator[Any]:
    with opened(request.param) as (_, found):
        yield found


def test_binary_is_the_drivers_cache_and_is_given_back_to_it(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, kernel = compile_text(backend, ADD), parse_kernel(ADD)
    caches: list[bytes] = []
    build = compiling.Compiler.build
    monkeypatch.setattr(
        compiling.Compiler, "build", lambda *a: (caches.append(a[-1]), build(*a))[1]
    )
    loaded = backend.load(kernel, program.binary)
    assert loaded.binary == program.binary and caches == [program.binary[32:]]
    assert caches[0][16:32] == bytes(backend.device.physical.properties.uuid)


def test_binaries_of_other_kernels_and_drivers_are_rejected(backend: Any) -> None:
    program, other = compile_text(backend, ADD), ADD.replace("add v0, c", "mul v0, c")
    with pytest.raises(ValueError, match="another kernel"):
        backend.load(parse_kernel(other), program.binary)
    with pytest.raises(ValueError, match="damaged"):
        backend.load(parse_kernel(ADD), program.binary[:-1])
    alien = bytearray(program.binary[32:])
    alien[20] ^= 1
    digest = compiling._digest(program.module.words, bytes(alien))
    with pytest.raises(ValueError, match="another driver"):
        backend.load(parse_kernel(ADD), digest + bytes(alien))


def test_second_process_loads_each_program(tmp_path: Path) -> None:
    script = """if True:
        import dovetail as dt
        from dovetail_vulkan.compile import Compiler
        for name in ("compile", "load"):
            def call(self, *a, name=name, method=getattr(Compiler, name)):
                print(name)
                return method(self, *a)
            setattr(Compiler, name, call)
        print((dt.ones((3, 4), device="vulkan") * 2 + 1).sum(axis=0).tolist())
    """
    outputs = [run_python(script, DOVETAIL_CACHE_DIR=str(tmp_path)) for _ in range(2)]
    first, second = (o.stdout.split("\n") for o in outputs)
    assert "compile" in first and "load" not in first, outputs[0].stderr
    assert "load" in second and "compile" not in second, outputs[1].stderr
    assert first[-2] == second[-2] == "[9.0, 9.0, 9.0, 9.0]"


def test_build_error_shows_the_kernel_and_its_instructions(
    backend: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise VulkanError("vulkan: vkCreateComputePipelines failed: VK_ERROR_UNKNOWN", -13)

    monkeypatch.setattr(backend.device.functions, "CreateComputePipelines", refuse, raising=False)
    with pytest.raises(CompileError, match=r"(?s)rejected a kernel.*kernel add\(.*entry_point"):
        compile_text(backend, ADD)


def test_pipelines_end_with_their_program(backend: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    destroyed: list[Any] = []
    call = backend.device.functions
    destroy = call.DestroyPipeline
    monkeypatch.setattr(
        call, "DestroyPipeline", lambda *a: (destroyed.append(a[1]), destroy(*a)), raising=False
    )
    program, handle = compile_text(backend, ADD), backend.allocate(4)
    backend.launch(program, (handle, 0, handle, 0), [1], [1.0], [1])
    del program
    assert destroyed == []  # the launch is queued
    backend.synchronize()
    assert len(destroyed) == 1


VALIDATED = """if True:
    import dovetail as dt
    from dovetail_vulkan import memory, schedule
    memory.shares_memory = lambda physical: {shared}
    if {wrong}:  # larger than any device's
        schedule.choose_group = lambda points: (1 << 20, 1, 1)
    x = dt.arange(12000, dtype=dt.float32, device="vulkan").reshape(40, 300)
    total = sum([x + i for i in range(30)])
    print((dt.tanh(total) @ x.T).sum(axis=1)[:3].tolist(), dt.sort(x[:, 7]).tolist())
    start, end = dt.Event("vulkan"), dt.Event("vulkan")
    with dt.Stream("vulkan") as stream:
        start.record(stream)
        dt.evaluate(x * 2)
        end.record(stream)
    end.wait()
    print(start.elapsed_ms(end) > 0)
"""


def validate(shared: bool, wrong: bool) -> str:
    """Return what a program prints under the validation layer, which prints as well."""
    script = VALIDATED.format(shared=shared, wrong=wrong)
    done = run_python(script, DOVETAIL_VULKAN_VALIDATE="1", DOVETAIL_CACHE_MIB="0")
    if "VK_ERROR_LAYER_NOT_PRESENT" in done.stderr:
        pytest.skip("no validation layer: apt install vulkan-validationlayers")
    return done.stdout + done.stderr


@pytest.mark.parametrize("shared", [True, False])
def test_validation_layer_has_no_message(shared: bool) -> None:
    if shared and not opened_memory_is_shared():
        pytest.skip("this device has memory of its own")
    printed = validate(shared, wrong=False)
    assert printed.endswith("True\n"), printed[-3000:]
    assert "Validation" not in printed and "VUID" not in printed, printed[:3000]


def test_validation_layer_reports_a_group_that_is_too_large() -> None:
    assert "VUID-RuntimeSpirv" in validate(shared=False, wrong=True)


def opened_memory_is_shared() -> bool:
    """Return True if the first device shares its memory with the host."""
    with opened(DEVICES[0]) as (_, backend):
        return bool(backend.memory.shared)
