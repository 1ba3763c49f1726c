"""`dt.kernel`: a kernel computes what plain Python does with the same text."""

from __future__ import annotations

import math
from typing import Any

import dovetail as dt
import numpy as np
import pytest

HALF = 0.5  # outer variables that kernels read
COUNT = 3
OFFSETS = (-1, 0, 1)


def tensor(x: np.ndarray) -> dt.Tensor:
    return dt.asarray(x.copy())


def as_python(k: Any, *args: Any) -> list[np.ndarray]:
    """Return the array arguments after running the text as plain Python."""
    given = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    k.__wrapped__(*given)
    return [a for a in given if isinstance(a, np.ndarray)]


def run(k: Any, *args: Any) -> list[np.ndarray]:
    """Return the array arguments after running the kernel on the default device."""
    given = [tensor(a) if isinstance(a, np.ndarray) else a for a in args]
    k(*given)
    return [a.numpy() for a in given if isinstance(a, dt.Tensor)]


def check(k: Any, *args: Any) -> None:
    """Assert equal bits: every operation of float64 is rounded once, as in Python."""
    for ours, theirs in zip(run(k, *args), as_python(k, *args), strict=True):
        np.testing.assert_array_equal(ours, theirs)


RNG = np.random.default_rng(7)
A = RNG.normal(size=(6, 5))
B = RNG.normal(size=(5, 4))
V = RNG.normal(size=(7,))
N = RNG.integers(-20, 20, size=(9,))


@dt.kernel
def five_point(out: dt.Out, u: dt.In, c: float):
    n, m = u.shape
    for i, j in dt.grid((1, n - 1), (1, m - 1)):
        around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
        out[i, j] = u[i, j] + c * (around - 4 * u[i, j])


def test_stencil_writes_the_points_of_its_grid(device: dt.Device) -> None:
    check(five_point, np.full(A.shape, 7.0), A, 0.1)


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.float16, dt.bfloat16, dt.int32])
def test_elements_keep_their_dtype_and_promote_like_tensors(
    device: dt.Device, dtype: dt.DType
) -> None:
    u = dt.asarray((A * 8).round(), dtype=dtype)
    out = dt.zeros(A.shape, dtype=dtype)
    if dtype is dt.int32:
        with pytest.raises(dt.DTypeError, match="float32 does not fit into int32"):
            five_point(out, u, 0.1)
        return
    five_point(out, u, 0.125)
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    mid = u[1:-1, 1:-1]
    want = mid + 0.125 * (around - 4 * mid)
    assert dt.array_equal(out[1:-1, 1:-1], want)


def test_strides_are_arguments_of_the_launch(device: dt.Device) -> None:
    whole = tensor(A)
    for view in (whole.T, whole[::-1, ::2], whole[1:, 1:], dt.broadcast_to(whole[0], (4, 5))):
        out = dt.zeros(view.shape, dtype=dt.float64)
        five_point(out.T.T, view, 0.25)
        want = np.zeros(view.shape)
        five_point.__wrapped__(want, view.numpy(), 0.25)
        np.testing.assert_array_equal(out.numpy(), want)
    before = five_point._specialisations_by_specs.entries().__len__()
    five_point(dt.zeros((9, 9), dtype=dt.float64), dt.ones((9, 9), dtype=dt.float64), 0.25)
    assert before >= 4


@dt.kernel
def products(c: dt.Out, a: dt.In, b: dt.In):
    for i, j in dt.grid(*c.shape):
        total = 0.0
        for k in range(a.shape[1]):
            total += a[i, k] * b[k, j]
        c[i, j] = total


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64, dt.int32, dt.float16])
def test_variable_that_starts_as_an_int_becomes_an_element(dtype: Any, device: dt.Device) -> None:
    @dt.kernel
    def sums(out: dt.Out, x: dt.In) -> None:
        for i in dt.grid(x.shape[0]):
            a = 0
            b = 0
            for k in range(x.shape[0]):
                a = a + x[k]
                b = b + 2
            out[i] = a + b

    x = dt.asarray([1, 2, 3], dtype=dtype, device=device)
    out = dt.zeros(3, dtype=dtype, device=device)
    sums(out, x)
    assert out.tolist() == [12, 12, 12]


