"""Analyses of kernels: strides, variation, trip counts, and shareable reductions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from dovetail.dtypes import float32, int64
from dovetail.ir.analysis import (
    EARLY_EXIT_STEPS_MIN,
    Stride,
    along_rows,
    grid_index,
    loads,
    reduces_long,
    reductions,
    settles,
    shareable,
    stride_along,
    trip_count,
    values,
    varies_along,
)
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    Loop,
    Operand,
    Store,
    Value,
    cast,
    const,
    fold_loop,
    load,
    reduce_loop,
    where,
)
from dovetail.ir.parser import parse_kernel
from places import GOLDEN


def golden(name: str) -> Kernel:
    return parse_kernel((GOLDEN / f"{name}.txt").read_text())


def strides(axis: int, index: str) -> Stride:
    """Return the stride of a load's index along an axis, in a kernel of two axes."""
    b = KernelBuilder("one_load")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    at, n = b.buffer("at", int64, "r"), b.int("n")
    i, j = b.axis(n), b.axis(n)
    found = {
        "i * n + j": lambda: i * n + j,
        "j * 3 - i": lambda: j * 3 - i,
        "n - j": lambda: n - j,
        "n": lambda: n + 0,
        "at[n]": lambda: load(at, n),
        "at[j]": lambda: load(at, j),
        "i * j": lambda: i * j,
        "i + j + i": lambda: i + j + i,
    }[index]()
    b.store(out, i * n + j, load(x, found))
    kernel = b.build()
    (v,) = (v for v in values(kernel.body) if v.op == "load" and v.buffer is x)
    return stride_along(kernel.body, grid_index(axis))(v.args[0])


def test_loads_of_a_block_exclude_those_of_its_loops() -> None:
    b = KernelBuilder("sums")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    (total,) = reduce_loop("add", 0, n, lambda k: load(x, i * n + k))
    b.store(out, i, total + load(x, i))
    kernel = b.build()
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    (outside,), (inside,) = loads(kernel.body), loads(loop.body)
    assert (outside.index.op, inside.index.op) == ("index", "add")


@pytest.mark.parametrize(
    ("index", "along_i", "along_j"),
    [
        ("i * n + j", "any", 1),
        ("j * 3 - i", -1, 3),
        ("n - j", 0, -1),
        ("n", 0, 0),
        ("at[n]", 0, 0),
        ("at[j]", 0, None),
        ("i * j", "any", "any"),
        ("i + j + i", 2, 1),
    ],
)
def test_stride_along_an_axis_of_each_index(index: str, along_i: Stride, along_j: Stride) -> None:
    assert (strides(0, index), strides(1, index)) == (along_i, along_j)


def ragged(stop: str) -> Kernel:
    """Build out[i, j] = the sum of x[k * n + j] for k in 0..stop."""
    b = KernelBuilder("ragged")
    x, ends = b.buffer("x", float32, "r"), b.buffer("ends", int64, "r")
    out, n = b.buffer("out", float32, "w"), b.int("n")
    i, j = b.axis(n), b.axis(n)
    fold = lambda: fold_loop(0, n, (const(0, int64),), lambda k, c: (c + k,)).results[0]  # noqa: E731
    end = {"n": n, "4": 4, "n - 3": n - 3, "i": i, "i < 9": where(i < 9, i + 2, n), "ends[i]": None,
           "ends[j]": None, "fold": None}[stop]  # fmt: skip
    if stop.startswith("ends"):
        end = load(ends, i if stop == "ends[i]" else j)
    bound: Operand = fold() if stop == "fold" else end if end is not None else 0
    b.store(out, i * n + j, reduce_loop("add", 0, bound, lambda k: load(x, k * n + j))[0])
    return b.build()


def test_stride_within_a_loop_depends_only_on_its_variable() -> None:
    kernel = ragged("fold")
    (loop,) = reductions(kernel)
    (v,) = loads(loop.body)
    assert stride_along(loop.body, loop.var)(v.args[0]) == "any"
    assert stride_along(kernel.body, grid_index(1))(v.args[0]) == 1
    assert stride_along(loop.body, loop.var)(loop.stop) == 0  # a result of another loop
    assert stride_along(kernel.body, grid_index(0))(loop.stop) is None


