"""Kernels for devices that flush subnormals: exact soft floats, and guards around fast ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import float_devices as devices
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.dtypes import DType, bool_, float16, float32, float64, int32, int64, uint32
from dovetail.ir.analysis import is_branch, uses, values
from dovetail.ir.builder import Kernel, KernelBuilder
from dovetail.ir.guard_subnormals import REPAIRS_BUFFER, guard_subnormals
from dovetail.ir.language import (
    Atomic,
    Loop,
    Value,
    bitcast,
    cast,
    eq,
    floor,
    fma,
    fold_loop,
    load,
    map_loop,
    ne,
    reduce_loop,
    rint,
    sqrt,
    trunc,
    walk,
    where,
)
from dovetail.ir.language import Store as StoreTo
from dovetail.ir.legalize import legalize
from dovetail.ir.rewrite import rewrite_kernel
from dovetail.ir.soft_subnormals import exact_operation
from dovetail.ir.target import Capabilities
from dovetail.ir.verify import verify

FLUSHES = Capabilities(denormals=False, native_halves=frozenset((float16,)))
WORDS = Capabilities(denormals=False, float64=False, int64=False, index_bits=32)
N = 6000


def kernel(
    rule: Callable[..., Value], count: int, d: DType = float32, out: DType = float32
) -> Kernel:
    b = KernelBuilder("k")
    ins = [b.buffer(f"x{k}", d, "r") for k in range(count)]
    into = b.buffer("out", out, "w")
    i = b.axis(b.int("n"))
    b.store(into, i, rule(*[load(x, i) for x in ins]))
    return b.build()


def floats(seed: int, n: int = N) -> np.ndarray:
    """Return float32 of all sizes, many of them subnormal or with subnormal products."""
    rng = np.random.default_rng(seed)
    sign = rng.integers(0, 2, n, dtype=np.uint32) << 31
    any_ = rng.integers(0, 1 << 32, n, dtype=np.uint32)
    tiny = rng.integers(0, 1 << 25, n, dtype=np.uint32) | sign
    small = rng.integers(40 << 23, 90 << 23, n, dtype=np.uint32) | sign
    edges = np.array(
        [0.0, 1e-45, 1.1754944e-38, 1.1754942e-38, 0.5, 1.0, 3.4e38, np.inf, np.nan], np.float32
    )
    edges = np.concatenate([edges, -edges])[rng.integers(0, 18, n)].view(np.uint32)
    return np.choose(rng.integers(0, 4, n), [any_, tiny, small, edges]).astype("u4").view("f4")


def flushed(k: Kernel) -> Kernel:
    """Return a kernel whose float32 operations flush operands and results."""
    rule = partial(devices.Flushing.rule, object.__new__(devices.Flushing))
    return rewrite_kernel(k, lambda v, args: rule(v, args))


def check(k: Kernel, guarded: Kernel, *inputs: np.ndarray, zeros: tuple[int, ...] = ()) -> None:
    """Check that a kernel gives on a flushing device what it gives on others.

    zeros: the integers that hide floats.
    """
    verify(guarded)
    d = k.buffers[-1].dtype
    expected, found = (np.zeros(inputs[0].size, str(d.__numpy_dtype__)) for _ in range(2))
    n = inputs[0].size
    interpret(k, [*inputs, expected], [n], [], [n])
    interpret(flushed(guarded), [*inputs, found], [n, *zeros], [], [n])
    bits = f"u{found.itemsize}"
    both_nan = (found != found) & (expected != expected)
    wrong = np.flatnonzero((found.view(bits) != expected.view(bits)) & ~both_nan)[:3]
    assert not wrong.size, [x[wrong] for x in (*inputs, expected, found)]


OPERATIONS: dict[str, tuple[Callable[..., Value], int, DType]] = {
    "add": (lambda a, b: a + b, 2, float32), "sub": (lambda a, b: a - b, 2, float32),
    "mul": (lambda a, b: a * b, 2, float32), "div": (lambda a, b: a / b, 2, float32),
    "fma": (fma, 3, float32), "sqrt": (sqrt, 1, float32), "neg": (lambda a: -a, 1, float32),
    "floor": (floor, 1, float32), "trunc": (trunc, 1, float32), "rint": (rint, 1, float32),
    "lt": (lambda a, b: a < b, 2, bool_), "le": (lambda a, b: a <= b, 2, bool_),
    "eq": (eq, 2, bool_), "ne": (ne, 2, bool_), "to bool": (lambda a: cast(a, bool_), 1, bool_),
    "to float64": (lambda a: cast(a, float64), 1, float64),
}  # fmt: skip


def inputs_of(count: int) -> list[np.ndarray]:
    """Return operands, of which a sixth cancel."""
    arrays = [floats(k) for k in range(count)]
    if count > 1:
        arrays[-1][: N // 6] = -arrays[0][: N // 6]
    return arrays


@pytest.mark.parametrize("name", OPERATIONS)
def test_soft_operation_is_exact_where_all_floats_are_flushed(name: str) -> None:
    rule, count, out = OPERATIONS[name]
    k = kernel(rule, count, out=out)
    soft = rewrite_kernel(k, lambda v, args: exact_operation(v, args, FLUSHES))
    check(k, soft, *inputs_of(count))


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("can", [FLUSHES, WORDS], ids=("int64", "words"))
def test_guarded_operation_is_exact(name: str, can: Capabilities) -> None:
    rule, count, out = OPERATIONS[name]
    if out is float64 and not can.float64:
        return  # `legalize` refuses it
    k = kernel(rule, count, out=out)
    check(k, legalize(k, can), *inputs_of(count))


def test_narrowing_rounds_to_subnormals() -> None:
    k = kernel(lambda a: cast(a, float32), 1, float64)
    rng = np.random.default_rng(1)
    x = np.ldexp(rng.standard_normal(N), rng.integers(-160, -120, N))
    x[:1000] = np.ldexp(rng.integers(-9, 10, 1000) + 0.5, -149)
    check(k, legalize(k, FLUSHES), x)


STEPS: tuple[Callable[[Value, Value, Value, float], Value], ...] = (
    lambda x, y, z, n: x * y, lambda x, y, z, n: x + y, lambda x, y, z, n: x - y,
    lambda x, y, z, n: fma(x, y, z), lambda x, y, z, n: x * n, lambda x, y, z, n: x + n,
    lambda x, y, z, n: fma(x, y, x * 0.0 + n), lambda x, y, z, n: where(x < y, z, x),
    lambda x, y, z, n: -x, lambda x, y, z, n: where(x < n, n, x),
    lambda x, y, z, n: x * cast(cast(where(y < 9.0, y, 2.0), int32), float32),
    lambda x, y, z, n: where(x < n, (z * n) * y, where(y < z, x * z - y, y + n)),
)  # fmt: skip


def random_expression(seed: int) -> Callable[..., Value]:
    """Return a rule of three operands: a few operations in a row, with constants and choices."""

    def rule(*operands: Value) -> Value:
        rng, pool = np.random.default_rng(seed), [*operands]
        for _ in range(7):
            x, y, z = (pool[k] for k in rng.integers(0, len(pool), 3))
            n = float(np.float32(rng.choice([1.0, -0.5, 2.0**-100, 2.0**80, 3e-39, 0.1])))
            pool.append(STEPS[rng.integers(len(STEPS))](x, y, z, n))
        return pool[-1] + pool[-2]

    return rule


@pytest.mark.parametrize("seed", range(12))
def test_guarded_expression_is_exact(seed: int) -> None:
    k = kernel(random_expression(seed), 3)
    check(k, legalize(k, FLUSHES), *inputs_of(3))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("algebra", ["zeros", "free"])
def test_guarded_expression_with_hidden_floats_is_exact(algebra: Any, seed: int) -> None:
    k, can = kernel(random_expression(seed), 3), replace(FLUSHES, algebra=algebra)
    check(k, legalize(k, can), *inputs_of(3), zeros=can.hiding_zeros)


def test_factor_of_infinity_is_not_flushed() -> None:
    """The addend is large and hides a product that is flushed, but 0 * inf is NaN."""
    k = kernel(lambda a, b: fma(a * 2.0, where(b < 1e20, 1e20, b), where(b < 1e20, 1e20, b)), 2)
    a, b = floats(8), np.where(np.arange(N) % 2, np.float32(np.inf), floats(9))
    check(k, legalize(k, FLUSHES), a, b)


def test_bound_that_may_be_nan_limits_no_choice() -> None:
    def rule(a: Value, b: Value) -> Value:
        bound = where(a > 2.0, 2.0, a)  # at most 2, or NaN
        least = where(bound < b, bound, b)  # b if the bound is NaN
        return 2.0**-120 / where(least < -2.0, -2.0, least)

    k = kernel(rule, 2)
    check(k, legalize(k, FLUSHES), np.full(N, np.nan, "f4"), floats(3))


def test_sum_of_equal_small_numbers_is_flagged_where_later_sums_need_it() -> None:
    def signed(x: Value, sign: Value) -> Value:
        """Return a number from 2^-126 to 2^-125 with a sign, which no check covers."""
        least = bitcast((bitcast(x, uint32) & 0x7FFFFF) | 0x800000, float32)
        return where(sign < 0.0, -least, least)

    def rule(a: Value, b: Value, sign: Value) -> Value:
        x, y = signed(a, sign), signed(b, sign)
        return (x + x) - (y + y)

    k = kernel(rule, 3)
    a = np.arange(N, dtype="u4").view("f4")
    check(k, legalize(k, FLUSHES), a, a[::-1].copy(), np.ones(N, "f4"))


def branches(k: Kernel) -> list[Loop]:
    return [s for s in walk(k.body) if isinstance(s, Loop) and is_branch(s)]


@pytest.mark.parametrize(
    "rule, d",
    [
        (lambda a: a + 1.0, float32),
        (lambda a: a + 1.0 - 2.5, float32),
        (lambda a: cast(a, float32) * 0.25 + 3.0, int32),
        (lambda a: cast(a, float32) * cast(a, float32) + cast(a, float32), float16),
        (lambda a: bitcast(bitcast(a, uint32) + 1, float32), float32),
        (lambda a: where(cast(a, float32) < 2.0, 2.0, cast(a, float32)) * 2.0**-100, int32),
    ],
)
def test_nothing_is_guarded_where_no_subnormal_can_matter(
    rule: Callable[[Value], Value], d: DType
) -> None:
    assert not branches(legalize(kernel(rule, 1, d), FLUSHES))


@pytest.mark.parametrize(
    "rule",
    [
        lambda a: a * 0.5, lambda a: where(a < 2.0, a, 2.0), lambda a: a + 1e-37,
        lambda a: where(a < 2.0, 2.0, a) * 2.0**-127,
    ],
)  # fmt: skip
def test_what_a_subnormal_changes_is_guarded(rule: Callable[[Value], Value]) -> None:
    assert len(branches(legalize(kernel(rule, 1), FLUSHES))) == 1


def test_flag_of_a_side_counts_where_a_choice_takes_it() -> None:
    """The branch computes the side again, so that a backend may skip it where none takes it."""
    k = kernel(lambda a, b: where(b < 2.0, a * a, b), 2)
    guarded = legalize(k, FLUSHES)
    (branch,) = branches(guarded)
    square = next(v for v in guarded.body if isinstance(v, Value) and v.op == "mul")
    flags = [v for v in guarded.body if isinstance(v, Value) and v.dtype is int32]
    assert [v.args[0].op for v in flags if v.op == "where"] == ["lt"]
    assert square not in set(uses(branch)) - {*branch.init}
    check(k, guarded, *inputs_of(2))


def test_check_counts_where_floats_are_used_if_bits_are_used_elsewhere() -> None:
    """An algorithm on the bits of ordinary numbers needs no check of the argument."""
    k = kernel(lambda a, b: where(bitcast(a, uint32) < 1 << 30, b + 1.0, a * 0.5), 2)
    guarded = legalize(k, FLUSHES)
    flag = branches(guarded)[0].stop.args[0].args[0]
    assert flag.op == "where" and flag.args[1].op == "const"
    check(k, guarded, *inputs_of(2))


def test_other_devices_get_the_kernel_itself() -> None:
    k = kernel(lambda a, b: a * b, 2)
    assert legalize(k, Capabilities()) is k


# --- loops


def reduction(combine: str, rule: Callable[[Value], Value], d: DType = float32) -> Kernel:
    """Return a kernel that reduces rows of 100 elements."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", d, "w")
    i = b.axis(b.int("n"))
    at = i * 100
    if combine.startswith("arg"):
        result = reduce_loop(combine, 0, 100, lambda k: (rule(load(x, at + k)), k))[1]
    else:
        result = reduce_loop(combine, 0, 100, lambda k: rule(load(x, at + k)))[0]
    b.store(out, i, result)
    return b.build()


