"""Devices that do a part of the work, and one behind a network: honest, and lying about it.

They are the reference under other names, as `lying_backends`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar

from dovetail.backend.interface import Backend, DeviceInfo, Handles, Launch, Program
from dovetail.device import Device, device
from dovetail.dtypes import float32
from dovetail.errors import CompileError
from dovetail.loops.analysis import loads, reductions
from dovetail.loops.builder import Kernel
from dovetail.loops.language import Atomic, Loop, walk
from dovetail.plugins.entry import Entry
from dovetail.plugins.hooks import hookimpl
from dovetail.plugins.registry import open_device, registry
from lying_backends import Honest, Late, Numbers, Plugin


class PartialPlugin(Plugin):
    """A plugin whose one device names a companion."""

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        (info,) = super().dovetail_probe(config)
        return [replace(info, companion=self.backend.companion)]


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
    found = reductions(kernel)
    products = len(found) == len(loops) == 1 and len(loads(found[0].body)) == 2
    return (
        all(b.dtype is float32 for b in kernel.buffers)
        and (not loops or products)
        and not any(isinstance(s, Atomic) for s in statements)
    )


class Accelerator(Partial, Late):
    """Memory of its own, queues that work late; matrix products and elementwise float32 alone."""

    def can(self, kernel: Kernel) -> bool:
        return is_simple(kernel)


class Newborn(Partial):
    """A host that runs nothing yet: its companion works on its memory."""


class NewbornOnCpu(Newborn):
    """The same, beside a faster companion."""

    companion = "cpu"


class NewbornApart(Partial, Late):
    """Runs nothing yet, and has memory of its own."""


class Alone(Accelerator):
    """Names no companion."""

    companion = None


class Chained(Accelerator):
    """Has a companion that has one."""

    companion = "newbornapart"


# --- what is wrong about it


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

    def accepts(self, kernel: Kernel) -> Any:
        return None


@contextmanager
def installed(*backends: type[Honest]) -> Iterator[list[Device]]:
    """These devices, as if pip had installed them; each is new."""
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
            dev.opened = None
            registry._drop(registry.records().pop(dev.type))


def backend_of(dev: Device) -> Any:
    """What the core sees of a device."""
    return open_device(dev).backend


__all__ = ["Backend", "Handles", "Launch", "Numbers"]
