"""Broken backends: the reference, with one error each. The conformance kit must catch every one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from dovetail.backend.interface import (
    Backend,
    BackendInfo,
    DeviceInfo,
    Handles,
    Program,
    QueuedLaunch,
    Replay,
)
from dovetail.backend.reference import ReferenceBackend, ReferenceProgram
from dovetail.dtypes import float16, float32, float64, int32
from dovetail.ir.builder import Kernel
from dovetail.ir.language import (
    Atomic,
    Loop,
    Store,
    Value,
    bitcast,
    cast,
    const,
    load,
    walk,
    where,
)
from dovetail.ir.rewrite import Cloner, rewrite_kernel
from dovetail.plugins.hooks import hookimpl
from dovetail.plugins.registry import open_device

Numbers = Sequence[float | int | bool]


class Plugin:
    """A plugin whose one device is a backend of this class."""

    def __init__(self, backend: type[Honest]) -> None:
        self.backend = backend
        self.type = backend.__name__.lower()

    @hookimpl
    def dovetail_backend_info(self) -> BackendInfo:
        return BackendInfo(self.type, "1")

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        return [replace(ReferenceBackend.info, type=self.type, fingerprint=self.type)]

    @hookimpl
    def dovetail_open(self, info: DeviceInfo, config: Mapping[str, str]) -> Backend:
        made = self.backend(info)
        made.configured(config)
        return made

    @hookimpl
    def dovetail_conformance(self) -> Mapping[str, str]:
        return self.backend.gaps


class Honest(ReferenceBackend):
    """The reference under another name: the kit must find nothing."""

    plugin: ClassVar[Plugin]
    shown_by: ClassVar[str] = ""  # part of the kit (as for pytest -k) that detects it
    sign: ClassVar[str] = "differ"  # part of the kit's message
    gaps: ClassVar[Mapping[str, str]] = {}

    def __init__(self, info: DeviceInfo) -> None:
        self.info = info

    def __init_subclass__(cls) -> None:
        cls.plugin = Plugin(cls)

    def configured(self, config: Mapping[str, str]) -> None:
        """Apply the settings that the device is opened with."""

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        super().launch(program, *self.said(buffers, ints, scalars, grid), stream)

    def said(
        self, buffers: Handles, ints: Sequence[int], scalars: Numbers, grid: Sequence[int]
    ) -> tuple[Handles, Sequence[int], Numbers, Sequence[int]]:
        """Return the arguments that the launch gets in place of these."""
        return buffers, ints, scalars, grid


Honest.plugin = Plugin(Honest)


# --- memory


class WrongOffset(Honest):
    """Ignore the byte offset of every buffer but the first."""

    shown_by = "test_layouts"
    sign = "outside of a buffer"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        return (
            tuple(0 if k % 2 and k > 1 else x for k, x in enumerate(buffers)),
            ints,
            scalars,
            grid,
        )


class ClearsResults(Honest):
    """Clear write-only buffers first, as if they shared no memory."""

    shown_by = "test_layouts and may_be_what_is_written"
    sign = "third 0 of some memory read, third 0 written"

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        lengths = dict(zip(program.kernel.ints, ints, strict=True))
        places = zip(program.kernel.buffers, buffers[::2], buffers[1::2], strict=True)
        for b, handle, offset in places:
            if b.access == "w" and lengths.keys() == {"n", "m", "s", "t"} and lengths["t"] == 1:
                handle[offset : offset + grid[-1] * b.dtype.itemsize] = 0
        super().launch(program, buffers, ints, scalars, grid, stream)


class BindsRanges(Honest):
    """Bind the memory from each offset on, so that a negative index reads 0."""

    shown_by = "test_limits and neighbours"

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        bound = list(buffers)
        for k, b in enumerate(program.kernel.buffers):
            if b.access == "r":
                bound[2 * k] = buffers[2 * k].copy()
                bound[2 * k][: buffers[2 * k + 1]] = 0
        super().launch(program, tuple(bound), ints, scalars, grid, stream)


class LeakingFree(Honest):
    """Never free memory."""

    shown_by = "test_allocator"
    sign = "still held"

    leaked: ClassVar[list[Any]] = []

    def free(self, handle: Any, nbytes: int) -> None:
        self.leaked.append(handle)


class Unaligned(Honest):
    """Allocate memory at multiples of 16 bytes."""

    shown_by = "test_allocator"
    sign = "multiple of 64"

    def allocate(self, nbytes: int) -> Any:
        return super().allocate(nbytes + 64)[16 : 16 + nbytes]


class ShortCopy(Honest):
    """Copy only whole groups of eight bytes."""

    shown_by = "test_allocator"

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        super().copy_out(target[: target.nbytes // 8 * 8], handle, offset, stream)


class HandsOutTwice(Honest):
    """Give every eighth block the memory of the one before."""

    shown_by = "test_allocator"

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.count, self.last = 0, np.empty(0, np.uint8)

    def allocate(self, nbytes: int) -> Any:
        self.count += 1
        if self.count % 8 or self.last.size < nbytes:
            self.last = super().allocate(nbytes)
        return self.last[:nbytes]


# --- streams


class Late(Honest):
    """Run work at a synchronization and no sooner: honest, except for subclasses."""

    asynchronous = True
    dlpack_type = None

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.queues: dict[Any, list[Callable[[], object]]] = {}
        self.lock = threading.RLock()

    def host_address(self, handle: Any, offset: int) -> int | None:
        return None

    def adopt(self, address: int, nbytes: int) -> Any:
        return None

    def queue(self, stream: Any, work: Callable[[], object]) -> int:
        with self.lock:
            queued = self.queues.setdefault(stream, [])
            queued.append(work)
            return len(queued)

    def run(self, stream: Any, until: int | None = None) -> None:
        """Run the queued work of a stream, up to an item of that number."""
        with self.lock:
            queued = self.queues.setdefault(stream, [])
            for at in range(len(queued) if until is None else until):
                work, queued[at] = queued[at], lambda: None
                work()

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        said = (program, buffers, ints, tuple(scalars), grid)
        self.queue(stream, lambda: Honest.launch(self, *said))

    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        kept = memoryview(bytes(source))
        self.queue(stream, lambda: Honest.copy_in(self, handle, offset, kept))

    def copy_out(self, target: memoryview, handle: Any, offset: int, stream: Any = None) -> None:
        self.run(stream)
        super().copy_out(target, handle, offset)

    def synchronize(self, stream: Any = None) -> None:
        for each in list(self.queues) if stream is None else [stream]:
            self.run(each)

    def record_event(self, stream: Any) -> Any:
        passed: list[int] = []
        return stream, self.queue(stream, lambda: passed.append(time.perf_counter_ns())), passed

    def event_done(self, event: Any) -> bool:
        return bool(event[2])

    def wait_event(self, stream: Any, event: Any) -> None:
        if stream is None:
            self.run(*event[:2])
        else:
            self.queue(stream, lambda: self.run(*event[:2]))

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return float(end[2][0] - start[2][0]) / 1e6


class IgnoresEvents(Late):
    """Ignore waits for events of other streams."""

    shown_by = "test_streams"

    def wait_event(self, stream: Any, event: Any) -> None:
        if stream is None:
            super().wait_event(stream, event)


class DropsSynchronize(Late):
    """Report that the work of all streams is done after finishing that of one."""

    shown_by = "test_streams"

    def synchronize(self, stream: Any = None) -> None:
        self.run(stream)


class SaysDone(Late):
    """Report every event as done."""

    shown_by = "test_streams and reused"

    def event_done(self, event: Any) -> bool:
        return True


class HostDoesNotWait(Late):
    """Continue on the host without waiting for an event."""

    shown_by = "test_streams"
    sign = "has not passed"

    def wait_event(self, stream: Any, event: Any) -> None:
        if stream is not None:
            super().wait_event(stream, event)


class CopiesAtOnce(Late):
    """Write to memory immediately, although queued work of the stream still reads it."""

    shown_by = "test_streams and copies_in"
    sign = "before copy_in overwrote it"

    def copy_in(self, handle: Any, offset: int, source: memoryview, stream: Any = None) -> None:
        Honest.copy_in(self, handle, offset, source)


class QueuesCopiesApart(Late):
    """Let only queued copies overtake earlier work."""

    shown_by = "test_streams and copies_in"
    sign = "what queue_copy_in wrote"

    def queue_copy_in(
        self, handle: Any, offset: int, source: memoryview, stream: Any = None
    ) -> None:
        Honest.copy_in(self, handle, offset, source)


class OverwritesPrograms(CopiesAtOnce):
    """As `CopiesAtOnce`, detected by a program that a user would write."""

    shown_by = "test_streams and used_again"
    sign = "where the memory of x was written anew"


class CopiesOutLate(Late):
    """Run queued copies to the host only when all work is done."""

    shown_by = "test_streams and copies_out"
    sign = "a queued copy out"

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.waiting: list[tuple[memoryview, Any, int]] = []

    def queue_copy_out(
        self, target: memoryview, handle: Any, offset: int, stream: Any = None
    ) -> None:
        self.waiting.append((target, handle, offset))

    def synchronize(self, stream: Any = None) -> None:
        super().synchronize(stream)
        while self.waiting:
            Honest.copy_out(self, *self.waiting.pop())


class TakesNoTime(Honest):
    """Report a duration of zero for every measurement."""

    shown_by = "test_streams and measure"
    sign = "took no time"

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return 0.0


class CountsMicroseconds(Honest):
    """Measure in another unit."""

    shown_by = "test_streams and measure"
    sign = "more than that"

    def elapsed_ms(self, start: Any, end: Any) -> float:
        return super().elapsed_ms(start, end) * 1e3


class DeniesItsQueue(Late):
    """Claim that work is done when `launch` returns."""

    asynchronous = False
    shown_by = "test_streams and says_it_waits"
    sign = "asynchronous is False"


# --- programs and their device


class Compiles(Honest):
    """A backend with binaries: honest, except for subclasses."""

    options = "all"  # the compiler's options

    def compile(self, kernel: Kernel) -> Program:
        program = super().compile(kernel)
        program.binary = f"{self.options} {kernel}".encode()
        return program


class RefusesItsBinaries(Compiles):
    """Fail to load binaries that another process has compiled."""

    shown_by = "test_lifecycle and another_process"
    sign = "nothing is ever cached"

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.known: set[bytes | None] = set()

    def compile(self, kernel: Kernel) -> Program:
        program = super().compile(kernel)
        self.known.add(program.binary)
        return program

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        if binary not in self.known:
            raise FileNotFoundError("the compiler's folder has gone")
        return self.compile(kernel)


class RefusesEveryBinary(Compiles):
    """Fail to load every binary."""

    shown_by = "test_lifecycle and loaded_again"
    sign = "this is no path"

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        raise TypeError("this is no path")


class ForgetsASetting(Compiles):
    """Compile differently at another level that is not part of the fingerprint."""

    shown_by = "test_lifecycle and settings"
    sign = "opt_level=0"

    def configured(self, config: Mapping[str, str]) -> None:
        self.options = config.get("opt_level", "2")


class TakesNoStream(Honest):
    """Ignore the stream of a copy."""

    shown_by = "test_lifecycle and methods"
    sign = "must accept the core's call"

    def copy_out(self, target: memoryview, handle: Any, offset: int) -> None:  # type: ignore[override]  # the lie
        super().copy_out(target, handle, offset)


class StaleBinary(Honest):
    """Identify programs by the names of their kernels."""

    shown_by = "test_lifecycle"
    sign = "wrong binary"

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.known: dict[str, Program] = {}

    def compile(self, kernel: Kernel) -> Program:
        program = self.known[kernel.name] = super().compile(kernel)
        program.binary = kernel.name.encode()
        return program

    def load(self, kernel: Kernel, binary: bytes) -> Program:
        return self.known.get(binary.decode()) or self.compile(kernel)


class WorksElsewhere(Honest):
    """Run everything on another device, and copy the results."""

    shown_by = "test_layouts"
    sign = "done on reference"

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        other = open_device("reference")
        held = [other.allocator.allocate(handle.nbytes) for handle in buffers[::2]]
        for p, mine in zip(held, buffers[::2], strict=True):
            other.backend.copy_in(p.handle, p.offset, memoryview(mine))
        places = [(p.handle, p.offset + at) for p, at in zip(held, buffers[1::2], strict=True)]
        flat = tuple(x for place in places for x in place)
        other.backend.launch(other.backend.compile(program.kernel), flat, ints, scalars, grid)
        for p, mine in zip(held, buffers[::2], strict=True):
            other.backend.copy_out(memoryview(mine), p.handle, p.offset)


# --- launches


class IgnoredStride(Honest):
    """Treat the last integer argument as 1 if there are more than three."""

    shown_by = "test_layouts"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        return buffers, [*ints[:-1], 1] if len(ints) > 3 else ints, scalars, grid


class DropsTheLast(Honest):
    """Skip the last point of a row longer than 32, as a wrong vector remainder would."""

    shown_by = "test_scalar_ops and add-float32"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        short = [*grid[:-1], grid[-1] - 1] if grid and grid[-1] > 32 else grid
        return buffers, ints, scalars, short


class CoarseScalars(Honest):
    """Round float arguments to half precision."""

    shown_by = "test_scalar_ops and scalars"
    sign = "buffer out"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        with np.errstate(over="ignore"):
            coarse = [float(np.float16(x)) if isinstance(x, float) else x for x in scalars]
        return buffers, ints, coarse, grid


class TypedScalars(Honest):
    """Read the bits of integer arguments as floats, as a union would."""

    shown_by = "test_scalar_ops and whole_numbers"
    sign = "buffer out"

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        given = [
            np.int64(x).view(np.float64).item() if d.kind == "f" and isinstance(x, int) else x
            for x, (_, d) in zip(scalars, program.kernel.scalars, strict=True)
        ]
        super().launch(program, buffers, ints, given, grid, stream)


class NarrowIntegers(Honest):
    """Pass integers as 32 bits."""

    shown_by = "test_layouts and 64_bits"

    def said(self, buffers: Any, ints: Any, scalars: Any, grid: Any) -> Any:
        return buffers, [(n + (1 << 31)) % (1 << 32) - (1 << 31) for n in ints], scalars, grid


# --- arithmetic


class ChangedProgram(ReferenceProgram):
    """Show one kernel and run another."""

    def __init__(self, kernel: Kernel, runs: Kernel) -> None:
        super().__init__(kernel)
        self.runs = ReferenceProgram(runs)


class Changed(Honest):
    """Compile a modified kernel."""

    def compile(self, kernel: Kernel) -> Program:
        return ChangedProgram(kernel, self.changed(kernel))

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        super().launch(program.runs, buffers, ints, scalars, grid, stream)

    def changed(self, kernel: Kernel) -> Kernel:
        return rewrite_kernel(kernel, self.rule)

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        """Return the replacement of `v`, or None to keep it."""
        return None


class FlushesDenormals(Changed):
    """Flush denormal float32 products to zero."""

    shown_by = "test_scalar_ops and mul-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "mul" or v.dtype is not float32:
            return None
        exact, least = Value("mul", float32, args), const(2.0**-126, float32)
        return where((exact < least) & (-least < exact), exact * 0.0, exact)


class _Nonatomic(Cloner):
    """A cloner that loads, adds and stores where a kernel has an atomic addition of 64 bits."""

    def effect(self, s: Store | Atomic) -> Store | Atomic:
        new = super().effect(s)
        if isinstance(s, Store) or s.op != "add" or s.buffer.dtype.itemsize < 8:
            return new
        total = load(new.buffer, new.index, new.when) + new.value
        self.emit(total)
        return Store(new.buffer, new.index, total, new.when)


class LosesAdditions(Changed):
    """Lose all but one of several atomic additions to one integer of 64 bits."""

    shown_by = "test_layouts and atomics"

    def changed(self, kernel: Kernel) -> Kernel:
        return kernel.with_body(_Nonatomic().block(kernel.body))


class WrongRounding(Changed):
    """Cast float64 to float32 towards zero."""

    shown_by = "test_scalar_ops and test_cast"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "cast" or v.dtype is not float32 or args[0].dtype is not float64:
            return None
        (x,), near = args, Value("cast", float32, args)
        back, bits = cast(near, float64), bitcast(near, int32)
        beyond = ((back < x) & (x < 0.0)) | ((x < back) & (x > 0.0))
        return bitcast(where(beyond, bits - 1, bits), float32)


class UnfusedFma(Changed):
    """Round an fma twice."""

    shown_by = "test_scalar_ops and fma"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        return args[0] * args[1] + args[2] if v.op == "fma" else None


class Contracts(Changed):
    """Contract a product and a sum into one operation, as a compiler does by default."""

    shown_by = "test_scalar_ops and contracted"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op == "add" and v.dtype.kind == "f" and args[0].op == "mul":
            return Value("fma", v.dtype, (*args[0].args, args[1]))
        return None


class Reassociates(Changed):
    """Turn (x + y) + z into x + (y + z)."""

    shown_by = "test_scalar_ops and reassociated"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op == "add" and v.dtype.kind == "f" and args[0].op == "add":
            (x, y), z = args[0].args, args[1]
            return x + Value("add", v.dtype, (y, z))
        return None


class DividesByTheReciprocal(Changed):
    """Compute x / y as x * (1 / y), as fast-math does."""

    shown_by = "test_scalar_ops and div-float32"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "div" or v.dtype is not float32:
            return None
        return args[0] * Value("div", float32, (const(1.0, float32), args[1]))


class LosesTheSignOfZero(Changed):
    """Compute -x as 0 - x."""

    shown_by = "test_scalar_ops and neg-float"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "neg" or v.dtype.kind != "f":
            return None
        return const(0.0, v.dtype) - args[0]


class TruncatesHalves(Changed):
    """Cast float32 to float16 towards zero."""

    shown_by = "test_scalar_ops and nearest_half"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "cast" or v.dtype is not float16 or args[0].dtype is not float32:
            return None
        (x,), near = args, Value("cast", float16, args)
        back, lower = cast(near, float32), const(2.0**-13, float32)
        beyond = ((back < x) & (x < 0.0)) | ((x < back) & (x > 0.0))
        return Value("cast", float16, (where(beyond, x - x * lower, x),))


class MaskedLoadsGiveOnes(Changed):
    """Return one from a masked load."""

    shown_by = "test_scalar_ops and predicated"

    def rule(self, v: Value, args: tuple[Value, ...]) -> Value | None:
        if v.op != "load" or len(args) < 2 or v.dtype not in (float32, float64):
            return None
        return where(args[1], Value("load", v.dtype, args, v.buffer), const(1.0, v.dtype))


class NansLose(Changed):
    """Ignore NaN in a maximum, as fmax does."""

    shown_by = "test_reductions and special"

    def changed(self, kernel: Kernel) -> Kernel:
        copy = super().changed(kernel)
        for s in walk(copy.body):
            if isinstance(s, Loop) and s.combine == "max" and s.update[0].dtype.kind == "f":
                (x,) = s.update
                is_number = x <= x
                kept = where(is_number, x, const(float("-inf"), x.dtype))
                s.body, s.update = (*s.body, is_number, kept), (kept,)
        return copy


class WrongOrder(Changed):
    """Add floats sequentially."""

    shown_by = "test_reductions"

    def changed(self, kernel: Kernel) -> Kernel:
        copy = super().changed(kernel)
        for s in walk(copy.body):
            if isinstance(s, Loop) and s.combine == "add" and s.update[0].dtype.kind == "f":
                _make_sequential(s)
        return copy


def _make_sequential(loop: Loop) -> None:
    (x,) = loop.update
    carry = Value("carry", x.dtype, (), (loop, 0))
    total = carry + x
    loop.kind, loop.combine, loop.init = "fold", None, (const(0.0, x.dtype),)
    loop.carry, loop.update, loop.body = (carry,), (total,), (*loop.body, total)


class ShuffledSequence(Honest):
    """Run the launches of a sequence in another order."""

    shown_by = "test_streams and sequence"

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        def replay(at: list[Any], variables: list[Any], stream: Any) -> None:
            for launch, buffers, scalars in reversed(launches):
                handles = [x for k, o in buffers for x in (at[2 * k], at[2 * k + 1] + o)]
                numbers = [x if k is None else variables[k] for x, k in scalars]
                launch(tuple(handles), numbers, stream)

        return replay


# --- gaps


class DeclaresItsGap(UnfusedFma):
    """Lack fused multiply-add, and declare it."""

    gaps: ClassVar[Mapping[str, str]] = {
        "scalar_ops.arithmetic.fma-*": "rounds twice",
        "scalar_ops.fma_rounds_once.*": "rounds twice",
    }


class BoastsOfAGap(Honest):
    """Declare a gap that does not exist."""

    gaps: ClassVar[Mapping[str, str]] = {"streams.*": "no streams"}


class MisspellsItsGap(UnfusedFma):
    """Declare a gap for a case that does not exist."""

    gaps: ClassVar[Mapping[str, str]] = {"scalar_ops.fused_multiply_add": "rounds twice"}


class ListsItsGaps(Honest):
    """Declare gaps as a list."""

    gaps: ClassVar[Any] = ["streams.*"]


BROKEN = (
    WrongOffset, LeakingFree, HandsOutTwice, IgnoresEvents, DropsSynchronize, SaysDone, StaleBinary,
    WorksElsewhere, IgnoredStride, DropsTheLast, FlushesDenormals, UnfusedFma, Contracts,
    TruncatesHalves, WrongOrder, ShuffledSequence, CopiesAtOnce, OverwritesPrograms,
    DeniesItsQueue, TakesNoTime, RefusesItsBinaries, ForgetsASetting, TypedScalars, ClearsResults,
    LosesAdditions,
    BindsRanges,
)  # fmt: skip
MORE_BROKEN = (  # with the same dtypes
    Unaligned, ShortCopy, HostDoesNotWait, CoarseScalars, NarrowIntegers, WrongRounding,
    Reassociates, DividesByTheReciprocal, LosesTheSignOfZero, MaskedLoadsGiveOnes, NansLose,
    QueuesCopiesApart, CopiesOutLate, CountsMicroseconds, RefusesEveryBinary, TakesNoStream,
)  # fmt: skip
