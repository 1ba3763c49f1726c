"""Kernels as SPIR-V modules, which SPIRV-Tools' validator accepts."""

from __future__ import annotations

import shutil
import struct
import subprocess
from itertools import product
from pathlib import Path

import pytest

pytest.importorskip("dovetail_vulkan", reason="dovetail-vulkan is not installed")

from cstyle_cases import KERNELS, RandomKernel
from dovetail.extend import (
    INTEGERS,
    Atomic,
    Capabilities,
    CompileError,
    DType,
    Kernel,
    KernelBuilder,
    Value,
    bfloat16,
    bool_,
    cast,
    float32,
    float64,
    int8,
    int64,
    legalize,
    load,
    parse_kernel,
    shareable,
    uint64,
    unroll_jam,
)
from dovetail_vulkan.render import PUSH_BYTES_MAX, Features, render
from dovetail_vulkan.schedule import is_vectorizable
from dovetail_vulkan.spirv import Capability, Mode

VALIDATOR = shutil.which("spirv-val")
FEATURES: Features = frozenset((*Capability, *product(Mode, (32, 64))))
needs_validator = pytest.mark.skipif(
    VALIDATOR is None, reason="there is no spirv-val (spirv-tools) here"
)


def validate(kernel: Kernel, can: Features = FEATURES, **schedule: bool) -> None:
    """Check that a kernel's module is valid in Vulkan 1.2."""
    command = [str(VALIDATOR), "--target-env", "vulkan1.2", "-"]
    done = subprocess.run(command, input=render(kernel, can, **schedule).words, capture_output=True)
    assert not done.returncode, f"{(done.stdout + done.stderr).decode()}\n{kernel}"


@needs_validator
@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_modules_of_golden_kernels_are_valid(path: Path) -> None:
    kernel = legalize(parse_kernel(path.read_text()), Capabilities(fma=False))
    validate(kernel)
    if shareable(kernel):
        validate(kernel, lanes=True)
    if is_vectorizable(kernel):
        validate(kernel, vectorized=True)
    if jammed := unroll_jam(kernel, 4):
        validate(jammed)


@needs_validator
@pytest.mark.parametrize(
    "path", [p for p in KERNELS if "f64" not in p.read_text()], ids=lambda p: p.stem
)
def test_modules_of_words_alone_are_valid(path: Path) -> None:
    can = Capabilities(index_bits=32, int64=False, storage_bits=32, offset_alignment=4)
    validate(legalize(parse_kernel(path.read_text()), can), frozenset())


@needs_validator
@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_modules_that_hide_all_floats_are_valid(path: Path) -> None:
    can = Capabilities(fma=False, algebra="free")
    validate(legalize(parse_kernel(path.read_text()), can))


@needs_validator
@pytest.mark.parametrize("seed", range(25))
def test_modules_of_random_kernels_are_valid(seed: int) -> None:
    validate(legalize(RandomKernel(seed).kernel, Capabilities(fma=False, max_grid=(9, 9, 9))))


@needs_validator
@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or"])
@pytest.mark.parametrize("d", INTEGERS, ids=lambda d: d.name)
def test_modules_with_atomics_are_valid(op: str, d: DType) -> None:
    b = KernelBuilder("histogram")
    at, out = b.buffer("at", int64, "r"), b.buffer("out", d, "rw")
    i = b.axis(b.int("n"))
    b.effect(Atomic(op, out, load(at, i), cast(i, d), i < 8))
    validate(b.build())


def copy_kernel(buffers: int = 1, axes: int = 1, scalar: DType = float32) -> Kernel:
    """Build a kernel that stores a scalar in some buffers, over a grid of some axes."""
    b = KernelBuilder("fill")
    value, point = b.scalar("value", scalar), Value("const", int64, (), 0)
    for axis in range(axes):
        n = b.int(f"n{axis}")
        point = point * n + b.axis(n)
    for k in range(buffers):
        b.store(b.buffer(f"out{k}", scalar, "w"), point, value)
    return b.build()


@needs_validator
@pytest.mark.parametrize("axes", range(4))
def test_modules_of_any_number_of_axes_are_valid(axes: int) -> None:
    validate(copy_kernel(axes=axes))


def test_arguments_are_aligned_to_their_size() -> None:
    b = KernelBuilder("fill")
    scalars = [b.scalar("flag", bool_), b.scalar("wide", float64), b.scalar("small", int8)]
    i = b.axis(b.int("n"))
    for k, v in enumerate(scalars):
        b.store(b.buffer(f"out{k}", v.dtype, "w"), i, v)
    module = render(b.build(), FEATURES)
    places = {a.name: (a.dtype, a.offset) for a in module.arguments}
    assert places["out2"] == (uint64, 16) and places["n"] == (int64, 24)
    assert places["flag"] == (bool_, 32)  # narrow ones are words
    assert places["wide"] == (float64, 40) and places["small"] == (int8, 48)
    assert not module.arguments_in_buffer


@needs_validator
def test_arguments_beyond_the_push_constants_lie_in_a_buffer() -> None:
    for buffers in (14, 15):
        kernel = copy_kernel(buffers)
        module = render(kernel, FEATURES)
        assert module.arguments_in_buffer == (struct.calcsize(module.format) > PUSH_BYTES_MAX)
        validate(kernel)
    assert module.arguments_in_buffer


@pytest.mark.parametrize(
    "lacking, dtype",
    [
        (Capability.FLOAT64, float64),
        (Capability.INT8, int8),
        (Capability.STORAGE_BUFFER_8_BIT, bool_),
    ],
)
def test_missing_capability_is_named(lacking: Capability, dtype: DType) -> None:
    can = frozenset(Capability) - {lacking}
    with pytest.raises(CompileError, match=f"kernel fill needs {lacking.name.lower()}"):
        render(copy_kernel(scalar=dtype), can)


def test_dtype_without_a_spirv_type_raises() -> None:
    b = KernelBuilder("half")
    x, i = b.buffer("x", bfloat16, "r"), b.axis(b.int("n"))
    b.store(b.buffer("out", float32, "w"), i, cast(load(x, i), float32))
    with pytest.raises(CompileError, match="bfloat16"):
        render(b.build(), FEATURES)
