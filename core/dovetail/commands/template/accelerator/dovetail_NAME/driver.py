"""Stands for the vendor's driver: replace this file first, by calls of the real one.

The device is simulated: memory behind handles, and queues that do their work LATE, as hardware
does: what is not ordered goes wrong here as it would there. Only `device.py`, `compile.py` and
`plugin.py` use it, by the names that have no underscore.
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

MEMORY_BYTES = 8 << 30  # bytes of the device
GROUP_ITEMS = 64  # work items in a group; a launch is of whole groups
ALIGNMENT_BYTES = 64  # bytes; dovetail asks for it
# Without contraction, which changes bits; signed integers wrap; errno would forbid to inline sqrt.
_FLAGS = ["-O2", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fwrapv", "-w"]
_libc = ctypes.CDLL(None)


class DriverError(Exception):
    """The driver, or work that was queued earlier, has failed."""


# --- the compiler: of a C with one function per work item, `kernel void f(...)`


def find_compiler() -> list[str] | None:
    """The command of the C compiler: $CC, or what PATH has; None where there is none."""
    asked = os.environ.get("CC", "").split()
    commands = [asked] if asked else [["cc"], ["gcc"], ["clang"]]
    return next((c for c in commands if shutil.which(c[0])), None)


def build(command: Sequence[str], source: str) -> bytes:
    """The binary of a text with one kernel. Raises: DriverError with the compiler's log."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernel.so")
        line = [*command, *_FLAGS, "-x", "c", "-", "-o", str(path), "-lm"]
        done = subprocess.run(line, input=_with_loop(source), capture_output=True, text=True)
        if done.returncode:
            raise DriverError(f"{' '.join(line)}\n{done.stderr}")
        return path.read_bytes()


def _with_loop(source: str) -> str:
    """The text, and a function that does all work items of a launch: here hardware is a loop."""
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
    """A loaded binary, of which `name` is a kernel. Raises: OSError, AttributeError for any other.

    It is unloaded when nothing refers to it any more; a queued launch does.
    """

    def __init__(self, binary: bytes, name: str) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "kernel.so")
            path.write_bytes(binary)
            library = ctypes.CDLL(str(path))
        handle = ctypes.c_void_p(library._handle)
        weakref.finalize(self, _libc.dlclose, handle).atexit = False  # queues may be running yet
        self._run = library[f"run_{name}"]


# --- the device: memory, queues, events


class Context:
    """The opened device. A handle of memory is a number that only this driver can read."""

    def __init__(self, delay_seconds: float) -> None:
        """`delay_seconds`: seconds that each command waits for no reason."""
        self.delay_seconds, self._free_bytes, self._failed = (
            delay_seconds,
            MEMORY_BYTES,
            list[Exception](),
        )
        self._memory: dict[int, Any] = {}
        self._queues: list[Queue] = []
        self._numbers, self._lock = itertools.count(1), threading.Lock()

    def malloc(self, nbytes: int) -> int:
        """A handle of new memory. Raises: MemoryError."""
        with self._lock:
            if nbytes > self._free_bytes:
                raise MemoryError(f"{nbytes} bytes needed, {self._free_bytes} bytes left")
            block = np.empty(nbytes + ALIGNMENT_BYTES, np.uint8)
            first, handle = -block.ctypes.data % ALIGNMENT_BYTES, next(self._numbers)
            self._memory[handle] = block[first : first + nbytes]
            self._free_bytes -= nbytes
        return handle

    def free(self, handle: int) -> None:
        """Gives memory up at once, whatever is queued."""
        with self._lock:
            self._free_bytes += len(self._memory.pop(handle))

    def queue(self) -> Queue:
        """A new queue."""
        made = Queue(self)
        self._queues.append(made)
        return made

    def synchronize(self) -> None:
        """Waits for all queues. Raises: DriverError if anything queued has failed."""
        for mark in [q.record() for q in tuple(self._queues)]:
            mark.wait()
        self.check()

    def check(self) -> None:
        """Raises: DriverError, once, if anything queued has failed."""
        if self._failed:
            failed, self._failed = self._failed, []
            raise DriverError(f"queued work failed: {failed[0]}") from failed[0]

    def close(self) -> None:
        """Ends the queues, after what they still have to do, and gives all memory up."""
        for each in self._queues:
            each._end()
        self._memory.clear()

    def _bytes(self, handle: int, first: int, last: int) -> Any:
        memory = self._memory.get(handle)
        if memory is None or not 0 <= first <= last <= len(memory):
            raise DriverError(f"bytes {first} to {last} are not part of memory {handle}")
        return memory[first:last]


class Queue:
    """Does commands in order, late, on a thread of its own; what they refer to is kept till then.

    An error of a command stops nothing: the next synchronize raises it.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._commands: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def write(self, handle: int, offset: int, source: memoryview | bytes) -> None:
        """Queues a copy to the device; `source` is read later."""
        self._commands.put(partial(self._write, handle, offset, source))

    def read(self, target: memoryview, handle: int, offset: int) -> None:
        """Queues a copy to the host; `target` is written later."""
        self._commands.put(partial(self._read, target, handle, offset))

    def launch(self, module: Module, groups: int, arguments: Sequence[int | bytes]) -> None:
        """Queues a kernel: handles of memory, and the bytes of each number, in its order."""
        self._commands.put(partial(self._launch, module, groups, arguments))

    def record(self) -> Event:
        """An event that passes when all that is queued is done."""
        event = Event()
        self._commands.put(event._pass)
        return event

    def wait(self, event: Event) -> None:
        """Has what is queued later wait for an event, of any queue."""
        self._commands.put(event.wait)

    def synchronize(self) -> None:
        """Waits for what is queued. Raises: DriverError if anything queued has failed."""
        self.record().wait()
        self._context.check()

    def _write(self, handle: int, offset: int, source: memoryview | bytes) -> None:
        host = np.frombuffer(source, np.uint8)
        self._context._bytes(handle, offset, offset + host.nbytes)[:] = host

    def _read(self, target: memoryview, handle: int, offset: int) -> None:
        host = np.frombuffer(target, np.uint8)
        host[:] = self._context._bytes(handle, offset, offset + host.nbytes)

    def _launch(self, module: Module, groups: int, arguments: Sequence[int | bytes]) -> None:
        held = [a if isinstance(a, bytes) else self._address(a) for a in arguments]
        packed = (ctypes.c_char_p * len(held))(*held)
        module._run(ctypes.c_longlong(groups * GROUP_ITEMS), packed)

    def _address(self, handle: int) -> bytes:
        return np.uint64(self._context._bytes(handle, 0, 0).ctypes.data).tobytes()

    def _work(self) -> None:
        while (command := self._commands.get()) is not None:
            time.sleep(self._context.delay_seconds)
            try:
                command()
            except Exception as error:
                self._context._failed.append(error)
            del command  # and what it keeps

    def _end(self) -> None:
        self._commands.put(None)
        self._thread.join()


class Event:
    """A mark in a queue."""

    def __init__(self) -> None:
        self._passed, self._at = threading.Event(), 0

    def passed(self) -> bool:
        """Whether all before it is done."""
        return self._passed.is_set()

    def wait(self) -> None:
        """Waits until all before it is done."""
        self._passed.wait()

    def ms_since(self, start: Event) -> float:
        """Milliseconds on the device between two events, when both have passed."""
        start.wait()
        self.wait()
        return (self._at - start._at) / 1e6

    def _pass(self) -> None:
        self._at = time.perf_counter_ns()
        self._passed.set()
