"""OpenCL C to programs: by the driver, or from a binary that it gave earlier."""

from __future__ import annotations

import hashlib
import re
import threading
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    LANES,
    CompileError,
    DeviceInfo,
    Kernel,
    Program,
    along_rows,
    cache_binary,
    cached_binary,
    shareable,
)

from .render import OpenCLStyle

STYLE = OpenCLStyle()
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"
SEAL = hashlib.sha256().digest_size
BATCH = 16  # kernels in one build: of 16, each takes Intel's compiler 6 ms, not 27
_lock = threading.RLock()  # drivers compile one at a time anyway, and so do filters of warnings


class OpenCLProgram(Program):
    """A built program. `lanes`: a group of work items does one point, where that pays."""

    def __init__(
        self, compiler: Compiler, kernel: Kernel, lanes: bool, source: str, built: Any
    ) -> None:
        self.kernel, self.lanes, self.source = kernel, lanes, source
        self._compiler, self._built = compiler, {lanes: (built, STYLE.entry(kernel))}

    @classmethod
    def of_batch(cls, compiler: Compiler, kernel: Kernel, lanes: bool, built: Any, at: int) -> Any:
        """The program of kernel number `at` of a batch, which holds all forms of it."""
        program = cls(compiler, kernel, lanes, STYLE.render(kernel, lanes), built)
        name = STYLE.entry(kernel)
        program._built = {f: (built, _numbered(name, 2 * at + f)) for f in {lanes, False}}
        return program

    @property
    def binary(self) -> bytes | None:  # type: ignore[override]
        """A seal, then the device's own format; None for one of a batch."""
        built, entry = self._built[self.lanes]
        return _sealed(self.source, built) if entry == STYLE.entry(self.kernel) else None

    def function(self, lanes: bool) -> Any:
        """A new kernel object, whose arguments are nobody else's."""
        with _lock:
            if lanes not in self._built:
                other = self._compiler.other(self.kernel, lanes)
                self._built[lanes] = other, STYLE.entry(self.kernel)
        return cl.Kernel(*self._built[lanes])


class Compiler:
    """Builds for one device. `groups`: its compiler is good at work items that work together."""

    def __init__(self, context: Any, device: Any, info: DeviceInfo) -> None:
        self.context, self.device, self.fingerprint = context, device, info.fingerprint
        self.groups = groups(device)
        self.options = [EXACT] if info.capabilities.exact_division else []

    def lanes(self, kernel: Kernel) -> bool:
        """Whether a group is to do one point, where rows are not short."""
        return self.groups and shareable(kernel) and along_rows(kernel)

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the driver's log."""
        lanes = self.lanes(kernel)
        source = STYLE.render(kernel, lanes)
        return OpenCLProgram(self, kernel, lanes, source, self._from_source(kernel, source))

    def compile_all(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        """The programs of kernels that are built together; they have no binaries."""
        found: list[OpenCLProgram] = []
        for first in range(0, len(kernels), BATCH):
            found += self._batch(kernels[first : first + BATCH])
        return found

    def _batch(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        texts = [
            _numbered(STYLE.render(k, form), 2 * at + form)
            for at, k in enumerate(kernels)
            for form in {self.lanes(k), False}
        ]
        try:
            built = self._build(cl.Program(self.context, "\n".join(texts)))
        except cl.Error:  # which of them was it?
            return [self.compile(k) for k in kernels]
        return [
            OpenCLProgram.of_batch(self, k, self.lanes(k), built, at)
            for at, k in enumerate(kernels)
        ]

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """The program from a binary. Raises: ValueError or pyopencl's error if it is no good."""
        lanes = self.lanes(kernel)
        source = STYLE.render(kernel, lanes)
        return OpenCLProgram(self, kernel, lanes, source, self._from_binary(source, binary))

    def other(self, kernel: Kernel, lanes: bool) -> Any:
        """The kernel in the way that was not the first choice; on disk under its own name."""
        source = STYLE.render(kernel, lanes)
        key = (self.fingerprint, source)
        binary = cached_binary(*key)
        if binary is not None:
            with suppress(cl.Error, ValueError):
                return self._from_binary(source, binary)
        built = self._from_source(kernel, source)
        cache_binary(*key, _sealed(source, built))
        return built

    def _from_source(self, kernel: Kernel, source: str) -> Any:
        try:
            return self._build(cl.Program(self.context, source))
        except cl.Error as error:
            log = f"{self.device.name} refused a kernel: {error}"
            raise CompileError(f"{log}\n\n{kernel}\n\n{source}") from error

    def _from_binary(self, source: str, binary: bytes) -> Any:
        seal, content = binary[:SEAL], binary[SEAL:]
        if seal != _seal(source, content):
            raise ValueError("this binary was made from another source, or is damaged")
        return self._build(cl.Program(self.context, [self.device], [content]))

    def _build(self, program: Any) -> Any:
        with _lock, warnings.catch_warnings():
            warnings.simplefilter("ignore", cl.CompilerWarning)  # of any driver that says anything
            return program.build(self.options, devices=[self.device], cache_dir=False)


def groups(device: Any) -> bool:
    """Whether groups of work items are fast: on GPUs, and where Intel's compiler makes vectors of
    them. PoCL does better with one item per point: sums of 4096 rows of 4096 take 2 ms, not 13."""
    cpu = device.type & cl.device_type.CPU != 0
    fast = not cpu or "cl_intel_vec_len_hint" in device.extensions
    return fast and device.max_work_group_size >= LANES


def _numbered(text: str, number: int) -> str:
    """The text with names of its own for what it declares: several are built together."""
    return re.sub(r"\b(kernel|combine|tree|pair)_(\w+)", rf"\1_{number}_\2", text)


def _seal(source: str, content: bytes) -> bytes:
    """A digest of what belongs together: drivers crash on a binary that is cut short."""
    return hashlib.sha256(source.encode() + content).digest()


def _sealed(source: str, built: Any) -> bytes:
    content: bytes = built.get_info(cl.program_info.BINARIES)[0]
    return _seal(source, content) + content
