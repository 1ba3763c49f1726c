"""The device under test: it runs kernels and tensor programs, and compares every bit.
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
from ..ir.builder import Kernel
from ..ir.legalize import BITS_OF, legalize
from ..memory import DataPtr
from ..ops import table as ops
from ..plugins.device_handle import Opened
from ..plugins.fallback_device import Accompanied, companion_of
from ..plugins.registry import open_device
from ..settings import eager
from ..tensor import primitives
from ..tensor import tensor as T
from ..tensor.host import evaluated
from .values import Array, host_dtype, is_nan, raw

REFERENCE = "reference"
KNOWN = 1000  # programs that are cached for later cases
BEFORE, AFTER, GUARD = 37, 29, 0xA5  # elements around each buffer, and the byte that fills them

Make = Callable[[Device], T.Tensor]
Case = tuple[Make, str]  # a program, and what it is


@dataclass
class Kit:
    """One case's view of the device.

    `comparisons` counts the arrays that were compared: a case without any fails.
    """

    opened: Opened
    reproduce: str
    comparisons: int = 0
    _programs: ClassVar[dict[tuple[Device, str], Program]] = {}  # by the kernel's text

    @property
    def device(self) -> Device:
        """Return the device under test."""
        return self.opened.device

    @property
    def backend(self) -> Any:
        """Return its backend."""
        return self.opened.backend

    @property
    def companions(self) -> list[Device]:
        """Return the devices that run work it does not accept: its companion, that one's, ..."""
        devices, at = [], companion_of(self.backend)
        while at is not None:
            devices.append(at.device)
            at = companion_of(at.backend)
        return devices

    @property
    def elsewhere(self) -> int:
        """Return the number of launches that its companion has run for it."""
        return self.backend.launches if isinstance(self.backend, Accompanied) else 0

    def has(self, d: DType) -> bool:
        """Return True if the device has a dtype."""
        return has_dtype(self.backend.info.capabilities, d)

    def thread_counts(self) -> Iterator[int | None]:
        """Set the backend to 1, then 2 threads, and yield the number, or None once."""
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
        """Fail if memory of any other device is used in the context.

        Work must run on the device that was asked for.
        """
        before = self._elsewhere()
        yield
        others = [d for d, n in self._elsewhere().items() if n != before.get(d, 0)]
        assert not others, self.failure(f"{what}: work was done on {', '.join(others)}", "")

    def _elsewhere(self) -> dict[str, int]:
        others = [d for d in opened_devices() if d is not self.device and d not in self.companions]
        return {str(d): d.opened.allocator.stats().allocations for d in others if d.opened}

    # --- kernels

    def check(
        self,
        kernel: Kernel,
        arrays: Sequence[Array],
        ints: Sequence[int] = (),
        scalars: Sequence[Any] = (),
        grid: Sequence[int] = (),
    ) -> list[Array]:
        """Run a kernel, and return the buffers; fail unless they equal the reference's.
        reference leaves them."""
        actual = self.run(kernel, arrays, ints, scalars, grid)
        expected = [np.array(a) for a in arrays]
        if 0 not in grid:
            interpret(kernel, expected, ints, scalars, grid)
        sizes = f"ints {list(ints)}, scalars {list(scalars)}, grid {list(grid)}"
        for b, x, y in zip(kernel.buffers, actual, expected, strict=True):
            self.same(x, y, b.dtype, f"buffer {b.name} ({sizes})", lambda: str(kernel))
        return actual

    def run(
        self,
        kernel: Kernel,
        arrays: Sequence[Array],
        ints: Sequence[int] = (),
        scalars: Sequence[Any] = (),
        grid: Sequence[int] = (),
    ) -> list[Array]:
        """Run a kernel, and return the buffers.

        Each lies between guards, at an odd offset, in its own memory.
        """
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
        """Return a launch of a kernel, ready."""
        return limits.bind(self.backend, self.program(kernel), tuple(ints), tuple(grid))

    def program(self, kernel: Kernel) -> Program:
        """Return the kernel, legalised and compiled."""
        self.compile([kernel])
        return self._programs[self.device, str(kernel)]

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Compile unknown kernels together: some backends do that faster."""
        programs, device = self._programs, self.device
        new = {str(k): k for k in kernels if (device, str(k)) not in programs}
        if len(programs) + len(new) > KNOWN:
            programs.clear()
            new = {str(k): k for k in kernels}
        legal = [legalize(k, self.backend.info.capabilities) for k in new.values()]
        compiled = (
            self.backend.compile_all(legal) if len(legal) > 1 else map(self.backend.compile, legal)
        )
        programs.update(zip([(device, text) for text in new], compiled, strict=True))

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
        """Fail unless `make` gives the same bits on the device as on the reference.

        The reference runs one op at a time.
        """
        with self.on_device(what):
            actual = make(self.device)
            x = host(actual)
        with eager():
            expected = make(device(REFERENCE))
            y = host(expected)
        assert actual.dtype is expected.dtype, self.failure(
            f"{what}: {actual.dtype}, not {expected.dtype}", ""
        )
        self.same(x, y, actual.dtype, what, lambda: kernels(make(self.device)))

    def agree_all(self, cases: Sequence[Case]) -> None:
        """Run `agree` for each, after all their kernels have been compiled together."""
        asked = [make(self.device) for make, _ in cases]
        compile_ahead([x._expr for x in asked])
        del asked
        for make, what in cases:
            self.agree(make, what)

    # --- comparing

    def same(
        self, actual: Array, expected: Array, d: DType, what: str, text: Callable[[], str]
    ) -> None:
        """Fail unless the bits are equal; any NaN is as good as another."""
        self.comparisons += 1
        assert actual.shape == expected.shape, self.failure(
            f"{what}: {actual.shape}, not {expected.shape}", text()
        )
        wrong = differences(actual, expected, d)
        if wrong.size:
            pick = wrong[:5]
            x, y = actual.reshape(-1)[pick], expected.reshape(-1)[pick]
            where = f"{wrong.size} of {actual.size} differ; at {pick.tolist()}"
            shown = f"{what}: {where}: {x} instead of {y}"
            raise AssertionError(self.failure(shown, text()))

    def failure(self, what: str, text: str) -> str:
        """Return a message with the kernel and one line that reproduces the failure."""
        return f"{self.device}: {what}\n{text}\nto reproduce: {self.reproduce}"


def has_dtype(capabilities: Any, d: DType) -> bool:
    """Return True if a device of these capabilities has a dtype."""
    d = d.part if d in BUILT_IN else BITS_OF[d.itemsize]
    return d in capabilities.dtypes and (d is not float64 or capabilities.float64)


def differences(actual: Array, expected: Array, d: DType) -> Array:
    """Return flat positions at which the bits differ; of complex numbers, of their parts."""
    if d.kind == "c":
        part = host_dtype(d.part)
        actual, expected, d = actual.reshape(-1).view(part), expected.reshape(-1).view(part), d.part
        return np.unique(differences(actual, expected, d) // 2)
    unsigned = np.dtype(f"u{actual.itemsize}")
    x, y = np.ascontiguousarray(actual).reshape(-1), np.ascontiguousarray(expected).reshape(-1)
    alike = (x.view(unsigned) == y.view(unsigned)) | (is_nan(x, d) & is_nan(y, d))
    return np.flatnonzero(~alike)


def host(x: T.Tensor) -> Array:
    """Return a tensor's values, as the host holds them."""
    e = evaluated(x if x.is_contiguous() else primitives.apply(ops.COPY, (x,)))
    backend, ptr = open_device(x.device).backend, storage_of(e).ptr
    out = np.empty(x.shape, host_dtype(x.dtype))
    if out.size:
        assert ptr is not None
        backend.copy_out(raw(out), ptr.handle, ptr.offset + e.offset * out.itemsize)
    return out


def kernels(x: T.Tensor) -> str:
    """Return the kernels that would compute a tensor, as text."""
    plans = [plan for _, plan in planned([x._expr])]
    texts = [str(s.kernel) for plan in plans for s in plan.steps if hasattr(s, "kernel")]
    return "\n".join(texts) or "(already computed)"