@pytest.mark.parametrize("dtype", [dt.float32, dt.float64])
def test_variable_that_starts_as_a_float_becomes_an_element(dtype: Any, device: dt.Device) -> None:
    """A dtype equals its NumPy code: float32 equals "f", which stands for Python's floats here."""

    @dt.kernel
    def sums(out: dt.Out, x: dt.In) -> None:
        for i in dt.grid(x.shape[0]):
            a = 0.0
            b = 1.0
            for k in range(x.shape[0]):
                a = a + x[k]
                b = b * 2.0
            out[i] = a + b

    out = dt.zeros(3, dtype=dtype, device=device)
    sums(out, dt.asarray([1, 2, 3], dtype=dtype, device=device))
    assert out.tolist() == [14, 14, 14]


def test_loop_carries_assigned_variables(device: dt.Device) -> None:
    check(products, np.zeros((6, 4)), A, B)
    check(products, np.ones((6, 4)), A[:, :0], B[:0])  # empty loop


@dt.kernel
def reduced(out: dt.Out, a: dt.In):
    for i in dt.grid(a.shape[0]):
        out[i, 0] = sum(a[i, k] for k in range(a.shape[1]))
        out[i, 1] = max(a[i, k] for k in range(1, len(a)) if k < a.shape[1])
        out[i, 2] = min(a[i, k] * a[j, k] for k in range(a.shape[1]) for j in range(2))
        out[i, 3] = float(any(a[i, k] > 1 for k in range(a.shape[1])))
        out[i, 4] = float(all(a[i, k] > -1 for k in range(a.shape[1])))
        out[i, 5] = math.prod(a[i, k] for k in range(2))


def test_generator_expressions_are_reductions_in_canonical_order(device: dt.Device) -> None:
    out = np.zeros((6, 6))
    (ours, _), (theirs, _) = run(reduced, out, A), as_python(reduced, out, A)
    np.testing.assert_allclose(ours[:, 0], theirs[:, 0], rtol=1e-14)
    np.testing.assert_array_equal(ours[:, 1:], theirs[:, 1:])
    assert ours[:, 0].tolist() == tensor(A).sum(axis=1).tolist()


