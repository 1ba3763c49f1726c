"""OpenCL C to programs: by the driver, or from a binary that it gave earlier."""

from __future__ import annotations

import hashlib
import re
import threading
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pyopencl as cl
from dovetail.extend import (
    LANES,
    CompileError,
    DeviceInfo,
    Kernel,
    Loop,
    Program,
    along_rows,
    cache_binary,
    cached_binary,
    jam,
    shareable,
    walk,
)

from .render import OpenCLStyle, TiledStyle, UnrolledStyle

STYLE = OpenCLStyle()
STYLES = {"tiled": TiledStyle(), "unrolled": UnrolledStyle()}
BODY = 24  # statements of a kernel that is unrolled, at most
EXACT = "-cl-fp32-correctly-rounded-divide-sqrt"
SEAL = hashlib.sha256().digest_size
ROWS = 8  # points that a work item does where they are jammed
BATCH = 16  # kernels in one build: of 16, each takes Intel's compiler 6 ms, not 27
_lock = threading.RLock()  # drivers compile one at a time anyway, and so do filters of warnings


class OpenCLProgram(Program):
    """A built program, of which other forms are built when they are asked for.

    `forms`: the kernel in the form that comes first, and as it is ("plain").
    """

    def __init__(self, compiler: Compiler, kernel: Kernel, built: Any, entry: str = "") -> None:
        self.kernel, self.forms = kernel, compiler.forms(kernel)
        self.first = next(iter(self.forms))
        self.source = render(self.forms, self.first)
        self._compiler, self._own = compiler, not entry
        self._built = {self.first: (built, entry or STYLE.entry(kernel))}

    @property
    def binary(self) -> bytes | None:  # type: ignore[override]
        """A seal, then the device's own format; None for one of a batch."""
        return _sealed(self.source, self._built[self.first][0]) if self._own else None

    def function(self, form: str) -> Any:
        """A new kernel object, whose arguments are nobody else's."""
        with _lock:
            if form not in self._built:
                other = self._compiler.other(self.kernel, render(self.forms, form))
                self._built[form] = other, STYLE.entry(self.kernel)
        return cl.Kernel(*self._built[form])

    def also(self, form: str, built: Any, entry: str) -> None:
        """Notes a form that has been built already."""
        self._built[form] = built, entry


class Compiler:
    """Builds for one device. `groups`: its compiler is good at work items that work together."""

    def __init__(self, context: Any, device: Any, info: DeviceInfo) -> None:
        self.context, self.device, self.fingerprint = context, device, info.fingerprint
        self.groups = groups(device)
        self.options = [EXACT] if info.capabilities.exact_division else []

    def forms(self, kernel: Kernel) -> dict[str, Kernel]:
        """Forms of a kernel, the first choice first. "lanes": a group of work items does a point;
        "jammed": a work item does several, which share what they load; "tiled", "unrolled": a
        group does neighbouring columns, row by row."""
        if shareable(kernel) and along_rows(kernel):
            return {"lanes": kernel, "plain": kernel} if self.groups else {"plain": kernel}
        if shareable(kernel) and repeatable(kernel):
            short = sum(1 for _ in walk(kernel.body)) <= BODY
            return {"plain": kernel, "unrolled" if self.groups and short else "tiled": kernel}
        jammed = jam(kernel, ROWS)
        return {"plain": kernel} if jammed is None else {"jammed": jammed, "plain": kernel}

    def compile(self, kernel: Kernel) -> OpenCLProgram:
        """The program for `kernel`. Raises: CompileError with the kernel and the driver's log."""
        return OpenCLProgram(self, kernel, self._from_source(kernel, self._text(kernel)))

    def compile_all(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        """The programs of kernels that are built together; they have no binaries."""
        found: list[OpenCLProgram] = []
        for first in range(0, len(kernels), BATCH):
            found += self._batch(kernels[first : first + BATCH])
        return found

    def _batch(self, kernels: Sequence[Kernel]) -> list[OpenCLProgram]:
        forms = [
            (k, found, form)
            for k in kernels
            for found in [self.forms(k)]
            for form in found
            if form not in STYLES  # which only large grids ask for
        ]
        texts = [_numbered(render(f, form), n) for n, (_, f, form) in enumerate(forms)]
        try:
            built = self._build(cl.Program(self.context, "\n".join(texts)))
        except cl.Error:  # which of them was it?
            return [self.compile(k) for k in kernels]
        programs: dict[int, OpenCLProgram] = {}
        for n, (kernel, _, form) in enumerate(forms):
            entry = _numbered(STYLE.entry(kernel), n)
            if id(kernel) in programs:
                programs[id(kernel)].also(form, built, entry)
            else:
                programs[id(kernel)] = OpenCLProgram(self, kernel, built, entry)
        return [programs[id(k)] for k in kernels]

    def load(self, kernel: Kernel, binary: bytes) -> OpenCLProgram:
        """The program from a binary. Raises: ValueError or pyopencl's error if it is no good."""
        return OpenCLProgram(self, kernel, self._from_binary(self._text(kernel), binary))

    def other(self, kernel: Kernel, source: str) -> Any:
        """The kernel in a form that was not the first choice; on disk under its own name."""
        key = (self.fingerprint, source)
        binary = cached_binary(*key)
        if binary is not None:
            with suppress(cl.Error, ValueError):
                return self._from_binary(source, binary)
        built = self._from_source(kernel, source)
        cache_binary(*key, _sealed(source, built))
        return built

    def _text(self, kernel: Kernel) -> str:
        forms = self.forms(kernel)
        return render(forms, next(iter(forms)))

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


def render(forms: Mapping[str, Kernel], form: str) -> str:
    """The text of a kernel in one of its forms."""
    return STYLES.get(form, STYLE).render(forms[form], form == "lanes")


def repeatable(kernel: Kernel) -> bool:
    """Whether all points have the same loops, and doing one twice changes nothing."""
    if any(b.access == "rw" for b in kernel.buffers):
        return False
    loops = [s for s in kernel.body if isinstance(s, Loop) and s.kind == "reduce"]
    ends = {v.op for loop in loops for v in (loop.start, loop.stop)}
    return bool(kernel.grid) and ends <= {"param", "const"}


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