@pytest.mark.parametrize("combine", ["add", "mul", "max", "min", "argmax", "argmin"])
@pytest.mark.parametrize("factor", [1.0, 1e-3])
def test_reduction_of_subnormals_is_exact(combine: str, factor: float) -> None:
    d = int64 if combine.startswith("arg") else float32
    k = reduction(combine, lambda x: x * factor, d)
    guarded = legalize(k, FLUSHES)
    verify(guarded)
    rng = np.random.default_rng(2)
    x = rng.integers(0, 1 << 24, (90, 100), dtype=np.uint32).view(np.float32)
    x *= rng.choice([-1, 1], x.shape).astype("f4")
    x[::3] = rng.standard_normal(x[::3].shape)  # rows without subnormals
    x[1::3, 5] = 1e-30
    expected, found = np.zeros((2, 90), str(d.__numpy_dtype__))
    interpret(k, [x.ravel(), expected], [90], [], [90])
    interpret(flushed(guarded), [x.ravel(), found], [90], [], [90])
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("combine", ["add", "mul", "max"])
@pytest.mark.parametrize("algebra", ["zeros", "free"])
def test_reduction_with_hidden_floats_is_exact(algebra: Any, combine: str) -> None:
    k, can = reduction(combine, lambda x: x * 0.5), replace(FLUSHES, algebra=algebra)
    guarded, zeros = legalize(k, can), can.hiding_zeros
    verify(guarded)
    x = np.resize(floats(4), 9000)
    x[x != x] = 1.0
    expected, found = np.zeros((2, 90), "f4")
    interpret(k, [x, expected], [90], [], [90])
    interpret(flushed(guarded), [x, found], [90, *zeros], [], [90])
    both_nan = (expected != expected) & (found != found)
    assert ((expected.view("u4") == found.view("u4")) | both_nan).all()


