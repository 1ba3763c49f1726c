"""Kernels rendered as C, compiled for the host, next to the reference interpreter."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cstyle_cases import (  # noqa: F401  # noqa: F401 - the cases of every dialect, on plain C
    KERNELS,
    Array,
    HostC,
    arguments,
    host,
    reduction,
    same_bits,
    sample,
    test_atomics_have_the_reference_bits,
    test_casts_and_bitcasts_have_the_reference_bits,
    test_constants_are_exact,
    test_dtype_without_a_c_type_raises,
    test_elementary_functions_have_the_reference_bits,
    test_every_operation_on_special_values_has_the_reference_bits,
    test_extreme_integer_constants_are_exact,
    test_fold_steps_read_the_previous_carries,
    test_fold_stops_once_its_carry_is_constant,
    test_golden_kernels_have_the_reference_bits,
    test_nested_reductions_and_maps_have_the_reference_bits,
    test_parameter_names_may_be_c_keywords,
    test_random_kernels_have_the_reference_bits,
    test_reduction_of_chunks_of_chunks_has_the_reference_bits,
    test_reductions_of_every_length_have_the_reference_bits,
    test_rounding_of_large_integers_and_of_float64_has_the_reference_bits,
    test_shareable_golden_kernels,
    test_text_uses_the_names_of_the_kernel,
)
from dovetail.backend.reference import interpret
from dovetail.dtypes import float32, int32
from dovetail.errors import CompileError
from dovetail.ir.builder import Kernel
from dovetail.ir.cstyle import CStyle
from dovetail.ir.language import CHUNK
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities

SMALL = Capabilities(index_bits=32)


class Style32BitIndices(CStyle):
    """C for machines with 32-bit indices."""

    index = int32


def check_narrow(
    compiler: HostC, kernel: Kernel, arrays: Sequence[Array], ints: Sequence[int], scalars: Any = ()
) -> str:
    """Check that a kernel with 32-bit indices writes the same as with 64-bit ones."""
    small = legalize(kernel, SMALL)
    text = Style32BitIndices().render(small)
    mine, theirs = ([np.array(a) for a in arrays] for _ in range(2))
    function = getattr(compiler.compile(text), Style32BitIndices().entry(small))
    numbers = [d.__numpy_dtype__.type(x) for (_, d), x in zip(kernel.scalars, scalars, strict=True)]
    given = [ctypes.c_float(x) if x.dtype == "f4" else ctypes.c_int64(int(x)) for x in numbers]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in mine]
    function(*pointers, *map(ctypes.c_int32, ints), *given)
    names = dict(zip(kernel.ints, ints, strict=True))
    grid = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
    interpret(legalize(kernel, Capabilities()), theirs, ints, scalars, grid)
    for x, y in zip(mine, theirs, strict=True):
        assert same_bits(x, y).all(), text
    return text


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
def test_golden_kernels_with_32_bit_indices_have_the_same_bits(host: HostC, path: Path) -> None:  # noqa: F811
    kernel = parse_kernel(path.read_text())
    check_narrow(host, kernel, *arguments(kernel, 6, 6))


@pytest.mark.parametrize("name", ("add", "argmax"))
def test_reductions_with_32_bit_indices_have_the_same_bits(host: HostC, name: str) -> None:  # noqa: F811
    kernel = reduction(name, (float32,))
    x = sample(float32, 5 * (CHUNK + 33), np.random.default_rng(3), name)
    outs = [np.zeros(5, t) for t in (("f4", "i8") if name == "argmax" else ("f4",))]
    text = check_narrow(host, kernel, [x, *outs], [5, CHUNK + 33])
    assert "int32_t row" in text and ("int64_t" in text) == (name == "argmax")


def test_render_rejects_a_kernel_with_other_indices() -> None:
    kernel = reduction("add", (float32,))
    message = "Style32BitIndices has int32 indices, and is given a kernel with"
    with pytest.raises(CompileError, match=message):
        Style32BitIndices().render(kernel)
    with pytest.raises(CompileError, match="CStyle has int64 indices"):
        CStyle().render(legalize(kernel, SMALL))
