"""Reductions as folds over private arrays: the bits stay, and so do the texts."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import pytest
import test_kernel as examples
from cstyle_cases import HostC, host, same_bits  # noqa: F401
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, float32, int64
from dovetail.errors import CompileError, InternalError
from dovetail.ir.analysis import values
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.expand_reductions import expand_reductions
from dovetail.ir.language import (
    CHUNK,
    LANES,
    Atomic,
    Loop,
    Store,
    Value,
    const,
    load,
    map_loop,
    reduce_loop,
    walk,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify
from dovetail.testing.test_reductions import CASES, informative_values, outputs, reduction
from dovetail.testing.test_scalar_ops import param_id

LENGTHS = (0, 1, LANES + 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, 5 * CHUNK + 77)


def sum_of_rows(n: int | None = None, combine: str = "add", d: DType = float32) -> Kernel:
    """Build out[i] = the combination of row i; its length is an integer, or constant."""
    b = KernelBuilder("rows")
    x, out, m = b.buffer("x", d, "r"), b.buffer("out", d, "w"), b.int("m")
    length = b.int("n") if n is None else const(n, int64)
    i = b.axis(m)
    (total, *_) = reduce_loop(
        combine, 0, length, lambda k: (load(x, i * length + k), k)[: 1 + combine.startswith("arg")]
    )
    b.store(out, i, total)
    return b.build()


def reduction_of_reductions() -> Kernel:
    """Build a map whose iterations add sums of rows to their product."""
    b = KernelBuilder("nested")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)

    def inner(k: Value) -> Value:
        return reduce_loop("add", 0, n, lambda j: load(x, k * n + j))[0]

    def iteration(j: Value) -> list[Store]:
        (total,) = reduce_loop("max", 0, j + 1, inner)
        (product,) = reduce_loop("mul", 0, j + i, lambda k: load(x, k))
        return [Store(out, i * n + j, total * product)]

    b.effect(map_loop(0, n, iteration))
    return b.build()


def results(kernel: Kernel, x: np.ndarray, size: int, ints: list[int], points: int) -> bytes:
    out = np.zeros(size, x.dtype)
    interpret(kernel, [x, out], ints, [], [points])
    return out.tobytes()


@pytest.mark.parametrize("combine", ("add", "max", "argmin"))
@pytest.mark.parametrize("by_group", (False, True))
def test_expanded_reduction_has_the_bits_of_the_canonical_order(
    combine: str, by_group: bool
) -> None:
    whole = sum_of_rows(combine=combine)
    expanded = expand_reductions(whole, by_group)
    verify(expanded)
    for n in LENGTHS:
        x = np.random.default_rng(n).standard_normal(2 * max(n, 1)).astype("f4")
        assert results(expanded, x, 2, [2, n], 2) == results(whole, x, 2, [2, n], 2), n


@pytest.mark.parametrize(("name", "d"), CASES, ids=param_id)
@pytest.mark.parametrize("by_group", (False, True))
def test_both_forms_have_the_same_bits(name: str, d: DType, by_group: bool) -> None:
    kernel = reduction(name, d, "rows")
    expanded = expand_reductions(kernel, by_group)
    for n in (0, 33, 200) if d is not float32 else (0, 33, CHUNK + 1):
        x = informative_values(d, max(1, 3 * n), n, name)
        both = [[x, *outputs(name, d, 3)] for _ in range(2)]
        for form, buffers in zip((kernel, expanded), both, strict=True):
            interpret(form, buffers, [3, n], [], [3])
        assert all(same_bits(a, b).all() for a, b in zip(*both, strict=True)), (name, n)


@pytest.mark.parametrize("make", (sum_of_rows, examples.softmax_row, examples.argmax))
def test_no_reduce_loop_remains_and_the_combine_occurs_twice(make: Callable[[], Kernel]) -> None:
    expanded = expand_reductions(make())
    assert all(s.kind != "reduce" for s in walk(expanded.body) if isinstance(s, Loop))
    assert expanded.unexpanded is not None
    if make is sum_of_rows:
        assert sum(v.op == "add" and v.dtype is float32 for v in values(expanded.body)) == 2


def test_constant_length_needs_fewer_rows() -> None:
    lengths = {n: expand_reductions(sum_of_rows(n)).arrays[0].length for n in (0, CHUNK, CHUNK + 1)}
    assert lengths == {0: LANES, CHUNK: LANES, CHUNK + 1: 2 * LANES}
    for n in lengths:
        x = np.random.default_rng(n).standard_normal(max(n, 1)).astype("f4")
        whole = sum_of_rows(n)
        assert results(expand_reductions(whole), x, 1, [1], 1) == results(whole, x, 1, [1], 1)


def test_group_shares_no_reductions_in_other_loops() -> None:
    with pytest.raises(CompileError, match="kernel nested has reductions in loops"):
        expand_reductions(reduction_of_reductions(), by_group=True)


def test_arrays_of_groups_are_shared_and_stored_in_maps() -> None:
    expanded = expand_reductions(examples.softmax_row(), by_group=True)
    assert expanded.arrays and all(b.shared for b in expanded.arrays)
    maps = [s for s in walk(expanded.body) if isinstance(s, Loop) and s.kind == "map"]
    inside = [s for loop in maps for s in walk(loop.body) if isinstance(s, Store)]
    stores = [s for s in walk(expanded.body) if isinstance(s, Store) and s.buffer.shared]
    assert stores and set(map(id, stores)) <= set(map(id, inside))


def test_reductions_in_a_map_take_turns() -> None:
    whole = reduction_of_reductions()
    expanded = expand_reductions(whole)
    verify(expanded)
    assert len(expanded.arrays) == 2, "two nested ones; the third uses an array of these"
    x = np.random.default_rng(0).standard_normal(49).astype("f4")
    assert results(expanded, x, 49, [7], 7) == results(whole, x, 49, [7], 7)


@pytest.mark.parametrize(
    "can",
    (
        Capabilities(algebra="free", reductions=False),
        Capabilities(denormals=False, float64=False, reductions=False),
        Capabilities(int64=False, index_bits=32, reductions=False),
    ),
    ids=("hidden", "flagged", "words"),
)
def test_combines_of_other_passes_are_expanded(can: Capabilities) -> None:
    legal = legalize(sum_of_rows(combine="argmax"), can)
    verify(legal)
    assert legal.unexpanded is not None and legal.arrays
    extra = [0] * (len(legal.ints) - 2)
    x = (np.random.default_rng(1).integers(-9, 9, 200) * 1e-40).astype("f4")
    expected = results(sum_of_rows(combine="argmax"), x, 2, [2, 100], 2)
    assert results(legal, x, 2, [2, 100, *extra], 2) == expected


@pytest.mark.parametrize("make", (examples.row_sum, examples.argmax), ids=lambda f: f.__name__)
@pytest.mark.parametrize("by_group", (False, True), ids=("", "by_group"))
def test_expanded_kernel_equals_its_golden_file(make: Callable[[], Kernel], by_group: bool) -> None:
    name = f"{make.__name__}{'_by_group' * by_group}.txt"
    path = examples.GOLDEN / "expanded" / name
    expanded = expand_reductions(make(), by_group)
    verify(expanded)
    text = str(expanded) + "\n"
    assert str(parse_kernel(text)) == text.rstrip("\n")
    if os.environ.get("DOVETAIL_REGENERATE") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@pytest.mark.parametrize("make", (sum_of_rows, lambda: sum_of_rows(combine="argmin")))
def test_expanded_kernel_as_c_has_the_reference_bits(
    host: HostC,  # noqa: F811
    make: Callable[[], Kernel],
) -> None:
    kernel = make()
    for n in LENGTHS:
        x = np.random.default_rng(n).standard_normal(3 * max(n, 1)).astype("f4")
        expected, out = (np.zeros(3, "f4") for _ in range(2))
        interpret(kernel, [x, expected], [3, n], [], [3])
        host.run(expand_reductions(kernel), [x, out], [3, n], [])
        assert same_bits(out, expected).all(), n


def test_private_arrays_are_verified() -> None:
    zero = const(0, int64)
    for length, rule in ((4, None), (-1, "positive length")):
        b = KernelBuilder("arrays")
        b.store(b.array("lanes", float32, length), zero, const(2.0, float32))
        with nullcontext() if rule is None else pytest.raises(InternalError, match=rule):
            b.build()
    b = KernelBuilder("parallel")
    array = b.array("lanes", float32, 4)
    b.effect(map_loop(0, 4, lambda k: [Store(array, k, const(0.0, float32))]))
    with pytest.raises(InternalError, match="outside of map and reduce loops"):
        b.build()
    b = KernelBuilder("atomic")
    b.effect(Atomic("add", b.array("words", int64, 4), zero, zero))
    with pytest.raises(InternalError, match="an atomic must be on a buffer"):
        b.build()


def tripled_in_an_array() -> Kernel:
    """Build out[i] = 3 * i, by way of a private array."""
    b = KernelBuilder("points")
    out, array, n = b.buffer("out", int64, "w"), b.array("own", int64, 2), b.int("n")
    i = b.axis(n)
    b.store(array, const(1, int64), i * 3)
    b.store(out, i, load(array, const(1, int64)))
    return b.build()


def test_private_arrays_belong_to_a_point() -> None:
    found = np.zeros(5, "i8")
    interpret(tripled_in_an_array(), [found], [5], [], [5])
    assert found.tolist() == [0, 3, 6, 9, 12]


@pytest.mark.parametrize(
    "can",
    (
        Capabilities(),
        Capabilities(reductions=False),
        Capabilities(int64=False, index_bits=32, reductions=False),
        Capabilities(storage_bits=32, offset_alignment=4, reductions=False),
    ),
    ids=("plain", "folds", "words", "whole words"),
)
def test_kernel_with_private_arrays_is_not_legalised(can: Capabilities) -> None:
    with pytest.raises(CompileError, match=r"kernel points must have no private arrays .*got own"):
        legalize(tripled_in_an_array(), can)
