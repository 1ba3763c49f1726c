"""Devices that do a part of the work, and one behind a network: honest, and lying about it.

They are the reference under other names, as `lying_backends`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from dovetail.backend.interface import (
    HOST_MEMORY,
    DeviceInfo,
    Handles,
    LibraryCall,
    Program,
    QueuedLaunch,
    RawArgument,
    RawLaunch,
    Replay,
    StridedOperand,
)
from dovetail.backend.reference import ReferenceProgram
from dovetail.device_class import Device, device
from dovetail.dtypes import DType, float32
from dovetail.engine.programs import holders
from dovetail.errors import CompileError
from dovetail.ir.analysis import loads
from dovetail.ir.builder import Kernel
from dovetail.ir.language import Atomic, Loop, Value, walk
from dovetail.ir.target import Capabilities
from dovetail.plugins.entry import Entry
from dovetail.plugins.hooks import hookimpl
from dovetail.plugins.registry import open_device, registry
from limited import OF_REFERENCE
from lying_backends import Honest, Late, Numbers, Plugin


class PartialPlugin(Plugin):
    """A plugin whose one device names a companion."""

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = super().dovetail_probe(config)
        can: Capabilities = getattr(self.backend, "capabilities", info.capabilities)
        return [replace(info, companion=self.backend.companion, capabilities=can)]


class Partial(Honest):
    """Says of each kernel whether it takes it, and compiles no other."""

    companion: ClassVar[Any] = "reference"

    def __init_subclass__(cls) -> None:
        cls.plugin = PartialPlugin(cls)

    def accepts(self, kernel: Kernel) -> bool:
        return self.can(kernel)

    def can(self, kernel: Kernel) -> bool:
        """Whether it can compile a kernel."""
        return False

    def compile(self, kernel: Kernel) -> Program:
        if not self.can(kernel):
            raise CompileError(f"this accelerator has no way to run it\n{kernel}")
        return super().compile(kernel)


def is_simple(kernel: Kernel) -> bool:
    """Whether it is plain elementwise work on float32, or a sum of products."""
    statements = [*walk(kernel.body)]
    loops = [s for s in statements if isinstance(s, Loop)]
    return (
        all(b.dtype is float32 for b in kernel.buffers)
        and all(map(adds_products, loops))
        and len(loops) <= 1
        and not any(isinstance(s, Atomic) for s in statements)
    )


def adds_products(loop: Loop) -> bool:
    """Whether a loop is that of a matrix product."""
    last = loop.body[-1] if loop.body else None
    fused = isinstance(last, Value) and last.op == "fma"
    return loop.kind == "fold" and fused and len(loads(loop.body)) == 2


class Accelerator(Partial, Late):
    """Memory of its own, queues that work late; matrix products and elementwise float32 alone.

    Its own language is NumPy."""

    raw_language = "NumPy"

    def can(self, kernel: Kernel) -> bool:
        return is_simple(kernel)

    def compile_raw(
        self, source: str, name: str, arguments: Sequence[RawArgument], options: Sequence[str]
    ) -> RawLaunch:
        found: dict[str, Any] = {}
        exec(source, found)
        kinds = [a.dtype.__numpy_dtype__ for a in arguments if a.access]

        def launch(buffers: list[Any], scalars: Numbers, grid: Any, stream: Any) -> None:
            memory = zip(buffers[::2], buffers[1::2], kinds, strict=True)
            args = [handle[offset:].view(kind) for handle, offset, kind in memory]
            self.queue(stream, lambda: found[name](*args, *scalars))

        return launch


class WithVendor(Accelerator):
    """Has a routine for matrix products, and no kernel at all."""

    called = 0

    def can(self, kernel: Kernel) -> bool:
        return False

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        return {("matmul", float32): product}


def product(
    backend: WithVendor, inputs: Sequence[StridedOperand], output: StridedOperand, stream: Any
) -> None:
    """A vendor's routine, which needs the backend itself."""
    assert type(backend) is WithVendor
    backend.called += 1

    def view(operand: StridedOperand) -> Any:
        handle, offset, shape, strides, _ = operand
        steps = [4 * s for s in strides]
        return np.lib.stride_tricks.as_strided(handle[offset:].view("f4"), shape, steps)

    def work() -> None:
        view(output)[...] = view(inputs[0]) @ view(inputs[1])

    backend.queue(stream, work)


class Newborn(Partial):
    """A host that runs nothing yet: its companion works on its memory."""


class LateHost(Accelerator):
    """Its memory is the host's, and its queues work late."""

    dlpack_type = HOST_MEMORY
    host_address = Honest.host_address
    adopt = Honest.adopt


class NewbornOnCpu(Newborn):
    """The same, beside a faster companion."""

    companion = "cpu"


class NewbornApart(Partial, Late):
    """Runs nothing yet, and has memory of its own."""


class Rounding(NewbornApart):
    """Binds buffers at multiples of many bytes; a test says of how many."""

    capabilities = replace(OF_REFERENCE, offset_alignment=256)


