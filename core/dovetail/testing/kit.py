"""The device under test: runs kernels and tensor programs on it, and compares every bit with
the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..backend import limits
from ..backend.interface import Launch, Program
from ..backend.reference import interpret
from ..device_class import Device, device, opened_devices
from ..dtypes import BUILT_IN, DType, float64
from ..engine.evaluate import compile_ahead, planned
from ..graph.expr import storage_of
from ..loops.builder import Kernel
from ..loops.legalize import BITS_OF, legalize
from ..memory import DataPtr
from ..ops import table as ops
from ..plugins.companion import Accompanied, companion_of
from ..plugins.opened import Opened
from ..plugins.registry import open_device
from ..settings import eager
from ..tensor import tensor as T
from ..tensor import verbs
from ..tensor.host import evaluated
from .values import Array, held, is_nan, raw

REFERENCE = "reference"
KNOWN = 1000  # programs that are kept for cases to come
BEFORE, AFTER, GUARD = 37, 29, 0xA5  # elements around each buffer, and the byte that fills them

Make = Callable[[Device], T.Tensor]
Case = tuple[Make, str]  # a program, and what it is


@dataclass
class Kit:
    """One case's view of the device. `comparisons` counts arrays compared: a case without any
    fails."""

    opened: Opened
    reproduce: str
    comparisons: int = 0
    _programs: ClassVar[dict[tuple[Device, str], Program]] = {}  # by the kernel's text

    @property
    def device(self) -> Device:
        """The device under test."""
        return self.opened.device

    @property
    def backend(self) -> Any:
        """Its backend."""
        return self.opened.backend

    @property
    def companions(self) -> list[Device]:
        """The devices that do what it does not accept: its companion, that one's, ..."""
        found, at = [], companion_of(self.backend)
        while at is not None:
            found.append(at.device)
            at = companion_of(at.backend)
        return found

    @property
    def elsewhere(self) -> int:
        """How many launches its companion has done for it."""
        return self.backend.launches if isinstance(self.backend, Accompanied) else 0

    def has(self, d: DType) -> bool:
        """Whether the device has a dtype."""
        return has_dtype(self.backend.info.capabilities, d)

    def thread_counts(self) -> Iterator[int | None]:
        """Sets the backend to 1, then 2 threads, if it has any to set; None otherwise."""
        if not hasattr(self.backend, "set_num_threads"):
            yield None
            return
        before = self.backend.get_num_threads()
        try:
            for n in (1, 2):
                self.backend.set_num_threads(n)
                yield n
        finally:
            self.backend.set_num_threads(before)

    @contextmanager
    def on_device(self, what: str) -> Iterator[None]:
        """Fails if memory of any other device is used meanwhile: work must not be done elsewhere
        than where it was asked for."""
        before = self._elsewhere()
        yield
        others = [d for d, n in self._elsewhere().items() if n != before.get(d, 0)]
        assert not others, self.failure(f"{what}: work was done on {', '.join(others)}", "")

    def _elsewhere(self) -> dict[str, int]:
        others = [d for d in opened_devices() if d is not self.device and d not in self.companions]
        return {str(d): d.opened.allocator.stats().allocations for d in others if d.opened}

    # --- kernels

    def check(
        self, kernel: Kernel, arrays: Sequence[Array], ints: Sequence[int] = (),
        scalars: Sequence[Any] = (), grid: Sequence[int] = (),
    ) -> list[Array]:  # fmt: skip
        """The buffers after a kernel has run on the device. Fails unless they are as the
        reference leaves them."""
        found = self.run(kernel, arrays, ints, scalars, grid)
        expected = [np.array(a) for a in arrays]
        if 0 not in grid:
            interpret(kernel, expected, ints, scalars, grid)
        sizes = f"ints {list(ints)}, scalars {list(scalars)}, grid {list(grid)}"
        for b, x, y in zip(kernel.buffers, found, expected, strict=True):
            self.same(x, y, b.dtype, f"buffer {b.name} ({sizes})", lambda: str(kernel))
        return found

    def run(
        self, kernel: Kernel, arrays: Sequence[Array], ints: Sequence[int] = (),
        scalars: Sequence[Any] = (), grid: Sequence[int] = (),
    ) -> list[Array]:  # fmt: skip
        """The buffers after a kernel has run. Each lies between guards, at an odd place, in its
        own memory."""
        placed = [self._put(a) for a in arrays]
        if 0 not in grid:
            handles = tuple(
                x
                for p, a in zip(placed, arrays, strict=True)
                for x in (p.handle, p.offset + BEFORE * a.itemsize)
            )
            with self.on_device(kernel.name):
                self.bind(kernel, ints, grid)(handles, tuple(scalars), None)
                self.backend.synchronize()
        return [self._get(p, a, str(kernel)) for p, a in zip(placed, arrays, strict=True)]

    def bind(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """A launch of a kernel, ready."""
        return limits.bind(self.backend, self.program(kernel), tuple(ints), tuple(grid))

    def program(self, kernel: Kernel) -> Program:
        """The kernel, legalised and compiled."""
        self.compile([kernel])
        return self._programs[self.device, str(kernel)]

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Compiles what is not known of these, together: some backends do that faster."""
        known, device = self._programs, self.device
        new = {str(k): k for k in kernels if (device, str(k)) not in known}
        if len(known) + len(new) > KNOWN:
            known.clear()
            new = {str(k): k for k in kernels}
        legal = [legalize(k, self.backend.info.capabilities) for k in new.values()]
        made = (
            self.backend.compile_all(legal) if len(legal) > 1 else map(self.backend.compile, legal)
        )
        known.update(zip([(device, text) for text in new], made, strict=True))

    def _put(self, a: Array) -> DataPtr:
        block = np.full((BEFORE + a.size + AFTER) * a.itemsize, GUARD, np.uint8)
        first, last = BEFORE * a.itemsize, (BEFORE + a.size) * a.itemsize
        block[first:last] = np.ascontiguousarray(a).view(np.uint8)
        ptr = self.opened.allocator.allocate(block.size)
        self.backend.copy_in(ptr.handle, ptr.offset, raw(block))
        return ptr

    def _get(self, ptr: DataPtr, a: Array, kernel: str) -> Array:
        block = np.empty(ptr.nbytes, np.uint8)
        self.backend.copy_out(raw(block), ptr.handle, ptr.offset)
        first, last = BEFORE * a.itemsize, (BEFORE + a.size) * a.itemsize
        touched = np.flatnonzero(np.concatenate([block[:first], block[last:]]) != GUARD)
        assert not touched.size, self.failure("memory outside of a buffer was written", kernel)
        return block[first:last].view(a.dtype)

    # --- tensors

    def agree(self, make: Make, what: str) -> None:
        """Fails unless `make` gives the same bits on the device as on the reference, one op at
        a time."""
        with self.on_device(what):
            found = make(self.device)
            x = host(found)
        with eager():
            expected = make(device(REFERENCE))
            y = host(expected)
        assert found.dtype is expected.dtype, self.failure(
            f"{what}: {found.dtype}, not {expected.dtype}", ""
        )
        self.same(x, y, found.dtype, what, lambda: kernels(make(self.device)))

    def agree_all(self, cases: Sequence[Case]) -> None:
        """`agree` for each, after all that they need has been compiled together."""
        asked = [make(self.device) for make, _ in cases]
        compile_ahead([x._expr for x in asked])
        del asked
        for make, what in cases:
            self.agree(make, what)

    # --- comparing

    def same(
        self, found: Array, expected: Array, d: DType, what: str, text: Callable[[], str]
    ) -> None:
        """Fails unless the bits are equal; any NaN is as good as another."""
        self.comparisons += 1
        assert found.shape == expected.shape, self.failure(
            f"{what}: {found.shape}, not {expected.shape}", text()
        )
        wrong = differences(found, expected, d)
        if wrong.size:
            pick = wrong[:5]
            x, y = found.reshape(-1)[pick], expected.reshape(-1)[pick]
            where = f"{wrong.size} of {found.size} differ; at {pick.tolist()}"
            shown = f"{what}: {where}: {x} instead of {y}"
            raise AssertionError(self.failure(shown, text()))

    def failure(self, what: str, text: str) -> str:
        """A message with the kernel and one line that reproduces it."""
        return f"{self.device}: {what}\n{text}\nto reproduce: {self.reproduce}"


def has_dtype(capabilities: Any, d: DType) -> bool:
    """Whether a device of these capabilities has a dtype."""
    d = d.part if d in BUILT_IN else BITS_OF[d.itemsize]
    return d in capabilities.dtypes and (d is not float64 or capabilities.float64)


def differences(found: Array, expected: Array, d: DType) -> Array:
    """Flat positions at which the bits differ; of complex numbers, of their parts."""
    if d.kind == "c":
        part = held(d.part)
        found, expected, d = found.reshape(-1).view(part), expected.reshape(-1).view(part), d.part
        return np.unique(differences(found, expected, d) // 2)
    unsigned = np.dtype(f"u{found.itemsize}")
    x, y = np.ascontiguousarray(found).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    alike = (x.view(unsigned) == y.view(unsigned)) | (is_nan(x, d) & is_nan(y, d))
    return np.flatnonzero(~alike)


def host(x: T.Tensor) -> Array:
    """A tensor's values, as the host holds them."""
    e = evaluated(x if x.is_contiguous() else verbs.apply(ops.COPY, (x,)))
    backend, ptr = open_device(x.device).backend, storage_of(e).ptr
    out = np.empty(x.shape, held(x.dtype))
    if out.size:
        assert ptr is not None
        backend.copy_out(raw(out), ptr.handle, ptr.offset + e.offset * out.itemsize)
    return out


def kernels(x: T.Tensor) -> str:
    """The kernels that would compute a tensor, as text."""
    plans = [plan for _, plan in planned([x._expr])]
    found = [str(s.kernel) for plan in plans for s in plan.steps if hasattr(s, "kernel")]
    return "\n".join(found) or "(already computed)"
