"""Building, printing, parsing and verifying kernels; the golden texts in `tests/ir/golden`.

`DOVETAIL_REGENERATE=1 pytest tests/ir/test_kernel.py` rewrites the golden texts: read the diff
before committing.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dovetail import dtypes as dt
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, bfloat16, bool_, float16, float32, float64, int32, int64, uint32
from dovetail.errors import ArgumentError, InternalError
from dovetail.ir.builder import COMBINE_NAMES, Kernel, KernelBuilder, combine
from dovetail.ir.language import (
    OPS,
    Atomic,
    Buffer,
    Effect,
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
    ne,
    quo,
    reduce_loop,
    rem,
    sqrt,
    walk,
    where,
)
from dovetail.ir.parser import parse_kernel
from dovetail.ir.verify import verify
from places import GOLDEN

# --- kernels as the fuser would build them --------------------------------------------------------


def elementwise_chain() -> Kernel:
    b = KernelBuilder("chain")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n0"))
    scale = b.scalar("s", float32)
    v = load(x, i) * scale + 1.0
    b.store(out, i, where(v < 0.0, 0.0, sqrt(v)) - v / 3.0)
    return b.build()


def broadcast_add() -> Kernel:
    b = KernelBuilder("broadcast_add")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float64, "r")
    out = b.buffer("out", float64, "w")
    n, m = b.int("n0"), b.int("n1")
    i, j = b.axis(n), b.axis(m)
    b.store(out, i * m + j, cast(load(x, i), float64) + load(y, j))
    return b.build()


def strided_copy() -> Kernel:
    b = KernelBuilder("strided_copy")
    x, out = b.buffer("x", dt.int16, "r"), b.buffer("out", dt.int16, "w")
    n = [b.int(f"n{a}") for a in range(3)]
    s = [b.int(f"s{a}") for a in range(3)]
    o = b.int("o")
    i = [b.axis(e) for e in n]
    b.store(
        out,
        (i[0] * n[1] + i[1]) * n[2] + i[2],
        load(x, o + i[0] * s[0] + i[1] * s[1] + i[2] * s[2]),
    )
    return b.build()


def row_sum() -> Kernel:
    b = KernelBuilder("row_sum")
    x, out = b.buffer("x", float16, "r"), b.buffer("out", float16, "w")
    n, m = b.int("n0"), b.int("n1")
    i = b.axis(n)
    (total,) = reduce_loop("add", 0, m, lambda k: cast(load(x, i * m + k), float32))
    b.store(out, i, cast(total, float16))
    return b.build()


def two_pass_sum() -> Kernel:
    """Build the first pass of a long sum: one result per chunk."""
    b = KernelBuilder("sum_chunks")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n, chunks = b.int("n"), b.int("chunks")
    c = b.axis(chunks)
    start = c * 4096
    stop = where(start + 4096 < n, start + 4096, n)
    (total,) = reduce_loop("add", start, stop, lambda k: load(x, k))
    b.store(out, c, total)
    return b.build()


def softmax_row() -> Kernel:
    b = KernelBuilder("softmax")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n, m = b.int("n0"), b.int("n1")
    i = b.axis(n)

    def centred(k: Value) -> Value:
        return load(x, i * m + k) - top

    def power(v: Value) -> Value:  # in place of exp
        return fma(v, fma(v, v * 0.25 + 1.0, 1.0), 1.0)

    (top,) = reduce_loop("max", 0, m, lambda k: load(x, i * m + k))
    (total,) = reduce_loop("add", 0, m, lambda k: power(centred(k)))
    b.effect(map_loop(0, m, lambda k: [Store(out, i * m + k, power(centred(k)) / total)]))
    return b.build()


def argmax() -> Kernel:
    b = KernelBuilder("argmax")
    x, out = b.buffer("x", int32, "r"), b.buffer("out", int64, "w")
    n, m = b.int("n0"), b.int("n1")
    i = b.axis(n)
    _, place = reduce_loop("argmax", 0, m, lambda k: (load(x, i * m + k), k))
    b.store(out, i, place)
    return b.build()


def cumulative_sum() -> Kernel:
    b = KernelBuilder("cumulative_sum")
    x, out = b.buffer("x", int64, "r"), b.buffer("out", int64, "w")
    n, m = b.int("n0"), b.int("n1")
    i = b.axis(n)

    def step(k: Value, total: Value) -> Any:
        new = total + load(x, i * m + k)
        return [new], [Store(out, i * m + k, new)]

    b.effect(fold_loop(0, m, [const(0, int64)], step))
    return b.build()


def gather() -> Kernel:
    """Build a gather: negative indices count from the end; one out of range sets a flag and
    gives zero.
    """
    b = KernelBuilder("gather")
    x, index = b.buffer("x", float32, "r"), b.buffer("index", int32, "r")
    out, flag = b.buffer("out", float32, "w"), b.buffer("flag", int32, "rw")
    n, size = b.int("n0"), b.int("size")
    i = b.axis(n)
    k = cast(load(index, i), int64)
    k = where(k < 0, k + size, k)
    inside = (k >= 0) & (k < size)
    b.store(out, i, load(x, k, inside))
    b.effect(Atomic("or", flag, const(0, int64), const(1, int32), ~inside))
    return b.build()


def matmul() -> Kernel:
    b = KernelBuilder("matmul")
    x, y, out = (
        b.buffer("x", float32, "r"),
        b.buffer("y", float32, "r"),
        b.buffer("out", float32, "w"),
    )
    m, n, p = b.int("m"), b.int("n"), b.int("p")
    i, j = b.axis(m), b.axis(p)
    loop = fold_loop(
        0, n, [const(0.0, float32)], lambda k, s: [fma(load(x, i * n + k), load(y, k * p + j), s)]
    )
    b.store(out, i * p + j, loop.results[0])
    return b.build()


def concat() -> Kernel:
    b = KernelBuilder("concat")
    x, y, out = (
        b.buffer("x", dt.uint8, "r"),
        b.buffer("y", dt.uint8, "r"),
        b.buffer("out", dt.uint8, "w"),
    )
    n, split = b.int("n0"), b.int("split")
    i = b.axis(n)
    first = i < split
    b.store(out, i, where(first, load(x, i, first), load(y, i - split, ~first)))
    return b.build()


def philox_round() -> Kernel:
    b = KernelBuilder("mix")
    out = b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    seed = b.scalar("seed", dt.uint64)
    low = cast(seed ^ cast(i, dt.uint64), uint32)
    high = cast(seed >> 32, uint32)
    for _ in range(2):
        product = cast(low, dt.uint64) * 0xD2511F53
        low, high = cast(product >> 32, uint32) ^ high, cast(product, uint32) + 0x9E3779B9
    unit = bitcast(((low ^ high) >> 9) | 0x3F800000, float32) - 1.0
    b.store(out, i, unit)
    return b.build()


def sparse_rows() -> Kernel:
    """Build a CSR-style product: a reduce between loaded bounds."""
    b = KernelBuilder("csr")
    rows, columns = b.buffer("rows", int64, "r"), b.buffer("columns", int64, "r")
    values, x = b.buffer("values", float64, "r"), b.buffer("x", float64, "r")
    out = b.buffer("out", float64, "w")
    i = b.axis(b.int("n"))
    (total,) = reduce_loop(
        "add",
        load(rows, i),
        load(rows, i + 1),
        lambda k: load(values, k) * load(x, load(columns, k)),
    )
    b.store(out, i, total)
    return b.build()


EXAMPLES: list[Callable[[], Kernel]] = [
    elementwise_chain,
    broadcast_add,
    strided_copy,
    row_sum,
    two_pass_sum,
    softmax_row,
    argmax,
    cumulative_sum,
    gather,
    matmul,
    concat,
    philox_round,
    sparse_rows,
]
every_example = pytest.mark.parametrize("make", EXAMPLES, ids=lambda f: f.__name__)


@every_example
def test_kernel_text_equals_its_golden_file(make: Callable[[], Kernel]) -> None:
    path = GOLDEN / f"{make.__name__}.txt"
    text = str(make()) + "\n"
    if os.environ.get("DOVETAIL_REGENERATE") == "1":
        path.write_text(text)
    assert text == path.read_text()


def test_every_golden_file_has_a_kernel() -> None:
    assert {p.stem for p in GOLDEN.glob("*.txt")} == {f.__name__ for f in EXAMPLES}


@every_example
def test_examples_pass_verification(make: Callable[[], Kernel]) -> None:
    kernel = make()
    verify(kernel)
    with pytest.raises(InternalError):
        verify(replace(kernel, buffers=kernel.buffers[1:]))


@every_example
def test_printed_kernel_parses_back(make: Callable[[], Kernel]) -> None:
    kernel = make()
    again = parse_kernel(str(kernel))
    verify(again)
    assert str(again) == str(kernel)
    assert [(b.name, b.dtype, b.access) for b in again.buffers] == [
        (b.name, b.dtype, b.access) for b in kernel.buffers
    ]
    assert (again.ints, again.scalars) == (kernel.ints, kernel.scalars)


@pytest.mark.parametrize(
    ("make", "buffers", "ints", "grid"),
    [
        (softmax_row, [np.arange(6, dtype=np.float32), np.zeros(6, np.float32)], [2, 3], [2]),
        (cumulative_sum, [np.arange(6), np.zeros(6, np.int64)], [2, 3], [2]),
        (
            matmul,
            [np.arange(6, dtype=np.float32)] * 2 + [np.zeros(4, np.float32)],
            [2, 3, 2],
            [2, 2],
        ),
    ],
)
def test_parsed_kernel_computes_the_same(make: Any, buffers: Any, ints: Any, grid: Any) -> None:
    got = []
    for kernel in (make(), parse_kernel(str(make()))):
        arrays = [b.copy() for b in buffers]
        interpret(kernel, arrays, ints, [], grid)
        got.append(arrays[-1].tolist())
    assert got[0] == got[1]
    assert any(got[0])


def test_examples_compute_correct_results() -> None:
    x, y = np.arange(6, dtype=np.float32), np.arange(6, 12, dtype=np.float32)
    out = np.zeros(4, np.float32)
    interpret(matmul(), [x, y, out], [2, 3, 2], [], [2, 2])
    assert out.tolist() == (x.reshape(2, 3) @ y.reshape(3, 2)).ravel().tolist()
    place = np.zeros(2, np.int64)
    interpret(argmax(), [np.array([1, 5, 5, 2, 0, 1], np.int32), place], [2, 3], [], [2])
    assert place.tolist() == [1, 0]
    joined = np.zeros(5, np.uint8)
    parts = [np.array([1, 2], np.uint8), np.array([3, 4, 5], np.uint8)]
    interpret(concat(), [*parts, joined], [5, 2], [], [5])
    assert joined.tolist() == [1, 2, 3, 4, 5]
    got, flag = np.zeros(4, np.float32), np.zeros(1, np.int32)
    interpret(gather(), [x, np.array([0, -1, 6, 2], np.int32), got, flag], [4, 6], [], [4])
    assert (got.tolist(), flag.tolist()) == ([0, 5, 0, 2], [1])


# --- building -------------------------------------------------------------------------------------


def lines(kernel: Kernel) -> list[str]:
    return [line.strip() for line in str(kernel).splitlines()[1:-1]]


def test_equal_values_are_computed_once() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n = b.int("n")
    i = b.axis(n)
    b.store(out, i * n, load(x, i * n) + load(x, i * n))
    assert lines(b.build()) == [
        "v0: i64 = mul i0, n",
        "v1: f32 = load x[v0]",
        "v2: f32 = add v1, v1",
        "store out[v0] = v2",
    ]


def test_hoisted_values_are_placed_first() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    early, late = load(x, i + 1) * 3.0, load(x, i) + 2.0
    b.first(early, early + 1.0)
    b.store(out, i, late)
    b.store(out, i + 1, early + 1.0)
    ops = [s.op for s in b.build().body if isinstance(s, Value) and s.dtype is float32]
    assert ops == ["load", "mul", "add", "load", "add"]


def test_zeros_of_both_signs_are_different_constants() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, (load(x, i) + 0.0) * (load(x, i) + -0.0))
    assert sum("add" in line for line in lines(b.build())) == 2


def test_invariant_work_leaves_the_loop() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n, m = b.int("n"), b.int("m")
    i = b.axis(n)
    (r,) = reduce_loop("add", 0, m, lambda k: load(x, i * m + k) * sqrt(load(x, i)))
    b.store(out, i, r)
    text = lines(b.build())
    start = next(j for j, line in enumerate(text) if line.startswith("reduce"))
    assert any("sqrt" in line for line in text[:start])
    assert any("mul i0, m" in line for line in text[:start])
    assert not any("sqrt" in line for line in text[start:])


def test_hoisted_values_in_a_map_are_placed_first() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n = b.int("n")

    def body(k: Value) -> list[Effect | Value]:
        early = load(x, k + 1)
        return [early, Store(out, k, load(x, k) * early)]

    b.effect(map_loop(0, n, body))
    kernel = b.build()
    verify(kernel)
    (loop,) = (s for s in kernel.body if isinstance(s, Loop))
    assert [s.index.op for s in loop.body if isinstance(s, Value) and s.op == "load"] == [
        "add",
        "loopvar",
    ]
    assert [type(s) for s in loop.effects] == [Store]


def test_invariant_reduce_leaves_the_outer_loop() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n, m = b.int("n"), b.int("m")
    i = b.axis(n)
    (total,) = reduce_loop("add", 0, m, lambda k: load(x, k))
    b.effect(map_loop(0, m, lambda k: [Store(out, i * m + k, load(x, k) / total)]))
    kernel = b.build()
    verify(kernel)
    assert [s.kind for s in kernel.body if isinstance(s, Loop)] == ["reduce", "map"]


def test_nested_reduce_stays_in_the_loop_of_its_variable() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    n = b.int("n")
    i = b.axis(n)

    def outer(j: Value) -> Value:
        (inner,) = reduce_loop("add", 0, n, lambda k: load(x, j * n + k))
        return inner + inner

    (r,) = reduce_loop("max", 0, n, outer)
    b.store(out, i, r)
    kernel = b.build()
    verify(kernel)
    loops = [s for s in walk(kernel.body) if isinstance(s, Loop)]
    assert [s.combine for s in loops] == ["max", "add"]
    assert loops[1] in loops[0].body


def test_loops_with_effects_nest() -> None:
    b = KernelBuilder("k")
    out, n = b.buffer("out", int64, "rw"), b.int("n")
    cell = const(0, int64)

    def inner(j: Value) -> list[Any]:
        count = fold_loop(0, n, [], lambda k: ((), [Atomic("add", out, cell, j + 1)]))
        return [map_loop(0, n, lambda k: [Store(out, j * n + k + 1, j - k)]), count]

    b.effect(map_loop(0, n, inner))
    kernel = b.build()
    verify(kernel)
    data = np.zeros(10, np.int64)
    interpret(kernel, [data], [3], [], [])
    assert data.tolist() == [3 * (1 + 2 + 3), 0, -1, -2, 1, 0, -1, 2, 1, 0]


def test_two_loops_may_contain_equal_work() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    first = reduce_loop("add", 0, i, lambda k: load(x, k))[0]
    second = reduce_loop("max", 0, i, lambda k: load(x, k))[0]
    b.store(out, i, first + second + first)
    kernel = b.build()
    verify(kernel)
    assert sum(line.startswith("reduce") for line in lines(kernel)) == 2


def test_one_expression_may_be_used_in_two_kernels() -> None:
    x = Buffer("x", float32, "r")
    kernels = []
    for name in ("a", "b"):
        b = KernelBuilder(name)
        b._buffers.append(x)
        out = b.buffer("out", float32, "w")
        i = b.axis(b.int("n"))
        b.store(out, i, load(x, i) + 1.0)
        kernels.append(b.build())
    for k in kernels:
        verify(k)
    assert str(kernels[0]).replace("kernel a", "kernel b") == str(kernels[1])


def test_deep_expressions_do_not_recurse() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    v = load(x, i)
    for _ in range(5000):
        v = v * 0.5 + 1.0
    b.store(out, i, v)
    kernel = b.build()
    verify(kernel)
    assert len(kernel.body) == 10002


def test_loop_variable_outside_of_its_loop_raises_internal_error() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    escaped: list[Value] = []

    def body(k: Value) -> Value:
        escaped.append(k)
        return load(x, k)

    reduce_loop("add", 0, i, body)
    b.store(out, escaped[0], load(x, i))
    with pytest.raises(InternalError, match="loopvar used outside of its loop"):
        b.build()


def test_integer_constants_are_folded() -> None:
    i = Value("index", int64, (), 0)
    assert i + 0 is i
    assert i * 1 is i
    assert quo(i, 1) is i
    assert (i * 0).number == 0
    assert (i & 0).op == "and"


def test_parameters_may_have_names_of_values() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("v0", float32, "r"), b.buffer("out", float32, "w")
    n = b.int("k0")
    i = b.axis(n)
    c = b.scalar("c0", float32)
    loop = fold_loop(0, n, [c], lambda k, s: [s + load(x, k + i) * c])
    b.store(out, i, loop.results[0])
    kernel = b.build()
    again = parse_kernel(str(kernel))
    verify(again)
    assert str(again) == str(kernel)
    got = []
    for k in (kernel, again):
        result = np.zeros(2, np.float32)
        interpret(k, [np.arange(4, dtype=np.float32), result], [2], [10.0], [2])
        got.append(result.tolist())
    assert got[0] == got[1] == [20.0, 40.0]


@pytest.mark.parametrize("name", COMBINE_NAMES)
def test_combines_have_an_identity(name: str) -> None:
    dtypes: tuple[DType, ...] = (int32, int64) if name.startswith("arg") else (int32,)
    rule = combine(name, dtypes)
    assert len(rule.identity) == len(rule.result) == len(dtypes)
    assert combine(name, dtypes) is rule


# --- parsing --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value", [0.0, -0.0, 1e-45, 3.4028234663852886e38, float("inf"), float("nan")]
)
def test_float_constants_are_printed_exactly(value: float) -> None:
    b = KernelBuilder("k")
    out = b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, const(value, float32))
    text = str(b.build())
    assert str(parse_kernel(text)) == text


GOOD = """kernel add(x: r f32, out: w f32; n0, s0; c: f32) grid(n0) {
  v0: i64 = mul i0, s0
  v1: f32 = load x[v0]
  v2: f32 = mul v1, c
  v3: f32 = add v2, f32(1.0)
  store out[i0] = v3
}"""


def test_text_of_the_manual_parses() -> None:
    kernel = parse_kernel(GOOD)
    verify(kernel)
    assert str(kernel) == GOOD
    out = np.zeros(2, np.float32)
    interpret(kernel, [np.arange(4, dtype=np.float32), out], [2, 2], [10.0], [2])
    assert out.tolist() == [1, 21]


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("kernel add", "kernal add", 1, "expected 'kernel"),
        ("x: r f32", "x: r f33", 1, "unknown dtype code 'f33'"),
        ("grid(n0)", "grid(n9)", 1, "'n9' is not defined"),
        ("mul i0", "mull i0", 2, "no operation 'mull'"),
        ("load x[", "load z[", 3, "buffer 'z' is not declared"),
        ("v1: f32 = load", "v1: f64 = load", 3, "v1 must be f32, got f64"),
        ("mul v1, c", "mul v1", 4, "no operation 'mul' of 1 arguments"),
        ("f32(1.0)", "f32(one)", 5, "expected a constant of float32, got 'one'"),
        ("= v3", "= v4", 6, "'v4' is not defined"),
        ("store out[i0]", "map k0 in i0..n0 {\n}\nstore out[k0]", 8, "'k0' is not defined"),
        ("store out[i0] = v3", "nonsense", 6, "expected a statement, got 'nonsense'"),
        ("\n}", "", 6, "must end with }"),
        ("\n}", "\n}\nmore", 8, "after the last }, got 'more'"),
    ],
)
def test_parse_error_names_the_line(old: str, new: str, line: int, what: str) -> None:
    with pytest.raises(ArgumentError, match=rf"line {line}: .*{re.escape(what)}"):
        parse_kernel(GOOD.replace(old, new, 1))


# --- the rules ------------------------------------------------------------------------------------


def broken(kernel: Kernel, rule: str) -> None:
    with pytest.raises(InternalError, match=rf"kernel {kernel.name}: .*{rule}"):
        verify(kernel)


def body_of(*statements: Any, grid: tuple[Value, ...] | None = None) -> Kernel:
    n = Value("param", int64, (), "n")
    extents = (n,) if grid is None else grid
    return Kernel("k", (X, OUT, WIDE, BOTH), ("n",), (("c", float32),), extents, statements)


X, OUT = Buffer("x", float32, "r"), Buffer("out", float32, "w")
WIDE, BOTH = Buffer("wide", float64, "rw"), Buffer("both", int32, "rw")
I0 = Value("index", int64, (), 0)
C = Value("param", float32, (), "c")
ONE, ZERO, TRUE = const(1.0, float32), const(0, int64), const(True, bool_)


def test_valid_body_passes() -> None:
    v = load(X, I0, TRUE)
    good = body_of(v, Store(OUT, I0, v, TRUE), Atomic("add", BOTH, I0, const(1, int32)))
    verify(good)
    assert len(good.body) == 3


def test_each_op_has_its_properties() -> None:
    loop = fold_loop(0, I0, [ONE, ZERO], lambda k, a, b: (a, b))
    assert (const(2, int32).number, TRUE.number, C.name, I0.axis) == (2, True, "c", 0)
    assert [v.place for v in (loop.var, loop.carry[1])] == [(loop, 0), (loop, 1)]
    v = load(X, I0, TRUE)
    assert (v.buffer, v.index, v.when, load(X, I0).when) == (X, I0, TRUE, None)


def test_property_of_another_op_raises() -> None:
    for v, name in ((C, "number"), (ONE, "name"), (C, "axis"), (C, "buffer"), (C, "place")):
        with pytest.raises(AssertionError, match="<"):
            getattr(v, name)


def test_values_are_defined_in_one_block_before_use() -> None:
    v = load(X, I0)
    broken(body_of(Store(OUT, I0, v), v), "must be used after its statement")
    broken(body_of(v, v), "exactly one block")
    loop = Loop("map", ZERO, I0)
    loop.body = (v,)
    broken(body_of(loop, Store(OUT, I0, v)), "within its scope")
    broken(body_of(v, loop), "exactly one block")
    broken(body_of(Store(OUT, loop.var, ONE)), "within its scope")


def test_wrong_arguments_of_operations_are_rejected() -> None:
    broken(body_of(Value("add", float32, (C,))), "add must have 2 arguments")
    broken(body_of(Value("add", float32, (C, I0))), "arguments of one dtype")
    broken(body_of(Value("add", bool_, (TRUE, TRUE))), "of kinds iuf")
    broken(body_of(Value("sqrt", int64, (I0,))), "of kinds f")
    broken(body_of(Value("shl", float32, (C, C))), "of kinds iu")
    broken(body_of(Value("lt", float32, (C, C))), "lt must return bool")
    broken(body_of(Value("mul", float64, (C, C))), "mul must return float32")
    broken(body_of(Value("where", float32, (C, C, C))), "the first argument of where must be bool")
    broken(body_of(Value("where", float32, (TRUE, C, I0))), "arguments of one dtype")
    broken(body_of(Value("bitcast", float64, (C,))), "must keep the size")
    broken(body_of(Value("bitcast", bool_, (const(1, dt.uint8),))), "must not return bool")
    broken(body_of(Value("exp", float32, (C,))), "one of the kernel IR")
    broken(body_of(const(1, int64)), "must not be a statement")


def test_unsupported_dtypes_are_rejected() -> None:
    broken(body_of(Value("cast", dt.complex64, (C,))), "from complex to complex")
    half = cast(C, float16)
    verify(body_of(half))
    broken(body_of(half, Value("add", float16, (half, half))), "float16")
    broken(body_of(cast(const(1.0, bfloat16), float32)), "bfloat16")
    k = body_of()
    broken(dataclasses.replace(k, scalars=(("c", float16),)), "float16")
    broken(
        dataclasses.replace(k, scalars=(("c", dt.complex64),)), "scalars and constants must be real"
    )


def test_constants_must_match_their_dtype() -> None:
    for bad in (
        Value("const", float32, (), 1),
        Value("const", float32, (), 0.1),
        Value("const", float32, (), 1e300),
        Value("const", int32, (), 2**31),
        Value("const", bool_, (), 1),
        Value("const", float64, (), np.float64(1)),
    ):
        broken(body_of(Value("cast", dt.uint8, (bad,))), "constant")


def test_access_must_match_its_declaration() -> None:
    broken(body_of(load(OUT, I0)), "access 'w' must not be accessed as 'r'")
    broken(body_of(Store(X, I0, C)), "access 'r' must not be accessed as 'w'")
    broken(body_of(load(Buffer("x", float32, "r"), I0)), "declared by the kernel")
    broken(body_of(load(X, const(0, int32))), "index into a buffer must be int64")
    broken(body_of(load(X, I0, I0)), "condition must be bool")
    broken(body_of(Value("load", float64, (I0,), X)), "its buffer's dtype")
    broken(body_of(Value("load", float32, (I0,))), "declared by the kernel")
    broken(body_of(Store(WIDE, I0, C)), "must have the buffer's dtype")
    broken(body_of(Store(OUT, I0, C, I0)), "condition must be bool")
    broken(body_of(Atomic("add", WIDE, I0, const(1.0, float64))), "on integers")
    broken(body_of(Atomic("mul", BOTH, I0, const(1, int32))), "atomic must be one of")


def test_wrong_headers_are_rejected() -> None:
    broken(body_of(grid=(C,)), "grid extent")
    broken(body_of(grid=(I0 + I0,)), "grid extent")
    broken(body_of(grid=(Value("param", int64, (), "q"),)), "declared")
    broken(body_of(grid=(Value("param", int64),)), "declared")
    broken(body_of(Store(OUT, Value("index", int64, (), 1), C)), "name a grid axis")
    k = body_of()
    for ints in (("n", "n"), ("i0",), ("a b",)):
        broken(dataclasses.replace(k, ints=ints, grid=()), "identifier")
    broken(dataclasses.replace(k, buffers=(Buffer("x", float32, "x"),)), "access r, w or rw")


def looped(kind: str, **fields: Any) -> Loop:
    loop = Loop(kind, ZERO, I0)
    for name, value in fields.items():
        setattr(loop, name, value)
    return loop


def results_of(loop: Loop, *dtypes: DType) -> Loop:
    loop.results = tuple(Value("result", d, (), (loop, i)) for i, d in enumerate(dtypes))
    return loop


def test_malformed_loops_are_rejected() -> None:
    broken(body_of(looped("while")), "a map, a reduce or a fold")
    broken(body_of(looped("map", update=(ONE,))), "a map must have effects only")
    bare = looped("reduce", combine="add", update=(ONE,))
    broken(body_of(bare), "as many updates and results")
    verify(body_of(results_of(bare, float32)))
    broken(body_of(results_of(looped("reduce", combine="add", update=(ONE,)), float64)), "dtypes")
    broken(
        body_of(results_of(looped("reduce", combine="no", update=(ONE,)), float32)), "known combine"
    )
    two = looped("reduce", combine="argmax", update=(ONE,))
    broken(body_of(results_of(two, float32)), "no combine argmax of dtypes")
    logical = looped("reduce", combine="add", update=(TRUE,))
    broken(
        body_of(results_of(logical, bool_)), "add must have arguments of one dtype, of kinds iuf"
    )
    bitwise = looped("reduce", combine="and", update=(ONE,))
    broken(
        body_of(results_of(bitwise, float32)), "and must have arguments of one dtype, of kinds biu"
    )
    fold = results_of(looped("fold", init=(ONE,), update=(ONE,)), float32)
    broken(body_of(fold), "agree in number and dtype")
    fold.carry = (Value("carry", float32, (), (fold, 0)),)
    verify(body_of(fold))
    fold.update = (ZERO,)
    broken(body_of(fold), "agree in number and dtype")
    store = Store(OUT, ZERO, ONE)
    broken(body_of(looped("map", body=(store,))), "effects must be the effects in its body")
    writes = looped("reduce", combine="add", update=(ONE,), body=(store,), effects=(store,))
    broken(body_of(results_of(writes, float32)), "a reduce must have no effects")
    floating = Loop("map", ZERO, ONE)
    broken(body_of(floating), "bounds and variable must be int64")


def test_verification_error_shows_the_kernel() -> None:
    with pytest.raises(
        InternalError, match=r"(?s)please report it.*kernel k\(x: r f32.*store x\[i0\] = c"
    ):
        verify(body_of(Store(X, I0, C)))


def test_every_operation_is_verified_parsed_and_interpreted() -> None:
    for name, (count, kinds, out) in OPS.items():
        d = {"f": float32, "i": int32, "b": int32}[kinds[0]]
        args = tuple(load({float32: X, int32: BOTH}[d], I0) for _ in range(count))
        if name == "where":
            args = (eq(args[0], args[1]), *args[1:])
        result = bool_ if out == "b" else float32 if name == "bitcast" else d
        b = KernelBuilder("one")
        b._buffers += [X, BOTH]
        target = b.buffer("target", result, "w")
        b.axis(b.int("n"))
        b.store(target, I0, Value(name, result, args))
        kernel = b.build()
        verify(kernel)
        assert str(parse_kernel(str(kernel))) == str(kernel)
        arrays = [np.ones(3, np.float32), np.ones(3, np.int32), np.zeros(3, result.__numpy_dtype__)]
        interpret(kernel, arrays, [3], [], [3])


def test_remainder_and_inequality_print_by_name() -> None:
    assert rem(I0, Value("param", int64, (), "n")).op == "rem"
    assert ne(I0, 0).dtype is bool_


def test_load_after_a_store_to_its_buffer_reads_the_new_value() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "rw"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(x, i, load(x, i) + 1.0)
    b.store(out, i, load(x, i) * 10.0)
    kernel = b.build()
    verify(kernel)
    data, got = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    interpret(kernel, [data, got], [3], [], [3])
    assert data.tolist() == [1, 2, 3]
    assert got.tolist() == [10, 20, 30]


def test_load_of_a_buffer_that_its_loop_writes_stays_inside() -> None:
    b = KernelBuilder("k")
    x, n = b.buffer("x", int64, "rw"), b.int("n")
    zero = const(0, int64)
    b.effect(fold_loop(0, n, [], lambda k: ((), [Store(x, zero, load(x, zero) * 2)])))
    kernel = b.build()
    verify(kernel)
    data = np.ones(1, np.int64)
    interpret(kernel, [data], [10], [], [])
    assert data.tolist() == [1024]


def test_loop_is_placed_again_if_its_first_block_is_closed() -> None:
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "rw"), b.buffer("out", float32, "w")
    n = b.int("n")
    first = load(x, const(0, int64))
    (total,) = reduce_loop("add", 0, n, lambda k: load(x, k) + first)
    b.effect(map_loop(0, n, lambda k: [Store(out, k, first + total)]))
    b.effect(map_loop(0, n, lambda k: [Store(x, k, first + total)]))
    kernel = b.build()
    verify(kernel)
    data, got = np.ones(4, np.float32), np.zeros(4, np.float32)
    interpret(kernel, [data, got], [4], [], [])
    assert got.tolist() == [9, 9, 9, 9]
