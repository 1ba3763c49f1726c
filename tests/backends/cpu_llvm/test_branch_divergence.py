"""Divergent branches: values that only some lanes take have the bits of computing every lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dovetail as dt
import numpy as np
import pytest
from dovetail.backend.reference import interpret
from dovetail.engine.evaluate import plan_pending
from dovetail.extend import Kernel, KernelBuilder, Value, fma, fold_loop, load
from dovetail.ir.language import cast, const, eq, quo, reduce_loop, where
from dovetail_cpu_llvm.branch_divergence import BRANCH_OPS_MIN, divergent_branches
from dovetail_cpu_llvm.compile import Compiler
from machine_code import compiler_for, run

COUNT = 75  # several vectors, and some lanes of the last one


def heavy(x: Value, steps: int = BRANCH_OPS_MIN + 4) -> Value:
    """Return many operations, each of which needs the one before."""
    for k in range(steps):
        x = fma(x, 0.5, k + 1.0)
    return x


def two_results(x: Value, y: Value, c: Value, _: Value) -> Value:
    """Return two values; the second depends on the choice of the first."""
    h = heavy(x)
    first = where(c, h, x)
    return first + where(c, heavy(y, 5) * heavy(first, 4), y)


def zero_by(x: Value, y: Value, c: Value, d: Value) -> Value:
    n = cast(y, dt.int64)
    divided = quo(cast(x, dt.int64), where(eq(n, 0), const(1, dt.int64), n))
    return where(c, heavy(cast(divided, dt.float64)), x)


def of_fold(x: Value, y: Value, c: Value, _: Value) -> Value:
    def step(k: Value, total: Value) -> tuple[Value, ...]:
        return (fma(total, 0.25, y),)

    return where(c, heavy(fold_loop(0, 40, (x,), step).results[0], 3), x)


def in_fold(x: Value, y: Value, c: Value, _: Value) -> Value:
    def step(k: Value, total: Value) -> tuple[Value, ...]:
        return (where(total < y, heavy(total), total - 1.0),)

    return fold_loop(0, 5, (x,), step).results[0]


FORMS: dict[str, Callable[..., Value]] = {
    "one side": lambda x, y, c, d: where(c, heavy(x), y),
    "the other": lambda x, y, c, d: where(c, y, heavy(x)),
    "both": lambda x, y, c, d: where(c, heavy(x), heavy(y * 2.0)),
    "two results": two_results,
    "needed by others": lambda x, y, c, d: where(c, h := heavy(x), x) + h,
    "one of two needed": lambda x, y, c, d: (
        (g := heavy(y, 5)) + where(c, heavy(x), x) + where(c, g, x)
    ),
    "one in the other": lambda x, y, c, d: where(c, heavy(where(d, heavy(x), y)), x) * y,
    "its own condition": lambda x, y, c, d: where((h := heavy(x)) < 1.0, heavy(h), y),
    "divisions": zero_by,
    "of a fold": of_fold,
    "in a fold": in_fold,
}


def branch_kernel(form: str) -> Kernel:
    b = KernelBuilder("chosen")
    x, y = b.buffer("x", dt.float64, "r"), b.buffer("y", dt.float64, "r")
    out = b.buffer("out", dt.float64, "w")
    i = b.axis(b.int("n"))
    u, v = load(x, i), load(y, i)
    value = FORMS[form](u, v, const(2.0, dt.float64) < v, v < -2.0)
    # otherwise the chosen values would be most of the block
    b.store(out, i, value + heavy(v * 3.0, 90))
    return b.build()


def inputs() -> dict[str, np.ndarray]:
    """Return conditions that hold nowhere, in a lane or two, and everywhere."""
    rng = np.random.default_rng(1)
    found = {"nowhere": np.zeros(COUNT)}
    for place in (0, 31, COUNT - 1):
        found[f"at {place}"] = np.where(np.arange(COUNT) == place, 3.0, 0.0)
        found[f"below at {place}"] = np.where(np.arange(COUNT) == place, -3.0, 1.0)
    found |= {"everywhere": np.full(COUNT, 3.0), "some": rng.integers(-4, 5, COUNT).astype("f8")}
    return found


def run_all(compiler: Compiler, branch_kernel: Kernel, arrays: list[np.ndarray], grid: int) -> None:
    named = {b.name: a for b, a in zip(branch_kernel.buffers, arrays, strict=True)}
    run(compiler.compile(branch_kernel), named, dict.fromkeys(branch_kernel.ints, COUNT), (grid,))


@pytest.mark.parametrize("native", (16, 32, 64))
@pytest.mark.parametrize("form", FORMS)
def test_divergent_branches_have_the_bits_of_computing_both_sides(form: str, native: int) -> None:
    compiler = compiler_for(native)
    k = branch_kernel(form)
    x = np.random.default_rng(2).normal(size=COUNT) * 5
    for name, y in inputs().items():
        found, wanted = np.full(COUNT, 7.0), np.full(COUNT, 7.0)
        run_all(compiler, k, [x, y, found], COUNT)
        interpret(k, [x, y, wanted], [COUNT], [], [COUNT])
        assert found.tobytes() == wanted.tobytes(), name


@pytest.mark.parametrize("native", (16, 64))
def test_divergent_branches_in_reductions_have_the_bits_of_computing_both_sides(
    native: int,
) -> None:
    compiler = compiler_for(native)
    b = KernelBuilder("rows")
    x, out = b.buffer("x", dt.float64, "r"), b.buffer("out", dt.float64, "w")
    n = b.int("n")
    i = b.axis(n)

    def chosen(j: Value) -> Value:
        v = load(x, i * n + j)
        return where(const(2.0, dt.float64) < v, heavy(v), v)

    b.store(out, i, reduce_loop("add", 0, n, chosen)[0])
    k = b.build()
    for y in inputs().values():
        table = np.stack([np.roll(y, j) for j in range(COUNT)]).reshape(-1)
        found, wanted = np.zeros(COUNT), np.zeros(COUNT)
        run_all(compiler, k, [table, found], COUNT)
        interpret(k, [table, wanted], [COUNT], [], [COUNT])
        assert found.tobytes() == wanted.tobytes()


def count_branches(block: Any) -> int:
    return sum(map(len, divergent_branches(block).values()))


def test_number_of_divergent_branches_of_each_form() -> None:
    counts = {form: count_branches(branch_kernel(form).body) for form in FORMS}
    assert counts == {
        "one side": 1, "the other": 1, "both": 2, "two results": 1, "needed by others": 0,
        "one of two needed": 1, "one in the other": 1, "its own condition": 1, "divisions": 1,
        "of a fold": 1, "in a fold": 0,
    }  # fmt: skip
    groups = divergent_branches(branch_kernel("two results").body).values()
    (branch,) = (b for group in groups for b in group)
    assert branch.holds and len(branch.outs) == 1  # the second would have to wait for the first


def test_number_of_divergent_branches_of_functions() -> None:
    # of sine and logarithms those for rare operands; both sides of log1p are long
    for name, count in (("sin", 1), ("tan", 1), ("i0", 1), ("log1p", 2), ("exp", 0), ("log2", 1)):
        x = dt.ones(100, device="cpu")
        (text,) = kernels_of(getattr(dt, name)(x))
        assert count_branches(text.body) == count, name
    (text,) = kernels_of(dt.pow(x, x + 1))
    ((special,),) = divergent_branches(text.body).values()
    assert not special.holds and len(special.body) < len(text.body) / 2  # not the power itself


def kernels_of(y: dt.Tensor) -> list[Kernel]:
    ((_, plan),) = plan_pending([y._expr])
    return [step.kernel for step in plan.steps]


def test_constant_alternative_makes_a_branch_a_special_case() -> None:
    b = KernelBuilder("special")
    x, out = b.buffer("x", dt.float64, "r"), b.buffer("out", dt.float64, "w")
    i = b.axis(b.int("n"))
    v = load(x, i)
    b.store(out, i, where(v < 0.0, const(-1.0, dt.float64), heavy(v)))
    assert count_branches(b.build().body) == 0


def test_load_from_written_memory_is_not_moved_into_a_branch() -> None:
    for access, count in (("r", 1), ("rw", 0)):
        b = KernelBuilder("moving")
        x, y = b.buffer("x", dt.float64, access), b.buffer("y", dt.float64, "r")
        out, i = b.buffer("out", dt.float64, "w"), b.axis(b.int("n"))
        u, v = load(x, i), load(y, i)
        chosen = where(v < 0.0, fma(u, heavy(v, BRANCH_OPS_MIN - 2), u), v)
        b.store(out, i, chosen + heavy(v * 3.0, 90))
        assert count_branches(b.build().body) == count, access