@dt.kernel
def branches(out: dt.Out, v: dt.In, n: int, flag: bool):
    for i in dt.grid(len(v)):
        x = v[i]
        if x > 0 and (i == 0 or v[i - 1] < 1):
            y = x * HALF
        elif not flag or i % 2 == 0:
            y = -x if x > -1 else 1.0
        else:
            y = v[i + 1] if i + 1 < len(v) else v[-1]
        if i == n:
            continue
        out[i] = y + (x**2 if 0 <= i < n else i // 2 + i % 3 - (i - 3) // 2)


def test_branches_run_if_their_conditions_hold(device: dt.Device) -> None:
    for flag in (True, False):
        for n in (0, 3, 9):
            check(branches, np.zeros(7), V, n, flag)


@dt.kernel
def steps(out: dt.Out, v: dt.In):
    for i in dt.grid(len(v)):
        total, last = 0.0, 0
        for k in range(len(v) - 1, -1, -2):
            if v[k] > 1.5:
                break
            if v[k] < -1:
                continue
            for d in OFFSETS:
                if k + d < 0 or k + d >= len(v):
                    continue
                total += v[k + d] * (d + 2)
            last = k
        out[i] = total + last
        if i > 4:
            continue
        for k in range(i, len(v)):
            if v[k] > 0:
                out[i] = k
                break


def test_break_continue_and_unrolled_loops(device: dt.Device) -> None:
    @dt.kernel
    def here(out: dt.InOut, v: dt.In):
        for i in dt.grid(len(v)):
            for k in range(i, len(v)):
                if v[k] > 0:
                    out[i] += k
                    break
                out[i] -= 1

    check(steps, np.zeros(7), V)
    check(here, np.zeros(7), V)
    check(steps, np.zeros(7), np.abs(V) + 2)


@dt.kernel
def returning(out: dt.Out, v: dt.In):
    for i in dt.grid(len(v)):
        for k in range(len(v)):
            if v[k] > 1:
                return
            out[i] = v[k]


def test_return_ends_a_point(device: dt.Device) -> None:
    (ours, _) = run(returning, np.zeros(7), V)
    first = int(np.argmax(V > 1)) if (V > 1).any() else 7
    assert ours.tolist() == [V[first - 1] if first else 0.0] * 7


def clamped(x: Any, low: Any = -1.0, high: Any = 1.0) -> Any:
    """Return x within bounds. A user function, in the subset."""
    if x < low:
        return low
    return min(x, high)


def twice(x: Any) -> Any:
    y = clamped(x, high=HALF)
    return 2 * y


@dt.kernel
def calling(out: dt.Out, v: dt.In):
    for i in dt.grid(len(v)):
        out[i] = twice(v[i]) + clamped(v[i]) + abs(v[i]) + int(v[i]) + round(v[i])


def test_user_functions_are_inlined(device: dt.Device) -> None:
    check(calling, np.zeros(7), V * 2)


@dt.kernel
def histogram(counts: dt.InOut, x: dt.In, low: float, step: float):
    for i in dt.grid(len(x)):
        k = math.floor((x[i] - low) / step)
        if 0 <= k < len(counts):
            dt.atomic_add(counts, k, 1)


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32"])
def test_integer_atomics_count_a_histogram(device: dt.Device, dtype: str) -> None:
    x = np.random.default_rng(1).normal(size=3000)
    (counts, _) = run(histogram, np.zeros(12, dtype), x, -3.0, 0.5)
    want, _ = np.histogram(x, bins=12, range=(-3, 3))
    np.testing.assert_array_equal(counts, want)


def test_every_kind_of_atomic(device: dt.Device) -> None:
    @dt.kernel
    def each(out: dt.Out, n: dt.In):
        for i in dt.grid(len(n)):
            dt.atomic_add(out, 0, n[i])
            dt.atomic_max(out, 1, n[i])
            dt.atomic_min(out, (2,), n[i])
            dt.atomic_or(out, 3, n[i] & 7)
            dt.atomic_and(out, 4, n[i])

    check(each, np.zeros(5, np.int64), N)


@dt.kernel
def in_place(x: dt.InOut):
    for i in dt.grid(x.shape[0]):
        before = x[i, 0]
        for k in range(1, x.shape[1]):
            x[i, k] += before
            before = x[i, k] * HALF
        top = max(x[i, k] for k in range(x.shape[1]))
        x[i, 0] = sum(x[i, k] for k in range(x.shape[1])) - top
        for k in dt.grid((1, x.shape[1])):
            x[i, k] = x[i, k] / (1 + x[i, 0] * x[i, 0])


def test_reads_and_writes_of_one_tensor_stay_in_order(device: dt.Device) -> None:
    (ours,), (theirs,) = run(in_place, A), as_python(in_place, A)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@dt.kernel
def two_launches(half: dt.InOut, out: dt.Out, x: dt.In):
    n = len(x)
    for i in dt.grid(n):
        half[i] = x[i] * HALF
    for i in dt.grid((1, n)):
        out[i] = half[i] + half[i - 1]


def test_each_top_level_grid_is_a_launch(device: dt.Device) -> None:
    check(two_launches, np.zeros(7), np.zeros(7), V)
    assert two_launches.text(*map(tensor, (V, V, V))).count("kernel two_launches(") == 2


def test_outer_variables_are_read_at_each_launch(device: dt.Device) -> None:
    scale = 2.0

    @dt.kernel
    def scaled(out: dt.Out, v: dt.In):
        for i in dt.grid(len(v)):
            out[i] = v[i] * scale + math.pi * COUNT

    check(scaled, np.zeros(7), V)
    scale = 3.0
    check(scaled, np.zeros(7), V)
    scale = 4
    check(scaled, np.zeros(7), V)


def test_functions_of_dt_math_and_numpy_are_supported(device: dt.Device) -> None:
    @dt.kernel
    def theirs(out: dt.Out, v: dt.In):
        for i in dt.grid(len(v)):
            x = abs(v[i])
            out[i] = dt.exp(x) + math.sqrt(x) + np.arctan2(x, 2.0) + dt.where(x > 1, x, 0.0)

    (ours, _) = run(theirs, np.zeros(7), V)
    x = dt.abs(tensor(V))
    want = dt.exp(x) + dt.sqrt(x) + dt.atan2(x, dt.full_like(x, 2.0)) + dt.where(x > 1, x, 0.0)
    assert ours.tolist() == want.tolist()


def test_casts_in_kernels(device: dt.Device) -> None:
    @dt.kernel
    def casting(out: dt.Out, small: dt.Out, v: dt.In, c: dt.float32):
        for i in dt.grid(len(v)):
            out[i] = np.float32(v[i]) * dt.float32(3.0) + c + i
            small[i] = dt.astype(v[i] * 1000, dt.int8) + v[i].astype(dt.int16)

    out, small = dt.zeros(7), dt.zeros(7, dtype=dt.int16)
    v = tensor(V)
    casting(out, small, v, 0.1)
    want = dt.astype(v, dt.float32) * 3.0 + np.float32(0.1) + dt.arange(7, dtype=dt.float32)
    assert out.tolist() == want.tolist()
    eight = dt.astype(v * 1000, dt.int8) + dt.astype(v, dt.int16)
    assert small.tolist() == eight.tolist()


def test_complex_elements(device: dt.Device) -> None:
    @dt.kernel
    def squares(out: dt.Out, size: dt.Out, z: dt.In):
        for i in dt.grid(len(z)):
            w = 0j
            for _ in range(3):
                w = w * w + z[i]
            out[i] = w
            size[i] = abs(w) + w.real - w.imag

    z = (V + 1j * V[::-1]).astype(np.complex64)
    out, size = dt.zeros(7, dtype=dt.complex64), dt.zeros(7)
    squares(out, size, dt.asarray(z))
    w = np.zeros(7, np.complex64)
    for _ in range(3):
        w = w * w + z
    np.testing.assert_allclose(out.numpy(), w, rtol=1e-4)
    np.testing.assert_allclose(size.numpy(), np.abs(w) + w.real - w.imag, rtol=1e-4, atol=1e-4)


def test_empty_grids_and_tensors(device: dt.Device) -> None:
    check(five_point, np.zeros((2, 5)), np.ones((2, 5)), 0.1)
    check(five_point, np.zeros((0, 5)), np.ones((0, 5)), 0.1)

    @dt.kernel
    def point(out: dt.Out, x: dt.In):
        for _ in dt.grid(1):
            out[()] = x[()] * 2

    (out, _) = run(point, np.zeros(()), np.asarray(3.0))
    assert out == 6.0


def test_invariant_load_is_not_moved_before_an_empty_loop(device: dt.Device) -> None:
    """Otherwise `s[0]` would be read from a tensor without elements."""

    @dt.kernel
    def weighted(out: dt.Out, x: dt.In, s: dt.In):
        for i in dt.grid(len(out)):
            total = 0.0
            for k in range(len(s)):
                total += x[i] * s[0] * sum(s[0] for j in range(k))
            out[i] = total

    check(weighted, np.ones(3), V, np.zeros(0))
    check(weighted, np.ones(3), V, V[:2])


# --- among other work -----------------------------------------------------------------------------


@dt.kernel
def doubled(out: dt.Out, x: dt.In):
    for i in dt.grid(len(x)):
        out[i] = x[i] * 2


def test_kernels_keep_the_order_of_pending_work_on_one_memory(device: dt.Device) -> None:
    x, out = dt.asarray([1.0, 2.0]) + 1, dt.zeros(2)
    before = out + 10  # pending; reads what is written next
    doubled(out, x)  # x is pending
    after = out + 10
    x += 100
    assert (before.tolist(), after.tolist(), x.tolist()) == ([10, 10], [14, 16], [102, 103])
    pending = dt.ones(2) * 3
    view = pending[:1]
    doubled(pending, dt.asarray([5.0, 6.0]))
    assert (pending.tolist(), view.tolist()) == ([10, 12], [10])


def test_operand_that_overlaps_a_result_is_copied(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0, 3.0, 4.0])

    @dt.kernel
    def shifted(out: dt.Out, x: dt.In):
        for i in dt.grid(len(out)):
            out[i] = x[i] + 10

    shifted(x[1:], x[:-1])
    assert x.tolist() == [1, 11, 12, 13]
    shifted(x[::2], x[1::2])  # apart
    assert x.tolist() == [21, 11, 23, 13]
    shifted(x, x)
    assert x.tolist() == [31, 21, 33, 23]