@pytest.mark.parametrize(
    ("stop", "varies", "with_memory"),
    [
        ("n", False, False),
        ("i", False, False),
        ("i < 9", False, False),
        ("ends[i]", False, True),
        ("ends[j]", True, True),
        ("fold", True, True),
    ],
)
def test_varies_along_recognizes_varying_bounds(stop: str, varies: bool, with_memory: bool) -> None:
    kernel = ragged(stop)
    (loop,) = reductions(kernel)
    last = grid_index(1)
    assert varies_along(kernel.body, last)(loop.stop) == varies
    assert varies_along(kernel.body, last, memory=True)(loop.stop) == with_memory
    assert varies_along(kernel.body, last)(last)


@pytest.mark.parametrize(
    ("stop", "known", "at_first"),
    [
        ("n", 50, 50),
        ("4", 4, 4),
        ("n - 3", 47, 47),
        ("i", None, 0),
        ("i < 9", None, 2),
        ("ends[i]", None, None),
        ("fold", None, None),
    ],
)
def test_trip_count_is_known_if_the_host_can_compute_it(
    stop: str, known: int | None, at_first: int | None
) -> None:
    (loop,) = reductions(ragged(stop))
    assert trip_count(loop, {"n": 50}) == known
    assert trip_count(loop, {"n": 50}, at=0) == at_first


def test_loop_with_negative_extent_has_trip_count_zero() -> None:
    (loop,) = reductions(ragged("n - 3"))
    assert trip_count(loop, {"n": 1}) == 0


def test_reduction_of_unknown_length_counts_as_long() -> None:
    assert reduces_long(ragged("n"), {"n": 64}, 64)
    assert not reduces_long(ragged("n"), {"n": 63}, 64)
    assert not reduces_long(ragged("4"), {"n": 1 << 20}, 64)
    assert reduces_long(ragged("ends[i]"), {"n": 1}, 64)
    assert reduces_long(ragged("n - 3"), {"n": 5}, 64)
    assert not reduces_long(golden("elementwise_chain"), {}, 1)


def test_reductions_exclude_those_in_other_loops() -> None:
    assert len(reductions(golden("softmax_row"))) == 2
    b = KernelBuilder("nested")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)

    def inner(k: Value) -> Value:
        return reduce_loop("max", 0, n, lambda j: load(x, (i * n + k) * n + j))[0]

    b.store(out, i, reduce_loop("add", 0, n, inner)[0])
    (outer,) = reductions(b.build())
    assert outer.combine == "add"


def test_shareable_reductions_and_folds_without_effects() -> None:
    assert shareable(golden("row_sum")) and along_rows(golden("row_sum"))
    assert shareable(ragged("n")) and not along_rows(ragged("n"))
    assert not shareable(golden("matmul")) and not along_rows(golden("matmul"))
    b = KernelBuilder("both")
    x, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(n)
    total = reduce_loop("add", 0, n, lambda k: load(x, i * n + k))[0]
    fold = fold_loop(
        0, n, [total], lambda k, c: ([c + 1], [Store(out, i * n + k, cast(c, float32))])
    )
    b.effect(fold)
    kernel = b.build()
    assert any(isinstance(s, Loop) and s.kind == "fold" for s in kernel.body)
    assert not shareable(kernel)


def fold(
    step: Callable[..., Any], steps: int | str = 40, start: Operand = 0, carried: int = 1
) -> Loop:
    """Return the fold of a kernel of one axis; `step` also gets a buffer."""
    b = KernelBuilder("fold")
    x, out, n = b.buffer("x", int64, "rw"), b.buffer("out", int64, "w"), b.int("n")
    i = b.axis(n)
    stop: Operand = n if isinstance(steps, str) else steps
    loop = fold_loop(start, stop, [load(x, i)] * carried, lambda k, *c: step(x, k, *c))
    b.store(out, i, loop.results[0])
    (found,) = (s for s in b.build().body if isinstance(s, Loop))
    return found


def test_settles_is_true_if_steps_depend_only_on_the_carry() -> None:
    assert settles(fold(lambda x, k, c: [c >> 1]))
    assert settles(fold(lambda x, k, a, c: [c, where(c < 9, c, a - c)], carried=2))
    assert not settles(fold(lambda x, k, c: [c + k]))
    assert not settles(fold(lambda x, k, c: [load(x, c)]))
    assert not settles(fold(lambda x, k, c: ([c >> 1], [Store(x, k, c)])))
    assert not settles(fold(lambda x, k, c: [c >> 1], steps="n"))  # as many as there is work
    assert not settles(fold(lambda x, k, c: [c >> 1], steps=EARLY_EXIT_STEPS_MIN - 1))
    assert not settles(fold(lambda x, k, c: [c >> 1], steps=EARLY_EXIT_STEPS_MIN + 3, start=4))