def test_sum_checks_its_elements_alone() -> None:
    """Numbers from 2^-103 on are multiples of 2^-126, and so are their sums."""
    body = legalize(reduction("add", lambda x: x), FLUSHES).body
    fast = next(s for s in body if isinstance(s, Loop))
    assert fast.combine == "add_flagged"
    assert [v.op for v in values(fast.body) if v.dtype.kind == "f"] == ["load"]


def test_product_checks_the_loads_and_no_result() -> None:
    """Products of two numbers from 2^-40 on are multiples of 2^-126."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i, zero = b.axis(b.int("n")), cast(b.int("z") * 0, float32)
    loop = fold_loop(0, 64, [zero], lambda k, s: [fma(load(x, k), load(x, i + k), s)])
    b.store(out, i, loop.results[0])
    guarded = legalize(b.build(), FLUSHES)
    verify(guarded)
    fast = next(s for s in guarded.body if isinstance(s, Loop))
    flags = [v for v in values(fast.body) if v.op == "and" and v.dtype is int32]
    assert len(flags) == 2
    rng = np.random.default_rng(3)
    for scale in (1.0, 1e-18, 1e-22, 1e-40):
        data = (rng.standard_normal(200) * scale).astype("f4")
        expected, found = np.zeros((2, 90), "f4")
        interpret(b.build(), [data, expected], [90, 0], [], [90])
        interpret(flushed(guarded), [data, found], [90, 0], [], [90])
        assert found.tobytes() == expected.tobytes()


def test_effects_are_neither_repeated_nor_lost() -> None:
    """A store reads what an earlier iteration wrote; an atomic counts each point once."""
    b = KernelBuilder("k")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "rw")
    count = b.buffer("count", int32, "rw")
    i, zero = b.axis(b.int("n")), b.int("zero")
    tiny = load(x, i) * 0.5
    b.effect(Atomic("add", count, zero, where(tiny < 1e-39, cast(i * 0 + 1, int32), 0)))
    first = load(y, i) * 0.5
    b.effect(StoreTo(y, i, first + tiny))
    b.effect(map_loop(0, 3, lambda k: [StoreTo(y, i, load(y, i) * 0.75)]))
    step = fold_loop(0, 3, [tiny], lambda k, s: ([s * 0.5], [StoreTo(y, i, load(y, i) + s)]))
    b.effect(step)
    k = b.build()
    guarded = legalize(k, FLUSHES)
    verify(guarded)
    results = []
    for each in (k, flushed(guarded)):
        data = floats(5, 500)
        y_data, counted = floats(6, 500), np.zeros(1, "i4")
        interpret(each, [data, y_data, counted], [500, 0], [], [500])
        y_data[y_data != y_data] = 0
        results.append((y_data.tobytes(), counted.tolist()))
    assert results[0] == results[1]


def running_sums(place: Callable[[Value, Value], Value], access: Any = "w") -> Kernel:
    """Return a kernel that stores the running sums of rows of 20 elements at `place(k, sum)`."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, access)
    i = b.axis(b.int("n"))
    at, zero = i * 20, cast(b.int("zero"), float32)

    def step(k: Value, s: Value) -> Any:
        new = s + load(x, at + k)
        return [new], [StoreTo(out, at + place(k, new), new)]

    b.effect(fold_loop(0, 20, [zero], step))
    return b.build()


