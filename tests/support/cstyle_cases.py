"""Kernels as plain C, compiled by the system's compiler: the reference's bits."""

from __future__ import annotations

import ctypes
import hashlib
import math
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend.reference import interpret
from dovetail.dtypes import INTEGERS, DType, bool_, float32, float64, int64
from dovetail.errors import CompileError
from dovetail.ir.analysis import settles, shareable
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.cstyle import CStyle
from dovetail.ir.language import (
    CHUNK,
    OPS,
    Atomic,
    Loop,
    Store,
    Value,
    bitcast,
    cast,
    const,
    eq,
    fma,
    fold_loop,
    load,
    map_loop,
    reduce_loop,
    where,
)
from dovetail.ir.legalize import legalize
from dovetail.ir.parser import parse_kernel
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify
from dovetail.ops.table import TABLE
from places import GOLDEN

Array = Any
COMPILER = shutil.which("cc")
KERNELS = sorted(GOLDEN.glob("*.txt"))
FLAGS = ("-std=c11", "-O2", "-shared", "-fPIC", "-ffp-contract=off", "-Wall", "-Werror=implicit")
REALS = (*INTEGERS, float32, float64)

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler (cc) here")


class HostC:
    """Run kernels as functions of the system's C compiler: a harness of these tests, not a
    device.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def compile(self, text: str) -> ctypes.CDLL:
        name = hashlib.sha256(text.encode()).hexdigest()[:16]
        source, library = self.folder / f"{name}.c", self.folder / f"{name}.so"
        source.write_text(text)
        unused = (
            "-Wno-unused-variable",
            "-Wno-unused-function",
            "-Wno-overflow",
            "-Wno-unknown-pragmas",
        )
        command = [str(COMPILER), *FLAGS, *unused, str(source), "-o", str(library), "-lm"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, f"{done.stderr}\n{text}"
        return ctypes.CDLL(str(library))

    def run(
        self, kernel: Kernel, arrays: Sequence[Array], ints: Sequence[int], scalars: Sequence[Any]
    ) -> None:
        style = CStyle()
        function = getattr(self.compile(style.render(kernel)), style.entry(kernel))
        numbers = [_C[d](x) for (_, d), x in zip(kernel.scalars, scalars, strict=True)]
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
        function(*pointers, *(ctypes.c_int64(n) for n in ints), *numbers)


_C: dict[DType, Any] = {d: getattr(ctypes, f"c_{d.name}") for d in INTEGERS} | {
    bool_: ctypes.c_uint8,
    float32: ctypes.c_float,
    float64: ctypes.c_double,
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> HostC:
    return HostC(tmp_path_factory.mktemp("cstyle"))


def same_bits(a: Array, b: Array) -> Array:
    """Return where bits are equal; all NaNs are equal."""
    equal = a.view(f"u{a.itemsize}") == b.view(f"u{b.itemsize}")
    return equal | (np.isnan(a) & np.isnan(b)) if a.dtype.kind == "f" else equal


def check(
    host: HostC,
    kernel: Kernel,
    arrays: Sequence[Array],
    ints: Sequence[int] = (),
    scalars: Sequence[Any] = (),
    grid: Sequence[int] | None = None,
) -> list[Array]:
    """Run a kernel here and in the reference, on copies, and compare every buffer."""
    verify(kernel)
    mine, theirs = ([np.array(a) for a in arrays] for _ in range(2))
    host.run(kernel, mine, ints, scalars)
    names = dict(zip(kernel.ints, ints, strict=True))
    extents = [names[e.name] if e.op == "param" else int(e.number) for e in kernel.grid]
    interpret(kernel, theirs, ints, scalars, extents if grid is None else grid)
    for b, x, y in zip(kernel.buffers, mine, theirs, strict=True):
        wrong = np.flatnonzero(~same_bits(x, y))[:5]
        shown = f"{x[wrong]} instead of {y[wrong]}\n{kernel}\n{CStyle().render(kernel)}"
        assert not wrong.size, f"{b.name}{wrong}: {shown}"
    return mine


def specials(d: DType) -> Array:
    """Return values at which arithmetic is most likely to be wrong."""
    if d is bool_:
        return np.array([False, True])
    if d.kind == "f":
        info = np.finfo(d.name)
        tiny = (info.tiny, info.smallest_subnormal, 3 * info.smallest_subnormal)
        some = [0.0, 1, 1.5, 2.5, 3, np.pi, 1e-3, 2**23, 1e9, info.max, *tiny, np.inf]
        positive = np.array(some, d.name)
        return np.concatenate([positive, -positive, np.array([np.nan], d.name)])
    some = [0, 1, 2, 3, 7, 100, d.max - 1, d.max, d.min, d.min + 1, d.max // 2 + 1]
    return np.unique(np.array(some, d.name))


def pairs(d: DType) -> tuple[Array, Array]:
    x = specials(d)
    return np.repeat(x, x.size), np.tile(x, x.size)


def guarded(op: str, a: Value, b: Value) -> Value:
    """Return `op` where it is defined."""
    d = a.dtype
    if op in ("quo", "rem"):
        bad = eq(b, 0)
        if d.kind == "i":
            bad = bad | (eq(a, d.min) & eq(b, -1))
        b = where(bad, 1, b)
    if op in ("shl", "shr"):
        b = where((b < d.bits) & (b >= 0), b, 1)
    return Value(op, bool_ if OPS[op][2] == "b" else d, (a, b)[: OPS[op][0]])


@pytest.mark.parametrize("d", (bool_, *REALS), ids=lambda d: d.name)
def test_every_operation_on_special_values_has_the_reference_bits(host: HostC, d: DType) -> None:
    b = KernelBuilder("operations")
    x, y = b.buffer("x", d, "r"), b.buffer("y", d, "r")
    i = b.axis(b.int("n"))
    u, v = load(x, i), load(y, i)
    results = {
        op: guarded(op, u, v)
        for op, (count, kinds, _) in OPS.items()
        if d.kind in kinds and count < 3 and op not in ("cast", "bitcast")
    }
    results["where"] = where(eq(u, v), v, u)
    if d.kind == "f":
        results["fma"] = fma(u, v, u)
    left, right = pairs(d)
    arrays = [left, right]
    for op, r in results.items():
        b.store(b.buffer(f"out_{op}", r.dtype, "w"), i, r)
        arrays.append(np.zeros(left.size, r.dtype.name))
    check(host, b.build(), arrays, [left.size])


@pytest.mark.parametrize("source", (bool_, *REALS), ids=lambda d: d.name)
def test_casts_and_bitcasts_have_the_reference_bits(host: HostC, source: DType) -> None:
    b = KernelBuilder("casts")
    x = b.buffer("x", source, "r")
    i = b.axis(b.int("n"))
    values = np.concatenate([specials(source)] * 2)
    if source.kind == "f":
        values = np.array([0, -0.0, 0.5, 1.5, 2.5, 1e2, 99.99, np.float32(1e-40)], source.name)
    arrays = [values]
    for target in (bool_, *REALS):
        v = load(x, i)
        b.store(b.buffer(f"cast_{target.code}", target, "w"), i, cast(v, target))
        arrays.append(np.zeros(values.size, target.name))
        if target.itemsize == source.itemsize and bool_ not in (source, target):
            b.store(b.buffer(f"bits_{target.code}", target, "w"), i, bitcast(v, target))
            arrays.append(np.zeros(values.size, target.name))
    check(host, b.build(), arrays, [values.size])


def test_rounding_of_large_integers_and_of_float64_has_the_reference_bits(host: HostC) -> None:
    b = KernelBuilder("round")
    x, y = b.buffer("x", int64, "r"), b.buffer("y", float64, "r")
    i = b.axis(b.int("n"))
    b.store(b.buffer("a", float32, "w"), i, cast(load(x, i), float32))
    b.store(b.buffer("b", float64, "w"), i, cast(load(x, i), float64))
    b.store(b.buffer("c", float32, "w"), i, cast(load(y, i), float32))
    rng = np.random.default_rng(1)
    n = 2000
    wide = rng.integers(-(2**62), 2**62, n) >> rng.integers(0, 60, n)
    reals = rng.standard_normal(n) * 2.0 ** rng.integers(-160, 140, n)
    check(host, b.build(), [wide, reals, np.zeros(n, "f4"), np.zeros(n), np.zeros(n, "f4")], [n])


@pytest.mark.parametrize("d", (float32, float64), ids=lambda d: d.name)
def test_constants_are_exact(host: HostC, d: DType) -> None:
    b = KernelBuilder("constants")
    i = b.axis(b.int("n"))
    values = [*specials(d).tolist(), 0.1, 1 / 3, -123.0625, 1e22, 5e-324, -1e-45, 999999.5]
    for k, value in enumerate(values):
        b.store(b.buffer(f"out{k}", d, "w"), i, const(value, d))
    check(host, b.build(), [np.zeros(2, d.name) for _ in values], [2])


def test_extreme_integer_constants_are_exact(host: HostC) -> None:
    b = KernelBuilder("constants")
    i = b.axis(b.int("n"))
    for d in INTEGERS:
        for k, value in enumerate((d.min, d.max, d.min + 1)):
            b.store(b.buffer(f"{d.code}_{k}", d, "w"), i, const(value, d))
    check(host, b.build(), [np.zeros(1, d.name) for d in INTEGERS for _ in range(3)], [1])


# --- the golden kernels --------------------------------------------------------------------------


def arguments(kernel: Kernel, n: int, seed: int) -> tuple[list[Array], list[int], list[Any]]:
    """Return arguments of a golden kernel: its ints are `n`, its buffers long enough."""
    rng = np.random.default_rng(seed)
    arrays = []
    for b in kernel.buffers:
        size = n * n * 16 + 2 * n + 4
        if b.name in ("rows", "at", "columns", "index") or b.dtype is int64:
            x = np.sort(rng.integers(0, n, size))
        elif b.dtype.kind == "f":
            x = rng.standard_normal(size)
        else:
            x = rng.integers(0, 3, size)
        arrays.append(x.astype(b.dtype.name))
    scalars = [d.__numpy_dtype__.type(3).item() for _, d in kernel.scalars if d.__numpy_dtype__]
    return arrays, [n] * len(kernel.ints), scalars


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: p.stem)
@pytest.mark.parametrize("n", [1, 6])
def test_golden_kernels_have_the_reference_bits(host: HostC, path: Path, n: int) -> None:
    kernel = legalize(parse_kernel(path.read_text()), Capabilities())
    check(host, kernel, *arguments(kernel, n, n))


# --- loops ---------------------------------------------------------------------------------------

COMBINES = {
    "add": (dt.int8, int64, float32, float64),
    "mul": (dt.uint16, float32),
    "max": (dt.uint64, float32),
    "min": (dt.int8, float64),
    "and": (bool_, dt.int16),
    "or": (dt.uint8,),
    "xor": (int64,),
    "argmax": (float32,),
    "argmin": (dt.int32,),
}


def reduction(name: str, dtypes: Sequence[DType], axis: int = 1) -> Kernel:
    """Build reductions of matrices (m, n) along an axis, one for each dtype."""
    b = KernelBuilder(name)
    xs = [b.buffer(f"x{j}", d, "r") for j, d in enumerate(dtypes)]
    m, n = b.int("m"), b.int("count")
    i = b.axis(m)
    for j, d in enumerate(dtypes):

        def body(k: Value, j: int = j) -> Any:
            v = load(xs[j], i * n + k if axis else k * m + i)
            return (v, k) if name.startswith("arg") else v

        results = reduce_loop(name, 0, n, body)
        b.store(b.buffer(f"out{j}", d, "w"), i, results[0])
        if len(results) == 2:
            b.store(b.buffer(f"where{j}", int64, "w"), i, results[1])
    return b.build()


def sample(d: DType, count: int, rng: Any, name: str = "add") -> Array:
    if d is bool_:
        return rng.random(count) < (0.999 if name == "and" else 0.001)
    if d.kind == "f":
        x = rng.standard_normal(count)
        x = np.exp2(x / 64) if name == "mul" else x
        x[rng.integers(0, max(count, 1), count // 300)] = -0.0
        if name in ("max", "min", "argmax", "argmin"):
            x[rng.integers(0, max(count, 1), count // 2000)] = np.nan
        return x.astype(d.name)
    return rng.integers(d.min, d.max, count, dtype=d.name, endpoint=True)


@pytest.mark.parametrize("name", COMBINES)
def test_reductions_of_every_length_have_the_reference_bits(host: HostC, name: str) -> None:
    rng, dtypes = np.random.default_rng(3), COMBINES[name]
    for axis in (0, 1):  # along columns and along rows
        kernel = reduction(name, dtypes, axis)
        for m, n in ((1, 0), (5, 31), (3, 100), (1, CHUNK), (1, CHUNK + 33)):
            xs = [sample(d, max(m * n, 1), rng, name) for d in dtypes]
            outs = [
                np.zeros(m, t)
                for d in dtypes
                for t in ([d.name, "i8"] if name.startswith("arg") else [d.name])
            ]
            check(host, kernel, [*xs, *outs], [m, n])


def test_reduction_of_chunks_of_chunks_has_the_reference_bits(host: HostC) -> None:
    n = CHUNK * CHUNK + 3 * CHUNK + 5
    x = np.random.default_rng(5).standard_normal(n).astype("f4")
    check(host, reduction("add", [float32]), [x, np.zeros(1, "f4")], [1, n])


def test_nested_reductions_and_maps_have_the_reference_bits(host: HostC) -> None:
    b = KernelBuilder("nested")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    rows = b.buffer("rows", float32, "w")
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    i = b.axis(m)

    def inner(j: Value) -> Value:
        return reduce_loop("max", j, p, lambda k: load(x, i * n * p + j * p + k))[0]

    b.store(out, i, reduce_loop("add", 0, n, inner)[0])
    b.effect(map_loop(0, n, lambda j: [Store(rows, i * n + j, inner(j))]))
    x_ = np.random.default_rng(6).standard_normal(5 * 7 * 50).astype("f4")
    check(host, b.build(), [x_, np.zeros(5, "f4"), np.zeros(35, "f4")], [5, 7, 50])


def test_fold_steps_read_the_previous_carries(host: HostC) -> None:
    b = KernelBuilder("fibonacci")
    out, last = b.buffer("out", int64, "w"), b.buffer("last", int64, "w")
    i = b.axis(b.int("n"))

    def step(k: Value, one: Value, two: Value) -> Any:
        return [two, one + two], [Store(out, i * 10 + k, one, k < i)]

    loop = fold_loop(0, 10, [const(0, int64), const(1, int64)], step)
    b.effect(loop)
    b.store(last, i, loop.results[0])
    check(host, b.build(), [np.full(120, -1), np.zeros(12, "i8")], [12])


def test_fold_stops_once_its_carry_is_constant(host: HostC) -> None:
    """The bits decide, also for zeros of both signs and NaN."""
    for d in (float64, int64):
        b = KernelBuilder("settling")
        x, out = b.buffer("x", d, "r"), b.buffer("out", d, "w")
        i = b.axis(b.int("n"))

        def step(k: Value, a: Value, c: Value, d: DType = d) -> Any:
            if d is float64:  # 0 becomes -0, which becomes 1
                negative = where(eq(a, 0.0), 1.0 / a, a) < 0.0
                return [where(eq(a, 0.0), where(negative, 1.0, -a), a), c * 0.5]
            return [where(a < 4, a, a - 3), c >> 1]

        loop = fold_loop(0, 1100 if d is float64 else 64, [load(x, i), load(x, i)], step)
        b.store(out, i, loop.results[0] + loop.results[1])
        some = [0.0, -0.0, math.nan, math.inf, 1.0, 3e300, 5e-324, -7.0]
        values = np.array(some if d is float64 else [0, 1, 5, 170, 1 << 62, -9, -1, 77])
        kernel = b.build()
        assert any(isinstance(s, Loop) and settles(s) for s in kernel.body)
        check(host, kernel, [values, np.zeros_like(values)], [8])


@pytest.mark.parametrize("op", ["add", "min", "max", "and", "or"])
def test_atomics_have_the_reference_bits(host: HostC, op: str) -> None:
    for d in INTEGERS:
        b = KernelBuilder("histogram")
        at, out = b.buffer("at", int64, "r"), b.buffer("out", d, "rw")
        i = b.axis(b.int("n"))
        k = load(at, i)
        b.effect(Atomic(op, out, k, cast(i * 7 + 1, d), k < 8))
        places = np.random.default_rng(2).integers(0, 10, 50)
        check(host, b.build(), [places, np.arange(10, dtype=d.name)], [50])


@pytest.mark.parametrize("name", ["exp", "tanh", "sin"])
@pytest.mark.parametrize("d", (float32, float64), ids=lambda d: d.name)
def test_elementary_functions_have_the_reference_bits(host: HostC, name: str, d: DType) -> None:
    rng = np.random.default_rng(4)
    some = [specials(d), rng.standard_normal(300), rng.standard_normal(99) * 1e4]
    x = np.concatenate(some).astype(d.name)
    b = KernelBuilder(name)  # the name of a C function: the rendered text must avoid the conflict
    source, i = b.buffer("x", d, "r"), b.axis(b.int("n"))
    b.store(b.buffer("out", d, "w"), i, TABLE[name].expression(load(source, i)))
    check(host, b.build(), [x, np.zeros(x.size, d.name)], [x.size])


# --- random kernels ------------------------------------------------------------------------------


class RandomKernel:
    """A random tree of operations, loops and conditions over a grid, and its arguments."""

    SIZE = 200  # of every buffer; indices are below
    DTYPES = (dt.int8, dt.int32, int64, dt.uint16, dt.uint32, dt.uint64, float32, float64, bool_)

    def __init__(self, seed: int) -> None:
        self.random, self.rng = random.Random(seed), np.random.default_rng(seed)
        b = self.builder = KernelBuilder("random")
        self.buffers = {d: b.buffer(f"x_{d.code}", d, "r") for d in self.DTYPES}
        self.arrays = [sample(d, self.SIZE, self.rng) for d in self.DTYPES]
        self.extents = [self.random.randint(1, 4) for _ in range(self.random.randint(0, 4))]
        axes = [b.axis(b.int(f"n{k}")) for k in range(len(self.extents))]
        self.scalars = [b.scalar(f"c_{d.code}", d) for d in (float32, int64, bool_)]
        self.here: list[Value] = [*axes, const(5, int64)]  # int64 values in scope
        point = const(0, int64)
        for n, axis in zip(self.extents, axes, strict=True):
            point = point * n + axis
        for k in range(self.random.randint(1, 3)):
            d = self.random.choice(self.DTYPES)
            b.store(b.buffer(f"out{k}", d, "w"), point, self.value(d, 5))
            self.arrays.append(np.zeros(int(np.prod(self.extents)), d.name))
        self.kernel = b.build()

    def value(self, d: DType, depth: int) -> Value:
        kind = self.random.choice(["load", "const", *["op"] * 6, "where", "cast", "loop"])
        if depth == 0 or kind == "load":
            index = self.random.choice(self.here) * self.random.randint(1, 5)
            when = self.value(bool_, 0) if self.random.random() < 0.3 and depth else None
            return load(self.buffers[d], index, when)
        if kind == "const":
            return self.constant(d)
        if kind == "where":
            return where(self.value(bool_, depth - 1), self.value(d, depth - 1), self.value(d, 0))
        if kind == "cast":
            return self.cast(d, depth)
        return self.loop(d, depth) if kind == "loop" else self.operation(d, depth)

    def constant(self, d: DType) -> Value:
        matching = [c for c in self.scalars if c.dtype is d]
        if matching and self.random.random() < 0.5:
            return matching[0]
        return const(self.random.choice(specials(d).tolist()), d)

    def cast(self, d: DType, depth: int) -> Value:
        """Cast from any dtype with a defined result: not from floats to integers."""
        sources = [s for s in self.DTYPES if not (s.kind == "f" and d.kind in "iu")]
        return cast(self.value(self.random.choice(sources), depth - 1), d)

    def operation(self, d: DType, depth: int) -> Value:
        if d is bool_:
            of = self.random.choice(self.DTYPES)
            some = [op for op, (_, kinds, out) in OPS.items() if out == "b" and of.kind in kinds]
            op = self.random.choice(some)
            return guarded(op, self.value(of, depth - 1), self.value(of, depth - 1))
        some = [op for op, (n, kinds, out) in OPS.items() if out == "same" and d.kind in kinds]
        op = self.random.choice([op for op in some if op != "where"])
        if op == "fma":
            return fma(*(self.value(d, depth - 1) for _ in range(3)))
        return guarded(op, self.value(d, depth - 1), self.value(d, depth - 1))

    def loop(self, d: DType, depth: int) -> Value:
        stop = self.random.choice([1, 3, 40])
        if d is bool_ or self.random.random() < 0.5:
            name = self.random.choice(["and", "or", "xor"] if d is bool_ else ["add", "max", "min"])
            return reduce_loop(name, 0, stop, lambda k: self.inside(k, d, depth))[0]
        start = self.value(d, depth - 1)
        return fold_loop(
            0,
            stop,
            [start],
            lambda k, c: [where(self.inside(k, bool_, 1), self.inside(k, d, depth), c)],
        ).results[0]

    def inside(self, k: Value, d: DType, depth: int) -> Value:
        self.here.append(k)
        found = self.value(d, depth - 1)
        self.here.pop()
        return found


@pytest.mark.parametrize("seed", range(25))
def test_random_kernels_have_the_reference_bits(host: HostC, seed: int) -> None:
    made = RandomKernel(seed)
    check(host, made.kernel, made.arrays, made.extents, [0.1, -7, True], made.extents)


# --- rendered text -------------------------------------------------------------------------------


def test_parameter_names_may_be_c_keywords(host: HostC) -> None:
    b = KernelBuilder("while")
    x, out = b.buffer("double", float32, "r"), b.buffer("lanes", float32, "w")
    n, m = b.int("for"), b.int("chunk")
    i = b.axis(n)
    (total,) = reduce_loop("add", 0, m, lambda k: load(x, i * m + k) * b.scalar("row", float32))
    b.store(out, i, total + cast(m, float32))
    check(host, b.build(), [np.ones(12, "f4"), np.zeros(3, "f4")], [3, 4], [0.5])


def test_dtype_without_a_c_type_raises() -> None:
    b = KernelBuilder("half")
    x, i = b.buffer("x", dt.bfloat16, "r"), b.axis(b.int("n"))
    b.store(b.buffer("out", float32, "w"), i, cast(load(x, i), float32))
    with pytest.raises(CompileError, match="bfloat16"):
        CStyle().render(b.build())


def test_text_uses_the_names_of_the_kernel() -> None:
    kernel = parse_kernel((GOLDEN / "softmax_row.txt").read_text())
    text = CStyle().render(kernel)
    assert "const float v17 = v16 / r1;" in text and "out[v10] = v17;" in text


def test_shareable_golden_kernels() -> None:
    shared = {p.stem: shareable(parse_kernel(p.read_text())) for p in KERNELS}
    assert shared["softmax_row"] and shared["row_sum"] and shared["argmax"]
    assert not shared["cumulative_sum"] and not shared["broadcast_add"]
