"""The CPU backend against the reference interpreter, bit by bit."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend.interface import Backend
from dovetail.backend.reference import interpret
from dovetail.dtypes import BY_NAME, INTEGERS, DType, bool_, float16, float32, float64, int64
from dovetail.kernel.builder import Kernel, KernelBuilder
from dovetail.kernel.language import (
    CHUNK,
    OPS,
    Atomic,
    Store,
    Value,
    bitcast,
    cast,
    const,
    fma,
    fold_loop,
    load,
    map_loop,
    quo,
    reduce_loop,
    rem,
    where,
)
from dovetail.ops import elementary
from dovetail.ops.table import TABLE
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
    """Equal bits, but any NaN is as good as another."""
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
    """The buffers after a kernel ran here, which the reference must leave just so."""
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
    """Values at which arithmetic goes wrong first."""
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


def operands(op: str, d: DType, n: int) -> list[Array]:
    """Columns of every combination of special values, for which `op` is defined."""
    count = OPS[op][0]
    rows = np.array(list(itertools.product(*[specials(d)] * min(count, 2))), numpy_of(d))
    columns = [rows[:, j] for j in range(rows.shape[1])]
    if count == 3:
        columns.append(RNG.permutation(columns[0]))
    if op in ("shl", "shr"):
        columns[1] = columns[1] % np.array(d.bits, numpy_of(d))
    if op in ("quo", "rem"):
        bad = (columns[1] == 0) | (
            (columns[1] == np.array(-1).astype(numpy_of(d))) & (columns[0] == d.min)
        )
        columns[1] = np.where(bad, np.array(1, numpy_of(d)), columns[1])
    return [np.resize(c, max(n, c.size)) for c in columns]


def spread(
    how: str, name: str, sources: Sequence[DType], target: DType, make: Callable[..., Value]
) -> Kernel:
    """out[i] = make(x0[i], ...), written so that the backend takes each of its ways."""
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


WAYS = ("lanes", "rows", "points")
CASES = [
    (op, d)
    for op, (_, kinds, _) in OPS.items()
    if op not in ("cast", "bitcast", "where")
    for d in (bool_, *REALS)
    if d.kind in kinds
]


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("d", (bool_, *REALS), ids=lambda d: d.name)
def test_operations(backend: Backend, how: str, d: DType) -> None:
    for op, _ in (case for case in CASES if case[1] is d):
        out = bool_ if OPS[op][2] == "b" else d
        columns = operands(op, d, 197)
        k = spread(how, op, [d] * len(columns), out, lambda *v, op=op, out=out: Value(op, out, v))
        n = columns[0].size
        check(backend, k, [*columns, np.zeros(n, numpy_of(out))], [n], [], grid_of(how, n))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("source", (bool_, *REALS), ids=lambda d: d.name)
def test_casts(backend: Backend, how: str, source: DType) -> None:
    for target in (bool_, *REALS):
        x = specials(source)
        if source.kind == "f" and target.kind in "iu":
            x = x[np.isfinite(x) & (np.abs(x) < 100) & ((x > -1) | (target.kind == "i"))]
        x = np.resize(x, 77)
        k = spread(how, "cast", [source], target, lambda v, target=target: cast(v, target))
        check(backend, k, [x, np.zeros(77, numpy_of(target))], [77], [], grid_of(how, 77))
        if source.itemsize == target.itemsize and bool_ not in (source, target):
            k = spread(how, "bits", [source], target, lambda v, target=target: bitcast(v, target))
            check(backend, k, [x, np.zeros(77, numpy_of(target))], [77], [], grid_of(how, 77))


@pytest.mark.parametrize("how", WAYS)
def test_halves_are_exact(backend: Backend, how: str) -> None:
    if float16 not in backend.info.capabilities.native_halves:
        pytest.skip("this CPU does not convert halves")
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    up = spread(how, "up", [float16], float32, lambda v: cast(v, float32))
    check(
        backend, up, [every, np.zeros(every.size, "f4")], [every.size], [], grid_of(how, every.size)
    )
    exact = every[np.isfinite(every)].astype("f4")
    between = np.concatenate(
        [exact, np.nextafter(exact, np.inf, dtype="f4"), np.nextafter(exact, -np.inf, dtype="f4")]
    )
    ties = (exact[:-1] + exact[1:]) / 2
    x = np.concatenate(
        [between, ties, np.array([65519.9, 65520, 1e30, np.inf, 1e-10, -1e-10], "f4")]
    ).astype("f4")
    down = spread(how, "down", [float32], float16, lambda v: cast(v, float16))
    check(backend, down, [x, np.zeros(x.size, "f2")], [x.size], [], grid_of(how, x.size))


@pytest.mark.parametrize("how", WAYS)
@pytest.mark.parametrize("d", (bool_, *REALS), ids=lambda d: d.name)
def test_where_and_conditional_access(backend: Backend, how: str, d: DType) -> None:
    n = 133
    b = KernelBuilder("guard")
    c, x = b.buffer("c", bool_, "r"), b.buffer("x", d, "r")
    out, size = b.buffer("out", d, "w"), b.int("n")

    def effect(i: Value) -> Store:
        yes = load(c, i)
        wild, tame = load(x, where(yes, i, 1 << 60), yes), load(x, i + where(yes, 0, i << 50), yes)
        return Store(
            out, where(yes | (i < 9), i, 1 << 60), where(i < 50, wild, tame), yes | (i < 9)
        )

    if how == "lanes":
        b.effect(effect(b.axis(size)))
    elif how == "rows":
        b.effect(map_loop(0, size, lambda k: [effect(k)]))
    else:
        b.effect(fold_loop(0, size, [const(0, int64)], lambda k, s: ([s + 1], [effect(k)])))
    yes = RNG.random(n) < 0.5
    values = np.resize(specials(d), n)
    before = np.resize(specials(d)[::-1], n)
    check(backend, b.build(), [yes, values, before], [n], [], grid_of(how, n))
    k = spread(how, "where", [bool_, d, d], d, where)
    check(backend, k, [RNG.random(n) < 0.5, values, values[::-1], before], [n], [], grid_of(how, n))


# --- reductions -----------------------------------------------------------------------------------

COMBINES = {
    "add": REALS,
    "mul": (float32, float64, dt.int32, dt.uint64),
    "max": REALS,
    "min": REALS,
    "and": (bool_, *INTEGERS),
    "or": (bool_, *INTEGERS),
    "xor": (bool_, dt.uint8, int64),
    "argmax": REALS,
    "argmin": (float32, float64, dt.int8, dt.uint64),
}


def reduction(name: str, d: DType, axis: int) -> Kernel:
    """The reduction of a matrix (m, n) along its last axis, or of its transpose along its first."""
    b = KernelBuilder(f"{name}_{axis}")
    x, m, n = b.buffer("x", d, "r"), b.int("m"), b.int("n")
    i = b.axis(m)
    out = b.buffer("out", d, "w")

    def body(k: Value) -> Any:
        v = load(x, i * n + k if axis == 1 else k * m + i)
        return (v, k) if name.startswith("arg") else v

    results = reduce_loop(name, 0, n, body)
    b.store(out, i, results[0])
    if len(results) == 2:
        b.store(b.buffer("where", int64, "w"), i, results[1])
    return b.build()


def sample(d: DType, count: int, name: str) -> Array:
    if d is bool_:
        return RNG.random(count) < (0.999 if name == "and" else 0.001)
    if d.kind == "f":
        x = RNG.standard_normal(count).astype(d.name)
        if name == "mul":
            x = np.exp2(x / 64).astype(d.name)
        x[RNG.integers(0, count, 1 + count // 300)] = -0.0
        return x
    return RNG.integers(d.min, d.max, count, dtype=d.name, endpoint=True)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", COMBINES)
def test_reductions(backend: Backend, name: str, axis: int) -> None:
    for d in COMBINES[name]:
        kernel = reduction(name, d, axis)
        for m, n in ((1, 0), (3, 1), (70, 31), (2, 100), (3, CHUNK + 3)):
            x = sample(d, m * n, name) if n else np.zeros(1, d.name)
            outs = [np.zeros(m, d.name)] + [np.zeros(m, np.int64)] * name.startswith("arg")
            check(backend, kernel, [x, *outs], [m, n], [], [m])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("n", [32, 33, 4095, 4096, 8192, 40000])
def test_sum_of_length(backend: Backend, n: int, axis: int) -> None:
    x = sample(float32, 3 * n, "add")
    check(backend, reduction("add", float32, axis), [x, np.zeros(3, "f4")], [3, n], [], [3])


def test_sum_of_more_than_a_chunk_of_chunks(backend: Backend) -> None:
    n = CHUNK * CHUNK + 3 * CHUNK + 5
    x = sample(float32, n, "add")
    check(backend, reduction("add", float32, 1), [x, np.zeros(1, "f4")], [1, n], [], [1])


@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "add"])
@pytest.mark.parametrize("axis", [0, 1])
def test_reductions_with_nan_and_ties(backend: Backend, name: str, axis: int) -> None:
    for n in (5, 64, 5000):
        x = RNG.integers(-2, 3, 4 * n).astype("f4")
        x[RNG.integers(0, 2 * n, 3)] = np.nan
        outs = [np.zeros(4, "f4")] + [np.zeros(4, np.int64)] * name.startswith("arg")
        check(backend, reduction(name, float32, axis), [x, *outs], [4, n], [], [4])


@pytest.mark.parametrize("inner", [0, 1, 2])
def test_nested_reductions(backend: Backend, inner: int) -> None:
    b = KernelBuilder("nested")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    one = const(1, int64)
    si, sj, sk = ((n * p, p, one), (p, m * p, one), (one, m * p, m))[inner]
    i = b.axis(m)

    def row(j: Value) -> Value:
        return reduce_loop("max", 0, p, lambda k: load(x, i * si + j * sj + k * sk))[0]

    b.store(out, i, reduce_loop("add", 0, n, row)[0])
    arrays = [sample(float32, 45 * 7 * 50, "add"), np.zeros(45, "f4")]
    check(backend, b.build(), arrays, [45, 7, 50], [], [45])


@pytest.mark.parametrize("sizes", [(3, 5), (7, 64), (9, 49), (2, 3000), (50, 1), (300, 31)])
def test_reduction_of_two_axes_at_once(backend: Backend, sizes: tuple[int, int]) -> None:
    b = KernelBuilder("two_axes")
    x, out, most = (b.buffer(n, float32, a) for n, a in (("x", "r"), ("out", "w"), ("most", "w")))
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    i = b.axis(m)

    def at(k: Value) -> Value:
        return quo(k, p) * (m * p) + i * p + rem(k, p)

    (total,) = reduce_loop("add", 0, n * p, lambda k: load(x, at(k)))
    b.store(most, i, total)
    b.effect(map_loop(0, n * p, lambda k: [Store(out, at(k), load(x, at(k)) - total)]))
    data = sample(float32, 4 * sizes[0] * sizes[1], "add")
    arrays = [data, np.zeros(data.size, "f4"), np.zeros(4, "f4")]
    check(backend, b.build(), arrays, [4, *sizes], [], [4])


# --- shapes of kernels --------------------------------------------------------------------------


def test_strides_of_every_kind(backend: Backend) -> None:
    b = KernelBuilder("strides")
    x, y, z = (b.buffer(n, float32, "r") for n in "xyz")
    flat, turned = b.buffer("flat", float32, "w"), b.buffer("turned", float32, "w")
    m, n, s, c = b.int("m"), b.int("n"), b.int("s"), b.scalar("c", float32)
    i, j = b.axis(m), b.axis(n)
    value = load(x, i * n + j) * c + load(y, i) - load(z, (n - 1 - j) * s + i)
    b.store(flat, i * n + j, value)
    b.store(turned, j * m + i, value)
    for rows, columns in ((1, 1), (3, 5), (7, 64), (65, 33), (2, 1000), (130, 130)):
        size = rows * columns
        arrays = [
            sample(float32, size, "add"),
            sample(float32, rows, "add"),
            sample(float32, 3 * size + rows, "add"),
        ]
        arrays += [np.zeros(size, "f4"), np.zeros(size, "f4")]
        check(backend, b.build(), arrays, [rows, columns, 3], [0.1], [rows, columns])


@pytest.mark.parametrize("d", (bool_, dt.int8, float16, float32, float64), ids=lambda d: d.name)
def test_transposed_copy(backend: Backend, d: DType) -> None:
    b = KernelBuilder("transposed")
    x, y, out = b.buffer("x", d, "r"), b.buffer("y", d, "r"), b.buffer("out", d, "w")
    q, m, n = b.int("q"), b.int("m"), b.int("n")
    h, i, j = b.axis(q), b.axis(m), b.axis(n)
    picked = load(x, h * m * n + j * m + i)
    if d is float32:
        picked = picked + load(y, i * n + j)
    b.store(out, h * m * n + i * n + j, picked)
    for shape in ((1, 1, 1), (2, 3, 5), (1, 64, 64), (3, 65, 127), (1, 200, 16), (2, 16, 200)):
        x_, y_ = sample_any(d, shape), sample_any(d, shape)
        check(backend, b.build(), [x_, y_, np.zeros(x_.size, d.name)], shape, [], shape)


def sample_any(d: DType, shape: Sequence[int]) -> Array:
    count = int(np.prod(shape))
    return RNG.standard_normal(count).astype(d.name) if d is float16 else sample(d, count, "add")


def test_gather_scatter_and_index_as_value(backend: Backend) -> None:
    b = KernelBuilder("gather")
    x, at, out = (
        b.buffer("x", float64, "r"),
        b.buffer("at", int64, "r"),
        b.buffer("out", float64, "w"),
    )
    i = b.axis(b.int("n"))
    b.store(out, load(at, i), load(x, load(at, i)) + cast(i * 3 - 5, float64))
    for n in (1, 15, 16, 100):
        order = RNG.permutation(n)
        check(backend, b.build(), [sample(float64, n, "add"), order, np.zeros(n)], [n], [], [n])


def test_integer_atomics(backend: Backend) -> None:
    for op in ("add", "min", "max", "and", "or"):
        for d in (dt.int32, dt.uint32, int64):
            b = KernelBuilder("histogram")
            at, out = b.buffer("at", int64, "r"), b.buffer("out", d, "rw")
            i = b.axis(b.int("n"))
            k = load(at, i)
            b.effect(Atomic(op, out, k, cast(i * 7 + 1, d), k < 8))
            start = np.arange(10, dtype=d.name)
            check(backend, b.build(), [RNG.integers(0, 10, 50), start], [50], [], [50])


def test_loaded_bounds(backend: Backend) -> None:
    b = KernelBuilder("csr")
    rows, columns = b.buffer("rows", int64, "r"), b.buffer("columns", int64, "r")
    values, x, out = (
        b.buffer("values", float64, "r"),
        b.buffer("x", float64, "r"),
        b.buffer("out", float64, "w"),
    )
    i = b.axis(b.int("n"))
    lo, hi = load(rows, i), load(rows, i + 1)
    (r,) = reduce_loop("add", lo, hi, lambda k: load(values, k) * load(x, load(columns, k)))
    b.store(out, i, r)
    ends = np.sort(RNG.integers(0, 500, 41))
    arrays = [
        ends,
        RNG.integers(0, 30, 500),
        sample(float64, 500, "add"),
        sample(float64, 30, "add"),
        np.zeros(40),
    ]
    check(backend, b.build(), arrays, [40], [], [40])


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("d", (dt.int32, int64, float32, float64), ids=lambda d: d.name)
def test_cumulative_sum(backend: Backend, d: DType, axis: int) -> None:
    b = KernelBuilder("cumsum")
    x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
    m, n = b.int("m"), b.int("n")
    i = b.axis(m)

    def step(k: Value, c: Value) -> Any:
        at = i * n + k if axis else k * m + i
        return [c + load(x, at)], [Store(out, at, c + load(x, at))]

    b.effect(fold_loop(0, n, [const(0, d)], step))
    check(backend, b.build(), [sample(d, 600, "add"), np.zeros(600, d.name)], [20, 30], [], [20])


@pytest.mark.parametrize("d", (dt.uint8, dt.int32, int64, float32, float64), ids=lambda d: d.name)
def test_matrix_product(backend: Backend, d: DType) -> None:
    b = KernelBuilder("matmul")
    x, y, out = b.buffer("x", d, "r"), b.buffer("y", d, "r"), b.buffer("out", d, "w")
    m, k_, n = b.int("m"), b.int("k"), b.int("n")
    i, j = b.axis(m), b.axis(n)

    def step(k: Value, c: Value) -> list[Value]:
        left, right = load(x, i * k_ + k), load(y, k * n + j)
        return [fma(left, right, c) if d.kind == "f" else left * right + c]

    b.store(out, i * n + j, fold_loop(0, k_, [const(0, d)], step).results[0])
    for p, q, r in ((1, 1, 1), (3, 4, 5), (9, 17, 65), (70, 8, 300), (5, 0, 3)):
        arrays = [
            sample(d, max(1, p * q), "add"),
            sample(d, max(1, q * r), "add"),
            np.zeros(p * r, d.name),
        ]
        check(backend, b.build(), arrays, [p, q, r], [], [p, r])


@pytest.mark.parametrize("axis", [0, 1])
def test_softmax(backend: Backend, axis: int) -> None:
    b = KernelBuilder("softmax")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    m, n = b.int("m"), b.int("n")
    i = b.axis(m)

    def at(k: Value) -> Value:
        return i * n + k if axis else k * m + i

    (top,) = reduce_loop("max", 0, n, lambda k: load(x, at(k)))
    (total,) = reduce_loop("add", 0, n, lambda k: elementary.exp(load(x, at(k)) - top))
    b.effect(
        map_loop(0, n, lambda k: [Store(out, at(k), elementary.exp(load(x, at(k)) - top) / total)])
    )
    for rows, columns in ((1, 1), (40, 70), (7, 1000)):
        data = sample(float32, rows * columns, "add")
        check(backend, b.build(), [data, np.zeros(data.size, "f4")], [rows, columns], [], [rows])


def test_search_by_halves(backend: Backend) -> None:
    b = KernelBuilder("search")
    table, x, out = (
        b.buffer("table", float32, "r"),
        b.buffer("x", float32, "r"),
        b.buffer("out", int64, "w"),
    )
    n, size, steps = b.int("n"), b.int("size"), b.int("steps")
    i = b.axis(n)

    def step(k: Value, lo: Value, hi: Value) -> list[Value]:
        middle = (lo + hi) >> 1
        right = (lo < hi) & (load(table, middle, lo < hi) < load(x, i))
        return [where(right, middle + 1, lo), where((lo < hi) & ~right, middle, hi)]

    b.store(out, i, fold_loop(0, steps, [const(0, int64), size], step).results[0])
    keys = np.sort(sample(float32, 100, "add"))
    got = check(
        backend,
        b.build(),
        [keys, sample(float32, 60, "add"), np.zeros(60, np.int64)],
        [60, 100, 8],
        [],
        [60],
    )
    assert np.array_equal(got[2], np.searchsorted(keys, got[1]))


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sin", "erf", "expm1", "atan"])
@pytest.mark.parametrize("d", (float32, float64), ids=lambda d: d.name)
def test_elementary_functions(backend: Backend, name: str, d: DType) -> None:
    x = np.concatenate(
        [
            specials(d),
            RNG.standard_normal(300).astype(d.name),
            (RNG.standard_normal(99) * 1e4).astype(d.name),
        ]
    )
    k = spread("lanes", name, [d], d, TABLE[name].expression)
    check(backend, k, [x, np.zeros(x.size, d.name)], [x.size], [], [x.size])


def test_dtypes_by_name_are_complete() -> None:
    assert all(d.name in BY_NAME for d in REALS)


@pytest.mark.parametrize("mirrored", [False, True])
@pytest.mark.parametrize("n", [3, 64])
def test_a_half_compared_with_a_constant_zero_keeps_its_sign(
    backend: Backend, n: int, mirrored: bool
) -> None:
    """A compiler may narrow this to half, and then to a maximum that loses the sign of -0."""
    b = KernelBuilder("clip")
    x, y = b.buffer("x", float16, "r"), b.buffer("y", float16, "w")
    i = b.axis(b.int("n"))
    v = cast(load(x, i), float32)
    chosen = where(v > 0.0, v, 0.0) if mirrored else where(v < 0.0, 0.0, v)
    b.store(y, i, cast(chosen, float16))
    values = np.resize(np.array([-0.0, 0.0, -1.0, 1.0, np.nan, -np.inf], np.float16), n)
    check(backend, b.build(), [values, np.zeros(n, np.float16)], [n], (), [n])