def test_kernel_results_are_the_same_eager_and_captured(device: dt.Device) -> None:
    def step(x: dt.Tensor, c: float) -> dt.Tensor:
        out = dt.zeros(x.shape, dtype=x.dtype)
        five_point(out, x * 2, c)
        return out + 1

    plain = step(tensor(A), 0.1).tolist()
    with dt.eager():
        assert step(tensor(A), 0.1).tolist() == plain
    captured = dt.jit(step)
    for c in (0.1, 0.1, 0.3):
        assert captured(tensor(A), c).tolist() == step(tensor(A), c).tolist()
    assert captured.captures == 1
    assert "five_point" in dt.explain(captured).text()


def test_captured_kernel_writes_arguments(device: dt.Device) -> None:
    @dt.jit
    def step(out: dt.Tensor, x: dt.Tensor) -> None:
        doubled(out, x)
        doubled(out, out)

    for start in (1.0, 5.0):
        out = dt.zeros(3)
        step(out, dt.full((3,), start))
        assert out.tolist() == [start * 4] * 3


def test_captured_kernel_is_saved_to_a_file(device: dt.Device, tmp_path: Any) -> None:
    @dt.jit
    def step(x: dt.Tensor) -> dt.Tensor:
        out = dt.zeros_like(x)
        doubled(out, x)
        return out

    want = step(dt.arange(4.0)).tolist()
    dt.save_function(step, tmp_path / "step")
    assert dt.load_function(tmp_path / "step")(dt.arange(4.0)).tolist() == want


