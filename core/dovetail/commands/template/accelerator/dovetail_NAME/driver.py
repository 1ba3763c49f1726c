"""A simulated driver: replace this file first, by calls of the vendor's driver.

The simulated device has memory behind handles, and queues that run commands LATE, as hardware
does. A missing synchronization therefore fails here as on hardware. Only `device.py`, `compile.py`
and `plugin.py` use this module, by the names that have no underscore.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

MEMORY_BYTES = 8 << 30  # memory of the device
GROUP_ITEMS = 64  # work items in a group; a launch runs whole groups
ALIGNMENT_BYTES = 64  # dovetail requires it
# Contraction changes bits; signed integers must wrap; setting errno prevents inlining sqrt.
_FLAGS = ["-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-w"]
_libc = ctypes.CDLL(None)


class DriverError(Exception):
    """An error of the driver, or of work that was queued earlier."""


# --- the compiler of a C dialect: one function, `kernel void f(...)`, runs one work item


def find_compiler() -> list[str] | None:
    """Return the command of the C compiler: $CC, or one from PATH; None if there is none."""
    asked = os.environ.get("CC", "").split()
    commands = [asked] if asked else [["cc"], ["gcc"], ["clang"]]
    return next((c for c in commands if shutil.which(c[0])), None)


def build(command: Sequence[str], source: str) -> bytes:
    """Compile a source with one kernel, or raise DriverError with the compiler's log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        line = [*command, *_FLAGS, "-x", "c", "-", "-o", str(path), "-lm"]
        done = subprocess.run(line, input=_with_loop(source), capture_output=True, text=True)
        if done.returncode:
            raise DriverError(f"{' '.join(line)}\n{done.stderr}")
        return path.read_bytes()


def _with_loop(source: str) -> str:
    """Return the source with a function that loops over work items, in place of hardware."""
    head = re.search(r"^kernel void (\w+)\((.*)\)", source, re.M)
    assert head is not None
    name, typed = head[1], re.findall(r"(\w[\w ]*[ *])(\w+)(?:, |$)", head[2])
    unpacked = [f"  {t}{n} = *({t}*)arguments[{k}];" for k, (t, n) in enumerate(typed)]
    call = f"{name}({', '.join(['item', *(n for _, n in typed)])});"
    loop = f"  for (long long item = 0; item < items; ++item) {call}"
    run = [f"void run_{name}(long long items, void **arguments) {{", *unpacked, loop, "}"]
    hidden = f"static void {name}(const long long work_item, {head[2]})"
    return "\n".join([source.replace(head[0], hidden), *run, ""])


