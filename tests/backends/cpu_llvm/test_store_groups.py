"""Stores to many neighbors of a point are interleaved in registers; complex64 words are split
into parts.
"""

from __future__ import annotations

import re
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.dtypes import DType
from dovetail.extend import KernelSite, Op, Store, const, dtype_rules, make_node
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import LANES, Loop, cast, load, map_loop
from dovetail.ir.legalize import legalize
from dovetail.ir.target import Capabilities

interleaved_access = pytest.importorskip("dovetail_cpu_llvm.interleaved_access")
compile_ = pytest.importorskip("dovetail_cpu_llvm.compile")
NATIVE = 64


def spread(dtype: DType, count: int, step: int = 1, when: bool = False) -> Kernel:
    """Build a kernel that stores x[i] + k at count i + step k."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", dtype, "r"), b.buffer("out", dtype, "w")
    i = b.axis(b.int("n"))
    for k in range(count):
        condition = load(x, i) < const(5, dtype) if when else None
        b.store(out, i * count + k * step, load(x, i) + const(k, dtype), condition)
    return b.build()


def sizes(kernel: Kernel) -> list[int]:
    found = interleaved_access.store_groups(kernel.body, NATIVE)
    stores = [s for s in kernel.body if isinstance(s, Store)]
    return [len(found[id(s)].stores) for s in stores if id(s) in found]


def test_neighboring_stores_form_groups_of_at_most_a_register() -> None:
    assert sizes(spread(dt.float32, 16)) == [16] * 16
    assert sizes(spread(dt.float64, 16)) == [8] * 16
    assert sizes(legalize(spread(dt.complex128, 4), Capabilities())) == [8] * 8
    assert sizes(spread(dt.int64, 4)) == [4] * 4


def test_other_stores_form_no_groups() -> None:
    for kernel in (spread(dt.float32, 6), spread(dt.float32, 2), spread(dt.float32, 8, step=2)):
        assert sizes(kernel) == []
    assert sizes(spread(dt.float32, 8, when=True)) == []
    b = KernelBuilder("k")
    out = b.buffer("out", dt.float32, "rw")
    i = b.axis(b.int("n"))
    for k in range(8):
        b.store(out, i * 8 + k, load(out, i * 8 + k) + 1.0)
    assert sizes(b.build()) == []


def mapped(access: str, count: int) -> Kernel:
    """Build a kernel of a loop that stores at `count` neighbors, and one that updates every
    place.
    """
    b = KernelBuilder("k")
    out = b.buffer("out", dt.float32, access)
    i, n = b.axis(b.int("rows")) * 1000, b.int("n")
    here = [const(k, dt.int64) for k in range(count)]
    b.effect(
        map_loop(0, n, lambda k: [Store(out, i + k * count + h, cast(k, dt.float32)) for h in here])
    )
    if access == "rw":
        places = [i + h * 8 for h in here]
        b.effect(
            map_loop(0, n, lambda k: [Store(out, p + k, load(out, p + k) + 1.0) for p in places])
        )
    return b.build()


def test_map_body_has_store_groups_unless_it_reads_its_stores() -> None:
    for access in ("w", "rw"):
        kernel = mapped(access, 16)
        found = interleaved_access.store_groups(kernel.body, NATIVE)
        loops = [s for s in kernel.body if isinstance(s, Loop)]
        there = [[id(s) in found for s in x.body if isinstance(s, Store)] for x in loops]
        assert there == [[True] * 16, [False] * 16][: len(loops)]


def test_map_with_many_stores_uses_fewer_lanes() -> None:
    schedule = pytest.importorskip("dovetail_cpu_llvm.schedule")
    for count, lanes in ((4, LANES), (8, NATIVE // 4)):
        (loop,) = (s for s in mapped("w", count).body if isinstance(s, Loop))
        assert schedule.lanes_of_map(loop, NATIVE) == lanes


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int16", "int64"]
)
@pytest.mark.parametrize("count", [3, 4, 8, 16, 32])
def test_store_groups_write_every_element_and_nothing_else(dtype: str, count: int) -> None:
    def build(site: KernelSite) -> None:
        i = site.axis(0, 0)
        for k in range(count):
            site.store(site.read(0, i) + const(k, site.casts[0]), i * count + k)

    op = Op("spread", "kernel", dtype_rules.same("iufc"), build=build)
    for n in (1, 15, 16, 53, 200):
        x = dt.astype(dt.arange(n, device="cpu"), dtype)
        made = make_node(op, (x,), (n * count,), x.dtype).numpy()
        wanted: Any = np.arange(n)[:, None] + np.arange(count)
        assert np.array_equal(made, wanted.reshape(-1).astype(dtype))


def test_complex64_halves_are_separated_by_shuffles() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", dt.complex64, "r"), b.buffer("out", dt.complex64, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) + load(x, i))
    source = compile_.Compiler().compile(legalize(b.build(), Capabilities())).source
    taken = re.findall(r"bitcast <(\d+) x i64> %\S+ to <(\d+) x float>", source)
    assert taken and all(int(floats) == 2 * int(words) for words, floats in taken)
    assert "i32 1, i32 3" in source and "i32 0, i32 2" in source


def test_points_with_many_stores_use_shorter_tiles() -> None:
    schedule = pytest.importorskip("dovetail_cpu_llvm.schedule")
    few, many = (schedule.schedule(spread(dt.float32, n), NATIVE) for n in (2, 16))
    assert (few.tile, many.tile) == (schedule.TILE_POINTS, schedule.STORING_TILE_POINTS)
    assert few.stream_bytes_min and not many.stream_bytes_min  # each of many stores would ask