class Alone(Accelerator):
    """Names no companion."""

    shown_by = "test_lifecycle and accepted"
    sign = "there is no DeviceInfo.companion"
    companion = None


class Chained(Accelerator):
    """Has a companion that has one."""

    companion = "newbornapart"


class Networked(Late):
    """Behind a network: each call that launches is a message, however much there is in it."""

    messages = 0
    largest = 0  # launches in one message

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        self.messages += 1
        super().launch(program, buffers, ints, scalars, grid, stream)

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        after = self.messages + 1
        super().launch_all(launches, stream)
        self.messages, self.largest = after, max(self.largest, len(launches))


class PartlyNetworked(Accelerator, Networked):
    """Behind a network, too, and its companion does what is no simple kernel.

    It replays launches of its own, and knows no others."""

    def bind(self, program: Any, ints: Sequence[int], grid: Sequence[int]) -> Any:
        assert isinstance(program, ReferenceProgram)
        launch = super().bind(program, ints, grid)
        launch.bound_by = self  # type: ignore[attr-defined]  # a function
        return launch

    def sequence(self, launches: Sequence[QueuedLaunch]) -> Replay:
        assert all(q.launch.bound_by is self for q in launches)  # type: ignore[attr-defined]

        def replay(at: list[Any], variables: list[Any], stream: Any) -> None:
            for launch, buffers, scalars in launches:
                handles = [x for k, byte in buffers for x in (at[2 * k], at[2 * k + 1] + byte)]
                launch(
                    tuple(handles), [x if k is None else variables[k] for x, k in scalars], stream
                )

        return replay


# --- what is wrong about it


class ShufflesLaunches(Networked):
    """Does launches that come together in another order."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        super().launch_all([*launches[::2], *launches[1::2]], stream)


class KeepsTheFirst(Networked):
    """Takes the numbers of the first launch for those of all."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        numbers = launches[0][2]
        super().launch_all([(run, at, numbers) for run, at, _ in launches], stream)


class LaunchesApart(Networked):
    """Launches that come together overtake what is queued on their stream."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        for run, at, numbers in launches:
            run(at, numbers, "apart")
        self.run("apart")


class AcceptsTooMuch(Accelerator):
    """Accepts what it cannot compile."""

    shown_by = "test_lifecycle and accepted"
    sign = "no way to run it"

    def accepts(self, kernel: Kernel) -> bool:
        return True


class ChangesItsMind(Accelerator):
    """Accepts every other time."""

    shown_by = "test_lifecycle and accepted"
    sign = "accepts(increment) is"
    asked = 0

    def accepts(self, kernel: Kernel) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


class AcceptsAndGuesses(Accelerator):
    """Accepts reductions, and computes them without their last element."""

    shown_by = "test_reductions"
    sign = "differ"

    def can(self, kernel: Kernel) -> bool:
        return True

    def said(
        self, buffers: Handles, ints: Sequence[int], scalars: Numbers, grid: Sequence[int]
    ) -> tuple[Handles, Sequence[int], Numbers, Sequence[int]]:
        lengths = [n for n in ints if n not in grid]
        return buffers, [n - 1 if lengths and n == lengths[0] else n for n in ints], scalars, grid


class Narcissus(Partial):
    """Its own companion."""

    companion = "narcissus"


class Hen(Partial):
    """Its companion has it for one."""

    companion = "egg"


class Egg(Partial):
    """And so on."""

    companion = "hen"


class Widowed(Partial):
    """Names what is not installed."""

    companion = "nowhere"


class Mumbling(Partial):
    """Names something that is no device's name."""

    companion = 7


class Evasive(Partial):
    """Answers neither yes nor no."""

    shown_by = "test_lifecycle and accepted"
    sign = "accepts(increment) is None"

    def accepts(self, kernel: Kernel) -> Any:
        return None


LIES = (
    ShufflesLaunches, KeepsTheFirst, LaunchesApart, AcceptsTooMuch, ChangesItsMind,
    AcceptsAndGuesses, Evasive, Alone,
)  # fmt: skip
HONEST = (
    Accelerator,
    LateHost,
    WithVendor,
    Newborn,
    NewbornApart,
    Chained,
    Networked,
    PartlyNetworked,
)


@contextmanager
def installed(*backends: type[Honest]) -> Iterator[list[Device]]:
    """These devices, as if pip had installed them; each is new."""
    gc.collect()  # pending work of devices that are gone
    devices = []
    for backend in backends:
        name = backend.plugin.type
        entry = Entry(
            name, f"{backend.__module__}:{backend.__name__}.plugin", distribution=f"dovetail-{name}"
        )
        registry.records()[name] = registry._record(name, [entry])
        devices.append(device(name))
    try:
        yield devices
    finally:
        for dev in devices:
            if dev.opened is not None:
                dev.opened.faults.settle_all()  # or all devices would wait for it
            dev.opened = None
            for cache in 2 * holders:  # plans hold launches of the backend that was
                cache.age()
            registry.records().pop(dev.type)


def backend_of(dev: Device) -> Any:
    """What the core sees of a device."""
    return open_device(dev).backend
