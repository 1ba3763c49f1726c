"""Programs in several schedules: one is built at once, the others when a launch needs them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from ..ir.builder import Kernel
from ..ir.schedule import Schedule
from ..locks import Lock
from . import diskcache
from .interface import Program

Built = TypeVar("Built")  # the result of a build that a launch uses


class ScheduledProgram(Program, Generic[Built]):
    """A kernel, built in the schedule named `first`, and in others on demand.

    - `compiler`: the `ScheduledCompiler`.
    - `kernel`: the kernel.
    - `built`: the build of the first schedule.
    - `source`: the text of the first schedule.
    - `binary`: its bytes for the disk cache.
    """

    def __init__(
        self,
        compiler: ScheduledCompiler[Built],
        kernel: Kernel,
        built: Built,
        source: str,
        binary: bytes | None,
    ) -> None:
        self.kernel, self.source, self.binary = kernel, source, binary
        self.first = compiler.first(kernel)
        self._compiler, self._built = compiler, {self.first: built}
        self._lock = Lock()

    def best(
        self, ints: Sequence[int], grid: Sequence[int]
    ) -> tuple[Schedule, Built, tuple[int, ...], tuple[int, ...]]:
        """Return schedule, build, ints and grid for these sizes; build the schedule if missing."""
        name = self._compiler.best(self.kernel, ints, grid)
        schedule = self._compiler.schedule(self.kernel, name)
        return schedule, self._build_in_schedule(name), *schedule.sizes(ints, grid)

    def _build_in_schedule(self, name: str) -> Built:
        """Return the build of a schedule, built under a lock on first use."""
        with self._lock:
            if name not in self._built:
                self._built[name] = self._compiler.other(self.kernel, name)
            return self._built[name]

    def add(self, name: str, built: Built) -> None:
        """Store the finished build of a schedule.

        - `name`: the name of the schedule.
        - `built`: its build.
        """
        self._built[name] = built


class ScheduledCompiler(ABC, Generic[Built]):
    """A compiler of kernels in schedules, with a cache of binaries on disk.

    refusals: the errors, besides ValueError, that `revive` raises for an unusable binary.
    """

    fingerprint: str
    refusals: tuple[type[Exception], ...] = ()

    @abstractmethod
    def first(self, kernel: Kernel) -> str:
        """Return the name of the schedule that is built before any size is known."""

    @abstractmethod
    def best(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> str:
        """Return the name of the schedule for a launch of these sizes."""

    @abstractmethod
    def schedule(self, kernel: Kernel, name: str) -> Schedule:
        """Return the schedule with this name for a kernel.

        - `name`: the name of the schedule; "" is the first one.
        """

    @abstractmethod
    def build(self, kernel: Kernel, source: str) -> tuple[Built, bytes]:
        """Build a source; return the build and its binary. Raises: CompileError with the log.

        - `source`: the text of the kernel in its schedule.
        """

    @abstractmethod
    def revive(self, kernel: Kernel, binary: bytes) -> Built:
        """Recreate the build from its binary. Raises: ValueError or one of `refusals`.

        - `binary`: the bytes of `Program.binary`.
        """

    def compile(self, kernel: Kernel) -> ScheduledProgram[Built]:
        """Build a kernel in its first schedule; return its program.

        Raises: CompileError if rejected.
        """
        source = self.source(kernel)
        built, binary = self.build(kernel, source)
        return ScheduledProgram(self, kernel, built, source, add_digest(source, binary))

    def load(self, kernel: Kernel, binary: bytes) -> ScheduledProgram[Built]:
        """Load a program from its binary. Raises: ValueError or a refusal if it is unusable.

        - `binary`: the bytes of `Program.binary`.
        """
        source = self.source(kernel)
        built = self.revive(kernel, strip_digest(source, binary))
        return ScheduledProgram(self, kernel, built, source, binary)

    def other(self, kernel: Kernel, name: str) -> Built:
        """Load a further schedule from the disk cache, or build it and store it there.

        - `name`: the name of the schedule.
        """
        source = self.source(kernel, name)
        content = diskcache.read(self.fingerprint, source)
        if content is not None:
            with suppress(ValueError, *self.refusals):
                return self.revive(kernel, strip_digest(source, content))
        built, binary = self.build(kernel, source)
        diskcache.write(self.fingerprint, source, add_digest(source, binary))
        return built

    def source(self, kernel: Kernel, name: str = "") -> str:
        """Return the source of a kernel in a schedule, by default the first one.

        - `name`: the name of the schedule; "" is the first one.
        """
        return self.schedule(kernel, name or self.first(kernel)).source()


def add_digest(source: str, binary: bytes) -> bytes:
    """Return a binary with a digest of source and binary in front.

    Drivers crash on a truncated binary, and another version of the core may render a kernel
    differently.
    """
    return diskcache.sha256_digest(source.encode() + binary) + binary


def strip_digest(source: str, content: bytes) -> bytes:
    """Return the binary without digest. Raises: ValueError for another source, or damage."""
    binary = content[diskcache.DIGEST_BYTES :]
    if content != add_digest(source, binary):
        raise ValueError("this binary belongs to another source, or is damaged")
    return binary
