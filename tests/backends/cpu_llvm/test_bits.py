"""Code that only the LLVM backend generates, bit by bit next to the reference interpreter.

Scalar casts, half conversions of the CPU, transposed tiles, and axes divided out of one loop. The
conformance kit covers the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend.interface import Backend
from dovetail.backend.reference import interpret
from dovetail.dtypes import INTEGERS, DType, bool_, float16, float32, float64, int64
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.language import (
    CHUNK,
    Store,
    Value,
    bitcast,
    cast,
    const,
    fold_loop,
    load,
    map_loop,
    quo,
    reduce_loop,
    rem,
    where,
)
from dovetail_cpu_llvm import plugin

Array = Any
REALS = (*INTEGERS, float32, float64)
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def backend() -> Backend:
    found = plugin.dovetail_probe(None)
    assert isinstance(found, list), found
    return plugin.dovetail_open(found[0], None)


def same_bits(a: Array, b: Array) -> bool:
    """Return True if all bits are equal; all NaNs are equal."""
    if a.dtype.kind == "f":
        nan = np.isnan(a) & np.isnan(b)
        return bool((nan | (a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}"))).all())
    return bool((a == b).all())


def check(
    backend: Backend,
    kernel: Kernel,
    arrays: Sequence[Array],
    ints: Sequence[int] = (),
    scalars: Sequence[float] = (),
    grid: Sequence[int] = (),
) -> list[Array]:
    """Run a kernel and assert that its buffers equal those of the reference."""
    mine, theirs = ([np.array(a) for a in arrays] for _ in range(2))
    handles = tuple(x for a in mine for x in (a.ctypes.data, 0))
    backend.launch(backend.compile(kernel), handles, ints, scalars, grid)
    interpret(kernel, theirs, ints, scalars, grid)
    for b, x, y in zip(kernel.buffers, mine, theirs, strict=True):
        wrong = (
            [i for i in range(x.size) if not same_bits(x[i : i + 1], y[i : i + 1])][:5]
            if not same_bits(x, y)
            else []
        )
        assert not wrong, f"{b.name}{wrong}: {x[wrong]} instead of {y[wrong]}\n{kernel}"
    return mine


def numpy_of(d: DType) -> Any:
    return np.dtype(d.name)


def specials(d: DType) -> Array:
    """Return values at which arithmetic is most likely to be wrong."""
    if d is bool_:
        return np.array([False, True])
    if d.kind == "f":
        info = np.finfo(d.name)
        some = [
            0.0,
            1,
            1.5,
            2.5,
            3,
            np.pi,
            1e-3,
            2**23,
            1e9,
            info.max,
            info.tiny,
            info.smallest_subnormal,
            np.inf,
        ]
        positive = np.array(some, numpy_of(d))
        return np.concatenate([positive, -positive, np.array([np.nan], numpy_of(d))])
    return np.unique(
        np.array(
            [0, 1, 2, 3, 7, 100, d.max - 1, d.max, d.min, d.min + 1, d.max // 2 + 1], numpy_of(d)
        )
    )


def kernel_of(
    how: str, name: str, sources: Sequence[DType], target: DType, make: Callable[..., Value]
) -> Kernel:
    """Build out[i] = make(x0[i], ...) in a form that selects each kind of schedule."""
    b = KernelBuilder(name)
    buffers = [b.buffer(f"x{j}", d, "r") for j, d in enumerate(sources)]
    out, n = b.buffer("out", target, "w"), b.int("n")

    def effect(i: Value) -> Store:
        return Store(out, i, make(*[load(x, i) for x in buffers]))

    if how == "lanes":
        b.effect(effect(b.axis(n)))
    elif how == "rows":
        b.effect(map_loop(0, n, lambda k: [effect(k)]))
    else:
        b.effect(fold_loop(0, n, [const(0, int64)], lambda k, c: ([c + 1], [effect(k)])))
    return b.build()


def grid_of(how: str, n: int) -> list[int]:
    return [n] if how == "lanes" else []


SCHEDULES = ("lanes", "rows", "points")


@pytest.mark.parametrize("how", SCHEDULES)
@pytest.mark.parametrize("source", (bool_, *REALS), ids=lambda d: d.name)
def test_casts_have_reference_bits_in_every_schedule(
    backend: Backend, how: str, source: DType
) -> None:
    for target in (bool_, *REALS):
        x = specials(source)
        if source.kind == "f" and target.kind in "iu":
            x = x[np.isfinite(x) & (np.abs(x) < 100) & ((x > -1) | (target.kind == "i"))]
        x = np.resize(x, 77)
        k = kernel_of(how, "cast", [source], target, lambda v, t=target: cast(v, t))
        check(backend, k, [x, np.zeros(77, numpy_of(target))], [77], [], grid_of(how, 77))
        if source.itemsize == target.itemsize and bool_ not in (source, target):
            k = kernel_of(
                how, "bits", [source], target, lambda v, target=target: bitcast(v, target)
            )
            check(backend, k, [x, np.zeros(77, numpy_of(target))], [77], [], grid_of(how, 77))


@pytest.mark.parametrize("how", SCHEDULES)
def test_half_arithmetic_has_reference_bits_in_every_schedule(
    backend: Backend, how: str, thinned: Callable[..., Any]
) -> None:
    if float16 not in backend.info.capabilities.native_halves:
        pytest.skip("this CPU does not convert halves")
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    up = kernel_of(how, "up", [float16], float32, lambda v: cast(v, float32))
    some = thinned(every, 5).copy()
    check(backend, up, [some, np.zeros(some.size, "f4")], [some.size], [], grid_of(how, some.size))
    exact = every[np.isfinite(every)].astype("f4")
    between = np.concatenate(
        [exact, np.nextafter(exact, np.inf, dtype="f4"), np.nextafter(exact, -np.inf, dtype="f4")]
    )
    ties = (exact[:-1] + exact[1:]) / 2
    x = np.concatenate(
        [between, ties, np.array([65519.9, 65520, 1e30, np.inf, 1e-10, -1e-10], "f4")]
    ).astype("f4")
    x = thinned(x, 5).copy()
    down = kernel_of(how, "down", [float32], float16, lambda v: cast(v, float16))
    check(backend, down, [x, np.zeros(x.size, "f2")], [x.size], [], grid_of(how, x.size))


def sample(d: DType, count: int) -> Array:
    if d is bool_:
        return RNG.random(count) < 0.5
    if d.kind == "f":
        x = RNG.standard_normal(count).astype(d.name)
        x[RNG.integers(0, count, 1 + count // 300)] = -0.0
        return x
    return RNG.integers(d.min, d.max, count, dtype=d.name, endpoint=True)


def test_sum_longer_than_a_chunk_of_chunks_has_reference_bits(backend: Backend) -> None:
    size = CHUNK * CHUNK + 3 * CHUNK + 5
    x = sample(float32, size)
    b = KernelBuilder("row_sum")
    data, out, n = b.buffer("x", float32, "r"), b.buffer("out", float32, "w"), b.int("n")
    i = b.axis(b.int("m"))
    b.store(out, i, reduce_loop("add", 0, n, lambda k: load(data, i * n + k))[0])
    check(backend, b.build(), [x, np.zeros(1, "f4")], [size, 1], [], [1])


@pytest.mark.parametrize("sizes", [(3, 5), (7, 64), (9, 49), (2, 3000), (50, 1), (300, 31)])
def test_reduction_over_two_axes_has_reference_bits(
    backend: Backend, sizes: tuple[int, int]
) -> None:
    b = KernelBuilder("two_axes")
    x, out, most = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("out", "w"), ("most", "w")))
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    i = b.axis(m)

    def at(k: Value) -> Value:
        return quo(k, p) * (m * p) + i * p + rem(k, p)

    (total,) = reduce_loop("add", 0, n * p, lambda k: load(x, at(k)))
    b.store(most, i, total)
    b.effect(map_loop(0, n * p, lambda k: [Store(out, at(k), load(x, at(k)) - total)]))
    data = sample(float32, 4 * sizes[0] * sizes[1])
    arrays = [data, np.zeros(data.size, "f4"), np.zeros(4, "f4")]
    check(backend, b.build(), arrays, [4, *sizes], [], [4])


@pytest.mark.parametrize("d", (bool_, dt.int8, float16, float32, float64), ids=lambda d: d.name)
def test_transposed_tiles_next_to_plain_loads_have_reference_bits(
    backend: Backend, d: DType
) -> None:
    b = KernelBuilder("transposed")
    x, y, out = b.buffer("x", d, "r"), b.buffer("y", d, "r"), b.buffer("out", d, "w")
    q, m, n = b.int("q"), b.int("m"), b.int("n")
    h, i, j = b.axis(q), b.axis(m), b.axis(n)
    picked = load(x, h * m * n + j * m + i)
    if d is float32:
        picked = picked + load(y, i * n + j)
    b.store(out, h * m * n + i * n + j, picked)
    for shape in ((1, 1, 1), (2, 3, 5), (1, 64, 64), (3, 65, 127), (1, 200, 16), (2, 16, 200)):
        size = int(np.prod(shape))
        arrays = [sample(d, size), sample(d, size), np.zeros(size, d.name)]
        check(backend, b.build(), arrays, shape, [], shape)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("n", [3, 64])
def test_half_compared_with_zero_keeps_the_sign_of_zero(
    backend: Backend, n: int, mirrored: bool
) -> None:
    """A compiler may narrow this comparison to half, and then to a maximum that loses the sign
    of -0.
    """
    b = KernelBuilder("clip")
    x, y = b.buffer("x", float16, "r"), b.buffer("y", float16, "w")
    i = b.axis(b.int("n"))
    v = cast(load(x, i), float32)
    chosen = where(v > 0.0, v, 0.0) if mirrored else where(v < 0.0, 0.0, v)
    b.store(y, i, cast(chosen, float16))
    values = np.resize(np.array([-0.0, 0.0, -1.0, 1.0, np.nan, -np.inf], np.float16), n)
    check(backend, b.build(), [values, np.zeros(n, np.float16)], [n], (), [n])
