"""The device under test: it runs kernels and tensor programs.

Every bit of their results is compared with the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ..backend.interface import Launch, Program
from ..backend.reference import interpret
from ..device_class import Device, device, opened_devices
from ..dtypes import BUILT_IN, DType, float64
from ..engine.evaluate import compile_ahead, plan_pending
from ..engine.programs import bind_program
from ..graph.expr import storage_of
from ..ir.builder import Kernel
from ..ir.float_bits import UNSIGNED_BY_ITEMSIZE
from ..ir.legalize import legalize
from ..lru_cache import LRUCache
from ..memory import DataPtr
from ..ops import table as ops
from ..plugins.device_handle import OpenedDevice
from ..plugins.fallback_device import FallbackBackend, companion_of
from ..plugins.registry import open_device
from ..settings import eager
from ..tensor import primitives
from ..tensor import tensor as T
from ..tensor.host import evaluate_leaf
from .values import Array, bytes_view, host_dtype, is_nan

REFERENCE = "reference"
PROGRAM_CACHE_MAX = 1000  # programs that are cached for later cases
# elements around each buffer, and the byte that fills them
GUARD_ELEMENTS_BEFORE = 37
GUARD_ELEMENTS_AFTER = 29
GUARD_BYTE = 0xA5

TensorFactory = Callable[[Device], T.Tensor]
AgreementCase = tuple[TensorFactory, str]  # a program, and what it is


@dataclass
class Kit:
    """One case's view of the device.

    `comparisons` counts the arrays that were compared: a case without any fails.
    """

    opened: OpenedDevice
    reproduce: str
    comparisons: int = 0
    _programs: ClassVar[LRUCache[tuple[Device, str], Program]] = LRUCache(PROGRAM_CACHE_MAX)

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
    def companion_launches(self) -> int:
        """Return the number of launches that its companion has run for it."""
        return self.backend.companion_launches if isinstance(self.backend, FallbackBackend) else 0

    def has_dtype(self, d: DType) -> bool:
        """Return True if the device has a dtype."""
        return has_dtype(self.backend.info.capabilities, d)

    def thread_counts(self) -> Iterator[int | None]:
        """Yield 1, then 2, with the backend set to so many threads, or None once."""
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
        before = self._allocations_by_device()
        yield
        others = [d for d, n in self._allocations_by_device().items() if n != before.get(d, 0)]
        assert not others, self.failure(f"{what}: work was done on {', '.join(others)}", "")

    def _allocations_by_device(self) -> dict[str, int]:
        """Return allocation counts of open devices other than this one and its companions."""
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
        """Run a kernel and return its buffers; fail unless the interpreter leaves the same bits."""
        actual = self.run(kernel, arrays, ints, scalars, grid)
        expected = [np.array(a) for a in arrays]
        if 0 not in grid:
            interpret(kernel, expected, ints, scalars, grid)
        sizes = f"ints {list(ints)}, scalars {list(scalars)}, grid {list(grid)}"
        for b, x, y in zip(kernel.buffers, actual, expected, strict=True):
            self.check_same_bits(x, y, b.dtype, f"buffer {b.name} ({sizes})", lambda: str(kernel))
        return actual

    def run(
        self,
        kernel: Kernel,
        arrays: Sequence[Array],
        ints: Sequence[int] = (),
        scalars: Sequence[Any] = (),
        grid: Sequence[int] = (),
    ) -> list[Array]:
        """Run a kernel, and return its buffers; fail if memory around a buffer was written.

        Each lies between guards, at an odd offset, in its own memory.
        """
        placed = [self._put(a) for a in arrays]
        if 0 not in grid:
            handles = tuple(
                x
                for p, a in zip(placed, arrays, strict=True)
                for x in (p.handle, p.offset + GUARD_ELEMENTS_BEFORE * a.itemsize)
            )
            with self.on_device(kernel.name):
                self.bind(kernel, ints, grid)(handles, tuple(scalars), None)
                self.backend.synchronize()
        return [self._get(p, a, str(kernel)) for p, a in zip(placed, arrays, strict=True)]

    def bind(self, kernel: Kernel, ints: Sequence[int], grid: Sequence[int]) -> Launch:
        """Compile a kernel if it is new, and return its launch for these ints and this grid."""
        return bind_program(self.opened, self.program(kernel), tuple(ints), tuple(grid))

    def program(self, kernel: Kernel) -> Program:
        """Return the compiled program of a kernel, from the cache if it is known."""
        self.compile([kernel])
        return self._programs.young[self.device, str(kernel)]

    def compile(self, kernels: Sequence[Kernel]) -> None:
        """Legalise, compile and cache kernels that are new, in one call of the backend."""
        programs, device = self._programs, self.device
        new = {str(k): k for k in kernels if programs.find((device, str(k))) is None}
        legal = [legalize(k, self.backend.info.capabilities) for k in new.values()]
        compiled = (
            self.backend.compile_all(legal) if len(legal) > 1 else map(self.backend.compile, legal)
        )
        for text, program in zip(new, compiled, strict=True):
            programs[device, text] = program

    def _put(self, a: Array) -> DataPtr:
        """Copy an array into new device memory with guard elements on both sides, and return it."""
        block = np.full(
            (GUARD_ELEMENTS_BEFORE + a.size + GUARD_ELEMENTS_AFTER) * a.itemsize,
            GUARD_BYTE,
            np.uint8,
        )
        first, last = (
            GUARD_ELEMENTS_BEFORE * a.itemsize,
            (GUARD_ELEMENTS_BEFORE + a.size) * a.itemsize,
        )
        block[first:last] = np.ascontiguousarray(a).view(np.uint8)
        ptr = self.opened.allocator.allocate(block.size)
        self.backend.copy_in(ptr.handle, ptr.offset, bytes_view(block))
        return ptr

    def _get(self, ptr: DataPtr, a: Array, kernel: str) -> Array:
        """Copy an array back from the device; fail if its guard elements were written."""
        block = np.empty(ptr.nbytes, np.uint8)
        self.backend.copy_out(bytes_view(block), ptr.handle, ptr.offset)
        first, last = (
            GUARD_ELEMENTS_BEFORE * a.itemsize,
            (GUARD_ELEMENTS_BEFORE + a.size) * a.itemsize,
        )
        touched = np.flatnonzero(np.concatenate([block[:first], block[last:]]) != GUARD_BYTE)
        assert not touched.size, self.failure("memory outside of a buffer was written", kernel)
        return block[first:last].view(a.dtype)

    # --- tensors

    def check_agreement(self, make: TensorFactory, what: str) -> None:
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
        self.check_same_bits(x, y, actual.dtype, what, lambda: kernels(make(self.device)))

    def check_agreements(self, cases: Sequence[AgreementCase]) -> None:
        """Run `check_agreement` for each, after all their kernels have been compiled together."""
        asked = [make(self.device) for make, _ in cases]
        compile_ahead([x._expr for x in asked])
        del asked
        for make, what in cases:
            self.check_agreement(make, what)

    # --- comparing

    def check_same_bits(
        self, actual: Array, expected: Array, d: DType, what: str, text: Callable[[], str]
    ) -> None:
        """Fail unless the bits are equal, with `text()` in the message; all NaNs are equal."""
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
    d = d.part if d in BUILT_IN else UNSIGNED_BY_ITEMSIZE[d.itemsize]
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
    """Evaluate a tensor, and return its values as an array in the host's dtype for them."""
    e = evaluate_leaf(x if x.is_contiguous() else primitives.apply(ops.COPY, (x,)))
    backend, ptr = open_device(x.device).backend, storage_of(e).ptr
    out = np.empty(x.shape, host_dtype(x.dtype))
    if out.size:
        assert ptr is not None
        backend.copy_out(bytes_view(out), ptr.handle, ptr.offset + e.offset * out.itemsize)
    return out


def kernels(x: T.Tensor) -> str:
    """Return the kernels that would compute a tensor, as text."""
    plans = [plan for _, plan in plan_pending([x._expr])]
    texts = [str(s.kernel) for plan in plans for s in plan.steps if hasattr(s, "kernel")]
    return "\n".join(texts) or "(already computed)"
