"""The compiler from OpenCL C to programs: the driver, or a binary that it gave earlier."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    LANES,
    CompileError,
    DeviceInfo,
    Kernel,
    Lock,
    Schedule,
    ScheduledCompiler,
    ScheduledProgram,
)

from .render import CONTRACTION, NO_CONTRACTION
from .schedule import LARGE_LAUNCHES, REDUCTIONS_UNLIMITED, STYLE, Groups, best, schedules

EXACT_DIVISION_OPTION = "-cl-fp32-correctly-rounded-divide-sqrt"
UNIT_POINTS_MIN = 512  # points for each compute unit of a staged launch: an eighth of a tile
CPU_POINTS_MIN = 1 << 18  # points of one on a CPU: PoCL needs 2 s for the text of a tile, not 0.3
BUILD_KERNELS_MAX = 16  # kernels in one build: of 16, each takes Intel's compiler 6 ms, not 27
_lock = Lock()  # drivers compile one at a time anyway, and so do filters of warnings

BuiltFunction = tuple[Any, str]  # a built program of pyopencl's, and the name of a function in it
OpenCLProgram = ScheduledProgram[BuiltFunction]


# With `fast_math`: contraction, and the device's own division. Not -cl-fast-relaxed-math, which
# reorders sums and assumes that there is no NaN.
FAST_OPTIONS = ["-cl-mad-enable"]


class Compiler(ScheduledCompiler[BuiltFunction]):
    """The compiler of one device, for kernels in the schedules that its groups permit."""

    refusals = (cl.Error,)

    def __init__(self, context: Any, device: Any, info: DeviceInfo) -> None:
        self.context, self.device, self.fingerprint = context, device, info.fingerprint
        self.groups = groups_of(device)
        self.options = [EXACT_DIVISION_OPTION] if info.capabilities.exact_division else []

    def first(self, kernel: Kernel) -> str:
        """Return the name of the first schedule for this device's groups."""
        return next(iter(schedules(kernel, self.groups)))

    def best(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> str:
        """Choose the schedule for a launch of these sizes; return its name."""
        return best(kernel, self.groups, ints, grid)

    def schedule(self, kernel: Kernel, name: str) -> Schedule:
        """Return the schedule with this name. Raises: KeyError if the kernel does not have it."""
        return schedules(kernel, self.groups)[name]

    def build(self, kernel: Kernel, source: str) -> tuple[BuiltFunction, bytes]:
        """Build a source; return ((program, entry), binary). Raises: CompileError if rejected."""
        try:
            if kernel.fast_math:
                source = source.replace(NO_CONTRACTION, CONTRACTION)
            built = self._build(cl.Program(self.context, source), kernel.fast_math)
        except cl.Error as error:
            log = f"{self.device.name} rejected a kernel: {error}"
            raise CompileError(f"{log}\n\n{kernel}\n\n{source}") from error
        return (built, STYLE.entry(kernel)), built.get_info(cl.program_info.BINARIES)[0]

    def revive(self, kernel: Kernel, binary: bytes) -> BuiltFunction:
        """Build from a driver's binary. Raises: cl.Error."""
        built = self._build(cl.Program(self.context, [self.device], [binary]), kernel.fast_math)
        return built, STYLE.entry(kernel)

    def compile_all(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        """Build kernels together, at most BUILD_KERNELS_MAX at once, without binaries."""
        if any(k.fast_math for k in kernels):  # with options of their own
            return [self.compile(k) for k in kernels]
        programs: list[OpenCLProgram] = []
        for first in range(0, len(kernels), BUILD_KERNELS_MAX):
            programs += self._build_batch(kernels[first : first + BUILD_KERNELS_MAX])
        return programs

    def _build_batch(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        """Build the schedules of these kernels in one program; after an error build one by one."""
        texts = [
            (kernel, name, schedule.source())
            for kernel in kernels
            for name, schedule in schedules(kernel, self.groups).items()
            if name not in LARGE_LAUNCHES
        ]
        whole = "\n".join(_number_names(text, n) for n, (_, _, text) in enumerate(texts))
        try:
            built = self._build(cl.Program(self.context, whole))
        except cl.Error:  # build one by one, so that the error names its kernel
            return [self.compile(k) for k in kernels]
        programs: dict[int, OpenCLProgram] = {}
        for n, (kernel, name, text) in enumerate(texts):
            entry = built, _number_names(STYLE.entry(kernel), n)
            if id(kernel) in programs:
                programs[id(kernel)].add(name, entry)
            else:
                programs[id(kernel)] = ScheduledProgram(self, kernel, entry, text, None)
        return [programs[id(k)] for k in kernels]

    def build_text(self, program: Any, options: Sequence[str]) -> Any:
        """Build a program from a user's text with these options. Raises: cl.Error."""
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)
            return program.build([*options], devices=[self.device], cache_dir=False)

    def _build(self, program: Any, fast_math: bool = False) -> Any:
        """Build a program with the compiler's options, ignoring warnings. Raises: cl.Error."""
        options = FAST_OPTIONS if fast_math else self.options
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # many drivers warn at every build
            return program.build(options, devices=[self.device], cache_dir=False)


def groups_of(device: Any) -> Groups:
    """Return the abilities of a device's groups.

    Intel's compiler for CPUs makes vectors of a group's items. PoCL does better with one item per
    point: sums of 4096 rows of 4096 take 2 ms, not 13. With four reductions along rows, Intel's
    compiler writes to memory that it has freed; with three and little else it does not.
    """
    cpu = device.type & cl.device_type.CPU != 0
    vectors = cpu and "cl_intel_vec_len_hint" in device.extensions
    is_near = cpu or device.local_mem_type == cl.device_local_mem_type.LOCAL
    return Groups(
        fast=(vectors or not cpu) and device.max_work_group_size >= LANES,
        row_reductions_max=2 if vectors else REDUCTIONS_UNLIMITED,
        local_bytes=device.local_mem_size if is_near else 0,
        items=device.max_work_group_size,
        staged_points_min=CPU_POINTS_MIN if cpu else UNIT_POINTS_MIN * device.max_compute_units,
        vectors=vectors,
    )


def _number_names(text: str, number: int) -> str:
    """Add a number to the kernel's and helpers' names, so that several can be built together."""
    return re.sub(r"\b(kernel|combine|tree|pair)_(\w+)", rf"\1_{number}_\2", text)
