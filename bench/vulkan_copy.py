"""The bandwidth of a copy on Vulkan: dovetail against a shader written by hand, on one driver.

    python bench/vulkan_copy.py [MILLIONS_OF_ELEMENTS]

It needs `spirv-as` (spirv-tools). The shader gets the addresses of both buffers and the number of
elements as push constants; a work item copies one float32, or four. The backend loads it in place
of its own module, so memory, queue and dispatch are the same. Its result is checked. Each time is
the least of several, in turn: by the clock, and the processor time of all threads, which is what a
software driver uses on a busy machine.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
from dovetail.extend import parse_kernel
from dovetail.plugins.registry import open_device
from dovetail_vulkan.launch import VulkanLaunch

ROUNDS = 15
KERNEL = parse_kernel("""kernel copy(x: r f32, out: w f32; n; ) grid(n) {
  v0: f32 = load x[i0]
  store out[i0] = v0
}""")
SHADER = """
OpCapability Shader
OpCapability Int64
OpCapability PhysicalStorageBufferAddresses
OpExtension "SPV_KHR_physical_storage_buffer"
OpMemoryModel PhysicalStorageBuffer64 GLSL450
OpEntryPoint GLCompute %main "main" %id %push
OpExecutionMode %main LocalSize 64 1 1
OpDecorate %id BuiltIn GlobalInvocationId
OpDecorate %args Block
OpMemberDecorate %args 0 Offset 0
OpMemberDecorate %args 1 Offset 8
OpMemberDecorate %args 2 Offset 16
OpDecorate %items ArrayStride {nbytes}
OpDecorate %block Block
OpMemberDecorate %block 0 Offset 0
OpDecorate %sx SpecId 0
OpDecorate %sy SpecId 1
OpDecorate %sz SpecId 2
OpDecorate %size BuiltIn WorkgroupSize
%void = OpTypeVoid
%f = OpTypeFunction %void
%bool = OpTypeBool
%u32 = OpTypeInt 32 0
%u64 = OpTypeInt 64 0
%f32 = OpTypeFloat 32
%v4 = OpTypeVector %f32 4
%uvec3 = OpTypeVector %u32 3
%sx = OpSpecConstant %u32 64
%sy = OpSpecConstant %u32 1
%sz = OpSpecConstant %u32 1
%size = OpSpecConstantComposite %uvec3 %sx %sy %sz
%items = OpTypeRuntimeArray {item}
%block = OpTypeStruct %items
%address = OpTypePointer PhysicalStorageBuffer %block
%element = OpTypePointer PhysicalStorageBuffer {item}
%args = OpTypeStruct %address %address %u64
%pargs = OpTypePointer PushConstant %args
%paddress = OpTypePointer PushConstant %address
%pcount = OpTypePointer PushConstant %u64
%pid = OpTypePointer Input %uvec3
%id = OpVariable %pid Input
%push = OpVariable %pargs PushConstant
%c0 = OpConstant %u32 0
%c1 = OpConstant %u32 1
%c2 = OpConstant %u32 2
%main = OpFunction %void None %f
%begin = OpLabel
%ids = OpLoad %uvec3 %id
%i = OpCompositeExtract %u32 %ids 0
%wide = OpUConvert %u64 %i
%pn = OpAccessChain %pcount %push %c2
%n = OpLoad %u64 %pn
%in = OpULessThan %bool %wide %n
OpSelectionMerge %end None
OpBranchConditional %in %do %end
%do = OpLabel
%pa = OpAccessChain %paddress %push %c0
%a = OpLoad %address %pa
%pb = OpAccessChain %paddress %push %c1
%b = OpLoad %address %pb
%pai = OpAccessChain %element %a %c0 %i
%value = OpLoad {item} %pai Aligned {nbytes}
%pbi = OpAccessChain %element %b %c0 %i
OpStore %pbi %value Aligned {nbytes}
OpBranch %end
%end = OpLabel
OpReturn
OpFunctionEnd
"""


def assemble(item: str, nbytes: int) -> bytes:
    """Return the words of the shader that copies items of a type."""
    with tempfile.NamedTemporaryFile() as file:
        text = SHADER.format(item=item, nbytes=nbytes)
        options = ["spirv-as", "--target-env", "vulkan1.2", "-o", file.name, "-"]
        subprocess.run(options, input=text.encode(), check=True)
        return Path(file.name).read_bytes()


def bind_shader(backend: Any, item: str, width: int, count: int) -> Callable[..., None]:
    """Return the launch of the shader for `count` elements, `width` in an item."""
    program, items = backend.compile(KERNEL), count // width
    module = program.module._replace(words=assemble(item, 4 * width))
    assert [a.offset for a in module.arguments] == [0, 8, 16]
    program.add(program.first, module)
    groups = (-(-items // program.first.group[0]), 1, 1)
    pipeline = program.pipeline(program.first)
    return VulkanLaunch(backend.launcher, KERNEL, pipeline, (items,), groups).launch


def check_copy(backend: Any, launch: Callable[..., None], handles: Sequence[int], n: int) -> None:
    """Raise RuntimeError if a launch does not copy `n` float32 from one buffer to the other."""
    data = np.arange(n, dtype=np.float32)
    copied = np.zeros_like(data)
    for values, handle in zip((data, copied), handles, strict=True):
        backend.copy_in(handle, 0, memoryview(values).cast("B"))
    launch((handles[0], 0, handles[1], 0), (), None)
    backend.copy_out(memoryview(copied).cast("B"), handles[1], 0)
    if not np.array_equal(copied, data):
        raise RuntimeError("the shader has not copied its whole buffer")


def measure(run: Callable[[], object], device: dt.Device) -> tuple[float, float]:
    """Return the seconds by the clock, and of processor time, until a run has ended."""
    start = time.perf_counter(), time.process_time()
    run()
    dt.synchronize(device)
    return time.perf_counter() - start[0], time.process_time() - start[1]


def main() -> None:
    """Print the bandwidth of each copy, by both clocks."""
    count = int(sys.argv[1] if len(sys.argv) > 1 else 16) << 20
    device = dt.device("vulkan")
    backend: Any = open_device(device).backend
    x = dt.arange(count, dtype=dt.float32, device=device)
    dt.evaluate(x)
    memory = [backend.allocate(4 * count) for _ in range(2)]
    buffers = (memory[0], 0, memory[1], 0)
    scalar, vector = (
        bind_shader(backend, item, width, count) for item, width in (("%f32", 1), ("%v4", 4))
    )
    for launch in (scalar, vector):
        check_copy(backend, launch, memory, count)
    ways: dict[str, Callable[[], object]] = {
        "shader, one float32 an item": lambda: scalar(buffers, (), None),
        "shader, four float32 an item": lambda: vector(buffers, (), None),
        "dovetail: dt.copy(x)": lambda: dt.evaluate(dt.copy(x)),
        "dovetail: -x": lambda: dt.evaluate(-x),
    }
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, run in ways.items():
            times[name].append(measure(run, device))
    for name, pairs in times.items():
        clock, processor = (8e-9 * count / min(column) for column in zip(*pairs, strict=True))
        print(f"{name:32} {clock:6.2f} GB/s {processor:8.2f} GB/s of processor time")
    for handle in memory:
        backend.free(handle, 4 * count)


if __name__ == "__main__":
    main()
