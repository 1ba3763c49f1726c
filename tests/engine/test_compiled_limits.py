"""Devices with limits whose kernels a real compiler builds: contracting C, and the CPU."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dovetail as dt
import numpy as np
import pytest
import test_device_limits as programs
from broken_backends import Honest, Numbers
from dovetail.backend.interface import Backend, DeviceInfo, Handles
from dovetail.backend.reference import ReferenceProgram
from dovetail.device_class import Device, device
from dovetail.dtypes import float64, int32
from dovetail.engine.programs import program_caches
from dovetail.ir.builder import Kernel
from dovetail.ir.cstyle import CStyle
from dovetail.ir.target import Capabilities
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.registry import open_device
from installed import INSTALLED

ALL = Capabilities()
POOR = Capabilities(
    dtypes=ALL.dtypes - {float64}, float64=False, int64=False, index_bits=32, storage_bits=32,
    offset_alignment=4, contraction=True,
)  # fmt: skip
FLAGS = ["-O2", "-march=native", "-ffp-contract=fast", "-fwrapv", "-shared", "-fPIC"]


class Style32Bit(CStyle):
    """C of 32 bits."""

    index = int32


class ContractingBackend(Honest):
    """A backend that compiles kernels with a C compiler that contracts a product and a sum into
    an fma.
    """

    folder: Path

    def compile(self, kernel: Kernel) -> ReferenceProgram:
        made, text = ReferenceProgram(kernel), Style32Bit().render(kernel)
        assert not re.search(r"int64_t|long|double|u?int(8|16)_t \*", text), text
        at = self.folder / f"k{len([*self.folder.iterdir()])}"
        at.with_suffix(".c").write_text(text)
        files = [at.with_suffix(".c"), "-o", at.with_suffix(".so"), "-lm"]
        subprocess.run(["cc", *FLAGS, *files], check=True, timeout=60)
        self.functions[id(made)] = (
            made,
            getattr(ctypes.CDLL(str(at.with_suffix(".so"))), Style32Bit().entry(kernel)),
        )
        return made

    def __init__(self, info: DeviceInfo) -> None:
        super().__init__(info)
        self.functions: dict[int, tuple[ReferenceProgram, Any]] = {}

    def launch(
        self, program: Any, buffers: Handles, ints: Sequence[int], scalars: Numbers,
        grid: Sequence[int], stream: Any = None,
    ) -> None:  # fmt: skip
        _, function = self.functions[id(program)]
        places = zip(buffers[::2], buffers[1::2], strict=True)
        kinds = [np.ctypeslib.as_ctypes_type(d.__numpy_dtype__) for _, d in program.kernel.scalars]
        function(
            *(ctypes.c_void_p(handle.ctypes.data + offset) for handle, offset in places),
            *map(ctypes.c_int32, ints),
            *(kind(x) for kind, x in zip(kinds, scalars, strict=True)),
        )


def opened(backend: Backend) -> Iterator[Device]:
    """Yield a device of this backend."""
    made = device(backend.info.type)
    made.opened = OpenedDevice(backend, CachingAllocator(backend, made), made, {})
    yield made
    made.opened.faults.settle_all()
    made.opened = None
    for cache in 2 * program_caches:
        cache.age()


@pytest.fixture
def contracting_device(tmp_path: Path) -> Iterator[Device]:
    backend = ContractingBackend(
        replace(ContractingBackend.info, type="poorc", fingerprint="poorc", capabilities=POOR)
    )
    backend.folder = tmp_path
    yield from opened(backend)


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler that is called cc")
@pytest.mark.parametrize(
    "program",
    (
        programs.places,
        programs.counted,
        programs.odd_offsets,
        programs.in_place,
        programs.random_samples,
    ),
    ids=lambda p: p.__name__,
)
def test_contracting_device_has_the_reference_bits(
    contracting_device: Device, program: programs.Program
) -> None:
    programs.agree(program, contracting_device)


def products(device: Device) -> list[dt.Tensor]:
    x, y, z = (dt.asarray(programs.numbers(500, seed=k), device=device) for k in range(3))
    return [
        x * y + z,
        z - x * y,
        -(x * y) - z,
        dt.sum(x * y),
        x.reshape(20, 25) @ y[:25],
        dt.exp(x),
    ]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler that is called cc")
def test_contraction_is_prevented_if_the_backend_declares_it(contracting_device: Device) -> None:
    """Without the declaration, it happens on machines with an fma instruction."""
    programs.agree(products, contracting_device)
    assert contracting_device.opened is not None
    backend = contracting_device.opened.backend
    silent = replace(backend.info, type="silent", capabilities=replace(POOR, contraction=False))
    other = ContractingBackend(silent)
    other.folder = backend.folder
    for liar in opened(other):
        found = [x.tolist() for x in products(liar)]
    asked = ["cc", "-march=native", "-dM", "-E", "-x", "c", "/dev/null"]
    macros = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=60).stdout
    has_fma = bool(re.search("__FMA__|__ARM_FEATURE_FMA", macros))
    assert (found != [x.tolist() for x in products(dt.device("reference"))]) == has_fma


@pytest.mark.skipif("cpu" not in INSTALLED, reason="dovetail-cpu-llvm is not installed")
@pytest.mark.parametrize(
    "program",
    (products, programs.odd_offsets, programs.in_place, programs.doubles, programs.custom_kernels),
    ids=lambda p: p.__name__,
)
def test_subword_stores_and_contraction_on_the_cpu(program: programs.Program) -> None:
    """Small elements that several threads store side by side, and vectors of products."""
    cpu = open_device(device("cpu")).backend
    can = replace(cpu.info.capabilities, storage_bits=32, offset_alignment=4, contraction=True)
    info = replace(cpu.info, type="cpuwords", fingerprint="cpuwords", capabilities=can)
    for made in opened(type(cpu)(info)):
        programs.agree(program, made)
