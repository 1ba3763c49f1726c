"""Devices with limits: the reference, refusing what is beyond what its capabilities say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import lying_backends as lies
from dovetail.backend.interface import DeviceInfo
from dovetail.backend.reference import ReferenceBackend
from dovetail.device import Device
from dovetail.loops.builder import Kernel
from dovetail.loops.target import Capabilities
from dovetail.memory import CachingAllocator
from dovetail.plugins.hooks import hookimpl
from dovetail.plugins.opened import Opened

OF_REFERENCE = ReferenceBackend.info.capabilities


class Plugin(lies.Plugin):
    """A plugin whose one device has the limits of its backend's class."""

    backend: type[Limited]

    @hookimpl
    def dovetail_probe(self, config: Mapping[str, str]) -> Sequence[DeviceInfo]:
        return [self.backend.described()]


class Limited(lies.Honest):
    """Raises RuntimeError for kernels and launches beyond its capabilities."""

    capabilities: ClassVar[Capabilities] = OF_REFERENCE

    def __init_subclass__(cls) -> None:
        cls.plugin = Plugin(cls)

    @classmethod
    def described(cls) -> DeviceInfo:
        name = cls.__name__.lower()
        return replace(
            ReferenceBackend.info, type=name, fingerprint=name, capabilities=cls.capabilities
        )

    @classmethod
    def device(cls) -> Device:
        """A device of its own, which no plugin brings."""
        backend, made = cls(cls.described()), Device(cls.__name__.lower(), 0)
        made.opened = Opened(backend, CachingAllocator(backend, made), made, {})
        return made

    def compile(self, kernel: Kernel) -> Any:
        most = self.capabilities.max_buffers
        if most and len(kernel.buffers) > most:
            raise RuntimeError(f"{len(kernel.buffers)} buffers, more than {most}:\n{kernel}")
        return super().compile(kernel)


class FewBuffers(Limited):
    """No more than eight buffers in a kernel, as WebGPU has it."""

    capabilities = replace(OF_REFERENCE, max_buffers=8)


LIMITED = (FewBuffers,)