@pytest.mark.parametrize(
    ("place", "access", "repeats"),
    [
        (lambda k, s: k, "w", True), (lambda k, s: k, "rw", False),
        (lambda k, s: where(s < 0.0, k, 19 - k), "w", False),
    ],
    ids=("written only", "read, too", "place by a float"),
)  # fmt: skip
def test_fold_that_stores_is_repeated_as_a_whole_if_it_can_be(
    place: Callable[[Value, Value], Value], access: str, repeats: bool
) -> None:
    k = running_sums(place, access)
    guarded = legalize(k, FLUSHES)
    verify(guarded)
    assert [s for s in guarded.body if isinstance(s, Loop) and is_branch(s)] == (
        [guarded.body[-1]] if repeats else []
    )
    x = np.resize(floats(11), 20 * 200)
    x[x != x] = 1.0
    expected, found = np.zeros((2, x.size), "f4")
    interpret(k, [x, expected], [200, 0], [], [200])
    interpret(flushed(guarded), [x, found], [200, 0], [], [200])
    both_nan = (expected != expected) & (found != found)
    assert ((expected.view("u4") == found.view("u4")) | both_nan).all()


def row_kernel(rule: Callable[..., Value], combine: str = "max") -> Kernel:
    """Return a kernel that reduces rows of 20 values of a rule, and stores what it makes of them.

    The loop that stores computes the values again, as a softmax does.
    """
    b = KernelBuilder("k")
    ins = [b.buffer(f"x{j}", float32, "r") for j in range(3)]
    out = b.buffer("out", float32, "w")
    at = b.axis(b.int("n")) * 20
    operands = lambda k: [load(x, at + k) for x in ins]  # noqa: E731
    (whole,) = reduce_loop(combine, 0, 20, lambda k: rule(*operands(k)))
    b.effect(map_loop(0, 20, lambda k: [StoreTo(out, at + k, rule(*operands(k)) * whole)]))
    return b.build()


