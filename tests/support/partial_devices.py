"""Devices that accept only some kernels, and one behind a network: honest and broken ones.

They are the reference under other names, as in `broken_backends`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from broken_backends import Honest, Late, Numbers, Plugin
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
from dovetail.engine.programs import program_caches
from dovetail.errors import CompileError
from dovetail.ir.analysis import fold_nest, loads
from dovetail.ir.builder import Kernel
from dovetail.ir.language import Atomic, Loop, Value, walk
from dovetail.ir.target import Capabilities
from dovetail.plugins.entry import PluginEntry
from dovetail.plugins.hooks import hookimpl
from dovetail.plugins.registry import registry
from limited import OF_REFERENCE


class PartialPlugin(Plugin):
    """A plugin whose one device names a companion."""

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = super().dovetail_probe(config)
        can: Capabilities = getattr(self.backend, "capabilities", info.capabilities)
        return [replace(info, companion=self.backend.companion, capabilities=can)]


class Partial(Honest):
    """A backend that accepts some kernels, and compiles no others."""

    companion: ClassVar[Any] = "reference"

    def __init_subclass__(cls) -> None:
        cls.plugin = PartialPlugin(cls)

    def accepts(self, kernel: Kernel) -> bool:
        return self.can(kernel)

    def can(self, kernel: Kernel) -> bool:
        """Return True if it can compile a kernel."""
        return False

    def compile(self, kernel: Kernel) -> Program:
        if not self.can(kernel):
            raise CompileError(f"this accelerator has no way to run it\n{kernel}")
        return super().compile(kernel)


def is_simple(kernel: Kernel) -> bool:
    """Return True for elementwise work on float32, or a sum of products."""
    statements = [*walk(kernel.body)]
    has_loops, nest = any(isinstance(s, Loop) for s in statements), fold_nest(kernel)
    return (
        all(b.dtype is float32 for b in kernel.buffers)
        and (not has_loops or (nest != [] and adds_products(nest[-1])))
        and not any(isinstance(s, Atomic) for s in statements)
    )


def adds_products(loop: Loop) -> bool:
    """Return True if a loop is that of a matrix product."""
    last = loop.body[-1] if loop.body else None
    fused = isinstance(last, Value) and last.op == "fma"
    return loop.kind == "fold" and fused and len(loads(loop.body)) == 2


class Accelerator(Partial, Late):
    """A device with its own memory and asynchronous queues, for matmul and elementwise float32
    only.

    Its raw kernel language is NumPy.
    """

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
    """A backend with a routine for matrix products, and no kernel at all."""

    called = 0

    def can(self, kernel: Kernel) -> bool:
        return False

    def library_calls(self) -> Mapping[tuple[str, DType], LibraryCall]:
        return {("matmul", float32): product}


def product(
    backend: WithVendor, inputs: Sequence[StridedOperand], output: StridedOperand, stream: Any
) -> None:
    """Multiply matrices: a vendor routine that needs the backend itself."""
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
    """A host device that runs nothing yet: its companion works on its memory."""


class LateHost(Accelerator):
    """A device with host memory and asynchronous queues."""

    dlpack_type = HOST_MEMORY
    host_address = Honest.host_address
    adopt = Honest.adopt


class NewbornOnCpu(Newborn):
    """A host device that runs nothing yet, with a faster companion."""

    companion = "cpu"


class NewbornApart(Partial, Late):
    """A device that runs nothing yet, with its own memory."""


class Rounding(NewbornApart):
    """A backend that binds buffers at multiples of many bytes; a test sets how many."""

    capabilities = replace(OF_REFERENCE, offset_alignment=256)


class Alone(Accelerator):
    """A backend without a companion."""

    shown_by = "test_lifecycle and accepted"
    sign = "there is no DeviceInfo.companion"
    companion = None


class Chained(Accelerator):
    """A backend whose companion has a companion."""

    companion = "newbornapart"


class Networked(Late):
    """A backend behind a network: each call that launches is one message, whatever its size."""

    messages = 0
    largest = 0  # launches per message

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
    """A backend behind a network whose companion runs all but simple kernels.

    It replays only launches of its own.
    """

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


# --- broken variants


class ShufflesLaunches(Networked):
    """Run batched launches in another order."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        super().launch_all([*launches[::2], *launches[1::2]], stream)


class KeepsTheFirst(Networked):
    """Use the scalars of the first launch for all."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        numbers = launches[0][2]
        super().launch_all([(run, at, numbers) for run, at, _ in launches], stream)


class LaunchesApart(Networked):
    """Let batched launches overtake earlier work of their stream."""

    shown_by = "test_streams and together"
    sign = "launches given together"

    def launch_all(self, launches: Sequence[Any], stream: Any = None) -> None:
        for run, at, numbers in launches:
            run(at, numbers, "apart")
        self.run("apart")


class AcceptsTooMuch(Accelerator):
    """Accept kernels that it cannot compile."""

    shown_by = "test_lifecycle and accepted"
    sign = "no way to run it"

    def accepts(self, kernel: Kernel) -> bool:
        return True


class ChangesItsMind(Accelerator):
    """Accept every other time."""

    shown_by = "test_lifecycle and accepted"
    sign = "accepts(increment) is"
    asked = 0

    def accepts(self, kernel: Kernel) -> bool:
        self.asked += 1
        return self.asked % 2 == 0


class AcceptsAndGuesses(Accelerator):
    """Accept reductions, and omit their last element."""

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
    """Name itself as its companion."""

    companion = "narcissus"


class Hen(Partial):
    """Name a companion that names it."""

    companion = "egg"


class Egg(Partial):
    """Name a companion that names it."""

    companion = "hen"


class Widowed(Partial):
    """Name a companion that is not installed."""

    companion = "nowhere"


class Mumbling(Partial):
    """Name a companion that is no device name."""

    companion = 7


class Evasive(Partial):
    """Return None from accepts()."""

    shown_by = "test_lifecycle and accepted"
    sign = "accepts(increment) is None"

    def accepts(self, kernel: Kernel) -> Any:
        return None


BROKEN = (
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
    """Install these devices as pip would do it; each is new."""
    gc.collect()  # pending work of closed devices
    devices = []
    for backend in backends:
        name = backend.plugin.type
        entry = PluginEntry(
            name, f"{backend.__module__}:{backend.__name__}.plugin", distribution=f"dovetail-{name}"
        )
        registry.records()[name] = registry._create_record(name, [entry])
        devices.append(device(name))
    try:
        yield devices
    finally:
        for dev in devices:
            if dev.opened is not None:
                dev.opened.faults.settle_all()  # otherwise all devices would wait for it
            dev.opened = None
            for cache in 2 * program_caches:  # plans hold launches of the previous backend
                cache.age()
            registry.records().pop(dev.type)
