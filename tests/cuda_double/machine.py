"""The simulated machine: devices, their memory, faults, and scripted errors.

Device memory is a separate range of addresses. The driver hands out marked addresses (`MARK`) that
the host cannot read; a kernel gets the real ones. Addresses of freed memory are never handed out
again.
"""

from __future__ import annotations

import ctypes
import os
import random
import threading
from bisect import bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cuda.bindings.driver import CUresult

from .runtime import BAD_ADDRESS, FINE, PAGE, POISON, SLOT, Function, Loaded, library
from .streams import Event, Scheduler, Stream

MARK = 1 << 62  # no processor of this machine can read such an address
SPACE = 1 << 40  # bytes of addresses, each used once
REACH = 1 << 36  # bytes at both ends that are never used: a garbage index of 32 bits ends here
ALIGNMENT = 256  # the driver's guarantee for cuMemAlloc, and no more


class Refused(Exception):
    """An error that a driver function returns in place of success."""

    def __init__(self, result: CUresult, reason: str = "") -> None:
        super().__init__(reason or result.name)
        self.result = result


@dataclass(order=True)
class Block:
    """Memory from the driver: at a real address, of a device or (-1) pinned on the host."""

    start: int
    nbytes: int = field(compare=False)
    device: int = field(compare=False, default=-1)
    keep: Any = field(compare=False, default=None)

    @property
    def pages(self) -> tuple[int, int]:
        """Return the first page and the total bytes."""
        first = self.start // PAGE * PAGE
        return first, -(-(self.start + self.nbytes - first) // PAGE) * PAGE

    def margins(self) -> tuple[tuple[int, int], ...]:
        """Return the guard areas before and behind, as (address, bytes)."""
        first, nbytes = self.pages
        before, end = min(ALIGNMENT, self.start - first), self.start + self.nbytes
        return (self.start - before, before), (end, first + nbytes - end)


class Ranges:
    """Live blocks by address."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []

    def find(self, address: int, nbytes: int = 0) -> Block | None:
        """Return the block that holds all of a range; its end is a place of no bytes."""
        i = bisect_right(self.blocks, address, key=lambda b: b.start) - 1
        b = self.blocks[i] if i >= 0 else None
        return b if b and address + nbytes <= b.start + b.nbytes else None

    def add(self, block: Block) -> None:
        """Add a live block."""
        insort(self.blocks, block)

    def remove(self, start: int) -> Block | None:
        """Remove the block that begins at an address."""
        i = bisect_right(self.blocks, start, key=lambda b: b.start) - 1
        return self.blocks.pop(i) if i >= 0 and self.blocks[i].start == start else None


class Space:
    """The addresses and the handles of this process.

    None is given out twice, even by another machine: an object that outlives its machine must not
    name a thing of the next one.
    """

    def __init__(self) -> None:
        start = library().emu_reserve(SPACE)
        if not start:
            raise MemoryError("there are no addresses for the double's device memory")
        self.start, self.handle = start, 0x1000
        self.top, self.end = start + REACH, start + SPACE - REACH

    def take(self, nbytes: int) -> int:
        """Allocate poisoned pages with a hole behind them; the block ends at the hole, or close
        to it.
        """
        pages = -(-nbytes // PAGE) * PAGE
        if self.top + pages + PAGE > self.end or library().emu_commit(self.top, pages):
            raise Refused(CUresult.CUDA_ERROR_OUT_OF_MEMORY, "no addresses are left")
        start = int(self.top) + pages - -(-nbytes // ALIGNMENT) * ALIGNMENT
        self.top += pages + PAGE
        return start

    def next_handle(self) -> int:
        """Return a unique number."""
        self.handle += 16
        return self.handle


@cache
def space() -> Space:
    """Return the address space of this process."""
    return Space()


class Context:
    """A device's primary context: its streams, and the error that makes it unusable."""

    def __init__(self, index: int, seed: int) -> None:
        self.index = index
        self.scheduler = Scheduler(seed)
        self.fault: CUresult | None = None
        self.retained = 0


@dataclass
class Script:
    """A scripted refusal: the calls of a function from the `at`-th on, `times` of them."""

    result: CUresult
    at: int
    times: int


class Machine:
    """All state of the double. Tests create a new one with `driver.reset`."""

    def __init__(
        self,
        devices: int = 1,
        arch: tuple[int, int] = (9, 0),
        memory: int = 1 << 31,
        seed: int | None = None,
        processors: int = 8,
    ) -> None:
        given = int(os.environ.get("DOVETAIL_CUDA_DOUBLE_SEED", "0")) if seed is None else seed
        self.arch, self.memory, self.processors, self.seed = arch, memory, processors, given
        self.contexts = [Context(i, given + i) for i in range(devices)]
        self.chance = random.Random(given)
        self.pid, self.ready = os.getpid(), False
        self.lock = threading.RLock()
        self.current = threading.local()  # .context: an index, per thread
        self.device_memory, self.pinned = Ranges(), Ranges()
        self.objects: dict[int, Any] = {}  # streams, events, modules and functions by handle
        self.calls: Counter[str] = Counter()
        self.faults: list[str] = []  # descriptions of faults on the device
        self.scripts: dict[str, Script] = {}
        self.crash_in = 0  # launches until one fails during execution; 0: none

    def scrap(self) -> None:
        """Free the memory on the host."""
        for block in self.device_memory.blocks:
            library().emu_release(*block.pages)
        self.device_memory.blocks.clear()

    # --- scripted errors

    def refuse(self, function: str, result: CUresult, at: int = 1, times: int = 1) -> None:
        """Make `times` calls of a function, from the `at`-th call on, return an error."""
        self.scripts[function] = Script(result, self.calls[function] + at, times)

    def crash_launch(self, at: int = 1) -> None:
        """Make the `at`-th kernel from now on fail during its execution."""
        self.crash_in = at

    def live(self) -> dict[str, int]:
        """Return how much the program holds: a leak is what remains."""
        kinds = Counter(type(x).__name__.lower() for x in self.objects.values())
        memory = sum(b.nbytes for b in self.device_memory.blocks)
        return {"bytes": memory, "pinned": len(self.pinned.blocks), **kinds}

    def called(self, function: str) -> None:
        """Count a call. Raises: Refused if the script says so."""
        self.calls[function] += 1
        script = self.scripts.get(function)
        if script and script.at <= self.calls[function] < script.at + script.times:
            raise Refused(script.result, f"scripted: call {self.calls[function]} of {function}")

    # --- handles

    def put(self, thing: Any) -> int:
        """Return a new handle for an object."""
        handle = space().next_handle()
        self.objects[handle] = thing
        return handle

    def get(self, handle: Any, kind: type) -> Any:
        """Return the object behind a handle. Raises: Refused for an invalid handle."""
        found = self.objects.get(int(handle))
        if not isinstance(found, kind):
            raise Refused(CUresult.CUDA_ERROR_INVALID_HANDLE, f"{handle!r} is no {kind.__name__}")
        return found

    def drop(self, handle: Any, kind: type) -> Any:
        """Remove a handle and return its object."""
        found = self.get(handle, kind)
        del self.objects[int(handle)]
        return found

    def context(self) -> Context:
        """Return the calling thread's context. Raises: Refused without one, or after a fault."""
        index = getattr(self.current, "context", None)
        if index is None:
            raise Refused(CUresult.CUDA_ERROR_INVALID_CONTEXT, "this thread has no current context")
        context: Context = self.contexts[index]
        if context.fault is not None:
            raise Refused(context.fault, "the context is poisoned by an earlier fault")
        return context

    def stream(self, handle: Any) -> Stream:
        """Return a stream of the current context; 0 is the default one."""
        context, number = self.context(), int(handle or 0)
        if number in (0, 1):
            return context.scheduler.default
        stream: Stream = self.get(number, Stream)
        if stream not in context.scheduler.streams:
            raise Refused(CUresult.CUDA_ERROR_INVALID_HANDLE, "a stream of another context")
        return stream

    # --- memory

    def allocate(self, nbytes: int, device: int) -> int:
        """Return the marked address of fresh memory, filled with POISON."""
        used = sum(b.nbytes for b in self.device_memory.blocks if b.device == device)
        if nbytes <= 0:
            raise Refused(CUresult.CUDA_ERROR_INVALID_VALUE)
        if used + nbytes > self.memory:
            raise Refused(CUresult.CUDA_ERROR_OUT_OF_MEMORY)
        start = space().take(nbytes)
        self.device_memory.add(Block(start, nbytes, device))
        return start | MARK

    def free(self, address: int) -> None:
        """Free memory from `allocate` without waiting, because no rule of the driver says so."""
        block = self.device_memory.remove(address ^ MARK)
        if block is None:
            raise Refused(CUresult.CUDA_ERROR_INVALID_VALUE, f"nothing was allocated at {address}")
        library().emu_release(*block.pages)

    def device_range(self, address: int, nbytes: int, device: int) -> int | None:
        """Return the real address of a range of live device memory, or None."""
        block = self.device_memory.find(address ^ MARK, nbytes)
        return address ^ MARK if block is not None and block.device == device else None

    def pin(self, nbytes: int) -> int:
        """Return the address of fresh page-locked host memory, filled with POISON."""
        if nbytes <= 0:
            raise Refused(CUresult.CUDA_ERROR_INVALID_VALUE)
        raw = ctypes.create_string_buffer(nbytes + PAGE)
        start = -(-ctypes.addressof(raw) // PAGE) * PAGE
        library().emu_poison(start, nbytes)
        self.pinned.add(Block(start, nbytes, keep=raw))
        return start

    def unpin(self, address: int) -> None:
        """Free memory from `pin`."""
        block = self.pinned.remove(address)
        if block is None:
            raise Refused(CUresult.CUDA_ERROR_INVALID_VALUE, f"nothing is pinned at {address}")
        library().emu_poison(block.start, block.nbytes)

    # --- work

    def failed(self, context: Context, result: CUresult, reason: str) -> None:
        """Record a fault on the device; the context becomes unusable."""
        context.fault = context.fault or result
        self.faults.append(reason)

    def move(self, context: Context, target: tuple[int, bool], source: Any, nbytes: int) -> None:
        """Run a queued copy. Places are (address, is_device); a source may be bytes."""
        if context.fault is not None:
            return
        to = self._real(context, target, nbytes)
        from_ = self._real(context, source, nbytes) if isinstance(source, tuple) else source
        if to is None or from_ is None:
            reason = f"a copy of {nbytes} bytes reaches memory that was freed meanwhile"
            self.failed(context, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, reason)
        else:
            ctypes.memmove(to, from_, nbytes)

    def _real(self, context: Context, place: tuple[int, bool], nbytes: int) -> int | None:
        return self.device_range(place[0], nbytes, context.index) if place[1] else place[0]

    def run(
        self, context: Context, function: Function, slots: bytearray, sizes: tuple[int, ...]
    ) -> None:
        """Run a queued kernel."""
        if context.fault is not None:
            return
        if self.crash_in:
            self.crash_in -= 1
            if not self.crash_in:
                return self.failed(context, CUresult.CUDA_ERROR_LAUNCH_FAILED, "scripted crash")
        blocks = self._pointers(context, function, slots)
        if blocks is None:
            return
        result, reason = function.run(slots, sizes, self.chance.getrandbits(64))
        if result != FINE:
            bad = result == BAD_ADDRESS
            found = "ILLEGAL_ADDRESS" if bad else "LAUNCH_FAILED"
            self.failed(context, getattr(CUresult, f"CUDA_ERROR_{found}"), reason)
        elif any(b.device >= 0 and not _margins_whole(b) for b in blocks):
            reason = f"{function.name}: wrote beside a block of memory"
            self.failed(context, CUresult.CUDA_ERROR_ILLEGAL_ADDRESS, reason)

    def _pointers(
        self, context: Context, function: Function, slots: bytearray
    ) -> list[Block] | None:
        """Translate addresses to real ones; return their blocks, or None after a fault."""
        blocks = []
        for i, aim in enumerate(function.aims):
            place = slice(i * SLOT, i * SLOT + 8)
            address = int.from_bytes(slots[place], "little")
            if not aim or not address:
                continue
            block = self.pinned.find(address) or self.device_memory.find(address ^ MARK)
            wrong = "is neither live device memory nor pinned" if block is None else ""
            if block is not None and block.device not in (-1, context.index):
                wrong = f"is memory of device {block.device}"
            if wrong or address % aim:
                reason = f"{function.name}: argument {i}, {address:#x}, {wrong or 'is misaligned'}"
                kind = "ILLEGAL" if wrong else "MISALIGNED"
                self.failed(context, getattr(CUresult, f"CUDA_ERROR_{kind}_ADDRESS"), reason)
                return None
            assert block is not None
            slots[place] = (address & ~MARK).to_bytes(8, "little")
            blocks.append(block)
        return blocks


def _margins_whole(block: Block) -> bool:
    return all(ctypes.string_at(at, n) == _pattern(at, n) for at, n in block.margins() if n)


def _pattern(at: int, nbytes: int) -> bytes:
    return (POISON * (nbytes // 4 + 2))[at % 4 :][:nbytes]


__all__ = ["MARK", "Block", "Context", "Event", "Loaded", "Machine", "Refused", "Stream"]