def check_rows(k: Kernel, guarded: Kernel) -> None:
    """Check a kernel of rows on operands with and without subnormals."""
    verify(guarded)
    rows = 150
    inputs = [np.resize(x, rows * 20) for x in inputs_of(3)]
    for x in inputs:
        x.reshape(rows, 20)[::3] = np.random.default_rng(0).standard_normal((50, 20))
    expected, found = np.zeros((2, rows * 20), "f4")
    interpret(k, [*inputs, expected], [rows], [], [rows])
    interpret(flushed(guarded), [*inputs, found], [rows], [], [rows])
    both_nan = (expected != expected) & (found != found)
    assert ((expected.view("u4") == found.view("u4")) | both_nan).all()


@pytest.mark.parametrize("combine", ["max", "add"])
@pytest.mark.parametrize("seed", range(12))
def test_rows_that_are_reduced_and_stored_are_exact(seed: int, combine: str) -> None:
    k = row_kernel(random_expression(seed), combine)
    check_rows(k, legalize(k, FLUSHES))


def test_values_that_a_reduction_flags_need_no_flag_in_a_map() -> None:
    k = row_kernel(lambda x, y, z: x * y + z * x)
    guarded = legalize(k, FLUSHES)
    _, fast, branch = (s for s in guarded.body if isinstance(s, Loop))
    assert (fast.kind, is_branch(branch)) == ("map", True)
    assert fast.stop.op == "where" and fast.stop.args[0] is branch.stop.args[0]
    (repair,) = (s for s in fast.body if isinstance(s, Loop))
    repaired = [v.op for v in values((repair,)) if v.dtype is float32]
    assert "mul" in repaired and "add" not in repaired  # the last product alone
    check_rows(k, guarded)