def test_profile_shows_kernel_launches(device: dt.Device) -> None:
    x, out = dt.ones(4), dt.zeros(4)
    with dt.profile() as p:
        doubled(out, x)
    assert any(line.name == "launch doubled" for line in p.lines())


def test_autograd_function_attaches_gradients(device: dt.Device) -> None:
    class Doubled(dt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: dt.Tensor) -> dt.Tensor:
            out = dt.zeros_like(x)
            doubled(out, x)
            return out

        @staticmethod
        def backward(ctx: Any, g: dt.Tensor) -> dt.Tensor:
            return g * 2

    x = dt.asarray([1.0, 2.0]).requires_grad_()
    (Doubled.apply(x) ** 2).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [8, 16]


def test_write_by_a_kernel_invalidates_saved_values(device: dt.Device) -> None:
    x = dt.asarray([1.0, 2.0]).requires_grad_()
    kept = dt.zeros(2) + 3
    y = (x * kept).sum()
    doubled(kept, dt.ones(2))
    with pytest.raises(dt.GradientError, match="doubled"):
        y.backward()


def test_text_source_and_explain_show_the_kernel(device: dt.Device) -> None:
    text = five_point.text(dt.zeros((3, 3)), dt.zeros((3, 3)), 0.1)
    assert text.startswith("kernel five_point(out: w f32, u: r f32")
    source = five_point.source(dt.zeros((3, 3)), dt.zeros((3, 3)), 0.1)
    assert "kernel" in source or "five_point" in source
    assert repr(five_point) == "<dt.kernel five_point(out, u, c)>"
    assert five_point.__name__ == "five_point"