class Module:
    """A loaded binary with a kernel `name`; else its constructor raises OSError, AttributeError.

    It is unloaded when its last reference goes. A queued launch holds a reference.
    """

    def __init__(self, binary: bytes, name: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.so")
            path.write_bytes(binary)
            library = ctypes.CDLL(str(path))
        handle = ctypes.c_void_p(library._handle)
        weakref.finalize(self, _libc.dlclose, handle).atexit = False  # queues may still run at exit
        self._run = library[f"run_{name}"]


# --- the device: memory, queues, events


class Context:
    """The opened device. A memory handle is a number that only this driver interprets."""

    def __init__(self, delay_seconds: float) -> None:
        """Open the device. Each command waits `delay_seconds` first, to expose missing waits."""
        self.delay_seconds, self._free_bytes, self._failed = (
            delay_seconds,
            MEMORY_BYTES,
            list[Exception](),
        )
        self._memory: dict[int, Any] = {}
        self._queues: list[Queue] = []
        self._numbers, self._lock = itertools.count(1), threading.Lock()

    def malloc(self, nbytes: int) -> int:
        """Reserve new memory; return its handle. Raises: MemoryError if the device is full."""
        with self._lock:
            if nbytes > self._free_bytes:
                raise MemoryError(f"{nbytes} bytes needed, {self._free_bytes} bytes left")
            block = np.empty(nbytes + ALIGNMENT_BYTES, np.uint8)
            first, handle = -block.ctypes.data % ALIGNMENT_BYTES, next(self._numbers)
            self._memory[handle] = block[first : first + nbytes]
            self._free_bytes -= nbytes
        return handle

    def free(self, handle: int) -> None:
        """Free memory at once, even if work is queued."""
        with self._lock:
            self._free_bytes += len(self._memory.pop(handle))

    def queue(self) -> Queue:
        """Start and return a new queue, for which `synchronize` also waits."""
        made = Queue(self)
        self._queues.append(made)
        return made

    def synchronize(self) -> None:
        """Wait for all queues. Raise DriverError if a queued command has failed."""
        for mark in [q.record() for q in tuple(self._queues)]:
            mark.wait()
        self.check()

    def check(self) -> None:
        """Raise DriverError, once, if a queued command has failed."""
        if self._failed:
            failed, self._failed = self._failed, []
            raise DriverError(f"queued work failed: {failed[0]}") from failed[0]

    def close(self) -> None:
        """End the queues after their remaining commands, and free all memory."""
        for each in self._queues:
            each._end()
        self._memory.clear()

    def _bytes(self, handle: int, first: int, last: int) -> Any:
        """Return a view of a handle's bytes. Raises: DriverError if they are no part of it."""
        memory = self._memory.get(handle)
        if memory is None or not 0 <= first <= last <= len(memory):
            raise DriverError(f"bytes {first} to {last} are not part of memory {handle}")
        return memory[first:last]


class Queue:
    """A thread that runs commands in order, late. Until then a command keeps host operands alive.

    Device memory that a command uses must not be freed before. A command that fails does not stop
    the queue: the next synchronize raises its error.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._commands: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def write(self, handle: int, offset: int, source: memoryview | bytes) -> None:
        """Queue a copy to the device; `source` is read later."""
        self._commands.put(partial(self._write, handle, offset, source))

    def read(self, target: memoryview, handle: int, offset: int) -> None:
        """Queue a copy to the host; `target` is written later."""
        self._commands.put(partial(self._read, target, handle, offset))

    def launch(self, module: Module, groups: int, arguments: Sequence[int | bytes]) -> None:
        """Queue a kernel; arguments: handles, whose memory must stay until it ran, and bytes."""
        self._commands.put(partial(self._launch, module, groups, arguments))

    def record(self) -> Event:
        """Queue and return an event that passes when all commands queued before it are done."""
        event = Event()
        self._commands.put(event._pass)
        return event

    def wait(self, event: Event) -> None:
        """Make commands that are queued later wait for an event of any queue."""
        self._commands.put(event.wait)

    def synchronize(self) -> None:
        """Wait for all queued commands. Raise DriverError if one has failed."""
        self.record().wait()
        self._context.check()

    def _write(self, handle: int, offset: int, source: memoryview | bytes) -> None:
        """Copy bytes of the host to the device's memory, on the queue's thread."""
        host = np.frombuffer(source, np.uint8)
        self._context._bytes(handle, offset, offset + host.nbytes)[:] = host

    def _read(self, target: memoryview, handle: int, offset: int) -> None:
        """Copy bytes of the device's memory to the host, on the queue's thread."""
        host = np.frombuffer(target, np.uint8)
        host[:] = self._context._bytes(handle, offset, offset + host.nbytes)

    def _launch(self, module: Module, groups: int, arguments: Sequence[int | bytes]) -> None:
        """Run a kernel on all work items, on the queue's thread."""
        held = [a if isinstance(a, bytes) else self._address(a) for a in arguments]
        packed = (ctypes.c_char_p * len(held))(*held)
        module._run(ctypes.c_longlong(groups * GROUP_ITEMS), packed)

    def _address(self, handle: int) -> bytes:
        """Return the address of a handle's memory as 8 bytes."""
        return np.uint64(self._context._bytes(handle, 0, 0).ctypes.data).tobytes()

    def _work(self) -> None:
        """Run commands until None arrives; store their exceptions in the context."""
        while (command := self._commands.get()) is not None:
            time.sleep(self._context.delay_seconds)
            try:
                command()
            except Exception as error:
                self._context._failed.append(error)
            del command  # frees its operands

    def _end(self) -> None:
        """Stop the thread after its queued commands, and wait for it."""
        self._commands.put(None)
        self._thread.join()


class Event:
    """A mark in a queue."""

    def __init__(self) -> None:
        self._passed, self._at = threading.Event(), 0

    def passed(self) -> bool:
        """Return True if all commands before the event are done."""
        return self._passed.is_set()

    def wait(self) -> None:
        """Wait until all commands before the event are done."""
        self._passed.wait()

    def ms_since(self, start: Event) -> float:
        """Wait for both events; return the milliseconds between them on the device."""
        start.wait()
        self.wait()
        return (self._at - start._at) / 1e6

    def _pass(self) -> None:
        """Store the time, and release the threads that wait."""
        self._at = time.perf_counter_ns()
        self._passed.set()
