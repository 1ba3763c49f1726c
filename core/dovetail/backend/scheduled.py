"""Programs in several schedules: one is built at once, the others when a launch asks for them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from ..locks import Lock
from ..loops.builder import Kernel
from ..loops.schedule import Schedule
from . import diskcache
from .interface import Program

Built = TypeVar("Built")  # what a launch needs of a text that has been built


class ScheduledProgram(Program, Generic[Built]):
    """A kernel, built in the schedule called `first` and in what else was asked for."""

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
        """The schedule for a launch of these sizes, built, and the sizes that it takes."""
        name = self._compiler.best(self.kernel, ints, grid)
        schedule = self._compiler.schedule(self.kernel, name)
        return schedule, self._in(name), *schedule.sizes(ints, grid)

    def _in(self, name: str) -> Built:
        with self._lock:
            if name not in self._built:
                self._built[name] = self._compiler.other(self.kernel, name)
            return self._built[name]

    def add(self, name: str, built: Built) -> None:
        """Notes a schedule that has been built already."""
        self._built[name] = built


class ScheduledCompiler(ABC, Generic[Built]):
    """Builds kernels in schedules, and keeps on disk what it built.

    `refusals`: the errors by which `revive` says that a binary is no good, ValueError apart.
    """

    fingerprint: str
    refusals: tuple[type[Exception], ...] = ()

    @abstractmethod
    def first(self, kernel: Kernel) -> str:
        """The name of the schedule that is built before any size is known."""

    @abstractmethod
    def best(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> str:
        """The name of the schedule for a launch of these sizes."""

    @abstractmethod
    def schedule(self, kernel: Kernel, name: str) -> Schedule:
        """The schedule of a name."""

    @abstractmethod
    def build(self, kernel: Kernel, source: str) -> tuple[Built, bytes]:
        """A text built, and its binary. Raises: CompileError with kernel and the compiler's log."""

    @abstractmethod
    def revive(self, kernel: Kernel, binary: bytes) -> Built:
        """What `build` has made, from its binary."""

    def compile(self, kernel: Kernel) -> ScheduledProgram[Built]:
        """The program for a kernel. Raises: CompileError."""
        source = self.source(kernel)
        built, binary = self.build(kernel, source)
        return ScheduledProgram(self, kernel, built, source, sealed(source, binary))

    def load(self, kernel: Kernel, binary: bytes) -> ScheduledProgram[Built]:
        """The program from its binary. Raises: ValueError or a refusal if that is no good."""
        source = self.source(kernel)
        built = self.revive(kernel, unsealed(source, binary))
        return ScheduledProgram(self, kernel, built, source, binary)

    def other(self, kernel: Kernel, name: str) -> Built:
        """A schedule that was not the first choice; on disk under its own text."""
        source = self.source(kernel, name)
        kept = diskcache.read(self.fingerprint, source)
        if kept is not None:
            with suppress(ValueError, *self.refusals):
                return self.revive(kernel, unsealed(source, kept))
        built, binary = self.build(kernel, source)
        diskcache.write(self.fingerprint, source, sealed(source, binary))
        return built

    def source(self, kernel: Kernel, name: str = "") -> str:
        """The text in a schedule; in the first one, unless named."""
        return self.schedule(kernel, name or self.first(kernel)).source()


def sealed(source: str, binary: bytes) -> bytes:
    """A binary behind a digest of what belongs together.

    Drivers crash on one that is cut short, and a new version of the core may render a kernel
    otherwise.
    """
    return diskcache.digest(source.encode() + binary) + binary


def unsealed(source: str, content: bytes) -> bytes:
    """What was sealed. Raises: ValueError where it is another text's, or not whole."""
    binary = content[diskcache.SHA :]
    if content != sealed(source, binary):
        raise ValueError("this binary was made from another source, or is damaged")
    return binary