@dt.kernel
def rounds_of_remainder(out: dt.Out, x: dt.In):
    for i in dt.grid(x.shape[0]):
        total = 0.0
        for k in range(int(x[i] % 4.0)):
            total += x[k] % 2.0
        out[i] = total


@dt.kernel
def rounds_of_quotient(out: dt.Out, x: dt.In):
    for i in dt.grid(x.shape[0]):
        total = 0.0
        for k in range(int(x[i] // 2.5)):
            total += x[k] // 2.0
        out[i] = total


@dt.kernel
def rounds_of_functions(out: dt.Out, x: dt.In):
    for i in dt.grid(x.shape[0]):
        total = 0.0
        for k in range(int(dt.floor(dt.sqrt(x[i]) + 0.5)), int(dt.minimum(x[i], 4.0))):
            total += dt.maximum(x[k], 2.5)
        out[i] = total


ROUNDS = {
    rounds_of_remainder: lambda v, x: sum(math.fmod(x[k], 2.0) for k in range(int(v % 4.0))),
    rounds_of_quotient: lambda v, x: sum(x[k] // 2.0 for k in range(int(v // 2.5))),
    rounds_of_functions: lambda v, x: sum(
        max(x[k], 2.5) for k in range(int(math.sqrt(v) + 0.5), int(min(v, 4.0)))
    ),
}


@pytest.mark.parametrize("kernel", ROUNDS, ids=lambda k: k.__name__)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loop_with_a_float_trip_count(kernel: Any, dtype: str, device: dt.Device) -> None:
    values = [1.0, 2.5, 3.0, 5.0, 7.0, 9.5]
    x = dt.asarray(values, dtype=dtype)
    out = dt.zeros(len(values), dtype=dtype)
    kernel(out, x)
    assert out.tolist() == [ROUNDS[kernel](v, values) for v in values]


MANY = tuple(range(1500))


@dt.kernel
def over_many(out: dt.Out):
    for i in dt.grid(len(out)):
        total = 0
        for k in MANY:
            total += k * i
        out[i] = total


def test_loop_over_a_tuple_may_exceed_the_recursion_limit() -> None:
    out = dt.zeros(3, dtype=dt.int64, device="reference")
    over_many(out)
    assert out.tolist() == [0, sum(MANY), 2 * sum(MANY)]


@dt.kernel
def generator_of_the_same_name(out: dt.Out, n: int):
    for i in dt.grid(len(out)):
        k = 5
        total = 0
        for _ in range(n):
            k = k + 1
            total = total + sum(k for k in range(3))
        out[i] = total + k


def test_variable_shadowed_by_a_generator_is_carried_by_a_loop(device: dt.Device) -> None:
    out = dt.zeros(1)
    generator_of_the_same_name(out, 4)
    assert out.tolist() == [4 * 3 + 9]


@dt.kernel
def signed_zero(out: dt.Out, x: dt.In):
    for i in dt.grid(len(out)):
        out[i] = 0.0 if x[i] > 0 else -0.0


def test_zeros_of_both_signs_are_distinct_constants(device: dt.Device) -> None:
    out = dt.zeros(2)
    signed_zero(out, dt.asarray([1.0, -1.0]))
    assert [math.copysign(1.0, v) for v in out.tolist()] == [1.0, -1.0]
