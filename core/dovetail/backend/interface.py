"""What a backend implements: a raw allocator, a compiler of kernels, a launch, and nothing else.

A `Backend` is one opened device. It never sees a tensor, a layout, a shape rule or a gradient: only
kernels, buffers (a handle of its own choosing and a byte offset), integers and scalars.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..dtypes import DType
from ..kernel.builder import Kernel
from ..kernel.target import Capabilities

INTERFACE = (
    1,
    0,
)  # (major: the entry-point group's, minor: what `dovetail_backend_info` may ask for at least)


@dataclass(frozen=True)
class DeviceInfo:
    """One device that a plugin offers. `fingerprint` names everything that a cached binary depends
    on.
    """

    type: str
    index: int
    name: str
    fingerprint: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    total_memory: int = 0  # bytes; 0 where unknown
    details: Mapping[str, str] = field(default_factory=dict)  # for `dovetail devices`, the doctor


@dataclass(frozen=True)
class BackendInfo:
    """What `dovetail_backend_info` returns: pure data, no probing."""

    type: str
    version: str
    minimum_interface: tuple[int, int] = (1, 0)
    summary: str = ""


@dataclass(frozen=True)
class Unavailable:
    """A probe's answer where there is no device: why, and what to do about it."""

    reason: str
    hint: str


class Program(ABC):
    """A compiled kernel. `source` is shown by `dt.explain`; `binary` (or None) goes to the disk
    cache.
    """

    kernel: Kernel
    source: str = ""
    binary: bytes | None = None


Handles = tuple[Any, ...]  # handle0, byte offset0, handle1, byte offset1, ...
Launch = Callable[[Handles, Sequence[float | int | bool], Any], None]


class Backend(ABC):
    """One opened device. All sizes are bytes; streams are what `create_stream` returned, or None:
    the default.
    """

    info: DeviceInfo
    asynchronous: bool = False  # whether `launch` may return before the work is done
    programs_kept: int = 1024  # that are loaded, besides those of plans in use
    dlpack_type: int | None = None  # DLPack's device type of this memory (1: the host's), if any

    # --- memory: a raw allocator. Reuse, statistics and streams are the core's business.
    @abstractmethod
    def allocate(self, nbytes: int) -> Any:
        """A handle to `nbytes` > 0 of fresh memory, aligned to 64 bytes. Raises MemoryError when
        refused.
        """

    @abstractmethod
    def free(self, handle: Any, nbytes: int) -> None:
        """Returns what `allocate` gave."""

    @abstractmethod
    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        """Copies host bytes (contiguous, format "B") to the device. `source` may be reused on
        return.
        """

    @abstractmethod
    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        """Copies device bytes into writable host memory, after everything queued on `stream`."""

    # --- copies that the host does not wait for: blocking ones unless overridden
    def queue_copy_in(
        self, handle: Any, offset: int, source: memoryview, stream: Any = None
    ) -> None:
        """As `copy_in`, but may return early: `source` is left alone until `stream` has passed."""
        self.copy_in(handle, offset, source, stream)

    def queue_copy_out(
        self, target: memoryview, handle: Any, offset: int, stream: Any = None
    ) -> None:
        """As `copy_out`, but may return at once: `target` is good when `stream` has passed."""
        self.copy_out(target, handle, offset, stream)

    pins_memory: bool = False  # whether there is page-locked memory, for which these are meant

    def allocate_pinned(self, nbytes: int) -> int:
        """The address of `nbytes` > 0 of page-locked host memory, aligned to 64 bytes. Raises
        MemoryError when refused.
        """
        raise MemoryError(f"{self.info.name} has no page-locked memory")

    def free_pinned(self, address: int, nbytes: int) -> None:  # noqa: B027
        """Returns what `allocate_pinned` gave."""

    def host_address(self, handle: Any, offset: int) -> int | None:
        """The address at which the host may read and write this memory, or None where it cannot."""
        return None

    def adopt(self, address: int, nbytes: int) -> Any:
        """A handle to memory of `dlpack_type` that somebody else owns; None where it is no use."""
        return None

    # --- work
    @abstractmethod
    def compile(self, kernel: Kernel) -> Program:
        """The program for a (legalised) kernel. Raises CompileError with the kernel and the
        compiler's log.
        """

    def compile_all(self, kernels: Sequence[Kernel]) -> Sequence[Program]:
        """`compile` for each; override it where building several at once takes less time."""
        return [self.compile(k) for k in kernels]

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        """The program from `Program.binary` of an earlier process. Raises any exception if that is
        no good.
        """
        return self.compile(kernel)

    @abstractmethod
    def launch(
        self,
        program: Any,
        buffers: Handles,
        ints: Sequence[int],
        scalars: Sequence[float | int | bool],
        grid: Sequence[int],
        stream: Any = None,
    ) -> None:
        """Runs (or queues) a program over a grid of these extents, none of which is 0."""

    def bind(self, program: Any, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """`launch` with everything fixed but buffers, scalars and stream; called often, so worth a
        fast version.
        """
        frozen_ints, frozen_grid = tuple(ints), tuple(grid)

        def launch(buffers: Handles, scalars: Sequence[float | int | bool], stream: Any) -> None:
            self.launch(program, buffers, frozen_ints, scalars, frozen_grid, stream)

        return launch

    def synchronize(self, stream: Any = None) -> None:  # noqa: B027
        """Returns when everything queued on `stream` (None: on the device) is done."""

    def library_calls(self) -> Mapping[tuple[str, DType], Callable[..., Any]]:
        """Vendor routines by op and dtype, e.g. ("matmul", float32), in place of generated kernels.

        A routine is called as `routine(backend, inputs, output, stream)` with operands (handle,
        byte offset, shape, strides in elements, dtype), all of this dtype, and writes the output.
        """
        return {}

    def close(self) -> None:  # noqa: B027
        """Gives up what the device holds; nothing is called afterwards."""

    # --- streams and events: in order and immediate unless overridden
    def create_stream(self) -> Any:
        """A handle of a new stream."""
        return object()

    def record_event(self, stream: Any) -> Any:
        """A handle that marks the present end of `stream`."""
        return time.perf_counter_ns()

    def event_done(self, event: Any) -> bool:
        """Whether everything before the event has been done."""
        return True

    def wait_event(self, stream: Any, event: Any) -> None:  # noqa: B027
        """Makes later work on `stream` wait for `event` (None as stream: the host waits)."""

    def elapsed_ms(self, start: Any, end: Any) -> float:
        """Milliseconds between two events."""
        return float(end - start) / 1e6
