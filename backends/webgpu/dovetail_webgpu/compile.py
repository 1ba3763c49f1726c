"""The compiler from kernels to pipelines, by way of WGSL."""

from __future__ import annotations

from typing import Any

import wgpu
from dovetail.extend import CompileError, Kernel, Lock, Program

from .memory import Memory
from .queue import ARGUMENT_BYTES
from .render import WgslStyle

Group = tuple[int, int]  # work items along x and y
FIRST_GROUP = (64, 1)  # of the pipeline that is built first


class WebgpuProgram(Program):
    """A rendered kernel, and its pipelines by the size of groups.

    WebGPU gives no binaries: a process compiles all kernels that it uses.
    """

    def __init__(self, device: Any, memory: Memory, kernel: Kernel) -> None:
        self.kernel, self.source = kernel, WgslStyle(kernel).render(kernel)
        self._device, self._lock = device, Lock()
        self._pipelines = dict[Group, Any]()
        if 4 * (len(kernel.ints) + len(kernel.scalars)) > ARGUMENT_BYTES:
            raise CompileError(
                f"kernel {kernel.name} has more than {ARGUMENT_BYTES} bytes of arguments"
            )
        layouts = [memory.layout(len(kernel.buffers)), memory.queue.layout]
        try:
            self._layout = device.create_pipeline_layout(bind_group_layouts=layouts)
            self._module = device.create_shader_module(code=self.source)
        except wgpu.GPUError as error:
            raise self._explain(error) from error
        self.pipeline(FIRST_GROUP)

    def pipeline(self, group: Group) -> Any:
        """Return the pipeline for a size of groups. Raises: CompileError if the driver fails."""
        with self._lock:
            if group not in self._pipelines:
                sizes = dict(zip(("width", "height"), group, strict=True))
                stage = {"module": self._module, "entry_point": "main", "constants": sizes}
                try:
                    self._pipelines[group] = self._device.create_compute_pipeline(
                        layout=self._layout, compute=stage
                    )
                except wgpu.GPUError as error:
                    raise self._explain(error) from error
            return self._pipelines[group]

    def _explain(self, error: Exception) -> CompileError:
        """Return an error that shows the kernel, the text and what is wrong with it."""
        return CompileError(f"wgpu rejected a kernel: {error}\n\n{self.kernel}\n\n{self.source}")


class Compiler:
    """The compiler of one device, for the bind groups of its memory."""

    def __init__(self, device: Any, memory: Memory) -> None:
        self.device, self.memory = device, memory

    def compile(self, kernel: Kernel) -> WebgpuProgram:
        """Render a kernel as WGSL, and build its first pipeline. Raises: CompileError."""
        return WebgpuProgram(self.device, self.memory, kernel)

    def load(self, kernel: Kernel, binary: bytes) -> WebgpuProgram:
        """Compile a kernel: there are no binaries."""
        return self.compile(kernel)
