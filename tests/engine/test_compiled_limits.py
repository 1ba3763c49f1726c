"""Devices with limits whose kernels a real compiler builds: C with quick floats, and the CPU."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import dovetail as dt
import numpy as np
import pytest
import test_device_limits as programs
from broken_backends import Honest, Numbers
from dovetail.backend.float_probe import FLOAT_EXPRESSIONS
from dovetail.backend.interface import Backend, DeviceInfo, Handles
from dovetail.backend.reference import ReferenceProgram
from dovetail.device_class import Device, device
from dovetail.dtypes import float32, float64, int32
from dovetail.engine.programs import program_caches
from dovetail.ir.builder import Kernel
from dovetail.ir.cstyle import CStyle
from dovetail.ir.target import Capabilities
from dovetail.memory import CachingAllocator
from dovetail.plugins.device_handle import OpenedDevice
from dovetail.plugins.registry import open_device
from dovetail.testing import test_reductions, test_scalar_ops
from dovetail.testing.kit import Kit
from installed import INSTALLED

ALL = Capabilities()
POOR = Capabilities(
    dtypes=ALL.dtypes - {float64}, float64=False, int64=False, index_bits=32, storage_bits=32,
    offset_alignment=4, contraction=True,
)  # fmt: skip
FREE = replace(POOR, contraction=False, algebra="free")
FLAGS = ["-O2", "-march=native", "-ffp-contract=fast", "-fwrapv", "-shared", "-fPIC"]
# As -ffast-math, which would make the whole process flush denormals.
FAST_MATH = [
    "-O3", "-fassociative-math", "-freciprocal-math", "-fno-signed-zeros", "-fno-trapping-math",
    "-ffinite-math-only", "-fno-math-errno",
]  # fmt: skip
needs_cc = pytest.mark.skipif(
    shutil.which("cc") is None, reason="there is no C compiler that is called cc"
)


class Style32Bit(CStyle):
    """C of 32 bits."""

    index = int32


class ContractingBackend(Honest):
    """A backend that compiles kernels with a C compiler that contracts a product and a sum into
    an fma.
    """

    folder: Path
    flags: ClassVar[Sequence[str]] = FLAGS

    def compile(self, kernel: Kernel) -> ReferenceProgram:
        made, text = ReferenceProgram(kernel), Style32Bit().render(kernel)
        assert not re.search(r"int64_t|long|double|u?int(8|16)_t \*", text), text
        at = self.folder / f"k{len([*self.folder.iterdir()])}"
        at.with_suffix(".c").write_text(text)
        files = [at.with_suffix(".c"), "-o", at.with_suffix(".so"), "-lm"]
        subprocess.run(["cc", *self.flags, *files], check=True, timeout=60)
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


class FastMathBackend(ContractingBackend):
    """A backend that compiles kernels with a C compiler that rewrites float expressions."""

    flags: ClassVar[Sequence[str]] = FLAGS + FAST_MATH


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


@needs_cc
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
        dt.prod(x.reshape(250, 2), axis=1) + y[:250],
        x.reshape(20, 25) @ y[:25],
        dt.exp(x),
    ]


@needs_cc
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


@pytest.fixture
def rewriting_device(tmp_path: Path) -> Iterator[Device]:
    info = FastMathBackend.info
    backend = FastMathBackend(replace(info, type="freec", fingerprint="freec", capabilities=FREE))
    backend.folder = tmp_path
    yield from opened(backend)


@needs_cc
@pytest.mark.parametrize("form", ("grid", "reduce", "sum"))
def test_rewriting_compiler_keeps_the_bits_of_expressions(
    rewriting_device: Device, form: str
) -> None:
    check = test_scalar_ops.test_nothing_is_contracted_or_reassociated
    kit = Kit(rewriting_device.opened, "")
    for name in FLOAT_EXPRESSIONS:
        check(kit, name, float32, form)
    info = replace(kit.backend.info, type="liar", capabilities=replace(FREE, algebra="exact"))
    liar = FastMathBackend(info)
    liar.folder = kit.backend.folder
    caught = 0
    for lying_device in opened(liar):
        for name in FLOAT_EXPRESSIONS:
            try:
                check(Kit(lying_device.opened, ""), name, float32, form)
            except AssertionError:
                caught += 1
    assert caught > 5


@needs_cc
@pytest.mark.parametrize("name", ("add", "mul", "max", "min", "argmax"))
def test_rewriting_compiler_keeps_the_bits_of_reductions(
    rewriting_device: Device, name: str
) -> None:
    test_reductions.test_special_values(Kit(rewriting_device.opened, ""), name, "rows")


@needs_cc
@pytest.mark.parametrize(
    "program", (programs.places, programs.random_samples), ids=lambda p: p.__name__
)
def test_rewriting_compiler_has_the_reference_bits(
    rewriting_device: Device, program: programs.Program
) -> None:
    programs.agree(program, rewriting_device)


@needs_cc
def test_rewriting_compiler_keeps_the_bits_of_functions(rewriting_device: Device) -> None:
    def functions(device: Device) -> list[dt.Tensor]:
        x = dt.asarray(programs.numbers(3000, seed=1), device=device)
        pairs = x[:2000].reshape(1000, 2)
        z = pairs[:, 0] + 1j * pairs[:, 1]
        found = [dt.sin(x), dt.exp(x), dt.softmax(x), dt.std(x), dt.cumulative_sum(x), dt.log1p(x)]
        return [*found, *products(device), dt.prod(z.reshape(10, 100), axis=1)]

    programs.agree(functions, rewriting_device)


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
