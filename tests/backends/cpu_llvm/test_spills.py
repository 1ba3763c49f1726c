"""Kernels that need more vector registers than there are spill them to aligned memory."""

from __future__ import annotations

from typing import Any

import dovetail_cpu_llvm.compile as cpu
import pytest
from dovetail.dtypes import float64
from dovetail.ir.builder import KernelBuilder
from dovetail.ir.language import load
from dovetail.ops.table import TABLE
from dovetail_cpu_llvm import gemm
from dovetail_cpu_llvm.render import render
from dovetail_cpu_llvm.schedule import schedule


def test_spilled_vectors_are_aligned_to_their_size() -> None:
    """Spills that cross cache lines made float64 sines up to 1.6 times as slow."""
    builder = KernelBuilder("sine")
    index = builder.axis(builder.int("n"))
    x, out = builder.buffer("x", float64, "r"), builder.buffer("out", float64, "w")
    builder.store(out, index, TABLE["sin"].expression(load(x, index)))
    kernel, compiler = builder.build(), cpu.Compiler()
    module = compiler.optimize(render(kernel, schedule(kernel, compiler.native)))
    assert_spills_are_aligned(compiler, module)


def test_spilled_vectors_of_products_are_aligned_to_their_size() -> None:
    """Spills that cross cache lines made rows by columns along k up to 1.6 times as slow."""
    compiler = cpu.Compiler()
    ir = gemm.ir(compiler.machine.triple, compiler.native, "s")
    assert_spills_are_aligned(compiler, compiler.optimize(ir))


def test_functions_for_lines_on_wide_cpu_spill_no_vectors() -> None:
    """Aligned stacks took registers from rows times a vector, which were a fifth slower."""
    compiler = cpu.Compiler()
    if compiler.native < 64:
        pytest.skip("this CPU has too few registers for all vectors; run it on a wider one")
    ir = gemm.ir(compiler.machine.triple, compiler.native, "s")
    text = compiler.machine.emit_assembly(compiler.optimize(ir))
    for name in ("srow_sums_1", "srow_sums_2", "srow_sums_3", "sblock_sums"):
        body = text.split(f"\n{name}:")[1].split(".Lfunc_end")[0].splitlines()
        assert not [line for line in body if "mm" in line and "(%rsp" in line]
        assert not [line for line in body if "and" in line and line.endswith(", %rsp")]


def assert_spills_are_aligned(compiler: cpu.Compiler, module: Any) -> None:
    """Assert that a module spills vectors, and only to aligned places of the stack."""
    lines = compiler.machine.emit_assembly(module).splitlines()
    register = {64: "%zmm", 32: "%ymm", 16: "%xmm"}[compiler.native]
    spills = [line for line in lines if "(%rsp)" in line and register in line and "mov" in line]
    assert spills
    assert not [line for line in spills if "movu" in line or "dqu" in line]