def test_values_that_a_reduction_flags_in_part_are_flagged_in_a_map() -> None:
    """The reduction hides a flushed square, which the map stores."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    at = b.axis(b.int("n")) * 20
    square = lambda k: load(x, at + k) * load(x, at + k)  # noqa: E731
    (whole,) = reduce_loop("max", 0, 20, lambda k: square(k) + 1.0)
    b.effect(
        map_loop(0, 20, lambda k: [StoreTo(out, at + k, (square(k) + 1.0) * square(k) * whole)])
    )
    k = b.build()
    guarded = legalize(k, FLUSHES)
    verify(guarded)
    data = (np.random.default_rng(1).standard_normal(2000) * 1e-20).astype("f4")
    expected, found = np.zeros((2, 2000), "f4")
    interpret(k, [data, expected], [100], [], [100])
    interpret(flushed(guarded), [data, found], [100], [], [100])
    assert expected.tobytes() == found.tobytes() and expected.any()


def test_long_kernel_is_guarded_without_recursion() -> None:
    """More than 1000 flags, and a chain of integers that is as long."""
    b = KernelBuilder("k")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    bits = bitcast(load(x, i), uint32)
    for k in range(1100):
        bits = bits ^ bitcast(trunc(load(x, i + k)), uint32)
    b.store(out, i, bitcast(bits, float32) * 0.5)
    assert len(branches(legalize(b.build(), FLUSHES))) == 1


def test_branch_counts_the_points_that_it_repairs() -> None:
    b = KernelBuilder("counted")
    x, y = b.buffer("x", float32, "r"), b.buffer("y", float32, "r")
    out = b.buffer("out", float32, "w")
    b.buffer(REPAIRS_BUFFER, int32, "rw")
    i = b.axis(b.int("n"))
    b.store(out, i, load(x, i) * load(y, i))
    guarded = guard_subnormals(b.build(), FLUSHES)
    columns = [np.array(v, "f4") for v in ([1, 1e-20, 1e-40, 0, 3], [2, 1e-20, 1, 5, np.inf])]
    arrays = [*columns, np.zeros(5, "f4"), np.zeros(1, "i4")]
    interpret(flushed(guarded), arrays, [5], [], [5])
    assert arrays[-1].tolist() == [2]


@pytest.mark.parametrize(
    "rule",
    [
        lambda a, b: a * b * a * (b * a), lambda a, b: a * (a * b) + b * (a * b),
        lambda a, b: where(a < 1.0, a * a * b, a * b * b), lambda a, b: (a + b) * (a * b) * b,
        lambda a, b: fold_loop(0, 3, [a * b], lambda k, y: ([y * a * (a * b)], [])).results[0],
    ],
)  # fmt: skip
def test_product_of_products_is_exact(rule: Callable[..., Value]) -> None:
    k = kernel(rule, 2)
    check(k, legalize(k, FLUSHES), *inputs_of(2))


def test_power_has_one_test_for_zero() -> None:
    def power(a: Value) -> Value:
        y = a
        for _ in range(16):
            y = y * a
        return y

    k = kernel(power, 1)
    guarded = legalize(k, FLUSHES)
    integers = [v for v in guarded.body if isinstance(v, Value) and v.dtype in (int32, uint32)]
    assert len(integers) < 16 * 5 + 10  # of each product: two casts of bits, and three operations
    check(k, guarded, floats(3))


SCALARS = (0.0, -0.0, 1e-45, -1e-39, 1.1754944e-38, 1e-30, -0.75, 2.0, 1e30, 3.4e38, np.inf, np.nan)


def scaled(rule: Callable[..., Value]) -> Kernel:
    """Build out[i] = rule(x[i], c0, c1) of two scalars."""
    b = KernelBuilder("scaled")
    x, out = b.buffer("x", float32, "r"), b.buffer("out", float32, "w")
    i = b.axis(b.int("n"))
    b.store(out, i, rule(load(x, i), b.scalar("c0", float32), b.scalar("c1", float32)))
    return b.build()


@pytest.mark.parametrize(
    "rule",
    [
        lambda x, a, b: x * a, lambda x, a, b: a * x + b, lambda x, a, b: (x * a) * (x * b) - x,
        lambda x, a, b: x * a * b * x, lambda x, a, b: where(x < b, x * a, x),
        lambda x, a, b: where(ne(b, b), x, x * a), lambda x, a, b: where(b < 1.0, x * x * a, x * b),
        lambda x, a, b: fold_loop(0, 2, [x], lambda k, y: ([y * a + x * b], [])).results[0],
        lambda x, a, b: reduce_loop("add", 0, 3, lambda k: x * a)[0],
    ],
)  # fmt: skip
def test_product_with_a_scalar_is_exact(rule: Callable[..., Value]) -> None:
    k = scaled(rule)
    guarded, x = legalize(k, FLUSHES), floats(5, 700)
    for a in SCALARS:
        for b in (1.5, 0.0, 1e-38, np.nan):
            expected, found = (np.zeros(x.size, "f4") for _ in range(2))
            numbers = [np.float32(a), np.float32(b)]
            interpret(k, [x, expected], [x.size], numbers, [x.size])
            interpret(flushed(guarded), [x, found], [x.size], numbers, [x.size])
            same = (expected.view("u4") == found.view("u4")) | (
                (expected != expected) & (found != found)
            )
            assert same.all(), (a, b, x[~same][:3], expected[~same][:3], found[~same][:3])


def test_check_of_an_element_covers_its_product_with_a_scalar() -> None:
    """Scalars cost a launch nothing, so only what depends on the element counts."""
    guarded = legalize(scaled(lambda x, a, b: x * a + b), FLUSHES)
    of_elements = {v for v in guarded.body if isinstance(v, Value) and v.op == "load"}
    for v in guarded.body:
        if isinstance(v, Value) and not of_elements.isdisjoint(v.args):
            of_elements.add(v)
    assert len([v for v in of_elements if v.dtype is int32]) <= 6


def test_choice_by_scalars_is_no_side() -> None:
    """Lanes do not differ in it, so a test of the condition for each flag would save nothing."""
    k = scaled(lambda x, a, b: where(ne(b, b), x, x * a * x))
    guarded = legalize(k, FLUSHES)
    flags = [v for v in guarded.body if isinstance(v, Value) and v.dtype is int32]
    assert not any(v.op == "where" and v.args[0].op == "ne" for v in flags)
